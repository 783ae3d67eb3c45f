"""The one OpenGL context of this process, and the few calls that moderngl does not wrap.

Two contexts in one process misdirect calls, so all renderers share one. It is made on first use,
made current around each drawing (other EGL users of the process get theirs back), and guarded by a
lock, so renderers may be used from any thread. A context does not survive ``fork``: use spawn.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wmeval.errors import UserError

if TYPE_CHECKING:
    from wmeval.sim.render.pool import TexturePool

_MEND = (
    "install the EGL driver of your GPU, or Mesa's software driver: "
    "apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri"
)

# Enumerators of the registry that are used below and by the renderer.
ZERO_TO_ONE, LOWER_LEFT = 0x935F, 0x8CA1
DEPTH_CLAMP, CLIP_DISTANCE0, SCISSOR_TEST = 0x864F, 0x3000, 0x0C11
TEXTURE_2D, TEXTURE_2D_MULTISAMPLE, TEXTURE_2D_ARRAY = 0x0DE1, 0x9100, 0x8C1A
TEXTURE_MIN_FILTER, TEXTURE_MAG_FILTER = 0x2801, 0x2800
LINEAR, LINEAR_MIPMAP_LINEAR = 0x2601, 0x2703
RGBA, RGBA8, UNSIGNED_BYTE = 0x1908, 0x8058, 0x1401
DEPTH_COMPONENT32F, DEPTH_ATTACHMENT, COLOR_ATTACHMENT0 = 0x8CAC, 0x8D00, 0x8CE0
COLOR_BUFFER_BIT, NEAREST = 0x4000, 0x2600
ZERO, ONE, SRC_COLOR, SRC1_COLOR = 0, 1, 0x0300, 0x88F9
_SAMPLE_POSITION = 0x8E50
_COLOR, _DEPTH = 0x1800, 0x1801
_ZEROS = (ctypes.c_int * 4)()

_UINT, _INT = ctypes.c_uint, ctypes.c_int
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "glClipControl": (_UINT, _UINT),
    "glEnable": (_UINT,),
    "glDisable": (_UINT,),
    "glScissor": (_INT, _INT, _INT, _INT),
    "glDepthMask": (ctypes.c_ubyte,),
    "glBlendFunc": (_UINT, _UINT),
    "glCreateTextures": (_UINT, _INT, ctypes.POINTER(_UINT)),
    "glDeleteTextures": (_INT, ctypes.POINTER(_UINT)),
    "glBindTextureUnit": (_UINT, _UINT),
    "glTextureStorage3D": (_UINT, _INT, _UINT, _INT, _INT, _INT),
    "glTextureSubImage3D": (_UINT, *([_INT] * 7), _UINT, _UINT, ctypes.c_void_p),
    "glTextureParameteri": (_UINT, _UINT, _INT),
    "glGenerateTextureMipmap": (_UINT,),
    "glTextureStorage2D": (_UINT, _INT, _UINT, _INT, _INT),
    "glTextureStorage2DMultisample": (_UINT, _INT, _UINT, _INT, _INT, ctypes.c_ubyte),
    "glNamedFramebufferTexture": (_UINT, _UINT, _UINT, _INT),
    "glNamedFramebufferTextureLayer": (_UINT, _UINT, _UINT, _INT, _INT),
    "glBlitNamedFramebuffer": (_UINT, _UINT, *([_INT] * 8), _UINT, _UINT),
    "glClearNamedFramebufferfv": (_UINT, _UINT, _INT, ctypes.c_void_p),
    "glClearNamedFramebufferiv": (_UINT, _UINT, _INT, ctypes.c_void_p),
    "glClearNamedFramebufferuiv": (_UINT, _UINT, _INT, ctypes.c_void_p),
    "glGetMultisamplefv": (_UINT, _UINT, ctypes.c_void_p),
    "glCopyImageSubData": (_UINT, _UINT, *([_INT] * 4), _UINT, _UINT, *([_INT] * 7)),
}


class Device:
    """A context with raw calls as attributes (``device.glClipControl(...)``).

    Attributes:
        ctx: moderngl context (OpenGL 4.5 core).
        driver: renderer and version of the driver, for records.
        programs: compiled ones by what they are made of: the same for all renderers, and slow to
            compile.
        pools: baked textures by their size, kept between scenes.
    """

    def __init__(self) -> None:
        import moderngl

        _bind_codecs()
        egl = _library("libEGL.so.1")
        # glcontext only needs some library to resolve core functions from; with a vendor-neutral
        # dispatcher each of these will do.
        gl_name = next(
            (n for n in ("libGL.so.1", "libOpenGL.so.0", "libEGL.so.1") if _loads(n)), "libEGL.so.1"
        )
        try:
            make: Any = moderngl.create_context  # its hints know no back end
            self.ctx = make(
                standalone=True, backend="egl", require=450, libgl=gl_name, libegl="libEGL.so.1"
            )
        except Exception as error:
            raise UserError(f"no OpenGL 4.5 context through EGL ({error}): {_MEND}") from error
        info = self.ctx.info
        self.driver = f"{info['GL_RENDERER']}; {info['GL_VERSION']}"
        self.ctx.gc_mode = None  # what is released is released at once
        address = egl.eglGetProcAddress
        address.restype, address.argtypes = ctypes.c_void_p, (ctypes.c_char_p,)
        self._calls = {}
        for name, arguments in _SIGNATURES.items():
            pointer = address(name.encode())
            if not pointer:
                raise UserError(f"the OpenGL driver {self.driver} has no {name}: {_MEND}")
            self._calls[name] = ctypes.CFUNCTYPE(None, *arguments)(pointer)
        self.programs: dict[tuple[Any, ...], Any] = {}
        self.pools: dict[int, TexturePool] = {}
        self.pid = os.getpid()
        self.lock = threading.RLock()
        self.busy = False

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_calls"][name]
        except KeyError:
            raise AttributeError(name) from None

    def depth_texture(self, width: int, height: int, samples: int = 0) -> int:
        """Name of a new 32-bit float depth texture."""
        name = ctypes.c_uint()
        if samples:
            self.glCreateTextures(TEXTURE_2D_MULTISAMPLE, 1, ctypes.byref(name))
            self.glTextureStorage2DMultisample(name, samples, DEPTH_COMPONENT32F, width, height, 1)
        else:
            self.glCreateTextures(TEXTURE_2D, 1, ctypes.byref(name))
            self.glTextureStorage2D(name, 1, DEPTH_COMPONENT32F, width, height)
        return name.value

    def sample_positions(self, samples: int) -> list[tuple[float, float]]:
        """Where the samples lie within a pixel (0..1 along x and rows)."""
        before = self.ctx.fbo  # a program may be compiled in the middle of a pass
        target = self.ctx.framebuffer([self.ctx.renderbuffer((4, 4), 4, samples=samples)])
        target.use()
        places = []
        for i in range(samples):
            at = (ctypes.c_float * 2)()
            self.glGetMultisamplefv(_SAMPLE_POSITION, i, ctypes.byref(at))
            places.append((float(at[0]), float(at[1])))
        before.use()
        for attachment in target.color_attachments:
            attachment.release()
        target.release()
        return places

    def clear_depth(self, target: Any, value: float) -> None:
        """Fill the depth of a framebuffer (within the scissor)."""
        self.glClearNamedFramebufferfv(target.glo, _DEPTH, 0, ctypes.byref(ctypes.c_float(value)))

    def clear_labels(self, target: Any) -> None:
        """Zero a framebuffer's signed integer colour (within the scissor)."""
        self.glClearNamedFramebufferiv(target.glo, _COLOR, 0, ctypes.byref(_ZEROS))

    def clear_ids(self, target: Any) -> None:
        """Zero a framebuffer's unsigned integer colour (within the scissor)."""
        self.glClearNamedFramebufferuiv(target.glo, _COLOR, 0, ctypes.byref(_ZEROS))

    def delete_texture(self, name: int) -> None:
        """Free a texture by its name."""
        self.glDeleteTextures(1, ctypes.byref(ctypes.c_uint(name)))


def _bind_codecs() -> None:
    """Load the codecs of stores before the driver: they shall write the same with and without one.

    It brings a zstd of its own into the process's global names; a codec that is loaded later would
    compress with that instead of its own.
    """
    with contextlib.suppress(ImportError):
        import numcodecs.blosc  # type: ignore[import-untyped]  # noqa: F401


def _library(name: str) -> Any:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise UserError(
            f"pictures need EGL, but {name} cannot be loaded ({error}): {_MEND}"
        ) from None


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


_device: Device | None = None
_making = threading.RLock()  # the garbage collector may come back to it in the same thread


@contextmanager
def current_device() -> Iterator[Device]:
    """The process's context, current and locked for the duration.

    Raises:
        UserError: no EGL or no OpenGL 4.5 (the message names the Debian packages), or the process
            was forked after its parent had drawn.
    """
    global _device  # noqa: PLW0603  (one context per process is the point)
    with _making:
        if _device is None:
            _device = Device()
    if _device.pid != os.getpid():
        raise UserError(
            "this process was forked after its parent had drawn pictures, and an OpenGL context "
            'does not survive that: start workers with the "spawn" method'
        )
    with _device.lock:
        nested = _device.busy
        _device.busy = True
        try:
            with _device.ctx:
                if not nested:
                    _free()
                yield _device
        finally:
            _device.busy = nested


_dropped: deque[Callable[[], None]] = deque()


def release_later(release: Callable[[], None]) -> None:
    """Free what a dropped owner held: at once, or when the drawing that goes on has ended.

    For finalizers, which the garbage collector may run in any thread and in the middle of a pass.

    Args:
        release: to be called with the context current.
    """
    _dropped.append(release)
    device = _device
    if device is None or device.pid != os.getpid() or not device.lock.acquire(blocking=False):
        return
    try:
        if not device.busy:
            with current_device():
                pass
    finally:
        device.lock.release()


def _free() -> None:
    while _dropped:
        _dropped.popleft()()

"""Per-step pictures by rasterisation: moderngl on EGL, also on Mesa's software driver.

One `RasterRenderer.draw` gives colour (sun with a soft shadow, graded sky with clouds, glossy
plastic, chrome that reflects the scene, glass; 4 samples a pixel) and exact labels (1 sample at
the pixel's centre): planar depth, ids, glass ids, world normals, and ids of what casts a shadow.

What looks good (materials of `wmeval.scene`):

- Floors and walls: roughness 0.7-0.9, specular 0.2-0.3, colours between 0.15 and 0.6 linear;
  ``uv_m`` 2-4 m a tile for ``tiles``, ``concrete``, ``speckle``, ``grass``, ``asphalt``.
- Painted toys: roughness 0.35-0.5, specular 0.4. Glossy balls: roughness 0.12-0.25, specular
  0.6-0.9, ``ball_panels`` of two close tones of one colour.
- Chrome: mirror 0.9-1, roughness 0-0.1, a pale ``brushed`` or ``ball_panels`` texture as the tint
  (linear 0.75-0.95): its pattern is what shows that a chrome ball turns.
- Glass: opacity 0.1-0.35, ior 1.3-1.5, roughness 0.05.
- Sun: strength 2.5-3.2, elevation 35-55 degrees, softness 0.02-0.05; sky strength 1.

Limits: balls cast exact discs and everything else its mesh into a shadow map of ``shadow_size``
texels over the scene's bounds (at most `pieces.MAX_SPAN` metres; a window follows the camera in a
larger scene). ``shadow_ids`` uses one of twice that size without filter: its outlines are right to
one texel, 0.7 cm for a 15 m scene. Where shadows of several bodies lie over each other, the body
nearest to the sun is named. Glass casts no shadow. Chrome shows no other chrome's reflections.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.textures import bake, decode_srgb
from wmeval.errors import UserError
from wmeval.layers import LAYERS, RENDERED
from wmeval.scene import Meshes, Scene, Texture
from wmeval.sim.protocol import RenderState
from wmeval.sim.render import gl
from wmeval.sim.render.clouds import cloud_layer
from wmeval.sim.render.pieces import (
    ANCHOR_STEP,
    GLASS,
    MIRROR,
    OPAQUE,
    RECORD,
    Pieces,
    SunRegion,
    SunView,
    View,
    camera_view,
    compile_pieces,
    cube_views,
    mean_color,
)

if TYPE_CHECKING:
    from wmeval.sim.render.gl import Device

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

EXPOSURE = 0.42
MATTE_ROUGHNESS = 0.7
"""From here on a surface shows no highlight and no reflection (and is drawn without them)."""

GROUND_SIZE = 256
"""Texels along a side of the map of light that bodies take from the ground."""
_FRAME_BYTES = 512
"""Room for one `Frame` block; a multiple of every driver's alignment of uniform blocks."""
_FLOATS = _FRAME_BYTES // 4
_LIGHT = ("frame", "sky", "light", "film")
_MESH = (*_LIGHT, "mesh_surface", "openness")
_BALL = (*_LIGHT, "ball_surface", "openness")
_PROGRAMS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    # name: (geometry, vertex shader, fragment shader's parts, defines)
    "mesh_glossy": ("mesh", "surface.vert", (*_MESH, "opaque.frag"), ()),
    "ball_glossy": ("ball", "ball.vert", (*_BALL, "opaque.frag"), ()),
    "mesh_matte": ("mesh", "surface.vert", (*_MESH, "opaque.frag"), ("MATTE",)),
    "ball_matte": ("ball", "ball.vert", (*_BALL, "opaque.frag"), ("MATTE",)),
    "mesh_cube": ("mesh", "surface.vert", (*_MESH, "opaque.frag"), ("CUBE",)),
    "ball_cube": ("ball", "ball.vert", (*_BALL, "opaque.frag"), ("CUBE",)),
    "mesh_mirror": ("mesh", "surface.vert", (*_MESH, "mirror.frag"), ()),
    "ball_mirror": ("ball", "ball.vert", (*_BALL, "mirror.frag"), ()),
    "mesh_glass": ("mesh", "surface.vert", (*_MESH, "glass.frag"), ()),
    "ball_glass": ("ball", "ball.vert", (*_BALL, "glass.frag"), ()),
    "mesh_label": ("mesh", "label.vert", ("frame", "label.frag"), ()),
    "ball_label": ("ball", "ball.vert", ("frame", "label_ball.frag"), ()),
    "mesh_glass_id": ("mesh", "label.vert", ("frame", "label.frag"), ("IDS",)),
    "ball_glass_id": ("ball", "ball.vert", ("frame", "label_ball.frag"), ("IDS",)),
    "mesh_shadow": ("mesh", "shadow.vert", ("shadow.frag",), ()),
    "ball_shadow": ("ball", "shadow_ball.vert", ("shadow_ball.frag",), ()),
    "mesh_shadow_id": ("mesh", "shadow.vert", ("shadow.frag",), ("IDS",)),
    "ball_shadow_id": ("ball", "shadow_ball.vert", ("shadow_ball.frag",), ("IDS",)),
    "ground": ("ball", "ground.vert", ("frame", "piece", "ground.frag"), ()),
    "sky": ("screen", "", ("frame", "sky", "film", "sky.frag"), ()),
    "sky_cube": ("screen", "", ("frame", "sky", "film", "sky.frag"), ("CUBE",)),
    "shade_ids": ("screen", "", ("frame", "shade_ids.frag"), ()),
}
"""One program per kind of surface and pass: a single one with branches costs a third more."""

_LABEL_LAYERS = ("depth", "ids", "normals", "glass_ids", "shadow_ids")


@dataclass(frozen=True, eq=False)
class _Targets:
    """Pictures of one size on the GPU."""

    width: int
    height: int
    many: Any
    color: Any
    label: Any
    label_texture: Any
    label_depth: Any
    glass: Any
    shade: Any
    depth_names: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Instant:
    """One state laid out for drawing."""

    camera: View
    anchor: F8
    rotation: F8
    centre: F8
    drawn: NDArray[np.bool_]
    sun: SunView
    sun_color: F8
    sky_rows: int


class RasterRenderer:
    """Pictures of one scene.

    Args:
        scene: what to draw.
        meshes: content hash to mesh.
        samples: of colour per pixel (1 or 4).
        shadow_size: texels along a side of the shadow map.
        cached: while camera, sun and size stay, draw only what changed; the same bits either way.
        texture_size: texels along a side of each texture.

    Raises:
        UserError: unknown texture or mesh, a number of samples that the driver lacks. Drawing
            raises it where there is no EGL.
    """

    name = "raster"
    version = "1"

    def __init__(
        self,
        scene: Scene,
        meshes: Meshes,
        *,
        samples: int = 4,
        shadow_size: int = 1024,
        cached: bool = True,
        texture_size: int = 512,
    ) -> None:
        if samples not in (1, 2, 4, 8):
            raise UserError(f"samples={samples}: choose 1, 2, 4 or 8")
        self.scene = scene
        self.samples = samples
        self.shadow_size = shadow_size
        self.cached = cached
        self._texture_size = texture_size
        self._pieces = compile_pieces(scene, meshes)
        self._region = SunRegion.of(scene, self._pieces)
        self._floor_color = (
            mean_color(self._pieces.textures[int(self._pieces.record[self._pieces.floor, 12])])
            if self._pieces.floor >= 0
            else np.array(scene.sky.ground)
        )
        self._gpu: _Gpu | None = None
        self._closed = False

    @property
    def driver(self) -> str:
        """Name and version of the OpenGL driver."""
        with gl.current_device() as device:
            return device.driver

    def draw(
        self, state: RenderState, width: int, height: int, layers: tuple[str, ...]
    ) -> dict[str, NDArray[Any]]:
        """Layers of one instant, rows top-down; see `wmeval.layers.LAYERS` for each.

        Args:
            state: poses of the scene's bodies, camera and sun.
            width, height: picture size [px], 1..8192.
            layers: of rgb, depth, ids, glass_ids, normals, shadow_ids.

        Returns:
            Fresh arrays by layer name, in the order asked for.

        Raises:
            UserError: unknown layer, impossible size, poses that do not fit the scene or are not
                finite, no EGL.
        """
        self._check(state, width, height, layers)
        with gl.current_device() as device:
            if self._gpu is None:
                self._gpu = _Gpu(
                    device, self.scene, self._pieces, self.samples, self.shadow_size,
                    self._texture_size,
                )  # fmt: skip
            instant = self._instant(state, width, height)
            return self._full(self._gpu, instant, layers)

    def close(self) -> None:
        """Free what this renderer holds on the GPU; the process's context stays. Idempotent."""
        self._closed = True
        if self._gpu is not None:
            with gl.current_device():
                self._gpu.release()
            self._gpu = None

    # --- steps of a drawing ---

    def _check(self, state: RenderState, width: int, height: int, layers: tuple[str, ...]) -> None:
        if self._closed:
            raise UserError("this renderer is closed: make a new one")
        unknown = [name for name in layers if name not in RENDERED]
        if unknown:
            raise UserError(
                f"the raster renderer draws {', '.join(RENDERED)}; got {unknown[0]!r}"
                + (" (labels.flow derives it)" if unknown[0] in LAYERS else "")
            )
        if not (1 <= width <= 8192 and 1 <= height <= 8192):
            raise UserError(f"picture size {width}x{height}: each side must be 1..8192 px")
        bodies = len(self.scene.bodies)
        if state.position.shape != (bodies, 3) or state.quaternion_wxyz.shape != (bodies, 4):
            raise UserError(
                f"scene {self.scene.name!r} has {bodies} bodies; the state has positions "
                f"{state.position.shape} and quaternions {state.quaternion_wxyz.shape}"
            )
        on = state.active
        if not (
            np.isfinite(state.position[on]).all()
            and np.isfinite(state.quaternion_wxyz[on]).all()
            and np.isfinite(state.T_world_camera).all()
        ):
            raise UserError("the state to draw holds NaN or infinite poses")

    def _instant(self, state: RenderState, width: int, height: int) -> _Instant:
        pieces = self._pieces
        camera = camera_view(state, width, height)
        with np.errstate(invalid="ignore"):
            rotation, centre = pieces.world(state)
        drawn = state.active[pieces.body]
        # Empty slots may hold anything; it must not reach the arithmetic of the others.
        rotation = np.where(drawn[:, None, None], rotation, np.eye(3))
        centre = np.where(drawn[:, None], centre, 0.0)
        anchor = np.rint(camera.eye / ANCHOR_STEP) * ANCHOR_STEP
        sun = self._region.view(state.sun_direction, camera, self.shadow_size)
        return _Instant(
            camera,
            anchor,
            rotation,
            centre,
            drawn,
            sun,
            np.asarray(state.sun_color, np.float64),
            self._sky_rows(camera, rotation, centre, drawn),
        )

    def _sky_rows(self, camera: View, rotation: F8, centre: F8, drawn: NDArray[np.bool_]) -> int:
        """Rows from the top in which sky may show: below, the floor's top reaches both edges.

        The floor's top is convex, so a row whose two ends lie on it lies on it altogether.
        """
        k = self._pieces.floor
        if k < 0 or not drawn[k] or self._pieces.kind[k] != OPAQUE:
            return camera.height
        half = self._pieces.half[k]
        eye = (camera.eye - centre[k]) @ rotation[k]
        if eye[2] <= half[2]:
            return camera.height
        v = (np.arange(camera.height) + 0.5) * 2 / camera.height - 1
        ends = np.array([-1.0, 1.0])
        ray = (
            camera.axes[2]
            + ends[None, :, None] * camera.tangents[0] * camera.axes[0]
            + v[:, None, None] * camera.tangents[1] * camera.axes[1]
        ) @ rotation[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (half[2] - eye[2]) / ray[..., 2]
            hit = eye[:2] + ray[..., :2] * t[..., None]
            inside = (np.abs(hit) < 0.999 * half[:2] - 1e-6).all(axis=-1)
        covered = inside & (t > camera.near) & (t < 0.99 * camera.far)
        open_rows = np.flatnonzero(~covered.all(axis=1))
        return int(min(open_rows[-1] + 3, camera.height)) if len(open_rows) else 0

    def _full(
        self, gpu: _Gpu, instant: _Instant, layers: tuple[str, ...]
    ) -> dict[str, NDArray[Any]]:
        pieces = self._pieces
        camera = instant.camera
        targets = gpu.targets(camera.width, camera.height)
        gpu.write_pieces(instant)
        colored = "rgb" in layers
        labelled = any(name in layers for name in _LABEL_LAYERS)
        visible = instant.drawn & camera.sees(instant.centre, pieces.radius)
        mirrors = np.flatnonzero(visible & (pieces.kind == MIRROR)) if colored else np.zeros(0, int)
        cubes = [gpu.cube_of(instant, i) for i in mirrors]
        views = [camera, *(v for cube in cubes for v in cube.views)]
        gpu.write_frames([self._frame(instant, v) for v in views])

        out: dict[str, NDArray[Any]] = {}
        casters = instant.drawn & (pieces.kind != GLASS)
        casters[pieces.floor if pieces.floor >= 0 else slice(0, 0)] = False
        if colored:
            gpu.use_frame(0)
            gpu.draw_shadow(gpu.shadow, np.flatnonzero(casters), False)
            gpu.draw_ground(np.flatnonzero(casters))
            gpu.write_shadow_mask(instant, np.flatnonzero(casters))
            for k, cube in enumerate(cubes):
                others = instant.drawn.copy()
                others[mirrors[k]] = False
                gpu.draw_cube(cube, instant, others, 1 + 6 * k)
            gpu.use_frame(0)
            gpu.draw_color(targets, instant, visible, mirrors, cubes)
            out["rgb"] = gpu.read_color(targets)
        if labelled:
            gpu.use_frame(0)
            gpu.draw_labels(targets, instant, visible)
            out.update(gpu.read_labels(targets, layers, camera.near))
            if "shadow_ids" in layers:
                gpu.draw_shadow(gpu.shadow_ids, np.flatnonzero(casters), True)
                out["shadow_ids"] = gpu.draw_shade_ids(targets)
            if "glass_ids" in layers:
                out["glass_ids"] = gpu.draw_glass_ids(targets, instant, visible)
        return {name: out[name] for name in dict.fromkeys(layers)}

    def _frame(self, instant: _Instant, view: View) -> F4:
        """The uniform block of ``frame.glsl`` for one view."""
        sky, sun = self.scene.sky, self.scene.sun
        out = np.zeros(_FLOATS, np.float32)
        rows = out[:].reshape(-1, 4)
        rows[0:4] = view.clip(instant.anchor).T
        rows[4] = [*(view.eye - instant.anchor), view.near]
        rows[5] = [*(view.axes[0] * view.tangents[0]), 2 / view.width]
        rows[6] = [*(view.axes[1] * view.tangents[1]), 2 / view.height]
        rows[7] = [*view.axes[2], view.far]
        rows[8] = [*instant.sun.to_sun, math.cos(0.018)]
        rows[9] = [*instant.sun_color, EXPOSURE]
        light = sky.strength
        zenith, horizon = np.array(sky.zenith) * light, np.array(sky.horizon) * light
        rows[10] = [*zenith, sky.clouds]
        rows[11] = [*horizon, 1.6 / view.far]
        up = max(float(instant.sun.to_sun[2]), 0.0)
        bounce = self._floor_color * (
            0.5 * up * instant.sun_color + 0.6 * (0.5 * zenith + 0.5 * horizon)
        )
        rows[12] = [*(np.array(sky.ground) * light * (0.4 + 0.6 * up)), 0]
        rows[13] = [*bounce, self._pieces.stand - instant.anchor[2]]
        rows[14:17] = instant.sun.relative(instant.anchor)
        texel = instant.sun.texel
        # The shadow's edge at a metre's distance from what casts it, but at least a texel and a bit.
        kernel = float(np.clip(0.75 * sun.softness / texel, 1.25, 4.0))
        depth_per_m = float(np.linalg.norm(instant.sun.rows[2, :3]))
        rows[17] = [kernel, 0.15 * texel, 0.05 * texel * depth_per_m, 1 / self.shadow_size]
        low, high = instant.sun.ground_low, instant.sun.ground_high
        rows[18] = [*(low - instant.anchor[:2]), 1 / (high[0] - low[0]), 9]
        return out


@dataclass(frozen=True, eq=False)
class _Program:
    """A program with the vertex array that feeds it."""

    program: Any
    array: Any


# --- the GPU's side -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Cube:
    """Surroundings of one chrome piece."""

    piece: int
    size: int
    centre: F8
    views: tuple[View, ...]
    reach: float
    texture: Any
    faces: tuple[Any, ...]


class _Gpu:
    """Buffers, programs and passes of one scene in the shared context."""

    def __init__(
        self,
        device: Device,
        scene: Scene,
        pieces: Pieces,
        samples: int,
        shadow_size: int,
        texture_size: int,
    ) -> None:
        self.device, self.ctx, self.pieces = device, device.ctx, pieces
        ctx = self.ctx
        if samples > ctx.max_samples:
            raise UserError(f"this driver has {ctx.max_samples} samples a pixel, not {samples}")
        self.samples = samples
        self._held: list[Any] = []
        self._targets: dict[tuple[int, int], _Targets] = {}
        self._cubes: dict[tuple[int, int], tuple[Any, tuple[Any, ...], int]] = {}
        keep = self._keep
        self.vertices = keep(ctx.buffer(np.ascontiguousarray(pieces.vertices).tobytes()))
        self.triangles = keep(ctx.buffer(np.ascontiguousarray(pieces.triangles).tobytes()))
        count = max(1, len(pieces))
        self.records = keep(ctx.buffer(reserve=count * 4 * RECORD))
        self.frames = keep(ctx.buffer(reserve=_FRAME_BYTES))
        self.chosen = keep(ctx.buffer(reserve=count * 4))
        self.commands = keep(ctx.buffer(reserve=count * 20))
        self.textures = keep(_texture_array(ctx, pieces.textures, texture_size))
        self.clouds = keep(ctx.texture((512, 512), 2, cloud_layer(512).tobytes()))
        self.clouds.build_mipmaps()
        self.clouds.filter = (ctx.LINEAR_MIPMAP_LINEAR, ctx.LINEAR)
        self.shadow_size = shadow_size
        self.shadow = self._shadow_target(shadow_size, ids=False)
        self.ground_map = keep(ctx.texture((GROUND_SIZE, GROUND_SIZE), 1))
        self.ground_map.repeat_x = self.ground_map.repeat_y = False
        self.ground_target = keep(ctx.framebuffer([self.ground_map]))
        self.shadow_mask = keep(ctx.texture((128, 128), 1, dtype="u1"))
        self.shadow_mask.filter = (ctx.NEAREST, ctx.NEAREST)
        self._shadow_ids: Any = None
        self._programs: dict[str, _Program] = {}

    def _keep(self, thing: Any) -> Any:
        self._held.append(thing)
        return thing

    def release(self) -> None:
        for thing in reversed(self._held):
            thing.release()
        for targets in self._targets.values():
            for name in targets.depth_names:
                self.device.delete_texture(name)
        self._held.clear()
        self._targets.clear()
        self._cubes.clear()

    # --- programs and targets ---

    def program(self, name: str) -> _Program:
        """A row of `_PROGRAMS`, compiled on first use."""
        if name not in self._programs:
            kind, vertex, fragment, defines = _PROGRAMS[name]
            if kind == "mesh":
                made = self._mesh_program(vertex, fragment, *defines)
            elif kind == "ball":
                made = self._ball_program(vertex, fragment, *defines)
            else:
                made = self._screen_program(fragment, *defines)
            self._programs[name] = made
        return self._programs[name]

    def _compile(
        self, vertex: tuple[str, ...], fragment: tuple[str, ...], defines: tuple[str, ...]
    ) -> Any:
        if self.samples > 1 and "CUBE" not in defines:
            defines = (*defines, "SAMPLES")
        head = "#version 450 core\n" + "".join(f"#define {name}\n" for name in defines)
        program = self._keep(
            self.ctx.program(
                vertex_shader=head + "".join(_source(n) for n in vertex),
                fragment_shader=head + "".join(_source(n) for n in fragment),
            )
        )
        for unit, name in enumerate(
            ("textures", "shadow_map", "clouds", "surroundings", "ground_map", "shadow_mask")
        ):
            if name in program:
                program[name].value = unit
        for unit, name in enumerate(("depth_map", "label_map", "shadow_depth", "shadow_instance")):
            if name in program:
                program[name].value = unit
        if "sample_at" in program:
            program["sample_count"].value = self.samples
            places = self.device.sample_positions(self.samples)
            program["sample_at"].value = [*places, *([(0.5, 0.5)] * (8 - len(places)))]
        return program

    def _mesh_program(self, vertex: str, fragment: tuple[str, ...], *defines: str) -> _Program:
        program = self._compile(("frame", "piece", vertex), fragment, defines)
        # The driver drops what a program does not read; its floats are skipped.
        wanted = (("in_position", 3), ("in_normal", 3), ("in_uv", 2))
        names = [n for n, _ in wanted if n in program]
        layout = " ".join(f"{k}f" if n in program else f"{k}x4" for n, k in wanted)
        array = self.ctx.vertex_array(
            program,
            [(self.vertices, layout, *names), (self.chosen, "1u/i", "in_piece")],
            index_buffer=self.triangles,
        )
        return _Program(program, self._keep(array))

    def _ball_program(self, vertex: str, fragment: tuple[str, ...], *defines: str) -> _Program:
        program = self._compile(("frame", "piece", vertex), fragment, defines)
        array = self.ctx.vertex_array(program, [(self.chosen, "1u/i", "in_piece")])
        return _Program(program, self._keep(array))

    def _screen_program(self, fragment: tuple[str, ...], *defines: str) -> _Program:
        program = self._compile(("sky.vert",), fragment, defines)
        return _Program(program, self._keep(self.ctx.vertex_array(program, [])))

    def _shadow_target(self, size: int, *, ids: bool) -> Any:
        ctx = self.ctx
        depth = self._keep(ctx.depth_texture((size, size)))
        depth.repeat_x = depth.repeat_y = False
        if ids:
            depth.compare_func = ""
            depth.filter = (ctx.NEAREST, ctx.NEAREST)
            code = self._keep(ctx.texture((size, size), 1, dtype="u2"))
            code.filter = (ctx.NEAREST, ctx.NEAREST)
            return self._keep(ctx.framebuffer([code], depth)), depth, code
        depth.compare_func = "<="
        depth.filter = (ctx.LINEAR, ctx.LINEAR)
        return self._keep(ctx.framebuffer([], depth)), depth, None

    @property
    def shadow_ids(self) -> Any:
        if self._shadow_ids is None:
            self._shadow_ids = self._shadow_target(2 * self.shadow_size, ids=True)
        return self._shadow_ids

    def targets(self, width: int, height: int) -> _Targets:
        key = (width, height)
        if key not in self._targets:
            if len(self._targets) >= 4:
                self._drop_targets(next(iter(self._targets)))
            self._targets[key] = self._make_targets(width, height)
        return self._targets[key]

    def _drop_targets(self, key: tuple[int, int]) -> None:
        old = self._targets.pop(key)
        for thing in (old.many, old.color, old.label, old.glass, old.shade):
            for attachment in thing.color_attachments:
                attachment.release()
            thing.release()
        for name in old.depth_names:
            self.device.delete_texture(name)

    def _make_targets(self, width: int, height: int) -> _Targets:
        ctx, device, size = self.ctx, self.device, (width, height)
        samples = self.samples if self.samples > 1 else 0

        def with_depth(color: Any, depth: int) -> Any:
            target = ctx.framebuffer([color])
            device.glNamedFramebufferTexture(target.glo, gl.DEPTH_ATTACHMENT, depth, 0)
            target.depth_mask = True  # moderngl takes a target made without depth for read-only
            return target

        many_depth = device.depth_texture(width, height, samples)
        label_depth = device.depth_texture(width, height)
        label_texture = ctx.texture(size, 4, dtype="i2")
        label_texture.filter = (ctx.NEAREST, ctx.NEAREST)
        many_color = ctx.texture(size, 4, samples=samples)
        many = with_depth(many_color, many_depth)
        return _Targets(
            width,
            height,
            many,
            ctx.framebuffer([ctx.texture(size, 4)]),
            with_depth(label_texture, label_depth),
            label_texture,
            ctx.external_texture(label_depth, size, 1, 0, "f4"),
            with_depth(ctx.texture(size, 1, dtype="u2"), label_depth),
            ctx.framebuffer([ctx.texture(size, 1, dtype="u2")]),
            (many_depth, label_depth),
        )

    # --- data of one drawing ---

    def write_pieces(self, instant: _Instant) -> None:
        record = self.pieces.record.copy()
        matrix = np.empty((len(record), 3, 4))
        matrix[:, :, :3] = instant.rotation * self.pieces.scale[:, None, None]
        matrix[:, :, 3] = instant.centre - instant.anchor
        record[:, :12] = matrix.reshape(-1, 12)
        if len(record):
            self.records.write(record.tobytes())
        self.records.bind_to_storage_buffer(1)

    def write_frames(self, frames: list[F4]) -> None:
        data = np.stack(frames).tobytes()
        if self.frames.size < len(data):
            self.frames.orphan(len(data))
        self.frames.write(data)

    def use_frame(self, index: int) -> None:
        self.frames.bind_to_uniform_block(0, offset=index * _FRAME_BYTES, size=_FRAME_BYTES)

    def _draw_meshes(self, array: Any, chosen: I8, slots: I8) -> None:
        """Draw pieces with the meshes of ``slots``, all in one call; equal meshes are instanced."""
        if not len(chosen):
            return
        order = np.argsort(slots, kind="stable")
        chosen, slots = chosen[order], slots[order]
        start = np.flatnonzero(np.concatenate([[True], slots[1:] != slots[:-1]]))
        number = np.diff(np.concatenate([start, [len(slots)]]))
        mesh = self.pieces.slots[slots[start]]
        command = np.stack([mesh[:, 0], number, mesh[:, 1], mesh[:, 2], start], axis=1)
        self.chosen.write(chosen.astype(np.uint32).tobytes())
        self.commands.write(command.astype(np.uint32).tobytes())
        array.render_indirect(self.commands, mode=self.ctx.TRIANGLES, count=len(command))

    def _draw_balls(self, array: Any, chosen: I8) -> None:
        if not len(chosen):
            return
        self.chosen.write(chosen.astype(np.uint32).tobytes())
        array.render(mode=self.ctx.TRIANGLE_STRIP, vertices=4, instances=len(chosen))

    def _slots(self, instant: _Instant, view: View, chosen: I8, *, error_px: float) -> I8:
        """The coarsest mesh of each chosen piece that departs from the finest by ``error_px``."""
        pieces = self.pieces
        away = np.linalg.norm(instant.centre[chosen] - view.eye, axis=1)
        nearest = np.maximum(away - pieces.radius[chosen], view.near)
        pixel = nearest * 2 * view.tangents[1] / view.height
        good = pieces.departure[chosen] <= error_px * pixel[:, None]
        return np.take_along_axis(pieces.coarse[chosen], good.argmax(axis=1)[:, None], axis=1)[:, 0]

    def _state(self, *, depth: str | None, front: str, clip: bool, cull: str = "back") -> None:
        """Fixed-function state of a pass; everything that a pass relies on is set here."""
        ctx, device = self.ctx, self.device
        ctx.enable_only(ctx.CULL_FACE | (ctx.DEPTH_TEST if depth else 0))
        if depth:
            ctx.depth_func = depth
        ctx.front_face = front
        ctx.cull_face = cull
        device.glClipControl(gl.LOWER_LEFT, gl.ZERO_TO_ONE)
        device.glEnable(gl.DEPTH_CLAMP)
        (device.glEnable if clip else device.glDisable)(gl.CLIP_DISTANCE0)

    # --- passes ---

    def draw_shadow(self, target: Any, chosen: I8, ids: bool) -> None:
        """Back faces as the sun sees them: no lit surface then shadows itself."""
        framebuffer, _, _ = target
        framebuffer.use()
        self._state(depth="<=", front="ccw", clip=False, cull="front")
        self.device.clear_depth(framebuffer, 1.0)
        if ids:
            self.device.clear_ids(framebuffer)
        pieces = self.pieces
        balls = pieces.ball[chosen]
        meshes = chosen[~balls]
        self._draw_meshes(
            self.program("mesh_shadow_id" if ids else "mesh_shadow").array,
            meshes,
            pieces.slot[meshes],
        )
        self.ctx.disable(self.ctx.CULL_FACE)
        self._draw_balls(
            self.program("ball_shadow_id" if ids else "ball_shadow").array, chosen[balls]
        )

    def draw_ground(self, chosen: I8) -> None:
        """The light that bodies leave to the ground: the product over all of them."""
        ctx = self.ctx
        self.ground_target.use()
        self.ground_target.clear(1.0, 1.0, 1.0, 1.0)
        ctx.enable_only(ctx.BLEND)
        self.device.glBlendFunc(gl.ZERO, gl.SRC_COLOR)
        self._draw_balls(self.program("ground").array, chosen)
        ctx.disable(ctx.BLEND)

    def write_shadow_mask(self, instant: _Instant, chosen: I8) -> None:
        """Mark the cells of the sun's view that any caster may darken."""
        n = self.shadow_mask.width
        rows = instant.sun.rows[:2]
        middle = instant.centre[chosen] @ rows[:, :3].T + rows[:, 3]
        axes = np.einsum("kj,pji->pki", rows[:, :3], instant.rotation[chosen])
        reach = np.einsum("pki,pi->pk", np.abs(axes), self.pieces.half[chosen])
        pad = 8.0 / self.shadow_size
        low = np.clip(np.floor((middle - reach - pad) * n), 0, n).astype(int)
        high = np.clip(np.ceil((middle + reach + pad) * n), 0, n).astype(int)
        mask = np.zeros((n, n), np.uint8)
        for (x0, y0), (x1, y1) in zip(low, high, strict=True):
            mask[y0:y1, x0:x1] = 1
        self.shadow_mask.write(mask.tobytes())

    def cube_of(self, instant: _Instant, piece: int) -> _Cube:
        """The cube map of a chrome piece: as fine as its size in the picture asks for."""
        camera = instant.camera
        centre = instant.centre[piece]
        radius = float(self.pieces.radius[piece])
        away = float(np.linalg.norm(centre - camera.eye))
        size_px = radius / max(away - radius, 0.1 * radius) * camera.height / camera.tangents[1] / 2
        size = 64 if size_px < 45 else 128 if size_px < 130 else 256
        key = (piece, size)
        if key not in self._cubes:
            texture = self._keep(self.ctx.texture_cube((size, size), 4))
            texture.filter = (self.ctx.LINEAR_MIPMAP_LINEAR, self.ctx.LINEAR)
            texture.build_mipmaps()
            faces = []
            depth = self._keep(self.ctx.depth_renderbuffer((size, size)))
            blank = self._keep(self.ctx.texture((size, size), 4))
            for face in range(6):
                target = self._keep(self.ctx.framebuffer([blank], depth))
                self.device.glNamedFramebufferTextureLayer(
                    target.glo, gl.COLOR_ATTACHMENT0, texture.glo, 0, face
                )
                faces.append(target)
            self._cubes[key] = (texture, tuple(faces), 0)
        texture, targets, _ = self._cubes[key]
        views = cube_views(centre, size, max(0.02, 0.5 * radius), camera.far)
        return _Cube(piece, size, centre, views, 4 * radius, texture, targets)

    def draw_cube(self, cube: _Cube, instant: _Instant, others: NDArray[Any], frame: int) -> None:
        """What surrounds a chrome piece; other chrome shows there as the sky's plain mirror."""
        pieces = self.pieces
        solid = others & (pieces.kind != GLASS)
        self._bind_light()
        for name in ("mesh_cube", "ball_cube"):
            self.program(name).program["cube_reach"].value = cube.reach
        for face in range(6):
            view = cube.views[face]
            self.use_frame(frame + face)
            target = cube.faces[face]
            target.use()
            self._state(depth=">=", front="ccw", clip=True)
            self.device.clear_depth(target, 0.0)
            chosen = np.flatnonzero(solid & view.sees(instant.centre, pieces.radius))
            self._draw_surfaces("cube", instant, view, chosen, error_px=0.5)
            self.ctx.disable(self.ctx.CULL_FACE)
            self.program("sky_cube").array.render(mode=self.ctx.TRIANGLES, vertices=3)
        cube.texture.build_mipmaps()

    def _draw_surfaces(
        self, kind: str, instant: _Instant, view: View, chosen: I8, *, error_px: float
    ) -> None:
        """Balls as exact discs, everything else as meshes."""
        balls = self.pieces.ball[chosen]
        meshes = chosen[~balls]
        if len(meshes) < len(chosen):
            self.ctx.disable(self.ctx.CULL_FACE)
            self._draw_balls(self.program(f"ball_{kind}").array, chosen[balls])
            self.ctx.enable(self.ctx.CULL_FACE)
        if len(meshes):
            slots = self._slots(instant, view, meshes, error_px=error_px)
            self._draw_meshes(self.program(f"mesh_{kind}").array, meshes, slots)

    def _bind_light(self) -> None:
        self.textures.use(0)
        self.shadow[1].use(1)
        self.clouds.use(2)
        self.ground_map.use(4)
        self.shadow_mask.use(5)

    def draw_color(
        self,
        targets: _Targets,
        instant: _Instant,
        visible: NDArray[Any],
        mirrors: I8,
        cubes: list[_Cube],
    ) -> None:
        """The picture, and its samples resolved."""
        ctx, pieces, camera = self.ctx, self.pieces, instant.camera
        self._bind_light()
        targets.many.use()
        self._state(depth=">=", front="cw", clip=True)
        self.device.clear_depth(targets.many, 0.0)
        opaque = np.flatnonzero(visible & (pieces.kind == OPAQUE))
        matte = pieces.record[opaque, 15] >= MATTE_ROUGHNESS
        floor = opaque == pieces.floor
        # The floor last: what stands on it has filled the depth by then.
        for kind, which in (
            ("glossy", ~matte & ~floor),
            ("matte", matte & ~floor),
            ("glossy", ~matte & floor),
            ("matte", matte & floor),
        ):
            self._draw_surfaces(kind, instant, camera, opaque[which], error_px=0.25)
        for piece, cube in zip(mirrors, cubes, strict=True):
            cube.texture.use(3)
            name = "ball_mirror" if pieces.ball[piece] else "mesh_mirror"
            program = self.program(name).program
            program["cube_reach"].value = cube.reach
            program["cube_center"].value = (
                *(cube.centre - instant.anchor),
                math.log2(cube.size) - 1,
            )
            self._draw_surfaces("mirror", instant, camera, np.array([piece]), error_px=0.1)
        ctx.disable(ctx.CULL_FACE)
        self._draw_sky(instant)
        glass = np.flatnonzero(visible & (pieces.kind == GLASS))
        if len(glass):
            ctx.enable(ctx.CULL_FACE | ctx.BLEND)
            self.device.glBlendFunc(gl.ONE, gl.SRC1_COLOR)
            targets.many.depth_mask = False
            targets.many.use()
            away = np.linalg.norm(instant.centre[glass] - camera.eye, axis=1)
            for piece in glass[np.argsort(-away, kind="stable")]:
                self._draw_surfaces("glass", instant, camera, np.array([piece]), error_px=0.25)
            targets.many.depth_mask = True
            ctx.disable(ctx.BLEND)
        w, h = targets.width, targets.height
        self.device.glBlitNamedFramebuffer(
            targets.many.glo, targets.color.glo, 0, 0, w, h, 0, 0, w, h,
            gl.COLOR_BUFFER_BIT, gl.NEAREST,
        )  # fmt: skip

    def _draw_sky(self, instant: _Instant) -> None:
        """The sky, in the rows that the floor does not fill from edge to edge."""
        rows = instant.sky_rows
        if rows:
            self.ctx.scissor = (0, 0, instant.camera.width, rows)
            self.program("sky").array.render(mode=self.ctx.TRIANGLES, vertices=3)
            self.ctx.scissor = None

    def read_color(self, targets: _Targets) -> NDArray[np.uint8]:
        out = np.empty((targets.height, targets.width, 3), np.uint8)
        targets.color.read_into(out, components=3, alignment=1)
        return out

    def draw_labels(self, targets: _Targets, instant: _Instant, visible: NDArray[Any]) -> None:
        """Ids, normals and depth of the nearest opaque surface at each pixel's centre."""
        pieces, target = self.pieces, targets.label
        target.use()
        self._state(depth=">=", front="cw", clip=True)
        self.device.clear_depth(target, 0.0)
        self.device.clear_labels(target)
        chosen = np.flatnonzero(visible & (pieces.kind != GLASS))
        self._draw_label_pieces(chosen)

    def _draw_label_pieces(self, chosen: I8, *, glass: bool = False) -> None:
        pieces = self.pieces
        balls = pieces.ball[chosen]
        meshes = chosen[~balls]
        self.ctx.disable(self.ctx.CULL_FACE)
        self._draw_balls(
            self.program("ball_glass_id" if glass else "ball_label").array, chosen[balls]
        )
        self.ctx.enable(self.ctx.CULL_FACE)
        self._draw_meshes(
            self.program("mesh_glass_id" if glass else "mesh_label").array,
            meshes,
            pieces.slot[meshes],
        )

    def read_labels(
        self, targets: _Targets, layers: tuple[str, ...], near: float
    ) -> dict[str, NDArray[Any]]:
        import cv2

        h, w = targets.height, targets.width
        out: dict[str, NDArray[Any]] = {}
        if "ids" in layers or "normals" in layers:
            code = np.empty((h, w, 4), np.int16)
            targets.label.read_into(code, components=4, dtype="i2")
            if "ids" in layers:
                out["ids"] = code[..., 3].view(np.uint16).copy()
            if "normals" in layers:
                packed = np.empty((h, w, 3), np.int16)
                cv2.mixChannels([code], [packed], [0, 0, 1, 1, 2, 2])
                out["normals"] = np.multiply(packed, np.float32(1 / 32767), dtype=np.float32)
        if "depth" in layers:
            depth = np.empty((h, w), np.float32)
            targets.label.read_into(depth, attachment=-1, components=1, dtype="f4")
            with np.errstate(divide="ignore"):
                out["depth"] = np.divide(np.float32(near), depth, out=depth)
        return out

    def draw_shade_ids(self, targets: _Targets) -> NDArray[np.uint16]:
        targets.shade.use()
        self.ctx.enable_only(0)
        _, depth, code = self.shadow_ids
        targets.label_depth.use(0)
        targets.label_texture.use(1)
        depth.use(2)
        code.use(3)
        self.program("shade_ids").array.render(mode=self.ctx.TRIANGLES, vertices=3)
        out = np.empty((targets.height, targets.width), np.uint16)
        targets.shade.read_into(out, components=1, dtype="u2", alignment=1)
        return out

    def draw_glass_ids(
        self, targets: _Targets, instant: _Instant, visible: NDArray[Any]
    ) -> NDArray[np.uint16]:
        # Against the opaque depth, which the glass then overwrites: nobody reads it afterwards.
        targets.glass.use()
        self._state(depth=">=", front="cw", clip=True)
        self.device.clear_ids(targets.glass)
        self._draw_label_pieces(np.flatnonzero(visible & (self.pieces.kind == GLASS)), glass=True)
        out = np.empty((targets.height, targets.width), np.uint16)
        targets.glass.read_into(out, components=1, dtype="u2", alignment=1)
        return out


def _source(name: str) -> str:
    file = name if "." in name else f"{name}.glsl"
    return (files("wmeval.sim.render") / "shaders" / file).read_text()


def _texture_array(ctx: Any, textures: tuple[Texture, ...], size: int) -> Any:
    """All textures as layers; texels hold the square root of linear light."""
    table = np.rint(255 * np.sqrt(decode_srgb(np.arange(256, dtype=np.uint8)))).astype(np.uint8)
    count = max(1, len(textures))
    data = np.full((count, size, size, 4), 255, np.uint8)
    for layer, texture in enumerate(textures):
        data[layer, ..., :3] = table[bake(texture, size)]
    array = ctx.texture_array((size, size, count), 4, data.tobytes())
    array.build_mipmaps()
    array.filter = (ctx.LINEAR_MIPMAP_LINEAR, ctx.LINEAR)
    return array

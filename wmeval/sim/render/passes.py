"""The GPU's side of the raster renderer: buffers, programs, and one method per pass.

Nothing here remembers a picture: every pass draws what it is told, inside the rectangles it is
given. What is drawn inside a rectangle does not depend on the rectangle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.panorama import bake_panorama
from wmeval.errors import UserError
from wmeval.scene import Scene, Texture
from wmeval.sim.render import gl
from wmeval.sim.render.bending import Bend
from wmeval.sim.render.cells import Layout, Rect, intersection, outside
from wmeval.sim.render.clouds import cloud_layer
from wmeval.sim.render.dirty import corners, touching
from wmeval.sim.render.pieces import (
    FOCUS_EDGES,
    GLASS,
    OPAQUE,
    RECORD,
    Holding,
    Pieces,
    SunView,
    View,
    cube_views,
)
from wmeval.sim.render.pool import TexturePool
from wmeval.sim.render.vessel import distance_map, uniforms

if TYPE_CHECKING:
    from wmeval.sim.render.gl import Device

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Mask = NDArray[np.bool_]

MATTE_ROUGHNESS = 0.7
"""From here on a surface shows no highlight and no reflection (and is drawn without them)."""

ERROR_PX = 0.25
"""By how much [px] a mesh may depart from the finest one in the colours."""

BODIES_COST_PX = 8000
"""What another rectangle of bodies costs, in pixels."""

MASK_SIZE = 256
"""Cells along a side of the mask that tells where shadows may fall (as in ``light.glsl``)."""

MENISCUS_M = 0.0011
"""Half width of the bright line where liquid meets glass [m]."""

GROUND_SIZE = 1024
"""Texels along a side of the map of light that bodies take from the ground."""
FRAME_BYTES = 512
"""Room for one `Frame` block; a multiple of every driver's alignment of uniform blocks."""
_LIGHT = ("frame", "sky", "light", "film")
_MESH = (*_LIGHT, "mesh_surface", "openness")
_FLOOR = (*_LIGHT, "floor_surface", "openness")
_BALL = (*_LIGHT, "ball_surface", "openness")
_PROGRAMS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    # name: (geometry, vertex shader, fragment shader's parts, defines)
    "mesh_glossy": ("mesh", "surface.vert", (*_MESH, "opaque.frag"), ()),
    "ball_glossy": ("ball", "ball.vert", (*_BALL, "opaque.frag"), ()),
    "mesh_matte": ("mesh", "surface.vert", (*_MESH, "opaque.frag"), ("MATTE",)),
    "ball_matte": ("ball", "ball.vert", (*_BALL, "opaque.frag"), ("MATTE",)),
    # Convex pieces that nothing else can shade.
    "mesh_glossy_lit": ("mesh", "surface.vert", (*_MESH, "opaque.frag"), ("LIT",)),
    "ball_glossy_lit": ("ball", "ball.vert", (*_BALL, "opaque.frag"), ("LIT",)),
    "mesh_matte_lit": ("mesh", "surface.vert", (*_MESH, "opaque.frag"), ("MATTE", "LIT")),
    "ball_matte_lit": ("ball", "ball.vert", (*_BALL, "opaque.frag"), ("MATTE", "LIT")),
    # The floor's top; "plain" where neither a shadow nor a body's darkness can reach it.
    "floor_glossy": ("floor", "floor.vert", (*_FLOOR, "opaque.frag"), ()),
    "floor_matte": ("floor", "floor.vert", (*_FLOOR, "opaque.frag"), ("MATTE",)),
    "floor_glossy_plain": ("floor", "floor.vert", (*_FLOOR, "opaque.frag"), ("PLAIN",)),
    "floor_matte_plain": ("floor", "floor.vert", (*_FLOOR, "opaque.frag"), ("MATTE", "PLAIN")),
    "mesh_cube": ("mesh", "surface.vert", (*_MESH, "opaque.frag"), ("CUBE",)),
    "ball_cube": ("ball", "ball.vert", (*_BALL, "opaque.frag"), ("CUBE",)),
    "mesh_mirror": ("mesh", "surface.vert", (*_MESH, "mirror.frag"), ("MIRROR",)),
    "ball_mirror": ("ball", "ball.vert", (*_BALL, "mirror.frag"), ()),
    "mesh_glass": ("mesh", "surface.vert", (*_MESH, "glass.frag"), ()),
    "ball_glass": ("ball", "ball.vert", (*_BALL, "glass.frag"), ()),
    "mesh_vessel": ("mesh", "surface.vert", ("piece", *_MESH, "vessel.frag"), ()),
    "mesh_label": ("mesh", "label.vert", ("frame", "label.frag"), ()),
    "ball_label": ("ball", "ball.vert", ("frame", "label_ball.frag"), ()),
    "floor_label": ("floor", "floor.vert", ("frame", "label_floor.frag"), ()),
    "mesh_glass_id": ("mesh", "label.vert", ("frame", "label.frag"), ("IDS",)),
    "ball_glass_id": ("ball", "ball.vert", ("frame", "label_ball.frag"), ("IDS",)),
    "mesh_shadow": ("mesh", "shadow.vert", ("shadow.frag",), ()),
    "ball_shadow": ("ball", "shadow_ball.vert", ("shadow_ball.frag",), ()),
    "mesh_shadow_id": ("mesh", "shadow.vert", ("shadow.frag",), ("IDS",)),
    "ball_shadow_id": ("ball", "shadow_ball.vert", ("shadow_ball.frag",), ("IDS",)),
    "ground": ("ball", "ground.vert", ("frame", "piece", "ground.frag"), ()),
    "sky": ("screen", "", ("frame", "sky", "film", "sky.frag"), ()),
    "sky_cube": ("screen", "", ("frame", "sky", "film", "sky.frag"), ("CUBE",)),
    "resolve": ("screen", "", ("resolve.frag",), ()),
    "shade_ids": ("screen", "", ("frame", "shade_ids.frag"), ()),
}
"""One program per kind of surface and pass: a single one with branches costs a third more."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Pictures of one size on the GPU."""

    width: int
    height: int
    many: Any
    many_color: Any
    color: Any
    label: Any
    label_texture: Any
    label_depth: Any
    glass: Any
    shade: Any
    depth_names: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Instant:
    """One state laid out for drawing.

    Attributes:
        camera: view of the picture.
        anchor: (3,) [m] world point that the GPU's positions are relative to.
        rotation: (P, 3, 3) of the pieces.
        centre: (P, 3) of the pieces [m].
        drawn: (P,) pieces that are in the world.
        seen: (P,) those of them that the camera may see itself.
        sun: its view; the zenith's at night, when nothing casts a shadow.
        fine: its finer view of the scene's focus, where there is one.
        to_sun: (3,) unit, also below the horizon.
        sun_color: (3,) linear, as the state has it.
        daylight: share of it that lights the world: 0 from the horizon down.
        sky: (3, 3) zenith, horizon, ground, linear.
        modal: (P, K) modal state, or mark of the vertices, that a piece follows; (P, 0) where none
            does.
        layout: how the cells of the picture are drawn.
        lit: (P,) pieces whose sunny side no piece can shade.
        vertices: (V, 3) [m] of what bends, by name; its pieces' ``modal`` tells one from another.
    """

    camera: View
    anchor: F8
    rotation: F8
    centre: F8
    drawn: Mask
    seen: Mask
    sun: SunView
    to_sun: F8
    sun_color: F8
    daylight: float
    sky: F8
    modal: F8
    lit: Mask
    layout: Layout
    fine: SunView | None = None
    vertices: Mapping[str, F8] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Scope:
    """What a pass draws: rectangles, and the pieces in each.

    Attributes:
        rects: parts of the picture.
        visible: (P,) pieces in view.
        bounds: (P, 4) their outlines' bounds [px].
        covered: rectangle that shows the floor's top and nothing behind it, or None.
    """

    rects: list[Rect]
    visible: Mask
    bounds: F8
    covered: Rect | None

    def inside(self, rect: Rect) -> Mask:
        """Pieces that reach into a rectangle."""
        return self.visible & touching(self.bounds, rect)


@dataclass(frozen=True, eq=False)
class Canvas:
    """What the colour pass draws.

    Attributes:
        layout: how.
        todo: cells to be drawn; the others keep their colours.
        pieces: indices of the pieces that reach into ``todo``; without the floor where it is drawn
            as a plane.
        bounds: (P, 4) outlines' bounds [px] of all pieces.
    """

    layout: Layout
    todo: Mask
    pieces: I8
    bounds: F8


@dataclass(frozen=True, eq=False)
class _Program:
    """A program with the vertex array that feeds it."""

    program: Any
    array: Any


@dataclass(frozen=True, eq=False)
class Cube:
    """Surroundings of one chrome piece."""

    piece: int
    size: int
    centre: F8
    views: tuple[View, ...]
    reach: float
    texture: Any
    faces: tuple[Any, ...]


@dataclass(eq=False)
class _SunMap:
    """One of the sun's maps: a square of the texture that holds them side by side.

    Attributes:
        left: its first column [texels].
        poses: of all pieces when it was drawn last.
        key: of the copy of what stands still; none where there is no copy.
        still: (P,) pieces in the copy.
        touched: texels that the last picture's movers may have covered.
    """

    left: int
    poses: F8 | None = None
    key: bytes = b""
    still: Mask = field(default_factory=lambda: np.zeros(0, bool))
    touched: Rect | None = None


class Passes:
    """Buffers, programs and passes of one scene in the shared context."""

    def __init__(
        self,
        device: Device,
        scene: Scene,
        pieces: Pieces,
        samples: int,
        shadow_size: int,
        texture_size: int,
        bends: tuple[Bend, ...] = (),
    ) -> None:
        self.device, self.ctx, self.pieces, self.bends = device, device.ctx, pieces, bends
        ctx = self.ctx
        if samples > ctx.max_samples:
            raise UserError(f"this driver has {ctx.max_samples} samples a pixel, not {samples}")
        self.samples = samples
        self._held: list[Any] = []
        self._sizes: dict[tuple[int, int], Targets] = {}
        self._cubes: dict[tuple[int, int], tuple[Any, tuple[Any, ...], int]] = {}
        keep = self._keep
        self.vertices = keep(ctx.buffer(np.ascontiguousarray(pieces.vertices).tobytes()))
        self.triangles = keep(ctx.buffer(np.ascontiguousarray(pieces.triangles).tobytes()))
        count = max(1, len(pieces))
        self.records = keep(ctx.buffer(reserve=count * 4 * RECORD))
        self.frames = keep(ctx.buffer(reserve=FRAME_BYTES))
        self.chosen = keep(ctx.buffer(reserve=count * 4))
        self.commands = keep(ctx.buffer(reserve=count * 20))
        if texture_size not in device.pools:
            device.pools[texture_size] = TexturePool(device, texture_size)
        self.textures = device.pools[texture_size]
        layers = np.array(self.textures.hold(pieces.textures), np.float32)
        self._textures_held = True
        self._record = pieces.record.copy()
        if len(layers):
            self._record[:, 12] = layers[pieces.record[:, 12].astype(np.int64)]
        self.clouds = keep(ctx.texture((512, 512), 2, cloud_layer(512).tobytes()))
        self.clouds.build_mipmaps()
        self.clouds.filter = (ctx.LINEAR_MIPMAP_LINEAR, ctx.LINEAR)
        self._repeat = 1.0
        self._panorama = self._make_panorama(scene.sky.panorama)
        self._vessel_maps: dict[int, tuple[Any, tuple[float, float, float]]] = {}
        self._bent: dict[int, bytes] = {}
        self.shadow_size = shadow_size
        self._focus = scene.sun.focus is not None
        maps = 1 + self._focus
        self._sun_maps = tuple(_SunMap(k * shadow_size) for k in range(maps))
        self.shadow = self._shadow_target(shadow_size, ids=False, maps=maps)
        self.ground_map = keep(ctx.texture((GROUND_SIZE, GROUND_SIZE), 1))
        self.ground_map.repeat_x = self.ground_map.repeat_y = False
        self.ground_target = keep(ctx.framebuffer([self.ground_map]))
        self.shadow_mask = keep(ctx.texture((maps * MASK_SIZE, MASK_SIZE), 1, dtype="u1"))
        self.shadow_mask.filter = (ctx.NEAREST, ctx.NEAREST)
        self._shadow_ids: Any = None
        self._shadow_of_one: Any = None
        self._still: Any = None
        self._programs: dict[str, _Program] = {}
        self._work: dict[str, NDArray[np.int16]] = {}

    def _make_panorama(self, texture: Texture | None) -> Any:
        if texture is None:
            return None
        picture = bake_panorama(texture)
        self._repeat = round(texture.repeat)
        made = self._keep(self.ctx.texture(picture.shape[1::-1], 4, picture.tobytes()))
        made.build_mipmaps()
        made.filter = (self.ctx.LINEAR_MIPMAP_LINEAR, self.ctx.LINEAR)
        made.repeat_y = False
        return made

    def _keep(self, thing: Any) -> Any:
        self._held.append(thing)
        return thing

    def release(self) -> None:
        """Free everything but the programs, which belong to the process."""
        for thing in reversed(self._held):
            thing.release()
        if self._textures_held:
            self.textures.leave(self.pieces.textures)
            self._textures_held = False
        for key in list(self._sizes):
            self._drop_targets(key)
        self._held.clear()
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
            elif kind == "floor":
                made = self._screen_program(("frame", "piece", vertex), fragment, *defines)
            else:
                made = self._screen_program(("sky.vert",), fragment, *defines)
            self._programs[name] = made
        return self._programs[name]

    def _compile(
        self, vertex: tuple[str, ...], fragment: tuple[str, ...], defines: tuple[str, ...]
    ) -> Any:
        if self._panorama is not None and "sky" in fragment:
            defines = (*defines, f"PANORAMA {self._repeat:.1f}")
        if self._focus and "light" in fragment:
            start, end = FOCUS_EDGES
            defines = (*defines, f"FOCUS {start}", f"FOCUS_EDGE {end}")
        if self.samples > 1 and "CUBE" not in defines:
            defines = (*defines, f"SAMPLES {self.samples}")
        head = "#version 450 core\n" + "".join(f"#define {name}\n" for name in defines)
        key = (self.samples, vertex, fragment, defines)
        if key in self.device.programs:
            return self.device.programs[key]
        program = self.ctx.program(
            vertex_shader=head + "".join(_source(n) for n in vertex),
            fragment_shader=head + "".join(_source(n) for n in fragment),
        )
        self.device.programs[key] = program
        for unit, name in enumerate(
            (
                "textures",
                "shadow_map",
                "clouds",
                "surroundings",
                "ground_map",
                "shadow_mask",
                "vessel_map",
                "panorama",
            )
        ):
            if name in program:
                program[name].value = unit
        if "samples" in program:
            program["samples"].value = 0
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

    def _screen_program(
        self, vertex: tuple[str, ...], fragment: tuple[str, ...], *defines: str
    ) -> _Program:
        program = self._compile(vertex, fragment, defines)
        return _Program(program, self._keep(self.ctx.vertex_array(program, [])))

    def _shadow_target(self, size: int, *, ids: bool, maps: int = 1) -> Any:
        ctx = self.ctx
        depth = self._keep(ctx.depth_texture((maps * size, size)))
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
        """The finer shadow map that holds ids; made on first use."""
        if self._shadow_ids is None:
            self._shadow_ids = self._shadow_target(2 * self.shadow_size, ids=True)
        return self._shadow_ids

    @property
    def shadow_of_one(self) -> Any:
        """A shadow map with ids for one body at a time; made on first use."""
        if self._shadow_of_one is None:
            self._shadow_of_one = self._shadow_target(self.shadow_size, ids=True)
        return self._shadow_of_one

    def targets(self, width: int, height: int) -> Targets:
        """Pictures of a size; the last four sizes are kept."""
        key = (width, height)
        if key not in self._sizes:
            if len(self._sizes) >= 4:
                self._drop_targets(next(iter(self._sizes)))
            self._sizes[key] = self._make_targets(width, height)
        return self._sizes[key]

    def _drop_targets(self, key: tuple[int, int]) -> None:
        old = self._sizes.pop(key)
        for thing in (old.many, old.color, old.label, old.glass, old.shade):
            for attachment in thing.color_attachments:
                attachment.release()
            thing.release()
        for name in old.depth_names:
            self.device.delete_texture(name)

    def _make_targets(self, width: int, height: int) -> Targets:
        ctx, device, size = self.ctx, self.device, (width, height)
        samples = self.samples if self.samples > 1 else 0

        def with_depth(color: Any, depth: int) -> Any:
            target = ctx.framebuffer([color])
            device.glNamedFramebufferTexture(target.glo, gl.DEPTH_ATTACHMENT, depth, 0)
            target.depth_mask = True  # moderngl takes a target made without depth for read-only
            return target

        many_depth = device.depth_texture(width, height, samples)
        label_depth = device.depth_texture(width, height)
        glass_depth = device.depth_texture(width, height)
        label_texture = ctx.texture(size, 4, dtype="i2")
        label_texture.filter = (ctx.NEAREST, ctx.NEAREST)
        many_color = ctx.texture(size, 4, samples=samples)
        if not samples:
            many_color.filter = (ctx.NEAREST, ctx.NEAREST)
        many = with_depth(many_color, many_depth)
        return Targets(
            width,
            height,
            many,
            many_color,
            ctx.framebuffer([ctx.texture(size, 4)]),
            with_depth(label_texture, label_depth),
            label_texture,
            ctx.external_texture(label_depth, size, 1, 0, "f4"),
            with_depth(ctx.texture(size, 1, dtype="u2"), glass_depth),
            ctx.framebuffer([ctx.texture(size, 1, dtype="u2")]),
            (many_depth, label_depth, glass_depth),
        )

    # --- data of one drawing ---

    def write_pieces(self, instant: Instant) -> None:
        """Where the pieces are, and what deforms."""
        for bent in self.pieces.deforms:
            values = instant.modal[bent.piece, : bent.deformer.size]
            key = values.tobytes()
            if self._bent.get(bent.slot) != key:
                self._bent[bent.slot] = key
                mesh = bent.deformer.mesh(values)
                rows = np.concatenate([mesh.vertices, mesh.normals, mesh.uv], axis=1)
                start = int(self.pieces.slots[bent.slot, 2]) * 4 * rows.shape[1]
                self.vertices.write(np.ascontiguousarray(rows, np.float32).tobytes(), offset=start)
        for bend in self.bends:
            mark = instant.modal[bend.piece, :1].tobytes()
            if self._bent.get(bend.slot) != mark:
                self._bent[bend.slot] = mark
                first, end = bend.rows_in(self.pieces)
                uv = self.pieces.vertices[first:end, 6:]
                rows = bend.rows(instant.vertices[bend.name], uv)
                self.vertices.write(rows.tobytes(), offset=4 * first * rows.shape[1])
        record = self._record.copy()
        matrix = np.empty((len(record), 3, 4))
        matrix[:, :, :3] = instant.rotation * self.pieces.scale[:, None, None]
        matrix[:, :, 3] = instant.centre - instant.anchor
        record[:, :12] = matrix.reshape(-1, 12)
        if len(record):
            self.records.write(record.tobytes())
        self.records.bind_to_storage_buffer(1)

    def write_frames(self, frames: list[F4]) -> None:
        """`Frame` blocks of the views to come."""
        data = np.stack(frames).tobytes()
        if self.frames.size < len(data):
            self.frames.orphan(len(data))
        self.frames.write(data)

    def use_frame(self, index: int) -> None:
        """Draw through the view of one of them."""
        self.frames.bind_to_uniform_block(0, offset=index * FRAME_BYTES, size=FRAME_BYTES)

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

    def _slots(self, instant: Instant, view: View, chosen: I8, *, error_px: float) -> I8:
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

    def draw_sun(self, instant: Instant, chosen: I8, *, keep: bool, fine: bool = False) -> None:
        """A shadow map; with ``keep``, what has stood still is drawn once and copied.

        Only depths are drawn, and the least counts: the map is the same either way.

        Args:
            instant: what to draw.
            chosen: pieces that cast shadows.
            keep: a copy of what stands still.
            fine: the finer map of the focus; the frame in use then has its view.
        """
        own, sun = self._sun_maps[fine], instant.fine if fine else instant.sun
        assert sun is not None
        poses = np.concatenate(
            [instant.rotation.reshape(-1, 9), instant.centre, instant.modal], axis=1
        )
        before, own.poses = own.poses, poses
        casts = np.zeros(len(poses), bool)
        casts[chosen] = True
        steady = casts & (poses == before).all(axis=1) if before is not None else casts & False
        key = sun.rows.tobytes() + instant.anchor.tobytes()
        if not keep or steady.sum() < 8:
            own.key = b""
            self.draw_shadow(self.shadow, chosen, False, left=own.left)
            return
        if self._still is None:
            self._still = self._shadow_target(self.shadow_size, ids=False, maps=len(self._sun_maps))
        if key != own.key or (own.still & ~steady).any():
            self.draw_shadow(self._still, np.flatnonzero(steady), False, left=own.left)
            own.key, own.still = key, steady
            own.touched = (0, 0, self.shadow_size, self.shadow_size)
        if own.touched is not None:
            # What the last picture's movers covered shows the still ones again.
            x0, y0, x1, y1 = own.touched
            at = own.left + x0
            self.device.glCopyImageSubData(
                self._still[1].glo, gl.TEXTURE_2D, 0, at, y0, 0,
                self.shadow[1].glo, gl.TEXTURE_2D, 0, at, y0, 0, x1 - x0, y1 - y0, 1,
            )  # fmt: skip
        moving = np.flatnonzero(casts & ~own.still)
        own.touched = self._shadow_bounds(instant, sun, moving)
        self.draw_shadow(self.shadow, moving, False, clear=False, left=own.left)

    def _shadow_bounds(self, instant: Instant, sun: SunView, chosen: I8) -> Rect | None:
        """Texels of one of the sun's maps that some pieces may cover."""
        if not len(chosen):
            return None
        rows, size = sun.rows[:2], self.shadow_size
        middle = instant.centre[chosen] @ rows[:, :3].T + rows[:, 3]
        reach = (self.pieces.radius[chosen] / sun.span)[:, None]
        low = np.floor((middle - reach).min(axis=0) * size).clip(0, size) - 2
        high = np.ceil((middle + reach).max(axis=0) * size).clip(0, size) + 2
        x0, y0 = np.maximum(low, 0).astype(int).tolist()
        x1, y1 = np.minimum(high, size).astype(int).tolist()
        return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None

    def draw_shadow(
        self, target: Any, chosen: I8, ids: bool, *, clear: bool = True, left: int = 0
    ) -> None:
        """Back faces as the sun sees them: no lit surface then shadows itself.

        Args:
            target: with one map, or several side by side.
            chosen: pieces that cast shadows.
            ids: draw these, too.
            clear: first.
            left: first column of the map.
        """
        framebuffer, _, _ = target
        size = framebuffer.height
        framebuffer.viewport = square = (left, 0, size, size)
        framebuffer.use()
        self._state(depth="<=", front="ccw", clip=False, cull="front")
        if framebuffer.width > size:
            self.device.glEnable(gl.SCISSOR_TEST)
            self.device.glScissor(*square)
        if clear:
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
        self._scissor(None)

    def draw_ground(self, chosen: I8) -> None:
        """The light that bodies leave to the ground: the product over all of them."""
        ctx = self.ctx
        self.ground_target.use()
        self.ground_target.clear(1.0, 1.0, 1.0, 1.0)
        ctx.enable_only(ctx.BLEND)
        self.device.glBlendFunc(gl.ZERO, gl.SRC_COLOR)
        darkens = self.pieces.ball[chosen] | (self.pieces.darkens[chosen] > 0)
        self._draw_balls(self.program("ground").array, chosen[darkens])
        ctx.disable(ctx.BLEND)

    def write_shadow_mask(self, instant: Instant, chosen: I8, *, fine: bool = False) -> None:
        """Mark the cells of the sun's view, or its finer one, that any caster may darken."""
        import cv2

        n = MASK_SIZE
        sun = instant.fine if fine else instant.sun
        assert sun is not None
        pieces, rows = self.pieces, sun.rows[:2]
        pad = 8.0 / self.shadow_size
        balls = pieces.ball[chosen]
        mask = np.zeros((n, n), np.uint8)
        boxes = corners(pieces, instant.rotation, instant.centre, chosen[~balls], pad * sun.span)
        at = np.rint(((boxes @ rows[:, :3].T + rows[:, 3]) * n - 0.5) * 16)
        for hull in np.clip(at, -1e5, 1e5).astype(np.int32):
            cv2.fillConvexPoly(mask, cv2.convexHull(hull), (1,), shift=4)
        middle = (instant.centre[chosen[balls]] @ rows[:, :3].T + rows[:, 3]) * n - 0.5
        radius = (pieces.radius[chosen[balls]] / sun.span + pad) * n
        for (x, y), r in zip(
            np.rint(np.clip(middle, -n, 2 * n) * 16).astype(int).tolist(),
            np.ceil(np.minimum(radius, 4 * n) * 16).astype(int).tolist(),
            strict=True,
        ):
            cv2.circle(mask, (x, y), r, (1,), -1, shift=4)
        # What was drawn is right to a cell.
        cv2.dilate(mask, np.ones((3, 3), np.uint8), dst=mask)
        self.shadow_mask.write(mask.tobytes(), viewport=(n if fine else 0, 0, n, n))

    def cube_of(self, instant: Instant, piece: int) -> Cube:
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
        return Cube(piece, size, centre, views, 4 * radius, texture, targets)

    def draw_cube(self, cube: Cube, instant: Instant, others: NDArray[Any], frame: int) -> None:
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
        self, kind: str, instant: Instant, view: View, chosen: I8, *, error_px: float
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
        self.textures.bind(0)
        self.shadow[1].use(1)
        self.clouds.use(2)
        self.ground_map.use(4)
        self.shadow_mask.use(5)
        if self._panorama is not None:
            self._panorama.use(7)

    def draw_color(
        self, targets: Targets, instant: Instant, canvas: Canvas, mirrors: I8, cubes: list[Cube]
    ) -> None:
        """The cells to be drawn. Only where edges may show are there several samples a pixel."""
        ctx, layout, todo = self.ctx, canvas.layout, canvas.todo
        grid, many, covered, shaded = layout.grid, layout.many, layout.covered, layout.shaded
        mixed = ~(covered | layout.open)
        self._bind_light()
        floor = self._floor_kind()
        targets.color.use()
        ctx.enable_only(0)
        plain = todo & covered & ~many
        self._fill(f"{floor}_plain", grid.rects(plain & ~shaded))
        self._fill(floor, grid.rects(plain & shaded))
        self._fill("sky", grid.rects(todo & layout.open & ~many))
        edges = todo & many
        rects = grid.rects(edges)
        if not rects:
            self._scissor(None)
            return
        targets.many.use()
        # What lies behind everything comes first and needs no clearing of the depth.
        self._state(depth="1", front="cw", clip=False)
        ctx.disable(ctx.CULL_FACE)
        self._fill(floor, grid.rects(edges & covered))
        self._fill("sky", grid.rects(edges & ~covered))
        self._state(depth=">=", front="cw", clip=True)
        for rect in grid.rects(edges & mixed):
            self._scissor(rect)
            which = np.array([self.pieces.floor])
            kind = "matte" if self._matte(which)[0] else "glossy"
            self._draw_surfaces(kind, instant, instant.camera, which, error_px=ERROR_PX)
        self._draw_bodies(instant, canvas, rects, mirrors, cubes)
        targets.color.use()
        ctx.enable_only(0)
        targets.many_color.use(0)
        self._fill("resolve", rects)
        self._scissor(None)

    def _draw_bodies(
        self, instant: Instant, canvas: Canvas, rects: list[Rect], mirrors: I8, cubes: list[Cube]
    ) -> None:
        """Pieces over their background: opaque ones, chrome, then glass from far to near."""
        ctx, pieces, chosen = self.ctx, self.pieces, canvas.pieces
        opaque = pieces.kind[chosen] == OPAQUE
        parts = [around(rects)]
        if not canvas.todo.all():
            parts = canvas.layout.grid.blocks(canvas.todo & canvas.layout.many, BODIES_COST_PX)
        for rect in parts:
            self._scissor(rect)
            inside = touching(canvas.bounds[chosen], rect)
            some = chosen[inside & opaque]
            matte, lit = self._matte(some), instant.lit[some]
            for name, which in (
                ("glossy", ~matte & ~lit),
                ("glossy_lit", ~matte & lit),
                ("matte", matte & ~lit),
                ("matte_lit", matte & lit),
            ):
                self._draw_surfaces(name, instant, instant.camera, some[which], error_px=ERROR_PX)
            for piece, cube in zip(mirrors, cubes, strict=True):
                if piece in chosen[inside]:
                    self._draw_mirror(instant, piece, cube)
        # Once for each pixel, so in one rectangle around all.
        self._scissor(around(rects))
        glass = chosen[pieces.kind[chosen] == GLASS]
        if len(glass):
            ctx.enable(ctx.CULL_FACE | ctx.BLEND)
            self.device.glDepthMask(False)
            self.device.glBlendFunc(gl.ONE, gl.SRC1_COLOR)
            away = np.linalg.norm(instant.centre[glass] - instant.camera.eye, axis=1)
            holding = {v.piece: v for v in pieces.vessels}
            for piece in glass[np.argsort(-away, kind="stable")]:
                if piece in holding:
                    self._draw_vessel(instant, holding[piece])
                    continue
                self._draw_surfaces(
                    "glass", instant, instant.camera, np.array([piece]), error_px=ERROR_PX
                )
            self.device.glDepthMask(True)
            ctx.disable(ctx.BLEND)

    def _draw_vessel(self, instant: Instant, held: Holding) -> None:
        """Glass with liquid in it, traced pixel by pixel over what was there."""
        k, pieces = held.piece, self.pieces
        if k not in self._vessel_maps:
            data, grid = distance_map(held.vessel)
            size = data.shape[1::-1]
            made = self._keep(self.ctx.texture(size, 4, data.tobytes(), dtype="f4"))
            made.filter = (self.ctx.LINEAR, self.ctx.LINEAR)
            made.repeat_x = made.repeat_y = False
            self._vessel_maps[k] = (made, grid)
        texture, grid = self._vessel_maps[k]
        texture.use(6)
        program = self.program("mesh_vessel").program
        turn, origin = instant.rotation[k], instant.centre[k] - instant.anchor
        floor = pieces.floor
        values = uniforms(
            held.deformer, instant.modal[k, : held.deformer.size], held.tint, held.ior
        )
        for name, axis in zip(("body_x", "body_y", "body_z"), turn.T, strict=True):
            values[name] = (*axis.tolist(), -float(axis @ origin))
        values["vessel_grid"] = (*grid, MENISCUS_M)
        flat = floor >= 0 and bool(instant.drawn[floor])
        half = pieces.half[floor, :2].tolist() if flat else [0.0, 0.0]
        values["floor_half"] = (*half, 0.0, float(flat))
        for name, value in values.items():
            if name in program:
                program[name].value = value
        self._draw_surfaces("vessel", instant, instant.camera, np.array([k]), error_px=ERROR_PX)

    def _matte(self, chosen: I8) -> Mask:
        return np.asarray(self.pieces.record[chosen, 15] >= MATTE_ROUGHNESS)

    def _floor_kind(self) -> str:
        k = self.pieces.floor
        return "floor_matte" if k < 0 or self._matte(np.array([k]))[0] else "floor_glossy"

    def _fill(self, name: str, rects: list[Rect]) -> None:
        """Draw rectangles with a program that covers the whole picture."""
        for rect in rects:
            self._scissor(rect)
            self.program(name).array.render(mode=self.ctx.TRIANGLES, vertices=3)

    def _scissor(self, rect: Rect | None) -> None:
        """Limit what follows to a rectangle: raw calls, since there are many."""
        if rect is None:
            self.device.glDisable(gl.SCISSOR_TEST)
        else:
            self.device.glEnable(gl.SCISSOR_TEST)
            self.device.glScissor(*_scissor(rect))

    def _draw_mirror(self, instant: Instant, piece: int, cube: Cube) -> None:
        cube.texture.use(3)
        name = "ball_mirror" if self.pieces.ball[piece] else "mesh_mirror"
        program = self.program(name).program
        program["cube_reach"].value = cube.reach
        centre = cube.centre - instant.anchor
        program["cube_center"].value = (*centre, math.log2(cube.size) - 1)
        self._draw_surfaces("mirror", instant, instant.camera, np.array([piece]), error_px=0.1)

    def read_color(self, targets: Targets, rect: Rect) -> NDArray[np.uint8]:
        """Colours (h, w, 3) of a rectangle."""
        out = np.empty((rect[3] - rect[1], rect[2] - rect[0], 3), np.uint8)
        targets.color.read_into(out, viewport=_scissor(rect), components=3, alignment=1)
        return out

    def draw_labels(self, targets: Targets, scope: Scope) -> None:
        """Ids, normals and depth of the nearest opaque surface at each pixel's centre."""
        target, pieces = targets.label, self.pieces
        target.use()
        for rect in scope.rects:
            self._scissor(rect)
            inside = scope.inside(rect)
            covered = scope.covered and intersection(rect, scope.covered)
            if covered != rect:
                self.device.clear_depth(target, 0.0)
                self.device.clear_labels(target)
            if covered:
                # The floor fills this part: it is drawn as a plane, over whatever was there.
                self._state(depth="1", front="cw", clip=False)
                self.ctx.disable(self.ctx.CULL_FACE)
                self._fill("floor_label", [covered])
            self._state(depth=">=", front="cw", clip=True)
            if scope.covered:
                inside[pieces.floor] = False
                for part in outside(rect, covered):
                    self._scissor(part)
                    self._draw_label_pieces(np.array([pieces.floor]), "label")
                self._scissor(rect)
            self._draw_label_pieces(np.flatnonzero(inside & (pieces.kind != GLASS)), "label")
        self._scissor(None)

    def _draw_label_pieces(self, chosen: I8, what: str) -> None:
        pieces = self.pieces
        balls = pieces.ball[chosen]
        meshes = chosen[~balls]
        self.ctx.disable(self.ctx.CULL_FACE)
        self._draw_balls(self.program(f"ball_{what}").array, chosen[balls])
        self.ctx.enable(self.ctx.CULL_FACE)
        self._draw_meshes(self.program(f"mesh_{what}").array, meshes, pieces.slot[meshes])

    def read_labels(
        self, targets: Targets, rect: Rect, layers: tuple[str, ...], near: float
    ) -> dict[str, NDArray[Any]]:
        """Those of ids, normals and depth that are in ``layers``, of a rectangle."""
        import cv2

        h, w = rect[3] - rect[1], rect[2] - rect[0]
        out: dict[str, NDArray[Any]] = {}
        if "ids" in layers or "normals" in layers:
            code = self._scratch("code", (h, w, 4))
            targets.label.read_into(code, viewport=_scissor(rect), components=4, dtype="i2")
            if "ids" in layers:
                out["ids"] = code[..., 3].view(np.uint16).copy()
            if "normals" in layers:
                packed = self._scratch("packed", (h, w, 3))
                cv2.mixChannels([code], [packed], [0, 0, 1, 1, 2, 2])
                out["normals"] = np.multiply(packed, np.float32(1 / 32767), dtype=np.float32)
        if "depth" in layers:
            depth = np.empty((h, w), np.float32)
            targets.label.read_into(
                depth, viewport=_scissor(rect), attachment=-1, components=1, dtype="f4"
            )
            with np.errstate(divide="ignore"):
                out["depth"] = np.divide(np.float32(near), depth, out=depth)
        return out

    def _scratch(self, name: str, shape: tuple[int, ...]) -> NDArray[np.int16]:
        """A work array that is kept: fresh memory costs more than what is done with it."""
        size = math.prod(shape)
        held = self._work.get(name)
        if held is None or held.size < size:
            held = self._work[name] = np.empty(size, np.int16)
        return held[:size].reshape(shape)

    def draw_shade_ids(
        self, targets: Targets, shadow: Any, rect: Rect | None = None
    ) -> NDArray[np.uint16]:
        """Ids (h, w) of what keeps the sun off, from the labels just drawn.

        Args:
            targets: that hold the labels.
            shadow: map with ids.
            rect: part of the picture; None is all of it.
        """
        rect = rect or (0, 0, targets.width, targets.height)
        targets.shade.use()
        self.ctx.enable_only(0)
        self._scissor(rect)
        _, depth, code = shadow
        targets.label_depth.use(0)
        targets.label_texture.use(1)
        depth.use(2)
        code.use(3)
        self.program("shade_ids").array.render(mode=self.ctx.TRIANGLES, vertices=3)
        self._scissor(None)
        out = np.empty((rect[3] - rect[1], rect[2] - rect[0]), np.uint16)
        targets.shade.read_into(out, viewport=_scissor(rect), components=1, dtype="u2", alignment=1)
        return out

    def draw_glass_ids(self, targets: Targets, visible: Mask) -> NDArray[np.uint16]:
        """Ids (H, W) of the nearest glass before the labels just drawn."""
        # On a copy of the opaque depth, which stays as it is.
        self.device.glCopyImageSubData(
            targets.depth_names[1], gl.TEXTURE_2D, 0, 0, 0, 0,
            targets.depth_names[2], gl.TEXTURE_2D, 0, 0, 0, 0, targets.width, targets.height, 1,
        )  # fmt: skip
        targets.glass.use()
        self._state(depth=">=", front="cw", clip=True)
        self.device.clear_ids(targets.glass)
        self._draw_label_pieces(np.flatnonzero(visible & (self.pieces.kind == GLASS)), "glass_id")
        out = np.empty((targets.height, targets.width), np.uint16)
        targets.glass.read_into(out, components=1, dtype="u2", alignment=1)
        return out


def _scissor(rect: Rect) -> tuple[int, int, int, int]:
    return rect[0], rect[1], rect[2] - rect[0], rect[3] - rect[1]


def around(rects: list[Rect]) -> Rect:
    """The rectangle around some."""
    low, high = np.array(rects)[:, :2].min(axis=0), np.array(rects)[:, 2:].max(axis=0)
    return int(low[0]), int(low[1]), int(high[0]), int(high[1])


def _source(name: str) -> str:
    file = name if "." in name else f"{name}.glsl"
    return (files("wmeval.sim.render") / "shaders" / file).read_text()

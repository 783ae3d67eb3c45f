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
- Leaves, cloth, paper: meshes without thickness, ``two_sided``, roughness 0.6-0.9. All other
  meshes are drawn from outside only: close them.
- Glass: opacity 0.1-0.35, ior 1.3-1.5, roughness 0.05.
- A glass `Vessel` with liquid: traced pixel by pixel through outer wall, inner wall and surface of
  the liquid (Snell, Fresnel, total reflection, absorption); the liquid's material is
  ``labelled_solid``, its texture's first colour the tint of 13 cm of it. Labels stay unrefracted.
- Sun: strength 2.5-3.2, elevation 35-55 degrees, softness 0.02-0.05; sky strength 1.

Limits: balls cast exact discs and everything else its mesh into a shadow map of ``shadow_size``
texels over the scene's bounds (at most `pieces.MAX_SPAN` metres; a window follows the camera in a
larger scene). ``shadow_ids`` uses one of twice that size without filter: its outlines are right to
one texel, 0.8 cm for a 16 m scene. Where shadows of several bodies lie over each other, the body
nearest to the sun is named; ``shadow_masks`` has one bit for each body's whole shadow, drawn body
by body (instances 1 to 64). Glass casts no shadow, a liquid in it an opaque one. Through a vessel
one sees the floor, its shadows and the sky, but no other body. Chrome shows no other chrome's
reflections.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.layers import LAYERS, RENDERED
from wmeval.scene import Meshes, Scene
from wmeval.sim.protocol import RenderState
from wmeval.sim.render import dirty, gl
from wmeval.sim.render.bending import bent_state, fingerprint, laid_out, stand_ins
from wmeval.sim.render.cells import Grid, Ground, Layout, Rect
from wmeval.sim.render.dirty import RECT_COST_PX
from wmeval.sim.render.passes import (
    FRAME_BYTES,
    GROUND_SIZE,
    Canvas,
    Instant,
    Passes,
    Scope,
    Targets,
    around,
)
from wmeval.sim.render.pieces import (
    ANCHOR_STEP,
    FOCUS_EDGES,
    GLASS,
    MIRROR,
    Pieces,
    SunRegion,
    SunView,
    View,
    camera_view,
    compile_pieces,
    mean_color,
    shaded_by_others,
    sun_of_focus,
    sun_of_points,
)
from wmeval.sim.render.shadows import MASKED

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Mask = NDArray[np.bool_]

SMALL_PX = 80_000
"""Up to here a fifth of the picture costs as much to draw in parts as all of it in one."""

MANY_RECTS = 40
"""Beyond, rectangles of labels are told apart by cells: joining pairs would cost more."""

MANY_MOVERS, WAITS = 64, 7
"""From so many movers on, a picture that had to be drawn whole is so again for a few times."""

LOW_SUN = 0.02
"""Sine of the elevation below which shadows are followed wherever they may lead."""

EXPOSURE = 0.42
SUN_HALF_WIDTH = 0.018
"""Half width of the sun's disc [rad]: four times the real one, to be seen."""
HAZE = 1.7
"""Distances at the edge of the floor, in units of the haze's length."""

_DOWN = np.array([0.0, 0.0, -1.0])
_LABELS = ("depth", "ids", "normals")
_DERIVED = ("glass_ids", "shadow_ids", "shadow_masks")


def _smooth(x: float) -> float:
    """0 below 0, 1 above 1, smooth between."""
    x = min(max(x, 0.0), 1.0)
    return x * x * (3.0 - 2.0 * x)


def _daylight(elevation: float) -> float:
    """Share of the sun's light that arrives, by the sine of its elevation: none at night."""
    # A sun on the very horizon lights nothing, and its shadows would have no end.
    return _smooth(elevation / (2 * SUN_HALF_WIDTH)) if elevation > 1e-6 else 0.0


def _twilight(elevation: float) -> float:
    """Share of the sun's glow in the sky: it outlasts the sun by 12 degrees (nautical dusk)."""
    return _smooth(1.0 + elevation / math.sin(math.radians(12.0)))


@dataclass(eq=False)
class _Memo:
    """The last picture of one size: what was drawn, and the layers as they stand.

    Attributes:
        key: camera, light and layers; another key makes the memo worthless.
        layers: private arrays, empty until the same key has been seen twice.
        waits: pictures with many movers to be drawn whole before parts are looked for again.
    """

    key: bytes = b""
    instant: Instant | None = None
    layers: dict[str, NDArray[Any]] = field(default_factory=dict)
    waits: int = 0


def _moved(before: Instant, now: Instant) -> Mask:
    """Pieces (P,) that are elsewhere, or turned, or there in one of the two only."""
    moved = before.drawn != now.drawn
    either = before.drawn | now.drawn
    moved |= either & (before.rotation != now.rotation).any(axis=(1, 2))
    moved |= either & (before.centre != now.centre).any(axis=1)
    moved |= either & (before.modal != now.modal).any(axis=1)
    return np.asarray(moved)


def _ground_texel(sun: SunView) -> float:
    """Width [m] of a texel of the ground map."""
    return float((sun.ground_high - sun.ground_low).max() / GROUND_SIZE)


class RasterRenderer:
    """Pictures of one scene.

    Args:
        scene: what to draw.
        meshes: content hash to mesh.
        samples: of colour per pixel (1 or 4).
        shadow_size: texels along a side of the shadow map.
        cached: while camera, light and size stay, draw only what changed; the same bits either way.
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
        shown, meshes, bends = stand_ins(scene, meshes)
        self._pieces, self._bends = laid_out(compile_pieces(shown, meshes), bends)
        self._ground = Ground.of(self._pieces)
        self._region = SunRegion.of(shown, self._pieces)
        floor = self._pieces.floor
        # Where the floor ends; the haze hides its edge.
        self._reach = max(60.0, float(self._pieces.half[floor, :2].min()) if floor >= 0 else 0.0)
        self._floor_color = (
            mean_color(self._pieces.textures[int(self._pieces.record[self._pieces.floor, 12])])
            if self._pieces.floor >= 0
            else np.array(scene.sky.ground)
        )
        self._passes: Passes | None = None
        self._memos: dict[tuple[int, int, bool], _Memo] = {}
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
            width: of the picture [px], 1..8192.
            height: of the picture [px], 1..8192.
            layers: of rgb, depth, ids, glass_ids, normals, shadow_ids, shadow_masks.

        Returns:
            Fresh arrays by layer name, in the order asked for.

        Raises:
            UserError: unknown layer, impossible size, poses that do not fit the scene or are not
                finite, no EGL.
        """
        self._check(state, width, height, layers)
        with gl.current_device() as device:
            if self._passes is None:
                self._passes = Passes(
                    device, self.scene, self._pieces, self.samples, self.shadow_size,
                    self._texture_size, self._bends,
                )  # fmt: skip
                # One that is dropped without `close` gives back its memory, too.
                weakref.finalize(self, gl.release_later, self._passes.release).atexit = False
            state = bent_state(state, self._bends)
            out = self._draw(
                self._passes, self._instant(state, width, height, "rgb" in layers), layers
            )
        return {name: out[name] for name in dict.fromkeys(layers)}

    def close(self) -> None:
        """Free what this renderer holds on the GPU; the process's context stays. Idempotent."""
        self._closed = True
        if self._passes is not None:
            with gl.current_device():
                self._passes.release()
            self._passes = None
        self._memos.clear()

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

    def _instant(self, state: RenderState, width: int, height: int, light: bool) -> Instant:
        pieces = self._pieces
        camera = camera_view(state, width, height)
        with np.errstate(invalid="ignore"):
            rotation, centre = pieces.world(state)
        drawn = state.active[pieces.body]
        seen = drawn if state.hidden is None else drawn & ~state.hidden[pieces.body]
        # Empty slots may hold anything; it must not reach the arithmetic of the others.
        rotation = np.where(drawn[:, None, None], rotation, np.eye(3))
        centre = np.where(drawn[:, None], centre, 0.0)
        anchor = np.rint(camera.eye / ANCHOR_STEP) * ANCHOR_STEP
        to_sun = -np.asarray(state.sun_direction, np.float64)
        to_sun = to_sun / np.linalg.norm(to_sun)
        daylight = _daylight(float(to_sun[2]))
        shining = state.sun_direction if daylight > 0 else _DOWN
        sun = self._region.view(shining, camera, self.shadow_size)
        # Balls, boxes and cylinders do not shade themselves: only others, and nearer to the sun.
        asked = pieces.convex & drawn & camera.sees(centre, pieces.radius) & light
        focus = self.scene.sun.focus
        fine = sun_of_focus(focus, sun, self.shadow_size) if focus is not None else None
        lit = ~shaded_by_others(pieces, rotation, centre, drawn, sun, asked)
        return Instant(
            camera,
            anchor,
            rotation,
            centre,
            drawn,
            seen,
            sun,
            to_sun,
            np.asarray(state.sun_color, np.float64),
            daylight,
            np.asarray(state.sky, np.float64),
            self._modal(state),
            lit,
            self._layout(camera, (sun, fine), rotation, centre, drawn, seen, light),
            fine,
            {bend.name: state.vertices[bend.name] for bend in self._bends},
        )

    def _modal(self, state: RenderState) -> F8:
        """What each piece follows, (P, K): its own modal state, its vertices' mark, or zeros."""
        pieces = self._pieces
        follows = [(d.piece, d.modal, d.deformer.size) for d in pieces.deforms]
        follows += [(v.piece, v.modal, v.deformer.size) for v in pieces.vessels]
        width = max((size for *_, size in follows), default=int(bool(self._bends)))
        out = np.zeros((len(pieces), width))
        for bend in self._bends:
            out[bend.piece, 0] = fingerprint(state.vertices[bend.name])
        for piece, name, size in follows:
            values = state.modal.get(name)
            if values is None or len(values) != size:
                raise UserError(
                    f"scene {self.scene.name!r}: a mesh follows the modal state {name!r} of {size} "
                    "numbers, which the state to draw does not hold"
                )
            out[piece, :size] = values
        return out

    def _layout(
        self,
        camera: View,
        suns: tuple[SunView, SunView | None],
        rotation: F8,
        centre: F8,
        drawn: Mask,
        seen: Mask,
        light: bool,
    ) -> Layout:
        """How each cell of the picture is drawn; without ``light`` only what covers it."""
        pieces, k, sun = self._pieces, self._pieces.floor, suns[0]
        grid = Grid.of(camera.width, camera.height)
        shown = seen & camera.sees(centre, pieces.radius)
        covered, above = np.zeros(grid.shape, bool), np.ones(grid.shape, bool)
        shaded = many = above
        ground = self._ground
        level = ground is not None and ground.lies(pieces, rotation, seen)
        if ground is not None and level:
            covered, above = ground.split(grid, camera, rotation[k], centre[k])
            shown[k] = False
        if light:
            if ground is not None and level and sun.to_sun[2] > 0.05:
                casters = self._casters(drawn)
                height = centre[k, 2] + ground.top
                shadows = [
                    dirty.landing_hulls(
                        pieces, rotation, centre, some, pad, sun, np.full(len(some), height)
                    )
                    for some, pad in self._padded(suns, centre, casters)
                ]
                texel = _ground_texel(sun)
                dark = dirty.dark_hulls(pieces, rotation, centre, casters, 2 * texel)
                shaded = grid.joined(grid.cover(camera, *shadows, dark))
            there = np.flatnonzero(shown)
            hulls = dirty.piece_hulls(pieces, rotation, centre, there, 0.0, camera)
            many = grid.joined(grid.cover(camera, hulls) | ~(covered | above))
        return Layout(grid, covered, above, many, shaded)

    def _casters(self, drawn: Mask) -> I8:
        """Indices of the pieces that keep light off others."""
        casts = drawn & (self._pieces.kind != GLASS)
        if self._pieces.floor >= 0:
            casts[self._pieces.floor] = False
        return np.flatnonzero(casts)

    def _in_sun(self, instant: Instant, chosen: I8, sun: SunView | None) -> I8:
        """Those pieces that can be seen in one of the sun's views; none at night."""
        if instant.daylight <= 0 or sun is None:
            return chosen[:0]
        rows, radius = sun.rows[:2], self._pieces.radius[chosen]
        away = np.abs(instant.centre[chosen] @ rows[:, :3].T + rows[:, 3] - 0.5)
        inside = away < 0.5 + (radius / sun.span + 4 / self.shadow_size)[:, None]
        return np.asarray(chosen[inside.all(axis=1)])

    def _canvas(self, instant: Instant, rects: list[Rect], visible: Mask, bounds: F8) -> Canvas:
        """What the colour pass has to draw in rectangles of whole cells.

        Args:
            instant: what to draw.
            rects: to be drawn.
            visible: (P,) pieces in view.
            bounds: (P, 4) their outlines' bounds [px].
        """
        todo = instant.layout.grid.fill(rects)
        shown = visible.copy()
        if instant.layout.covered.any():
            shown[self._pieces.floor] = False
        there = np.flatnonzero(shown)
        touched = instant.layout.grid.touched(todo, bounds[there])
        return Canvas(instant.layout, todo, there[touched], bounds)

    def _covered_rows(self, instant: Instant) -> Rect | None:
        """The lower part of the picture, as far as the floor's top fills it."""
        camera, layout = instant.camera, instant.layout
        gaps = np.flatnonzero(~layout.covered.all(axis=1))
        start = (int(gaps[-1]) + 1 if len(gaps) else 0) * layout.grid.size
        return (0, start, camera.width, camera.height) if start < camera.height else None

    def _draw(
        self, passes: Passes, instant: Instant, layers: tuple[str, ...]
    ) -> dict[str, NDArray[Any]]:
        camera, pieces = instant.camera, self._pieces
        targets = passes.targets(camera.width, camera.height)
        visible = instant.seen & camera.sees(instant.centre, pieces.radius)
        shading = self._casters(instant.drawn)
        sunny = self._in_sun(instant, shading, instant.sun)
        everything = np.arange(len(pieces))
        bounds = dirty.piece_outlines(
            pieces, instant.rotation, instant.centre, everything, 0.0, camera
        )
        passes.write_pieces(instant)
        out: dict[str, NDArray[Any]] = {}

        if "rgb" in layers:

            def colors(rects: list[Rect]) -> None:
                mirrors = np.flatnonzero(visible & (pieces.kind == MIRROR))
                cubes = [passes.cube_of(instant, i) for i in mirrors]
                views = [camera, *(v for cube in cubes for v in cube.views)]
                frames = [self._frame(instant, v) for v in views]
                if instant.fine is not None:
                    frames.append(self._frame(replace(instant, sun=instant.fine), camera))
                passes.write_frames(frames)
                if instant.fine is not None:
                    near = self._in_sun(instant, shading, instant.fine)
                    passes.use_frame(len(views))
                    passes.draw_sun(instant, near, keep=self.cached, fine=True)
                    passes.write_shadow_mask(instant, near, fine=True)
                passes.use_frame(0)
                passes.draw_sun(instant, sunny, keep=self.cached)
                passes.draw_ground(shading)
                passes.write_shadow_mask(instant, sunny)
                for k, cube in enumerate(cubes):
                    others = instant.drawn.copy()
                    others[mirrors[k]] = False
                    passes.draw_cube(cube, instant, others, 1 + 6 * k)
                passes.use_frame(0)
                canvas = self._canvas(instant, rects, visible, bounds)
                passes.draw_color(targets, instant, canvas, mirrors, cubes)

            out |= self._remembered(
                instant, ("rgb",), colors, lambda rect: {"rgb": passes.read_color(targets, rect)}
            )
        if any(name in layers for name in (*_LABELS, *_DERIVED)):
            passes.write_frames([self._frame(instant, camera)])
            passes.use_frame(0)
            covered = self._covered_rows(instant)
            wanted = tuple(name for name in _LABELS if name in layers)
            derived = any(name in layers for name in _DERIVED)
            out |= self._remembered(
                instant,
                wanted,
                lambda rects: passes.draw_labels(targets, Scope(rects, visible, bounds, covered)),
                lambda rect: passes.read_labels(targets, rect, wanted, camera.near),
                whole=derived,
            )
            if "shadow_ids" in layers:
                passes.draw_shadow(passes.shadow_ids, sunny, True)
                out["shadow_ids"] = passes.draw_shade_ids(targets, passes.shadow_ids)
            if "glass_ids" in layers:
                out["glass_ids"] = passes.draw_glass_ids(targets, visible)
            if "shadow_masks" in layers:
                casting = shading if instant.daylight > 0 else shading[:0]
                out["shadow_masks"] = self._shadow_masks(passes, targets, instant, casting)
        return out

    def _shadow_masks(
        self, passes: Passes, targets: Targets, instant: Instant, casters: I8
    ) -> NDArray[np.uint64]:
        """One bit for each body's own shadow, (H, W), from the labels just drawn.

        Every body gets a shadow map of its own that it just fills, so that the outlines are right
        to a thousandth of the body's size.
        """
        camera, pieces = instant.camera, self._pieces
        out = np.zeros((camera.height, camera.width), np.uint64)
        floor = self._floor_box(instant)
        jobs = []
        for number in np.unique(pieces.instance[casters]).tolist():
            if not 1 <= number <= MASKED:
                continue
            chosen = casters[pieces.instance[casters] == number]
            at = self._at(instant, chosen)
            hulls = dirty.shadow_hulls(*at, 0.02, camera, instant.sun, floor)
            rects = dirty.to_rects(dirty.outlines(hulls, camera), camera)
            if rects:
                points = dirty.corners(*at, 0.0).reshape(-1, 3)
                sun = sun_of_points(points, instant.sun, self.shadow_size)
                jobs.append((number, chosen, around(rects), replace(instant, sun=sun)))
        if not jobs:
            return out
        passes.write_frames([self._frame(seen, camera) for *_, seen in jobs])
        for k, (number, chosen, rect, _) in enumerate(jobs):
            passes.use_frame(k)
            passes.draw_shadow(passes.shadow_of_one, chosen, True)
            code = passes.draw_shade_ids(targets, passes.shadow_of_one, rect)
            x0, y0, x1, y1 = rect
            out[y0:y1, x0:x1] |= (code > 0).astype(np.uint64) << np.uint64(number - 1)
        return out

    def _floor_box(self, instant: Instant) -> F8 | None:
        """Lower and upper corner (2, 3) [m] of the floor's upright box."""
        pieces, k = self._pieces, self._pieces.floor
        if k < 0 or not instant.drawn[k]:
            return None
        half = pieces.half[k]
        return np.asarray(np.stack([instant.centre[k] - half, instant.centre[k] + half]))

    def _remembered(
        self,
        instant: Instant,
        layers: tuple[str, ...],
        draw: Callable[[list[Rect]], None],
        read: Callable[[Rect], dict[str, NDArray[Any]]],
        *,
        whole: bool = False,
    ) -> dict[str, NDArray[Any]]:
        """Draw and read what changed since the last picture of this kind; hand out fresh arrays.

        Args:
            instant: what to draw.
            layers: what ``read`` returns.
            draw: draws rectangles.
            read: reads one rectangle.
            whole: draw everything, because the GPU's copy of the picture is wanted, too.
        """
        camera = instant.camera
        full = (0, 0, camera.width, camera.height)
        if not self.cached or whole:
            draw([full])
            return read(full)
        kind = (camera.width, camera.height, layers == ("rgb",))
        memo = self._memos.pop(kind, None) or _Memo()
        self._memos[kind] = memo
        while len(self._memos) > 8:
            del self._memos[next(iter(self._memos))]
        key = b"".join(
            np.ascontiguousarray(a, np.float64).tobytes()
            for a in (
                camera.eye, camera.axes, camera.tangents, [camera.near, camera.far],
                instant.sun.rows, instant.to_sun, instant.sun_color, instant.sky,
                instant.seen == instant.drawn,
            )
        ) + ",".join(layers).encode()  # fmt: skip
        if key != memo.key:
            # A moving camera is never worth a private copy: wait until it has stood still once.
            memo.key, memo.layers = key, {}
            draw([full])
            memo.instant = instant
            return read(full)
        light = layers == ("rgb",)
        many = memo.instant is not None and _moved(memo.instant, instant).sum() >= MANY_MOVERS
        if light and many and memo.waits:
            # All of it had to be drawn just now: most likely again.
            memo.waits -= 1
            rects = [full]
        else:
            rects = self._changed(memo.instant, instant, light=light)
            memo.waits = WAITS if rects == [full] else 0
        if not light and rects and dirty.covers_most(rects, camera):
            rects = [full]
        if not memo.layers:
            rects = [full]
        # Until it is complete again the memo must not be trusted.
        kept, memo.layers, memo.key = memo.layers, {}, b""
        if rects:
            draw(rects)
        for rect in rects:
            x0, y0, x1, y1 = rect
            for name, part in read(rect).items():
                if rect == full:
                    kept[name] = part
                else:
                    kept[name][y0:y1, x0:x1] = part
        memo.key, memo.layers, memo.instant = key, kept, instant
        return {name: array.copy() for name, array in kept.items()}

    def _changed(self, before: Instant | None, now: Instant, *, light: bool) -> list[Rect]:
        """Rectangles outside of which the two pictures are the same, bit for bit.

        Args:
            before: the instant of the last picture.
            now: an instant with the same camera and sun.
            light: shadows, darkened ground and reflections count, too.
        """
        pieces, camera = self._pieces, now.camera
        whole = [(0, 0, camera.width, camera.height)]
        if before is None:
            return whole
        moved = _moved(before, now)
        if not moved.any():
            return []
        k = pieces.floor
        if k >= 0 and moved[k]:
            return whole
        floor = self._floor_box(now)
        texel = _ground_texel(now.sun)
        instants = [(i, np.flatnonzero(moved & i.drawn)) for i in (before, now)]
        if not light:
            found = [
                dirty.piece_outlines(*self._at(i, chosen), 0.0, camera) for i, chosen in instants
            ]
            bounds = np.concatenate(found)
            if len(bounds) <= MANY_RECTS:
                return dirty.merge(dirty.to_rects(bounds, camera))
            cells = now.layout.grid.mark(bounds)
            return whole if cells.mean() > 0.5 else now.layout.grid.blocks(cells, RECT_COST_PX)
        grid = now.layout.grid
        others = pieces.kind == MIRROR
        others[[v.piece for v in pieces.vessels]] = True
        mirrors = np.flatnonzero(now.drawn & others)
        # Another program draws what has come out of the others' reach, or into it.
        other = np.flatnonzero(now.drawn & (before.lit != now.lit))
        alone = np.concatenate([mirrors, other])
        hulls = [dirty.piece_hulls(*self._at(now, alone), 0.0, camera)]
        # Shadows and darkness matter where something that stands still can show them.
        still = now.seen & ~moved & camera.sees(now.centre, pieces.radius)
        receivers = dirty.upright_boxes(*self._at(now, np.flatnonzero(still)), camera)
        low = now.sun.to_sun[2] < LOW_SUN
        for i, chosen in instants:
            for some, pad in self._padded((i.sun, i.fine), i.centre, chosen):
                at = self._at(i, some)
                if low:
                    hulls.append(dirty.shadow_hulls(*at, pad, camera, i.sun, floor))
                else:
                    hulls.append(dirty.piece_hulls(*at, 0.0, camera))
                    hulls.append(dirty.received_hulls(*at, pad, camera, i.sun, receivers))
                hulls.append(dirty.darkened_hulls(*at, 2 * texel, receivers))
        cells = grid.cover(camera, *hulls)
        cells = grid.joined(cells | before.layout.differs(now.layout))
        few = camera.width * camera.height < SMALL_PX
        return whole if cells.mean() > (0.2 if few else 0.8) else grid.rects(cells)

    def _at(self, instant: Instant, chosen: I8) -> tuple[Pieces, F8, F8, I8]:
        return self._pieces, instant.rotation, instant.centre, chosen

    def _padded(
        self, suns: tuple[SunView, SunView | None], centre: F8, chosen: I8
    ) -> list[tuple[I8, float]]:
        """The chosen pieces, apart by how far [m] a sample of their shadows may reach."""
        sun, fine = suns
        pad = self._blur(sun)
        if fine is None:
            return [(chosen, pad)]
        # Only the finer map is looked at where these may be in the way.
        rows, radius = fine.rows[:2], self._pieces.radius[chosen]
        away = np.abs(centre[chosen] @ rows[:, :3].T + rows[:, 3] - 0.5).max(axis=1)
        inside = away + (radius + pad) / fine.span < FOCUS_EDGES[0] / 2
        least = self._blur(fine)
        return [(chosen[inside], least), (chosen[~inside], max(pad, least))]

    def _blur(self, sun: SunView) -> float:
        """How far [m] a sample of a shadow may reach: the kernel, the filter and rounding."""
        return (self._kernel(sun) + 2.5) * sun.texel

    def _kernel(self, sun: SunView) -> float:
        """Radius of the shadow's filter [texels]."""
        # The shadow's edge a metre away from what casts it, but at least a texel and a bit.
        return float(np.clip(0.75 * self.scene.sun.softness / sun.texel, 1.25, 4.0))

    def _shadow_info(self, sun: SunView) -> list[float]:
        """The row ``shadow_info`` of ``frame.glsl`` for one of the sun's views."""
        depth_per_m = float(np.linalg.norm(sun.rows[2, :3]))
        return [
            self._kernel(sun),
            sun.span**2 * depth_per_m,
            0.02 * sun.texel * depth_per_m,
            1 / self.shadow_size,
        ]

    def _frame(self, instant: Instant, view: View) -> F4:
        """The uniform block of ``frame.glsl`` for one view."""
        zenith, horizon, ground = instant.sky
        light = instant.daylight * instant.sun_color
        out = np.zeros(FRAME_BYTES // 4, np.float32)
        rows = out[:].reshape(-1, 4)
        rows[0:4] = view.clip(instant.anchor).T
        rows[4] = [*(view.eye - instant.anchor), view.near]
        rows[5] = [*(view.axes[0] * view.tangents[0]), 2 / view.width]
        rows[6] = [*(view.axes[1] * view.tangents[1]), 2 / view.height]
        rows[7] = [*view.axes[2], view.far]
        rows[8] = [*instant.to_sun, math.cos(SUN_HALF_WIDTH)]
        rows[9] = [*light, EXPOSURE]
        rows[10] = [*zenith, self.scene.sky.clouds]
        rows[11] = [*horizon, (HAZE / self._reach) ** 2]
        up = max(float(instant.to_sun[2]), 0.0)
        bounce = self._floor_color * (0.5 * up * light + 0.6 * (0.5 * zenith + 0.5 * horizon))
        rows[12] = [*(ground * (0.4 + 0.6 * up)), 0]
        rows[13] = [*bounce, self._pieces.stand - instant.anchor[2]]
        rows[14:17] = instant.sun.relative(instant.anchor)
        rows[17] = self._shadow_info(instant.sun)
        low, high = instant.sun.ground_low, instant.sun.ground_high
        rows[18] = [*(low - instant.anchor[:2]), 1 / (high[0] - low[0]), 9]
        k = self._pieces.floor
        if self._ground is not None:
            centre = instant.centre[k] - instant.anchor
            u, v = self._ground.maps(self._pieces, instant.rotation[k], centre)
            rows[19] = [*u, centre[2] + self._ground.top]
            rows[20] = [*v, k]
        if instant.fine is not None:
            rows[21:23] = instant.fine.relative(instant.anchor)[:2]
            rows[23] = self._shadow_info(instant.fine)
        glow = _twilight(float(instant.to_sun[2]))
        rows[24] = [*(glow * instant.sun_color), float(instant.to_sun[2])]
        return out

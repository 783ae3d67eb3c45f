"""The drawable pieces of a scene as arrays, and the views they are drawn from. Pure numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wmeval import conventions
from wmeval.assets import meshes as shapes
from wmeval.assets.pictures import provide
from wmeval.assets.textures import bake, decode_srgb
from wmeval.errors import UserError
from wmeval.scene import (
    STATIC,
    Box,
    Capsule,
    Cylinder,
    Focus,
    Material,
    Mesh,
    MeshData,
    Meshes,
    Scene,
    Sphere,
    Texture,
    Vessel,
)
from wmeval.sim.protocol import RenderState, deforms_of, hidden_from
from wmeval.sim.render.deform import HalfFull, make_deformer

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Mask = NDArray[np.bool_]

OPAQUE, MIRROR, GLASS, LIQUID = 0, 1, 2, 3
LEVELS = 4
"""Meshes a shape may have, from coarse to fine."""

ANCHOR_STEP = 64.0
"""Positions go to the GPU relative to a world point on this grid [m] (float32 keeps its digits)."""

DARKENS_M = (0.06, 0.3)
"""How far [m] boxes and meshes take ambient light from their surroundings: their longest half
extent, within these bounds."""

BALL_DARKENS = 1.75
"""How far a ball does, in radii (the fade in ``ground.frag``)."""

RECORD = 28
"""Floats of one piece in its buffer: the struct of ``piece.glsl``."""


@dataclass(frozen=True, eq=False)
class Deforming:
    """A piece whose mesh follows modal state.

    Attributes:
        piece: its index.
        slot: row of ``slots`` of its mesh, its own.
        modal: name of the state.
        deformer: what it does.
    """

    piece: int
    slot: int
    modal: str
    deformer: HalfFull


@dataclass(frozen=True, eq=False)
class Holding:
    """A glass piece with liquid in it; the liquid's ``tint`` and ``ior``."""

    piece: int
    modal: str
    vessel: Vessel
    deformer: HalfFull
    tint: tuple[float, float, float]
    ior: float


@dataclass(frozen=True, eq=False)
class Pieces:
    """Every visual of every body.

    Attributes:
        body: (P,) index of the body.
        position: (P, 3) in the body's frame [m].
        rotation: (P, 3, 3) piece to body.
        slot: (P,) row of ``slots`` of the finest mesh; -1 for balls, which need none.
        coarse: (P, LEVELS) rows of ``slots`` from coarse to fine.
        departure: (P, LEVELS) largest distance [m] of each from the finest.
        kind: (P,) OPAQUE | MIRROR | GLASS | LIQUID (colours: as its vessel shows it; else solid).
        radius: (P,) of the bounding sphere [m].
        ball: (P,) is a sphere.
        convex: (P,) its shape throws no shadow on itself.
        half: (P, 3) half extents of the bounding box in the piece's frame [m].
        record: (P, RECORD) what does not change of the GPU's records.
        static: (P,) its body is static in the scene.
        vertices: (V, 8) position, normal, texture coordinates of all meshes.
        triangles: (T, 3) uint32, relative to each slot's first vertex.
        slots: (S, 3) count, first index, first vertex.
        textures: layers of the texture array.
        pictures: texels of those of a user's files, held here for as long as they may be baked.
        floor: index of the piece that everything stands on, or -1.
        stand: height [m] on which the lowest movable piece stands at t = 0, else the floor's top.
    """

    body: I8
    position: F8
    rotation: F8
    slot: I8
    coarse: I8
    departure: F8
    kind: I8
    radius: F8
    ball: Mask
    convex: Mask
    half: F8
    record: F4
    static: Mask
    vertices: F4
    triangles: NDArray[np.uint32]
    slots: I8
    textures: tuple[Texture, ...]
    floor: int
    stand: float
    instance: I8 = field(default_factory=lambda: np.zeros(0, np.int64))
    deforms: tuple[Deforming, ...] = ()
    vessels: tuple[Holding, ...] = ()
    pictures: tuple[NDArray[np.uint8], ...] = ()

    def __len__(self) -> int:
        return len(self.body)

    def world(self, state: RenderState) -> tuple[F8, F8]:
        """Rotations (P, 3, 3) and positions (P, 3) [m] in the world."""
        turn: F8 = conventions.quaternion_to_matrix(state.quaternion_wxyz)[self.body]
        centre = np.einsum("pij,pj->pi", turn, self.position) + state.position[self.body]
        return np.asarray(turn @ self.rotation), np.asarray(centre)

    @property
    def darkens(self) -> F8:
        """How far (P,) [m] a box or mesh takes ambient light; 0 for what takes none."""
        return np.asarray(self.record[:, 27], np.float64)

    @cached_property
    def scale(self) -> F8:
        """Factor (P,) on the shape: a ball is the unit sphere."""
        return np.asarray(np.where(self.ball, self.radius, 1.0))


def _half_extents(mesh: MeshData) -> F8:
    return np.asarray(np.abs(mesh.vertices.astype(np.float64)).max(axis=0))


def _both_sides(mesh: MeshData) -> MeshData:
    """The mesh with a twin of each triangle that looks the other way."""
    count = np.uint32(len(mesh.vertices))
    return MeshData(
        np.concatenate([mesh.vertices, mesh.vertices]),
        np.concatenate([mesh.triangles, mesh.triangles[:, ::-1] + count]),
        np.concatenate([mesh.normals, -mesh.normals]),
        np.concatenate([mesh.uv, mesh.uv]),
    )


def _kind(material: Material) -> int:
    if material.labelled_solid:
        return LIQUID
    if material.opacity < 1:
        return GLASS
    return MIRROR if material.mirror > 0 else OPAQUE


def _period(texture: Texture) -> Texture:
    return texture.model_copy(update={"repeat": 1.0})


def compile_pieces(scene: Scene, meshes: Meshes) -> Pieces:
    """Lay out a scene for drawing; equal shapes share one mesh.

    Raises:
        UserError: a mesh that is not in ``meshes``.
    """
    materials = {m.name: m for m in scene.materials}
    pictures = provide(scene.materials, meshes)
    # `repeat` is applied here, so textures that differ only in it share a layer. All materials in
    # their order: scenes of one family share their layers, whichever of them a seed uses.
    textures: dict[Texture, int] = {}
    for look in scene.materials:
        textures.setdefault(_period(look.texture), len(textures))
    pool: list[MeshData] = []
    found: dict[tuple[object, float | None, bool], tuple[list[int], list[float]]] = {}
    rows: list[tuple[int, int, int, float, bool, bool]] = []
    deforms: list[Deforming] = []
    vessels: list[Holding] = []
    position, rotation, half, record, coarse, departure = [], [], [], [], [], []
    for index, body in enumerate(scene.bodies):
        for visual in body.visuals:
            look = materials[visual.material]
            layer = textures[_period(look.texture)]
            repeat_u = repeat_v = look.texture.repeat
            shape = visual.shape
            ball = isinstance(shape, Sphere)
            # The box of a tree or a fence says little about where it stands.
            hollow = isinstance(shape, Mesh) and not shape.convex
            thin, slot = False, -1
            choice = ([-1] * LEVELS, [0.0] * LEVELS)
            if isinstance(shape, Sphere):
                size = np.full(3, shape.radius)
                radius = shape.radius
                if look.uv_m is not None:
                    repeat_u *= 2 * math.pi * radius / look.uv_m
                    repeat_v *= math.pi * radius / look.uv_m
            else:
                thin = look.two_sided and isinstance(shape, Mesh)
                key = (shape, look.uv_m, thin)
                if key not in found:
                    made = shapes.levels(shape, meshes, uv_m=look.uv_m)
                    numbers = list(range(len(pool), len(pool) + len(made)))
                    pool.extend(_both_sides(mesh) if thin else mesh for mesh, _ in made)
                    # The last level is the finest; further ones are the same.
                    more = LEVELS - len(made)
                    errors = [error for _, error in made]
                    found[key] = (numbers + numbers[-1:] * more, errors + errors[-1:] * more)
                choice = found[key]
                slot = choice[0][-1]
                size = _half_extents(pool[slot])
                radius = float(np.linalg.norm(pool[slot].vertices.astype(np.float64), axis=1).max())
            if isinstance(shape, Mesh) and shape.deform is not None:
                deformer = make_deformer(shape.deform)
                _same_triangles(pool[slot], deformer, body.name)
                deforms.append(Deforming(len(rows), slot, shape.deform.modal, deformer))
                size = np.abs(deformer.bounds).max(axis=0)
                radius = float(np.linalg.norm(size))
            if visual.vessel is not None:
                vessels.append(_holding(len(rows), visual.vessel, materials))
            coarse.append(choice[0])
            departure.append(choice[1])
            convex = isinstance(shape, Sphere | Box | Cylinder | Capsule)
            rows.append((index, slot, _kind(look), radius, ball, convex))
            position.append(visual.position)
            rotation.append(conventions.quaternion_to_matrix(np.array(visual.quaternion_wxyz)))
            half.append(size)
            record.append(
                (
                    (layer, repeat_u, repeat_v, look.roughness),
                    (0.08 * look.specular, look.mirror, look.opacity, look.ior),
                    (body.instance, radius if ball else 0.0, len(rows), float(thin)),
                    (*size, 0.0 if ball or hollow else float(np.clip(max(size), *DARKENS_M))),
                )
            )
    count = len(rows)
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    body_of = np.array(columns[0], np.int64)
    pool = pool or [shapes.box((1.0, 1.0, 1.0))]
    starts = np.cumsum([0] + [len(m.vertices) for m in pool[:-1]])
    firsts = np.cumsum([0] + [3 * len(m.triangles) for m in pool[:-1]])
    full = np.zeros((count, RECORD), np.float32)
    full[:, 12:] = np.array(record, np.float32).reshape(count, RECORD - 12)
    static = np.array([scene.bodies[i].motion == "static" for i in body_of], bool)
    pieces = Pieces(
        body_of,
        np.array(position, np.float64).reshape(count, 3),
        np.array(rotation, np.float64).reshape(count, 3, 3),
        np.array(columns[1], np.int64),
        np.array(coarse, np.int64).reshape(count, LEVELS),
        np.array(departure, np.float64).reshape(count, LEVELS),
        np.array(columns[2], np.int64),
        np.array(columns[3], np.float64),
        np.array(columns[4], bool),
        np.array(columns[5], bool),
        np.array(half, np.float64).reshape(count, 3),
        full,
        static,
        np.concatenate([np.concatenate([m.vertices, m.normals, m.uv], axis=1) for m in pool]),
        np.concatenate([m.triangles for m in pool]),
        np.stack([[3 * len(m.triangles) for m in pool], firsts, starts], axis=1).astype(np.int64),
        tuple(textures),
        -1,
        -1e4,
        np.array([scene.bodies[i].instance for i in body_of], np.int64),
        tuple(deforms),
        tuple(vessels),
        pictures,
    )
    floor = _floor(scene, pieces)
    return replace(pieces, floor=floor, stand=_stand(scene, pieces, floor))


def _same_triangles(mesh: MeshData, deformer: HalfFull, name: str) -> None:
    if not np.array_equal(mesh.triangles, deformer.triangles):
        raise UserError(f"body {name!r}: its stored mesh is not one of its deformer's: make it so")


def _holding(piece: int, vessel: Vessel, materials: dict[str, Material]) -> Holding:
    if vessel.liquid not in materials:
        raise UserError(f"a vessel's liquid is of no known material: {vessel.liquid!r}")
    liquid = materials[vessel.liquid]
    deformer = make_deformer(vessel.surface)
    return Holding(
        piece, vessel.surface.modal, vessel, deformer, liquid.texture.colors[0], liquid.ior
    )


def start_state(scene: Scene, camera: int = 0) -> RenderState:
    """The scene at t = 0, seen by one of its cameras."""
    eye = scene.cameras[camera]
    return RenderState(
        np.array([b.position for b in scene.bodies], np.float64).reshape(-1, 3),
        np.array([b.quaternion_wxyz for b in scene.bodies], np.float64).reshape(-1, 4),
        np.array([b.active for b in scene.bodies], bool),
        math.radians(eye.fov_y_deg),
        conventions.look_at(np.array(eye.position), np.array(eye.target)),
        eye.near,
        eye.far,
        np.array(scene.sun.direction, np.float64),
        np.array(scene.sun.color, np.float64) * scene.sun.strength,
        np.array([scene.sky.zenith, scene.sky.horizon, scene.sky.ground]) * scene.sky.strength,
        {m.name: np.zeros(m.size) for m in scene.modal},
        deforms_of(scene),
        hidden_from(scene, camera),
    )


def extents(pieces: Pieces, rotation: F8) -> F8:
    """Half extents (P, 3) [m] of the pieces' axis-aligned boxes in the world."""
    return np.asarray(np.einsum("pij,pj->pi", np.abs(rotation), pieces.half))


def _floor(scene: Scene, pieces: Pieces) -> int:
    """The static upright box with the largest footprint."""
    if not len(pieces):
        return -1
    rotation, _ = pieces.world(start_state(scene))
    half = extents(pieces, rotation)
    upright = np.abs(rotation[:, 2, 2]) > 1 - 1e-9
    boxes = np.zeros(len(pieces), bool)
    i = 0
    for body in scene.bodies:
        for visual in body.visuals:
            boxes[i] = isinstance(visual.shape, Box | Cylinder)
            i += 1
    area = np.where(pieces.static & upright & boxes, half[:, 0] * half[:, 1], 0.0)
    return int(np.argmax(area)) if area.max() > 1.0 else -1


def _stand(scene: Scene, pieces: Pieces, floor: int) -> float:
    """Where the ground is for what rolls on it: an arena's own floor may lie on the vast one."""
    if not len(pieces):
        return -1e4
    rotation, centre = pieces.world(start_state(scene))
    bottom = centre[:, 2] - extents(pieces, rotation)[:, 2]
    top = float(centre[floor, 2] + pieces.half[floor, 2]) if floor >= 0 else -1e4
    movable = ~pieces.static
    return max(top, float(bottom[movable].min())) if movable.any() else top


def mean_color(texture: Texture) -> F8:
    """Mean linear colour (3,) of a texture."""
    return np.asarray(decode_srgb(bake(texture)).reshape(-1, 3).mean(axis=0), np.float64)


# --- views --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class View:
    """A perspective view with reversed, endless depth (near / z).

    Attributes:
        eye: (3,) [m].
        axes: (3, 3) rows right, down and forward of the picture, unit.
        tangents: half the picture's width and height at depth 1.
        width, height: [px].
        near, far: [m].
    """

    eye: F8
    axes: F8
    tangents: tuple[float, float]
    width: int
    height: int
    near: float
    far: float

    def clip(self, anchor: F8) -> F8:
        """Matrix (4, 4) from anchor-relative points to clip space."""
        x, y, z = self.axes
        out = np.zeros((4, 4))
        origin = self.eye - anchor
        for row, axis, factor in ((0, x, 1 / self.tangents[0]), (1, y, 1 / self.tangents[1])):
            out[row, :3] = axis * factor
            out[row, 3] = -factor * (axis @ origin)
        out[2, 3] = self.near
        out[3, :3] = z
        out[3, 3] = -(z @ origin)
        return out

    def sees(self, centre: F8, radius: F8) -> Mask:
        """Which bounding spheres (P, 3), (P,) reach into the view."""
        local = (centre - self.eye) @ self.axes.T
        depth = local[:, 2]
        inside = (depth > self.near - radius) & (depth < self.far + radius)
        for k, t in enumerate(self.tangents):
            slack = radius * math.hypot(1.0, t)
            inside &= np.abs(local[:, k]) < depth * t + slack
        return inside


def camera_view(state: RenderState, width: int, height: int) -> View:
    """The camera's view; rows of the picture run downwards."""
    t = math.tan(state.fov_y / 2)
    T = np.asarray(state.T_world_camera, np.float64)
    return View(
        T[:3, 3].copy(),
        T[:3, :3].T.copy(),
        (t * width / height, t),
        width,
        height,
        state.near,
        state.far,
    )


# Right, up and forward of each face of a cube map, in the order and orientation of OpenGL.
_CUBE_FACES = (
    ((0, 0, -1), (0, -1, 0), (1, 0, 0)),
    ((0, 0, 1), (0, -1, 0), (-1, 0, 0)),
    ((1, 0, 0), (0, 0, 1), (0, 1, 0)),
    ((1, 0, 0), (0, 0, -1), (0, -1, 0)),
    ((1, 0, 0), (0, -1, 0), (0, 0, 1)),
    ((-1, 0, 0), (0, -1, 0), (0, 0, -1)),
)


def cube_views(centre: F8, size: int, near: float, far: float) -> tuple[View, ...]:
    """Six views that make up the surroundings of a point."""
    return tuple(
        View(centre, np.array(face, np.float64), (1.0, 1.0), size, size, near, far)
        for face in _CUBE_FACES
    )


@dataclass(frozen=True, eq=False)
class SunView:
    """Parallel view from the sun.

    Attributes:
        rows: (3, 4) world point -> (x, y, depth), each 0..1 over the region.
        texel: [m] of a map of ``size`` texels.
        to_sun: (3,) unit.
        span: width of the region [m].
        ground_low, ground_high: (2,) x and y [m] of the square of ground that matters.
    """

    rows: F8
    texel: float
    to_sun: F8
    span: float
    ground_low: F8
    ground_high: F8

    def relative(self, anchor: F8) -> F8:
        """Rows for anchor-relative points."""
        out = self.rows.copy()
        out[:, 3] += self.rows[:, :3] @ anchor
        return out


FOCUS_EDGES = (0.7, 0.98)
"""From where to where, from its middle (0) to its edge (1), the finer map of the sun's focus fades
into the other."""


def sun_of_focus(focus: Focus, like: SunView, size: int) -> SunView:
    """The sun's view of a focus, with the depths of another, for a map of ``size`` texels."""
    x, y = (row / np.linalg.norm(row) for row in like.rows[:2, :3])
    span = 2 * focus.radius / FOCUS_EDGES[0]
    rows = like.rows.copy()
    for k, axis in enumerate((x, y)):
        rows[k, :3], rows[k, 3] = axis / span, 0.5 - float(axis @ np.array(focus.center)) / span
    return replace(like, rows=rows, texel=span / size, span=span)


def sun_of_points(points: F8, like: SunView, size: int) -> SunView:
    """The sun's view of some points (N, 3) [m] and no more, for a map of ``size`` texels."""
    x, y = (row / np.linalg.norm(row) for row in like.rows[:2, :3])
    flat = points @ np.stack([x, y, -like.to_sun], axis=1)
    low, high = flat.min(axis=0), flat.max(axis=0)
    span = 1.02 * max(float((high - low)[:2].max()), 1e-3)
    middle = (low + high) / 2
    deep = 1.02 * max(float(high[2] - low[2]), 1e-3)
    rows = np.zeros((3, 4))
    for k, (axis, width) in enumerate(((x, span), (y, span), (-like.to_sun, deep))):
        rows[k, :3], rows[k, 3] = axis / width, 0.5 - middle[k] / width
    return replace(like, rows=rows, texel=span / size, span=span)


def shaded_by_others(
    pieces: Pieces, rotation: F8, centre: F8, drawn: Mask, sun: SunView, asked: Mask
) -> Mask:
    """Pieces (P,) on which another one's shadow may fall. Errs on the side of yes.

    Args:
        pieces: the scene's.
        rotation: (P, 3, 3).
        centre: (P, 3) [m].
        drawn: (P,) pieces in the world.
        sun: the light's view.
        asked: (P,) pieces that the answer is wanted for; the others count as shaded.
    """
    casts = drawn & (pieces.kind != GLASS)
    if pieces.floor >= 0:
        casts[pieces.floor] = False
    # Directions [m] across the light, and the one along it: two convex shapes that are apart in
    # any of them do not meet.
    unit = sun.rows[:, :3] / np.linalg.norm(sun.rows[:, :3], axis=1, keepdims=True)
    turns = np.arange(8) * (math.pi / 8)
    ways = np.concatenate([np.stack([np.cos(turns), np.sin(turns)], axis=1) @ unit[:2], unit[2:]])
    middle = centre @ ways.T
    reach = np.einsum("pki,pi->pk", np.abs(np.einsum("kj,pji->pki", ways, rotation)), pieces.half)
    reach[pieces.ball] = pieces.radius[pieces.ball, None]
    slack = 8 * sun.texel
    under, over = np.flatnonzero(asked & drawn), np.flatnonzero(casts)
    # Two directions sort out nearly all pairs; the rest are looked at one by one.
    near = np.ones((len(under), len(over)), bool)
    for k in (0, 4):
        wide = (reach[under, k] + slack)[:, None] + reach[None, over, k]
        near &= np.abs(middle[under, k][:, None] - middle[None, over, k]) < wide
    near &= (middle - reach)[None, over, 8] < (middle + reach)[under, 8][:, None]
    i, j = np.nonzero(near)
    i, j = under[i], over[j]
    meet = (np.abs(middle[i, :8] - middle[j, :8]) < reach[i, :8] + reach[j, :8] + slack).all(axis=1)
    out = ~asked
    out[i[meet & (i != j)]] = True
    return out


MAX_SPAN = 44.0
"""Widest region of the shadow map [m]; a larger scene gets a window that follows the camera."""

FAR_SPAN = 120.0
"""Up to about here the window grows for a camera that looks down steeply from afar."""

STEEP = 0.35
"""Sine of the angle below the horizon from which a camera looks down steeply."""


@dataclass(frozen=True, eq=False)
class SunRegion:
    """Where shadows matter: the box around all that is not a vast floor.

    Attributes:
        low, high: (3,) corners [m] at t = 0, generously padded.
    """

    low: F8
    high: F8

    @staticmethod
    def of(scene: Scene, pieces: Pieces) -> SunRegion:
        """Bounds of the scene's smaller pieces at t = 0."""
        if not len(pieces):
            return SunRegion(np.full(3, -5.0), np.full(3, 5.0))
        rotation, centre = pieces.world(start_state(scene))
        half = extents(pieces, rotation)
        small = np.minimum(half[:, 0], half[:, 1]) < 15.0
        if not small.any():
            small[:] = True
        low = (centre - half)[small].min(axis=0)
        high = (centre + half)[small].max(axis=0)
        reach = scene.sun.reach
        if reach is not None:
            near = small & (np.abs(centre[:, :2]) - half[:, :2] < reach).all(axis=1)
            near = near if near.any() else small
            low = np.array([-reach, -reach, (centre - half)[near, 2].min()])
            high = np.array([reach, reach, (centre + half)[near, 2].max()])
            return SunRegion(low, high)
        pad = np.array([0.5, 0.5, 0.5]) + 0.05 * (high - low)
        return SunRegion(low - pad, high + pad)

    def view(self, direction: F8, camera: View, size: int) -> SunView:
        """The sun's view for one camera: a function of the two alone, moving in coarse steps.

        Args:
            direction: along which sunlight travels.
            camera: whose surroundings matter when the scene is too wide for one map.
            size: texels along a side of the map.
        """
        to_sun = -np.asarray(direction, np.float64)
        to_sun = to_sun / np.linalg.norm(to_sun)
        helper = np.array([0.0, 1, 0]) if abs(to_sun[2]) > 0.9 else np.array([0.0, 0, 1])
        x = np.cross(helper, to_sun)
        x /= np.linalg.norm(x)
        y = np.cross(to_sun, x)
        corners = np.array(
            [
                [c[i][k] for k, i in enumerate(bits)]
                for c in [(self.low, self.high)]
                for bits in np.ndindex(2, 2, 2)
            ]
        )
        flat = corners @ np.stack([x, y], axis=1)
        low, high = flat.min(axis=0), flat.max(axis=0)
        extent = float((high - low).max())
        span = min(extent, MAX_SPAN)
        middle = (low + high) / 2
        # What the camera looks at: a point ahead, lowered to the ground where that is near.
        forward = camera.axes[2]
        ahead = 0.4 * span
        if forward[2] < -0.05:
            down = max(1.0, (camera.eye[2] - self.low[2]) / -forward[2])
            if forward[2] < -STEEP and down > ahead and extent > MAX_SPAN:
                # Steeply from afar: the ground itself, as wide as it is in view, in coarse sizes.
                wide = 2.1 * down * max(camera.tangents)
                while span < min(wide, extent, FAR_SPAN):
                    span *= math.sqrt(2)
                ahead = down
            ahead = min(ahead, down)
        focus = np.array([x, y]) @ (camera.eye + forward * ahead)
        step = span / 8
        room = np.maximum((high - low - span) / 2, 0.0)
        wish = np.rint((focus - middle) / step) * step
        # Inside the scene's bounds the window stays within them; far outside it follows the focus.
        inside = np.abs(focus - middle) <= (high - low) / 2 + step
        offset = np.where(inside, np.clip(wish, -room, room), wish)
        centre = middle + offset
        # Depth along the sun of everything between the lowest and the highest point in the window:
        # p = a x + b y + c to_sun has the height a x_z + b y_z + c to_sun_z.
        steep = max(float(to_sun[2]), 0.1)
        slant = (abs(x[2]) + abs(y[2])) * span / 2
        level = centre[0] * x[2] + centre[1] * y[2]
        top = (self.high[2] - level + slant) / steep + 0.5
        bottom = (self.low[2] - level - slant) / steep - 0.5
        rows = np.zeros((3, 4))
        rows[0, :3], rows[0, 3] = x / span, 0.5 - centre[0] / span
        rows[1, :3], rows[1, 3] = y / span, 0.5 - centre[1] / span
        rows[2, :3] = -to_sun / (top - bottom)
        rows[2, 3] = top / (top - bottom)
        # The same for the ground, in the world's x and y.
        half = (self.high - self.low)[:2].max() / 2 + 1.0
        half = min(float(half), max(span, MAX_SPAN) / 2)
        middle_xy = (self.low + self.high)[:2] / 2
        seen = (camera.eye + forward * ahead)[:2]
        step = half / 4
        wish = np.rint((seen - middle_xy) / step) * step
        room = np.maximum((self.high - self.low)[:2] / 2 + 1.0 - half, 0.0)
        inside = np.abs(seen - middle_xy) <= (self.high - self.low)[:2] / 2 + step
        ground = middle_xy + np.where(inside, np.clip(wish, -room, room), wish)
        return SunView(rows, span / size, to_sun, span, ground - half, ground + half)


__all__ = [
    "ANCHOR_STEP",
    "DARKENS_M",
    "FOCUS_EDGES",
    "GLASS",
    "LIQUID",
    "MIRROR",
    "OPAQUE",
    "RECORD",
    "STATIC",
    "Pieces",
    "SunRegion",
    "SunView",
    "View",
    "camera_view",
    "compile_pieces",
    "cube_views",
    "extents",
    "mean_color",
    "shaded_by_others",
    "start_state",
    "sun_of_focus",
    "sun_of_points",
]

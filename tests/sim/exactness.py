"""Are the labels of a picture right to the pixel? Checks by rays, for any environment.

Rays are cast in numpy against what a scene declares (balls by their equation, all else against
the triangles that its shapes stand for): nothing of the rasteriser is used. A check takes an
environment that was reset (and stepped, if you like), looks at its newest state, and raises
`AssertionError` with the first wrong pixels:

    from exactness import check_flow, check_ids_depth, check_normals, check_shadow_ids
    check_ids_depth(env, rng)

Pixels are drawn at random, evenly over the labels in the picture, so that a leaf is looked at as
often as the ground. At an edge a label may be that of a neighbour within one pixel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval import conventions
from wmeval.assets.meshes import tessellate
from wmeval.scene import Meshes, Scene, Sphere
from wmeval.sim.protocol import RenderState, WorldSpec, render_state
from wmeval.sim.render import labels as derived
from wmeval.sim.render import make_renderer
from wmeval.sim.render.deform import make_deformer
from wmeval.sim.render.pieces import SunRegion, camera_view, compile_pieces
from wmeval.sim.world import LocalWorld

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
SIZE = (320, 176)
PAIRS = 2_000_000
"""Rays times triangles that are looked at together."""


@dataclass(frozen=True, eq=False)
class Hits:
    """Where rays first meet a surface; ``body`` -1 and infinite ``t`` for none.

    Attributes:
        t: (N,) in lengths of the ray's direction.
        body: (N,) index into the scene's bodies.
        normal: (N, 3) of the shading, unit.
    """

    t: F8
    body: I8
    normal: F8


class Surfaces:
    """All visuals of a scene, posed as in one state, for rays.

    Args:
        scene: whose bodies they are.
        meshes: content hash to mesh.
        state: poses.
        want: "opaque", "glass" or "casters" (all that keeps off the sun).
    """

    def __init__(self, scene: Scene, meshes: Meshes, state: RenderState, want: str) -> None:
        looks = {m.name: m for m in scene.materials}
        self.pieces: list[_Ball | _Triangles] = []
        floor = _floor_of(scene, meshes) if want == "casters" else None
        number = -1
        for i, body in enumerate(scene.bodies):
            turn = conventions.quaternion_to_matrix(state.quaternion_wxyz[i])
            if want != "casters" and state.hidden is not None and state.hidden[i]:
                number += len(body.visuals)
                continue
            for visual in body.visuals:
                number += 1
                glass = looks[visual.material].opacity < 1
                if not state.active[i] or glass != (want == "glass") or number == floor:
                    continue
                own = conventions.quaternion_to_matrix(np.array(visual.quaternion_wxyz))
                centre = state.position[i] + turn @ np.array(visual.position)
                shape = visual.shape
                if isinstance(shape, Sphere):
                    self.pieces.append(_Ball(i, centre, shape.radius))
                    continue
                mesh = tessellate(shape, meshes)
                deform = getattr(shape, "deform", None)
                if deform is not None:
                    mesh = make_deformer(deform).mesh(state.modal[deform.modal])
                both = getattr(looks[visual.material], "two_sided", False)
                self.pieces.append(_Triangles.of(i, mesh, turn @ own, centre, both))

    def cast(
        self, origins: F8, rays: F8, *, least: float = 0.0, last: bool = False, backs: bool = False
    ) -> Hits:
        """First (or ``last``) surface that each ray (N, 3) meets from the front, or from behind.

        Args:
            origins: (N, 3) [m].
            rays: (N, 3) directions.
            least: hits nearer than this do not count, in lengths of the ray.
            last: the farthest hit instead of the first.
            backs: surfaces that look along the ray instead of against it.
        """
        n = len(origins)
        best = np.full(n, -np.inf if last else np.inf)
        body, normal = np.full(n, -1), np.zeros((n, 3))
        for piece in self.pieces:
            chosen = piece.near(origins, rays)
            if not len(chosen):
                continue
            for rows, t, normals in piece.meet(origins[chosen], rays[chosen], backs, last, least):
                at = chosen[rows]
                better = t > best[at] if last else t < best[at]
                at = at[better]
                best[at], body[at], normal[at] = t[better], piece.body, normals[better]
        best[body < 0] = np.inf
        length = np.linalg.norm(normal, axis=1, keepdims=True)
        return Hits(best, body, normal / np.maximum(length, 1e-12))


@dataclass(frozen=True, eq=False)
class _Ball:
    body: int
    centre: F8
    radius: float

    def near(self, origins: F8, rays: F8) -> I8:
        return _passing(self.centre, self.radius, origins, rays)

    def meet(
        self, origins: F8, rays: F8, backs: bool, last: bool, least: float
    ) -> Iterator[tuple[I8, F8, F8]]:
        to = origins - self.centre
        a, b = (rays * rays).sum(1), (rays * to).sum(1)
        under = b * b - a * ((to * to).sum(1) - self.radius**2)
        root = np.sqrt(np.maximum(under, 0.0))
        t = (-b + root if backs else -b - root) / a
        rows = np.flatnonzero((under > 0) & (t > least))
        point = to[rows] + rays[rows] * t[rows, None]
        yield rows, t[rows], point / self.radius


@dataclass(frozen=True, eq=False)
class _Triangles:
    body: int
    corner: F8
    normals: F8
    centre: F8
    radius: float
    both: bool

    @staticmethod
    def of(body: int, mesh: Any, turn: F8, centre: F8, both: bool) -> _Triangles:
        points = mesh.vertices.astype(np.float64) @ turn.T + centre
        normals = mesh.normals.astype(np.float64) @ turn.T
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        radius = float(np.linalg.norm(points - middle, axis=1).max())
        return _Triangles(
            body, points[mesh.triangles], normals[mesh.triangles], middle, radius * 1.0001, both
        )

    def near(self, origins: F8, rays: F8) -> I8:
        return _passing(self.centre, self.radius, origins, rays)

    def meet(
        self, origins: F8, rays: F8, backs: bool, last: bool, least: float
    ) -> Iterator[tuple[I8, F8, F8]]:
        a = self.corner[:, 0]
        u, v = self.corner[:, 1] - a, self.corner[:, 2] - a
        facet = np.cross(u, v)
        step = max(1, PAIRS // len(a))
        for start in range(0, len(origins), step):
            o, d = origins[start : start + step], rays[start : start + step]
            # Moller and Trumbore (1997), all pairs; the facet's side first, it sorts out half.
            facing = d @ facet.T
            wanted = np.abs(facing) > 1e-14
            if not self.both:
                wanted &= (facing > 0) if backs else (facing < 0)
            i, j = np.nonzero(wanted & self._crossed(o, d))
            to = o[i] - a[j]
            det = -facing[i, j]
            q = np.cross(to, d[i])
            share_u = (v[j] * q).sum(1) / det
            share_v = -(u[j] * q).sum(1) / det
            t = (to * facet[j]).sum(1) / det
            inside = (share_u >= -1e-9) & (share_v >= -1e-9) & (share_u + share_v <= 1 + 1e-9)
            inside &= t > least
            i, j, t = i[inside], j[inside], t[inside]
            share_u, share_v = share_u[inside, None], share_v[inside, None]
            # One hit for each ray: the first or the last.
            order = np.lexsort((-t if last else t, i))
            order = order[np.flatnonzero(np.diff(i[order], prepend=-1))]
            i, j, t = i[order], j[order], t[order]
            share_u, share_v = share_u[order], share_v[order]
            corner = self.normals[j]
            normal = (
                corner[:, 0] * (1 - share_u - share_v)
                + corner[:, 1] * share_u
                + corner[:, 2] * share_v
            )
            if self.both:
                # The back of a leaf looks the other way.
                turned = (facet[j] * d[i]).sum(1) > 0
                normal[turned] *= -1
            yield i + start, t, normal

    def _crossed(self, origins: F8, rays: F8) -> NDArray[np.bool_]:
        """Pairs (R, T) whose ray may pass the box around the triangle, seen across the rays."""
        if len(self.corner) < 64:
            return np.ones((len(origins), len(self.corner)), bool)
        low, high = self.corner.min(axis=1) - 1e-9, self.corner.max(axis=1) + 1e-9
        out = np.ones((len(origins), len(self.corner)), bool)
        near = np.full(out.shape, -np.inf)
        far = np.full(out.shape, np.inf)
        for k in range(3):
            d = np.where(np.abs(rays[:, k]) < 1e-12, 1e-12, rays[:, k])[:, None]
            t1, t2 = (low[:, k] - origins[:, k, None]) / d, (high[:, k] - origins[:, k, None]) / d
            np.maximum(near, np.minimum(t1, t2), out=near)
            np.minimum(far, np.maximum(t1, t2), out=far)
        return out & (near <= far)


def _passing(centre: F8, radius: float, origins: F8, rays: F8) -> I8:
    """Rays (rows) that pass a ball."""
    to = centre - origins
    along = (to * rays).sum(1) / (rays * rays).sum(1)
    miss = np.linalg.norm(to - along[:, None] * rays, axis=1)
    return np.flatnonzero((miss < radius) & ((along > 0) | (np.linalg.norm(to, axis=1) < radius)))


def _floor_of(scene: Scene, meshes: Meshes) -> int:
    """Number of the visual that casts no shadow: what everything stands on."""
    return compile_pieces(scene, meshes).floor


# --- pictures -----------------------------------------------------------------------------------


class Still:
    """What the checks ask of an environment, of a scene at t = 0 without one."""

    def __init__(self, spec: WorldSpec) -> None:
        self.world_spec = spec
        world = LocalWorld(spec)
        self.log = world.reset()
        world.close()
        self._renderer = make_renderer("raster", spec.scene, spec.meshes)

    @property
    def unwrapped(self) -> Still:
        """Itself."""
        return self

    def camera_index(self, view: str | None = None) -> int:
        """Index of a camera by name; None is the first."""
        names = [c.name for c in self.world_spec.scene.cameras]
        return 0 if view is None else names.index(view)

    def draw(self, layers: Any, *, width: int, height: int, view: Any, log: Any, row: int) -> Any:
        """Layers of a row of a log."""
        scene = self.world_spec.scene
        state = render_state(log, row % len(log), scene, self.camera_index(view))
        return self._renderer.draw(state, width, height, tuple(layers))

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()


class View:
    """One state of an environment through one camera, with its layers and its rays."""

    def __init__(
        self,
        env: Any,
        layers: tuple[str, ...],
        *,
        view: str | None = None,
        size: tuple[int, int] = SIZE,
        log: Any = None,
        row: int = -1,
    ) -> None:
        env = env.unwrapped
        spec = env.world_spec
        self.scene, self.meshes = spec.scene, spec.meshes
        self.width, self.height = size
        self.log = env.log if log is None else log
        self.state = render_state(self.log, row % len(self.log), self.scene, env.camera_index(view))
        self.layers = env.draw(
            layers, width=self.width, height=self.height, view=view, log=self.log, row=row
        )
        self.instance = np.array([b.instance for b in self.scene.bodies] + [0])
        self.K = conventions.intrinsics(self.state.fov_y, self.width, self.height)
        self._surfaces: dict[str, Surfaces] = {}

    def surfaces(self, want: str) -> Surfaces:
        """What rays can meet."""
        if want not in self._surfaces:
            self._surfaces[want] = Surfaces(self.scene, self.meshes, self.state, want)
        return self._surfaces[want]

    def rays(self, pixels: F8) -> tuple[F8, F8]:
        """Origins and directions (N, 3), of unit depth, through points (N, 2) [px]."""
        ends = conventions.unproject(
            pixels, np.ones(len(pixels)), self.K, self.state.T_world_camera
        )
        eye = np.broadcast_to(self.state.T_world_camera[:3, 3], ends.shape)
        return eye, ends - eye

    def see(self, pixels: F8, want: str = "opaque") -> Hits:
        """What is at points (N, 2) [px]; ``t`` is the planar depth [m]."""
        origins, rays = self.rays(pixels)
        hits = self.surfaces(want).cast(origins, rays)
        beyond = hits.t > self.state.far
        t, body, normal = hits.t.copy(), hits.body.copy(), hits.normal.copy()
        t[beyond], body[beyond], normal[beyond] = np.inf, -1, 0
        return Hits(t, body, normal)

    def sample(self, layer: NDArray[Any], rng: np.random.Generator, n: int) -> I8:
        """Rows and columns (n, 2): as many pixels of each value as there are."""
        values = np.unique(layer)
        each = -(-n // len(values))
        picked = []
        for value in values:
            at = np.argwhere(layer == value)
            picked.append(at[rng.permutation(len(at))[:each]])
        out = np.concatenate(picked)
        return out[rng.permutation(len(out))[:n]]


def _around(pixels: F8, *reaches: float) -> F8:
    """Eight points (8 R, N, 2) beside each, at each of R distances."""
    steps = [(x, y) for r in reaches for x in (-r, 0, r) for y in (-r, 0, r) if x or y]
    return pixels[None] + np.array(steps)[:, None]


def _as_deep(t: F8, depth: NDArray[Any]) -> NDArray[np.bool_]:
    """Depths that agree as far as float32 and the mesh of a round thing let them."""
    with np.errstate(invalid="ignore"):
        near = np.abs(t - depth) <= 2e-4 * np.minimum(t, 1e9) + 2e-4
    return np.asarray(near | (np.isinf(t) & np.isinf(depth)))


def _fail(what: str, view: View, at: I8, text: list[str]) -> None:
    lines = [f"  pixel (x {x}, y {y}): {t}" for (y, x), t in zip(at[:5], text[:5], strict=True)]
    raise AssertionError(
        f"{what}: {len(at)} wrong pixels in scene {view.scene.name!r}\n" + "\n".join(lines)
    )


def check_ids_depth(
    env: Any, rng: np.random.Generator, n: int = 400, *, view: str | None = None
) -> int:
    """Ids and planar depth against rays; glass ids, too, where the scene has glass.

    Args:
        env: environment, reset.
        rng: picks the pixels.
        n: how many.
        view: camera; None is the reset's.

    Returns:
        How many pixels were compared at their very centre.
    """
    seen = View(env, ("ids", "depth", "glass_ids"), view=view)
    at = seen.sample(seen.layers["ids"], rng, n)
    pixels = at[:, ::-1] + 0.5
    exact = _compare(seen, at, pixels, "ids", "opaque")
    glass = seen.layers["glass_ids"]
    if glass.any():
        at = seen.sample(glass, rng, n // 2)
        exact += _compare(seen, at, at[:, ::-1] + 0.5, "glass_ids", "glass")
    return exact


def _compare(seen: View, at: I8, pixels: F8, layer: str, want: str) -> int:
    label = seen.layers[layer][at[:, 0], at[:, 1]].astype(int)
    depth = seen.layers["depth"][at[:, 0], at[:, 1]].astype(np.float64)

    def right(hits: Hits, rows: Any) -> NDArray[np.bool_]:
        found = seen.instance[hits.body]
        if want == "glass":
            # Only glass before the opaque surface counts; the nearest.
            found = np.where(hits.t < depth[rows], found, 0)
            return np.asarray(found == label[rows])
        return np.asarray((found == label[rows]) & _as_deep(hits.t, depth[rows]))

    ok = right(seen.see(pixels, want), slice(None))
    exact = int(ok.sum())
    wrong = np.flatnonzero(~ok)
    if not len(wrong):
        return exact
    # Corners are drawn to the nearest 1/256 px: what is thinner than a pixel needs near rays.
    beside = _around(pixels[wrong], 0.01, 0.3, 1.0)
    hits = seen.see(beside.reshape(-1, 2), want)
    found = seen.instance[hits.body].reshape(len(beside), -1)
    t = hits.t.reshape(len(beside), -1)
    if want == "glass":
        good = (found == label[wrong]) | ((label[wrong] == 0) & (t >= depth[wrong]))
    else:
        # Between the depths of the same label around, give or take their spread.
        same = found == label[wrong]
        with np.errstate(invalid="ignore"):
            low = np.where(same, t, np.inf).min(axis=0)
            high = np.where(same, t, -np.inf).max(axis=0)
            slack = (high - low) + 2e-3 * np.abs(low) + 2e-3
            near = (depth[wrong] >= low - slack) & (depth[wrong] <= high + slack)
            near |= np.isinf(depth[wrong]) & np.isinf(low)
        good = same & near
    bad = wrong[~good.any(axis=0)]
    if len(bad):
        hits = seen.see(pixels[bad], want)
        _fail(f"{layer} and depth", seen, at[bad], [
            f"label {label[i]}, depth {depth[i]:.5g}; a ray meets "
            f"{seen.instance[hits.body[k]]} at {hits.t[k]:.5g}"
            for k, i in enumerate(bad)
        ])  # fmt: skip
    # A picture may have many edges, but not only edges.
    assert len(wrong) < 0.5 * len(at), f"{layer}: {len(wrong)} of {len(at)} pixels at edges"
    return exact


def check_normals(
    env: Any, rng: np.random.Generator, n: int = 400, *, view: str | None = None, deg: float = 1.0
) -> int:
    """Normals against rays, within ``deg`` degrees; returns how many pixels were compared."""
    seen = View(env, ("ids", "normals"), view=view)
    ids = seen.layers["ids"]
    at = seen.sample(ids, rng, n)
    hits = seen.see(at[:, ::-1] + 0.5)
    normal = seen.layers["normals"][at[:, 0], at[:, 1]].astype(np.float64)
    nothing = (hits.body < 0) & (ids[at[:, 0], at[:, 1]] == 0)
    sure = (seen.instance[hits.body] == ids[at[:, 0], at[:, 1]]) & (hits.body >= 0)
    off = np.degrees(2 * np.arcsin(np.clip(np.linalg.norm(normal - hits.normal, axis=1) / 2, 0, 1)))
    wrong = np.flatnonzero(sure & (off > deg))
    if len(wrong):
        # At a crease, or between two parts of one body, a neighbour's normal will do.
        beside = seen.see(_around(at[wrong][:, ::-1] + 0.5, 1.0).reshape(-1, 2))
        other = beside.normal.reshape(8, -1, 3)
        away = np.linalg.norm(other - normal[wrong], axis=2).min(axis=0)
        spread = np.linalg.norm(other - hits.normal[wrong], axis=2).max(axis=0)
        wrong = wrong[away > np.maximum(np.radians(deg), 0.5 * spread)]
    if len(wrong):
        _fail("normals", seen, at[wrong], [
            f"{normal[i].round(3).tolist()}; a ray meets {hits.normal[i].round(3).tolist()} of "
            f"{seen.scene.bodies[hits.body[i]].name}" for i in wrong
        ])  # fmt: skip
    lost = nothing & (np.abs(normal).max(axis=1) > 0)
    assert not lost.any(), "a normal where nothing is"
    assert sure.sum() > 0.4 * len(at), f"only {sure.sum()} of {len(at)} pixels are no edges"
    return int(sure.sum())


def check_flow(
    env: Any,
    rng: np.random.Generator,
    n: int = 400,
    *,
    view: str | None = None,
    steps: int = 2,
    px: float = 0.06,
) -> int:
    """Flow over ``steps`` random actions: surface points carried with their bodies, within ``px``.

    What is seen at both instants must have the same id at both ends.

    Returns:
        How many points were followed to where they are seen again.
    """
    a = View(env, ("ids", "depth"), view=view)
    for _ in range(steps):
        env.step(env.action_space.sample())
    b = View(env, ("ids", "depth"), view=view)
    flow = derived.flow(
        a.layers["depth"], a.layers["ids"], a.state, b.state, derived.instances(a.scene)
    )
    at = a.sample(a.layers["ids"], rng, n)
    pixels = at[:, ::-1] + 0.5
    hits = a.see(pixels)
    label = a.layers["ids"][at[:, 0], at[:, 1]]
    near = _as_deep(hits.t, a.layers["depth"][at[:, 0], at[:, 1]])
    sure = np.flatnonzero((a.instance[hits.body] == label) & (hits.body >= 0) & (label > 0) & near)
    assert len(sure) > 0.3 * len(at), f"only {len(sure)} of {len(at)} pixels are no edges"
    body = hits.body[sure]
    origins, rays = a.rays(pixels[sure])
    points = origins + rays * hits.t[sure, None]
    turn_a = conventions.quaternion_to_matrix(a.state.quaternion_wxyz[body])
    turn_b = conventions.quaternion_to_matrix(b.state.quaternion_wxyz[body])
    local = np.einsum("nji,nj->ni", turn_a, points - a.state.position[body])
    moved = np.einsum("nij,nj->ni", turn_b, local) + b.state.position[body]
    expected, depth = conventions.project(moved, b.K, b.state.T_world_camera)
    got = pixels[sure] + flow[at[sure, 0], at[sure, 1]]
    there = b.state.active[body] & (depth > 0)
    assert (np.isfinite(got).all(axis=1) == there)[depth > 1e-3].all(), "flow without a target"
    with np.errstate(invalid="ignore"):
        off = np.linalg.norm(got - expected, axis=1)
        # Depth is float32: near the camera's plane a target is far outside the picture.
        limit = px * np.maximum(1.0, np.abs(expected).max(axis=1) / 1000)
    wrong = np.flatnonzero(there & (off > limit))
    if len(wrong):
        _fail("flow", a, at[sure[wrong]], [
            f"body {a.scene.bodies[body[i]].name} goes to {expected[i].round(3).tolist()}, "
            f"flow leads to {got[i].round(3).tolist()}" for i in wrong
        ])  # fmt: skip
    inside = there & (got > 1).all(axis=1) & (got < np.array([b.width, b.height]) - 1).all(axis=1)
    rows = np.flatnonzero(inside)
    again = b.see(expected[rows])
    seen = rows[(again.body == body[rows]) & (np.abs(again.t - depth[rows]) < 1e-3 * depth[rows])]
    # Only where its pixel's centre shows it, too: it may be thinner than a pixel.
    centre = np.floor(expected[seen]) + 0.5
    seen = seen[b.see(centre).body == body[seen]]
    x, y = np.floor(expected[seen]).astype(int).T
    around = np.stack([
        b.layers["ids"][np.clip(y + j, 0, b.height - 1), np.clip(x + i, 0, b.width - 1)]
        for i in (-1, 0, 1) for j in (-1, 0, 1)
    ])  # fmt: skip
    assert (around == a.instance[body[seen]]).any(axis=0).all(), "ids differ along the flow"
    return len(seen)


def check_shadow_ids(
    env: Any,
    rng: np.random.Generator,
    n: int = 400,
    *,
    view: str | None = None,
    share: float = 0.99,
    texels: float = 2.0,
) -> int:
    """Shadow ids against rays towards the sun; at outlines within ``texels`` of the shadow map.

    Args:
        env: environment, reset.
        rng: picks the pixels.
        n: how many.
        view: camera; None is the reset's.
        share: of the pixels that must be right: thin things may slip through a map of texels.
        texels: of the shadow map, twice the renderer's ``shadow_size`` along a side.

    Returns:
        How many shadowed pixels were compared.
    """
    seen = View(env, ("ids", "normals", "shadow_ids"), view=view)
    label_map = seen.layers["shadow_ids"]
    at = np.concatenate(
        [seen.sample(label_map, rng, n // 2), seen.sample(seen.layers["ids"], rng, n // 2)]
    )
    label = label_map[at[:, 0], at[:, 1]].astype(int)
    to_sun = -seen.state.sun_direction / np.linalg.norm(seen.state.sun_direction)
    if to_sun[2] < 1e-6:
        assert not label_map.any(), "shadows at night"
        return 0
    pixels = at[:, ::-1] + 0.5
    hits = seen.see(pixels)
    sure = np.flatnonzero(
        (seen.instance[hits.body] == seen.layers["ids"][at[:, 0], at[:, 1]]) & (hits.body >= 0)
    )
    region = SunRegion.of(seen.scene, compile_pieces(seen.scene, seen.meshes))
    sun = region.view(seen.state.sun_direction, camera_view(seen.state, *SIZE), 2048)
    origins, rays = seen.rays(pixels[sure])
    points = origins + rays * hits.t[sure, None]
    in_map = points @ sun.rows[:, :3].T + sun.rows[:, 3]
    kept = (in_map[:, :2] > 0.01).all(axis=1) & (in_map[:, :2] < 0.99).all(axis=1)
    sure, points = sure[kept], points[kept]
    # The side of the sun by the picture's own normal: at a crease a ray may meet the next face.
    facing = seen.layers["normals"][at[sure, 0], at[sure, 1]].astype(np.float64) @ to_sun
    # Turned away: never named. (Within a degree of the edge of light anything may be.)
    away = facing < -0.02
    assert (label[sure[away]] == 0).all(), "a shadow on what is turned from the sun"
    sunward = facing > 0.02
    sure, points = sure[sunward], points[sunward]
    casters = seen.surfaces("casters")

    def named(start: F8) -> I8:
        toward = np.broadcast_to(to_sun, start.shape)
        # Maps hold what looks away from the sun, from here its front; the nearest to it counts.
        found = casters.cast(start, toward, least=1e-4, last=True)
        return np.asarray(seen.instance[found.body])

    right = named(points) == label[sure]
    wrong = np.flatnonzero(~right)
    if len(wrong):
        step = texels * sun.texel
        x, y = (r / np.linalg.norm(r) for r in sun.rows[:2, :3])
        # Beside in the map, and beside in the picture.
        grid = (-1.0, -0.5, 0.0, 0.5, 1.0)
        beside = [points[wrong] + step * (i * x + j * y) for i in grid for j in grid]
        other_pixels = _around(pixels[sure[wrong]], 1.0)
        for other in other_pixels:
            found = seen.see(other)
            o, r = seen.rays(other)
            near = np.where(np.isfinite(found.t), found.t, 0.0)
            beside.append(
                np.where((found.body >= 0)[:, None], o + r * near[:, None], points[wrong])
            )
        names = named(np.concatenate(beside)).reshape(len(beside), -1)
        good = (names == label[sure[wrong]]).any(axis=0)
        right[wrong[good]] = True
        wrong = wrong[~good]
    # Few pixels may lie in shadow: those that do must not hide among the lit ones.
    dark = named(points) > 0
    missed = (dark & ~right).sum() > max(0.3 * dark.sum(), 1)
    if len(wrong) > (1 - share) * len(sure) or missed:
        found = named(points[wrong])
        _fail(f"shadow ids ({len(sure)} compared)", seen, at[sure[wrong]], [
            f"label {label[i]} on {seen.instance[hits.body[i]]}; towards the sun: {found[k]}"
            for k, i in enumerate(sure[wrong])
        ])  # fmt: skip
    return int((label[sure] > 0).sum())

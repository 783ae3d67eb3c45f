"""Elastic solids by Genesis' material points (explicit, corotated).

Particles lie on a lattice that fills the solid; our vertices are where the particles about them
say, by weights that are exact wherever the solid is deformed evenly. Genesis gives particles no
hard hold: those next to pinned vertices are drawn to their places by critically damped springs,
which can only be as stiff as a substep allows for their mass, so they are made `_HEAVY` times as
heavy, and then hold what is beside them. Within about a cell of the grid, 1 / ``grid_density`` m, a
solid moves as if it were stiff there.

There are as many substeps as keep a pressure wave below ``courant`` cells in each; at two cells
foam flies apart.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.deformables import RestShape, tetrahedron_volumes
from wmeval.errors import UserError
from wmeval.scene import Block, Scene, Soft
from wmeval.sim.engines.genesis_bending import F8, I8, Bent, Where, write_surface
from wmeval.sim.engines.pins import Pinned

OPTIONS = {
    # option: (default, least, greatest)
    "grid_density": (64.0, 8.0, 1024.0),
    "particle_spacing": (0.0, 0.0, 1.0),
    "courant": (0.8, 0.01, 1.2),
}
_REFERENCE = 0.01 * 64.0
"""Spacing of particles times density of the grid, where nothing is said: Genesis' own."""
_HEAVY = 1000.0
_NEAR = 24
"""Particles that tell where a vertex is."""
_HELD = 0.5
"""Share of pinned vertices in a particle's place from which it is held."""
_LEAST = 1e-6
"""Share from which it is held where none has that much: the layer next to what is pinned, where
particles are farther apart than vertices."""
_MOST_SUBSTEPS = 500
_ROOM = 0.12
"""Bounds of the grid beyond the solids at rest [m]."""
_PADDING = 4


def wave_speed(item: Soft) -> float:
    """Of pressure waves [m/s]."""
    young, nu = item.youngs_modulus, item.poisson_ratio
    return math.sqrt(young * (1 - nu) / ((1 + nu) * (1 - 2 * nu)) / item.density)


def lattice(item: Soft, rest: RestShape, spacing: float) -> tuple[F8, float]:
    """Particles (N, 3) [m] that fill a solid at rest, and the volume [m^3] of each.

    Raises:
        UserError: there is no room for one.
    """
    turn = quaternion_to_matrix(np.array(item.quaternion_wxyz))
    local = (rest.vertices - np.array(item.position)) @ turn
    low, span = local.min(axis=0), np.ptp(local, axis=0)
    counts = np.maximum(1, np.round(span / spacing)).astype(int)
    steps = [(np.arange(n) + 0.5) / n for n in counts.tolist()]
    grid = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 3)
    points = (low + grid * span) @ turn.T + np.array(item.position)
    if not isinstance(item.volume, Block):
        inside, _ = located(points, rest)
        points = points[inside >= 0]
        if not len(points):
            raise UserError(
                f"soft {item.name!r} has no room for particles {spacing:.3g} m apart: take a "
                "smaller particle_spacing"
            )
    volume = float(np.abs(tetrahedron_volumes(rest.vertices, rest.tetrahedra)).sum())
    return points, volume / len(points)


def located(points: F8, rest: RestShape) -> tuple[I8, F8]:
    """The tetrahedron that each point is in (N,), -1 for none, and its weights (N, 4)."""
    corners = rest.vertices[rest.tetrahedra]
    inverse = np.linalg.inv(np.swapaxes(corners[:, :3] - corners[:, 3:], 1, 2))
    found = np.full(len(points), -1, np.int64)
    weights = np.zeros((len(points), 4))
    for k, point in enumerate(points):
        three = np.einsum("eij,ej->ei", inverse, point - corners[:, 3])
        all_four = np.concatenate([three, 1 - three.sum(axis=1, keepdims=True)], axis=1)
        best = int(np.argmax(all_four.min(axis=1)))
        if all_four[best].min() > -1e-9:
            found[k], weights[k] = best, all_four[best]
    return found, weights


def next_to(share: F8) -> NDArray[np.intp]:
    """Particles that are held, of those whose places are by these shares pinned vertices'."""
    return np.flatnonzero(share >= (_HELD if share.max(initial=0.0) >= _HELD else _LEAST))


def carriers(vertices: F8, particles: F8) -> tuple[I8, F8]:
    """Which particles (V, k) tell where each vertex is, and their weights (V, k).

    The smallest weights of which the sum is one and the weighted place is the vertex's: they carry
    it along exactly with every affine motion.
    """
    near = min(_NEAR, len(particles))
    chosen = np.empty((len(vertices), near), np.int64)
    weights = np.empty((len(vertices), near))
    for k, vertex in enumerate(vertices):
        apart = ((particles - vertex) ** 2).sum(axis=1)
        chosen[k] = np.argsort(apart, kind="stable")[:near]
        scale = math.sqrt(float(apart[chosen[k]].max())) or 1.0
        rows = np.vstack([np.ones(near), (particles[chosen[k]] - vertex).T / scale])
        weights[k] = np.linalg.pinv(rows) @ np.array([1.0, 0.0, 0.0, 0.0])
    return chosen, weights


class Points:
    """All solids of a scene, by material points."""

    def __init__(
        self,
        genesis: Any,
        scene: Scene,
        items: Sequence[Bent],
        numbers: Mapping[str, float],
        dt: float,
        dynamic: set[int],
    ) -> None:
        """Choose the numbers and place the particles.

        Args:
            genesis: the library.
            scene: where everything is at t = 0.
            items: each a `Soft`.
            numbers: options.
            dt: step [s].
            dynamic: bodies that nobody leads.

        Raises:
            UserError: a pin to one of those, a solid too thin, or too many substeps.
        """
        self._gs, self._items, self._dt = genesis, items, dt
        self._density = numbers["grid_density"]
        spacing = numbers["particle_spacing"] or _REFERENCE / self._density
        solids = [b.item for b in items if isinstance(b.item, Soft)]
        fastest = max(solids, key=wave_speed)
        courant = wave_speed(fastest) * dt * self._density
        self.substeps = max(int(numbers["substeps"]), math.ceil(courant / numbers["courant"]))
        if self.substeps > _MOST_SUBSTEPS:
            raise UserError(
                f"soft {fastest.name!r} carries waves at {wave_speed(fastest):.0f} m/s: {dt:.3g} s "
                f"on a grid of {1 / self._density:.3g} m would take {self.substeps} substeps of at "
                f"most {_MOST_SUBSTEPS}: take a smaller dt or volume fem"
            )
        for bent in items:
            for pin in bent.pins:
                if pin.body in dynamic:
                    raise UserError(
                        f"soft {bent.item.name!r} is pinned to the dynamic body "
                        f"{scene.bodies[pin.body].name!r}: engine genesis' particles pin to "
                        "bodies that a driver moves; take volume fem"
                    )
        self._made = [_Filled(scene, b, spacing) for b in items]
        self._volume = self._made[0].volume
        everything = np.concatenate([b.rest.vertices for b in items])
        room = _ROOM + _PADDING / self._density
        self._low, self._high = everything.min(axis=0) - room, everything.max(axis=0) + room

    def scene_options(self) -> dict[str, Any]:
        """Of the material point solver."""
        return {
            "mpm_options": self._gs.options.MPMOptions(
                particle_size=self._volume ** (1 / 3),
                grid_density=self._density,
                lower_bound=tuple(self._low.tolist()),
                upper_bound=tuple(self._high.tolist()),
            )
        }

    def add(self, world: Any, folder: Path) -> None:
        """Add every solid as its particles."""
        gs = self._gs
        for k, (bent, filled) in enumerate(zip(self._items, self._made, strict=True)):
            item = bent.item
            assert isinstance(item, Soft)
            path = folder / f"points_{k}.obj"
            write_surface(path, bent.rest.vertices, bent.rest.triangles)
            # Particles of all solids have one volume to Genesis.
            share = filled.volume / self._volume
            with _particles(filled.particles):
                filled.entity = world.add_entity(
                    gs.morphs.Mesh(file=str(path)),
                    material=gs.materials.MPM.Elastic(
                        E=item.youngs_modulus * share,
                        nu=item.poisson_ratio,
                        rho=item.density * share,
                        model="corotation",
                    ),
                )

    def begin(self, links: Mapping[int, Any]) -> None:
        """Hold what is pinned."""
        del links
        solver = self._made[0].entity.solver
        if any(len(f.held) for f in self._made):
            solver.init_constraints()
        for filled in self._made:
            filled.begin(self._dt / self.substeps, solver)

    def lead(self, where: Where) -> None:
        """What is held is drawn to where its body will be."""
        for filled in self._made:
            filled.lead(where, self._dt)

    def pulls(self, gravity: F8, bodies: Container[int]) -> list[tuple[Pinned, F8, F8]]:
        """Nothing: solids are held by what a driver leads."""
        del gravity, bodies
        return []

    def vertices(self) -> dict[str, F8]:
        """Vertices (V, 3) [m] by name."""
        return {f.name: f.vertices() for f in self._made}


class _Filled:
    """One solid's particles, in Genesis' hands once added."""

    def __init__(self, scene: Scene, bent: Bent, spacing: float) -> None:
        item, rest = bent.item, bent.rest
        assert isinstance(item, Soft)
        self.name, self._item = item.name, item
        self.particles, self.volume = lattice(item, rest, spacing)
        self._chosen, self._weights = carriers(rest.vertices, self.particles)
        self.entity: Any = None
        inside, weights = located(self.particles, rest)
        corners = rest.tetrahedra[inside]
        self._pins: list[Pinned] = []
        for pin in bent.pins:
            share = (weights * np.isin(corners, pin.vertices)).sum(axis=1)
            numbers = next_to(share)
            if not len(numbers):
                raise UserError(
                    f"soft {item.name!r}: no particle is near what is pinned: take a smaller "
                    "particle_spacing"
                )
            self._pins.append(_held(scene, pin.body, numbers, self.particles[numbers]))
        taken = [p.vertices for p in self._pins]
        self.held: I8 = np.concatenate(taken).astype(np.int64) if taken else np.zeros(0, np.int64)
        self._before: F8 | None = None

    def begin(self, substep: float, solver: Any) -> None:
        entity = self.entity
        if any(self._item.linear_velocity):
            entity.set_velocity(np.array(self._item.linear_velocity))
        self._solver, self._rows = solver, self.held + entity.particle_start
        if not len(self.held):
            return
        masses = solver.particles_info.mass.to_numpy()
        masses[self._rows] *= _HEAVY
        solver.particles_info.mass.from_numpy(masses)
        constraints = solver.particle_constraints
        # A critically damped spring of half a substep's rate: it gains a quarter in each.
        mass = self._item.density * self.volume * _HEAVY
        self._lag = 4.0 * substep
        stiff = mass / (2.0 * substep) ** 2
        for field, value in ((constraints.is_constrained, True), (constraints.stiffness, stiff)):
            numbers = field.to_numpy()
            numbers[self._rows] = value
            field.from_numpy(numbers)

    def lead(self, where: Where, dt: float) -> None:
        if not len(self.held):
            return
        places = np.concatenate([where(pin) for pin in self._pins])
        speed = 0.0 if self._before is None else (places - self._before) / dt
        self._before = places
        field = self._solver.particle_constraints.target_pos
        targets = field.to_numpy()
        # The springs' damping is against standing still, by which they would lag.
        targets[self._rows, 0] = places + self._lag * speed
        field.from_numpy(targets)

    def vertices(self) -> F8:
        places = np.asarray(self.entity.get_particles_pos(), np.float64).reshape(-1, 3)
        return np.asarray(np.einsum("vk,vkj->vj", self._weights, places[self._chosen]))


def _held(scene: Scene, body: int | None, numbers: NDArray[np.intp], places: F8) -> Pinned:
    """Particles that follow a body rigidly."""
    if body is None:
        return Pinned(numbers, None, places)
    one = scene.bodies[body]
    turn = quaternion_to_matrix(np.array(one.quaternion_wxyz))
    return Pinned(numbers, body, (places - np.array(one.position)) @ turn)


@contextlib.contextmanager
def _particles(points: F8) -> Iterator[None]:
    """Genesis fills a surface with particles, some at random: give it those of a lattice."""
    from genesis.engine.mesh import Mesh

    before = Mesh.particlize
    Mesh.particlize = lambda self, *args, **kwargs: points.copy()
    try:
        yield
    finally:
        Mesh.particlize = before


__all__ = ["OPTIONS", "Points", "carriers", "lattice", "located", "wave_speed"]

"""Elastic solids by Genesis' implicit finite elements (linear, corotated).

The elements are ours: Genesis would fill the surface with tetrahedra of its own. One Newton step a
substep from the rotations of the last, solved by conjugate gradients until the squared residual is
below ``pcg_threshold`` [N^2]. What is pinned is where its body will be when the step is over; a
dynamic body is pulled by what it holds: the elements' forces and the weight at the pinned vertices.

Genesis' own damping is off (its defaults resist all motion, and that of grips twice over);
``damping_alpha`` [1/s] brings the mass-proportional one back, and a solid's ``damping`` [s] is the
stiffness-proportional one. Rigid bodies push on surface vertices, with friction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wmeval.errors import UserError
from wmeval.scene import Soft
from wmeval.sim.engines.genesis_bending import (
    F8,
    I8,
    Bent,
    Where,
    matched,
    pinned_numbers,
    write_surface,
)
from wmeval.sim.engines.pins import Pinned

OPTIONS = {
    # option: (default, least, greatest)
    "newton_iterations": (1, 1, 50),
    "pcg_iterations": (500, 1, 10000),
    "pcg_threshold": (1e-10, 1e-30, 1.0),
    "damping_alpha": (0.0, 0.0, 1e4),
}
_LOOKS = 8
"""Iterations of conjugate gradients between two looks at whether they are done."""
_NO_FLOOR = -1e3
_AHEAD = 1.5
"""Steps ahead at which what pulls a free body is taken: elements take their rotations from the step
before, and what they say late would shake the body up."""


class Solids:
    """All solids of a scene, by finite elements."""

    def __init__(
        self, genesis: Any, items: Sequence[Bent], numbers: Mapping[str, float], dt: float
    ) -> None:
        """Choose the numbers.

        Args:
            genesis: the library.
            items: each a `Soft`.
            numbers: options.
            dt: step [s].

        Raises:
            UserError: solids of different damping.
        """
        dampings = {b.item.damping for b in items}
        if len(dampings) > 1:
            raise UserError(
                "engine genesis has one damping for all solids; they have "
                + ", ".join(f"{d:g}" for d in sorted(dampings))
            )
        self._gs, self._items, self._numbers, self._dt = genesis, items, numbers, dt
        self._damping = dampings.pop()
        self._made: list[_Solid] = []
        self.substeps = 1

    def scene_options(self) -> dict[str, Any]:
        """Of the finite element solver."""
        return {
            "fem_options": self._gs.options.FEMOptions(
                floor_height=_NO_FLOOR,
                use_implicit_solver=True,
                enable_vertex_constraints=True,
                n_newton_iterations=int(self._numbers["newton_iterations"]),
                n_pcg_iterations=int(self._numbers["pcg_iterations"]),
                pcg_threshold=self._numbers["pcg_threshold"],
                damping_alpha=self._numbers["damping_alpha"],
                damping_beta=self._damping,
            )
        }

    def add(self, world: Any, folder: Path) -> None:
        """Add every solid, in its own tetrahedra."""
        gs = self._gs
        for k, bent in enumerate(self._items):
            item = bent.item
            assert isinstance(item, Soft)
            path = folder / f"solid_{k}.obj"
            write_surface(path, bent.rest.vertices, bent.rest.triangles)
            with _elements(bent):
                entity = world.add_entity(
                    gs.morphs.Mesh(file=str(path)),
                    material=gs.materials.FEM.Elastic(
                        E=item.youngs_modulus,
                        nu=item.poisson_ratio,
                        rho=item.density,
                        friction_mu=item.friction**2,
                        model="linear_corotated",
                    ),
                )
            self._made.append(_Solid(gs, bent, entity))

    def begin(self, links: Mapping[int, Any]) -> None:
        """Match vertices, hold what is pinned."""
        del links
        for solid in self._made:
            solid.begin()
        _stop_when_done(self._made[0].entity.solver)

    def lead(self, where: Where) -> None:
        """What is pinned will be where its body will be."""
        for solid in self._made:
            solid.lead(where)

    def pulls(self, gravity: F8, bodies: Container[int]) -> list[tuple[Pinned, F8, F8]]:
        """Forces [N] (n, 3) on vertices of pins to ``bodies``, with where they are (n, 3) [m]."""
        return [row for solid in self._made for row in solid.pulls(gravity, bodies)]

    def vertices(self) -> dict[str, F8]:
        """Vertices (V, 3) [m] by name."""
        return {s.bent.item.name: s.vertices() for s in self._made}


class _Solid:
    """One solid in Genesis' hands."""

    def __init__(self, genesis: Any, bent: Bent, entity: Any) -> None:
        self._gs, self.bent, self.entity = genesis, bent, entity
        self._past: F8 | None = None

    def begin(self) -> None:
        bent, entity, solver = self.bent, self.entity, self.entity.solver
        self._shape = (1, solver.n_vertices, 3)
        self._elements = solver.n_elements
        first = entity.v_start
        theirs = np.asarray(self._all(), np.float64)[first : first + entity.n_vertices]
        self.order: I8 = matched(bent.item.name, bent.rest.vertices, theirs)
        self._held = self.order[pinned_numbers(bent.pins)]
        if any(bent.item.linear_velocity):
            entity.set_velocity(np.array(bent.item.linear_velocity))
        if len(self._held):
            entity.set_vertex_constraints(self._held)

    def _all(self) -> F8:
        import torch

        solver, gs = self.entity.solver, self._gs
        places = torch.zeros(self._shape, dtype=gs.tc_float)
        active = torch.zeros((1, self._elements), dtype=gs.tc_int)
        solver._kernel_get_state(
            self.entity.sim.cur_substep_local, places, torch.zeros_like(places), active
        )
        return np.asarray(places[0], np.float64)

    def vertices(self) -> F8:
        return np.asarray(self._all()[self.entity.v_start + self.order])

    def lead(self, where: Where) -> None:
        if len(self._held):
            places = np.concatenate([where(pin) for pin in self.bent.pins])
            self.entity.update_constraint_targets(self._held, places)

    def pulls(self, gravity: F8, bodies: Container[int]) -> list[tuple[Pinned, F8, F8]]:
        pins = [p for p in self.bent.pins if p.body is not None and p.body in bodies]
        if not pins:
            return []
        item, now = self.bent.item, self.vertices()
        assert isinstance(item, Soft)
        ahead = now if self._past is None else now + _AHEAD * (now - self._past)
        self._past = now
        forces = element_forces(item, self.bent.rest.vertices, ahead, self.bent.rest.tetrahedra)
        forces += vertex_masses(item, self.bent.rest.vertices, self.bent.rest.tetrahedra) * gravity
        return [(p, now[p.vertices], forces[p.vertices]) for p in pins]


def _frames(points: F8, tetrahedra: Any) -> F8:
    """Edges of tetrahedra (E, 3, 3) from their last corner, as columns [m]."""
    corners = points[tetrahedra]
    return np.asarray(np.swapaxes(corners[:, :3] - corners[:, 3:], 1, 2))


def vertex_masses(item: Soft, rest: F8, tetrahedra: Any) -> F8:
    """(V, 1) [kg]: a quarter of each element about a vertex."""
    volumes = np.abs(np.linalg.det(_frames(rest, tetrahedra))) / 6.0
    quarters = np.repeat(item.density * volumes / 4.0, 4)
    return np.asarray(np.bincount(tetrahedra.ravel(), quarters, len(rest)), np.float64)[:, None]


def element_forces(item: Soft, rest: F8, now: F8, tetrahedra: Any) -> F8:
    """Elastic forces (V, 3) [N] of linear corotated tetrahedra, as Genesis' (Mueller 2004).

    Args:
        item: whose moduli.
        rest: (V, 3) [m] without stress.
        now: (V, 3) [m].
        tetrahedra: (E, 4).
    """
    young, nu = item.youngs_modulus, item.poisson_ratio
    mu, lam = young / (2 * (1 + nu)), young * nu / ((1 + nu) * (1 - 2 * nu))
    flat = _frames(rest, tetrahedra)
    inverse = np.linalg.inv(flat)
    bent = _frames(now, tetrahedra) @ inverse
    left, _, right = np.linalg.svd(bent)
    turn = left @ right
    unturned = np.swapaxes(turn, 1, 2) @ bent
    strain = (unturned + np.swapaxes(unturned, 1, 2)) / 2 - np.eye(3)
    trace = np.einsum("eii->e", strain)[:, None, None]
    stress = turn @ (2 * mu * strain + lam * trace * np.eye(3))
    volumes = np.abs(np.linalg.det(flat))[:, None, None] / 6.0
    on_three = -volumes * stress @ np.swapaxes(inverse, 1, 2)
    out = np.zeros_like(now)
    for k in range(3):
        np.add.at(out, tetrahedra[:, k], on_three[:, :, k])
        np.subtract.at(out, tetrahedra[:, 3], on_three[:, :, k])
    return out


def _stop_when_done(solver: Any) -> None:
    """Genesis runs all iterations of conjugate gradients, idle ones too: leave those out."""
    most = solver._n_pcg_iterations

    def solve() -> None:
        solver.init_pcg_solve()
        for k in range(most):
            if k % _LOOKS == 0 and not solver.batch_pcg_active[0]:
                return
            solver.one_pcg_iter()

    solver.pcg_solve = solve


@contextlib.contextmanager
def _elements(bent: Bent) -> Iterator[None]:
    """Genesis fills a surface with tetrahedra: give it those of a solid."""
    from genesis.engine.entities import fem_entity

    elements = fem_entity.eu
    made, split = elements.mesh_to_elements, elements.split_all_surface_tets
    rest = bent.rest
    elements.mesh_to_elements = lambda *args, **kwargs: (
        rest.vertices.copy(),
        rest.tetrahedra.astype(np.int64),
    )
    elements.split_all_surface_tets = lambda vertices, tetrahedra: (vertices, tetrahedra)
    try:
        yield
    finally:
        elements.mesh_to_elements, elements.split_all_surface_tets = made, split


__all__ = ["OPTIONS", "Solids", "element_forces", "vertex_masses"]

"""Cloth by Genesis' position-based dynamics.

A step of Genesis predicts where particles fly, and then corrects the lengths of edges and the
angles between triangles some times over. A correction is the same in every iteration, with nothing
remembered, so an edge whose ends have the inverse masses w1, w2 acts as a spring of

    k = n r / (a + (w1 + w2) h^2)

with n iterations, relaxation r, compliance a and substep h: by its compliance alone it does not
know how stiff it is. Choice ``textile`` says what is done:

- "mapping" (default): Genesis as it is: compliances 1 / K_s and 1 / K_theta for every edge and
  hinge (GAUGE, eq. 8), all particles of one mass, four iterations by relaxation 0.3, air drag.
- "network": the compliance of each edge is such that k above is the spring of a lattice which has
  the cloth's stretch and shear stiffness; hinges are corrected by as much as a spring of the
  cloth's bending stiffness would turn them in a substep; a vertex has the mass of what is about it;
  no air. There are as many substeps as the stiffest edge needs.

Genesis' bending compliance has no linear regime: the term that it is added to vanishes with the
angle squared, so that a flat sheet has no bending stiffness whatever the compliance. Cloth touches
rigid bodies without friction. It would also be cut into other triangles: here it keeps its own.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_mapping import genesis_textile
from wmeval.deformables import mean_edge
from wmeval.errors import UserError
from wmeval.scene import Cloth
from wmeval.sim.engines.genesis_bending import (
    F8,
    I8,
    Bent,
    NowhereError,
    Where,
    matched,
    pinned_numbers,
    write_surface,
)
from wmeval.sim.engines.genesis_network import Network, hinge_steepness, network
from wmeval.sim.engines.pins import Pinned

OPTIONS = {
    # option: (default, least, greatest)
    "stretch_iterations": (4, 1, 32),
    "bending_iterations": (1, 1, 32),
    "stretch_relaxation": (0.3, 1e-6, 1.0),
    "bending_relaxation": (0.1, 0.0, 1.0),
    "air_resistance": (1e-3, 0.0, 1e3),
    "particle_size": (0.0, 0.0, 1.0),
}
CHOICES = {"textile": ("mapping", "network")}
_NO_COMPLIANCE = 1e-30
"""Of hinges: not zero, since Genesis divides by it where a sheet is flat."""
_MOST_RELAXATION = 0.3
"""Of hinges, which share vertices with many others."""
_MOST_SUBSTEPS = 500
_ROOM = 1.0
"""Bounds of the world beyond where cloth and bodies begin [m]; beyond them nothing goes."""
_CELLS = 16
"""Of the table in which particles are looked up, along each axis; it repeats beyond."""


class Cloths:
    """All cloth of a scene."""

    def __init__(
        self,
        genesis: Any,
        items: Sequence[Bent],
        numbers: Mapping[str, float],
        words: Mapping[str, str],
        dt: float,
        corners: F8,
    ) -> None:
        """Choose the numbers.

        Args:
            genesis: the library.
            items: each a `Cloth`.
            numbers: options.
            words: choices.
            dt: step [s].
            corners: (N, 3) of what is in the world besides [m].

        Raises:
            UserError: a cloth that the choice cannot be of.
        """
        self._gs, self._items, self._numbers = genesis, items, numbers
        self._network = words["textile"] == "network"
        self._made: list[_Sheet] = []
        cloths = [b.item for b in items]
        self._dt = dt
        self._iterations = int(numbers["stretch_iterations"])
        self.substeps = int(numbers["substeps"])
        self._networks: list[Network] = []
        if self._network:
            self._networks = [network(c, b.rest) for c, b in zip(cloths, items, strict=True)]  # type: ignore[arg-type]
            longest = min(
                n.longest_substep(self._iterations, numbers["stretch_relaxation"])
                for n in self._networks
            )
            self.substeps = max(self.substeps, math.ceil(dt / longest))
            if self.substeps > _MOST_SUBSTEPS:
                raise UserError(
                    f"cloth {items[0].item.name!r} needs {self.substeps} substeps of "
                    f"{longest:.2g} s in a step of {dt:.3g} s; at most {_MOST_SUBSTEPS}: take a "
                    "smaller dt or more stretch_iterations"
                )
        self._size = numbers["particle_size"] or min(c.thickness for c in cloths)  # type: ignore[union-attr]
        everything = np.concatenate([corners, *(b.rest.vertices for b in items)])
        self._low, self._high = everything.min(axis=0) - _ROOM, everything.max(axis=0) + _ROOM

    def scene_options(self) -> dict[str, Any]:
        """Of the position-based solver."""
        cell = max(1.25 * self._size, min(mean_edge(b.rest) for b in self._items))
        return {
            "pbd_options": self._gs.options.PBDOptions(
                particle_size=self._size,
                lower_bound=tuple(self._low.tolist()),
                upper_bound=tuple(self._high.tolist()),
                hash_grid_cell_size=cell,
                hash_grid_res=(_CELLS * cell,) * 3,
                max_stretch_solver_iterations=self._iterations,
                max_bending_solver_iterations=int(self._numbers["bending_iterations"]),
            )
        }

    def add(self, world: Any, folder: Path) -> None:
        """Add every cloth, in its own triangles."""
        gs, numbers = self._gs, self._numbers
        with _unchanged_meshes():
            for k, bent in enumerate(self._items):
                item = bent.item
                assert isinstance(item, Cloth)
                path = folder / f"cloth_{k}.obj"
                write_surface(path, bent.rest.vertices, bent.rest.triangles)
                mapped = genesis_textile(stretch=item.stretch, hinge=max(item.bending, 1e-12))
                entity = world.add_entity(
                    gs.morphs.Mesh(file=str(path)),
                    material=gs.materials.PBD.Cloth(
                        rho=item.areal_density,
                        static_friction=item.friction**2,
                        kinetic_friction=item.friction**2,
                        stretch_compliance=mapped.stretch_compliance,
                        bending_compliance=mapped.bending_compliance,
                        stretch_relaxation=numbers["stretch_relaxation"],
                        bending_relaxation=numbers["bending_relaxation"],
                        air_resistance=0.0 if self._network else numbers["air_resistance"],
                    ),
                )
                self._made.append(_Sheet(self._gs, bent, entity))

    def begin(self, links: Mapping[int, Any]) -> None:
        """Match vertices, hold what is pinned, write the network."""
        del links
        if not any(b.item.self_contact for b in self._items if isinstance(b.item, Cloth)):
            _without_neighbours(self._made[0].entity.solver)
        _checked(self._made[0].entity.solver, self._items[0].item.name)
        for k, sheet in enumerate(self._made):
            sheet.begin()
            if self._network:
                self._write(sheet, self._networks[k])

    def _write(self, sheet: _Sheet, net: Network) -> None:
        """Compliance of edges, relaxation of hinges, masses: where Genesis has its own."""
        item, rest, entity = sheet.bent.item, sheet.bent.rest, sheet.entity
        assert isinstance(item, Cloth)
        solver, h = entity.solver, self._dt / self.substeps
        mine = np.empty(entity.n_particles, np.int64)
        mine[sheet.order] = np.arange(len(sheet.order))
        held = set(pinned_numbers(sheet.bent.pins).tolist())
        inverse = 1.0 / net.masses
        inverse[list(held)] = 0.0
        first = entity.particle_start
        _fill(solver.particles_info.mass, first, net.masses[mine])

        ends = np.sort(mine[np.asarray(entity.edges, np.int64)], axis=1)
        number = {(a, b): k for k, (a, b) in enumerate(net.edges.tolist())}
        springs = net.springs[[number[a, b] for a, b in ends.tolist()]]
        relaxation = self._numbers["stretch_relaxation"]
        compliance = self._iterations * relaxation / springs - inverse[ends].sum(axis=1) * h**2
        _fill(solver.edges_info.stretch_compliance, entity._edge_start, np.maximum(compliance, 0.0))

        hinges = mine[np.asarray(entity._inner_edges, np.int64)]
        steep = hinge_steepness(rest.vertices, hinges, inverse)
        passes = int(self._numbers["bending_iterations"])
        turned = np.minimum(item.bending * h**2 * steep / passes, _MOST_RELAXATION)
        _fill(solver.inner_edges_info.bending_relaxation, entity._inner_edge_start, turned)
        none = np.full(len(hinges), _NO_COMPLIANCE)
        _fill(solver.inner_edges_info.bending_compliance, entity._inner_edge_start, none)

    def lead(self, where: Where) -> None:
        """What is pinned flies to where it will be."""
        for sheet in self._made:
            sheet.lead(where, self._dt)

    def pulls(self, gravity: F8, bodies: Container[int]) -> list[tuple[Pinned, F8, F8]]:
        """Nothing: cloth is held by what a driver leads."""
        del gravity, bodies
        return []

    def vertices(self) -> dict[str, F8]:
        """Vertices (V, 3) [m] by name."""
        return {s.bent.item.name: s.vertices() for s in self._made}


class _Sheet:
    """One cloth in Genesis' hands."""

    def __init__(self, genesis: Any, bent: Bent, entity: Any) -> None:
        self._gs, self.bent, self.entity = genesis, bent, entity
        self.order: I8 = np.zeros(0, np.int64)

    def begin(self) -> None:
        import torch

        bent, entity = self.bent, self.entity
        self.order = matched(bent.item.name, bent.rest.vertices, self._all())
        held = pinned_numbers(bent.pins)
        self._held = self.order[held]
        self._numbers: Any = None
        self._environment = entity._scene._sanitize_envs_idx(None)
        if any(bent.item.linear_velocity):
            entity.set_particles_vel(np.tile(bent.item.linear_velocity, (len(self.order), 1)))
        if len(held):
            entity.fix_particles(self._held)
            self._numbers = torch.as_tensor(
                self._held[None] + entity.particle_start, dtype=self._gs.tc_int
            )

    def _all(self) -> F8:
        return np.asarray(self.entity.get_particles_pos(), np.float64).reshape(-1, 3)

    def vertices(self) -> F8:
        return self._all()[self.order]

    def lead(self, where: Where, dt: float) -> None:
        import torch

        if self._numbers is None:
            return
        places = np.concatenate([where(pin) for pin in self.bent.pins])
        speed = (places - self._all()[self._held]) / dt
        self.entity.solver._kernel_set_particles_vel(
            self._numbers, self._environment,
            torch.as_tensor(np.ascontiguousarray(speed[None]), dtype=self._gs.tc_float),
        )  # fmt: skip


def _fill(field: Any, first: int, values: NDArray[np.float64]) -> None:
    """Write some numbers of a field of Genesis'."""
    numbers = field.to_numpy()
    numbers[first : first + len(values)] = values
    field.from_numpy(numbers)


def _checked(solver: Any, name: str) -> None:
    """Stop where particles are nowhere: Genesis looks up by their places what they touch.

    A sheet that has come apart is pressed against the world's bounds; triangles without area there
    make places that are no numbers, and the process would end by a bad address.
    """
    predict = solver.substep_pre_coupling

    def substep(f: int) -> None:
        predict(f)
        if not np.isfinite(solver.particles_reordered.pos.to_numpy()).all():
            raise NowhereError(f"cloth {name!r}")

    solver.substep_pre_coupling = substep


def _without_neighbours(solver: Any) -> None:
    """Leave out what particles that are near each other would do: of cloth it is contact alone."""
    for name in ("_kernel_solve_density", "_kernel_solve_viscosity", "_kernel_solve_collision"):
        setattr(solver, name, lambda f: None)


@contextlib.contextmanager
def _unchanged_meshes() -> Iterator[None]:
    """Genesis cuts cloth into triangles of the size of a particle; not here."""
    from genesis.engine.mesh import Mesh

    before = Mesh.remesh
    Mesh.remesh = lambda self, *args, **kwargs: None
    try:
        yield
    finally:
        Mesh.remesh = before


__all__ = ["CHOICES", "OPTIONS", "Cloths"]

"""Solids by Newton's implicit material point method: their particles, their grips, their vertices.

A solid is filled with a lattice of particles, two to an edge of the grid's cells. What holds it is
two layers of particles without mass outside of the pinned face, which Newton's method takes as led.
They lead the nodes of the grid within a cell of them, and what is led does not stretch; a cell that
the solid fills in part is softer by that part. So a face is held some part of a cell inside or
outside of where it is, as the grid happens to lie. Layers at 0.3 and 0.8 of a cell keep that under
0.71 cells either way, the least there is: with h the cell and d the layer's distance, a face is
(1 - d) h too deep or 1 / (1 - d) - (1 - d) of h too shallow at worst, and both agree at
(1 - d)^2 = 1/2. A pull between two faces 200 mm apart is off by up to 9 % with cells of 12.5 mm
for this alone, and by half of that with cells of half the size.

Vertices follow the particles by moving least squares over the places at t = 0: exactly where the
motion is affine, at the surface too. Pinned vertices are where what holds them is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.deformables import RestShape, rest_shape
from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Block, Scene, Soft
from wmeval.sim.engines.newton_bodies import Making
from wmeval.sim.engines.pins import Pinned, pinned_vertices

F8 = NDArray[np.float64]
PER_EDGE = 2
"""Particles along an edge of a cell."""
CELLS = 4
"""Cells across the narrowest extent of a solid, unless option ``voxel`` says their size."""
LAYERS = (0.3, 0.8)
"""Distances of led particles from the face that they hold, in cells."""
REACH = 0.71
"""How far inside or outside of its place a face may be held, in cells."""
_NEAR = 1.75
"""Reach of a vertex' neighbours, in spacings of the lattice."""
_NEIGHBOURS = 24


@dataclass
class Filled:
    """One solid of particles.

    Attributes:
        first, last: its particles in the model, grips not counted.
        weights: (V, last - first): vertices by particles.
        pins: what leads vertices.
        grips: for every pin, its particles in the model and where they are in the body's frame.
    """

    first: int
    last: int
    weights: F8
    pins: list[Pinned]
    grips: list[tuple[NDArray[np.intp], Pinned]]


def check_scene(scene: Scene) -> None:
    """Whether the method can run a scene.

    Raises:
        UserError: it has what is no block, or bodies that move by themselves.
    """
    for item in scene.deformables:
        if not (isinstance(item, Soft) and isinstance(item.volume, Block)):
            raise UserError(
                f"{item.kind} {item.name!r}: newton's solver mpm fills blocks alone: use vbd"
            )
    moving = [b.name for b in scene.bodies if b.motion == "dynamic" and b.collision]
    if moving or not scene.deformables:
        raise UserError(
            "newton's solver mpm moves blocks and no rigid bodies"
            + (f" ({moving[0]!r} is dynamic)" if moving else "")
            + ": run it with vbd"
        )


def cell_size(scene: Scene, asked: float) -> float:
    """Edge of the grid's cells [m]: what is asked for, or `CELLS` across the narrowest block."""
    sizes = [min(d.volume.size) for d in scene.deformables
             if isinstance(d, Soft) and isinstance(d.volume, Block)]  # fmt: skip
    return asked or min(sizes) / CELLS


def lattice(item: Soft, cell: float) -> tuple[F8, F8]:
    """Particles (P, 3) [m] that fill a block, in its own frame, and their spacing (3,)."""
    assert isinstance(item.volume, Block)
    size = np.array(item.volume.size)
    count = np.maximum(1, np.round(size * PER_EDGE / cell)).astype(int)
    step = size / count
    axes = [(np.arange(n) + 0.5) * s - e / 2 for n, s, e in zip(count, step, size, strict=True)]
    grid = np.meshgrid(*axes, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 3), step


def grips(points: F8, step: F8, held: F8, cell: float) -> F8:
    """Two layers of led particles outside of a held face (G, 3) [m], in the block's frame.

    Args:
        points: that fill the block (P, 3).
        step: their spacing (3,).
        held: pinned vertices (n, 3), all on one face.
        cell: of the grid [m].

    Raises:
        UserError: the vertices lie on no one face of the block.
    """
    half = points.max(axis=0) + step / 2
    for axis in range(3):
        for side in (-1.0, 1.0):
            if np.abs(held[:, axis] - side * half[axis]).max() < 1e-9:
                layer = points[np.abs(points[:, axis] - side * half[axis]) < 0.75 * step[axis]]
                out = []
                for away in LAYERS:
                    moved = layer.copy()
                    moved[:, axis] = side * (half[axis] + away * cell)
                    out.append(moved)
                return np.concatenate(out)
    raise UserError("newton's solver mpm holds a block by whole faces: pin faces, or run vbd")


def carried_weights(vertices: F8, points: F8, spacing: float) -> F8:
    """How vertices hang on particles: (V, P), rows that give back every affine map exactly.

    Moving least squares with a linear basis (Levin 1998) and Gaussian weights of the lattice's
    spacing over the nearest particles.
    """
    out = np.zeros((len(vertices), len(points)))
    for row, vertex in zip(out, vertices, strict=True):
        away = points - vertex
        square = (away**2).sum(axis=1)
        near = np.argsort(square, kind="stable")[:_NEIGHBOURS]
        basis = np.concatenate([np.ones((len(near), 1)), away[near] / spacing], axis=1)
        scaled = basis * np.exp(-square[near] / (_NEAR * spacing) ** 2)[:, None]
        row[near] = np.linalg.solve(basis.T @ scaled, np.array([1.0, 0, 0, 0])) @ scaled.T
    return out


def fill(making: Making) -> dict[str, Filled]:
    """All solids of a scene into the builder, by name.

    Raises:
        UserError: a pin that is no whole face.
    """
    cell = cell_size(making.scene, making.numbers["voxel"])
    out = {}
    for item in making.scene.deformables:
        assert isinstance(item, Soft)
        out[item.name] = _fill(making, item, rest_shape(item, making.meshes), cell)
    return out


def _fill(making: Making, item: Soft, rest: RestShape, cell: float) -> Filled:
    points, step = lattice(item, cell)
    turn, at = quaternion_to_matrix(np.array(item.quaternion_wxyz)), np.array(item.position)
    placed = points @ turn.T + at
    volume = float(np.prod(step))
    first = _add(making, item, placed, item.density * volume, volume)
    held = pinned_vertices(making.scene, item, rest.vertices)
    led = []
    for pin in held:
        if pin.body is not None and making.motion[pin.body] == DYNAMIC:
            raise UserError(
                f"soft {item.name!r}: newton's solver mpm pins to no dynamic body: run it with vbd"
            )
        local = (rest.vertices[pin.vertices] - at) @ turn
        layers = grips(points, step, local, cell) @ turn.T + at
        start = _add(making, item, layers, 0.0, volume)
        if pin.body is not None:
            body = making.scene.bodies[pin.body]
            frame = quaternion_to_matrix(np.array(body.quaternion_wxyz))
            layers = (layers - np.array(body.position)) @ frame
        numbers = np.arange(start, start + len(layers))
        led.append((numbers, Pinned(numbers, pin.body, layers)))
    spacing = float(step.mean())
    weights = carried_weights(rest.vertices, placed, spacing)
    return Filled(first, first + len(placed), weights, held, led)


def _add(making: Making, item: Soft, places: F8, mass: float, volume: float) -> int:
    warp, builder = making.warp, making.builder
    first: int = builder.particle_count
    count = len(places)
    builder.add_particles(
        pos=[warp.vec3(*p) for p in places.tolist()],
        vel=[warp.vec3(*item.linear_velocity)] * count,
        mass=[mass] * count,
        radius=[0.5 * volume ** (1 / 3)] * count,
    )
    return first


def make_solver(making: Making, model: Any, filled: dict[str, Filled], iterations: int) -> Any:
    """Newton's solver with every particle's material."""
    kind = making.newton.solvers.SolverImplicitMPM
    young, poisson, damping = (
        getattr(model.mpm, n).numpy() for n in ("young_modulus", "poisson_ratio", "damping")
    )
    for item in making.scene.deformables:
        assert isinstance(item, Soft)
        solid = filled[item.name]
        of = np.concatenate([np.arange(solid.first, solid.last), *(n for n, _ in solid.grips)])
        young[of], poisson[of] = item.youngs_modulus, item.poisson_ratio
        damping[of] = item.damping
    for name, values in (("young_modulus", young), ("poisson_ratio", poisson),
                         ("damping", damping)):  # fmt: skip
        getattr(model.mpm, name).assign(values)
    # It bears tension as it bears pressure: nothing yields.
    model.mpm.tensile_yield_ratio.fill_(1.0)
    config = kind.Config()
    config.voxel_size = cell_size(making.scene, making.numbers["voxel"])
    config.max_iterations = iterations
    return kind(model, config=config)

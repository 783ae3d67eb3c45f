"""Many cubes in one world, each on a patch of the board of its own, each from its own start.

Real tosses are simulated side by side, so that an engine's cost per step is shared by a hundred of
them. They never meet: a cube that leaves its patch is reported. Tosses of like length go together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.clock import SceneClock
from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH, TossState
from wmeval.records import StateLog
from wmeval.scene import Body, Box, Camera, Collision, Material, Scene, Sun, Texture, Vec3, Visual
from wmeval.sim.protocol import EngineConfig, EventRules, Probe, WorldSpec
from wmeval.sim.world import World, foresee, seated

F8 = NDArray[np.float64]

APART = 2.0
"""Distance of neighbours' patches [m]: the tosses go 0.53 m at most."""
TOGETHER = 128
"""Cubes of one world: on patches about its middle, so that single precision resolves 1e-6 m."""
ALONE: dict[str, dict[str, JsonValue]] = {"genesis": {"apart": 1}}
"""Options of engines that step what never meets in environments of its own."""


@dataclass(frozen=True)
class CubeBody:
    """What is thrown.

    Attributes:
        mass: [kg]; inertia: about every axis through the centre [kg m^2], None: a uniform cube's.
        friction, restitution: of the pair of cube and board.
    """

    mass: float
    friction: float
    restitution: float
    inertia: float | None = None


@dataclass(frozen=True, eq=False)
class Start:
    """One simulated toss: from where, and at which times it is asked for.

    Attributes:
        state: the first.
        times: (N,) from 0, ascending [s].
    """

    state: TossState
    times: F8


@dataclass(frozen=True, eq=False)
class Flight:
    """What became of a start.

    Attributes:
        position: (N, 3) of the cube's centre [m]; quaternion_wxyz: (N, 4).
        stayed: on its patch, and its numbers finite.
    """

    position: F8
    quaternion_wxyz: F8
    stayed: bool


def scene_of(states: Sequence[TossState], cube: CubeBody) -> tuple[Scene, F8]:
    """A board with a cube for each start, and the cubes' offsets (K, 3) [m] about the middle."""
    side = math.ceil(math.sqrt(len(states)))
    grid = np.arange(len(states))
    offsets = np.zeros((len(states), 3))
    offsets[:, 0] = (grid % side - (side - 1) / 2) * APART
    offsets[:, 1] = (grid // side - (math.ceil(len(states) / side) - 1) / 2) * APART
    stone = Material(name="cube", texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5),)))
    shape = Collision(shape=Box(half_extents=(HALF_WIDTH,) * 3))
    # Roots for both: a pair's value is the product, and all pairs agree for engines that take the
    # smaller or the mean.
    friction, restitution = math.sqrt(cube.friction), math.sqrt(cube.restitution)
    reach = side * APART / 2 + 5.0
    board = Collision(shape=Box(half_extents=(reach, reach, 0.5)))
    bodies = [
        Body(
            name="board", role="ground", motion="static", instance=0, collision=(board,),
            visuals=(Visual(shape=board.shape, material="cube"),), position=(0.0, 0.0, -0.5),
            friction=friction, restitution=restitution,
        )
    ]  # fmt: skip
    inertia = None if cube.inertia is None else (cube.inertia,) * 3
    for k, (state, offset) in enumerate(zip(states, offsets, strict=True)):
        w, x, y, z = (state.quaternion_wxyz / np.linalg.norm(state.quaternion_wxyz)).tolist()
        bodies.append(
            Body(
                name=f"cube_{k}", role="actor", motion="dynamic", instance=0, collision=(shape,),
                visuals=(Visual(shape=shape.shape, material="cube"),),
                mass=cube.mass, inertia=inertia, friction=friction, restitution=restitution,
                position=_three(state.position + offset), quaternion_wxyz=(w, x, y, z),
                linear_velocity=_three(state.linear), angular_velocity=_three(state.angular),
            )
        )  # fmt: skip
    scene = Scene(
        name="cube_toss", gravity=(0.0, 0.0, -GRAVITY), bodies=tuple(bodies), materials=(stone,),
        cameras=(Camera(name="main", position=(0.5, -1.0, 0.5), target=(0.0, 0.0, 0.1)),),
        sun=Sun(direction=(0.3, 0.4, -0.8660254)),
    )  # fmt: skip
    return scene, offsets


def _three(v: F8) -> Vec3:
    x, y, z = v.tolist()
    return x, y, z


def at_times(own: F8, position: F8, quaternion_wxyz: F8, times: F8) -> tuple[F8, F8]:
    """Positions (N, 3) and quaternions (N, 4) at times between those (K,) of a record.

    Positions linearly, which at 180 steps a second is 0.04 mm off in free flight; orientations by
    the normalised mean of neighbours, likewise.
    """
    k = np.clip(np.searchsorted(own, times, side="right") - 1, 0, len(own) - 2)
    share = ((times - own[k]) / (own[k + 1] - own[k]))[:, None]
    there = (1 - share) * position[k] + share * position[k + 1]
    a, b = quaternion_wxyz[k], quaternion_wxyz[k + 1]
    b = np.where((a * b).sum(axis=-1, keepdims=True) < 0, -b, b)
    mixed = (1 - share) * a + share * b
    return there, mixed / np.linalg.norm(mixed, axis=-1, keepdims=True)


def batches(starts: Sequence[Start], most: int = TOGETHER) -> Iterator[list[int]]:
    """Numbers of the starts that go together: of like length, the shortest first."""
    order = sorted(range(len(starts)), key=lambda k: (float(starts[k].times[-1]), k))
    for first in range(0, len(order), most):
        yield order[first : first + most]


def fly(
    starts: Sequence[Start],
    cube: CubeBody,
    *,
    engine: str,
    config: EngineConfig,
    dt: Fraction,
    taken: list[World],
    together: int = TOGETHER,
    stop: Callable[[], bool] | None = None,
) -> list[Flight | None]:
    """Simulate all starts; None where ``stop`` came first.

    Args:
        starts: in any order; the answers are in the same.
        cube: what is thrown.
        engine: row of `wmeval.sim.engines.ENGINES`.
        config: of it.
        dt: substep [s].
        taken: the process' last world, whose worker is used again; what remains is put there.
        together: cubes of one world.
        stop: asked between worlds.

    Raises:
        UserError: the engine is not installed, or a setting is none of its.
        WorkerError: its worker died.
    """
    alone = ALONE.get(engine, {})
    config = config.model_copy(update={"options": {**alone, **config.options}})
    out: list[Flight | None] = [None] * len(starts)
    with seated(taken) as seat:
        for batch in batches(starts, together):
            if stop is not None and stop():
                break
            scene, offsets = scene_of([starts[k].state for k in batch], cube)
            spec = WorldSpec(scene, {}, (), SceneClock(dt, dt), EventRules(), engine, config)
            world = seat.open(spec)
            steps = math.ceil(max(float(starts[k].times[-1]) for k in batch) / float(dt)) + 1
            foresee(world, [((), steps)], every=True)
            logs = [world.reset().state, world.advance((), steps, Probe("substeps")).state]
            state = StateLog.concatenate(logs)
            for row, k in enumerate(batch):
                out[k] = _flight(state, state.body(f"cube_{row}"), offsets[row], starts[k].times)
    return out


def _flight(state: StateLog, body: int, offset: F8, times: F8) -> Flight:
    x, quaternion = at_times(
        state.times, state.position[:, body], state.quaternion_wxyz[:, body], times
    )
    x = x - offset
    far = np.abs(x[:, :2] - x[0, :2]).max() if np.isfinite(x).all() else math.inf
    return Flight(x, quaternion, bool(far < APART / 2 - 2 * HALF_WIDTH))

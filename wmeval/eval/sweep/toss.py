"""CubeToss: an engine against 100 real tosses of a cube, from each toss's first instants.

Truth is the ContactNets recording (Pfrommer, Halm and Posa, CoRL 2020). Tumbling is chaotic: every
toss is simulated from the measured first state and from others drawn about it with a declared
noise, all in one world, far from one another. The cube's friction and restitution are the authors'
own, who fitted them to these tosses, in every configuration.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import families
from wmeval.clock import SceneClock
from wmeval.datasets.mocap import first_state, read_contactnets, read_mocap
from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH, TossState
from wmeval.datasets.mocap.schema import Mocap, Trial
from wmeval.datasets.mocap.sources import data_home
from wmeval.envs.gauge.configurations import NAMES, Settings, read_fitted, settings_of
from wmeval.errors import UserError
from wmeval.eval.statistics import cluster_bootstrap
from wmeval.eval.sweep.cells import Cell, CellResult, Measurement, Status, fraction
from wmeval.eval.truths.real import TossSigma, draw_spread, toss_draws, toss_errors
from wmeval.records import StateLog
from wmeval.scene import Body, Box, Camera, Collision, Material, Scene, Sun, Texture, Visual
from wmeval.sim.protocol import EventRules, Probe, WorldSpec
from wmeval.sim.world import World, open_world

F8 = NDArray[np.float64]

FAMILY = "cube_toss"
DRAWS = 16
"""Simulated starts of every toss, the measured one among them."""
APART = 2.0
"""Distance of their cubes [m]."""
SIGMA = TossSigma()
FRAMES = (6, 5, 4, 3)
"""First frames from which a toss' state is read: as many as are free of contact."""
_LIKE = "bouncing_ball"
"""The family whose settings it is run with: one free rigid body."""
DEPARTS = "the cube's inertia is a uniform cube's, 16 % below the one that was measured"


def data_file(cell: Cell) -> Path:
    """Where the tosses are.

    Raises:
        UserError: nowhere.
    """
    path = Path(cell.data) if cell.data else data_home() / "contactnets" / "contactnets.h5"
    if not path.exists():
        raise UserError(
            f"{path}: no cube tosses: `wmeval data get contactnets`, or name them by --tosses"
        )
    return path


def read_tosses(path: Path) -> Mocap:
    """The recording: `wmeval-mocap/1`, or the authors' own form.

    Raises:
        UserError: it cannot be read.
    """
    if path.suffix in (".h5", ".json"):
        return read_mocap(path)
    return read_contactnets(path)


def start_of(trial: Trial) -> TossState:
    """The first state, from as many free frames as there are.

    Raises:
        UserError: the cube touches the board from the beginning.
    """
    for frames in FRAMES[:-1]:
        try:
            return first_state(trial, frames)
        except UserError:
            continue
    return first_state(trial, FRAMES[-1])


def chosen(mocap: Mocap, count: int) -> list[tuple[int, Trial]]:
    """Evenly spaced tosses with their numbers; all for a count of 0 or beyond."""
    total = len(mocap.trials)
    if not 0 < count < total:
        return list(enumerate(mocap.trials))
    rows = sorted({round(k) for k in np.linspace(0, total - 1, count)})
    return [(k, mocap.trials[k]) for k in rows]


def toss_settings(cell: Cell) -> Settings:
    """Solver settings: those of a free rigid body.

    Raises:
        UserError: the engine has no rigid bodies, or a file of another family.
    """
    if cell.config in NAMES:
        return settings_of(families()[_LIKE], cell.engine.adapter, cell.config)
    fit = read_fitted(cell.config)
    base = settings_of(families()[_LIKE], cell.engine.adapter, fit.base)
    config = base.config.model_copy(
        update={
            "iterations": fit.iterations or base.config.iterations,
            "options": {**base.config.options, **fit.options},
        }
    )
    return Settings(
        "fitted", fit.hz or base.hz, config, base.solver, base.departs, fit.properties,
        fit.fitted_on,
    )  # fmt: skip


def scene_of(states: tuple[TossState, ...], metadata: dict[str, Any]) -> tuple[Scene, F8]:
    """A board with a cube for each start, and the cubes' offsets (K, 3) [m]."""
    side = math.ceil(math.sqrt(len(states)))
    offsets = np.array([[(k % side) * APART, (k // side) * APART, 0.0] for k in range(len(states))])
    stone = Material(name="cube", texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5),)))
    shape = Collision(shape=Box(half_extents=(HALF_WIDTH,) * 3))
    # Roots for both: a pair's value is the product, and all pairs agree for engines that take the
    # smaller or the mean.
    friction = math.sqrt(float(metadata["friction_fitted"]))
    restitution = math.sqrt(float(metadata["restitution_fitted"]))
    reach = side * APART + 5.0
    board = Collision(shape=Box(half_extents=(reach, reach, 0.5)))
    bodies = [
        Body(
            name="board", role="ground", motion="static", instance=0, collision=(board,),
            visuals=(Visual(shape=board.shape, material="cube"),), position=(0.0, 0.0, -0.5),
            friction=friction, restitution=restitution,
        )
    ]  # fmt: skip
    for k, (state, offset) in enumerate(zip(states, offsets, strict=True)):
        q = state.quaternion_wxyz / np.linalg.norm(state.quaternion_wxyz)
        bodies.append(
            Body(
                name=f"cube_{k}", role="actor", motion="dynamic", instance=0, collision=(shape,),
                visuals=(Visual(shape=shape.shape, material="cube"),),
                mass=float(metadata["mass_kg"]), friction=friction, restitution=restitution,
                position=_three(state.position + offset), quaternion_wxyz=tuple(q.tolist()),
                linear_velocity=_three(state.linear), angular_velocity=_three(state.angular),
            )
        )  # fmt: skip
    scene = Scene(
        name=FAMILY, gravity=(0.0, 0.0, -GRAVITY), bodies=tuple(bodies), materials=(stone,),
        cameras=(Camera(name="main", position=(0.5, -1.0, 0.5), target=(0.0, 0.0, 0.1)),),
        sun=Sun(direction=(0.3, 0.4, -0.8660254)),
    )  # fmt: skip
    return scene, offsets


def _three(v: F8) -> tuple[float, float, float]:
    x, y, z = v.tolist()
    return x, y, z


def at_times(state: StateLog, times: F8) -> tuple[F8, F8]:
    """Positions (N, B, 3) and quaternions (N, B, 4) at times within the log, between its states.

    Positions linearly, which at 180 steps a second is 0.04 mm off in free flight; orientations by
    the normalised mean of neighbours, likewise.
    """
    own = state.times
    k = np.clip(np.searchsorted(own, times, side="right") - 1, 0, len(own) - 2)
    share = ((times - own[k]) / (own[k + 1] - own[k]))[:, None, None]
    position = (1 - share) * state.position[k] + share * state.position[k + 1]
    a, b = state.quaternion_wxyz[k], state.quaternion_wxyz[k + 1]
    b = np.where((a * b).sum(axis=-1, keepdims=True) < 0, -b, b)
    mixed = (1 - share) * a + share * b
    return position, mixed / np.linalg.norm(mixed, axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Toss:
    """One toss, simulated from all its starts.

    Attributes:
        position: mean distance of the centres over its frames, for each start (K,) [m].
        rotation: mean angle (K,) [rad].
        penetration: greatest depth of a corner below the board (K,) [m].
        spread: of the starts about their mean, mean over its frames [m].
        course: distance from the measured start, by frame (N,) [m].
    """

    position: F8
    rotation: F8
    penetration: F8
    spread: float
    course: F8


def simulate(world: World, trial: Trial, offsets: F8, hz: Fraction) -> Toss | None:
    """Run one toss; None where a state is not finite."""
    times = trial.times - trial.times[0]
    steps = math.ceil(float(times[-1]) * float(hz)) + 1
    logs = [world.reset().state, world.advance((), steps, Probe("substeps")).state]
    state = StateLog.concatenate(logs)
    if not np.isfinite(state.position).all():
        return None
    position, quaternion = at_times(state, times)
    cubes = [state.body(f"cube_{k}") for k in range(len(offsets))]
    x = position[:, cubes] - offsets
    q = quaternion[:, cubes]
    found = [toss_errors(x[:, k], q[:, k], trial) for k in range(len(cubes))]
    return Toss(
        np.array([e.mean_position for e in found]),
        np.array([e.mean_rotation for e in found]),
        np.array([float(e.penetration.max()) for e in found]),
        float(draw_spread(np.moveaxis(x, 1, 0)).mean()),
        found[0].position,
    )


def run_toss(
    cell: Cell, key: str, engine_config: Any, *, limit: float | None, version: str,
    deterministic: bool, taken: list[World],
) -> tuple[CellResult, dict[str, NDArray[Any]]]:  # fmt: skip
    """All tosses of a cell.

    Args:
        cell: of the family ``cube_toss``; its subtask is how many tosses, "all" for every one.
        key: name of its folder.
        engine_config: `wmeval.eval.sweep.running.engine_config`.
        limit: wall time that all of them may take [s].
        version: of the engine.
        deterministic: as it declares.
        taken: the process' last world, whose worker is used again.

    Raises:
        UserError: no data, or the engine is not installed.
        WorkerError: its worker died.
    """
    settings = toss_settings(cell)
    mocap = read_tosses(data_file(cell))
    metadata: dict[str, Any] = {**mocap.header.metadata, **settings.changes.get("cube", {})}
    for name, to in (("friction", "friction_fitted"), ("restitution", "restitution_fitted")):
        if name in metadata:
            metadata[to] = metadata[name]
    dt = fraction(cell.grid.get("dt", settings.dt))
    config = engine_config(cell, settings.config)
    tosses = chosen(mocap, 0 if cell.subtask == "all" else int(cell.subtask))
    began = time.perf_counter()
    made: list[Toss] = []
    status: Status = "ok"
    reason = ""
    world: World | None = taken.pop() if taken else None
    try:
        for number, trial in tosses:
            states = toss_draws(start_of(trial), SIGMA, count=DRAWS, toss=number)
            scene, offsets = scene_of(states, metadata)
            spec = WorldSpec(
                scene, {}, (), SceneClock(dt, dt), EventRules(), cell.engine.adapter, config
            )
            world = open_world(spec, instead_of=world)
            toss = simulate(world, trial, offsets, 1 / dt)
            if toss is None:
                status, reason = "diverged", f"{trial.name}: a cube has no finite position"
                break
            made.append(toss)
            spent = time.perf_counter() - began
            if limit is not None and spent > limit and len(made) < len(tosses):
                status = "time_out"
                reason = f"time-out after {limit:g} s, {len(made)} of {len(tosses)} tosses done"
                break
    except BaseException:
        if world is not None:
            world.close()
        raise
    if world is not None:
        taken.append(world)
    wall = time.perf_counter() - began
    result = CellResult(
        cell=cell, key=key, status=status, reason=reason, version=version,
        solver=settings.solver, departs="; ".join(x for x in (settings.departs, DEPARTS) if x),
        deterministic=deterministic, hz=float(1 / dt),
        settings={
            "iterations": config.iterations,
            "restitution_threshold": config.restitution_threshold,
            **{k: v for k, v in config.options.items() if k != "python"},
        },
        facts={
            "friction": metadata["friction_fitted"],
            "restitution": metadata["restitution_fitted"],
            "fitted_on": settings.fitted_on or "friction and restitution: by the authors, to "
            "these same tosses",
            "draws": DRAWS,
            "sigma": {"position_m": SIGMA.position, "rotation_rad": SIGMA.rotation,
                      "linear_mps": SIGMA.linear, "angular_radps": SIGMA.angular},
        },
        frames=sum(len(t.course) for t in made), wall_s=wall,
        measurements=numbers(made) if made else (),
    )  # fmt: skip
    return result, _arrays(made)


def numbers(tosses: list[Toss]) -> tuple[Measurement, ...]:
    """Means over tosses of the means over starts, with 95 % bootstrap intervals over tosses."""
    out = []
    for metric, unit, scale, values in (
        ("position_error", "mm", 1e3, [t.position.mean() for t in tosses]),
        ("rotation_error", "deg", 180 / math.pi, [t.rotation.mean() for t in tosses]),
        ("penetration", "mm", 1e3, [t.penetration.mean() for t in tosses]),
        ("draw_spread", "mm", 1e3, [t.spread for t in tosses]),
    ):
        scaled = [scale * float(v) for v in values]
        low, high = cluster_bootstrap(scaled)
        out.append(
            Measurement(
                metric=metric, truth="real", value=float(np.mean(scaled)), unit=unit,
                n=len(tosses), low=low if math.isfinite(low) else None,
                high=high if math.isfinite(high) else None,
            )
        )  # fmt: skip
    return tuple(out)


def _arrays(tosses: list[Toss]) -> dict[str, NDArray[Any]]:
    if not tosses:
        return {}
    longest = max(len(t.course) for t in tosses)
    course = np.full((len(tosses), longest), np.nan)
    for row, toss in zip(course, tosses, strict=True):
        row[: len(toss.course)] = toss.course
    return {
        "toss_course": course,
        "toss_position": np.array([t.position for t in tosses]),
        "toss_rotation": np.array([t.rotation for t in tosses]),
        "toss_spread": np.array([t.spread for t in tosses]),
    }


@dataclass(frozen=True)
class Standing:
    """One engine's place among those that ran the same tosses.

    Attributes:
        result: of its cell.
        tied: with the best: closer than the starts' spread, or not separable over tosses.
    """

    result: CellResult
    tied: bool


def standings(results: list[CellResult]) -> list[Standing]:
    """Engines by their position error; those within the starts' spread of the best are tied."""

    def error(r: CellResult) -> float:
        found = r.measurement("position_error")
        return found.value if found is not None and found.value is not None else math.inf

    # One that did not finish ran other tosses: it comes last and ties with nobody.
    known = [r for r in results if math.isfinite(error(r))]
    order = sorted(known, key=lambda r: (r.status != "ok", error(r)))
    if not order:
        return []
    best = order[0]
    out = []
    for r in order:
        spreads = [
            m.value
            for one in (best, r)
            if (m := one.measurement("draw_spread")) is not None and m.value is not None
        ]
        near = abs(error(r) - error(best)) < max(spreads, default=0.0)
        out.append(Standing(r, near and r.status == best.status == "ok"))
    return out

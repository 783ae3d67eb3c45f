"""CubeToss: an engine against real tosses of a cube, from each toss's first instants.

Truth is the ContactNets recording (Pfrommer, Halm and Posa, CoRL 2020). Tumbling is chaotic: every
toss is simulated from the measured first state and from sixteen others drawn about it with a
declared noise, side by side. The cube's friction and restitution are the authors' own, who fitted
them to these same tosses, in every configuration but a fitted one (`wmeval fit gauge`), which has
its own and is scored only on tosses that it was not fitted on.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets.gauge_cards import families
from wmeval.datasets.mocap.schema import Mocap, Trial
from wmeval.envs.gauge.configurations import (
    NAMES,
    Fitted,
    Settings,
    file_of,
    fitted_settings,
    read_fitted,
    settings_of,
)
from wmeval.errors import UserError
from wmeval.eval.fitting.cubes import CubeBody, Flight, Start, fly
from wmeval.eval.fitting.halves import places_of, spaced
from wmeval.eval.fitting.recording import describe
from wmeval.eval.fitting.tosses import (
    BODY,
    FAMILY,
    LIKE,
    check_cube,
    cube_of,
    read_tosses,
    recording_in,
    start_of,
)
from wmeval.eval.statistics import cluster_bootstrap
from wmeval.eval.sweep.cells import (
    Cell,
    CellResult,
    Measurement,
    Status,
    engine_config,
    fraction,
    told_settings,
)
from wmeval.eval.sweep.fitted import trials_of
from wmeval.eval.truths.real import (
    TossErrors,
    TossSigma,
    draw_spread,
    rotation_error,
    toss_draws,
    toss_errors,
)
from wmeval.sim.world import World

F8 = NDArray[np.float64]

DRAWS = 17
"""Simulated starts of every toss: the measured one and 16 drawn."""
SIGMA = TossSigma()
AUTHORS = "friction and restitution: by the authors, to these same tosses"


@dataclass(frozen=True)
class Wanted:
    """Which tosses a cell is of: ``odd-100x17``.

    Attributes:
        half: "even" or "odd" by their place in the recording, from 0; "": both.
        count: evenly spaced ones of these; 0: all.
        starts: simulated of each, the measured one among them.
    """

    half: str = ""
    count: int = 0
    starts: int = DRAWS


def wanted_of(text: str) -> Wanted:
    """Which tosses a subtask asks for: ``all``, ``20``, ``odd``, ``odd-20``, ``100x1``.

    Raises:
        UserError: something else.
    """
    found = re.fullmatch(r"(?:(even|odd)(?:-(?=\d)|(?=x|$)))?(all|\d+)?(?:x(\d+))?", text)
    if found is None or "0" in found.groups() or not text:
        raise UserError(
            f"--tasks: {FAMILY}/{text}: write how many tosses, as {FAMILY}/20, of which half, as "
            f"{FAMILY}/odd-20, from how many starts, as {FAMILY}/20x1, or all"
        )
    half, count, starts = found.groups()
    return Wanted(half or "", int(count) if count not in (None, "all") else 0, int(starts or DRAWS))


def data_file(cell: Cell) -> Path:
    """Where the tosses are.

    Raises:
        UserError: nowhere.
    """
    return recording_in(Path(cell.data) if cell.data else None)


def fitted_of(cell: Cell) -> Fitted | None:
    """The file of fitted numbers that a cell is run with, if it is one.

    Raises:
        UserError: it cannot be read, is of another family, or has numbers that no cube takes.
    """
    if cell.config in NAMES:
        return None
    path = file_of(cell.config, cell.engine.adapter)
    fit = read_fitted(path)
    if fit.family != FAMILY:
        raise UserError(f"{cell.config}: its numbers are of {fit.family}, not of {FAMILY}")
    try:
        check_cube(fit.properties)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return fit


def chosen(mocap: Mocap, wanted: Wanted, fitted: tuple[str, ...] = ()) -> list[tuple[int, Trial]]:
    """Evenly spaced tosses with their numbers in the recording, but those that were fitted on.

    Raises:
        UserError: none is left.
    """
    own = list(enumerate(mocap.trials))[places_of(wanted.half)]
    rest = [(k, t) for k, t in own if t.name not in fitted]
    if not rest:
        raise UserError(
            f"{FAMILY}: all of these tosses were fitted on: score the other half, as "
            f"{FAMILY}/odd or {FAMILY}/even"
        )
    return list(spaced(rest, wanted.count))


def toss_settings(cell: Cell) -> Settings:
    """Solver settings: those of a free body with corners.

    Raises:
        UserError: the engine has no rigid bodies, or a file of another engine's numbers.
    """
    return _settings(cell, fitted_of(cell))


def _settings(cell: Cell, fit: Fitted | None) -> Settings:
    card = families()[LIKE]
    if fit is None:
        return settings_of(card, cell.engine.adapter, cell.config)
    return fitted_settings(fit, card, cell.engine.adapter)


@dataclass(frozen=True, eq=False)
class Toss:
    """One toss, simulated from all its K starts, the measured one first.

    Attributes:
        name: of the trial.
        errors: of each start.
        position: mean distance of the centres over its frames, for each start (K,) [m].
        rotation: mean angle (K,) [rad].
        penetration: greatest depth of a corner below the board (K,) [m].
        spread: of the starts' centres about their mean, mean over its frames [m].
        turn_spread: of their orientations, as root mean square angle from the measured start's,
            mean over its frames [rad].
    """

    name: str
    errors: tuple[TossErrors, ...]
    position: F8
    rotation: F8
    penetration: F8
    spread: float
    turn_spread: float


def toss_of(trial: Trial, flights: list[Flight]) -> Toss:
    """A toss from the flights of all its starts."""
    errors = tuple(toss_errors(f.position, f.quaternion_wxyz, trial) for f in flights)
    turns = [rotation_error(f.quaternion_wxyz, flights[0].quaternion_wxyz) for f in flights[1:]]
    return Toss(
        trial.name,
        errors,
        np.array([e.mean_position for e in errors]),
        np.array([e.mean_rotation for e in errors]),
        np.array([float(e.penetration.max()) for e in errors]),
        float(draw_spread(np.array([f.position for f in flights])).mean()),
        float(np.sqrt(np.mean(np.square(turns), axis=0)).mean()) if turns else 0.0,
    )


def run_toss(
    cell: Cell, key: str, *, limit: float | None, version: str,
    deterministic: bool, taken: list[World],
) -> tuple[CellResult, dict[str, NDArray[Any]]]:  # fmt: skip
    """All tosses of a cell.

    Args:
        cell: of the family ``cube_toss``; its subtask as `wanted_of` reads it.
        key: name of its folder.
        limit: wall time that all of them may take [s].
        version: of the engine.
        deterministic: as it declares.
        taken: the process' last world, whose worker is used again.

    Raises:
        UserError: no data, or the engine is not installed.
        WorkerError: its worker died.
    """
    fit = fitted_of(cell)
    settings = _settings(cell, fit)
    data = data_file(cell)
    fitted_on = (
        () if fit is None else trials_of(fit, file_of(cell.config, cell.engine.adapter), data)
    )
    wanted = wanted_of(cell.subtask)
    mocap = read_tosses(data)
    cube = cube_of(dict(mocap.header.metadata), settings.changes.get(BODY, {}))
    dt = fraction(cell.grid.get("dt", settings.dt))
    config = engine_config(cell, settings.config)
    tosses = chosen(mocap, wanted, fitted_on)
    began = time.perf_counter()
    starts = [
        Start(state, trial.times - trial.times[0])
        for number, trial in tosses
        for state in toss_draws(start_of(trial), SIGMA, count=wanted.starts, toss=number)
    ]
    flights = fly(
        starts, cube, engine=cell.engine.adapter, config=config, dt=dt, taken=taken,
        stop=lambda: limit is not None and time.perf_counter() - began > limit,
    )  # fmt: skip
    wall = time.perf_counter() - began
    made: list[Toss] = []
    status: Status = "ok"
    reason = ""
    for row, (_, trial) in enumerate(tosses):
        own = [f for f in flights[row * wanted.starts : (row + 1) * wanted.starts] if f is not None]
        if len(own) < wanted.starts:
            continue
        if not all(f.stayed for f in own):
            status, reason = "diverged", f"{trial.name}: a cube left its patch of the board"
            break
        made.append(toss_of(trial, own))
    if status == "ok" and len(made) < len(tosses):
        status = "time_out"
        reason = f"time-out after {limit:g} s, {len(made)} of {len(tosses)} tosses done"
    result = CellResult(
        cell=cell, key=key, status=status, reason=reason, version=version,
        solver=settings.solver, departs=settings.departs, deterministic=deterministic,
        hz=float(1 / dt), settings=told_settings(config),
        facts=_facts(made, cube, wanted, settings, fitted_on, len(mocap.trials))
        | _more_facts(fit, mocap),
        frames=sum(len(t.errors[0].position) for t in made), wall_s=wall,
        sha256=_bits(flights) if status == "ok" else "",
        measurements=numbers(made) if made else (),
    )  # fmt: skip
    ends = [f.position[-1] for f in flights if f is not None]
    return result, _arrays(made) | ({"toss_ends": np.array(ends)} if made else {})


def _bits(flights: list[Flight | None]) -> str:
    """Sha256 of all simulated states."""
    told = hashlib.sha256()
    for f in flights:
        if f is not None:
            told.update(f.position.tobytes())
            told.update(f.quaternion_wxyz.tobytes())
    return told.hexdigest()


def _facts(
    made: list[Toss], cube: CubeBody, wanted: Wanted, settings: Settings,
    fitted_on: tuple[str, ...], count: int,
) -> dict[str, JsonValue]:  # fmt: skip
    return {
        "mass_kg": cube.mass, "inertia_kg_m2": cube.inertia,
        "friction": cube.friction, "restitution": cube.restitution,
        "fitted_on": settings.fitted_on or AUTHORS,
        "scored_on": f"{len(made)} of the {count - len(fitted_on)} tosses that were not fitted on"
        if fitted_on else f"{len(made)} of {count} tosses",
        "draws": wanted.starts,
        "sigma": {"position_m": SIGMA.position, "rotation_rad": SIGMA.rotation,
                  "linear_mps": SIGMA.linear, "angular_radps": SIGMA.angular},
        "tosses": {t.name: round(1e3 * float(t.position.mean()), 4) for t in made},
    }  # fmt: skip


def _more_facts(fit: Fitted | None, mocap: Mocap) -> dict[str, JsonValue]:
    """How fitted numbers were found, and what the recording says of itself."""
    out: dict[str, JsonValue] = {}
    if fit is not None:
        out["fitted_options"] = dict(fit.options)
        of = fit.identified
        if of is not None:
            out["fitted_by"] = {
                "loss": of.loss, "loss_before": of.loss_before, "loss_after": of.loss_after,
                "evaluations": of.evaluations, "optimizer": of.optimizer, "version": of.version,
            }  # fmt: skip
    try:
        itself = describe(mocap)
    except UserError:  # too few flights to say anything
        return out
    heights = [h for h in itself.rest_heights if math.isfinite(h)]
    if heights:
        out["recording"] = {
            "gravity_mps2": round(itself.gravity[0], 3),
            "rest_height_mm": round(1e3 * float(np.mean(heights)), 2),
            "lowest_mm": round(1e3 * itself.lowest, 2),
            "velocity_lag_ms": round(1e3 * itself.velocity_lag, 2),
        }
    return out


def numbers(tosses: list[Toss]) -> tuple[Measurement, ...]:
    """Means over tosses with 95 % bootstrap intervals over tosses.

    Errors are means over a toss' starts; the ``first_`` ones are of the measured start alone.
    ``draw_spread`` and ``turn_spread`` tell how sensitive the tosses are to their starts.
    """
    degrees = 180 / math.pi
    out = []
    for metric, unit, scale, values in (
        ("position_error", "mm", 1e3, [t.position.mean() for t in tosses]),
        ("rotation_error", "deg", degrees, [t.rotation.mean() for t in tosses]),
        ("penetration", "mm", 1e3, [t.penetration.mean() for t in tosses]),
        ("first_position_error", "mm", 1e3, [t.position[0] for t in tosses]),
        ("first_rotation_error", "deg", degrees, [t.rotation[0] for t in tosses]),
        ("draw_spread", "mm", 1e3, [t.spread for t in tosses]),
        ("turn_spread", "deg", degrees, [t.turn_spread for t in tosses]),
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
    """By toss and frame, means over the starts; NaN beyond a toss' end."""
    if not tosses:
        return {}
    longest = max(len(t.errors[0].position) for t in tosses)
    courses = {name: np.full((len(tosses), longest), np.nan) for name in ("position", "rotation")}
    for name, course in courses.items():
        for row, toss in zip(course, tosses, strict=True):
            values = np.mean([getattr(e, name) for e in toss.errors], axis=0)
            row[: len(values)] = values
    return {
        "toss_course": courses["position"],
        "toss_turn": courses["rotation"],
        "toss_position": np.array([t.position for t in tosses]),
        "toss_rotation": np.array([t.rotation for t in tosses]),
        "toss_spread": np.array([t.spread for t in tosses]),
    }


__all__ = [
    "DRAWS", "FAMILY", "SIGMA", "Toss", "Wanted", "chosen", "data_file", "fitted_of",
    "numbers", "run_toss", "toss_of", "toss_settings", "wanted_of",
]  # fmt: skip

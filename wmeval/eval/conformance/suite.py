"""The suite run on an engine, one worker for all its worlds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from wmeval.clock import SceneClock
from wmeval.errors import UserError, one_line
from wmeval.eval.conformance.table import CHECKS, Check
from wmeval.jobs.worker import WorkerError
from wmeval.records import WorldLog
from wmeval.sim.engines import engine_info
from wmeval.sim.protocol import EngineConfig, EventRules, Probe, WorldSpec, check_kinds
from wmeval.sim.world import Seat, World, foresee, seated

Status = Literal["ok", "off", "not_run", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What an engine made of a check.

    Attributes:
        check: its name.
        engine, version: who.
        asked: the right value.
        effective: the measured one; None where there is none.
        status: "ok" within tolerance, "off" beyond, "not_run" and "failed" with a reason.
        reason: one line; empty when measured.
        wall_s: of the run [s].
    """

    check: str
    engine: str
    version: str
    asked: float
    effective: float | None
    status: Status
    reason: str
    wall_s: float


def spec_of(
    check: Check, engine: str, config: EngineConfig | None = None, *, dt: Fraction | None = None
) -> WorldSpec:
    """The world of a check, at a step of ``dt`` [s]; None: at its rate."""
    dt = dt or Fraction(1, check.rate)
    return WorldSpec(
        check.scene(), {}, (), SceneClock(dt, dt), EventRules(), engine, config or EngineConfig()
    )


def run_suite(
    engine: str,
    config: EngineConfig | None = None,
    *,
    checks: Sequence[str] | None = None,
    dt: Fraction | None = None,
    told: Callable[[Outcome], None] | None = None,
    taken: list[World] | None = None,
    limit: float | None = None,
) -> list[Outcome]:
    """Run checks on an engine, one worker for all.

    Args:
        engine: row of `wmeval.sim.engines.ENGINES`.
        config: its settings; None: defaults.
        checks: names; None: all.
        dt: substep of every check [s]; None: each at its rate.
        told: hears of every outcome as it comes.
        taken: a world that is no longer needed, whose worker is used again; the last one of the
            suite is left there. None: nothing is left open.
        limit: time-out of a check on an engine that runs whole jobs [s]; None: the engine's own.

    Raises:
        UserError: an unknown check or engine.
    """
    names = list(CHECKS) if checks is None else list(checks)
    unknown = [n for n in names if n not in CHECKS]
    if unknown:
        raise UserError(f"no check {unknown[0]!r}: choose from {', '.join(CHECKS)}")
    out: list[Outcome] = []
    with seated(taken) as seat:
        for name in names:
            outcome = _run(CHECKS[name], engine, config, dt, seat, limit)
            out.append(outcome)
            if told is not None:
                told(outcome)
    return out


def _run(
    check: Check,
    engine: str,
    config: EngineConfig | None,
    dt: Fraction | None,
    seat: Seat,
    limit: float | None,
) -> Outcome:
    info = engine_info(engine)
    spec = spec_of(check, engine, config, dt=dt)
    started = time.perf_counter()

    def outcome(status: Status, effective: float | None, reason: str = "") -> Outcome:
        wall = time.perf_counter() - started
        return Outcome(
            check.name, engine, info.version, check.asked, effective, status, reason, wall
        )

    try:
        check_kinds(spec.scene, info)
    except UserError as error:
        return outcome("not_run", None, one_line(str(error)))
    built = False
    try:
        world = seat.open(spec)
        steps = round(check.seconds / spec.clock.dt)
        foresee(world, [((), steps)], every=True, limit=limit)
        first = world.reset()
        built = True
        log = world.advance((), steps, Probe("substeps"))
        effective = check.measure(WorldLog.concatenate([first, log]))
    except UserError as error:
        return outcome("failed" if built else "not_run", None, one_line(str(error)))
    except WorkerError as error:
        seat.lose()
        return outcome("failed", None, one_line(error.why))
    except Exception as error:  # an adapter's fault costs this check only
        seat.lose()
        return outcome("failed", None, one_line(f"{type(error).__name__}: {error}"))
    if not math.isfinite(effective):
        return outcome("failed", None, f"its {check.quantity} is not finite")
    near = abs(effective - check.asked) <= check.tolerance
    return outcome("ok" if near else "off", effective)


def rows_of(outcomes: Iterable[Outcome]) -> list[dict[str, str | float | None]]:
    """The table: one row a check and engine, with unit, tolerance and meaning, for any report."""
    return [
        {
            "check": o.check,
            "quantity": CHECKS[o.check].quantity,
            "unit": CHECKS[o.check].unit,
            "engine": o.engine,
            "version": o.version,
            "asked": o.asked,
            "effective": o.effective,
            "tolerance": CHECKS[o.check].tolerance,
            "off_by": None if o.effective is None else o.effective - o.asked,
            "status": o.status,
            "reason": o.reason,
            "wall_s": o.wall_s,
        }
        for o in outcomes
    ]

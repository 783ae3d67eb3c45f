"""One cell: its world is stepped at 30 frames a second, watched, and measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets.gauge_cards import RECORD_HZ
from wmeval.deformables import rest_shape
from wmeval.envs.gauge.configurations import regimes
from wmeval.errors import NotFiniteError, UserError, one_line
from wmeval.eval.sweep.cells import (
    Cell,
    CellResult,
    Measurement,
    Status,
    absent,
    told_settings,
    version_of,
)
from wmeval.eval.sweep.conserved import gained
from wmeval.eval.sweep.course import course_of
from wmeval.eval.sweep.depths import LIMIT, deepest
from wmeval.eval.sweep.fitted import fitted_trials
from wmeval.eval.sweep.folder import marker_arrays
from wmeval.eval.sweep.hung import fallen
from wmeval.eval.sweep.measure import measure
from wmeval.eval.sweep.prepared import Prepared, prepare
from wmeval.eval.sweep.toss import FAMILY, run_toss, toss_settings
from wmeval.jobs.cpu import cpu_seconds_of
from wmeval.jobs.worker import WorkerError
from wmeval.records import StateLog, WorldLog
from wmeval.sim.engines import engine_info
from wmeval.sim.protocol import Probe, WorldSpec, check_kinds
from wmeval.sim.world import WorkerWorld, World, foresee, seated, whole_run

F8 = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
REASON = 200
"""Characters of a reason."""
FAR = 30.0
"""Scene's sizes from its middle beyond which something has left it for good."""
LEAST_SIZE = 1.0
"""Of a scene, for that bound [m]."""


LOOK = 0.2
"""Seconds of work after which a cell's new frames are looked at."""

MOST_ASKED = 16
"""Frames that a worker is asked for at once, at most: none may outlast a limit by much."""

last_world: list[World] = []
"""The world whose worker, with its compiled kernels, the next cell of this process takes over."""


def run_cell(
    cell: Cell, key: str, *, limit: float | None = None, seconds: float | None = None,
    keep: Callable[[CellResult, WorldLog | None, Arrays], None] | None = None,
) -> CellResult:  # fmt: skip
    """Run one cell to one of `STATUSES`.

    Args:
        cell: which.
        key: name of its folder.
        limit: wall time that stepping may take [s]; None: any.
        seconds: of the record that are run [s]; None: all.
        keep: is given the result, the states and what else is kept of it (markers and their faces,
            the course that is compared, what tosses came to), whatever became of it.
    """
    log: WorldLog | None = None
    arrays: Arrays = {}
    try:
        if cell.family == FAMILY:
            result, arrays = _tossed(cell, key, limit)
        else:
            ready = prepare(cell)
            if seconds is not None:
                ready = replace(ready, frames=min(ready.frames, 1 + round(seconds * RECORD_HZ)))
            result, log = _stepped(cell, key, ready, limit)
            result, arrays = _measured(result, ready, log.state if log is not None else None)
    except UserError as error:
        result = CellResult(
            cell=cell, key=key, status="not_run", reason=one_line(str(error)),
            version=version_of(cell.engine),
        )  # fmt: skip
    if keep is not None:
        keep(result, log, arrays)
    return result


def _tossed(cell: Cell, key: str, limit: float | None) -> tuple[CellResult, Arrays]:
    adapter = cell.engine.adapter
    missing = absent(cell.engine)
    if missing:
        raise UserError(missing)
    began = time.perf_counter()
    before = last_world[-1] if last_world else None
    start = {_pid(world): cpu_seconds(world) for world in (None, before)}
    try:
        result, arrays = run_toss(
            cell, key, limit=limit, version=version_of(cell.engine),
            deterministic=engine_info(adapter).deterministic, taken=last_world,
        )  # fmt: skip
    except WorkerError as error:
        return _crashed(cell, key, _last_line(error.why), began), {}
    except UserError:
        raise
    except Exception as error:  # an adapter's fault costs this cell only
        return _crashed(cell, key, one_line(f"{type(error).__name__}: {error}"), began), {}
    # A worker that was there has run others before; a new one has run these alone.
    # Where the time was up before any began, none is there.
    world = last_world[-1] if last_world else None
    used, now = start.get(_pid(world), 0.0), cpu_seconds(world)
    cpu = None if used is None or now is None else now - used
    return result.model_copy(update={"cpu_s": cpu}), arrays


def _pid(world: World | None) -> int:
    """Of the process that steps a world; 0: this one."""
    return world.pid if isinstance(world, WorkerWorld) else 0


def _crashed(cell: Cell, key: str, reason: str, began: float) -> CellResult:
    settings = toss_settings(cell)
    return CellResult(
        cell=cell, key=key, status="crash", reason=reason, version=version_of(cell.engine),
        solver=settings.solver, departs=settings.departs, wall_s=time.perf_counter() - began,
    )  # fmt: skip


def _stepped(
    cell: Cell, key: str, ready: Prepared, limit: float | None
) -> tuple[CellResult, WorldLog | None]:
    spec, info = ready.spec, engine_info(cell.engine.adapter)
    check_kinds(spec.scene, info)
    began = time.perf_counter()
    states: list[WorldLog] = []
    seconds = (ready.frames - 1) / RECORD_HZ
    status: Status = "ok"
    reason = ""
    wall: float | None = None
    build_s: float | None = None
    cpu: float | None = None
    try:
        with seated(last_world) as seat:
            world = seat.open(spec)
            step = spec.clock.substeps
            ends = [((), k * step) for k in range(1, ready.frames)]
            # A program of its own has no more than this to start in, too: only its answer tells.
            foresee(world, ends, limit=limit)
            states.append(world.reset())
            build_s = time.perf_counter() - began
            start, used = time.perf_counter(), cpu_seconds(world)
            status, reason = _advance(world, spec, ready, states, limit)
            wall = time.perf_counter() - start
            now = cpu_seconds(world)
            cpu = None if used is None or now is None else now - used
            if not info.stepped:
                # A program of its own ran the whole job and says how long that took.
                (build_s, wall), cpu = whole_run(world) or (build_s, wall), None
    except WorkerError as error:
        slow = error.kind == "timeout" and not info.stepped
        status = "time_out" if slow else "crash"
        reason = _last_line(error.why) + (_when(states) if info.stepped else "")
    except NotFiniteError as error:
        # What to do about it is said of environments; here it is the finding.
        status, reason = "diverged", f"diverged: {str(error).partition(': ')[0]}"
    except UserError:
        raise
    except Exception as error:  # an adapter's fault costs this cell only
        said = one_line(f"{type(error).__name__}: {error}", REASON)
        status, reason = "crash", said + _when(states)
    if build_s is None:  # it ended while it was built
        build_s, wall = time.perf_counter() - began, 0.0
    elif wall is None:
        wall = time.perf_counter() - began - build_s
    log = WorldLog.concatenate(states) if states else None
    result = CellResult(
        cell=cell, key=key, status=status, reason=reason,
        ended=(len(states) - 1) / RECORD_HZ if states else 0.0, seconds=seconds,
        version=version_of(cell.engine), solver=ready.settings.solver,
        departs=ready.settings.departs, deterministic=info.deterministic,
        hz=float(1 / spec.clock.dt), settings=told_settings(spec.config),
        facts=_facts(cell, ready), frames=len(states), wall_s=wall, cpu_s=cpu, build_s=build_s,
        sha256=log.state.sha256() if log is not None else "",
    )  # fmt: skip
    return result, log


def _when(states: list[WorldLog]) -> str:
    """Of a fault, after so many frames."""
    return f" at t = {(len(states) - 1) / RECORD_HZ:.3g} s" if states else ", as it was built"


def _last_line(text: str) -> str:
    """What an error says, without the way to it."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return one_line(lines[-1] if "Traceback" in text and lines else text, REASON)


def _facts(cell: Cell, ready: Prepared) -> dict[str, JsonValue]:
    return {
        "drives": dict(ready.built.drives.hashes),
        **({"drive": Path(cell.drive).name} if cell.drive else {}),
        "regimes": regimes(
            cell.engine.adapter, ready.spec.config, ready.spec.clock.dt, ready.built
        ),
        **({"fitted_on": ready.settings.fitted_on} if ready.settings.fitted_on else {}),
    }  # fmt: skip


def _advance(
    world: World, spec: WorldSpec, ready: Prepared, states: list[WorldLog], limit: float | None
) -> tuple[Status, str]:
    """Record frames until the end, or until something is wrong.

    Frames are looked at together, those of `LOOK` seconds of work: a look costs as much as a quick
    engine's frame. What is said and kept is as if each was looked at as it came.
    """
    said = fallen(spec.scene, states[0].state)
    if said:
        return "diverged", said
    start = looked = time.perf_counter()
    step, frames = spec.clock.substeps, ready.frames
    room = room_of(spec)
    probe = Probe("last")
    new: list[WorldLog] = []

    def look() -> tuple[Status, str] | None:
        bad = _first_diverged(new, room)
        states.extend(new if bad is None else new[: bad[0]])
        new.clear()
        if bad is None:
            return None
        return "diverged", f"diverged at t = {len(states) / RECORD_HZ:.3g} s: {bad[1]}"

    frame, many = 0, 1
    while frame < frames - 1:
        asked = time.perf_counter()
        try:
            ahead = range(frame + 1, min(frame + many, frames - 1) + 1)
            rows = world.advance_each((), [k * step for k in ahead], probe)
            new += [rows.rows(slice(k, k + 1)) for k in range(len(rows))]
            frame += len(rows)
        except Exception:
            # An engine may well break at what has gone wrong before.
            if (ended := look()) is not None:
                return ended
            raise
        now = time.perf_counter()
        late = limit is not None and frame < frames - 1 and now - start > limit
        if (late or frame == frames - 1 or now - looked > LOOK) and (ended := look()) is not None:
            return ended
        if late:
            at, end = frame / RECORD_HZ, (frames - 1) / RECORD_HZ
            return "time_out", f"time-out after {limit:g} s, at t = {at:.3g} s of {end:.3g} s"
        looked = now if not new else looked
        many = min(2 * many, MOST_ASKED) if now - asked < LOOK / 4 else max(1, many // 2)
    return "ok", ""


def _first_diverged(rows: Sequence[WorldLog], room: tuple[F8, float]) -> tuple[int, str] | None:
    """The first row in which something is wrong, and what."""
    if not rows or not _diverged(WorldLog.concatenate(list(rows)).state, room):
        return None
    return next((k, said) for k, row in enumerate(rows) if (said := _diverged(row.state, room)))


def room_of(spec: WorldSpec) -> tuple[F8, float]:
    """Where a scene is: its middle (3,) [m], and how far from there nothing of it goes [m].

    It is `FAR` times the diagonal of the box about all bodies and deformables at the start.
    """
    scene = spec.scene
    places = [np.array([b.position for b in scene.bodies if b.active], float).reshape(-1, 3)]
    places += [rest_shape(d, spec.meshes).vertices for d in scene.deformables]
    at = np.concatenate(places)
    low, high = at.min(axis=0), at.max(axis=0)
    return (low + high) / 2, FAR * max(LEAST_SIZE, float(np.linalg.norm(high - low)))


def _diverged(state: StateLog, room: tuple[F8, float]) -> str:
    middle, most = room
    for name, x in (("a body", state.position), *state.vertices.items()):
        if not np.isfinite(x).all():
            return f"{name} has no finite position"
        away = float(np.linalg.norm(x - middle, axis=-1).max(initial=0.0))
        if away > most:
            return f"{name} is {away:.3g} m away, the scene ends at {most:.3g} m"
    for what in ("quaternion_wxyz", "linear_velocity", "angular_velocity"):
        if not np.isfinite(getattr(state, what)).all():
            return f"a body has no finite {what.removesuffix('_wxyz').replace('_', ' ')}"
    return ""


def _measured(
    result: CellResult, ready: Prepared, log: StateLog | None
) -> tuple[CellResult, Arrays]:
    """Depth and numbers of a record that reached its end; its markers and course, to be kept."""
    if log is None:
        return result, {}
    cell, arrays = result.cell, marker_arrays(ready.built, log)
    if result.status != "ok":
        return result, arrays
    found_at = deepest(ready.spec.scene, ready.spec.meshes, log)
    depth = found_at.depth
    changes: dict[str, Any] = {"penetration_mm": 1e3 * depth}
    if depth > LIMIT:
        changes |= {
            "status": "penetration",
            "reason": (
                f"{found_at.what} up to {1e3 * depth:.1f} mm deep in {found_at.into}, "
                f"at t = {found_at.time:.3g} s"
            ),
        }
    if gain := gained(ready.built, log):
        # Graver than a depth: from there on the record is of no mechanics.
        said = "; ".join(x for x in (gain, changes.get("reason")) if x)
        changes |= {"status": "energy_gain", "reason": said}
    found: tuple[Measurement, ...] = ()
    try:
        course = course_of(
            ready.card, cell.subtask, cell.material, ready.built, log,
            markers=arrays.get("markers"),
        )  # fmt: skip
        arrays["course"] = course.values
        without = (
            fitted_trials(cell.config, cell.engine.adapter, Path(cell.data)) if cell.data else ()
        )
        found = measure(
            ready.card, cell.subtask, cell.material, ready.built, log, course=course,
            data=cell.data, without=without, recorded_drive=bool(cell.drive),
        )  # fmt: skip
    except UserError as error:
        changes["reason"] = one_line("; ".join(x for x in (changes.get("reason"), str(error)) if x))
    deep = Measurement(metric="penetration", value=1e3 * depth, unit="mm", n=len(log))
    changes["measurements"] = (*found, deep)
    return result.model_copy(update=changes), arrays


def cpu_seconds(world: World | None) -> float | None:
    """CPU time so far of the process that steps a world [s]; None where nothing tells."""
    return cpu_seconds_of(_pid(world))

"""Worlds: one clock, one scene, one engine with its drivers.

Environments, the recorder, twins and sweeps step Worlds; nothing else writes a stepping loop.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wmeval.deformables import check_deformables
from wmeval.errors import UserError
from wmeval.jobs.worker import WorkerClient, WorkerError
from wmeval.records import Contacts, WorldLog
from wmeval.sim import wire
from wmeval.sim.drivers import make_driver
from wmeval.sim.engines import interpreter_of, make_engine
from wmeval.sim.events import EventDetector
from wmeval.sim.protocol import (
    BodyMechanics,
    EngineInfo,
    Foresight,
    MechanicsQuery,
    Probe,
    RayQuery,
    StateView,
    WorldSpec,
    check_kinds,
)
from wmeval.sim.rows import LastRow
from wmeval.sim.stage import Stage

EVERYTHING = Probe(states="substeps", contacts=True)
"""All states and contacts."""
WORN = 2 << 30
"""Memory [B] of a worker that is not given another world."""


class World(Protocol):
    """A reference world.

    Attributes:
        spec: all that makes it again.
        substep: the present state's index.
    """

    spec: WorldSpec
    substep: int

    def reset(self) -> WorldLog:
        """Go to state 0; one row."""

    def advance(self, action: Sequence[float], until: int, probe: Probe) -> WorldLog:
        """Run substeps up to state ``until`` under one action.

        Returns:
            A row per substep or the last only, as ``probe.states`` says.
        """

    def advance_each(
        self, action: Sequence[float], untils: Sequence[int], probe: Probe
    ) -> WorldLog:
        """`advance` to one state after the other, as many of them as come at once.

        Returns:
            Rows of the first of them at least: ``substep`` says how far it went.
        """

    def run(self, action: Sequence[float], until: int) -> StateView:
        """Run substeps as `advance` does, without rows, contacts and events: fastest.

        Returns:
            The present state, to be read before the world goes on.
        """

    def log(self) -> WorldLog:
        """The present state as one row, without contacts and events."""

    def fork(self, n: int) -> list[World]:
        """Independent continuations of the present state (`WorkerWorld` only)."""

    def raycast(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3) now."""

    def mechanics(self, time: float) -> dict[str, BodyMechanics]:
        """Momentum and kinetic energy of what moves, by name, at any time [s] up to the present."""

    def close(self) -> None:
        """Free everything; idempotent."""


class LocalWorld:
    """A world in this process.

    Args:
        spec: all that makes it.
        events: run the event detector; every substep's states and contacts are then read inside,
            whatever the probe keeps, and ``log.events`` is filled.
    """

    def __init__(self, spec: WorldSpec, *, events: bool = False) -> None:
        self.spec = spec
        self.substep = 0
        self._engine = make_engine(spec.engine)
        self._drivers = [make_driver(d) for d in spec.drivers]
        self._ready = False
        self._detector = EventDetector(spec.scene, spec.rules, spec.clock) if events else None

    @property
    def info(self) -> EngineInfo:
        """The engine that runs it."""
        return self._engine.info

    def foresee(
        self,
        stretches: Sequence[tuple[tuple[float, ...], int]],
        *,
        every: bool = False,
        limit: float | None = None,
    ) -> None:
        """Say, before `reset`, what will be asked for: an engine that runs whole jobs must know.

        To others it says nothing.

        Args:
            stretches: actions, each with the state up to which it is in force.
            every: all states are wanted, not only those at the ends of stretches.
            limit: time-out of the job [s].
        """
        if isinstance(self._engine, Foresight):
            self._engine.foresee(stretches, every=every, limit=limit)

    def seconds(self) -> tuple[float, float] | None:
        """Of an engine that ran a whole job: its time until state 0, and from there [s]."""
        answer = getattr(self._engine, "answer", None)
        return None if answer is None else (answer.build_s, answer.run_s)

    def reset(self) -> WorldLog:
        """Go to state 0; one row.

        Raises:
            UserError: the engine has no physics for something in the scene.
        """
        spec = self.spec
        check_kinds(spec.scene, self._engine.info)
        check_deformables(spec.scene, spec.meshes)
        self._engine.build(spec.scene, spec.meshes, spec.config, spec.clock.dt, self._drivers)
        if spec.settle:
            self._settle(spec)
        self.substep = 0
        self._ready = True
        log = WorldLog(*self._engine.log(Probe()))
        if self._detector is not None:
            log = dataclasses.replace(log, events=self._detector.reset(log))
        return log

    def _settle(self, spec: WorldSpec) -> None:
        """Let the substeps before state 0 pass."""
        if not isinstance(self._engine, Stage) or self._engine.info.clock != "fixed":
            raise UserError(
                f"scene {spec.scene.name!r} settles before it begins, which engine {spec.engine!r} "
                "cannot: run it with bullet"
            )
        self._engine.substep = -spec.settle
        self._engine.run((), 0)

    def advance(self, action: Sequence[float], until: int, probe: Probe) -> WorldLog:
        """Run substeps up to state ``until`` under one action; rows as the probe asks.

        Raises:
            UserError: the world was not reset, or ``until`` is not ahead.
        """
        if not self._ready:
            raise UserError("reset the world before it advances")
        if self._detector is None:
            log = WorldLog(*self._engine.advance(action, until, probe))
        else:
            needed = EVERYTHING if probe.contacts else self._detector.probe
            if probe.states == "last":
                # What is shown is no event; most of its rows are thrown away below.
                needed = dataclasses.replace(needed, shown=False)
            full = WorldLog(*self._engine.advance(action, until, needed))
            log = dataclasses.replace(
                full if probe.states == "substeps" else full.rows(slice(-1, None)),
                contacts=full.contacts if probe.contacts else Contacts.empty(),
                events=self._detector.feed(full),
            )
        self.substep = until
        return log

    def advance_each(
        self, action: Sequence[float], untils: Sequence[int], probe: Probe
    ) -> WorldLog:
        """`advance` to the first: here, asking again costs nothing.

        Raises:
            UserError: as `advance`.
        """
        return self.advance(action, untils[0], probe)

    def run(self, action: Sequence[float], until: int) -> StateView:
        """Run substeps as `advance` does, without rows, contacts and events: fastest.

        Returns:
            The present state, to be read before the world goes on.

        Raises:
            UserError: as `advance`; or events are looked for, which need `advance`.
        """
        if not self._ready:
            raise UserError("reset the world before it runs")
        if self._detector is not None:
            raise UserError("a world that looks for events must advance, not run")
        view = self._engine.run(action, until)
        self.substep = until
        return view

    def log(self) -> WorldLog:
        """The present state as one row, without contacts and events.

        Raises:
            UserError: the world was not reset.
        """
        if not self._ready:
            raise UserError("reset the world before its log is read")
        return WorldLog(*self._engine.log(Probe()))

    def raycast(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3) now.

        Raises:
            UserError: the engine casts no rays.
        """
        if not isinstance(self._engine, RayQuery):
            raise UserError(f"engine {self.spec.engine!r} casts no rays")
        return self._engine.cast_rays(origins, ends)

    def mechanics(self, time: float) -> dict[str, BodyMechanics]:
        """Momentum and kinetic energy of what moves, by name, at any time [s] up to the present.

        Exact between states as well as in them.

        Raises:
            UserError: the world was not reset, a time that it has not lived, or its engine knows
                states only.
        """
        if not isinstance(self._engine, MechanicsQuery):
            raise UserError(f"engine {self.spec.engine!r} knows states, not the times between them")
        if not self._ready:
            raise UserError("reset the world before its mechanics are asked for")
        return self._engine.mechanics(time)

    def fork(self, n: int) -> list[World]:
        """Not here: a process that may hold GL is not forked.

        Raises:
            UserError: always.
        """
        raise UserError("only a world in a worker forks: open it with branching=True")

    def close(self) -> None:
        """Free everything; idempotent."""
        self._engine.close()
        self._ready = False


class WorkerWorld:
    """A world in a worker process that holds no GL context, so that it can fork.

    Args:
        spec: all that makes it.
        events: as `LocalWorld`.
        python: interpreter of the worker.
        timeout: time-out of a call [s].
    """

    def __init__(
        self,
        spec: WorldSpec,
        *,
        events: bool = False,
        python: str | os.PathLike[str] = sys.executable,
        timeout: float = 600.0,
    ) -> None:
        self.python = os.fspath(python)
        self._client = WorkerClient("wmeval.sim.serve:handlers", python=python, timeout=timeout)
        try:
            self.rebuild(spec, events=events)
        except BaseException:
            self._client.close()
            raise

    def rebuild(self, spec: WorldSpec, *, events: bool = False) -> None:
        """Become another world, to be reset, in the same process: much faster than a new one.

        Raises:
            UserError: an unknown engine or driver.
            WorkerError: the worker failed.
        """
        header, arrays = wire.pack_spec(spec)
        self._client.call("build", {"spec": header, "events": events}, arrays)
        self.spec = spec
        self.substep = 0
        self._log: WorldLog | None = None

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._client.pid

    def reset(self) -> WorldLog:
        """Go to state 0; one row.

        Raises:
            UserError: the engine has no physics for something in the scene.
            WorkerError: the worker failed.
        """
        log = self._log = wire.unpack_log(*self._client.call("reset"))
        self.substep = 0
        return log

    def advance(self, action: Sequence[float], until: int, probe: Probe) -> WorldLog:
        """Run substeps up to state ``until`` under one action; rows as the probe asks.

        Raises:
            UserError: the world was not reset, or ``until`` is not ahead.
            WorkerError: the worker failed.
        """
        header = {
            "action": [float(a) for a in action],
            "until": int(until),
            "probe": wire.pack_probe(probe),
        }
        log = self._log = wire.unpack_log(*self._client.call("advance", header))
        self.substep = until
        return log

    def advance_each(
        self, action: Sequence[float], untils: Sequence[int], probe: Probe
    ) -> WorldLog:
        """`advance` to one state after the other, in one request: each has its cost.

        Returns:
            Rows of all of them, or of those before one that failed: the next request tells how.

        Raises:
            UserError: as `advance`, at the first of them.
            WorkerError: the worker failed.
        """
        header = {
            "action": [float(a) for a in action],
            "untils": [int(u) for u in untils],
            "probe": wire.pack_probe(probe),
        }
        log = self._log = wire.unpack_log(*self._client.call("advance_each", header))
        self.substep = int(log.state.substep[-1])
        return log

    def run(self, action: Sequence[float], until: int) -> StateView:
        """Run substeps as `advance` does.

        Returns:
            The state reached.

        Raises:
            UserError: as `advance`.
            WorkerError: the worker failed.
        """
        return LastRow(self.advance(action, until, Probe()))

    def log(self) -> WorldLog:
        """The present state as one row, without contacts and events.

        Raises:
            UserError: the world was not reset.
        """
        if self._log is None:
            raise UserError("reset the world before its log is read")
        row = self._log.rows(slice(-1, None))
        return WorldLog(row.state, row.cameras, row.lights)

    def raycast(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3) now.

        Raises:
            UserError: the engine casts no rays.
            WorkerError: the worker failed.
        """
        arrays = {"origins": np.asarray(origins, float), "ends": np.asarray(ends, float)}
        found = self._client.call("raycast", {}, arrays)[1]
        return found["bodies"], found["points"]

    def mechanics(self, time: float) -> dict[str, BodyMechanics]:
        """Momentum and kinetic energy of what moves, by name, at any time [s] up to the present.

        Raises:
            UserError: as `LocalWorld.mechanics`.
            WorkerError: the worker failed.
        """
        found = self._client.call("mechanics", {"time": time})[0]
        return wire.unpack_mechanics(found)

    def fork(self, n: int) -> list[World]:
        """Independent continuations of the present state, bit-identical to a replay.

        Each is a process of its own, made in milliseconds; closing this world leaves them alive.

        Raises:
            UserError: n is not 1 or more.
            WorkerError: the worker failed.
        """
        return [self._continuation(client) for client in self._client.fork(n)]

    def _continuation(self, client: WorkerClient) -> World:
        other = object.__new__(WorkerWorld)
        other.spec, other.substep, other._log = self.spec, self.substep, self._log
        other.python = self.python
        other._client = client
        return other

    def close(self) -> None:
        """End the worker; idempotent."""
        self._client.close()


def open_world(
    spec: WorldSpec,
    *,
    events: bool = False,
    branching: bool = False,
    instead_of: World | None = None,
) -> World:
    """A world of a specification: in this process, or in a worker that can fork.

    An engine whose library lives in an environment of its own runs there, drivers and all.

    Args:
        spec: all that makes it.
        events: run the event detector.
        branching: in a worker.
        instead_of: a world that is no longer needed: its worker is used again, or it is closed; a
            worker that has grown beyond `WORN` bytes is not used again.

    Raises:
        UserError: the engine's library is not installed, or an unknown engine or driver.
        WorkerError: a worker failed.
    """
    elsewhere = interpreter_of(spec.engine, spec.config)
    python = elsewhere or sys.executable
    working = branching or elsewhere is not None
    old = instead_of if isinstance(instead_of, WorkerWorld) else None
    if working and old is not None and old.python == python and not _worn(old):
        with contextlib.suppress(WorkerError):  # it died: a new one is made below
            old.rebuild(spec, events=events)
            return old
    if instead_of is not None:
        instead_of.close()
    if working:
        return WorkerWorld(spec, events=events, python=python, timeout=_timeout(spec))
    return LocalWorld(spec, events=events)


class Seat:
    """Where a process has its one world: another is opened in its place.

    Args:
        world: the one that is there; None: none.
    """

    def __init__(self, world: World | None = None) -> None:
        self.world = world

    def open(self, spec: WorldSpec) -> World:
        """`open_world` in place of the one that is there.

        Raises:
            UserError: as `open_world`.
            WorkerError: a worker failed; nothing is there any more.
        """
        try:
            self.world = open_world(spec, instead_of=self.world)
        except WorkerError:
            self.lose()
            raise
        return self.world

    def lose(self) -> None:
        """Free it: nothing is there any more."""
        if self.world is not None:
            self.world.close()
        self.world = None


@contextlib.contextmanager
def seated(taken: list[World] | None) -> Iterator[Seat]:
    """Take over a process' last world, and leave there what is open at the end.

    A worker keeps its library and compiled kernels so. Where an error comes out, what is open is
    closed and nothing is left.

    Args:
        taken: holds the last world, or is empty; None: nothing is kept for others.
    """
    seat = Seat(taken.pop() if taken else None)
    try:
        yield seat
    except BaseException:
        seat.lose()
        raise
    if taken is None:
        seat.lose()
    elif seat.world is not None:
        taken.append(seat.world)


def foresee(
    world: World,
    stretches: Sequence[tuple[tuple[float, ...], int]],
    *,
    every: bool = False,
    limit: float | None = None,
) -> None:
    """`LocalWorld.foresee`, of any world: to those whose engines are stepped it says nothing."""
    if isinstance(world, LocalWorld):
        world.foresee(stretches, every=every, limit=limit)


def whole_run(world: World) -> tuple[float, float] | None:
    """`LocalWorld.seconds`, of any world."""
    return world.seconds() if isinstance(world, LocalWorld) else None


def _worn(world: WorkerWorld) -> bool:
    """Whether a worker holds more memory than it should: some libraries keep what scenes leave."""
    try:
        pages = int(Path(f"/proc/{world.pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return False
    return pages * os.sysconf("SC_PAGE_SIZE") > WORN


def _timeout(spec: WorldSpec) -> float:
    """Time-out [s] of a call to a worker."""
    return 600.0 if spec.engine in ("bullet", "carom") else 3600.0

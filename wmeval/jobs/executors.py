"""Run many units of work in spawned processes; a crash costs one unit."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from wmeval.errors import UserError

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """What became of one unit.

    Attributes:
        value: what the function returned; None when it failed.
        error: None, or one line that says what went wrong.
        details: traceback of the failure, where there is one.
        fault: the failure itself where it is a `UserError`: a retry cannot help.
        seconds: wall time of the unit.
    """

    value: Value | None
    error: str | None = None
    details: str = ""
    fault: UserError | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """The unit succeeded."""
        return self.error is None


@dataclass(frozen=True)
class Needs:
    """What one worker holds while it runs, where workers are placed.

    Attributes:
        cpus: cores.
        gpus: GPUs, or a share of one.
    """

    cpus: float = 1.0
    gpus: float = 0.0


class Executor(Protocol):
    """Who runs units of work; what it started is kept between `map` calls of one ``with``."""

    def map(
        self,
        function: Callable[[Item], Value],
        items: Sequence[Item],
        *,
        on_outcome: Callable[[int, Outcome[Value]], None] | None = None,
    ) -> list[Outcome[Value]]:
        """As `LocalExecutor.map`."""
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(self, *_: object) -> None: ...


EXECUTORS: dict[str, str] = {
    "local": "wmeval.jobs.executors:LocalExecutor",
    "ray": "wmeval.jobs.ray_executor:RayExecutor",
}
"""Where work runs: processes of this machine, or of a Ray cluster."""


def check_executor(name: str, address: str | None = None) -> None:
    """Refuse what `make_executor` would refuse by its name alone.

    Raises:
        UserError: no such executor, or an address for "local".
    """
    if name not in EXECUTORS:
        raise UserError(f"unknown executor {name!r}: choose from {', '.join(EXECUTORS)}")
    if name == "local" and address:
        raise UserError(f"the address {address} of a cluster is for executor ray, not for local")


def make_executor(
    name: str,
    *,
    workers: int | None = None,
    timeout: float | None = None,
    max_bytes: int | None = None,
    needs: Needs | None = None,
    address: str | None = None,
    folder: Path | None = None,
) -> Executor:
    """An executor by name.

    Args:
        name: row of `EXECUTORS`.
        workers: as `LocalExecutor`.
        timeout: as `LocalExecutor`.
        max_bytes: as `LocalExecutor`.
        needs: what a worker holds; nothing is placed by "local".
        address: of a cluster to join; only for "ray".
        folder: where the units write, if that is a local path: all workers must see it.

    Raises:
        UserError: no such executor, one that is not installed, or an address for "local".
    """
    check_executor(name, address)
    placed: dict[str, Any] = {}
    if name != "local":
        placed = {"needs": needs or Needs(), "address": address, "folder": folder}
    module, _, attribute = EXECUTORS[name].partition(":")
    made: Executor = getattr(import_module(module), attribute)(
        workers=workers, timeout=timeout, max_bytes=max_bytes, **placed
    )
    return made


def attempt(function: Callable[[Any], Any], item: Any) -> Outcome[Any]:
    """Run one unit in this process; what it raises becomes its outcome."""
    start = time.perf_counter()
    try:
        value = function(item)
    except Exception as error:
        text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        fault = error if isinstance(error, UserError) else None
        seconds = time.perf_counter() - start
        return Outcome(None, text, traceback.format_exc(), fault, seconds)
    return Outcome(value, seconds=time.perf_counter() - start)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _drawing_threads(workers: int) -> str:
    """What ``LP_NUM_THREADS`` says to Mesa's software driver: a worker's share of the cores.

    Drawing is spread over so many threads; where the others' work fills the cores, none helps (0).
    """
    share = (os.cpu_count() or 1) // max(workers, 1)
    return str(share if share > 1 else 0)


def _work(function: Callable[[Any], Any], channel: Connection, drawing_threads: str) -> None:
    os.environ.setdefault("LP_NUM_THREADS", drawing_threads)
    # Ctrl-C reaches the whole group; who ends the work is the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # A worker whose parent was killed must not go on writing.
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    while True:
        try:
            item = channel.recv()
        except EOFError:
            return
        outcome = attempt(function, item)
        try:
            channel.send(outcome)
        except (BrokenPipeError, OSError):
            return
        except Exception as error:  # The value cannot be sent: that is the unit's failure.
            channel.send(Outcome(None, f"result cannot be sent: {error}"))


@dataclass
class _Worker:
    process: Any
    channel: Connection
    unit: int = -1
    since: float = 0.0
    served: int = 0


class LocalExecutor:
    """Processes on this machine.

    Args:
        workers: how many processes; 0 runs in this process.
        recycle: units after which a process is replaced, so that leaks stay bounded.
        timeout: wall time [s] after which a unit is given up and its process killed; None: never.
        max_bytes: resident memory with which a process gets no further unit, but is replaced;
            None: any. Known on Linux only.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        recycle: int = 64,
        timeout: float | None = None,
        max_bytes: int | None = None,
    ) -> None:
        workers = (os.cpu_count() or 1) if workers is None else workers
        if workers < 0 or recycle < 1 or (timeout is not None and timeout <= 0):
            raise UserError(
                f"executor: needs workers >= 0, recycle >= 1 and timeout > 0 s; "
                f"got {workers}, {recycle}, {timeout}"
            )
        self.workers, self.recycle, self.timeout = workers, recycle, timeout
        self.max_bytes = max_bytes

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is kept: every `map` ends its own processes."""

    def map(
        self,
        function: Callable[[Item], Value],
        items: Sequence[Item],
        *,
        on_outcome: Callable[[int, Outcome[Value]], None] | None = None,
    ) -> list[Outcome[Value]]:
        """Apply an importable function to every item.

        Args:
            function: found by name in the worker (a module-level function or a partial of one).
            items: its arguments; they and the results must be picklable.
            on_outcome: called in this process as units end, in the order in which they end; what it
                raises ends the whole work.

        Returns:
            One outcome per item, in the items' order. A unit that raises, dies or takes too long is
            a failed outcome; the others go on.
        """
        outcomes: list[Outcome[Value] | None] = [None] * len(items)

        def settle(unit: int, outcome: Outcome[Value]) -> None:
            outcomes[unit] = outcome
            if on_outcome is not None:
                on_outcome(unit, outcome)

        if self.workers == 0:
            for unit, item in enumerate(items):
                settle(unit, attempt(function, item))
        else:
            self._run(function, items, settle)
        return [outcome for outcome in outcomes if outcome is not None]

    def _run(
        self,
        function: Callable[[Item], Value],
        items: Sequence[Item],
        settle: Callable[[int, Outcome[Value]], None],
    ) -> None:
        context = multiprocessing.get_context("spawn")
        pool: list[_Worker] = []
        waiting = list(range(len(items)))[::-1]

        def hire() -> _Worker:
            ours, theirs = context.Pipe()
            threads = _drawing_threads(self.workers)
            process = context.Process(target=_work, args=(function, theirs, threads), daemon=True)
            # A worker starts with the signal blocked, for it cannot ignore it before it runs; the
            # tracker, started by the first worker otherwise, would unblock it.
            resource_tracker.ensure_running()
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
            return _Worker(process, ours)

        try:
            while waiting or pool:
                while waiting and len(pool) < self.workers:
                    pool.append(hire())
                for worker in [w for w in pool if w.unit < 0]:
                    if not waiting or worker.served >= self.recycle or self._swollen(worker):
                        pool.remove(worker)
                        _dismiss(worker)
                        continue
                    unit = waiting.pop()
                    worker.unit, worker.since = unit, time.monotonic()
                    try:
                        worker.channel.send(items[unit])
                    except (BrokenPipeError, OSError):
                        pass  # It is dead; the wait below settles its unit.
                    except Exception as error:
                        worker.unit = -1
                        settle(unit, Outcome(None, f"item cannot be sent: {error}"))
                self._collect(pool, settle)
        finally:
            for worker in pool:
                _dismiss(worker, kill=True)

    def _swollen(self, worker: _Worker) -> bool:
        if self.max_bytes is None or not worker.served:
            return False
        return resident_bytes(worker.process.pid) > self.max_bytes

    def _collect(self, pool: list[_Worker], settle: Callable[[int, Outcome[Any]], None]) -> None:
        busy = [w for w in pool if w.unit >= 0]
        if not busy:
            return
        limit = None
        if self.timeout is not None:
            limit = max(0.0, min(w.since for w in busy) + self.timeout - time.monotonic())
        ready = set(wait([w.channel for w in busy], limit))
        for worker in busy:
            if worker.channel in ready:
                try:
                    outcome = worker.channel.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    outcome = Outcome(
                        None,
                        f"its process died ({_how(worker.process.exitcode)})",
                        seconds=time.monotonic() - worker.since,
                    )
                    pool.remove(worker)
                    worker.channel.close()
                unit, worker.unit = worker.unit, -1
                worker.served += 1
                settle(unit, outcome)
            elif self.timeout is not None and time.monotonic() - worker.since >= self.timeout:
                pool.remove(worker)
                _dismiss(worker, kill=True)
                settle(
                    worker.unit,
                    Outcome(None, f"no result within {self.timeout:g} s", seconds=self.timeout),
                )


def resident_bytes(pid: int) -> int:
    """Memory of a process that lies in RAM; 0 where nothing tells."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _how(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _dismiss(worker: _Worker, *, kill: bool = False) -> None:
    if kill:
        worker.process.kill()
    worker.channel.close()
    worker.process.join()

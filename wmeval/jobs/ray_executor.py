"""Run many units of work on a Ray cluster; a crash, a lost worker or a lost node costs one unit.

A worker is an actor: a process that keeps what it built (an environment with its GL context) from
unit to unit, asks for the cores and GPUs that one unit needs, and is replaced after so many units.
It holds one unit at a time, so never more objects are in flight than there are workers. Ray
repeats nothing by itself: who asked for the work sees every failure, and decides.

Functions, items and results travel as plain pickles, so a function is found by name and every node
needs this package, of the same version.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import math
import os
import pickle
import secrets
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from wmeval.errors import UserError, one_line
from wmeval.jobs.atomic import witness
from wmeval.jobs.executors import Needs, Outcome, attempt, resident_bytes

Item = TypeVar("Item")
Value = TypeVar("Value")

_OBJECT_STORE = 100 << 20
_LOOK_AGAIN = 5.0
_DIES_WITHIN = 10.0
_PATIENCE = 300.0
_FAILED_STARTS = 3
_LONGEST_BASE = 24
_ANSWERS_WITHIN = 10.0
_FOLDER = "wmeval-ray-"


class RayExecutor:
    """Processes of a Ray cluster; same contract as `LocalExecutor`.

    Args:
        workers: how many; None: as many as the nodes that are there now have room for.
        recycle: units after which a worker is replaced.
        timeout: wall time [s] after which a unit is given up and its worker killed; None: never.
        max_bytes: resident memory with which a worker gets no further unit, but is replaced.
        needs: what one worker holds.
        address: of a cluster, as ``ray start`` names it, or "auto"; None: the variable
            ``RAY_ADDRESS``, else a cluster of this machine alone. It listens on the loopback
            interface only, and ends with the work, or with this process however that dies. Where
            this process is connected to a cluster already, that one is used and left as it is.
        folder: where the units write, if that is a local path: every worker must see it.

    Raises:
        UserError: Ray is not installed, or settings out of range.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        recycle: int = 64,
        timeout: float | None = None,
        max_bytes: int | None = None,
        needs: Needs = Needs(),  # noqa: B008  (frozen)
        address: str | None = None,
        folder: Path | None = None,
    ) -> None:
        _refuse_absent()
        low = (workers is not None and workers < 1) or recycle < 1
        if low or (timeout is not None and timeout <= 0) or needs.cpus < 0 or needs.gpus < 0:
            raise UserError(
                f"executor ray: needs workers >= 1, recycle >= 1, timeout > 0 s, cores and GPUs "
                f">= 0; got {workers}, {recycle}, {timeout}, {needs.cpus:g}, {needs.gpus:g}"
            )
        self.workers, self.recycle, self.timeout = workers, recycle, timeout
        self.max_bytes, self.needs, self.folder = max_bytes, needs, folder
        self.address = address or os.environ.get("RAY_ADDRESS") or "local"
        if "://" in self.address:
            raise UserError(
                f"{self.address}: Ray's client cannot watch its workers: run this on a node of the "
                "cluster, with its host:port or auto"
            )
        self._ends: contextlib.ExitStack | None = None

    def __enter__(self) -> RayExecutor:
        if self._ends is None:
            self._ends = contextlib.ExitStack()
        return self

    def __exit__(self, *_: object) -> None:
        ends, self._ends = self._ends, None
        if ends is not None:
            ends.close()

    def map(
        self,
        function: Callable[[Item], Value],
        items: Sequence[Item],
        *,
        on_outcome: Callable[[int, Outcome[Value]], None] | None = None,
    ) -> list[Outcome[Value]]:
        """As `LocalExecutor.map`.

        Raises:
            UserError: no cluster answers, none of its nodes has what a worker needs, or workers
                cannot start there.
        """
        outcomes: list[Outcome[Value] | None] = [None] * len(items)

        def settle(unit: int, outcome: Outcome[Value]) -> None:
            outcomes[unit] = outcome
            if on_outcome is not None:
                on_outcome(unit, outcome)

        if items:
            with contextlib.ExitStack() as ends:
                if self._ends is None:
                    self.__enter__()
                    ends.callback(self.__exit__)
                self._connect()
                seen = None
                if self.folder is not None:
                    seen = str(ends.enter_context(witness(self.folder.absolute())))
                _Run(self, pickle.dumps(function), items, settle, seen).go()
        return [outcome for outcome in outcomes if outcome is not None]

    def _connect(self) -> None:
        ray = _ray()

        if ray.is_initialized():
            return
        assert self._ends is not None
        own = self.address == "local"
        if not own and self.address != "auto":
            _answers(self.address)
        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if own:
            workers = self.workers or math.floor((os.cpu_count() or 1) / (self.needs.cpus or 1))
            options |= {
                "num_cpus": math.ceil(max(workers, 1) * self.needs.cpus),
                "num_gpus": None if self.needs.gpus else 0,
                "include_dashboard": False,
                "object_store_memory": _OBJECT_STORE,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": self._ends.enter_context(_short_folder()),
            }
        self._ends.enter_context(_as_it_was())
        self._ends.callback(ray.shutdown)
        self._ends.enter_context(_quiet())
        with _private() if own else contextlib.nullcontext():
            try:
                ray.init(address=self.address, **options)
            except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
                if not own:
                    raise _no_cluster(self.address, error) from error
                raise UserError(one_line(f"Ray does not start here: {error}", 400)) from error


# --- in the worker ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Hello:
    """What a worker says of itself; ``error`` where it cannot work."""

    pid: int
    node: str
    host: str
    version: str
    error: str = ""


class _Unit:
    """The actor. It answers with pickles, so that what cannot be sent is the unit's own failure."""

    def begin(
        self, function: bytes, folder: str, paths: list[str], seen: str | None, cores: int
    ) -> _Hello:
        """Find the function, from the folder and on the paths of who asked for the work."""
        import wmeval

        ray = _ray()

        # Ctrl-C reaches the whole group; who ends the work is the driver.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Mesa's software driver spreads drawing over threads: no more of them than cores held.
        os.environ.setdefault("LP_NUM_THREADS", str(cores if cores > 1 else 0))
        with contextlib.suppress(OSError):
            os.chdir(folder)
        sys.path.extend(path for path in paths if path not in sys.path)
        error = ""
        if seen is not None and not Path(seen).exists():
            error = (
                f"{Path(seen).parent}: not seen there, so its samples would be lost: give a folder "
                "that all nodes share, or a URL (s3://...)"
            )
        else:
            try:
                self._function = pickle.loads(function)
            except Exception as fault:
                error = f"cannot find what to run: {type(fault).__name__}: {fault}"
        node = ray.get_runtime_context().get_node_id()
        host = ray.util.get_node_ip_address()
        return _Hello(os.getpid(), node, host, wmeval.__version__, error)

    def run(self, item: bytes) -> tuple[bytes, int]:
        """The outcome of one unit, and the memory that this process then holds [bytes]."""
        outcome = attempt(self._read_and_run, item)
        try:
            sent = pickle.dumps(outcome)
        except Exception as error:
            sent = pickle.dumps(Outcome(None, f"result cannot be sent: {error}"))
        return sent, resident_bytes(os.getpid())

    def _read_and_run(self, item: bytes) -> Any:
        return self._function(pickle.loads(item))


# --- in the driver ------------------------------------------------------------------------------


@dataclass(eq=False)
class _Worker:
    """One actor. It always has exactly one answer outstanding: of its start, or of its unit."""

    actor: Any
    answer: Any
    unit: int = -1
    since: float = 0.0
    served: int = 0
    host: str = ""
    watch: int = -1


@dataclass
class _Run:
    """One `map`."""

    asked: RayExecutor
    function: bytes
    items: Sequence[Any]
    settle: Callable[[int, Outcome[Any]], None]
    seen: str | None
    pool: list[_Worker] = field(default_factory=list)
    failed_starts: int = 0
    looked: float = -math.inf
    offered: float = field(default_factory=time.monotonic)
    most: int = 1

    def go(self) -> None:
        ray = _ray()

        needs = self.asked.needs
        actor = ray.remote(_Unit).options(
            num_cpus=needs.cpus, num_gpus=needs.gpus, max_restarts=0, max_task_retries=0
        )
        here = ray.get_runtime_context().get_node_id()
        waiting = list(range(len(self.items)))[::-1]
        try:
            while waiting or any(w.unit >= 0 for w in self.pool):
                self._look()
                starting = sum(w.unit < 0 for w in self.pool)
                while len(self.pool) < self.most and starting < len(waiting):
                    made = actor.remote()
                    answer = made.begin.remote(
                        self.function, os.getcwd(), sys.path, self.seen, math.floor(needs.cpus)
                    )
                    self.pool.append(_Worker(made, answer))
                    starting += 1
                self._collect(waiting, here)
        except ray.exceptions.RaySystemError as error:
            raise UserError(f"the Ray cluster is gone: {one_line(error, 300)}") from error
        finally:
            for worker in self.pool:
                _kill(worker, wait=False)
            for worker in self.pool:
                _kill(worker)

    def _look(self) -> None:
        """See how many workers the cluster has room for; give up on one that has for none."""
        now = time.monotonic()
        if now - self.looked < _LOOK_AGAIN:
            return
        self.looked = now
        ray = _ray()

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        room = sum(_room(node, self.asked.needs) for node in nodes)
        self.most = self.asked.workers or max(room, 1)
        patience = 0.0 if self.asked.address == "local" else _PATIENCE
        if room or any(w.unit >= 0 for w in self.pool):
            self.offered = now
        elif now - self.offered >= patience:
            needs = self.asked.needs
            waited = f" for {patience:g} s" if patience else ""
            raise UserError(
                f"executor ray: a worker needs {needs.cpus:g} cores and {needs.gpus:g} GPUs; no "
                f"node had them{waited} (nodes: "
                + "; ".join(f"{n.get('CPU', 0):g} cores, {n.get('GPU', 0):g} GPUs" for n in nodes)
                + ")"
            )

    def _collect(self, waiting: list[int], here: str) -> None:
        ray = _ray()

        limit, timeout = _LOOK_AGAIN, self.asked.timeout
        busy = [w.since for w in self.pool if w.unit >= 0]
        if timeout is not None and busy:
            limit = min(limit, max(0.0, min(busy) + timeout - time.monotonic()))
        by_answer = {worker.answer: worker for worker in self.pool}
        ready, _ = ray.wait(list(by_answer), timeout=limit)
        for answer in ready:
            worker = by_answer[answer]
            if worker.unit < 0:
                self._started(worker, here)
            else:
                self._ended(worker)
            if worker in self.pool:
                self._hand_out(worker, waiting)
        for worker in [w for w in self.pool if w.unit >= 0 and timeout is not None]:
            assert timeout is not None
            if (
                time.monotonic() - worker.since >= timeout
                and not ray.wait([worker.answer], timeout=0)[0]
            ):
                self._dismiss(worker)
                outcome: Outcome[Any] = Outcome(
                    None, f"no result within {timeout:g} s", seconds=timeout
                )
                self.settle(worker.unit, outcome)

    def _started(self, worker: _Worker, here: str) -> None:
        import wmeval

        ray = _ray()

        try:
            hello: _Hello = ray.get(worker.answer)
        except ray.exceptions.RayError as error:
            self._dismiss(worker)
            self.failed_starts += 1
            if self.failed_starts >= _FAILED_STARTS:
                raise UserError(
                    "executor ray: workers cannot start (every node needs this package and what "
                    f"it stands on): {_cause(error)}"
                ) from error
            return
        self.failed_starts = 0
        fault = hello.error
        if not fault and hello.version != wmeval.__version__:
            fault = f"wmeval {hello.version} there, {wmeval.__version__} here: install the same"
        if fault:
            raise UserError(f"executor ray: node {hello.host}: {fault}")
        worker.host = hello.host
        if hello.node == here:
            with contextlib.suppress(OSError, AttributeError):
                worker.watch = os.pidfd_open(hello.pid)

    def _ended(self, worker: _Worker) -> None:
        ray = _ray()

        unit, seconds = worker.unit, time.monotonic() - worker.since
        try:
            sent, held = ray.get(worker.answer)
        except ray.exceptions.RayError as error:
            self._dismiss(worker)
            self.settle(unit, Outcome(None, _cause(error, worker.host), seconds=seconds))
            return
        worker.unit = -1
        worker.served += 1
        most = self.asked.max_bytes
        if worker.served >= self.asked.recycle or (most is not None and held > most):
            self._dismiss(worker)
        self.settle(unit, pickle.loads(sent))

    def _hand_out(self, worker: _Worker, waiting: list[int]) -> None:
        while waiting:
            unit = waiting.pop()
            try:
                item = pickle.dumps(self.items[unit])
            except Exception as error:
                self.settle(unit, Outcome(None, f"item cannot be sent: {error}"))
                continue
            worker.unit, worker.since = unit, time.monotonic()
            worker.answer = worker.actor.run.remote(item)
            return
        self._dismiss(worker)

    def _dismiss(self, worker: _Worker) -> None:
        self.pool.remove(worker)
        _kill(worker)


def _kill(worker: _Worker, *, wait: bool = True) -> None:
    """End an actor; where it runs on this machine, it is dead when this returns."""
    ray = _ray()

    with contextlib.suppress(Exception):  # It is dead, or its cluster is gone.
        ray.kill(worker.actor, no_restart=True)
    if wait and worker.watch >= 0:
        if not _gone(worker.watch, _DIES_WITHIN):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(worker.watch, signal.SIGKILL)
            _gone(worker.watch, _DIES_WITHIN)
        os.close(worker.watch)
        worker.watch = -1


def _gone(watch: int, seconds: float) -> bool:
    return bool(select.select([watch], [], [], seconds)[0])


def _room(node: dict[str, float], needs: Needs) -> int:
    """How many workers fit a node that does nothing else."""
    pairs = (("CPU", needs.cpus), ("GPU", needs.gpus))
    fits = [node.get(kind, 0.0) / asked for kind, asked in pairs if asked > 0]
    return math.floor(min(fits, default=1.0) + 1e-9)


def _cause(error: Exception, host: str = "") -> str:
    """One line of Ray's several: how a process came to its end."""
    text = one_line(error, 10_000)
    for mark in ("Worker exit detail:", "The actor is dead because", "The actor died because"):
        if mark in text:
            text = text.split(mark, 1)[1].strip()
            break
    if text.startswith("Worker unexpectedly exits with a connection error"):
        text = "killed, or crashed"  # Nobody waits for it who could tell how.
    where = f" on {host}" if host else ""
    return one_line(f"its process{where} died ({text.rstrip('.')})", 300)


# --- a cluster of our own -----------------------------------------------------------------------


def _ray() -> Any:
    return import_module("ray")


def _refuse_absent() -> None:
    if find_spec("ray") is None:
        raise UserError("ray is not installed: pip install 'wmeval[ray]'")


def _answers(address: str) -> None:
    """Ask at once; Ray itself tries for minutes where nobody listens."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWERS_WITHIN).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> UserError:
    return UserError(
        one_line(f"no Ray cluster at {address}: {error}", 300)
        + "; if it asks for a token, set RAY_AUTH_MODE=token; without an address a cluster of this "
        "machine alone is started, and ended with the work"
    )


@cache
def _token() -> str:
    """Secret of this process's own clusters: other users of the machine may not join them."""
    return secrets.token_hex(32)


@contextmanager
def _private() -> Iterator[None]:
    """What Ray is started with: no address but the loopback's, no statistics sent, a secret."""
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        # Read on every system, whatever its name says: without it the node takes an outer address.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        # Ray asks for a token where nothing is said; without this one it leaves one in the home.
        "RAY_AUTH_MODE": None,
        "RAY_AUTH_TOKEN": _token(),
        # Who asks for no GPU keeps what the machine shows, as with local processes.
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_ADDRESS": None,
    }
    _ray()  # Its logger and its constants are set before they are changed.

    before = {name: os.environ.get(name) for name in settings}
    constants = import_module("ray._private.ray_constants")
    cluster = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    log = logging.getLogger("ray")
    level = log.level
    log.setLevel(logging.ERROR)
    _environ(settings)
    if cluster is not None:
        vars(constants)["ENABLE_RAY_CLUSTER"] = False
    try:
        yield
    finally:
        _environ(before)
        log.setLevel(level)
        if cluster is not None:
            vars(constants)["ENABLE_RAY_CLUSTER"] = cluster


def _environ(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _short_folder() -> Iterator[str]:
    """A temporary folder; the sockets in it must have names of less than 108 characters.

    A lock shows that it is in use; folders of killed processes go with the next one's.
    """
    base = tempfile.gettempdir()
    base = base if len(base) <= _LONGEST_BASE else "/tmp"
    for left in Path(base).glob(f"{_FOLDER}*/lock"):
        with contextlib.suppress(OSError), left.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left.parent, ignore_errors=True)
    folder, held = _locked_folder(base)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _locked_folder(base: str) -> tuple[str, int]:
    while True:
        folder = tempfile.mkdtemp(prefix=_FOLDER, dir=base)
        path = Path(folder, "lock")
        lock = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return folder, lock
        os.close(lock)  # Before it was locked, another process took it for one left behind.


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray tells of every dead worker, at length, where results are printed; outcomes tell it."""
    module, name = import_module("ray._private.worker"), "print_to_stdstream"
    before = vars(module).get(name)
    if before is None:
        yield
        return
    vars(module)[name] = lambda *_, **__: None
    try:
        yield
    finally:
        vars(module)[name] = before


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Ray takes over SIGTERM and ``breakpoint()``, and leaves them so."""
    signal_before, name = signal.getsignal(signal.SIGTERM), "PYTHONBREAKPOINT"
    before = {name: os.environ.get(name)}
    try:
        yield
    finally:
        _environ(before)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal_before)

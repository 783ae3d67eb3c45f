"""The worker boundary: another process, any interpreter, JSON headers and raw arrays, no pickle.

A worker is started with a socket of its own, so whatever it prints cannot garble the protocol.
Every message is ``b"WMW1"``, the lengths of a JSON header and of the payload, the header, and the
arrays back to back; both lengths are checked against a limit before anything is allocated. Each
call has a time-out that the worker's own kernel timer enforces too, so that a worker that hangs
ends even when its client is gone; an idle worker ends when its socket closes.

`WorkerClient.fork` splits a worker: the copies go on from the present state, each with its own
socket, in a millisecond or two. A worker that has forked stays to reap its copies.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError, user_error

Header = dict[str, Any]
Buffers = dict[str, NDArray[Any]]
Handler = Callable[[Header, Buffers], tuple[Header, Buffers]]

MAX_BYTES = 1 << 31
_MAX_HEADER = 1 << 26
_MAGIC = b"WMW1"
_PREFIX = struct.Struct("<4sIQ")
_ALIGN = 16
_TAIL = 16384
_GRACE = 1.0
_MAX_FORK = 64
_BOOT = Path(__file__).with_name("worker_boot.py")
_PACKAGE = Path(__file__).parents[1]

Kind = Literal["start", "crash", "timeout", "protocol", "error"]


class WorkerError(RuntimeError):
    """A worker failed; it costs the work it was doing and nothing else.

    Attributes:
        kind: "start" (it never answered), "crash" (it died), "timeout", "protocol" (it sent what
            is no message), "error" (a handler raised; the worker lives on).
        what: what happened, without what it printed.
        printed: the end of what it printed.
    """

    def __init__(self, kind: Kind, what: str, printed: str = "") -> None:
        super().__init__(what + (f"; it printed last:\n{printed}" if printed else ""))
        self.kind, self.what, self.printed = kind, what, printed

    @property
    def why(self) -> str:
        """What happened; of a worker that did not come up also the last line that it printed."""
        last = self.printed.strip().rpartition("\n")[2].strip() if self.kind == "start" else ""
        return self.what + (f": {last}" if last else "")


class _GarbageError(Exception):
    """The other side sent what is no message."""


# --- messages -----------------------------------------------------------------------------------


def _send(sock: socket.socket, head: Header, buffers: Mapping[str, NDArray[Any]]) -> None:
    arrays = [(name, np.ascontiguousarray(array)) for name, array in buffers.items()]
    for name, array in arrays:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"array {name!r} has dtype {array.dtype}; only numbers can be sent")
    # ascontiguousarray makes a scalar one-dimensional; the shape sent is the original's.
    shapes = [list(np.shape(array)) for array in buffers.values()]
    described = [
        [name, array.dtype.str, shape] for (name, array), shape in zip(arrays, shapes, strict=True)
    ]
    header = json.dumps({**head, "buffers": described}, separators=(",", ":")).encode()
    parts = [part for _, array in arrays for part in (array.data, bytes(-array.nbytes % _ALIGN))]
    total = sum(array.nbytes + -array.nbytes % _ALIGN for _, array in arrays)
    # In one piece: the other side may answer and be gone once it has read what it needs.
    sock.sendall(b"".join([_PREFIX.pack(_MAGIC, len(header), total), header, *parts]))


def _read(sock: socket.socket, count: int, deadline: float | None) -> bytearray:
    data = bytearray(count)
    view = memoryview(data)
    done = 0
    while done < count:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
        got = sock.recv_into(view[done:])
        if got == 0:
            raise EOFError
        done += got
    return data


def _receive(
    sock: socket.socket, max_bytes: int, deadline: float | None = None
) -> tuple[Header, Buffers]:
    magic, header_bytes, total = _PREFIX.unpack(_read(sock, _PREFIX.size, deadline))
    if magic != _MAGIC:
        raise _GarbageError(f"it begins with {magic!r}")
    if header_bytes > _MAX_HEADER or total > max_bytes:
        raise _GarbageError(f"it is {header_bytes} + {total} bytes, over the limit of {max_bytes}")
    try:
        head = json.loads(_read(sock, header_bytes, deadline))
        described = head.pop("buffers")
        payload = memoryview(_read(sock, total, deadline))
        buffers: Buffers = {}
        offset = 0
        for name, dtype_name, shape in described:
            dtype = np.dtype(dtype_name)
            if dtype.kind not in "biuf":
                raise _GarbageError(f"array {name!r} has dtype {dtype}")
            if any(not isinstance(n, int) or n < 0 for n in shape):
                raise _GarbageError(f"array {name!r} has shape {shape}")
            size = math.prod(shape) * dtype.itemsize
            if offset + size > total:
                raise _GarbageError(f"array {name!r} passes the end")
            buffers[name] = np.frombuffer(payload[offset : offset + size], dtype).reshape(shape)
            offset += size + -size % _ALIGN
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _GarbageError(f"its header is broken ({error})") from error
    return head, buffers


# --- the worker's side --------------------------------------------------------------------------


def serve(
    handlers: Mapping[str, Handler], sock: socket.socket, *, max_bytes: int = MAX_BYTES
) -> None:
    """Answer calls until the client closes, or says so.

    The verbs "hello", "fork" and "close" are answered here.

    Args:
        handlers: verb to function of (header, arrays) that returns the same.
        sock: a connected stream socket; a forked copy goes on with its own.
        max_bytes: greatest payload accepted.
    """
    copies: set[int] = set()
    # To ignore the signal would do, but libraries could not wait for what they start themselves.
    signal.signal(signal.SIGCHLD, lambda *_: _bury(copies))
    # Writing to a client that is gone is the end of the socket, not a signal.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            sock.settimeout(None)
            head, buffers = _receive(sock, max_bytes)
            verb, header = head["verb"], head["header"]
            signal.setitimer(signal.ITIMER_REAL, head["timeout"])
            if verb == "fork":
                sock = _split(sock, header["n"], copies)
                continue
            if verb == "close":
                _send(sock, {"ok": True, "header": {}}, {})
                break
            answer, arrays = _answer(handlers, verb, header, buffers)
            _send(sock, answer, arrays)
            signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    sock.close()
    # Stay as the parent of forked copies until the last one ends: nobody else may reap them.
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _answer(
    handlers: Mapping[str, Handler], verb: str, header: Header, buffers: Buffers
) -> tuple[Header, Buffers]:
    if verb == "hello":
        about = {
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "numpy": np.__version__,
            "verbs": sorted(handlers),
        }
        return {"ok": True, "header": about}, {}
    try:
        if verb not in handlers:
            raise UserError(
                f"the worker has no verb {verb!r}; known: {', '.join(sorted(handlers))}"
            )
        out, arrays = handlers[verb](header, buffers)
        return {"ok": True, "header": out}, arrays
    except UserError as error:
        return {"ok": False, "user": type(error).__name__, "message": str(error)}, {}
    except Exception as error:
        import traceback

        text = "".join(traceback.format_exception(error))[-_TAIL:]
        return {"ok": False, "user": "", "message": text}, {}


def _bury(copies: set[int]) -> None:
    """Reap the copies that have ended, and no other child."""
    for pid in tuple(copies):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            copies.discard(pid)


def _split(sock: socket.socket, n: int, copies: set[int]) -> socket.socket:
    """Fork n copies, noted by their numbers; returns the socket that this process goes on with."""
    _, descriptors, _, _ = socket.recv_fds(sock, 1, n)
    sys.stdout.flush()
    sys.stderr.flush()
    for i, descriptor in enumerate(descriptors):
        pid = os.fork()
        if pid == 0:
            copies.clear()
            for other in (*descriptors[i + 1 :], sock.detach()):
                os.close(other)
            own = socket.socket(fileno=descriptor)
            _send(own, {"ok": True, "header": {"pid": os.getpid()}}, {})
            return own
        copies.add(pid)
        os.close(descriptor)
    _bury(copies)  # one may have ended before it was noted
    _send(sock, {"ok": True, "header": {"forked": len(descriptors)}}, {})
    signal.setitimer(signal.ITIMER_REAL, 0)
    return sock


# --- the client's side --------------------------------------------------------------------------

_lingering: list[subprocess.Popen[bytes]] = []
"""Closed workers that wait for their forked copies; polled so that none stays a zombie."""


def _reap() -> None:
    _lingering[:] = [p for p in _lingering if p.poll() is None]


def _let_go(sock: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
    sock.close()
    if process is not None and process.poll() is None:
        _lingering.append(process)


class _Tail:
    """The last of what a worker and its copies printed."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.echo = False
        """Pass it on to this process's standard error."""

    def follow(self, descriptor: int) -> None:
        def drain() -> None:
            with os.fdopen(descriptor, "rb", buffering=0) as stream:
                while data := stream.read(65536):
                    if self.echo:
                        with contextlib.suppress(OSError):
                            os.write(2, data)
                    self._data += data
                    del self._data[:-_TAIL]

        self._thread = threading.Thread(target=drain, daemon=True, name="worker-output")
        self._thread.start()

    def text(self) -> str:
        # The pipe closes with the last copy; while others live, what is there must do.
        self._thread.join(0.3)
        return self._data.decode(errors="replace").strip()


class WorkerClient:
    """A worker process and its socket.

    Args:
        target: "module:function" or "/path/file.py:function" that returns the handlers
            (see `serve`); the module is imported by the worker's interpreter.
        python: the interpreter; its environment needs numpy, pydantic and what the target imports.
        timeout: default time-out of a call [s].
        start_timeout: time-out of the start [s].
        max_bytes: greatest payload in either direction.
        one_thread: its numeric libraries use one thread, unless the environment says otherwise.
        echo: what it prints, once it is up, goes to this process's standard error too.
        name: what messages call it.

    Raises:
        UserError: there is no such interpreter.
        WorkerError: the worker did not come up; the message ends with what it printed.
    """

    def __init__(
        self,
        target: str,
        *,
        python: str | os.PathLike[str] = sys.executable,
        timeout: float = 120.0,
        start_timeout: float = 60.0,
        max_bytes: int = MAX_BYTES,
        one_thread: bool = True,
        echo: bool = False,
        name: str = "",
    ) -> None:
        _reap()
        self._timeout, self._max_bytes = timeout, max_bytes
        self._name = name or f"worker {target.rpartition('/')[2]}"
        self._failure: WorkerError | None = None
        ours, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if one_thread else ()
        environment = {**dict.fromkeys(threads, "1"), **os.environ}
        arguments = [os.fspath(python), "-I", str(_BOOT), str(_PACKAGE), target]
        try:
            process = subprocess.Popen(
                [*arguments, str(theirs.fileno()), str(max_bytes)],
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                pass_fds=(theirs.fileno(),),
                env=environment,
            )
        except OSError as error:
            ours.close()
            os.close(read_end)
            raise UserError(f"cannot run {os.fspath(python)!r} ({error}): name a Python") from error
        finally:
            theirs.close()
            os.close(write_end)
        self._tail = _Tail()
        self._tail.follow(read_end)
        self._attach(ours, process)
        self._root: WorkerClient | None = None
        try:
            self.about = self.call("hello", timeout=start_timeout)[0]
        except WorkerError as error:
            if error.kind in ("crash", "timeout"):
                raise WorkerError("start", error.what, error.printed) from None
            raise
        self._tail.echo = echo
        self.pid: int = self.about["pid"]

    def _attach(self, sock: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
        self._sock, self._process = sock, process
        self._finalizer = weakref.finalize(self, _let_go, sock, process)

    @property
    def failed(self) -> bool:
        """It died, hung, sent garbage or was ended: every further call fails."""
        return self._failure is not None or not self._finalizer.alive

    # --- verbs ----------------------------------------------------------------------------------

    def call(
        self,
        verb: str,
        header: Mapping[str, Any] | None = None,
        buffers: Mapping[str, NDArray[Any]] | None = None,
        *,
        timeout: float | None = None,
    ) -> tuple[Header, Buffers]:
        """Ask for one thing and wait for the answer.

        Args:
            verb: of the worker's handlers.
            header: JSON-able.
            buffers: arrays of numbers.
            timeout: time-out [s]; None is the client's default.

        Raises:
            UserError: the worker found the request at fault; it lives on.
            WorkerError: it crashed, hung, answered garbage, or a handler raised.
        """
        limit = self._timeout if timeout is None else timeout
        self._ask(verb, dict(header or {}), buffers or {}, limit)
        return self._result(verb, limit)

    def _ask(
        self, verb: str, header: Header, buffers: Mapping[str, NDArray[Any]], limit: float
    ) -> None:
        if self._failure is not None:
            raise WorkerError(self._failure.kind, f"{self._name} is gone: {self._failure}")
        if not self._finalizer.alive:
            raise WorkerError("crash", f"{self._name} is closed")
        self._asked = time.monotonic()
        self._sock.settimeout(limit + _GRACE)
        try:
            _send(self._sock, {"verb": verb, "header": header, "timeout": limit}, buffers)
        except TimeoutError:
            raise self._fail("timeout", f"took no request {verb!r} for {limit:g} s") from None
        except OSError:
            raise self._died(verb, limit) from None

    def _result(self, verb: str, limit: float) -> tuple[Header, Buffers]:
        try:
            head, arrays = _receive(self._sock, self._max_bytes, self._asked + limit + _GRACE)
        except TimeoutError:
            raise self._fail("timeout", f"{verb!r} took longer than {limit:g} s") from None
        except (EOFError, ConnectionError):
            raise self._died(verb, limit) from None
        except _GarbageError as error:
            raise self._fail("protocol", f"answered {verb!r} with no message: {error}") from None
        if head.get("ok") is True:
            return head["header"], arrays
        message = str(head.get("message", "no reason given"))
        if head.get("user"):
            raise user_error(head["user"], message)
        raise WorkerError("error", f"{self._name}, verb {verb!r}: {message}")

    def _died(self, verb: str, limit: float) -> WorkerError:
        if time.monotonic() - self._asked >= limit:
            return self._fail("timeout", f"{verb!r} took longer than {limit:g} s")
        how = ""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(1.0)
                how = f" ({_signal_name(-code)})" if code < 0 else f" (exit status {code})"
        return self._fail("crash", f"died{how} during {verb!r}")

    def _fail(self, kind: Kind, what: str) -> WorkerError:
        if self._process is not None:
            self._process.kill()
        self._failure = WorkerError(kind, f"{self._name} {what}", self._tail.text())
        self._finalizer()
        return self._failure

    def fork(self, n: int, *, timeout: float | None = None) -> list[WorkerClient]:
        """Split into n further workers that go on from the present state.

        Raises:
            UserError: n is not 1 or more.
            WorkerError: as `call`.
        """
        if n < 1:
            raise UserError(f"fork({n}): ask for at least one copy")
        limit = self._timeout if timeout is None else timeout
        copies: list[WorkerClient] = []
        while len(copies) < n:
            copies += self._fork_some(min(n - len(copies), _MAX_FORK), limit)
        return copies

    def _fork_some(self, n: int, limit: float) -> list[WorkerClient]:
        pairs = [socket.socketpair() for _ in range(n)]
        try:
            self._ask("fork", {"n": n}, {}, limit)
            socket.send_fds(self._sock, [b"f"], [theirs.fileno() for _, theirs in pairs])
        except BaseException:
            for ours, _ in pairs:
                ours.close()
            raise
        finally:
            for _, theirs in pairs:
                theirs.close()
        copies = [self._copy(ours) for ours, _ in pairs]
        self._result("fork", limit)
        for copy in copies:
            copy._asked = self._asked
            copy.pid = copy._result("fork", limit)[0]["pid"]
        return copies

    def _copy(self, sock: socket.socket) -> WorkerClient:
        copy = object.__new__(WorkerClient)
        copy._timeout, copy._max_bytes = self._timeout, self._max_bytes
        copy._name, copy._failure, copy._tail = self._name, None, self._tail
        copy.about = self.about
        copy._attach(sock, None)
        return copy

    # --- end ------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the worker; idempotent. Forked copies go on."""
        if self._finalizer.alive:
            with contextlib.suppress(WorkerError, UserError):
                self.call("close", timeout=2.0)
            self._finalizer()
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    # Not long: with forked copies alive it stays to reap them.
                    self._process.wait(0.2)
        _reap()

    def kill(self) -> None:
        """End the worker at once, whatever it is doing; idempotent."""
        if self._process is not None:
            self._process.kill()
        self._finalizer()

    def __enter__(self) -> WorkerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _signal_name(number: int) -> str:
    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return f"killed by signal {number}"

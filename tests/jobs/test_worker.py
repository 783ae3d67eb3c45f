"""The worker boundary: exact messages, and every way a worker can fail."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from wmeval.errors import DiskError, NotFiniteError, UserError
from wmeval.jobs.worker import WorkerClient, WorkerError, _GarbageError, _reap, _receive, _send

TARGET = """
import os, sys, time
import numpy as np

SOCKET = None

def handlers():
    count = [0]

    def echo(header, buffers):
        return header, buffers

    def add(header, buffers):
        count[0] += header["n"]
        return {"count": count[0], "pid": os.getpid()}, {}

    def crash(header, buffers):
        print("last words", file=sys.stderr, flush=True)
        os.abort()

    def leave(header, buffers):
        os._exit(7)

    def hang(header, buffers):
        time.sleep(600)

    def busy(header, buffers):
        while True:
            sum(range(1000))

    def fail(header, buffers):
        raise KeyError("cupboard")

    def fault(header, buffers):
        from wmeval import errors
        raise getattr(errors, header.get("kind", "UserError"))("field x: give a number")

    def garbage(header, buffers):
        os.write(int(sys.argv[3]), b"<html>no such page</html>" * 10)
        time.sleep(600)

    def huge(header, buffers):
        return {}, {"x": np.zeros(header["bytes"], np.uint8)}

    def noise(header, buffers):
        for _ in range(5000):
            print("x" * 100)
        return {}, {}

    def start(header, buffers):
        import subprocess
        return {"code": subprocess.run(["sh", "-c", "exit 3"]).returncode}, {}

    def children(header, buffers):
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return {"pids": [int(pid) for pid in file.read().split()]}, {}

    def paths(header, buffers):
        return {"path": sys.path, "modules": sorted(sys.modules)}, {}

    return {k: v for k, v in locals().items() if callable(v)}
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("worker") / "target.py"
    path.write_text(TARGET)
    return f"{path}:handlers"


@pytest.fixture
def worker(target):
    with WorkerClient(target, timeout=100) as client:
        yield client


def test_arrays_and_headers_come_back_exactly(worker):
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.normal(size=(3, 4, 5)),
        "empty": np.zeros((0, 7), np.float32),
        "scalar": np.array(2.5),
        "bits": np.array([[True, False]]),
        "slice": np.arange(20, dtype=np.int16)[::3],
        "nan": np.array([np.nan, np.inf, -0.0]),
        "big": rng.integers(0, 255, (600, 700), np.uint8),
    }
    header = {"text": "ä\n", "float": 0.1 + 0.2, "nested": {"x": [None, True, -1]}}
    out, back = worker.call("echo", header, arrays)
    assert out == header
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8),
        nps.arrays(
            st.sampled_from(["f8", "f4", "i8", "i2", "u1", "bool"]),
            nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
        ),
        max_size=4,
    )
)
def test_any_arrays_survive_a_message(arrays):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        _send(ours, {"n": 1}, arrays)
        head, back = _receive(theirs, 1 << 20)
    assert head == {"n": 1}
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert back[name].tobytes() == array.tobytes()


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.builds(
            lambda h, p, n: struct.pack("<4sIQ", b"WMW1", len(h), n) + h + p,
            st.one_of(
                st.binary(max_size=60),
                st.sampled_from(
                    [
                        b"[]",
                        b'{"buffers":[["a","<f8",[6]]]}',  # more bytes than ever come
                        b'{"buffers":[["a","|O",[1]]]}',
                        b'{"buffers":[["a","<f8",[-1]]]}',
                        b'{"buffers":[["a","<f8",[1e3]]]}',
                        b'{"buffers":[["a"]]}',
                        b'{"buffers":7}',
                        b'{"buffers":[["a","nonsense",[1]]]}',
                    ]
                ),
            ),
            st.binary(max_size=40),
            st.integers(0, 2**63),
        ),
    )
)
def test_what_is_no_message_is_refused(data):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(data)
        ours.close()
        with pytest.raises((_GarbageError, EOFError)):
            _receive(theirs, 1 << 16)


def test_objects_are_not_sent(worker):
    with pytest.raises(TypeError, match="only numbers"):
        worker.call("echo", {}, {"x": np.array([{}], object)})
    assert worker.call("add", {"n": 1})[0]["count"] == 1


def test_a_crash_tells_how_and_what_was_printed(worker):
    with pytest.raises(WorkerError, match=r"(?s)SIGABRT.*during 'crash'.*last words") as caught:
        worker.call("crash")
    assert caught.value.kind == "crash"
    with pytest.raises(WorkerError, match="is gone"):
        worker.call("echo")


def test_an_exit_tells_its_status(worker):
    with pytest.raises(WorkerError, match="exit status 7"):
        worker.call("leave")


@pytest.mark.parametrize("verb", ["hang", "busy"])
def test_a_hang_ends_at_its_time_out(target, verb):
    with WorkerClient(target) as client:
        begin = time.monotonic()
        with pytest.raises(WorkerError, match=r"took longer than 0\.3 s") as caught:
            client.call(verb, timeout=0.3)
        assert caught.value.kind == "timeout"
        assert time.monotonic() - begin < 100


def test_garbage_is_a_protocol_error(worker):
    with pytest.raises(WorkerError, match="no message: it begins with b'<htm'") as caught:
        worker.call("garbage")
    assert caught.value.kind == "protocol"


def test_a_handlers_failure_leaves_the_worker_alive(worker):
    with pytest.raises(WorkerError, match=r"(?s)Traceback.*KeyError: 'cupboard'") as caught:
        worker.call("fail")
    assert caught.value.kind == "error"
    with pytest.raises(UserError, match="field x: give a number"):
        worker.call("fault")
    for kind in (UserError, DiskError, NotFiniteError):
        with pytest.raises(UserError) as told:
            worker.call("fault", {"kind": kind.__name__})
        assert type(told.value) is kind
    with pytest.raises(UserError, match=r"no verb 'dance'; known: add, .*echo"):
        worker.call("dance")
    assert worker.call("add", {"n": 2})[0]["count"] == 2


def test_sizes_are_bounded(target):
    with WorkerClient(target, max_bytes=1 << 16) as client:
        assert client.call("huge", {"bytes": 1000})[1]["x"].nbytes == 1000
        with pytest.raises(WorkerError, match="over the limit"):
            client.call("huge", {"bytes": 1 << 17})


def test_printing_does_not_disturb_the_protocol(worker):
    worker.call("noise")
    assert worker.call("add", {"n": 3})[0]["count"] == 3


def test_the_worker_has_its_own_path(target, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/nowhere/leaked")
    sys.path.append("/nowhere/appended")
    try:
        with WorkerClient(target) as client:
            seen = client.call("paths")[0]
    finally:
        sys.path.remove("/nowhere/appended")
    root = str(Path(__file__).parents[2])
    assert not [p for p in seen["path"] if "nowhere" in p or p in ("", root)]
    assert "wmeval.jobs.worker" in seen["modules"]
    assert not {"gymnasium", "moderngl", "wmeval.envs"} & set(seen["modules"])


def test_a_start_that_fails_says_why(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_library\n")
    with pytest.raises(WorkerError, match=r"(?s)ModuleNotFoundError.*no_such_library") as caught:
        WorkerClient(f"{broken}:handlers")
    assert caught.value.kind == "start"
    with pytest.raises(UserError, match="cannot run '/no/such/python'"):
        WorkerClient("wmeval.sim.serve:handlers", python="/no/such/python")
    with pytest.raises(WorkerError):
        WorkerClient(f"{broken}:handlers", python="/bin/true")


def test_forks_go_on_from_the_present(worker):
    worker.call("add", {"n": 5})
    copies = worker.fork(3)
    pids = {worker.pid, *(c.pid for c in copies)}
    assert len(pids) == 4
    for i, copy in enumerate(copies):
        answer = copy.call("add", {"n": i})[0]
        assert answer == {"count": 5 + i, "pid": copy.pid}
    assert worker.call("add", {"n": 0})[0]["count"] == 5
    # One copy's hang or crash is its own.
    with pytest.raises(WorkerError, match="took longer"):
        copies[0].call("hang", timeout=0.2)
    with pytest.raises(WorkerError, match="died"):
        copies[1].call("crash")
    assert copies[2].call("add", {"n": 1})[0]["count"] == 8
    assert worker.call("add", {"n": 1})[0]["count"] == 6
    for copy in copies:
        copy.close()


def test_copies_that_end_are_reaped_and_what_a_handler_starts_can_be_waited_for(worker):
    assert worker.call("start")[0]["code"] == 3
    one, two = worker.fork(2)
    for process in (worker, one):
        assert process.call("start")[0]["code"] == 3
    assert sorted(worker.call("children")[0]["pids"]) == sorted([one.pid, two.pid])
    with pytest.raises(WorkerError, match="died"):
        one.call("crash")
    until = time.monotonic() + 100
    while worker.call("children")[0]["pids"] != [two.pid]:
        assert time.monotonic() < until
        time.sleep(0.01)
    two.close()


def test_close_is_final_and_idempotent(target):
    client = WorkerClient(target)
    client.close()
    client.close()
    with pytest.raises(WorkerError, match="closed"):
        client.call("echo")
    until = time.monotonic() + 100
    while os.path.exists(f"/proc/{client.pid}"):
        assert time.monotonic() < until
        time.sleep(0.01)
        _reap()  # as the next worker's start does

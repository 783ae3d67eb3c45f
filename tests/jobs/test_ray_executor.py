"""Units on a Ray cluster of this machine: as local processes do, and nothing left behind."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
from test_executors import Notes, _state, misbehave, square

from wmeval.errors import UserError
from wmeval.jobs import ray_executor
from wmeval.jobs.executors import Needs, make_executor
from wmeval.jobs.ray_executor import RayExecutor

ray = pytest.importorskip("ray")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("dask", {}, "unknown executor 'dask': choose from local, ray"),
        ("local", {"address": "10.0.0.1:6379"}, "10.0.0.1:6379 of a cluster is for executor ray"),
        ("ray", {"workers": 0}, "needs workers >= 1"),
        ("ray", {"timeout": 0}, "needs workers >= 1"),
        ("ray", {"needs": Needs(gpus=-1)}, "cores and GPUs >= 0"),
        ("ray", {"address": "ray://10.0.0.1:10001"}, "run this on a node of the cluster"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(name, settings, message):
    with pytest.raises(UserError, match=message):
        make_executor(name, **settings)


def test_without_ray_it_says_what_brings_it(monkeypatch):
    monkeypatch.setattr(ray_executor, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"ray is not installed: pip install 'wmeval\[ray\]'"):
        make_executor("ray")


def test_nothing_to_do_starts_no_cluster():
    with RayExecutor() as executor:
        assert executor.map(square, []) == []
    assert not ray.is_initialized()


@pytest.mark.parametrize("address", ["127.0.0.1:{free}", "nowhere", "auto:x", "127.0.0.1:99999999"])
def test_an_address_where_no_cluster_is_is_named(address):
    said = "no Ray cluster at {}: .*; .*without an address"
    with socket.socket() as taken:  # by us, so that nobody else listens there
        taken.bind(("127.0.0.1", 0))
        address = address.format(free=taken.getsockname()[1])
        with pytest.raises(UserError, match=said.format(address)):
            make_executor("ray", address=address).map(square, [1])


@pytest.mark.parametrize(
    ("node", "needs", "room"),
    [
        ({"CPU": 8.0}, Needs(), 8),
        ({"CPU": 8.0}, Needs(cpus=3), 2),
        ({"CPU": 8.0}, Needs(gpus=1), 0),
        ({"CPU": 8.0, "GPU": 2.0}, Needs(gpus=1), 2),
        ({"CPU": 8.0, "GPU": 2.0}, Needs(gpus=0.1), 8),
        ({"CPU": 1.0}, Needs(cpus=0.1), 10),
        ({"CPU": 0.0}, Needs(), 0),
        ({}, Needs(cpus=0), 1),
    ],
)
def test_room_of_a_node_is_what_its_scarcest_part_gives(node, needs, room):
    assert ray_executor._room(node, needs) == room


def test_a_folder_that_another_took_before_it_was_locked_is_made_anew(monkeypatch):
    flock, taken = fcntl.flock, []

    def late(lock, how):
        if how == fcntl.LOCK_EX and not taken:
            taken.extend(Path(base).iterdir())
            shutil.rmtree(taken[0])
        flock(lock, how)

    with tempfile.TemporaryDirectory(dir="/tmp") as base:
        monkeypatch.setattr(tempfile, "tempdir", base)
        monkeypatch.setattr(fcntl, "flock", late)
        with ray_executor._short_folder() as folder:
            assert list(Path(base).iterdir()) == [Path(folder)] != taken
            assert Path(folder, "lock").exists()
        assert list(Path(base).iterdir()) == []
    assert len(taken) == 1


# --- on a cluster ---------------------------------------------------------------------------------


def processes(root=None):
    """One, this one unless said otherwise, and all below it."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat.rsplit(")", 1)[1].split()[1])
    ours = {os.getpid() if root is None else root}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return ours


def command(pid):
    """What a process was started with, or calls itself; nothing once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def listening():
    """Addresses, as the kernel writes them, on which our processes listen."""
    sockets = set()
    for pid in processes():
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(os.readlink(handle))
            except OSError:
                continue
    rows = [
        line.split()
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
    ]
    return {
        row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets
    }


def swell(x: int) -> int:
    swell.kept = bytearray(400 << 20) if x == 0 else b""  # type: ignore[attr-defined]
    return os.getpid()


def wait_for(what, seconds=200.0):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.accept
def test_a_cluster_of_our_own_holds_the_contract_and_leaves_nothing(
    tmp_path, tmp_path_factory, monkeypatch
):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    environment, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    with RayExecutor(workers=2, timeout=100, folder=tmp_path) as executor:
        notes = Notes(tmp_path_factory.mktemp("order"))
        outcomes = executor.map(notes.unit(others=4), range(5), on_outcome=notes)
        assert [o.value for o in outcomes] == list(range(5))
        assert sorted(notes.seen) == [(i, i) for i in range(5)]
        assert notes.seen[-1] == (0, 0)

        # Nobody outside reaches it.
        in_v4, in_v6 = "0100007F", "0000000000000000FFFF00000100007F"
        assert {in_v4, in_v6} == listening()
        folder = Path(ray._private.worker._global_node.get_session_dir_path()).parent
        assert folder.is_dir()

        # A crash, a bug or a hang costs one unit.
        def after(unit, _):  # only the hanging one's time is short
            executor.timeout = 5 if unit == 3 else 100

        executor.workers = 1
        outcomes = executor.map(
            partial(misbehave, folder=str(tmp_path)), range(8), on_outcome=after
        )
        assert [o.ok for o in outcomes] == [True, False, False, False, False, False, True, True]
        assert outcomes[1].error == "its process on 127.0.0.1 died (killed, or crashed)"
        assert outcomes[2].error == "bad plan"
        assert isinstance(outcomes[2].fault, UserError)
        assert outcomes[3].error == "RuntimeError: a bug"
        assert "misbehave" in outcomes[3].details
        assert outcomes[4].error == "no result within 5 s"
        assert "died" in (outcomes[5].error or "")
        assert sorted(os.listdir(tmp_path)) == ["0", "6", "7"]

        # Workers are processes of their own, and are replaced in time.
        executor.recycle, executor.max_bytes = 2, 300 << 20
        outcomes = executor.map(swell, [0, 1, lambda: 0, 2, 3])  # type: ignore[list-item]
        assert "cannot be sent" in (outcomes[2].error or "")
        pids = [o.value for o in outcomes if o.ok]
        assert pids[0] != pids[1] == pids[2] != pids[3]
        assert {_state(pid) for pid in pids} == {"Z"}

        # A worker that would write where nobody looks is refused.
        with monkeypatch.context() as patch:
            patch.setattr(
                ray_executor, "witness", lambda folder: nullcontext(folder / "elsewhere" / "x")
            )
            with pytest.raises(UserError, match=r"node 127.0.0.1: .*elsewhere: not seen there"):
                executor.map(square, [1])

        executor.needs = Needs(gpus=1)
        with pytest.raises(UserError, match="needs 1 cores and 1 GPUs; no node had them"):
            executor.map(square, [1])
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) is handler
    assert {**os.environ, "RAY_CLIENT_MODE": ""} == {**environment, "RAY_CLIENT_MODE": ""}
    assert not folder.exists()
    assert not [pid for pid in processes() - {os.getpid()} if b"ray" in command(pid)]


STOPPED = """
import sys
sys.path.insert(0, sys.argv[2])
from test_ray_executor import go_on_writing
from wmeval.jobs.ray_executor import RayExecutor
if __name__ == "__main__":
    try:
        RayExecutor(workers=2).map(go_on_writing, [sys.argv[1] + "/a", sys.argv[1] + "/b"])
    except KeyboardInterrupt:
        print("stopped")
"""


def go_on_writing(path: str) -> None:
    for _ in range(1200):
        with open(path, "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.05)


@pytest.mark.accept
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_goes_on_writing_when_its_driver_is_stopped(tmp_path, how, monkeypatch):
    """Ctrl-C goes to the whole group; a kill to the driver alone, which then says nothing more."""
    script = tmp_path / "run.py"
    script.write_text(STOPPED)
    # Its own folder of temporary files, short as Ray needs it.
    folder = tempfile.mkdtemp(dir="/tmp")
    run = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), str(Path(__file__).parent)],
        env={**os.environ, "TMPDIR": folder},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    written = [tmp_path / "a", tmp_path / "b"]
    try:
        wait_for(
            lambda: run.poll() is not None or all(p.exists() and p.read_text() for p in written)
        )
        pids = {int(p.read_text().split()[0]) for p in written}
        # Agents notice a minute later, and begin no files.
        all_of_it = [p for p in processes(run.pid) if b"Agent" not in command(p)]
    finally:
        os.killpg(run.pid, how) if how == signal.SIGINT else run.kill()
    out, err = run.communicate(timeout=240)
    if how == signal.SIGINT:
        assert (out, err, run.returncode) == ("stopped\n", "", 0)
    else:
        wait_for(lambda: {_state(pid) for pid in pids} == {"Z"}, 40)
        # The others still write into the folder that is to go below.
        wait_for(lambda: {_state(pid) for pid in all_of_it} == {"Z"})
    assert {_state(pid) for pid in pids} == {"Z"}
    sizes = [p.stat().st_size for p in written]
    time.sleep(0.5)
    assert sizes == [p.stat().st_size for p in written]

    # What a killed one left goes with the next.
    left = list(Path(folder).iterdir())
    assert len(left) == (how == signal.SIGKILL)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    with ray_executor._short_folder() as ours:
        assert list(Path(folder).iterdir()) == [Path(ours)]
        with ray_executor._short_folder():  # What is in use stays.
            assert len(list(Path(folder).iterdir())) == 2
    Path(folder).rmdir()

"""Readers of public recordings: small files in their formats, and the real ones where they are."""

import http.server
import io
import os
import pickle
import shutil
import subprocess
import threading
import zipfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wmeval.datasets.checksums import check_checksums
from wmeval.datasets.mocap import (
    Source,
    first_state,
    get,
    lowest_corner,
    read_contactnets,
    read_mocap,
    read_pendulum,
)
from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH, RATE
from wmeval.datasets.mocap.sources import SOURCES
from wmeval.datasets.mocap.torch_file import read_torch
from wmeval.errors import UserError

SHARED = Path(__file__).parents[3] / "shared" / "data"
TOSSES = SHARED / "contactnets" / "contactnets_cube_tosses.npz"
PENDULUM = SHARED / "dfki_pendulum" / "sysid_measured.csv"

RNG = np.random.default_rng(11)


def flight(frames=20, height=0.4):
    """A cube in free flight: arrays as published, angular velocity in its own frame."""
    t = np.arange(frames) / RATE
    v0, spin = np.array([0.5, -0.2, 0.3]), np.array([3.0, -4.0, 5.0])
    p = np.array([0.1, 0.2, height]) + t[:, None] * v0
    p[:, 2] -= GRAVITY * t**2 / 2
    v = np.tile(v0, (frames, 1))
    v[:, 2] -= GRAVITY * t
    turn = Rotation.from_rotvec(t[:, None] * spin) * Rotation.from_rotvec([0.3, 0.2, 0.1])
    x, y, z, w = turn.as_quat().T
    own = turn.inv().apply(np.tile(spin, (frames, 1)))
    return p, np.stack([w, x, y, z], axis=1), v, own, spin, v0


# --- files saved by PyTorch -----------------------------------------------------------------------


class Reference:
    """A storage, as PyTorch names it in a pickle."""

    def __init__(self, count):
        self.count = count


class Tensor:
    """Writes itself as a saved tensor does; rows are contiguous."""

    def __init__(self, shape, count):
        self.shape, self.count = shape, count

    def __reduce__(self):
        strides = tuple(int(np.prod(self.shape[k + 1 :])) for k in range(len(self.shape)))
        return (Named("torch._utils", "_rebuild_tensor_v2"),
                (Reference(self.count), 0, self.shape, strides, False, None))  # fmt: skip


class Named:
    """A global name, written without being imported."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self):
        raise AssertionError


class Writer(pickle._Pickler):
    """The pure Python pickler, which lets names be written that are not there."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def persistent_id(self, value):
        if isinstance(value, Reference):
            return ("storage", Named("torch", "DoubleStorage"), "0", "cpu", value.count)
        return None

    def save_named(self, value):
        self.write(b"c" + value.module.encode() + b"\n" + value.name.encode() + b"\n")

    dispatch[Named] = save_named


def saved(array):
    """A ZIP as PyTorch writes it for one double tensor."""
    stream = io.BytesIO()
    Writer(stream, 2).dump(Tensor(array.shape, array.size))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("toss/data.pkl", stream.getvalue())
        archive.writestr("toss/data/0", array.astype("<f8").tobytes())
        archive.writestr("toss/version", "3\n")
    return out.getvalue()


def test_a_saved_tensor_is_read_without_pytorch(tmp_path):
    array = RNG.normal(size=(1, 5, 19))
    path = tmp_path / "0.pt"
    path.write_bytes(saved(array))
    assert read_torch(path) == pytest.approx(array)
    path.write_bytes(saved(array)[:-200])
    with pytest.raises(UserError, match="no file of plain tensors"):
        read_torch(path)


def test_a_pickle_that_would_run_something_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    path = tmp_path / "0.pt"
    path.write_bytes(pickle.dumps(Evil(), protocol=2))
    with pytest.raises(UserError, match=r"it names posix\.mkdir"):
        read_torch(path)
    assert not (tmp_path / "made").exists()


def test_a_tensor_that_reaches_beyond_its_storage_is_refused(tmp_path):
    class Long(Tensor):
        def __reduce__(self):
            name, (storage, _, shape, strides, *rest) = super().__reduce__()
            return name, (storage, 3, shape, strides, *rest)

    stream = io.BytesIO()
    Writer(stream, 2).dump(Long((2, 3), 6))
    path = tmp_path / "0.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toss/data.pkl", stream.getvalue())
        archive.writestr("toss/data/0", np.zeros(6).tobytes())
    with pytest.raises(UserError, match="beyond its storage"):
        read_torch(path)


# --- cube tosses ----------------------------------------------------------------------------------


def npz(path, tosses=2, **changes):
    p, q, v, w, *_ = flight()
    n = len(p)
    arrays = {
        "offsets": np.arange(tosses + 1) * n, "toss_id": np.arange(tosses),
        "position_m": np.tile(p, (tosses, 1)), "quaternion_wxyz": np.tile(q, (tosses, 1)),
        "linear_velocity_mps": np.tile(v, (tosses, 1)), "angular_velocity": np.tile(w, (tosses, 1)),
    }  # fmt: skip
    np.savez(path, **{**arrays, **changes})
    return path


def toss_folder(folder, tosses=3):
    """The authors' folder: lengths in half widths, six columns of control."""
    folder.mkdir(parents=True)
    p, q, v, w, *_ = flight()
    for k in range(tosses):
        rows = np.hstack([p / HALF_WIDTH, q, v / HALF_WIDTH, w, np.zeros((len(p), 6))])
        (folder / f"{k}.pt").write_bytes(saved(rows[None]))
    return folder


def test_both_forms_of_the_tosses_are_one(tmp_path):
    flat = read_contactnets(npz(tmp_path / "t.npz", tosses=3))
    toss_folder(tmp_path / "repo" / "data" / "tosses_processed")
    authors = read_contactnets(tmp_path / "repo")
    _, _, v, _, spin, _ = flight()
    for mocap in (flat, authors):
        assert [t.name for t in mocap.trials] == ["toss-000", "toss-001", "toss-002"]
        trial = mocap.trials[1]
        assert trial.linear_velocities[:, 0] == pytest.approx(v)
        assert trial.angular_velocities[:, 0] == pytest.approx(np.tile(spin, (20, 1)))  # world
        assert np.diff(trial.times) == pytest.approx(1 / RATE)
    assert flat.trials[0].positions == pytest.approx(authors.trials[0].positions)
    assert "fitted" in flat.header.metadata["fitted_note"]


def test_the_first_state_is_the_flight_before_the_first_frame(tmp_path):
    trial = read_contactnets(npz(tmp_path / "t.npz")).trials[0]
    p, q, _, _, spin, v0 = flight()
    made = first_state(trial)
    assert made.position == pytest.approx(p[0])
    assert made.linear == pytest.approx(v0)
    assert made.angular == pytest.approx(spin)
    assert made.quaternion_wxyz == pytest.approx(q[0])
    assert made.position_sigma < 1e-9
    noise = np.random.default_rng(0).normal(0, 5e-4, trial.positions.shape)
    shaken = type(trial)(**{**vars(trial), "positions": trial.positions + noise})
    again = first_state(shaken, frames=12)
    assert again.position_sigma == pytest.approx(5e-4, rel=0.5)
    assert np.abs(again.linear - v0).max() < 4 * again.linear_sigma
    with pytest.raises(UserError, match="3 or more"):
        first_state(trial, frames=2)
    low = type(trial)(**{**vars(trial), "positions": trial.positions - [0, 0, 0.35]})
    with pytest.raises(UserError, match="above the board"):
        first_state(low)


def test_the_lowest_corner_of_a_cube():
    assert lowest_corner(np.array([0, 0, 1.0]), np.array([1.0, 0, 0, 0]), 0.1) == pytest.approx(0.9)
    half = np.sqrt(0.5)
    on_edge = np.array([np.cos(np.pi / 8), np.sin(np.pi / 8), 0, 0])
    assert lowest_corner(np.array([0, 0, 1.0]), on_edge, 0.1) == pytest.approx(1 - 0.1 * 2 * half)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": np.array([0, 20, 39])}, "do not fit together"),
        ({"toss_id": np.array([0])}, "do not fit together"),
        ({"quaternion_wxyz": np.ones((40, 4))}, "not of length 1"),
        ({"position_m": np.array([None] * 3, dtype=object)}, "no readable npz"),
    ],
)
def test_wrong_tosses_are_refused(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        read_contactnets(npz(tmp_path / "t.npz", **changes))
    with pytest.raises(UserError, match="holds no toss"):
        read_contactnets(tmp_path / "none")
    (tmp_path / "bad.npz").write_bytes(b"x")
    with pytest.raises(UserError, match="no readable npz"):
        read_contactnets(tmp_path / "bad.npz")


@pytest.mark.skipif(not TOSSES.is_file(), reason=f"the public tosses are not at {TOSSES}")
def test_the_real_tosses_obey_gravity_and_their_own_velocities():
    mocap = read_contactnets(TOSSES)
    assert len(mocap.trials) == 380
    falls, turns, lows = [], [], []
    for trial in mocap.trials[::10]:
        x, v = trial.positions[:, 0], trial.linear_velocities[:, 0]
        w = trial.angular_velocities[:, 0]
        falls.append(np.diff(v[:6, 2]).mean() * RATE)
        w_q = Rotation.from_quat(trial.quaternions_wxyz[:, 0][:, [1, 2, 3, 0]])
        step = (w_q[1:] * w_q[:-1].inv()).as_rotvec() * RATE
        turns.append(np.abs(w[1:] - step)[:5].max() / np.linalg.norm(w[0]))
        lows.append(min(lowest_corner(p, q) for p, q in zip(x, trial.quaternions_wxyz[:, 0],
                                                             strict=True)))  # fmt: skip
        assert np.abs(np.diff(x, axis=0) * RATE - v[1:])[:5].max() < 0.1
    assert np.median(falls) == pytest.approx(-GRAVITY, rel=0.03)
    assert np.median(turns) < 0.1  # the world's frame, not the body's
    assert -0.008 < min(lows) < 0


@pytest.mark.skipif(not TOSSES.is_file(), reason=f"the public tosses are not at {TOSSES}")
def test_the_real_tosses_begin_in_flight():
    mocap = read_contactnets(TOSSES)
    made, short = [], 0
    for trial in mocap.trials[::4]:
        try:
            made.append(first_state(trial))
        except UserError:
            short += 1
    assert len(made) > 85
    assert short < 10
    assert np.median([m.position_sigma for m in made]) < 1e-3


# --- the pendulum ---------------------------------------------------------------------------------


def test_a_pendulum_recording_is_read(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("time,position,velocity,torque\n0,0.1,0,0\n0.004,0.2,1,-0.5\n\n")
    trial = read_pendulum(path).trials[0]
    assert trial.signals == pytest.approx(np.array([[0.1, 0, 0], [0.2, 1, -0.5]]))
    for text, message in (
        ("t,p\n", "first line must read"),
        ("time,position,velocity,torque\n0,1,2\n", "line 2: four finite numbers"),
        ("time,position,velocity,torque\n0,1,2,x\n", "line 2"),
        ("time,position,velocity,torque\n0,1,2,3\n", "two lines"),
        ("time,position,velocity,torque\n0,1,2,3\n0,1,2,3\n", "ascend"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=message):
            read_pendulum(path)


@pytest.mark.skipif(not PENDULUM.is_file(), reason=f"the public recording is not at {PENDULUM}")
def test_the_real_pendulum_turns_as_fast_as_it_says():
    trial = read_pendulum(PENDULUM).trials[0]
    assert len(trial) == 1170
    angle, rate, _ = trial.signals.T
    assert 1 / np.median(np.diff(trial.times)) == pytest.approx(300, rel=0.01)
    whole = angle[0] + np.concatenate([[0], np.cumsum(rate[:-1] * np.diff(trial.times))])
    assert np.abs(whole - angle).max() < 0.2


# --- fetching -------------------------------------------------------------------------------------

GIT = shutil.which("git")


def backend():
    """Git's own HTTP server program; None where it is not installed."""
    if not GIT:
        return None
    folder = subprocess.run([GIT, "--exec-path"], capture_output=True, text=True, check=True)
    path = Path(folder.stdout.strip()) / "git-http-backend"
    return path if path.is_file() else None


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A small repository of the authors' form; (folder, commit, a later commit)."""
    if backend() is None:
        pytest.skip("git-http-backend is not installed")
    root = tmp_path_factory.mktemp("git") / "tosses"
    toss_folder(root / "data" / "tosses_processed")
    (root / "data" / "params_processed").mkdir()
    (root / "data" / "params_processed" / "experiment.json").write_text("{}")
    (root / "LICENSE").write_text("terms")
    (root / "code.py").write_text("unused")

    def git(*arguments):
        return subprocess.run(
            [GIT, "-c", "user.name=t", "-c", "user.email=t@t", *arguments], cwd=root, check=True,
            capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "tosses")
    first = git("rev-parse", "HEAD")
    (root / "LICENSE").write_text("other terms")
    git("commit", "-q", "-am", "later")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    git("config", "http.receivepack", "false")
    return root, first


@pytest.fixture(scope="module")
def server(repository):
    """The repository over HTTP on the loopback."""
    root, _ = repository
    program = str(backend())

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            environment = {
                **os.environ, "GIT_PROJECT_ROOT": str(root.parent), "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_ADDR": "127.0.0.1",
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }  # fmt: skip
            done = subprocess.run([program], input=body, capture_output=True, env=environment,
                                  check=False)  # fmt: skip
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            lines = [line.partition(b": ") for line in head.split(b"\r\n")]
            fields = {k.decode(): v.decode() for k, _, v in lines}
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for key, value in fields.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}/tosses/.git"
    made.shutdown()
    made.server_close()


def table(commit, url, **changes):
    row = SOURCES["contactnets"]
    fields = {**vars(row), "commit": commit, "url": url, **changes}
    return {"contactnets": Source(**fields)}


def test_data_are_fetched_whole_and_once(tmp_path, repository, server):
    _, commit = repository
    said = []
    file = get("contactnets", tmp_path / "c", sources=table(commit, server), progress=said.append)
    assert file == tmp_path / "c" / "contactnets.h5"
    mocap = read_mocap(file)
    assert len(mocap.trials) == 3
    assert mocap.header.metadata["friction_fitted"] == 0.18
    assert (tmp_path / "c" / "LICENSE").read_text() == "terms"  # of the pinned commit
    assert not (tmp_path / "c" / ".checkout").exists()
    assert check_checksums(tmp_path / "c") == []
    # Again: nothing is fetched, from nowhere.
    again = get("contactnets", tmp_path / "c", sources=table(commit, "http://127.0.0.1:1/none"),
                progress=said.append)  # fmt: skip
    assert again == file
    assert said[-1].endswith("is there")


def test_another_commit_takes_the_place_and_a_changed_file_is_told(tmp_path, repository, server):
    _, commit = repository
    get("contactnets", tmp_path / "c", sources=table(commit, server))
    (tmp_path / "c" / "LICENSE").write_text("forged")
    with pytest.raises(UserError, match=r"LICENSE: checksum does not match .* fetch again"):
        get("contactnets", tmp_path / "c", sources=table(commit, server))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"commit": "0" * 40}, "does not give commit 000000000000"),
        ({"url": "http://127.0.0.1:1/none"}, "does not give commit"),
        ({"trials": 380}, "3 trials; 380 are known"),
    ],
)
def test_what_is_not_the_pinned_data_leaves_nothing(tmp_path, repository, server, change, message):
    _, commit = repository
    sources = table(**{"commit": commit, "url": server, **change})
    with pytest.raises(UserError, match=message):
        get("contactnets", tmp_path / "c", sources=sources)
    assert list(tmp_path.iterdir()) == []


def test_strangers_files_are_not_replaced(tmp_path, repository, server):
    _, commit = repository
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match=r"mine\.txt"):
        get("contactnets", tmp_path, sources=table(commit, server))
    with pytest.raises(UserError, match="choose from contactnets"):
        get("contactnet", tmp_path)


def test_the_pinned_source_is_a_commit_of_the_authors():
    row = SOURCES["contactnets"]
    assert row.url == "https://github.com/DAIRLab/contact-nets"
    assert len(row.commit) == 40
    int(row.commit, 16)

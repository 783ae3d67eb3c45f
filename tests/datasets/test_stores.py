"""HDF5 and Zarr hold the same rollout, to the bit, and never half of one."""

import dataclasses
import json
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fsspec
import h5py
import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rollout_maker import make_rollout

from wmeval.datasets import document, hdf5, zarr_store
from wmeval.datasets.location import locate
from wmeval.datasets.rollout import read, write_hdf5, write_zarr
from wmeval.datasets.stored_contacts import unread
from wmeval.datasets.validate import validate
from wmeval.errors import UserError

LAYERS = ("depth", "ids", "normals", "rgb", "glass_ids", "shadow_ids", "shadow_masks")
BACKENDS = ("hdf5", "zarr", "memory")


def write(rollout, folder, backend, **options):
    if backend == "hdf5":
        return write_hdf5(rollout, Path(folder, "a.h5"), **options)
    if backend == "zarr":
        return write_zarr(rollout, Path(folder, "a.zarr"), **options)
    return write_zarr(rollout, f"memory://{Path(folder).name}/a.zarr", **options)


def assert_equal(a, b, layers=None):
    assert a.sha256() == b.sha256()
    for path, column in a.columns().items():
        other = b.columns()[path]
        assert other.shape == column.shape, path
        if column.dtype.kind == "U":
            assert other.tolist() == column.tolist()
        else:
            assert other.dtype == column.dtype, path
            assert other.tobytes() == column.tobytes(), path
    assert a.scene == b.scene
    assert a.metadata == b.metadata
    assert {k: m.content_hash() for k, m in a.meshes.items()} == {
        k: m.content_hash() for k, m in b.meshes.items()
    }
    assert (a.frames is None) == (b.frames is None)
    if a.frames is not None:
        assert a.frames.times == b.frames.times
        assert a.frames.camera == b.frames.camera
        for name in a.frames.layers if layers is None else layers:
            assert np.asarray(b.frames.layers[name]).tobytes() == a.frames.layers[name].tobytes()


@settings(max_examples=16, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    backend=st.sampled_from(BACKENDS),
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 9),
    bodies=st.integers(0, 5),
    contacts=st.integers(0, 30),
    events=st.integers(0, 4),
    action=st.integers(0, 3),
    observation=st.integers(0, 12),
    frames=st.integers(0, 5),
    layers=st.sets(st.sampled_from(LAYERS), max_size=3),
    size=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    modal=st.sampled_from([(), ("slosh", "gait.phase")]),
    moving=st.booleans(),
)
def test_any_rollout_comes_back_to_the_bit(backend, moving, layers, **shape):
    rollout = make_rollout(**shape, layers=tuple(sorted(layers)), moving_camera=moving)
    with tempfile.TemporaryDirectory() as folder:
        url = write(rollout, folder, backend)
        assert_equal(rollout, read(url))
        assert validate(url) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_rollout_that_was_read_is_written_again_to_the_same_bytes(backend, tmp_path):
    rollout = make_rollout(frames=4, layers=("depth", "rgb"))
    first = write(rollout, tmp_path, backend)
    (tmp_path / "again").mkdir()
    second = write(read(first), tmp_path / "again", backend)
    a, b = locate(first), locate(second)
    if backend == "hdf5":
        assert Path(first).read_bytes() == Path(second).read_bytes()
    else:
        assert a.objects() == b.objects()
        assert all(a.get(k, limit=None) == b.get(k, limit=None) for k in a.objects())


@pytest.mark.parametrize("backend", BACKENDS)
def test_layers_are_kept_as_asked(backend, tmp_path):
    rollout = make_rollout(frames=4, layers=("depth", "rgb"))
    kept = read(write(rollout, tmp_path, backend, layers=("depth",)))
    stored = [n for n, x in kept.frames.layers.items() if not getattr(x, "derived", False)]
    assert stored == ["depth"]
    none = read(write(rollout, tmp_path, backend, layers=()))
    assert none.frames.size == (16, 12)
    assert len(none.frames) == 4
    assert_equal(rollout, none, layers=())
    with pytest.raises(UserError, match="cannot store layer 'ids': this rollout holds depth, rgb"):
        write(rollout, tmp_path, backend, layers=("ids",))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_choice_of_packing_is_recorded(backend, tmp_path):
    for moving, codec in ((False, "bits_xor"), (True, "bytes")):
        rollout = make_rollout(
            frames=9, layers=("depth", "normals"), size=(48, 32), moving_camera=moving
        )
        url = write(rollout, tmp_path, backend)
        reader = hdf5 if backend == "hdf5" else zarr_store
        header = reader.read_with_header(url)[1]
        for entry in header["frames"]["layers"].values():
            assert entry["codec"] == codec
            assert entry["still_camera"] != moving
            assert bool(entry["trial_bytes"]) != moving


@pytest.mark.parametrize("backend", ["hdf5", "zarr"])
def test_a_frame_reads_only_its_own_chunk(backend, tmp_path):
    rollout = make_rollout(frames=6, layers=("normals",), size=(40, 30), moving_camera=True)
    url = write(rollout, tmp_path, backend)
    expected = rollout.frames.layers["normals"]
    layer = read(url).frames.layers["normals"]
    if backend == "hdf5":
        with h5py.File(url) as file:
            dataset = file["layer/normals"]
            assert dataset.chunks == (1, 30, 40, 3)
            spans = [
                (c.byte_offset, c.size) for c in (dataset.id.get_chunk_info(i) for i in range(6))
            ]
        path = Path(url)
    else:
        array = zarr.open_array(f"{url}/layer/normals", mode="r")
        assert array.chunks == (1, 30, 40, 3)
        assert array.shards == (6, 30, 40, 3)
        path = Path(url, "layer/normals/c.0.0.0.0")
        content = path.read_bytes()
        index = np.frombuffer(content[-(6 * 16 + 4) : -4], "<u8").reshape(6, 2)
        spans = [(int(a), int(b)) for a, b in index]
    content = bytearray(path.read_bytes())
    # With every other chunk destroyed, frame 3 is still there; frame 2 is an error that is clear.
    for i, (start, length) in enumerate(spans):
        if i != 3:
            content[start : start + length] = bytes(length)
    path.write_bytes(bytes(content))
    assert layer[3].tobytes() == expected[3].tobytes()
    assert layer[3, 4, 5].tobytes() == expected[3, 4, 5].tobytes()
    with pytest.raises(UserError, match="frame 2 of layer 'normals'"):
        layer[2]


@pytest.mark.parametrize("backend", ["hdf5", "zarr"])
def test_lazy_layers_slice_like_arrays_and_travel_to_other_processes(backend, tmp_path):
    rollout = make_rollout(frames=6, layers=("depth",))
    expected = rollout.frames.layers["depth"]
    layer = pickle.loads(
        pickle.dumps(read(write(rollout, tmp_path, backend)).frames.layers["depth"])
    )
    for index in (0, -1, slice(1, 5, 2), [4, 0], (2, slice(3, 5)), (slice(None), 3, 4), ...):
        assert layer[index].tobytes() == np.ascontiguousarray(expected[index]).tobytes()
    assert [f.tobytes() for f in layer] == [f.tobytes() for f in expected]
    with pytest.raises(IndexError):
        layer[6]


@pytest.mark.parametrize("backend", BACKENDS)
def test_contacts_are_read_when_they_are_touched(backend, tmp_path):
    rollout = make_rollout(contacts=50)
    contacts = read(write(rollout, tmp_path, backend)).log.contacts
    assert unread(contacts)
    assert len(contacts) == 50
    assert unread(contacts)
    assert contacts.normal.tobytes() == rollout.log.contacts.normal.tobytes()
    assert not unread(contacts)
    fresh = read(write(rollout, tmp_path, backend)).log.contacts
    assert pickle.loads(pickle.dumps(fresh)).position.shape == (50, 3)
    with pytest.raises(AttributeError, match="no 'mass'"):
        _ = contacts.mass


def test_opening_a_store_is_quick_and_reads_no_pictures(tmp_path):
    rollout = make_rollout(
        steps=50, bodies=40, observation=297, frames=200, layers=("depth",), size=(160, 96)
    )
    limits = {"hdf5": 0.1, "zarr": 0.4}
    for backend, limit in limits.items():
        url = write(rollout, tmp_path, backend)
        read(url)
        times = []
        for _ in range(5):
            start = time.process_time()  # what others do meanwhile is no matter
            read(url)
            times.append(time.process_time() - start)
        # Some ten milliseconds on an idle machine; the bound leaves room for a slower core.
        assert min(times) < limit, (backend, times)


@pytest.mark.parametrize("backend", ["hdf5", "zarr"])
def test_lazy_frames_of_a_replaced_file_are_refused(backend, tmp_path):
    rollout = make_rollout(frames=3, layers=("ids",))
    url = write(rollout, tmp_path, backend)
    before = read(url)
    write(make_rollout(frames=3, layers=("ids",), seed=1), tmp_path, backend)
    with pytest.raises(UserError, match="has been replaced"):
        before.frames.layers["ids"][0]


# --- damage -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Whole:
    """A rollout, its file and its store; reports of failures show none of their bytes."""

    rollout: object = dataclasses.field(repr=False)
    content: bytes = dataclasses.field(repr=False)
    store: Path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    rollout = make_rollout(frames=3, layers=("depth", "ids"), modal=("slosh",))
    folder = tmp_path_factory.mktemp("whole")
    path = Path(write_hdf5(rollout, folder / "a.h5"))
    url = write_zarr(rollout, folder / "a.zarr")
    return Whole(rollout, path.read_bytes(), Path(url))


def test_arrays_say_what_they_are_without_this_package(whole, tmp_path):
    path = tmp_path / "a.h5"
    path.write_bytes(whole.content)
    with h5py.File(path) as file:
        slosh, sky = file["modal/slosh"].attrs, file["light/sky"].attrs
        assert (slosh["unit"], slosh["doc"]) == ("m", "two numbers")
        assert json.loads(slosh["dims"]) == ["state", "2"]
        assert json.loads(sky["dims"]) == ["state", "3", "3"]
    group = zarr.open_group(str(whole.store), mode="r")
    assert group["modal/slosh"].attrs["doc"] == "two numbers"
    assert group["light/sky"].attrs["dims"] == ["state", "3", "3"]


def one_clear_error(path):
    """The rollout, or None after one UserError that names the place."""
    try:
        rollout = read(path)
        rollout.sha256()  # reads the contacts
        return rollout, {n: np.asarray(x) for n, x in rollout.frames.layers.items()}
    except UserError as error:
        message = str(error)
    assert str(path) in message
    return None


def assert_unchanged(result, rollout):
    if result is not None:
        assert result[0].sha256() == rollout.sha256()
        for name, array in rollout.frames.layers.items():
            assert result[1][name].tobytes() == array.tobytes()


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_flipped_bit_of_an_hdf5_file_is_found(whole, data):
    rollout, content = whole.rollout, whole.content
    at = data.draw(st.integers(0, len(content) - 1))
    bad = bytearray(content)
    bad[at] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.h5")
        path.write_bytes(bytes(bad))
        problems = validate(path)
        assert len(problems) == 1
        assert "a.h5" in problems[0]
        assert_unchanged(one_clear_error(path), rollout)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_cut_of_an_hdf5_file_is_found(whole, data):
    content = whole.content
    length = data.draw(st.integers(0, len(content) - 1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.h5")
        path.write_bytes(content[:length])
        assert len(validate(path)) == 1
        assert one_clear_error(path) is None


def copied(source, folder):
    for path in source.rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target)
    return sorted(p for p in folder.rglob("*") if p.is_file())


@settings(max_examples=20, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["flip", "cut", "drop"]))
def test_any_flip_cut_or_loss_in_a_zarr_store_is_found(whole, data, kind):
    rollout, source = whole.rollout, whole.store
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "a.zarr")
        victim = data.draw(st.sampled_from(copied(source, folder)))
        content = bytearray(victim.read_bytes())
        victim.unlink()  # a hard link: the source must stay
        if kind == "flip":
            content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(
                st.integers(0, 7)
            )
        if kind == "cut":
            del content[data.draw(st.integers(0, len(content) - 1)) :]
        if kind != "drop":
            victim.write_bytes(bytes(content))
        problems = validate(folder)
        assert problems
        assert all("a.zarr" in problem for problem in problems)
        assert_unchanged(one_clear_error(folder), rollout)


def test_a_lost_chunk_never_reads_as_a_picture_of_nothing(tmp_path):
    layers = ("depth", "ids", "rgb")
    rollout = make_rollout(frames=3, layers=layers, size=(12, 8))
    place = locate(write_zarr(rollout, tmp_path / "a.zarr"))
    parts = {layer: (f"layer/{layer}/", f"plate/{layer}/") for layer in layers}
    parts["contacts"] = ("contact/",)
    chunks = [key for key in place.objects() if key.split("/")[-1].startswith("c")]
    state = [key for key in chunks if key.startswith("state/")][:2]
    for lost in [*state, *(key for key in chunks if key.startswith(sum(parts.values(), ())))]:
        kept = place.path / lost
        kept.rename(tmp_path / "kept")
        if lost in state:
            with pytest.raises(UserError, match=lost.split("/")[1]):
                read(place.url)
        else:
            found = read(place.url)
            for what, mine in parts.items():
                if lost.startswith(mine):
                    with pytest.raises(UserError, match=f"{lost} is missing"):
                        _ = seen(found, what)
                else:
                    assert (seen(found, what) == seen(rollout, what)).all()
        (tmp_path / "kept").rename(kept)
    assert validate(place.url) == []


def seen(rollout, what):
    contacts = rollout.log.contacts
    if what == "contacts":
        return np.concatenate([contacts.position, contacts.normal], axis=1)
    return rollout.frames.layers[what][1]


def test_a_store_is_listed_once_for_all_its_layers(tmp_path, monkeypatch):
    layers = ("depth", "ids", "rgb")
    read_back = read(write_zarr(make_rollout(frames=3, layers=layers), tmp_path / "a.zarr"))
    listed = []
    objects = type(locate(tmp_path)).objects
    monkeypatch.setattr(
        "wmeval.datasets.location.Location.objects", lambda self: listed.append(1) or objects(self)
    )
    for layer in layers:
        for frame in range(3):
            assert read_back.frames.layers[layer][frame].size
    assert len(read_back.log.contacts.position)
    assert listed == [1]


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=2000), head=st.sampled_from(["", "format", "signature"]))
def test_random_bytes_are_no_rollout(content, head):
    prefix = {"": b"", "format": b"wmeval-rollout/1\n", "signature": hdf5.SIGNATURE}[head]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.h5", "a.bin"):
            path = Path(folder, name)
            path.write_bytes(prefix + content)
            assert len(validate(path)) == 1
            with pytest.raises(UserError, match=name):
                read(path)


def test_foreign_stores_are_named(tmp_path):
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["x"] = np.arange(3)
    with pytest.raises(UserError, match=r"foreign\.h5: an HDF5 file of another program"):
        read(tmp_path / "foreign.h5")
    # A correct frame around a wrong content is refused by what it says.
    content = (tmp_path / "foreign.h5").read_bytes()
    (tmp_path / "framed.h5").write_bytes(hdf5.user_block(content) + content)
    with pytest.raises(UserError, match=r"framed\.h5: damaged"):
        read(tmp_path / "framed.h5")
    zarr.create_group(str(tmp_path / "foreign.zarr"))
    with pytest.raises(UserError, match=r"a Zarr store without manifest\.json"):
        read(tmp_path / "foreign.zarr")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="there is no rollout here"):
        read(tmp_path / "empty")
    with pytest.raises(UserError, match="no such file"):
        read(tmp_path / "nothing.h5")
    with pytest.raises(UserError, match="nosuch"):
        read("nosuch://bucket/a.zarr")


def test_a_header_that_asks_for_too_much_is_refused_before_anything_is_allocated(tmp_path):
    rollout = make_rollout()
    header = document.describe(rollout).header
    header["arrays"]["state/position"]["shape"] = [1 << 36, 3, 3]
    with pytest.raises(UserError, match="over the limit"):
        document.restore("x.h5", header, *2 * [lambda _: np.zeros(0)], {})
    header["arrays"]["state/position"]["dtype"] = "object"
    with pytest.raises(UserError, match="is said to be 'object'"):
        document.restore("x.h5", header, *2 * [lambda _: np.zeros(0)], {})


# --- whole or absent ----------------------------------------------------------------------------

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from rollout_maker import make_rollout
from wmeval.datasets.rollout import write_hdf5, write_zarr
rollout = make_rollout(frames=30, layers=("depth", "normals"), size=(96, 64))
write_zarr(rollout, sys.argv[2] + "/warm.zarr")
print("ready", flush=True)
while True:
    write_hdf5(rollout, sys.argv[2] + "/a.h5")
    write_zarr(rollout, sys.argv[2] + "/a.zarr")
"""


def test_a_killed_writer_leaves_whole_or_absent(tmp_path):
    rng = random.Random(0)
    for kill in range(3):
        folder = tmp_path / str(kill)
        folder.mkdir()
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(folder)],
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.0, 0.4))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        for name in ("a.h5", "a.zarr"):
            if (folder / name).exists():
                assert validate(folder / name) == []
        write_hdf5(make_rollout(), folder / "b.h5")
        assert not [n for n in os.listdir(folder) if n.startswith(".")]


def test_an_upload_that_breaks_off_is_no_rollout(monkeypatch):
    rollout = make_rollout()
    url = "memory://broken/a.zarr"
    write_zarr(rollout, url)
    system = fsspec.filesystem("memory")
    uploaded = []

    def put_file(local, remote, **_):
        uploaded.append(remote)
        if len(uploaded) > 20:
            raise OSError(28, "No space left on device")
        return type(system).put_file(system, local, remote)

    monkeypatch.setattr(system, "put_file", put_file)
    with pytest.raises(UserError, match="disk full"):
        write_zarr(rollout, url)
    with pytest.raises(UserError, match=r"there is no rollout here|cut off"):
        read(url)
    assert len(validate(url)) == 1
    monkeypatch.undo()
    write_zarr(rollout, url)
    assert_equal(rollout, read(url))


def test_a_full_disk_is_one_clear_error_and_leaves_nothing(tmp_path):
    rollout = make_rollout(steps=60, bodies=20)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        for verb, name in ((write_hdf5, "a.h5"), (write_zarr, "a.zarr")):
            with pytest.raises(UserError, match="disk full"):
                verb(rollout, tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_really_full_disk_too(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    ).returncode:
        pytest.skip("may not mount")
    try:
        rollout = make_rollout(steps=100, bodies=20)
        small = make_rollout()
        write_hdf5(small, disk / "a.h5")
        for verb, name in ((write_hdf5, "a.h5"), (write_zarr, "a.zarr")):
            with pytest.raises(UserError, match="disk full"):
                verb(rollout, disk / name)
        assert os.listdir(disk) == ["a.h5"]
        assert_equal(small, read(disk / "a.h5"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_numbers_with_names_come_back_in_unicode(tmp_path):
    rollout = make_rollout(events=3)
    events = tuple(dataclasses.replace(e, kind="Stoß ✓") for e in rollout.log.events)
    named = dataclasses.replace(rollout, log=dataclasses.replace(rollout.log, events=events))
    assert read(write_hdf5(named, tmp_path / "a.h5")).log.events[0].kind == "Stoß ✓"

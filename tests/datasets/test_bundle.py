"""The published bundle: names, shapes and units of Table 8, and a way back without loss."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from clip_maker import ACTORS, FRAMES, make_clip
from rollout_maker import make_rollout
from scipy.spatial.transform import Rotation

import wmeval
from wmeval.conventions import project, quaternion_to_matrix, unproject
from wmeval.datasets import set_runs
from wmeval.datasets.bundle import read_bundle, write_bundle
from wmeval.datasets.bundle_tables import blender_euler, contact_pairs, trajectories
from wmeval.datasets.checksums import write_checksums
from wmeval.datasets.clip import ClipActor, ClipFacts, ClipRecord, with_facts
from wmeval.datasets.clips import write_clip
from wmeval.datasets.location import locate
from wmeval.datasets.png import read_png
from wmeval.datasets.sets import CLIPS
from wmeval.datasets.validate import validate
from wmeval.datasets.video import read_mp4
from wmeval.errors import UserError

pytestmark = pytest.mark.gl


@pytest.fixture(scope="module")
def clip():
    return ClipRecord(make_clip())


@pytest.fixture(scope="module")
def folder(clip, tmp_path_factory):
    return write_bundle(clip, tmp_path_factory.mktemp("bundles") / "00000")


@pytest.fixture
def copy(folder, tmp_path):
    """A bundle to damage; ``seal`` makes its checksums fit again."""
    return shutil.copytree(folder, tmp_path / "copy")


def test_files_names_and_shapes_are_those_of_table_8(folder, clip):
    names = {p.name for p in folder.iterdir()}
    npz = {"masks.npz", "depth.npz", "trajectories.npz"}
    text = {"contacts.json", "metadata.json", "prompt.txt", "SHA256SUMS"}
    assert names == {"frames", "video.mp4", "state.h5"} | npz | text
    width, height = clip.size
    with np.load(folder / "masks.npz", allow_pickle=False) as masks:
        assert masks["masks"].shape == (FRAMES, len(ACTORS), height, width)
        assert masks["masks"].dtype == np.bool_
        assert masks["object_names"].tolist() == list(ACTORS)
        assert (masks["masks"][2, 1] == (clip.ids[2] == clip.actors[1].instance)).all()
    with np.load(folder / "depth.npz", allow_pickle=False) as depth:
        assert depth["depth"].dtype == np.float32
        assert np.isfinite(depth["depth"]).all()
        seen = np.isfinite(clip.depth[4])
        assert (depth["depth"][4][seen] == clip.depth[4][seen]).all()
        assert (depth["depth"][4][~seen] == np.float32(1e10)).all()
    assert (read_png(folder / "frames" / "00003.png") == clip.rgb[3]).all()
    assert len(read_mp4(folder / "video.mp4", fps=24)[0]) == FRAMES
    assert (folder / "prompt.txt").read_text() == clip.prompt + "\n"
    assert validate(folder) == []


def test_velocities_are_differences_per_frame_as_published(folder, clip):
    with np.load(folder / "trajectories.npz", allow_pickle=False) as archive:
        found = dict(archive)
    p, q = clip.states.position, clip.states.quaternion_wxyz
    assert all(array.dtype == np.float32 for array in found.values())
    assert len(found) == 4 * len(ACTORS)
    moving = False
    for i, name in enumerate(ACTORS):
        assert (found[f"{name}_positions"] == p[:, i].astype(np.float32)).all()
        assert (found[f"{name}_rotations"] == q[:, i].astype(np.float32)).all()
        linear, angular = found[f"{name}_linear_velocity"], found[f"{name}_angular_velocity"]
        assert not linear[0].any()
        assert not angular[0].any()
        np.testing.assert_allclose(linear[1:], p[1:, i] - p[:-1, i], rtol=1e-6)
        # The Euler angles of a turn since the frame before bring one pose to the next.
        turn = Rotation.from_euler("xyz", angular[1:])
        before, after = (Rotation.from_quat(s[:, [1, 2, 3, 0]]) for s in (q[:-1, i], q[1:, i]))
        assert (turn * before * after.inv()).magnitude().max() < 1e-6
        # Small turns are the engine's velocity, a frame's worth.
        engine = clip.states.angular_velocity[1:, i] / 24
        small = (np.linalg.norm(engine, axis=1) < 0.1) & (np.linalg.norm(engine, axis=1) > 1e-3)
        moving |= bool(small.any())
        assert np.abs(angular[1:][small] - engine[small]).max(initial=0.0) < 0.06
    assert moving


def test_the_sign_of_a_quaternion_makes_no_jump(clip):
    """Of q and -q engines give either: what is exported and differenced does not tell."""
    state = clip.rollout.log.state
    quaternion = state.quaternion_wxyz.copy()
    quaternion[np.random.default_rng(2).random(quaternion.shape[:2]) < 0.5] *= -1
    log = dataclasses.replace(
        clip.rollout.log, state=dataclasses.replace(state, quaternion_wxyz=quaternion)
    )
    flipped = ClipRecord(dataclasses.replace(clip.rollout, log=log))
    steps = (flipped.states.quaternion_wxyz[1:] * flipped.states.quaternion_wxyz[:-1]).sum(-1)
    assert steps.min() > 0.7
    told, expected = trajectories(flipped), trajectories(clip)
    for name in ACTORS:
        for field in ("linear_velocity", "angular_velocity"):
            found = told[f"{name}_{field}"]
            np.testing.assert_allclose(found, expected[f"{name}_{field}"], atol=1e-6)
    np.testing.assert_allclose(flipped.flow(1, 4), clip.flow(1, 4), atol=1e-4)


def test_the_released_scorer_finds_what_it_reads(folder, clip):
    """Its reading of a bundle, in our words: names, active actors, tracks in world and picture."""
    metadata = json.loads((folder / "metadata.json").read_text())
    masks, depth = np.load(folder / "masks.npz"), np.load(folder / "depth.npz")["depth"]
    poses = np.load(folder / "trajectories.npz")
    assert (folder / "frames" / "00000.png").is_file()
    assert metadata["task_type"] == clip.facts.task_type
    assert metadata["prompt"]
    names = masks["object_names"].tolist()
    active = [n for n, told in metadata["actors"].items() if told["role"] == "active"]
    assert [n for n in names if n in active] == [a.name for a in clip.actors if a.role == "active"]
    lens, place = metadata["camera"]["intrinsics"], metadata["camera"]["extrinsics"]
    w, x, y, z = place["rotation"]
    camera = Rotation.from_quat([x, y, z, w])
    for name in active:
        pixels = np.argwhere(masks["masks"][0, names.index(name)])[:, ::-1] + 0.5
        at = depth[0][masks["masks"][0, names.index(name)]].astype(np.float64)
        sight = np.stack(
            [
                (pixels[:, 0] - lens["cx"]) / lens["fx"],
                -(pixels[:, 1] - lens["cy"]) / lens["fy"],
                -np.ones(len(pixels)),
            ],
            axis=1,
        )
        world = camera.apply(sight * at[:, None]) + place["location"]
        expected = unproject(pixels, at, clip.K[0], clip.T_world_camera[0])
        np.testing.assert_allclose(world, expected, atol=1e-6)
        # Carried along with the pose it comes where our own tracks say.
        q = poses[f"{name}_rotations"][:, [1, 2, 3, 0]]
        first, last = Rotation.from_quat(q[0]), Rotation.from_quat(q[-1])
        p = poses[f"{name}_positions"].astype(np.float64)
        moved = last.apply(first.inv().apply(world - p[0])) + p[-1]
        seen, _ = project(moved, clip.K[-1], clip.T_world_camera[-1])
        flow = clip.flow(0, len(clip) - 1)[masks["masks"][0, names.index(name)]]
        np.testing.assert_allclose(seen, pixels + flow, atol=0.02)


def test_euler_angles_are_blenders(tmp_path):
    random = Rotation.random(400, random_state=5)
    x, y, z, w = random.as_quat().T
    euler = blender_euler(np.stack([w, x, y, z], axis=-1))
    back = Rotation.from_euler("xyz", euler)
    assert (back * random.inv()).magnitude().max() < 1e-7
    other = np.stack([euler[:, 0] + np.pi, np.pi - euler[:, 1], euler[:, 2] + np.pi], axis=-1)
    other = (other + np.pi) % (2 * np.pi) - np.pi
    assert (np.abs(euler).sum(-1) <= np.abs(other).sum(-1) + 1e-9).all()
    upright = blender_euler(np.array([np.sqrt(0.5), 0, np.sqrt(0.5), 0]))
    assert upright == pytest.approx([0, np.pi / 2, 0], abs=1e-7)


def test_contacts_are_by_frame_and_pair_and_lose_no_impact(folder, clip):
    told_pairs = json.loads((folder / "contacts.json").read_text())
    assert [t["frame"] for t in told_pairs] == sorted(t["frame"] for t in told_pairs)
    assert told_pairs[0]["frame"] > 0
    bodies = [b.name for b in clip.rollout.scene.bodies]
    for i in range(1, FRAMES):
        found = clip.contacts_of_frame(i)
        expected = {}
        for a, b, impulse in zip(found.body_a, found.body_b, found.normal_impulse, strict=True):
            pair = (bodies[a], bodies[b])
            if set(pair) & set(ACTORS):
                expected[pair] = expected.get(pair, 0.0) + impulse
        told = {(c["obj_a"], c["obj_b"]): c for c in told_pairs if c["frame"] == i}
        assert all(first in ACTORS for first, _ in told)
        assert {frozenset(pair) for pair in told} == {frozenset(pair) for pair in expected}
        for (a, b), c in told.items():
            assert c["normal_impulse_Ns"] == pytest.approx(
                expected.get((a, b), 0.0) + expected.get((b, a), 0.0)
            )
            assert 1 <= len(c["contacts"]) <= 5
            normals = np.array([point["normal"] for point in c["contacts"]])
            assert np.allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-6)
            sign = 1.0 if (a, b) in expected else -1.0
            best = int(np.argmax(np.where(
                (found.body_a == bodies.index(a if sign > 0 else b))
                & (found.body_b == bodies.index(b if sign > 0 else a)), found.normal_impulse, -1,
            )))  # fmt: skip
            np.testing.assert_allclose(normals[0], sign * found.normal[best])
    assert any(len(c["contacts"]) > 1 for c in told_pairs)


def test_metadata_state_the_camera_in_every_form(folder, clip):
    metadata = json.loads((folder / "metadata.json").read_text())
    camera, (width, height) = metadata["camera"], clip.size
    focal = camera["lens_mm"] * width / camera["sensor_width_mm"]
    assert focal == pytest.approx(clip.K[0, 0, 0])
    lens = camera["intrinsics"]
    assert (lens["cx"], lens["cy"]) == (width / 2, height / 2)
    assert (lens["width"], lens["height"]) == (width, height)
    opencv = np.array(camera["T_world_camera"])
    assert camera["extrinsics"]["location"] == opencv[:3, 3].tolist()
    turned = quaternion_to_matrix(np.array(camera["extrinsics"]["rotation"]))
    assert turned == pytest.approx(opencv[:3, :3] * [1, -1, -1])
    assert metadata["split"] == "train"
    assert metadata["task_angle"] == 300.0
    assert metadata["camera_azimuth"] == 165.0
    assert metadata["render"] == {"resolution": [width, height], "fps": 24.0}
    assert [a["role"] for a in metadata["actors"].values()] == ["active", "passive", "active"]


def test_store_to_bundle_to_labels_is_without_loss(tmp_path, clip):
    url = tmp_path / "set"
    set_runs.begin(locate(url), {"clips": 1}, kind=CLIPS)
    write_clip(url, 0, clip.rollout)
    back = read_bundle(write_bundle(wmeval.open(url)[0], tmp_path / "bundle"))
    assert back.facts == clip.facts
    assert back.rollout.sha256() == clip.rollout.sha256()
    for name in ("rgb", "depth", "ids"):
        assert np.asarray(back.layer(name)).tobytes() == np.asarray(clip.layer(name)).tobytes()
    assert back.flow(1, 5).tobytes() == clip.flow(1, 5).tobytes()
    assert (back.tracks().pixels == clip.tracks().pixels).all()
    assert (back.masks(3) == clip.masks(3)).all()
    assert back.boxes(2) == clip.boxes(2)
    assert (back.states.angular_velocity == clip.states.angular_velocity).all()


def test_colour_of_a_video_is_said_to_be_lossy(tmp_path, clip):
    url = tmp_path / "set"
    set_runs.begin(locate(url), {"clips": 1}, kind=CLIPS)
    write_clip(url, 0, clip.rollout, layers=("depth", "ids"))
    folder = write_bundle(wmeval.open(url)[0], tmp_path / "bundle")
    told = json.loads((folder / "metadata.json").read_text())["conventions"]["frames"]
    assert told == "decoded from the video: lossy"


def test_exr_streams_hold_the_same_numbers(tmp_path, clip):
    import cv2

    folder = write_bundle(clip, tmp_path / "bundle", exr=True)
    for name, expected in (("masks/IndexOB", clip.ids[2]), ("depth/Depth", clip.depth[2])):
        data = np.frombuffer((folder / f"{name}_0002.exr").read_bytes(), np.uint8)
        found = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
        seen = np.isfinite(expected)
        assert found.dtype == np.float32
        assert (found[seen] == expected[seen]).all()
    assert read_bundle(folder).facts == clip.facts


def test_a_bundle_is_whole_or_absent(tmp_path, clip, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("wmeval.datasets.bundle.contact_pairs", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_bundle(clip, tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []
    write_bundle(clip, tmp_path / "bundle")
    with pytest.raises(UserError, match="pass overwrite"):
        write_bundle(clip, tmp_path / "bundle")
    write_bundle(clip, tmp_path / "bundle", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(UserError, match="files that wmeval did not write"):
        write_bundle(clip, tmp_path / "mine", overwrite=True)


def test_damage_is_named(copy):
    (copy / "depth.npz").write_bytes((copy / "depth.npz").read_bytes()[:-50])
    with pytest.raises(UserError, match=r"depth.npz: checksum does not match"):
        read_bundle(copy)
    write_checksums(copy)
    with pytest.raises(UserError, match=r"depth.npz: cannot be read"):
        read_bundle(copy)


def test_files_of_another_clip_are_noticed(copy, clip):
    with np.load(copy / "masks.npz", allow_pickle=False) as archive:
        held = dict(archive)
    np.savez_compressed(copy / "masks.npz", **{**held, "masks": held["masks"][:, ::-1]})
    write_checksums(copy)
    with pytest.raises(UserError, match=r"masks are not those of state.h5's ids"):
        read_bundle(copy)
    np.savez_compressed(copy / "masks.npz", **{**held, "masks": held["masks"][:-1]})
    write_checksums(copy)
    with pytest.raises(UserError, match=r"masks are bool .*, expected bool"):
        read_bundle(copy)
    np.savez_compressed(copy / "masks.npz", **held)
    text = (copy / "metadata.json").read_text()
    (copy / "metadata.json").write_text(text.replace('"seed": 0', '"seed": 1'))
    write_checksums(copy)
    with pytest.raises(UserError, match=r"metadata.json: seed is not that of state.h5"):
        read_bundle(copy)
    (copy / "metadata.json").write_text("{}")
    with pytest.raises(UserError, match="not a bundle that wmeval wrote"):
        read_bundle(copy)
    with pytest.raises(UserError, match="no bundle"):
        read_bundle(copy / "frames")


def test_a_moving_camera_is_refused(tmp_path):
    rollout = make_rollout(frames=4, layers=("rgb", "depth", "ids"), moving_camera=True)
    actors = (ClipActor(name="body 0", role="active", instance=1),)
    facts = ClipFacts(
        sample_id="x",
        task_type="t",
        scene_id="s",
        surface_name="f",
        seed=0,
        split="train",
        actors=actors,
        prompt="It moves.",
    )
    clip = ClipRecord(
        with_facts(
            dataclasses.replace(
                rollout, frames=dataclasses.replace(rollout.frames, camera="follow")
            ),
            facts,
        )
    )
    with pytest.raises(UserError, match="states one camera"):
        write_bundle(clip, tmp_path / "bundle")
    assert isinstance(contact_pairs(clip), list)

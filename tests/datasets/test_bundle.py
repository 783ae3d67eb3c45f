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
from wmeval.datasets import set_runs
from wmeval.datasets.bundle import read_bundle, write_bundle
from wmeval.datasets.bundle_tables import blender_euler, contact_frames
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
        assert masks["actor_names"].tolist() == list(ACTORS)
        assert (masks["masks"][2, 1] == (clip.ids[2] == clip.actors[1].instance)).all()
    with np.load(folder / "depth.npz", allow_pickle=False) as depth:
        assert depth["depth"].dtype == np.float32
        assert np.isfinite(depth["depth"]).all()
        seen = np.isfinite(clip.depth[4])
        assert (depth["depth"][4][seen] == clip.depth[4][seen]).all()
        assert (depth["depth"][4][~seen] == np.float32(1e10)).all()
    assert (read_png(folder / "frames" / "0003.png") == clip.rgb[3]).all()
    assert len(read_mp4(folder / "video.mp4", fps=24)[0]) == FRAMES
    assert (folder / "prompt.txt").read_text() == clip.prompt + "\n"
    assert validate(folder) == []


def test_velocities_are_differences_per_frame_as_published(folder, clip):
    with np.load(folder / "trajectories.npz", allow_pickle=False) as archive:
        found = dict(archive)
    p, q = clip.states.position, clip.states.quaternion_wxyz
    assert (found["positions"] == p).all()
    assert (found["quaternions"] == q).all()
    assert (found["linear_velocity"][0] == 0).all()
    assert np.allclose(found["linear_velocity"][1:], p[1:] - p[:-1], atol=0)
    moving = np.linalg.norm(clip.states.linear_velocity, axis=-1)[3:] > 0.05
    speed = found["linear_velocity"][3:][moving] * 24
    engine = clip.states.linear_velocity[3:][moving]
    assert moving.any()
    assert np.abs(speed - engine).max() < 0.5 * np.abs(engine).max()
    assert np.abs(found["angular_velocity"]).max() <= 2 * np.pi


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
    frames = json.loads((folder / "contacts.json").read_text())["frames"]
    assert [f["frame"] for f in frames] == list(range(FRAMES))
    assert frames[0]["contacts"] == []
    bodies = [b.name for b in clip.rollout.scene.bodies]
    for i in range(1, FRAMES):
        found = clip.contacts_of_frame(i)
        expected = {}
        for a, b, impulse in zip(found.body_a, found.body_b, found.normal_impulse, strict=True):
            pair = (bodies[a], bodies[b])
            if set(pair) & set(ACTORS):
                expected[pair] = expected.get(pair, 0.0) + impulse
        told = {(c["actor_a"], c["actor_b"]): c for c in frames[i]["contacts"]}
        assert told.keys() == expected.keys()
        for pair, c in told.items():
            assert c["normal_impulse_Ns"] == pytest.approx(expected[pair])
            assert 1 <= len(c["points"]) == len(c["normals"]) <= 5
            assert np.allclose(np.linalg.norm(c["normals"], axis=1), 1, atol=1e-6)
    assert any(len(c["points"]) > 1 for f in frames for c in f["contacts"])


def test_metadata_state_the_camera_in_every_form(folder, clip):
    metadata = json.loads((folder / "metadata.json").read_text())
    camera, (width, height) = metadata["camera"], clip.size
    focal = camera["lens_mm"] * width / camera["sensor_width_mm"]
    assert focal == pytest.approx(clip.K[0, 0, 0])
    assert camera["K"][0][2] == width / 2
    assert camera["K"][1][2] == height / 2
    blender, opencv = np.array(camera["matrix_world"]), np.array(camera["T_world_camera"])
    assert (blender[:, 3] == opencv[:, 3]).all()
    assert (blender[:3, 2] == -opencv[:3, 2]).all()
    assert np.linalg.det(blender[:3, :3]) == pytest.approx(1)
    assert metadata["split"] == "train"
    assert metadata["task_angle_deg"] == 30.0
    assert metadata["fps"] == 24.0
    assert [a["role"] for a in metadata["actors"]] == ["active", "passive", "active"]


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
    for name, expected in (("masks", clip.ids[2]), ("depth", clip.depth[2])):
        data = np.frombuffer((folder / name / "0002.exr").read_bytes(), np.uint8)
        found = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
        seen = np.isfinite(expected)
        assert found.dtype == np.float32
        assert (found[seen] == expected[seen]).all()
    assert read_bundle(folder).facts == clip.facts


def test_a_bundle_is_whole_or_absent(tmp_path, clip, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("wmeval.datasets.bundle.contact_frames", lambda _: 1 / 0)
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
    assert contact_frames(clip)["frames"][0]["frame"] == 0

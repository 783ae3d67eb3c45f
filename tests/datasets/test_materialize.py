"""Labels that are stored read as those that are derived, to the bit, in every kind of set."""

import dataclasses
import json

import numpy as np
import pytest
from clip_maker import ACTORS, FRAMES, make_clip

import wmeval
from wmeval.datasets import clip_labels, set_runs
from wmeval.datasets.bundle import read_bundle, write_bundle
from wmeval.datasets.clip import ClipRecord
from wmeval.datasets.clips import write_clip
from wmeval.datasets.exports import export
from wmeval.datasets.location import locate
from wmeval.datasets.materialize import NAMES, chosen, materialized
from wmeval.datasets.sets import CLIPS
from wmeval.datasets.validate import validate
from wmeval.errors import UserError
from wmeval.sim.render.labels import PixelBox

pytestmark = pytest.mark.gl
PICTURES = ("flow", "normals", "amodal_masks")


def derived(clip):
    """All labels of a clip, as methods give them."""
    tracks = clip.tracks()
    return {
        "flow": np.stack([clip.flow(i, i + 1) for i in range(FRAMES - 1)]),
        "normals": np.stack([clip.normals(i) for i in range(FRAMES)]),
        "amodal_masks": clip.amodal_masks(),
        **{f"tracks.{f.name}": getattr(tracks, f.name) for f in dataclasses.fields(tracks)},
        "boxes": np.stack(
            [
                [dataclasses.astuple(clip.boxes(i).get(name, NO_BOX)) for name in ACTORS]
                for i in range(FRAMES)
            ]
        ),
    }


NO_BOX = PixelBox(0, 0, 0, 0, 0)


@pytest.fixture(scope="module")
def rollout():
    return make_clip()


@pytest.fixture(scope="module")
def expected(rollout):
    return derived(ClipRecord(rollout))


def refuse(*_, **__):
    raise AssertionError("a stored label was derived anew")


def check(clip, expected, monkeypatch):
    with monkeypatch.context() as patch:
        for name in ("flow", "tracks", "boxes", "amodal_mask"):
            patch.setattr(f"wmeval.sim.render.labels.{name}", refuse)
        patch.setattr("wmeval.datasets.clip.normals_of_depth", refuse)
        found = derived(clip)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].tobytes() == array.tobytes(), name
    assert clip.amodal_masks([4]).tobytes() == expected["amodal_masks"][[4]].tobytes()
    # What is not stored is still derived.
    assert clip.flow(4, 2).shape == clip.flow(2, 3).shape
    assert len(clip.tracks(points=3).ids) == 3 * len(ACTORS)


@pytest.mark.parametrize("where", ["folder", "memory", "bundle"])
def test_stored_labels_are_those_that_are_derived(where, rollout, expected, tmp_path, monkeypatch):
    held = materialized(rollout, ["all"])
    assert held.sha256() == rollout.sha256()
    if where == "bundle":
        write_bundle(ClipRecord(held), tmp_path / "clip")
        assert validate(tmp_path / "clip") == []
        check(read_bundle(tmp_path / "clip"), expected, monkeypatch)
        return
    url = str(tmp_path / "set") if where == "folder" else f"memory://{tmp_path.name}/set"
    set_runs.begin(locate(url), {"clips": 1}, kind=CLIPS)
    write_clip(url, 0, held)
    set_runs.complete(locate(url), CLIPS)
    assert validate(url) == []
    clip = wmeval.open(url)[0]
    check(clip, expected, monkeypatch)
    assert {name for name in PICTURES if clip.stored(name) is not None} == set(PICTURES)
    if where == "folder":
        root = json.loads((tmp_path / "set/clips/000000.zarr/zarr.json").read_text())
        boxes = root["consolidated_metadata"]["metadata"]["label/boxes"]
        assert boxes["attributes"]["dims"] == ["frame", "actor", "5"]
        export("bundle", url, tmp_path / "bundles")
        again = read_bundle(tmp_path / "bundles" / clip.facts.sample_id)
        check(again, expected, monkeypatch)


def test_only_what_is_asked_for_is_stored(rollout, expected):
    held = ClipRecord(materialized(rollout, ["boxes", "flow"]))
    assert held.stored("flow") is not None
    assert held.stored("normals") is None
    assert set(held.rollout.labels) == {"boxes"}
    assert materialized(rollout, []) is rollout
    assert chosen(["all"]) == NAMES
    with pytest.raises(UserError, match="cannot materialize 'colour': choose from flow, normals"):
        materialized(rollout, ["colour"])


def test_a_layer_that_was_drawn_is_kept(expected):
    drawn = make_clip(layers=("rgb", "depth", "ids", "normals"))
    held = materialized(drawn, ["normals"])
    assert held.frames.layers["normals"] is drawn.frames.layers["normals"]


def test_amodal_masks_pack_up_to_64_actors():
    masks = np.random.default_rng(0).random((64, 3, 5)) < 0.5
    assert (clip_labels.unpack_masks(clip_labels.pack_masks(masks), 64) == masks).all()
    with pytest.raises(UserError, match="amodal masks of 65 actors: files hold those of 64"):
        clip_labels.pack_masks(np.zeros((65, 1, 1), bool))

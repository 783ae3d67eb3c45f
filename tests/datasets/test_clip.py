"""A clip: what it is of, and what follows from its depth, ids and poses."""

import dataclasses

import numpy as np
import pytest
from clip_maker import ACTORS, FRAMES, make_clip, recorded

from wmeval.conventions import project, quaternion_to_matrix
from wmeval.datasets.clip import ARRAYS, ClipFacts, ClipRecord, with_facts
from wmeval.errors import UserError

pytestmark = pytest.mark.gl
SIZE = (160, 96)


@pytest.fixture(scope="module")
def clip():
    return ClipRecord(make_clip(size=SIZE, layers=("rgb", "depth", "ids", "normals")))


def test_a_clip_knows_what_it_is_of(clip):
    assert [a.name for a in clip.actors] == list(ACTORS)
    assert (len(clip), clip.size, clip.fps) == (FRAMES, SIZE, 24)
    assert clip.prompt.startswith("The ball")
    assert clip.facts == ClipFacts.model_validate_json(clip.facts.model_dump_json())


def test_states_are_the_engines_at_the_frames(clip):
    log = clip.rollout.log.state
    for n, name in enumerate(ACTORS):
        for i in (0, 3, FRAMES - 1):
            row = clip.frames.state_index[i]
            body = log.bodies.index(name)
            for field in ("position", "quaternion_wxyz", "linear_velocity", "angular_velocity"):
                assert (getattr(clip.states, field)[i, n] == getattr(log, field)[row, body]).all()


def test_masks_and_boxes_are_of_the_ids(clip):
    ids = clip.ids[3]
    for n, actor in enumerate(clip.actors):
        expected = ids == actor.instance
        assert expected.any()
        assert (clip.mask(3, actor.name) == expected).all()
        assert (clip.masks(3)[n] == expected).all()
        rows, columns = np.nonzero(expected)
        box = clip.boxes(3)[actor.name]
        assert (box.x0, box.y0, box.x1, box.y1) == (
            columns.min(),
            rows.min(),
            columns.max() + 1,
            rows.max() + 1,
        )


def test_glass_counts_as_its_actor(clip):
    glass = np.zeros((FRAMES, SIZE[1], SIZE[0]), np.uint16)
    glass[:, 2:5, 3:9] = clip.actors[0].instance
    frames = clip.frames
    layers = {**frames.layers, "glass_ids": glass}
    held = dataclasses.replace(clip.rollout, frames=dataclasses.replace(frames, layers=layers))
    both = ClipRecord(held).mask(0, 0)
    assert both.sum() == clip.mask(0, 0).sum() + 3 * 6


def test_flow_between_any_frames_carries_a_point_with_its_body(clip):
    """A surface point, moved by the recorded poses and projected by hand, lands where flow says."""
    for a, b in ((0, 6), (5, 1)):
        flow = clip.flow(a, b)
        rows, columns = np.nonzero(clip.mask(a, "floor_ball"))
        z = clip.depth[a][rows, columns].astype(float)
        K, T = clip.K[a], clip.T_world_camera[a]
        rays = np.stack(
            [(columns + 0.5 - K[0, 2]) / K[0, 0], (rows + 0.5 - K[1, 2]) / K[1, 1], z / z], axis=1
        )
        world = rays * z[:, None] @ T[:3, :3].T + T[:3, 3]
        p, R = clip.states.position[:, 0], quaternion_to_matrix(clip.states.quaternion_wxyz[:, 0])
        moved = (world - p[a]) @ R[a] @ R[b].T + p[b]
        pixels, _ = project(moved, clip.K[b], clip.T_world_camera[b])
        expected = pixels - np.stack([columns + 0.5, rows + 0.5], axis=1)
        assert np.abs(flow[rows, columns] - expected).max() < 0.01
        assert np.abs(expected).max() > 1


def test_tracks_begin_inside_each_actor_and_are_drawn_the_same_again(clip):
    queries, actor = clip.track_queries()
    for n in range(len(ACTORS)):
        mine = queries[actor == n]
        assert len(mine) == min(20, clip.mask(0, n).sum())
        assert len(np.unique(mine, axis=0)) == len(mine)
        index = np.floor(mine).astype(int)
        assert clip.mask(0, n)[index[:, 1], index[:, 0]].all()
    assert (clip.track_queries()[0] == queries).all()
    tracks = clip.tracks()
    assert tracks.pixels.shape == (len(queries), FRAMES, 2)
    assert np.abs(tracks.pixels[:, 0] - queries).max() < 1e-6
    assert tracks.visible[:, 0].all()


def test_tracks_agree_with_flow(clip):
    queries, _ = clip.track_queries()
    index = np.floor(queries).astype(int)
    for b in (1, FRAMES - 1):
        step = clip.flow(0, b)[index[:, 1], index[:, 0]]
        assert np.abs(queries + step - clip.tracks().pixels[:, b]).max() < 1e-3


def test_every_contact_belongs_to_one_frame(clip):
    last = clip.rollout.log.state.substep[clip.frames.state_index[-1]]
    expected = int((clip.contacts.substep < last).sum())
    assert sum(len(clip.contacts_of_frame(i)) for i in range(FRAMES)) == expected > 0


def test_normals_from_depth_are_those_that_were_drawn(clip):
    held = {k: v for k, v in clip.frames.layers.items() if k != "normals"}
    bare = ClipRecord(
        dataclasses.replace(clip.rollout, frames=dataclasses.replace(clip.frames, layers=held))
    )
    drawn, derived = clip.normals(0), bare.normals(0)
    both = (np.linalg.norm(drawn, axis=-1) > 0.5) & (np.linalg.norm(derived, axis=-1) > 0.5)
    assert both.mean() > 0.5
    angle = np.degrees(np.arccos(np.clip((drawn * derived).sum(-1)[both], -1, 1)))
    assert np.median(angle) < 0.1
    assert np.quantile(angle, 0.9) < 2


def test_amodal_masks_hold_what_is_seen(clip):
    amodal = clip.amodal_masks([0, 4])
    assert amodal.shape == (2, len(ACTORS), SIZE[1], SIZE[0])
    for k, i in enumerate((0, 4)):
        seen = clip.masks(i)
        assert (amodal[k] | ~seen).all()
    assert amodal[0].sum() > clip.masks(0).sum()  # the dominoes hide one another


def test_arrays_have_one_row_a_frame(clip):
    arrays = clip.arrays(tuple(ARRAYS))
    assert arrays["prompt"] == clip.prompt
    for name in ARRAYS:
        assert len(arrays[name]) == FRAMES
    assert (arrays["flow"][2] == clip.flow(2, 3)).all()
    with pytest.raises(UserError, match="no array 'colour': choose from rgb, depth"):
        clip.arrays(["colour"])


def test_what_is_no_clip_says_so(clip):
    rollout = recorded(0, SIZE, ("rgb", "depth", "ids", "normals"))
    with pytest.raises(UserError, match="a rollout, but no clip"):
        ClipRecord(rollout)
    with pytest.raises(UserError, match="holds no frames"):
        ClipRecord(dataclasses.replace(clip.rollout, frames=None))
    facts = clip.facts.model_dump()
    facts["actors"][0]["instance"] = 77
    with pytest.raises(UserError, match="'floor_ball' with instance 77 is no body of the scene"):
        with_facts(rollout, ClipFacts.model_validate(facts))
    facts["actors"][0]["instance"] = facts["actors"][1]["instance"]
    with pytest.raises(ValueError, match="two actors have the same instance"):
        ClipFacts.model_validate(facts)
    bad = {**clip.rollout.metadata, "clip": {"sample_id": "7"}}
    with pytest.raises(UserError, match="clip 7: clip: task_type"):
        ClipRecord(dataclasses.replace(clip.rollout, metadata=bad))
    with pytest.raises(UserError, match="no actor 'cat': there are floor_ball, slab"):
        clip.mask(0, "cat")
    with pytest.raises(UserError, match="no layer 'glass_ids' is stored"):
        clip.layer("glass_ids")

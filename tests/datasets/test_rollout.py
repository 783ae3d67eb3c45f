import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from rollout_maker import make_rollout

from wmeval.conventions import intrinsics
from wmeval.datasets.rollout import Frames


def replaced(rollout, path, value):
    """A copy with one array of the log replaced."""
    group, name = path.split("/")
    part = {"state": "state", "camera": "cameras", "light": "lights", "contact": "contacts"}[group]
    log = dataclasses.replace(
        rollout.log,
        **{part: dataclasses.replace(getattr(rollout.log, part), **{name: value})},
    )
    return dataclasses.replace(rollout, log=log)


def test_states_contacts_and_actions_are_found_by_step_and_frame():
    rollout = make_rollout(steps=6, frames=5, layers=("ids",), contacts=40)
    control = rollout.states_at_control()
    assert control.substep.tolist() == [0, 4, 8, 12, 16, 20, 24]
    assert [rollout.row_of_frame(j) for j in range(5)] == [0, 6, 12, 18, 24]
    assert [rollout.action_of_frame(j) for j in range(5)] == [0, 1, 2, 4, 5]
    substeps = rollout.log.contacts.substep
    for j, (a, b) in enumerate([(0, 0), (0, 6), (6, 12), (12, 18), (18, 24)]):
        expected = substeps[(substeps >= a) & (substeps < b)]
        assert rollout.contacts_of_frame(j).substep.tolist() == expected.tolist()
    assert sum(len(rollout.contacts_of_state(i)) for i in range(25)) == 40
    assert rollout.state_of_frames().state.substep.tolist() == [0, 6, 12, 18, 24]
    assert rollout.frames is not None
    assert rollout.frames.size == (16, 12)


def test_the_digest_sees_one_changed_bit():
    rollout = make_rollout()
    assert rollout.sha256() == make_rollout().sha256()
    for path in ("state/position", "contact/normal_impulse"):
        group, name = path.split("/")
        array = getattr(
            getattr(rollout.log, {"state": "state", "contact": "contacts"}[group]), name
        )
        changed = array.copy()
        changed.reshape(-1).view(np.uint8)[-8] ^= 1
        assert replaced(rollout, path, changed).sha256() != rollout.sha256()
    actions = rollout.actions.copy()
    actions[0, 0] = np.nextafter(actions[0, 0], 2)
    assert dataclasses.replace(rollout, actions=actions).sha256() != rollout.sha256()


BAD = {
    "state/position": (lambda a: a[:, :1], "state/position has 1 along 'body'; it needs 3"),
    "state/quaternion_wxyz": (lambda a: 1.001 * a, "state/quaternion_wxyz.* no unit quaternion"),
    "state/linear_velocity": (lambda a: a * np.nan, "state/linear_velocity.* not finite"),
    "state/substep": (lambda a: a[::-1].copy(), "state/substep does not ascend"),
    "state/motion": (lambda a: a + 7, "state/motion holds"),
    "state/active": (lambda a: a.astype(np.uint8), "state/active is uint8; it needs bool"),
    "camera/fov_y": (lambda a: a + 4, "camera/fov_y leaves"),
    "camera/T_world_camera": (lambda a: 2 * a, "camera/T_world_camera .* no rigid pose"),
    "light/sun_color": (lambda a: a[1:], "light/sun_color has 24 along 'state'; it needs 25"),
    "light/sky": (lambda a: a[:, :2], "light/sky has 2 along '3'; it needs 3"),
    "contact/substep": (lambda a: a[::-1].copy(), "contact/substep descends"),
    "contact/body_a": (lambda a: a + 3, "contact/body_a names body"),
    "contact/body_b": (lambda a: a - 9, "contact/body_b is negative"),
}


@pytest.mark.parametrize("path", BAD)
def test_an_array_that_departs_from_the_table_is_named(path):
    change, message = BAD[path]
    rollout = make_rollout(contacts=12)
    part = {"state": "state", "camera": "cameras", "light": "lights", "contact": "contacts"}
    group, name = path.split("/")
    value = change(getattr(getattr(rollout.log, part[group]), name))
    with pytest.raises(ValueError, match=message):
        replaced(rollout, path, value)


def test_steps_that_do_not_fit_are_named():
    rollout = make_rollout(steps=6)
    for name, value, message in (
        ("rewards", np.zeros(5), "step/reward has 5 along 'step'; it needs 6"),
        ("observations", np.zeros((6, 9), np.float32), "step/observation has 6 along 'control'"),
        ("terminated", np.zeros(6), "terminated is not an array of bool"),
        ("actions", np.full((6, 2), np.inf), "step/action.* not finite"),
        ("metadata", {"seed": object()}, "metadata is no JSON"),
        ("metadata", {"dt": "1/100"}, "metadata.dt 1/100"),
    ):
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(rollout, **{name: value})


def test_modal_state_is_what_the_scene_declares():
    rollout = make_rollout(modal=("slosh", "gait"))
    state, slosh = rollout.log.state, rollout.log.state.modal["slosh"]
    assert slosh.shape == (25, 2)
    for modal, message in (
        ({"slosh": slosh}, "modal/gait is missing: the scene declares it"),
        ({"slosh": slosh, "gait": slosh[:, :1]}, r"modal/gait is float64 \(25, 1\); .*\(25, 2\)"),
        ({"slosh": slosh, "gait": slosh.astype(np.float32)}, "modal/gait is float32"),
        ({"slosh": slosh, "gait": slosh * np.nan}, "modal/gait is not finite"),
        ({"slosh": slosh, "gait": slosh, "wave": slosh}, "modal/wave is not declared"),
    ):
        log = dataclasses.replace(rollout.log, state=dataclasses.replace(state, modal=modal))
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(rollout, log=log)


def test_frames_that_do_not_fit_are_named():
    K = np.tile(intrinsics(0.8, 8, 6), (3, 1, 1))
    times = (Fraction(0), Fraction(1, 24), Fraction(1, 12))

    def frames(**layers):
        return Frames("static", np.arange(3), times, K, layers)

    frames(depth=np.zeros((3, 6, 8), np.float32), ids=np.zeros((3, 6, 8), np.uint16))
    for layers, message in (
        ({"depht": np.zeros((3, 6, 8))}, "unknown layer 'depht'"),
        ({"depth": np.zeros((3, 6, 8))}, "layer 'depth' is float64"),
        ({"ids": np.zeros((2, 6, 8), np.uint16)}, r"layer 'ids' is uint16 \(2, 6, 8\)"),
        (
            {"ids": np.zeros((3, 6, 8), np.uint16), "depth": np.zeros((3, 6, 9), np.float32)},
            "one size",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            frames(**layers)
    with pytest.raises(ValueError, match="state_index"):
        Frames("static", np.arange(2), times, K, {})
    rollout = make_rollout(steps=1)
    late = Frames("static", np.array([0, 1, 9]), times, K, {})
    with pytest.raises(ValueError, match="frame/state_index names state row 9 of 5"):
        dataclasses.replace(rollout, frames=late)
    nobody = dataclasses.replace(late, camera="drone", state_index=np.arange(3))
    with pytest.raises(ValueError, match="'drone' is not in follow, static"):
        dataclasses.replace(rollout, frames=nobody)
    with pytest.raises(ValueError, match="holds no frames"):
        rollout.row_of_frame(0)

"""Plans put semantic actions on physical time, exactly."""

from fractions import Fraction

import numpy as np
import pytest
from pydantic import ValidationError

from wmeval.plan import ActionPlan

CARD = {
    "name": "pulse",
    "scene": "WMEval/BallRoller-v0",
    "dimensions": ["controllability"],
    "doc": "a pulse",
    "duration": "0.5",
    "segments": [
        {"start": 0, "end": "0.5", "values": {"force_x": 1.0}},
        {"start": "1/10", "end": 0.2, "values": {"force_x": 0.0, "force_z": -0.5}},
    ],
    "prompt": "p",
    "negative_prompt": "n",
}


def test_a_segment_holds_from_its_start_up_to_its_end():
    plan = ActionPlan.read(CARD)
    actions = plan.actions(("force_x", "force_z"), Fraction(1, 60))
    assert actions.shape == (30, 2)
    changed = np.flatnonzero(actions[:, 1])
    assert changed.tolist() == list(range(6, 12))  # 0.1 s = action 6, 0.2 s = action 12
    assert (actions[changed] == [0.0, -0.5]).all()
    rest = np.delete(actions, changed, axis=0)
    assert (rest == [1.0, 0.0]).all()


def test_a_last_partly_covered_action_counts():
    plan = ActionPlan.read({**CARD, "duration": "0.51"})
    assert len(plan.actions(("force_x", "force_z"), Fraction(1, 60))) == 31


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segments": [{"start": 1, "end": 1, "values": {}}]}, "empty"),
        ({"segments": [{"start": 0, "end": 1, "values": {"force_x": 1.5}}]}, "outside"),
        ({"segments": [{"start": 0, "end": "soon", "values": {}}]}, "exact number"),
        ({"promt": "x"}, "promt"),
    ],
)
def test_a_bad_card_is_refused_with_the_reason(change, message):
    with pytest.raises(ValidationError, match=message):
        ActionPlan.read({**CARD, **change})


def test_an_unknown_channel_names_the_known_ones():
    with pytest.raises(ValueError, match="has the channels steer, brake"):
        ActionPlan.read(CARD).actions(("steer", "brake"), Fraction(1, 60))


def test_actions_are_the_bits_that_a_float32_action_space_holds():
    card = {**CARD, "segments": [{"start": 0, "end": "0.5", "values": {"force_x": 0.3}}]}
    actions = ActionPlan.read(card).actions(("force_x", "force_z"), Fraction(1, 60))
    assert (actions == actions.astype(np.float32)).all()
    assert actions[0, 0] == np.float32(0.3)


def test_an_edge_between_two_actions_is_refused_and_names_the_mend():
    card = {**CARD, "segments": [{"start": "0.018", "end": "0.032", "values": {"force_x": 1.0}}]}
    with pytest.raises(ValueError, match=r"0\.018 s is no whole number of control periods of 1/60"):
        ActionPlan.read(card).actions(("force_x", "force_z"), Fraction(1, 60))

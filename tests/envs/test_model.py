"""Cards and the checks of what a model returns."""

import sys
from fractions import Fraction as F

import numpy as np
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from wmeval.envs.model import ModelError, ModelSpec, checked_clip, checked_spec, read_spec
from wmeval.errors import UserError
from wmeval.records import Clip

SPEC = ModelSpec(name="toy", fps="24000/1001", frames_per_action=4, width=32, height=16)


def frames(n=4, h=16, w=32):
    return np.zeros((n, h, w, 3), np.uint8)


def test_a_bare_array_gets_the_models_clock():
    clip = checked_clip(frames(), SPEC, first=5, count=4)
    assert clip.times == tuple(F(1001 * j, 24000) for j in range(5, 9))


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (frames(3), r"wrong number of frames, \(3, 16, 32, 3\)"),
        (frames(4, 8), r"wrong shape, \(4, 8, 32, 3\)"),
        (frames().astype(np.float32), "dtype float32"),
        (frames()[..., 0], "wrong shape"),
        (None, "NoneType"),
        ([1, 2], "a list"),
        (Clip(frames(3), tuple(F(j) for j in range(3))), "wrong number"),
    ],
)
def test_a_wrong_return_names_model_expected_and_found(result, found):
    with pytest.raises(
        ModelError, match=rf"(?s)model 'toy': step returned.*{found}.*expected"
    ) as e:
        checked_clip(result, SPEC, first=1, count=4)
    assert "(4, 16, 32, 3) uint8" in str(e.value)


def test_wrong_times_are_named():
    clip = Clip(frames(), tuple(F(j, 24) for j in range(1, 5)))
    with pytest.raises(ModelError, match="frame 1 is at 1/24 s; at 24000/1001 fps"):
        checked_clip(clip, SPEC, first=1, count=4)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ({}, "name: Field required"),
        ({"name": "m", "fps": "fast"}, "'fast' is not an exact number"),
        ({"name": "m", "fps": 0}, "must be > 0"),
        ({"name": "m", "fps": "1e999999999"}, "is not an exact number"),
        ({"name": "m", "fps": 1001}, "at most 1000"),
        ({"name": "m", "speed": 3}, "speed: .*known fields: name, fps"),
        ({"name": "m", "frames_per_action": 0}, "frames_per_action"),
        ({"name": "m", "paradigm": "keyboard"}, "must say what its keys move"),
        ({"name": "m", "keys": {"x": {"negative": "A", "positive": "B"}}}, "belong to a keyboard"),
        ({"name": "m", "paradigm": "language", "actuates": ["body"]}, "actuates nothing"),
        ({"name": "m", "width": 10**6}, "width"),
        ([1], "expected a mapping"),
    ],
)
def test_a_bad_card_is_one_clear_error(tmp_path, card, message):
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump(card))
    with pytest.raises(UserError, match=rf"(?s)card.yaml.*{message}"):
        read_spec(path)


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_spec(tmp_path / "absent.yaml")
    (tmp_path / "x.yaml").write_text("a: [1")
    with pytest.raises(UserError, match="not YAML") as caught:
        read_spec(tmp_path / "x.yaml")
    assert "\n" not in str(caught.value)


def test_a_card_round_trips(tmp_path):
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump(SPEC.model_dump(mode="json")))
    assert read_spec(path) == SPEC


def test_an_object_without_methods_is_refused():
    with pytest.raises(ModelError, match="has no `spec`"):
        checked_spec(object())

    class NoStep:
        spec = SPEC

        def reset(self, *a): ...
        def close(self): ...

    class NoCard:
        @property
        def spec(self):
            sys.exit("no weights")

    with pytest.raises(ModelError, match="NoCard: spec raised SystemExit: no weights"):
        checked_spec(NoCard())
    with pytest.raises(ModelError, match=r"'toy' \(stepwise\) has no method 'step'"):
        checked_spec(NoStep())


@pytest.mark.parametrize("paradigm", ["action", "keyboard", "camera", "language"])
def test_the_templates_are_good_cards(paradigm):
    assert read_spec(paradigm).paradigm == paradigm


def test_a_file_wins_over_a_template(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "camera").write_text("name: mine")
    assert read_spec("camera").name == "mine"


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@example(b"name: 2001-99-99")
@example(b"[" * 5000)
@example(b"a: &a [*a]")
@example(b"name: m\nfps: .inf")
def test_any_bytes_for_a_card_are_a_card_or_one_clear_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("card") / "card.yaml"
    path.write_bytes(data)
    try:
        found = read_spec(path)
    except UserError as error:
        found = str(error)
    assert isinstance(found, ModelSpec) or len(found.splitlines()) == 1

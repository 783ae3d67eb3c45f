"""A record that is the closed form itself reads the closed form's own times, ways and speeds."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from wmeval.assets.gauge_cards import family
from wmeval.assets.gauge_profiles import motion
from wmeval.deformables import rest_shape
from wmeval.envs.gauge.build import build
from wmeval.eval.sweep.predicted import MEASURED, Record, expected
from wmeval.eval.truths import TRUTHS, predict
from wmeval.records import StateLog


def state_of(built, frames, paths=None, vertices=None):
    bodies = built.scene.bodies
    place = np.tile([x.position for x in bodies], (frames, 1, 1)).astype(float)
    for name, path in (paths or {}).items():
        place[:, [x.name for x in bodies].index(name)] = path
    b = len(bodies)
    return StateLog(
        tuple(x.name for x in bodies), Fraction(1, 30), np.arange(frames), place,
        np.tile([x.quaternion_wxyz for x in bodies], (frames, 1, 1)).astype(float),
        np.zeros((frames, b, 3)), np.zeros((frames, b, 3)), np.ones((frames, b), bool),
        np.full((frames, b), 2, np.uint8), vertices=vertices or {},
    )  # fmt: skip


def made(name, subtask, material, frames=None, late=0.0, vertices=None):
    """A record of the closed form, later by so much; what it measures, and what it should."""
    card = family(name)
    built = build(card, subtask, material)
    (form, *_) = (p for p in predict(card, subtask, material) if p.trajectory is not None)
    frames = frames or card.frames(subtask, material)
    times = np.maximum(np.arange(frames) / 30 - late, 0)
    # Past where it holds, straight on.
    held = np.minimum(times, form.valid[1])
    path, before = form.trajectory(held), form.trajectory(held - 1e-4)
    path = path + (times - held)[:, None] * (path - before) / 1e-4
    state = state_of(built, frames, {form.body: path}, vertices)
    record = Record(card, subtask, material, built, state, np.zeros((frames, 1, 1)))
    found = MEASURED[form.truth](record, form)
    return found, {n: expected(record, form, n).value for n in found}


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("slope_slider/2/metal", {"acceleration", "off_time"}),
        ("slope_slider/2/wood", {"acceleration"}),
        ("slope_slider/3/metal", {"slip_time", "slip_angle", "off_time", "off_speed"}),
        ("slope_slider/3/wood", {"slip_time", "slip_angle"}),
        ("turntable/1/wood", {"creep", "end_radius"}),
        ("turntable/2/wood", {"creep", "slip_time"}),
        ("turntable/3/wood", {"creep", "slip_time", "stick_time", "end_radius"}),
        ("wall_breaking/1/wood", {"contact", "speed", "height"}),
        ("slope_contact/1/wood", {"acceleration", "turn"}),
    ],
)
def test_the_closed_form_itself_reads_its_own_numbers(task, names):
    found, said = made(*task.split("/"))
    assert set(found) == names
    for name in names:
        assert found[name] == pytest.approx(said[name], rel=6e-3, abs=2e-6), name


def test_what_comes_later_reads_later():
    for task, names in {
        "slope_slider/2/metal": ("off_time",),
        "wall_breaking/1/wood": ("contact",),
    }.items():
        found, said = made(*task.split("/"), frames=95, late=0.01)
        for name in names:
            assert found[name] == pytest.approx(said[name] + 0.01, abs=3e-3), name


def test_a_plate_whose_rim_is_reached_in_the_record_tells_when():
    found, said = made("turntable", "2", "wood", frames=20)
    assert found["rim_time"] == pytest.approx(said["rim_time"], rel=2e-3)


def test_what_never_comes_is_not_a_number():
    card = family("wall_breaking")
    built = build(card, "1", "wood")
    (form,) = predict(card, "1", "wood")
    record = Record(card, "1", "wood", built, state_of(built, 60), np.zeros((60, 1, 1)))
    assert np.isnan(list(MEASURED["wall_is_struck"](record, form).values())).all()


def test_a_cloth_that_runs_from_under_a_cube_tells_when_it_is_past():
    card = family("tablecloth_pulling")
    built = build(card, "1", "wood")
    (form,) = predict(card, "1", "wood")
    (sheet,) = built.scene.deformables
    rest = rest_shape(sheet, built.meshes).vertices
    drive = next(d for d in card.drives("1", "wood") if d.body == "rod")
    times = np.arange(30) / 30
    moved = motion(drive, times).offset
    state = state_of(
        built, 30, {"cube": form.trajectory(times)}, {sheet.name: rest + moved[:, None]}
    )
    record = Record(card, "1", "wood", built, state, np.zeros((30, 1, 1)))
    found = MEASURED[form.truth](record, form)
    for name in ("passed", "moved", "acceleration"):
        assert found[name] == pytest.approx(form.numbers[name].value, rel=0.01), name
    still = replace(state, vertices={sheet.name: np.tile(rest, (30, 1, 1))})
    stuck = MEASURED[form.truth](replace(record, state=still), form)
    assert np.isnan([stuck["passed"], stuck["moved"]]).all()


def test_every_closed_form_has_some_number_that_a_record_is_held_against():
    rigid = {"falls_until_contact"}
    assert set(TRUTHS) <= set(MEASURED) | rigid

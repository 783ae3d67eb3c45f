"""Imposed motions: rates are derivatives, ends are at rest, measured files are read or refused."""

import hashlib

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid

from wmeval.assets.gauge_cards import Drive, families, family
from wmeval.assets.gauge_profiles import (
    axis,
    check,
    drive_hash,
    motion,
    read_measured,
    smooth_area,
    smooth_slope,
    smooth_step,
)
from wmeval.errors import UserError


def drives():
    seen = set()
    for card in families().values():
        for name, subtask in card.subtasks.items():
            for material in subtask.frames:
                for drive in card.drives(name, material):
                    if drive_hash(drive) in seen:
                        continue
                    seen.add(drive_hash(drive))
                    yield pytest.param(
                        drive, card.frames(name, material) / 30,
                        id=f"{card.id}-{name}-{material}-{drive.body}",
                    )  # fmt: skip


@pytest.mark.parametrize(("drive", "end"), list(drives()))
def test_rates_are_the_derivatives_of_the_motion(drive, end):
    if drive.profile == "kick":
        return
    t = np.linspace(0, end, 4001)
    made = motion(drive, t)
    for value, rate in ((made.offset, made.velocity), (made.angle[:, None], made.rate[:, None])):
        whole = cumulative_trapezoid(rate, t, axis=0, initial=0)
        assert value == pytest.approx(whole, abs=3e-5)
    assert made.offset[0] == pytest.approx([0, 0, 0], abs=1e-12)
    assert made.velocity[0] == pytest.approx([0, 0, 0], abs=1e-9)


def test_the_smooth_step_starts_and_ends_at_rest():
    u = np.array([-1, 0, 0.5, 1, 2.0])
    assert smooth_step(u) == pytest.approx([0, 0, 0.5, 1, 1])
    assert smooth_slope(u) == pytest.approx([0, 0, 1.5, 0, 0])
    assert smooth_area(u) == pytest.approx([0, 0, 0.5**3 - 0.5**5, 0.5, 1.5])


def test_profiles_reach_what_the_cards_state():
    (tilt,) = family("slope_slider").drives("3", "wood")
    assert motion(tilt, [1.0, 2.0, 9.0]).angle == pytest.approx(
        [np.pi / 8, np.pi / 4, np.pi / 4], abs=1e-5
    )
    assert axis(tilt) == pytest.approx([0, 1, 0])
    (pull,) = family("tablecloth_pulling").drives("1", "wood")
    assert motion(pull, [0.2]).velocity[0] == pytest.approx([-1.6, 0, 0])
    assert motion(pull, [0.4458]).offset[0] == pytest.approx([-0.5, 0, 0], abs=1e-4)
    (fling,) = family("textile_flinging").drives("1", "satin")
    assert motion(fling, [0.4, 0.8, 1.2, 1.6, 3]).offset[:, 1] == pytest.approx(
        [0.3, 0, 0.3, 0, 0], abs=1e-12
    )
    (poke,) = family("textile_stretching").drives("1", "rayon")
    t = np.linspace(2, 432 / 30 - 2, 400)
    at = motion(poke, t).offset
    assert at[:, 0] == pytest.approx(0.0354)
    assert np.hypot(at[:, 1], at[:, 2] - 0.05) == pytest.approx(0.05)
    assert motion(poke, [432 / 30]).offset[0] == pytest.approx([0, 0, 0], abs=1e-9)
    (twist,) = family("foam_twisting").drives("1", "soft")
    assert motion(twist, [2.2]).angle[0] == pytest.approx(-np.pi / 2, abs=1e-5)
    # Each rope ball is only set off.
    kicks = family("rope_winding").drives("1", "rubber")
    assert [motion(k, [0.0, 0.1]).velocity[:, 1].tolist() for k in kicks] == [[0.8, 0], [-0.8, 0]]


@pytest.mark.parametrize(
    ("profile", "parameters", "message"),
    [
        ("jump", {}, "choose from move"),
        ("move", {"offset": (0, 0, 1.0)}, "needs 'duration'"),
        ("move", {"offset": (0, 0, 1.0), "duration": 1.0, "speed": 2.0}, "no parameter 'speed'"),
        ("move", {"offset": 1.0, "duration": 1.0}, "'offset' must be three numbers"),
        ("pull", {"direction": (1, 0, 0), "acceleration": 1.0, "speed": 9.0, "distance": 0.1},
         "too short"),
    ],
)  # fmt: skip
def test_a_wrong_profile_is_refused(profile, parameters, message):
    with pytest.raises(UserError, match=message):
        motion(Drive(body="b", profile=profile, parameters=parameters), [0.0])


def test_a_measured_motion_takes_a_profiles_place(tmp_path):
    path = tmp_path / "board.csv"
    path.write_text("time,x,y,z,angle\n0,0,0,0,0\n1,0.1,0,0,0.5\n3,0.1,0,0.2,0.5\n")
    measured = read_measured(path)
    made = measured.motion([-1, 0.5, 2, 4])
    assert made.offset == pytest.approx(
        np.array([[0, 0, 0], [0.05, 0, 0], [0.1, 0, 0.1], [0.1, 0, 0.2]])
    )
    assert made.rate == pytest.approx([0, 0.5, 0, 0])
    assert made.velocity[:, 2] == pytest.approx([0, 0, 0.1, 0])
    assert len(drive_hash(measured)) == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,x\n", "first line must read"),
        ("time,x,y,z,angle\n0,0,0,0,0\n0,0,0,0,1\n", "ascend"),
        ("time,x,y,z,angle\n0,0,0,0,0\n", "two or more lines"),
        ("time,x,y,z,angle\n0,0,0,0,0\n1,0,a,0,0\n", "not five numbers"),
        ("time,x,y,z,angle\n0,0,0,0,0\n1,0,0,nan,0\n", "finite"),
        ("time,x,y,z,angle\n0,0,0,0.05,0\n1,0,0,0,0\n", "begins at 0, 0, 0.05, 0: give offsets"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text, message):
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_measured(path)


def test_a_spreadsheets_mark_and_line_ends_are_read(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes(b"\xef\xbb\xbftime,x,y,z,angle\r\n0,0,0,0,0\r\n1,0.5,0,0,0\r\n")
    assert read_measured(path).motion([1.0]).offset[0] == pytest.approx([0.5, 0, 0])


def test_the_hash_of_a_file_is_of_its_numbers_however_they_are_spelt(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("time,x,y,z,angle\n0,0,0,0,0\n1,0.5,0,0,0.25\n")
    two.write_text("time, x, y, z, angle\r\n0.0,0,0,0,0\r\n1e0,5e-1,0,0,0.250\r\n\r\n")
    numbers = np.loadtxt(one, delimiter=",", skiprows=1).astype("<f8")
    told = hashlib.sha256(numbers.tobytes()).hexdigest()
    assert [drive_hash(read_measured(x)) for x in (one, two)] == [told, told]


def test_the_hash_follows_the_numbers():
    drive = family("slope_slider").drives("3", "wood")[0]
    other = drive.model_copy(update={"parameters": {**drive.parameters, "duration": 2.1}})
    assert drive_hash(drive) != drive_hash(other)
    assert drive_hash(drive) == drive_hash(Drive.model_validate(drive.model_dump()))
    assert check(drive).needs == ("angle", "axis", "duration")

"""Cards say where the build sheet's numbers were corrected, with the numbers that stand now."""

import math

import pytest

from wmeval.assets.gauge_cards import families
from wmeval.assets.gauge_profiles import motion
from wmeval.eval.truths import predict
from wmeval.eval.truths.chain import chain_transfer

SHEET = "build sheet"


def note_of(family):
    notes = [n for n in families()[family].notes if SHEET in " ".join(n.split())]
    assert notes
    return " ".join(" ".join(notes).split())


@pytest.mark.parametrize(
    ("family", "number", "scale", "shown", "sheet"),
    [("rope_winding", "rise", 1e3, "57.8 mm", "32.6 mm"),
     ("newtons_cradle", "mte_of_restitution", 1, "20.0 %", "13.1 %"),
     ("foam_shearing", "axial_strain", 1e2, "2.77 %", "2.9 %"),
     ("newtons_cradle", "impact", 1, "0.2161 s", "0.2158 s"),
     ("newtons_cradle", "speed", 1, "1.613 m/s", "1.615 m/s"),
     ("pendulum", "small_period", 1, "1.0639 s", "1.0615 s"),
     ("pendulum", "period", 1, "1.2558 s", "1.2529 s"),
     ("wall_breaking", "contact", 1, "0.2967 s", "0.296 s"),
     ("wall_breaking", "speed", 1, "0.846 m/s", "0.848 m/s"),
     ("foam_bending", "stiffness", 1, "842", "626")],
)  # fmt: skip
def test_a_card_tells_the_corrected_number_and_the_sheets(family, number, scale, shown, sheet):
    card = families()[family]
    (form,) = predict(card, "1", next(iter(card.subtasks["1"].frames)))
    digits = len(shown.split()[0].partition(".")[2])
    assert f"{scale * form.numbers[number].value:.{digits}f}" == shown.split()[0]
    assert shown in note_of(family)
    assert sheet in note_of(family)


def test_the_sheets_numbers_are_what_the_notes_say_they_leave_out():
    # One impact of each pair alone; a rise without what the rope gives back; a bow without shear.
    e = families()["newtons_cradle"].body_properties("1", "metal", "ball_1").number("restitution")
    assert 100 * ((1 + e) / 2) ** 4 == pytest.approx(13.1, abs=0.05)
    assert 100 * chain_transfer(e, 5) == pytest.approx(20.0, abs=1e-3)
    (kick, _) = families()["rope_winding"].drives("1", "rubber")
    speed = max(kick.parameters["velocity"])
    assert 1e3 * speed**2 / (2 * 9.81) == pytest.approx(32.6, abs=0.05)
    (move,) = families()["foam_shearing"].drives("1", "soft")
    slope = math.hypot(*move.parameters["offset"]) / 0.2
    assert 100 * 0.6 * slope**2 == pytest.approx(2.9, abs=0.05)


def test_the_sheets_swings_are_of_points_in_place_of_solid_balls():
    (pendulum,) = predict(families()["pendulum"], "1", "metal")
    assert pendulum.numbers["point_period"].value == pytest.approx(1.2529, abs=5e-5)
    # T0 goes as the root of the equivalent length, speeds as one over it.
    slower = {}
    for family, body, rod in (
        ("pendulum", "ball", 0.28), ("newtons_cradle", "ball_1", 0.13294),
        ("wall_breaking", "ball", 0.28),
    ):  # fmt: skip
        ball = families()[family].bodies[body].shape
        slower[family] = math.sqrt(1 + 0.1 * (ball.diameter / rod) ** 2)
    assert "0.2813 m" in note_of("pendulum")
    assert 0.28 * slower["pendulum"] ** 2 == pytest.approx(0.2813, abs=5e-5)
    shown = {  # on the card: ours, and the sheet's
        ("pendulum", 1): [(1.0639, 1.0615), (1.2558, 1.2529)],
        ("newtons_cradle", 1): [(0.2161, 0.2158)], ("newtons_cradle", -1): [(1.613, 1.615)],
        ("wall_breaking", 1): [(0.2967, 0.296)], ("wall_breaking", -1): [(0.846, 0.848)],
    }  # fmt: skip
    for (family, power), pairs in shown.items():
        for ours, sheets in pairs:
            assert ours / slower[family] ** power == pytest.approx(sheets, rel=5e-4)


def test_the_funnels_ball_ends_above_the_breadboard_and_not_below():
    card = families()["funnel"]
    (drive,) = card.drives("1", "rayon")
    down = -float(motion(drive, [10.0]).offset[0][2])
    height = card.poses("1", "rayon")["ball"].position[2] - card.bodies["ball"].shape.diameter / 2
    assert height - down == pytest.approx(3e-3)
    assert height - 0.32 < 0
    assert f"{down:.2f} m" in note_of("funnel")
    assert "0.32 m" in note_of("funnel")

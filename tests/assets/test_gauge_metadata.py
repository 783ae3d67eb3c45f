"""Every number of the released metadata stands on its card, in its place: body, material, task."""

import json
from pathlib import Path

import pytest

from wmeval.assets.gauge_cards import family
from wmeval.assets.gauge_published import published

PARAMETERS = Path(__file__).parents[3] / "shared" / "data" / "gauge_parameters"
HERE = pytest.mark.skipif(not PARAMETERS.is_dir(), reason=f"the parameters are not at {PARAMETERS}")
MATERIALS = {"cotton": "rayon", "suit": "uniform"}
BODIES = {
    "teh": "tetrahedron", "rod_move": "rod_moving", "base-1": "clamp_low", "base-2": "clamp_top",
}  # fmt: skip
OWN = {  # where a name of the metadata means another body than elsewhere
    "textile stretching": {"rod": "probe"},
    "stick-stack": {"base": "clamp"},
    "cantilever beam": {"base": "pedestal"},
}
FALLING = {"task-3": ("1", "pyramid", "square_base"), "task-4": ("2", "pyramid", "tri_base"),
           "task-5": ("3", "wedge", "tri_base")}  # fmt: skip
ALL = (None,)


@pytest.fixture(scope="module")
def tasks():
    return json.loads((PARAMETERS / "gauge_parameters.json").read_text())["tasks"]


def body_of(paper, name):
    return OWN.get(paper, {}).get(name) or BODIES.get(name, name.replace("-", "_"))


def set_ups(card, subtasks, materials):
    for subtask in card.subtasks if subtasks == ALL else subtasks:
        frames = card.subtasks[subtask].frames
        for material in frames if materials == ALL else materials:
            yield subtask, MATERIALS.get(material, material)


def holds(paper, body, numbers, *, subtasks=ALL, materials=ALL):
    """Compare a body's numbers in the named set-ups; how many were compared."""
    card, count = family(paper), 0
    for subtask, material in set_ups(card, subtasks, materials):
        own = card.body_properties(subtask, material, body)
        for key, value in numbers.items():
            if key in ("count", "diameter", "kinematic", "pos", "euler", "length_m"):
                continue
            field = "areal_density" if (body, key) == ("textile", "density") else key
            assert getattr(own, field) == value, (paper, subtask, material, body, key)
            count += 1
    return count


def stands(paper, poses, *, subtasks=ALL, materials=ALL):
    """Compare the places of bodies, and the ground's height."""
    card = family(paper)
    for subtask, material in set_ups(card, subtasks, materials):
        for name, place in poses.items():
            if name == "ground_z":
                assert card.ground(subtask, material) == place
            elif body_of(paper, name) in card.bodies and len(place) == 3:
                found = card.poses(subtask, material)[body_of(paper, name)].position
                assert list(found) == place, (paper, subtask, material, name)


@HERE
def test_rigid_families(tasks):
    count = 0
    one = tasks["slope contact"]
    for m, numbers in one["teh"].items():
        count += holds("slope contact", "tetrahedron", numbers, materials=[m])
        count += holds("slope contact", "base", {"mass": one["base_mass"][m]}, materials=[m])
        stands("slope contact", one["pose"][m], materials=[m])
    one = tasks["nonsmooth contact"]
    for task, (subtask, body, base) in FALLING.items():
        where = {"subtasks": [subtask]}
        mass = one[f"{base.replace('_', '')}_wood_mass"]
        count += holds("nonsmooth contact", base, {"mass": mass}, **where)
        for m, numbers in one[body].items():
            mine = {k: v[task] if isinstance(v, dict) else v for k, v in numbers.items()}
            count += holds("nonsmooth contact", body, mine, materials=[m], **where)
            poses = {base if k == "base" else k: v for k, v in one["pose"][task][m].items()}
            stands("nonsmooth contact", poses, materials=[m], **where)
            euler = family("nonsmooth contact").poses(subtask, m)[body].euler_deg
            assert str(list(map(int, euler))).replace(" ", "") in one["variants"][task]
    for paper, board in (("slope slider", "board"), ("turntable", "plate")):
        one = tasks[paper]
        count += holds(paper, board, one[f"{board}_wood"])
        for m, numbers in one["cube"].items():
            count += holds(paper, "cube", numbers, materials=[m])
            for task, poses in one["pose"].items():
                stands(paper, poses[m], subtasks=[task[-1]], materials=[m])
    one = tasks["bouncing ball"]
    count += holds("bouncing ball", "ball", one["ball"])
    stands("bouncing ball", one["pose"])
    one = tasks["newton's cradle"]
    x, z = one["pose"]["x"], one["pose"]["z"]
    for k, y in enumerate(one["pose"]["y"], 1):
        count += holds("newton's cradle", f"ball_{k}", one["ball"])
        stands("newton's cradle", {f"ball-{k}": [x, y, z]})
    swung = family("newton's cradle").poses("1", "metal")["ball_1"].euler_deg
    assert list(swung) == one["pose"]["ball-1_euler"]
    one = tasks["wall breaking"]
    count += holds("wall breaking", "ball", one["ball"])
    count += holds("wall breaking", "wall", one["brick"])
    stands("wall breaking", {"ball": one["ball"]["pos"]})
    one = tasks["pendulum"]["ball"]
    count += holds("pendulum", "ball", one)
    stands("pendulum", {"ball": one["pos"]})
    assert list(family("pendulum").poses("2", "metal")["ball"].euler_deg) == one["euler"]
    assert count == 222


@HERE
def test_rope_and_textiles(tasks):
    count = 0
    one = tasks["rope winding"]
    for body in ("beam", "rope", "ball_1", "ball_2"):
        count += holds("rope winding", body, one[body[:4]])
    stands("rope winding", one["pose"])
    for paper in ("textile stretching", "textile bending", "textile flinging", "funnel",
                  "rotating ball"):  # fmt: skip
        one, card = tasks[paper], family(paper)
        assert {MATERIALS.get(m, m) for m in one["textile"]} == set(card.materials)
        for m, numbers in one["textile"].items():
            count += holds(paper, "textile", numbers, materials=[m])
        stands(paper, one["pose"])
        size = sorted(card.bodies["textile"].shape.size)
        assert size == [cm / 100 for cm in sorted(one["sheet_cm"])]
        assert card.markers.count == one.get("markers", 4)
        for key in ("rod_mass", "frame_mass", "board_mass"):
            if key in one:
                for body in [b for b in card.bodies if b.startswith(body_of(paper, key[:-5]))]:
                    count += holds(paper, body, {"mass": one[key]})
        if "ball" in one:
            count += holds(paper, "ball", {"mass": one["ball"]["mass"]})
            assert card.bodies["ball"].shape.diameter == one["ball"]["diameter"]
    one = tasks["tablecloth pulling"]
    count += holds("tablecloth pulling", "textile", one["textile"]["nylon"])
    for m, numbers in one["cube"].items():
        count += holds("tablecloth pulling", "cube", numbers, materials=[m])
    stands("tablecloth pulling", one["pose"])
    assert count == 305


@HERE
def test_soft_families(tasks):
    count = 0
    for paper in [p for p in tasks if p.startswith("foam")]:
        one, card = tasks[paper], family(paper)
        for m, numbers in one["foam"].items():
            count += holds(paper, "foam", numbers, materials=[m])
        for body in ("clamp_low", "clamp_top"):
            count += holds(paper, body, {"mass": one["clamp_mass"]})
        stands(paper, one["pose"])
        assert card.markers.count == one["markers"]
    count += holds("foam bending", "cube", {"mass": tasks["foam bending"]["cube_plastic_mass"]})
    one = tasks["stick-stack"]
    for m, numbers in one["rod"].items():
        count += holds("stick-stack", "rod", numbers, materials=[m])
    stands("stick-stack", one["pose"])
    one = tasks["cantilever beam"]
    for m, numbers in one["foam_cube"].items():
        for body in ("cube_1", "cube_3"):
            count += holds("cantilever beam", body, numbers, materials=[m])
    for body in ("cube_2", "cube_4"):
        count += holds("cantilever beam", body, {"mass": one["rubber_cube_mass"]})
    count += holds("cantilever beam", "pedestal", {"mass": one["pedestal_mass"]})
    stands("cantilever beam", {b: [one["x"], y, one["z"]] for b, y in one["pose_y"].items()})
    assert count == 96


def test_records_are_as_long_as_the_published_ones():
    for row in published().rows:
        assert family(row.family).frames(row.subtask, row.material) == row.frames

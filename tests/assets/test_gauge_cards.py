"""GAUGE's cards: complete, consistent with the published numbers, one clear error."""

import numpy as np
import pytest
import yaml

from wmeval.assets.gauge_cards import (
    ORDER,
    Box,
    Convex,
    Cylinder,
    NotchedBlock,
    Prism,
    Sheet,
    Sphere,
    brick_centres,
    families,
    family,
    read_family,
    rotation,
)
from wmeval.assets.gauge_markers import FACE_AREA, markers
from wmeval.errors import UserError

TABLE_2 = {  # subtasks and materials of the paper's Table 2
    "slope contact": (1, 2), "nonsmooth contact": (3, 2), "slope slider": (3, 3),
    "turntable": (3, 3), "bouncing ball": (1, 1), "newton's cradle": (1, 1),
    "wall breaking": (1, 1), "rope winding": (1, 1), "textile stretching": (1, 6),
    "textile bending": (1, 6), "textile flinging": (1, 6), "funnel": (1, 6),
    "rotating ball": (1, 3), "tablecloth pulling": (1, 3), "foam stretching": (1, 2),
    "foam compressing": (1, 2), "foam shearing": (1, 2), "foam twisting": (1, 2),
    "foam bending": (1, 2), "stick-stack": (1, 2), "cantilever beam": (1, 2),
}  # fmt: skip


def set_ups():
    for card in families().values():
        for name, subtask in card.subtasks.items():
            for material in subtask.frames:
                yield card, name, material


def test_the_22_families_have_the_published_subtasks_and_materials():
    assert tuple(families()) == ORDER
    assert len(ORDER) == 22
    assert sum(card.benchmarked for card in families().values()) == 14
    for paper, (subtasks, materials) in TABLE_2.items():
        card = family(paper)
        assert (len(card.subtasks), len(card.materials)) == (subtasks, materials), paper
        assert family(card.env) is card
    assert len(family("pendulum").subtasks) == 2  # the period's 300 frames, the energy's 3000


def test_solvers_run_at_the_published_rates():
    assert {c.solver_hz for c in families().values() if c.kind != "soft"} == {180}
    assert {c.solver_hz for c in families().values() if c.kind == "soft"} == {900}


def volume(shape):
    if isinstance(shape, Box):
        return np.prod(shape.size)
    if isinstance(shape, Sphere):
        return np.pi * shape.diameter**3 / 6
    if isinstance(shape, Cylinder):
        return np.pi * shape.radius**2 * shape.length
    if isinstance(shape, Convex):
        from scipy.spatial import ConvexHull

        return ConvexHull(np.array(shape.points)).volume
    if isinstance(shape, Prism):
        area = 0.0
        for piece in shape.pieces:
            x, y = np.array(piece).T
            area += (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
        return abs(area) * (shape.top - shape.bottom)
    if isinstance(shape, NotchedBlock):
        a, b, c, d = np.array(shape.notch)
        return np.prod(shape.size) - abs(np.linalg.det([b - a, c - a, d - a])) / 6
    return None


def test_masses_agree_with_densities_and_inferred_sizes():
    checked = 0
    for card, name, material in set_ups():
        for body, what in card.bodies_of(name, material).items():
            numbers = card.body_properties(name, material, body)
            size = volume(what.shape)
            if numbers.density and numbers.mass and size:
                assert numbers.mass == pytest.approx(numbers.density * size, rel=0.035), (
                    card.id, body,
                )  # fmt: skip
                checked += 1
            if isinstance(what.shape, Sheet) and numbers.areal_density:
                area = np.prod(what.shape.size)
                assert numbers.mass == pytest.approx(numbers.areal_density * area, rel=0.01)
                checked += 1
    assert checked > 80


@pytest.mark.parametrize("name", ["pyramid", "wedge"])
def test_convex_shapes_are_about_their_centroid(name):
    from scipy.spatial import Delaunay

    points = np.array(family("nonsmooth_contact").bodies[name].shape.points)
    corners = points[Delaunay(points).simplices]
    volumes = abs(np.linalg.det(corners[:, 1:] - corners[:, :1]))
    assert (volumes @ corners.mean(axis=1)) / volumes.sum() == pytest.approx([0, 0, 0], abs=1e-6)


def test_the_tetrahedron_fits_the_notch():
    card = family("slope_contact")
    for material in card.materials:
        pose = card.poses("1", material)
        offset = np.subtract(pose["tetrahedron"].position, pose["base"].position)
        shape = np.array(card.bodies["tetrahedron"].shape.points)
        notch = np.array(card.bodies["base"].shape.notch)
        assert shape + offset == pytest.approx(notch, abs=2e-6)
        legs = shape[1:] - shape[0]
        assert legs @ legs.T == pytest.approx(0.01 * np.eye(3), abs=1e-7)


def test_euler_angles_turn_the_published_slider_into_the_boards_frame():
    card = family("slope_slider")
    pose = card.poses("2", "wood")
    offset = np.subtract(pose["cube"].position, pose["board"].position)
    own = rotation(pose["board"].euler_deg).T @ offset
    assert own == pytest.approx([-0.225, 0, 0.030], abs=2e-4)
    assert np.linalg.det(rotation((10, -20, 30))) == pytest.approx(1)
    quarter = rotation((90, 0, 90))  # first about x, then about z
    assert quarter @ [0, 0, 1] == pytest.approx([1, 0, 0])


def test_the_wall_has_118_bricks_that_do_not_overlap():
    wall = family("wall_breaking").bodies["wall"].shape
    centres = brick_centres(wall)
    assert len(centres) == 118
    apart = abs(centres[:, None] - centres[None]) - np.array(wall.size) + 1e-9
    inside = (apart < 0).all(axis=2)
    assert inside.sum() == 118  # each only itself


def test_one_of_the_falling_bodies_is_measured_at_a_time():
    card = family("nonsmooth_contact")
    assert [card.measured_in(s, "wood") for s in "123"] == [("pyramid",), ("pyramid",), ("wedge",)]
    assert all(c.measured_in(s, m) for c, s, m in set_ups())


def test_every_number_has_a_source():
    card = family("slope_slider")
    assert card.source("properties.wood.cube.mass") == "metadata"
    assert card.source("subtasks.3.drives") == "clip"
    assert card.source("bodies.board.shape.size") == "inferred"
    with pytest.raises(UserError, match="has no source"):
        card.source("colour")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["sources"].pop("bodies"), r"nothing says where bodies"),
        (lambda c: c["sources"].update({"weight": "paper"}), "'weight' covers no number"),
        (lambda c: c["subtasks"]["1"]["frames"].update({"glass": 3}), "no properties"),
        (lambda c: c["properties"]["wood"]["base"].update({"mass": -1}), "mass = -1"),
        (lambda c: c.update({"colour": "red"}), "colour"),
        (lambda c: c["bodies"]["base"].update({"translation": "pivot"}), "hinge and rod"),
    ],
)
def test_a_wrong_card_is_refused_in_one_line(tmp_path, change, message):
    card = families()["slope_contact"].model_dump(mode="json", exclude_none=True)
    change(card)
    path = tmp_path / "slope_contact.yaml"
    path.write_text(yaml.safe_dump(card))
    with pytest.raises(UserError, match=message) as caught:
        read_family(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_names_are_refused_with_the_choices():
    with pytest.raises(UserError, match="slope_slider"):
        family("slide")
    with pytest.raises(UserError, match="choose from 1, 2, 3"):
        family("turntable").frames("4", "wood")
    with pytest.raises(UserError, match="choose from wood, plastic, metal"):
        family("turntable").frames("1", "glass")


def test_markers_have_the_published_counts():
    for card in families().values():
        if card.markers:
            made = markers(card)
            assert len(made.points) == card.markers.count
            assert len(set(made.names)) == card.markers.count
            if len(made.faces):
                assert set(made.faces.ravel()) == set(range(card.markers.count))
    counts = {c.id: len(markers(c).faces) for c in families().values() if c.markers}
    assert counts["textile_stretching"] == 36
    assert counts["textile_flinging"] == 96
    with pytest.raises(UserError, match="wears no markers"):
        markers(family("pendulum"))


def test_the_published_face_list_repeats_a_strip():
    for name in ("foam_stretching", "foam_twisting"):
        made = markers(family(name))
        areas = np.array([
            np.linalg.norm(np.cross(p[1] - p[0], p[2] - p[0])) / 2
            for p in made.points[made.faces]
        ])  # fmt: skip
        assert areas == pytest.approx(FACE_AREA, rel=1e-4)
        assert len(made.faces) == len(made.published_faces) == 24
        assert len({tuple(sorted(f)) for f in made.published_faces.tolist()}) == 12
        assert len({tuple(sorted(f)) for f in made.faces.tolist()}) == 24
    with pytest.raises(UserError, match="no markers"):
        markers(family("slope_slider"))

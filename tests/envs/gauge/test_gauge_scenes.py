"""Every family's card as a scene: masses, sizes, places and clearances are the card's."""

import itertools
import math

import numpy as np
import pytest

from wmeval.assets.gauge_cards import (
    Bricks,
    Properties,
    Sheet,
    brick_centres,
    families,
    rotation,
)
from wmeval.assets.hulls import moments
from wmeval.conventions import intrinsics, look_at, project, quaternion_to_matrix
from wmeval.deformables import block_face, rest_shape, tetrahedron_volumes
from wmeval.envs.gauge.bending import round_rod
from wmeval.envs.gauge.build import build, setup_of
from wmeval.envs.gauge.changes import taken
from wmeval.envs.gauge.shapes import form_of, holed_board
from wmeval.errors import UserError
from wmeval.scene import Box, Cloth, Mesh, Scene, Soft, Sphere
from wmeval.sim.engines.pairs import own_values

ALL = [
    (card.id, subtask, material)
    for card in families().values()
    for subtask, one in card.subtasks.items()
    for material in one.frames
]
FIRST = [(i, s, next(iter(families()[i].subtasks[s].frames))) for i, s, _ in ALL]
FIRST = list(dict.fromkeys(FIRST))


def ids(case):
    return "-".join(case)


def body(scene, name):
    return scene.bodies[scene.index(name)]


def deformable(scene, name):
    return next(d for d in scene.deformables if d.name == name)


def corners(built, name):
    """World points (N, 3) of a body made of one hull."""
    found = body(built.scene, name)
    mesh = built.meshes[found.collision[0].shape.sha256]
    turn = quaternion_to_matrix(np.array(found.quaternion_wxyz))
    return mesh.vertices.astype(np.float64) @ turn.T + np.array(found.position)


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_a_scene_survives_json_and_holds_the_cards_numbers(case):
    name, subtask, material = case
    card = families()[name]
    built = build(card, subtask, material)
    assert Scene.model_validate_json(built.scene.model_dump_json()) == built.scene
    for who, one in card.bodies_of(subtask, material).items():
        own = card.body_properties(subtask, material, who)
        if isinstance(one.shape, Bricks):
            bricks = [b for b in built.scene.bodies if b.role == "brick"]
            assert [b.position for b in bricks] == [
                pytest.approx(c) for c in brick_centres(one.shape)
            ]
            assert {b.mass for b in bricks} == {own.mass}
        elif one.motion == "dynamic" and who in {b.name for b in built.scene.bodies}:
            assert body(built.scene, who).mass == own.mass
        elif isinstance(one.shape, Sheet):
            cloth = deformable(built.scene, who)
            mass = cloth.areal_density * np.prod(cloth.surface.size)
            # Published masses are rounded to a gram in places.
            assert mass == pytest.approx(own.mass, rel=2e-3)
            assert (cloth.stretch, cloth.shear) == (own.stretch_stiffness, own.shear_stiffness)
        elif who in {d.name for d in built.scene.deformables}:
            item = deformable(built.scene, who)
            rest = rest_shape(item, built.meshes)
            if isinstance(item, Soft):
                mass = item.density * tetrahedron_volumes(rest.vertices, rest.tetrahedra).sum()
                assert mass == pytest.approx(own.mass, rel=0.02)
    times = {d.kind for d in built.drives.specs}
    assert bool(times) == bool(card.drives(subtask, material))


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_pairs_have_the_friction_and_restitution_that_were_measured(case):
    name, subtask, material = case
    card = families()[name]
    scene = build(card, subtask, material).scene
    values = {b.name: (b.friction, b.restitution) for b in scene.bodies}
    values |= {d.name: (d.friction, 1.0) for d in scene.deformables}

    def pair(a, b):
        return tuple(x * y for x, y in zip(values[a], values[b], strict=True))

    own = {n: card.body_properties(subtask, material, n) for n in card.bodies_of(subtask, material)}
    wanted = {
        "slope_slider": [("cube", "board", "cube")],
        "turntable": [("cube", "plate", "cube"), ("cube", "ground", "cube")],
        "slope_contact": [("tetrahedron", "base", "tetrahedron")],
        "bouncing_ball": [("ball", "ground", "ball")],
        "newtons_cradle": [(f"ball_{k}", f"ball_{k + 1}", "ball_1") for k in range(1, 5)],
        "wall_breaking": [("brick_1", "brick_2", "wall"), ("brick_1", "ground", "wall")],
        "tablecloth_pulling": [("textile", "cube", "cube")],
    }.get(name, [])
    for a, b, of in wanted:
        friction, restitution = pair(a, b)
        assert friction == pytest.approx(own[of].friction)
        assert restitution == pytest.approx(own[of].restitution)
    if name == "rope_winding":
        assert pair("rope", "beam")[0] == pytest.approx(0.467163)
        assert pair("ball_1", "ball_2")[1] == pytest.approx(0.190976)
    if name == "tablecloth_pulling":
        assert pair("textile", "table")[0] == pytest.approx(0.1)


# --- places and clearances ------------------------------------------------------------------------


@pytest.mark.parametrize("material", ["wood", "plastic"])
def test_the_tetrahedron_lies_on_the_slope_of_its_base(material):
    card = families()["slope_contact"]
    built = build(card, "1", material)
    tetrahedron, base = corners(built, "tetrahedron"), corners(built, "base")
    # The base is convex: what is cut off lies beyond one plane.
    apex = np.array(card.poses("1", material)["base"].position)
    normal = np.array([1.0, 0.0, 1 / math.sqrt(2)])
    normal /= np.linalg.norm(normal)
    level = np.array([0.0, 0.0, 0.1]) @ normal
    assert ((base - apex) @ normal).max() == pytest.approx(level, abs=1e-6)
    assert ((tetrahedron - apex) @ normal).min() == pytest.approx(level, abs=1e-6)
    volume, centre, _ = moments(built.meshes[body(built.scene, "base").collision[0].shape.sha256])
    assert volume == pytest.approx(0.1 * 0.1 * 0.2 - 0.1**3 / 6, rel=1e-5)
    # Where the card says that the centroid is, whatever frame the body has.
    shown = body(built.scene, "tetrahedron")
    assert shown.position == card.poses("1", material)["tetrahedron"].position
    mass, middle, second = moments(built.meshes[shown.collision[0].shape.sha256])
    assert mass == pytest.approx(0.1**3 / 6, rel=1e-5)
    assert np.abs(middle).max() < 1e-6
    assert np.abs(second - np.diag(np.diag(second))).max() < 1e-6 * second.max()
    assert centre[2] < 0


@pytest.mark.parametrize("case", [c for c in ALL if c[0] == "slope_slider"], ids=ids)
def test_the_cube_lies_on_the_board_at_its_upper_end(case):
    scene = build(families()[case[0]], *case[1:]).scene
    cube, board = body(scene, "cube"), body(scene, "board")
    turn = quaternion_to_matrix(np.array(board.quaternion_wxyz))
    local = turn.T @ (np.array(cube.position) - np.array(board.position))
    assert local == pytest.approx([-0.225, 0, 0.030], abs=2e-5)
    assert cube.quaternion_wxyz == pytest.approx(board.quaternion_wxyz)


def test_no_two_bricks_overlap_and_the_ball_is_clear_of_them():
    scene = build(families()["wall_breaking"], "1", "wood").scene
    bricks = [b for b in scene.bodies if b.role == "brick"]
    assert len(bricks) == 118
    half = np.array([0.01, 0.02, 0.0075])
    where = np.array([b.position for b in bricks])
    for a, b in itertools.combinations(range(len(bricks)), 2):
        assert (np.abs(where[a] - where[b]) - 2 * half).max() > -1e-9
    assert where[:, 2].min() - half[2] == pytest.approx(0.01178, abs=1e-6)
    gaps = np.abs(where - np.array(body(scene, "ball").position)) - half
    assert np.linalg.norm(np.maximum(gaps, 0), axis=1).min() > 0.03


def test_the_cradles_balls_touch_and_hang_on_rods_of_their_length():
    card = families()["newtons_cradle"]
    scene = build(card, "1", "metal").scene
    where = np.array([body(scene, f"ball_{k}").position for k in range(1, 6)])
    assert np.linalg.norm(np.diff(where[1:], axis=0), axis=1) == pytest.approx(0.02, abs=1e-12)
    for joint, place in zip(scene.joints, where, strict=True):
        assert np.linalg.norm(place - np.array(joint.pivot)) == pytest.approx(0.13294)
        assert joint.axis == (1.0, 0.0, 0.0)
    assert where[0] == pytest.approx([0.448794, 0.377852 - 0.13294, 0.178669])
    assert {type(b.collision[0].shape) for b in scene.bodies if b.role != "furniture"
            and b.collision} == {Sphere}  # fmt: skip


@pytest.mark.parametrize("case", [c for c in ALL if c[0] == "nonsmooth_contact"], ids=ids)
def test_what_falls_starts_above_the_hole_and_the_pieces_leave_it_open(case):
    card = families()[case[0]]
    built = build(card, *case[1:])
    falling = next(n for n in card.measured if n in {b.name for b in built.scene.bodies})
    base = next(b.name for b in built.scene.bodies if b.name.endswith("base"))
    top = body(built.scene, base).position[2]
    assert corners(built, falling)[:, 2].min() > top + 0.02
    assert top == pytest.approx(card.ground(*case[1:]) + 0.025)
    pieces = [b for b in built.scene.bodies if b.name.startswith(base)]
    assert len(pieces) == (4 if base == "square_base" else 2)
    area = sum(moments(built.meshes[p.collision[0].shape.sha256])[0] / 0.025 for p in pieces)
    whole = 0.1**2 - 0.0353554**2
    assert area == pytest.approx(whole if len(pieces) == 4 else whole / 2, rel=1e-4)


@pytest.mark.parametrize("case", [c for c in FIRST if c[0].startswith("textile")], ids=ids)
def test_sheets_are_held_where_the_rods_are(case):
    built = build(families()[case[0]], *case[1:])
    cloth = built.scene.deformables[0]
    assert isinstance(cloth, Cloth)
    rest = rest_shape(cloth, {}).vertices
    for pin in cloth.pins:
        holder = body(built.scene, pin.body)
        assert holder.collision == ()
        held = rest[list(pin.vertices)]
        if len(cloth.pins) == 1 and pin.body == "frame":
            assert len(pin.vertices) == 160
            continue
        # All on one line, at most the rod's radius from its axis.
        assert np.linalg.matrix_rank(held - held.mean(axis=0), tol=1e-9) == 1
        across = [k for k in range(3) if np.ptp(held[:, k]) < 1e-9]
        off = held.mean(axis=0)[across] - np.array(holder.position)[across]
        assert np.linalg.norm(off) <= 0.005 + 1e-9
    if case[0] == "textile_stretching":
        probe = body(built.scene, "probe")
        tip = probe.position[0] + probe.collision[0].shape.height / 2
        assert cloth.position[0] - tip == pytest.approx(0.0054, abs=1e-4)


@pytest.mark.parametrize("name", ["funnel", "rotating_ball", "tablecloth_pulling"])
def test_sheets_lie_on_what_is_below_them(name):
    card = families()[name]
    material = card.materials[0]
    scene = build(card, "1", material).scene
    cloth = scene.deformables[0]
    below = {"funnel": "board", "rotating_ball": "ball", "tablecloth_pulling": "table"}[name]
    pose = card.poses("1", material)[below].position
    shape = card.bodies[below].shape
    height = shape.diameter / 2 if below == "ball" else shape.size[2] / 2
    gap = cloth.position[2] - cloth.thickness / 2 - (pose[2] + height)
    assert gap == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("case", [c for c in ALL if c[0].startswith("foam")], ids=ids)
def test_foam_is_held_at_its_ends_and_nothing_else_is_in_it(case):
    scene = build(families()[case[0]], *case[1:]).scene
    foam = deformable(scene, "foam")
    rest = rest_shape(foam, {}).vertices
    assert sorted(np.ptp(rest, axis=0)) == pytest.approx([0.05, 0.05, 0.2])
    held = [v for pin in foam.pins for v in pin.vertices]
    across = 7 if case[0] == "foam_bending" else 5
    assert len(held) == len(set(held)) == 2 * across**2
    for pin, side in zip(foam.pins, ("-", "+"), strict=True):
        along = "y" if case[0] == "foam_bending" else "z"
        assert pin.vertices == block_face(foam.volume, along + side)
        clamp = body(scene, pin.body)
        away = np.abs(rest[list(pin.vertices)] - np.array(clamp.position))
        assert away[:, "xyz".index(along)] == pytest.approx(0.012, abs=1e-9)
    if case[0] == "foam_bending":
        gap = body(scene, "cube").position[2] - 0.025 - (foam.position[2] + 0.025)
        assert gap == pytest.approx(0.0106, abs=1e-9)


def test_the_soft_rods_poisson_ratio_is_chosen_by_name_and_the_rod_is_round():
    soft = build(families()["stick_stack"], "1", "soft")
    assert soft.ratios[0].ratio.given == 0.62
    assert soft.scene.deformables[0].poisson_ratio == 0.45
    assert soft.ratios[0].ratio.regime == "fallback_high"
    assert "rod: Poisson's ratio 0.62 is impossible" in soft.ratios[0].told["refused"]
    assert "refused" not in build(families()["stick_stack"], "1", "hard").ratios[0].told
    rod = round_rod(0.005, 0.15)
    points, elements = np.array(rod.vertices), np.array(rod.elements)
    volumes = tetrahedron_volumes(points, elements)
    assert volumes.min() > 0
    assert volumes.sum() == pytest.approx(math.pi * 0.005**2 * 0.15, rel=1e-9)
    # Neighbours agree on their faces: inside, every face belongs to two.
    faces = np.sort(elements[:, [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]].reshape(-1, 3))
    _, count = np.unique(faces, axis=0, return_counts=True)
    assert set(count) == {1, 2}
    assert (count == 1).sum() == 2 * 12 + 30 * 12 * 2
    x, y = points[elements].mean(axis=1)[:, :2].T
    second = (volumes * (x**2 + y**2)).sum() / volumes.sum()
    assert second < 0.005**2 / 2


def test_the_rope_begins_above_the_beam_tied_to_its_balls():
    card = families()["rope_winding"]
    scene = build(card, "1", "rubber").scene
    rope, beam = scene.deformables[0], body(scene, "beam")
    assert len(rope.points) == 35
    assert rope.points[0][2] - beam.position[2] >= 0.005 + rope.radius - 1e-12
    for pin, end in zip(rope.pins, (0, 34), strict=True):
        away = np.array(rope.points[end]) - np.array(body(scene, pin.body).position)
        assert np.linalg.norm(away) == pytest.approx(0.03, abs=1e-9)
    mass = rope.density * math.pi * rope.radius**2 * 0.34
    assert mass == pytest.approx(0.005, rel=5e-3)
    chain = build(card, "1", "rubber", rope_chain=True).scene
    links = [b for b in chain.bodies if b.role == "rope"]
    assert (len(links), len(chain.joints), chain.deformables) == (34, 35, ())
    assert sum(b.mass for b in links) == pytest.approx(0.005)


def test_the_holed_board_has_the_volume_of_a_board_less_its_hole():
    mesh = holed_board((0.5, 0.5, 0.012), 0.1)
    v = mesh.vertices.astype(np.float64)
    a, b, c = (v[mesh.triangles[:, k]] for k in range(3))
    volume = float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)
    polygon = 32 * math.sin(2 * math.pi / 64) * 0.1**2
    assert volume == pytest.approx((0.25 - polygon) * 0.012, rel=1e-5)


@pytest.mark.parametrize("case", FIRST, ids=ids)
def test_poses_are_the_cards_turned_about_fixed_axes(case):
    card = families()[case[0]]
    scene = build(card, *case[1:]).scene
    for name, pose in card.poses(*case[1:]).items():
        one = card.bodies[name]
        if name not in {b.name for b in scene.bodies} or one.hinge:
            continue
        found = body(scene, name)
        frame = quaternion_to_matrix(np.array(form_of(one.shape).frame))
        turn = quaternion_to_matrix(np.array(found.quaternion_wxyz))
        assert turn == pytest.approx(rotation(pose.euler_deg) @ frame, abs=1e-9)
        lift = 0.0 if case[0] != "rope_winding" else 1e-4
        assert found.position == pytest.approx(pose.position, abs=lift + 1e-9)


def test_numbers_may_be_changed_by_body():
    card = families()["slope_slider"]
    changes = {"cube": {"friction": 0.3}}
    assert setup_of(card, "1", "wood", changes).surfaces["cube"].friction == 0.3
    scene = build(card, "1", "wood", changes=changes).scene
    assert body(scene, "cube").friction == 0.3
    with pytest.raises(UserError, match="no material 'glass'"):
        build(card, "1", "glass")


@pytest.mark.parametrize("name", families())
def test_just_the_numbers_that_a_scene_takes_may_be_changed(name):
    """Each number of each body, changed by itself, changes the scene or is none to change."""
    card = families()[name]
    acts = {}
    for case in (c for c in FIRST if c[0] == name):
        own = told(build(card, *case[1:]))
        for who in card.bodies_of(*case[1:]):
            of_card = card.body_properties(*case[1:], who)
            for number in Properties.model_fields:
                value = getattr(of_card, number)
                changes = {who: {number: 0.37 if value is None else 0.9 * value}}
                if told(build(card, *case[1:], changes=changes)) != own:
                    acts.setdefault(who, set()).add(number)
    assert {who: set(taken(card, who)) for who in card.bodies if taken(card, who)} == acts


def told(built):
    return built.scene.model_dump_json(), sorted(built.meshes), built.ratios


def test_bodies_that_collide_are_what_engines_can_make():
    """One hull to a body; a mesh that is not convex stands still: what all engines take."""
    for name, subtask, material in FIRST:
        for found in build(families()[name], subtask, material).scene.bodies:
            assert len(found.collision) <= 1
            shape = found.collision[0].shape if found.collision else None
            if isinstance(shape, Mesh) and not shape.convex:
                assert found.motion == "static"
            assert found.motion != "kinematic" or found.mass == 0


@pytest.mark.parametrize("rule", ["mean", "max", "min", "geometric"])
@pytest.mark.parametrize("case", FIRST, ids=ids)
def test_every_engines_rule_can_give_the_pairs_values(case, rule):
    scene = build(families()[case[0]], *case[1:], rope_chain=True).scene
    for what, greatest in (("friction", 1e6), ("restitution", 1.0)):
        values = own_values(scene, what, rule, greatest)
        assert all(0 <= v <= greatest for v in values.values())


@pytest.mark.parametrize("case", FIRST, ids=ids)
def test_the_main_view_shows_what_is_measured_and_where_it_is_led(case):
    built = build(families()[case[0]], *case[1:])
    scene = built.scene
    camera = scene.cameras[0]
    K = intrinsics(math.radians(camera.fov_y_deg), 640, 352)
    pose = look_at(np.array(camera.position), np.array(camera.target))
    sheets = [rest_shape(d, built.meshes).vertices for d in scene.deformables]
    actors = [b for b in scene.bodies if b.role == "actor" and b.collision]
    led = [np.array(body(scene, n).position) + ways for n, ways in built.drives.leads.items()]
    places = [np.array([b.position]) for b in actors]
    pixels, _ = project(np.concatenate([*sheets, *places, *led]), K, pose)
    assert ((pixels > 4) & (pixels < [636, 348])).all()
    if sheets:
        seen, _ = project(np.concatenate(sheets), K, pose)
        assert np.ptp(seen, axis=0).max() > 130
    for actor in actors:
        shape = actor.collision[0].shape
        if isinstance(shape, Sphere | Box):
            radius = shape.radius if isinstance(shape, Sphere) else min(shape.half_extents)
            _, depth = project(np.array(actor.position), K, pose)
            assert radius * K[0, 0] / depth > 7, actor.name

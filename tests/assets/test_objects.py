"""The 24 objects: as large as their cards say, balanced, closed, light, and of baked looks."""

import math

import numpy as np
import pytest
import trimesh

from wmeval.assets.ball_textures import seam_curve
from wmeval.assets.cards import library
from wmeval.assets.hulls import moments
from wmeval.assets.models import HULL_VERTICES, ROLLING_HULL_VERTICES, build_object, triangles_of
from wmeval.assets.objects import OBJECTS
from wmeval.assets.print_textures import CUBE_FACES, DICE_FACES, PIPS
from wmeval.assets.ramps import RAMP_MATERIALS, ramp_material
from wmeval.assets.textures import bake
from wmeval.errors import UserError
from wmeval.scene import Body, Mesh, Sphere
from wmeval.sim.engines.bullet_shapes import principal_inertia

CARDS = library().objects
BALLS = {"baseball": 0.03725, "bouncy_ball": 0.02, "cricket_ball": 0.0359, "tennis_ball": 0.0335}
STANDING = (
    "food_can", "large_dice", "plastic_bottle", "red_bull_can", "rubiks_cube", "soda_can",
    "toy_duck",
)  # fmt: skip


def model(key):
    return build_object(CARDS[key], library().folders[f"objects/{key}"])


def test_every_card_has_a_builder_and_every_builder_a_card():
    assert len(CARDS) == 24
    assert set(OBJECTS) == {card.asset.builder for card in CARDS.values()}
    names = [m.name for key in CARDS for m in model(key).materials()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("key", CARDS)
def test_size_and_place(key):
    made, card = model(key), CARDS[key]
    np.testing.assert_allclose(made.size, card.asset.size_m, atol=1e-6)
    hull = made.hull.vertices.astype(float)
    np.testing.assert_allclose(np.ptp(hull, axis=0), card.asset.size_m, atol=1e-6)
    # It stands on the bottom of its box.
    assert hull[:, 2].min() == pytest.approx(
        made.box_center[2] - card.asset.size_m[2] / 2, abs=1e-6
    )
    np.testing.assert_allclose((hull.min(0) + hull.max(0)) / 2, made.box_center, atol=1e-6)


@pytest.mark.parametrize("key", CARDS)
def test_a_thing_that_is_long_lies_along_x_or_stands(key):
    x, y, z = model(key).size
    assert x >= y - 1e-6
    assert max(x, z) >= y - 1e-6


@pytest.mark.parametrize("key", CARDS)
def test_bullet_gets_the_inertia_of_the_hull(key):
    made, card = model(key), CARDS[key]
    volume, centre, second = moments(made.hull)
    size = max(made.size)
    np.testing.assert_allclose(centre, 0, atol=1e-6 * size)
    body = Body(
        name=key, role="actor", motion="dynamic", instance=1, mass=card.physics.mass,
        collision=(made.collision(exact_balls=False),), visuals=made.visuals(),
    )  # fmt: skip
    inertia = principal_inertia(body, made.meshes())
    xx, yy, zz = np.diag(second) / volume * card.physics.mass
    np.testing.assert_allclose(inertia, (yy + zz, xx + zz, xx + yy), rtol=1e-4)
    # A thing of about this density: neither air nor lead.
    assert 60 < card.physics.mass / volume < 1100


@pytest.mark.parametrize("key", CARDS)
def test_the_hull_is_small_closed_and_close(key):
    made = model(key)
    rolls = "rolling" in CARDS[key].tags
    assert len(made.hull.vertices) <= (ROLLING_HULL_VERTICES if rolls else HULL_VERTICES)
    edges = np.concatenate([made.hull.triangles[:, [k, (k + 1) % 3]] for k in range(3)]).tolist()
    assert {tuple(e) for e in edges} == {(b, a) for a, b in edges}
    assert made.departure < (0.005 if rolls else 0.0095) * max(made.size)
    # The parts together are closed enough to have the volume of a thing that fills its hull.
    inside = sum(
        float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)
        for a, b, c in (
            (p.mesh.vertices.astype(float)[p.mesh.triangles[:, k]] for k in range(3))
            for p in made.parts
        )
    )
    # The banana's hull fills its bend; a cap and a label lie over what they are on.
    assert (0.55 if key == "banana" else 0.72) < inside / moments(made.hull)[0] < 1.2


@pytest.mark.parametrize("key", STANDING)
def test_what_stands_has_its_centre_of_mass_over_its_foot(key):
    hull = model(key).hull.vertices.astype(float)
    foot = hull[hull[:, 2] < hull[:, 2].min() + 3e-4, :2]
    angle = np.sort(np.arctan2(foot[:, 1], foot[:, 0]))
    gaps = np.diff(np.concatenate([angle, angle[:1] + 2 * math.pi]))
    assert len(foot) >= 3
    assert gaps.max() < math.pi  # the origin lies inside


@pytest.mark.parametrize("key", CARDS)
def test_triangles_and_their_stand_ins(key):
    made = model(key)
    assert 500 < triangles_of(made) <= 6000
    main = max(made.parts, key=lambda p: len(p.mesh.triangles))
    assert main.coarser
    rng = np.random.default_rng(0)
    places = main.mesh.vertices[rng.choice(len(main.mesh.vertices), 40)].astype(float)
    last = math.inf
    for mesh, off in main.coarser:
        corners = mesh.vertices.astype(float)[mesh.triangles]
        count = len(corners)
        for place in places:
            near = trimesh.triangles.closest_point(corners, np.tile(place, (count, 1)))
            assert np.linalg.norm(near - place, axis=1).min() <= off + 1e-7
        assert off < last
        last = off


@pytest.mark.parametrize("key", CARDS)
def test_looks_bake(key):
    for material in model(key).materials():
        assert material.opacity == 1  # labels show actors as solid
        picture = bake(material.texture, 64)
        assert picture.std() > 0.3


@pytest.mark.parametrize("key", BALLS)
def test_balls_roll_without_facets(key):
    made = model(key)
    assert made.ball == pytest.approx(BALLS[key], rel=1e-6)
    assert isinstance(made.collision().shape, Sphere)
    assert isinstance(made.collision(exact_balls=False).shape, Mesh)


def test_other_things_are_no_balls():
    assert [key for key in CARDS if model(key).ball is not None] == sorted(BALLS)


def test_opposite_faces_of_a_die_have_seven():
    assert sorted(DICE_FACES) == [1, 2, 3, 4, 5, 6]
    assert all(DICE_FACES[k] + DICE_FACES[k + 1] == 7 for k in (0, 2, 4))
    assert all(len(PIPS[n]) == n for n in DICE_FACES)


def test_the_pips_of_the_texture_are_those_of_the_table():
    from scipy.ndimage import label

    (look,) = model("large_dice").materials()
    picture = bake(look.texture, 512).astype(int).sum(-1)
    for face, count in enumerate(DICE_FACES):
        column, row = face % 3, face // 3
        cell = picture[row * 256 : (row + 1) * 256, column * 512 // 3 : (column + 1) * 512 // 3]
        assert label(cell < 330)[1] == count


def test_a_cube_is_scrambled_and_complete():
    every = [color for face in CUBE_FACES for color in face]
    assert sorted(every) == sorted(list(range(6)) * 9)
    assert sorted(face[4] for face in CUBE_FACES) == list(range(6))
    assert all(len(set(face)) >= 3 for face in CUBE_FACES)


def test_the_seam_lies_on_the_ball_and_halves_it():
    curve = seam_curve(2000)
    np.testing.assert_allclose(np.linalg.norm(curve, axis=1), 1, atol=1e-12)
    # A quarter turn about z and a flip takes it onto itself: the two panels are alike.
    turned = np.stack([-curve[:, 1], curve[:, 0], -curve[:, 2]], axis=1)
    gap = np.linalg.norm(turned[::50, None] - curve[None], axis=-1).min(axis=1)
    assert gap.max() < 5e-3


def test_an_unknown_builder_names_the_known_ones():
    card = CARDS["apple"]
    card = card.model_copy(update={"asset": card.asset.model_copy(update={"builder": "durian"})})
    with pytest.raises(UserError, match=r"durian.*choose from apple"):
        build_object(card, library().folders["objects/apple"])


# --- ramps --------------------------------------------------------------------------------------


def test_ramps_have_the_looks_of_their_cards():
    cards = library().materials
    assert set(cards) == set(RAMP_MATERIALS)
    pale = {}
    for key, card in cards.items():
        look = ramp_material(card)
        assert look.name == key
        assert look.uv_m is not None
        pale[key] = bake(look.texture, 128).mean()
    assert pale["polished_white_marble"] > pale["light_wood"] > pale["dark_wood"]
    assert pale["polished_white_marble"] > pale["rough_grey_concrete"] > pale["dark_wood"]

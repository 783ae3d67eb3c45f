"""Shadow masks of single bodies, and the direction in which shadows fall, against rays."""

import math
from dataclasses import replace

import numpy as np
import pytest
from exactness import View

from wmeval import conventions
from wmeval.datasets.rollout import read, write_hdf5, write_zarr
from wmeval.envs import make_environment
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.errors import UserError
from wmeval.layers import LAYERS, RENDERED
from wmeval.records import LightLog
from wmeval.sim.drivers.sun import light_direction
from wmeval.sim.render import shadows

pytestmark = pytest.mark.gl
SUN = "WMEval/SunRisesAndSets-v0"
SIZE = (400, 220)
ROUND = ("dining_table", "toaster", "mug", "bowl", "lamp")
"""Things whose shadow lies as far to the left as to the right of where they stand."""


@pytest.fixture(scope="module")
def env():
    made = make_environment(SUN)
    yield made
    made.close()


def seen_by(
    env, view, *, layers=("depth", "ids", "normals", "shadow_masks", "shadow_ids"), **light
):
    env.reset(seed=0, options={"light": "fixed", **light})
    return View(env, layers, view=view, size=SIZE)


def neighbours(mask):
    """Where a pixel or one beside it is set, and where one is not."""
    padded = np.pad(mask, 1, mode="edge")
    h, w = mask.shape
    around = np.stack([padded[i : i + h, j : j + w] for i in range(3) for j in range(3)])
    return around.any(axis=0), ~around.all(axis=0)


@pytest.mark.parametrize(
    ("view", "azimuth", "elevation"),
    [
        ("orbit", 20.0, 36.0),
        pytest.param("first", 60.0, 18.0, marks=pytest.mark.accept),
        pytest.param("top", 250.0, 30.0, marks=pytest.mark.accept),
        pytest.param("static", -45.0, 62.0, marks=pytest.mark.accept),
    ],
)
def test_a_mask_is_what_the_body_alone_keeps_from_the_sun(env, view, azimuth, elevation):
    seen = seen_by(env, view, azimuth_deg=azimuth, elevation_deg=elevation)
    to_sun = -seen.state.sun_direction
    casters = seen.surfaces("casters")
    everything = list(casters.pieces)
    rng = np.random.default_rng(3)
    compared = 0
    for name in ("dining_table", "chair_1", "chair_3", "toaster", "mug", "bowl", "lamp", "shrub_0"):
        body = seen.scene.index(name)
        mask = shadows.mask_of(seen.layers["shadow_masks"], seen.scene.bodies[body].instance)
        near, far = neighbours(mask)
        # As many from inside as from a wide rim outside of it, where mistakes would be.
        rim = mask.copy()
        for _ in range(12):
            rim = neighbours(rim)[0]
        at = np.concatenate([
            seen_at[rng.permutation(len(seen_at))[:60]]
            for seen_at in (np.argwhere(mask), np.argwhere(rim & ~mask))
        ])  # fmt: skip
        pixels = at[:, ::-1] + 0.5
        hits = seen.see(pixels)
        origins, rays = seen.rays(pixels)
        there = np.isfinite(hits.t)
        points = origins + rays * np.where(there, hits.t, 0.0)[:, None]
        same = seen.instance[hits.body] == seen.layers["ids"][at[:, 0], at[:, 1]]
        sunward = hits.normal @ to_sun
        sure = there & same & (sunward > 0.05)
        casters.pieces = [p for p in everything if p.body == body]
        toward = np.broadcast_to(to_sun, points.shape)
        dark = casters.cast(points, toward, least=1e-3, backs=True).body >= 0
        got = mask[at[:, 0], at[:, 1]]
        edge = np.where(dark, near[at[:, 0], at[:, 1]], far[at[:, 0], at[:, 1]])
        wrong = sure & (got != dark) & ~edge
        assert wrong.sum() <= 0.01 * sure.sum(), (name, at[wrong], dark[wrong])
        # And not by grace of the edges alone.
        assert ((got == dark) | ~sure).mean() > 0.9, name
        # What is turned away from the sun is never in a cast shadow.
        away = there & same & (sunward < -0.05)
        assert not (got & away & ~far[at[:, 0], at[:, 1]]).any(), name
        compared += int(sure.sum())
    assert compared > 300


def test_shadows_over_each_other_lose_no_mask(env):
    """The bowl alone would darken the deck, where the table's shadow lies: both masks say so."""
    seen = seen_by(env, "orbit", azimuth_deg=20.0, elevation_deg=36.0)
    masks, ids = seen.layers["shadow_masks"], seen.layers["shadow_ids"]
    bit = {b.name: b.instance for b in seen.scene.bodies}
    deck = seen.layers["ids"] == bit["deck"]
    bowl = shadows.mask_of(masks, bit["bowl"]) & deck
    assert bowl.sum() > 50
    assert shadows.mask_of(masks, bit["dining_table"])[bowl].mean() > 0.9
    # The other layer names but one of the two.
    assert np.isin(ids[bowl], (bit["bowl"], bit["dining_table"])).mean() > 0.85
    assert (ids[bowl] == bit["bowl"]).mean() > 0.8


def test_all_masks_together_are_the_shadow(env):
    seen = seen_by(env, "top", azimuth_deg=20.0, elevation_deg=36.0)
    deck = seen.layers["ids"] == seen.scene.bodies[seen.scene.index("deck")].instance
    dark = seen.layers["shadow_masks"] != 0
    named = seen.layers["shadow_ids"] != 0
    edge = np.logical_and(*neighbours(named)) | np.logical_and(*neighbours(dark))
    assert (dark == named)[deck & ~edge].mean() > 0.999
    assert dark[deck].mean() > 0.02


def test_no_masks_at_night(env):
    for elevation in (-30.0, -1.0, 0.0):
        seen = seen_by(env, "orbit", elevation_deg=elevation)
        assert not seen.layers["shadow_masks"].any()
        azimuth = shadows.image_azimuth(seen.layers["depth"], seen.state)
        assert np.isnan(azimuth).all()


def test_a_mask_needs_an_instance_with_a_bit(env):
    env.reset(seed=0)
    bits = shadows.mask_bits(env.scene)
    assert bits["lawn"] == 0
    assert len(set(bits.values())) == len(bits) == len(env.scene.bodies)
    with pytest.raises(UserError, match="instance 65 has no bit"):
        shadows.mask_of(np.zeros((2, 2), np.uint64), 65)
    full = np.full((1, 1), 2**64 - 1, np.uint64)
    assert all(shadows.mask_of(full, i)[0, 0] for i in (1, 33, 64))
    assert shadows.mask_of(np.full((1, 1), 2**63, np.uint64), 64)[0, 0]


@pytest.mark.parametrize("view", ["orbit", "first", "static", "top"])
def test_the_azimuth_is_that_of_a_poles_shadow_in_the_picture(env, view):
    seen = seen_by(env, view, azimuth_deg=33.0, elevation_deg=40.0)
    layer = shadows.image_azimuth(seen.layers["depth"], seen.state)
    rng = np.random.default_rng(5)
    at = np.argwhere(seen.layers["normals"][..., 2] > 0.99)
    at = at[rng.permutation(len(at))[:200]]
    pixels = at[:, ::-1] + 0.5
    depth = seen.layers["depth"][at[:, 0], at[:, 1]].astype(float)
    foot = conventions.unproject(pixels, depth, seen.K, seen.state.T_world_camera)
    # A vertical pole's tip throws its shadow where the ray through it meets the level again.
    pole = 1e-4
    d = seen.state.sun_direction
    tip = foot + [0, 0, pole] + d * (pole / -d[2])
    assert np.allclose(tip[:, 2], foot[:, 2], atol=1e-9)
    a, _ = conventions.project(foot, seen.K, seen.state.T_world_camera)
    b, _ = conventions.project(tip, seen.K, seen.state.T_world_camera)
    expected = np.arctan2(b[:, 1] - a[:, 1], b[:, 0] - a[:, 0])
    difference = layer[at[:, 0], at[:, 1]] - expected
    assert np.abs(np.angle(np.exp(1j * difference))).max() < 1e-3
    assert np.isnan(layer[np.isinf(seen.layers["depth"])]).all()


def test_world_azimuths_of_a_turning_light():
    turns = np.array([20.0, 90.0, 160.0, 200.0, 300.0])
    direction = np.array([light_direction(t, -30.0) for t in turns])
    lights = LightLog(direction, np.ones((5, 3)), np.ones((5, 3, 3)))
    got = shadows.shadow_azimuths(lights)
    for turn, azimuth in zip(turns[:3], got[:3], strict=True):
        expected = math.atan2(math.cos(math.radians(30)) * math.cos(math.radians(turn)), -0.5)
        assert azimuth == pytest.approx(expected, abs=1e-12)
    assert np.isnan(got[3:]).all()
    assert np.isnan(shadows.ground_azimuth(np.array([0.0, 0.0, -1.0])))


@pytest.mark.parametrize(("azimuth", "elevation"), [(20.0, 36.0), (130.0, 20.0)])
def test_true_masks_agree_on_one_sun(env, azimuth, elevation):
    """On the level that they fall on, shadows lie from each thing's foot in the true direction.

    The disagreement between objects (the paper's MOSD, here with exact masks and positions) stays
    below 2.5 degrees.
    """
    seen = seen_by(env, "top", azimuth_deg=azimuth, elevation_deg=elevation)
    layers = seen.layers
    depth = np.where(np.isfinite(layers["depth"]), layers["depth"], 1.0)
    grid = conventions.pixel_grid(*SIZE)
    points = conventions.unproject(grid, depth, seen.K, seen.state.T_world_camera)
    true = float(shadows.ground_azimuth(seen.state.sun_direction))
    # The sun stands clockwise from +y, the shadow opposite to it.
    expected = math.radians(-90.0 - azimuth)
    assert math.remainder(true - expected, math.tau) == pytest.approx(0, abs=1e-9)
    errors = []
    for name in ROUND:
        body = seen.scene.bodies[seen.scene.index(name)]
        mask = shadows.mask_of(layers["shadow_masks"], body.instance)
        mask &= (layers["normals"][..., 2] > 0.9) & (layers["ids"] != body.instance)
        assert mask.sum() > 5, name
        # Pixels of a level plane cover areas that grow with the third power of the depth.
        weight = depth[mask].astype(float) ** 3
        middle = (points[mask][:, :2] * weight[:, None]).sum(axis=0) / weight.sum()
        way = middle - np.array(body.position[:2])
        errors.append(math.remainder(math.atan2(way[1], way[0]) - true, math.tau))
    degrees = np.degrees(errors)
    assert np.abs(degrees).max() < 5.0, dict(zip(ROUND, degrees, strict=True))
    assert np.median(np.abs(degrees)) < 1.5
    resultant = abs(np.exp(1j * np.array(errors)).mean())
    assert math.degrees(math.sqrt(-2 * math.log(resultant))) < 2.5


def test_masks_and_azimuths_come_back_from_files(env, tmp_path):
    plan = load_plan(SUN, "day").model_copy(update={"duration": "1/15"})
    layers = ("rgb", "depth", "shadow_masks")
    rollout = record(env, plan=plan, seed=0, layers=layers, width=64, height=36)
    drawn = np.asarray(rollout.frames.layers["shadow_masks"])
    assert drawn.dtype == np.uint64
    assert drawn.any()
    assert "shadow_masks" in RENDERED
    assert rollout.metadata["shadow_bits"] == shadows.mask_bits(env.scene)
    paths = (
        write_hdf5(rollout, tmp_path / "a.h5"),
        write_zarr(rollout, tmp_path / "a.zarr"),
        write_hdf5(read(tmp_path / "a.h5"), tmp_path / "b.h5", layers=("depth", "shadow_azimuth")),
    )
    for path in paths:
        back = read(path)
        if not str(path).endswith("b.h5"):
            assert np.array_equal(back.frames.layers["shadow_masks"][:], drawn)
        azimuth = back.frames.layers["shadow_azimuth"]
        assert azimuth.shape == drawn.shape
        assert azimuth.dtype == LAYERS["shadow_azimuth"].dtype
        for i in range(len(drawn)):
            state = View(env, ("depth",), size=(64, 36), log=back.log,
                         row=int(back.frames.state_index[i])).state  # fmt: skip
            depth = np.asarray(back.frames.layers["depth"][i])
            assert np.array_equal(azimuth[i], shadows.image_azimuth(depth, state), equal_nan=True)
    # The sun has turned, and with it the direction.
    turned = azimuth[len(drawn) - 1] - azimuth[0]
    assert np.nanmax(np.abs(turned)) > 0.01


def test_masks_do_not_depend_on_what_else_is_drawn(env):
    env.reset(seed=0, options={"turn_deg": 40.0})
    alone = env.draw(("shadow_masks",), width=160, height=88)["shadow_masks"]
    names = ("rgb", "glass_ids", "shadow_ids", "shadow_masks", "ids", "depth")
    together = env.draw(names, width=160, height=88)
    assert np.array_equal(alone, together["shadow_masks"])
    again = env.draw(("shadow_ids", "rgb"), width=160, height=88)
    assert np.array_equal(again["shadow_ids"], together["shadow_ids"])
    assert np.array_equal(again["rgb"], together["rgb"])


def test_an_absent_body_casts_no_shadow(env):
    env.reset(seed=0, options={"light": "fixed"})
    seen = View(env, ("shadow_masks",), size=SIZE)
    lamp = env.scene.index("lamp")
    active = seen.state.active.copy()
    active[lamp] = False
    without = replace(seen.state, active=active)
    spec = env.world_spec
    from wmeval.sim.render import make_renderer

    renderer = make_renderer("raster", spec.scene, spec.meshes)
    masks = renderer.draw(without, *SIZE, ("shadow_masks",))["shadow_masks"]
    renderer.close()
    instance = env.scene.bodies[lamp].instance
    assert shadows.mask_of(seen.layers["shadow_masks"], instance).any()
    assert not shadows.mask_of(masks, instance).any()

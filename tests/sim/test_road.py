"""The endless road: a pure function of place and seed, that begins at an edge."""

import math
from fractions import Fraction

import numpy as np
import pytest

from wmeval.clock import SceneClock
from wmeval.envs.racing_car import BEGIN_M, BEHIND, SLOTS, TILE_M, compose
from wmeval.errors import UserError
from wmeval.sim.drivers import make_driver
from wmeval.sim.drivers.road import REST, Road, first_tile, tile_poses
from wmeval.sim.protocol import DriverSpec, Probe, WorldSpec
from wmeval.sim.world import LocalWorld

STILL = (0.0, 0.0, 0.0)
TILES = SLOTS - REST


def road_world(clock, y, speed=0.0, seed=5):
    parts = compose(seed)
    scene = parts.scene.with_bodies(
        car={"position": (1.8, y, 0.5), "linear_velocity": (0.0, speed, 0.0)}
    )
    world = LocalWorld(
        WorldSpec(scene, parts.meshes, parts.drivers, clock, parts.rules, config=parts.config)
    )
    world.reset()
    return world


@pytest.fixture(scope="module")
def clock():
    return SceneClock(Fraction(1, 240), Fraction(1, 60))


def shown(log, row=-1):
    """Tile index of every slot that is there, by where its road stands; poses of all its parts."""
    state = log.state
    tiles = {}
    for slot in range(SLOTS):
        names = [f"road_{slot:02d}", f"rails_{slot:02d}"]
        names += [f"tree_{k}_{slot:02d}" for k in range(6)]
        bodies = [state.bodies.index(n) for n in names]
        on = state.active[row, bodies]
        assert on.all() or not on.any()
        if on.any():
            tile = (state.position[row, bodies[0], 1] - BEGIN_M) / TILE_M
            assert tile == round(tile)
            assert round(tile) % SLOTS == slot
            parts = np.concatenate(
                [state.position[row, bodies], state.quaternion_wxyz[row, bodies]], axis=1
            )
            tiles[round(tile)] = parts
    return tiles


def test_window_is_a_function_of_the_place_alone():
    assert first_tile(0.0, -10.0, 40.0, 5) == 0
    assert first_tile(229.9, -10.0, 40.0, 5) == 0
    assert first_tile(230.0, -10.0, 40.0, 5) == 1
    assert first_tile(-1e3, -10.0, 40.0, 5) == 0


@pytest.mark.parametrize("y", [0.0, 189.9, 231.0, 1234.5, 15_000.0])
def test_tiles_lie_around_the_car_without_gaps(clock, y):
    tiles = shown(road_world(clock, y).log())
    own = math.floor((y - BEGIN_M) / TILE_M)
    first = max(own - BEHIND, 0)
    assert sorted(tiles) == list(range(first, first + TILES))


def test_driving_recycles_tiles_and_a_revisited_stretch_looks_the_same(clock):
    world = road_world(clock, 400.0, 33.0)
    seen = {}
    for _ in range(20):
        log = world.advance((0.0, 1.0, 0.0), world.substep + 120, Probe())
        for tile, parts in shown(log).items():
            if tile in seen:
                np.testing.assert_array_equal(seen[tile], parts)
            seen[tile] = parts
    assert len(seen) >= TILES + 7
    # Put down there directly, it is the same.
    car = log.state.bodies.index("car")
    later = shown(road_world(clock, float(log.state.position[-1, car, 1])).log())
    assert set(later) <= set(seen)
    for tile, parts in later.items():
        np.testing.assert_array_equal(seen[tile], parts)


def test_how_often_one_looks_changes_nothing(clock):
    often, seldom = road_world(clock, 400.0, 33.0), road_world(clock, 400.0, 33.0)
    for k in range(1, 61):
        rows = often.advance((0.0, 1.0, 0.0), 16 * k, Probe("substeps"))
    seldom.run((0.0, 1.0, 0.0), 960)
    a, b = rows.state, seldom.log().state
    np.testing.assert_array_equal(a.position[-1], b.position[-1])
    np.testing.assert_array_equal(a.quaternion_wxyz[-1], b.quaternion_wxyz[-1])
    np.testing.assert_array_equal(a.active[-1], b.active[-1])


def test_a_slot_rests_before_it_comes_again(clock):
    """Between two looks up to REST tiles of driving apart, whatever is there twice stood still."""
    world = road_world(clock, 600.0, 33.0)
    rows = [world.log().state]
    rows += [world.advance((0.0, 1.0, 0.0), 48 * k, Probe()).state for k in range(1, 41)]
    pool = [i for i, n in enumerate(rows[0].bodies) if n.startswith(("road_", "rails_", "tree_"))]
    car = rows[0].bodies.index("car")
    changes = 0
    for i, a in enumerate(rows):
        for b in rows[i + 1 :]:
            if b.position[-1, car, 1] - a.position[-1, car, 1] > REST * TILE_M:
                break
            both = a.active[-1, pool] & b.active[-1, pool]
            changes += int((a.active[-1, pool] != b.active[-1, pool]).sum())
            np.testing.assert_array_equal(a.position[-1, pool][both], b.position[-1, pool][both])
    assert changes > 100


def test_trees_follow_seed_and_tile(clock):
    params = Road.Params.model_validate(compose(5).drivers[1].params)
    other = params.model_copy(update={"seed": 6})
    assert tile_poses(params, 3) == tile_poses(params, 3)
    here, next_tile = np.array([p for p, _ in tile_poses(params, 3)]), tile_poses(params, 4)
    moved = np.array([p for p, _ in next_tile]) - [0, TILE_M, 0]
    there = np.array([p for p, _ in tile_poses(other, 3)])
    trees = slice(2, None)
    assert (here[trees, 0] != moved[trees, 0]).all()
    assert (here[trees, 0] != there[trees, 0]).all()
    # Road and rails are alike everywhere, and trees keep to their rows.
    np.testing.assert_allclose(here[:2], moved[:2])
    assert np.abs(np.abs(here[trees, 0]) - 17.5).max() < 0.36
    assert (np.sign(here[trees, 0]) == [-1, 1, -1, 1, -1, 1]).all()


def test_behind_the_edge_there_is_nothing(clock):
    world = road_world(clock, 0.0)
    x = np.linspace(-200, 200, 41)
    for y, found in ((BEGIN_M - 0.01, 0), (BEGIN_M - 100.0, 0), (BEGIN_M + 0.01, 41)):
        origins = np.stack([x, np.full(41, y), np.full(41, 30.0)], axis=1)
        bodies, _ = world.raycast(origins, origins - [0, 0, 100.0])
        assert (bodies >= 0).sum() == found
    scene, log = world.spec.scene, world.log()
    for i, body in enumerate(scene.bodies):
        if log.state.active[-1, i] and body.role in ("tile", "guard_rail", "tree"):
            assert log.state.position[-1, i, 1] >= BEGIN_M


def test_far_road_is_as_level_as_the_near_one(clock):
    """Ten minutes at top speed: the wheels still stand on the same plane."""
    world = road_world(clock, 19_000.0, 30.0)
    log = world.advance((0.0, 0.3, 0.0), 480, Probe("substeps"))
    car = log.state.bodies.index("car")
    assert np.ptp(log.state.position[120:, car, 2]) < 2e-3
    assert np.ptp(log.state.position[:, car, 0]) < 1e-5


def test_wrong_pools_are_refused():
    part = {"names": ["a", "b", "c", "d"], "place": [0, 0, 0]}
    params = {"body": "car", "begin": 0.0, "length": 40.0, "behind": 0, "seed": 1}
    with pytest.raises(UserError, match="fewer slots than behind"):
        make_driver(DriverSpec(kind="road", params=params | {"tiles": [part], "behind": 2}))
    other = part | {"names": ["e", "f", "g"]}
    with pytest.raises(UserError, match="give all the same"):
        make_driver(DriverSpec(kind="road", params=params | {"tiles": [part, other]}))

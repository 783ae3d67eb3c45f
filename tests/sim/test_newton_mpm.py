"""Solids of particles: how they are filled, held and read, and how far off a pull is."""

import dataclasses

import numpy as np
import pytest
from engine_worlds import at_rate, engine_here, play
from physics_scenes import body, floor, world_spec

from wmeval.deformables import block_face
from wmeval.errors import UserError
from wmeval.scene import Block, Pin, Rope, Scene, Soft, Sphere
from wmeval.sim.engines.newton_mpm import (
    REACH,
    carried_weights,
    cell_size,
    check_scene,
    grips,
    lattice,
)
from wmeval.sim.protocol import DriverSpec

PULL = {"body": "high", "samples": [[0, 0, 0, 0, 0], [0.05, 0, 0, 0.002, 0], [9, 0, 0, 0.002, 0]]}
BLOCK = Block(size=(0.05, 0.05, 0.1), cells=(4, 4, 8))


def foam(**fields):
    return Soft(
        **{"name": "foam", "volume": BLOCK, "density": 13.2, "youngs_modulus": 86_410.0,
           "poisson_ratio": 0.23, "position": (0.0, 0.0, 1.0), **fields}
    )  # fmt: skip


def scene_of(*items, bodies=()):
    base = world_spec(*(bodies or (floor(),))).scene
    return Scene.model_validate({**base.model_dump(), "deformables": items})


def test_a_block_is_filled_evenly_with_its_whole_mass():
    item = foam()
    points, step = lattice(item, cell_size(scene_of(item), 0.0))
    assert points.shape == (8 * 8 * 16, 3)
    assert np.prod(step) * len(points) == pytest.approx(0.05 * 0.05 * 0.1)
    assert points.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    assert points.max(axis=0) + step / 2 == pytest.approx((0.025, 0.025, 0.05))
    assert cell_size(scene_of(item), 0.02) == 0.02


def test_vertices_go_exactly_where_an_affine_motion_takes_them():
    rng = np.random.default_rng(5)
    item = foam()
    points, step = lattice(item, 0.0125)
    corners = np.array([(x, y, z) for x in (-0.025, 0.025) for y in (-0.025, 0, 0.025)
                        for z in (-0.05, 0.01, 0.05)])  # fmt: skip
    weights = carried_weights(corners, points, float(step.mean()))
    turn, shift = rng.normal(size=(3, 3)), rng.normal(size=3)
    assert weights @ (points @ turn.T + shift) == pytest.approx(corners @ turn.T + shift)
    assert weights.sum(axis=1) == pytest.approx(1.0)


def test_grips_stand_in_two_layers_outside_of_a_face():
    points, step = lattice(foam(), 0.0125)
    held = np.array([(-0.025, y, z) for y in (-0.025, 0.025) for z in (-0.05, 0.05)])
    layers = grips(points, step, held, 0.0125)
    assert len(layers) == 2 * 8 * 16
    assert sorted(set(layers[:, 0].round(6))) == [-0.035, -0.02875]
    with pytest.raises(UserError, match="whole faces"):
        grips(points, step, held + np.array((0.01, 0.0, 0.0)), 0.0125)


def test_what_is_no_block_or_moves_by_itself_is_refused():
    rope = Rope(name="rope", points=((0, 0, 1), (0, 0, 2)), radius=0.01, density=1e3, stretch=1.0)
    with pytest.raises(UserError, match=r"rope 'rope': .* fills blocks alone"):
        check_scene(scene_of(rope))
    ball = body("ball", Sphere(radius=0.1), mass=1.0)
    with pytest.raises(UserError, match=r"no rigid bodies \('ball' is dynamic\)"):
        check_scene(scene_of(foam(), bodies=(ball,)))
    check_scene(scene_of(foam()))


@pytest.mark.accept
def test_a_pull_between_two_faces_is_shared_evenly():
    """Planes of a stretched block move in proportion to their height."""
    engine_here("newton")
    low = body("low", (), motion="kinematic", position=(0, 0, 0.95))
    high = body("high", (), motion="kinematic", position=(0, 0, 1.05))
    item = foam(pins=(Pin(vertices=block_face(BLOCK, "z-"), body="low"),
                      Pin(vertices=block_face(BLOCK, "z+"), body="high")))  # fmt: skip
    spec = world_spec(low, high, gravity=(0.0, 0.0, 0.0))
    spec = dataclasses.replace(
        spec,
        scene=Scene.model_validate({**spec.scene.model_dump(), "deformables": (item,)}),
        drivers=(DriverSpec(kind="imposed", params=PULL),),
    )
    spec = at_rate(spec, 900, "newton", solver="mpm")
    state = play(spec, 0.05).state
    moved = state.vertices["foam"][-1] - state.vertices["foam"][0]
    height = state.vertices["foam"][0][:, 2] - 0.95
    planes = np.unique(height.round(6))
    mean = np.array([moved[np.abs(height - z) < 1e-6, 2].mean() for z in planes])
    top = mean[-1]
    assert top == pytest.approx(2e-3, rel=1e-3)
    strain, start = np.polyfit(planes[2:-2], mean[2:-2], 1)
    assert np.abs(mean[2:-2] - start - strain * planes[2:-2]).max() < 0.02 * top
    # Between two planes that stand still and are pulled: the faces, within the method's reach.
    held = -start / strain, (top - start) / strain
    assert held == pytest.approx((0.0, 0.1), abs=REACH * 0.0125)
    # A closed block of the same places: it narrows by Poisson's ratio.
    side = state.vertices["foam"][-1][np.abs(height - 0.05) < 1e-6, 0]
    assert 1 - np.ptp(side) / 0.05 == pytest.approx(0.23 * strain, rel=0.3)
    assert play(spec, 0.05).state.sha256() == state.sha256()

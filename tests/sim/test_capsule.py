"""A capsule, and bodies that contacts do not turn."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from physics_scenes import body, floor, world_spec
from pydantic import ValidationError

from wmeval.assets.meshes import capsule, levels
from wmeval.records import WorldLog
from wmeval.scene import Capsule, Collision, Cylinder, Sphere
from wmeval.sim.engines.bullet_shapes import mass_properties
from wmeval.sim.protocol import EngineConfig, Probe
from wmeval.sim.world import LocalWorld

G = 9.81
FINE = EngineConfig(
    options={"contact_processing_threshold": 0.05, "contact_breaking_threshold": 0.05}
)


def run(spec, steps: int) -> WorldLog:
    world = LocalWorld(spec)
    log = WorldLog.concatenate(
        [world.reset(), world.advance((), steps, Probe("substeps", contacts=True))]
    )
    world.close()
    return log


def test_mass_properties_are_those_of_the_drawn_solid() -> None:
    import trimesh

    one = body("c", Capsule(radius=0.3, height=1.8), mass=70.0)
    volume, centre, inertia = mass_properties(one, {})
    assert volume == pytest.approx(math.pi * 0.09 * 1.2 + 4 / 3 * math.pi * 0.027)
    mesh = capsule(0.3, 1.8, 160)
    drawn = trimesh.Trimesh(mesh.vertices, mesh.triangles, process=True)
    drawn.density = 70.0 / float(drawn.volume)
    assert float(drawn.volume) == pytest.approx(volume, rel=2e-3)
    np.testing.assert_allclose(np.diag(inertia), np.diag(drawn.moment_inertia), rtol=4e-3)
    assert np.abs(centre).max() == 0


def test_coarse_capsules_depart_as_much_as_they_say() -> None:
    for mesh, departure in levels(Capsule(radius=0.5, height=2.0), {}):
        z = np.abs(mesh.vertices[:, 2])
        middle = mesh.vertices[mesh.triangles].mean(axis=1)
        axis = np.clip(middle[:, 2], -0.5, 0.5)
        depth = 0.5 - np.linalg.norm(middle - np.stack([0 * axis, 0 * axis, axis], axis=1), axis=1)
        assert z.max() == pytest.approx(1.0, abs=1e-6)
        assert depth.min() > -1e-6
        assert depth.max() < 2 * max(departure, 0.5 * (1 - math.cos(math.pi / 64)))


def test_a_capsule_without_room_for_its_ends_is_refused() -> None:
    with pytest.raises(ValidationError, match="make it higher"):
        Capsule(radius=0.5, height=1.0)


def test_a_fallen_capsule_rests_on_its_end_and_rolls_on_its_side() -> None:
    tall = body(
        "c", Capsule(radius=0.3, height=1.8), mass=70.0, position=(0.0, 0.0, 2.5), upright=True
    )
    log = run(dataclasses.replace(world_spec(floor(), tall), config=FINE), 600)
    assert log.state.position[-1, 1, 2] == pytest.approx(0.9, abs=1e-4)
    assert log.contacts.distance.min() > -1e-4


def test_an_upright_body_stops_at_a_wall_like_a_point() -> None:
    # Hit far below its centre: a free body would turn, an upright one loses all of its speed.
    figure = body("c", Capsule(radius=0.3, height=1.8), mass=70.0, position=(-2.0, 0.0, 0.9),
                  upright=True, linear_velocity=(4.0, 0.0, 0.0), friction=0.0)  # fmt: skip
    wall = body("w", Cylinder(radius=1.0, height=0.5), motion="static", position=(0, 0, 0.25))
    log = run(dataclasses.replace(world_spec(floor(), figure, wall), config=FINE), 480)
    state = log.state
    assert np.abs(state.quaternion_wxyz[:, 1] - [1, 0, 0, 0]).max() < 1e-9
    assert np.abs(state.linear_velocity[-1, 1]).max() < 1e-3
    hit = (log.contacts.body_a == 2) | (log.contacts.body_b == 2)
    away = np.where(log.contacts.body_a[hit] == 1, 1.0, -1.0)
    impulse = away[:, None] * log.contacts.normal[hit] * log.contacts.normal_impulse[hit, None]
    assert impulse[:, 0].sum() == pytest.approx(-70.0 * 4.0, rel=1e-3)


def test_drivers_turn_an_upright_body() -> None:
    figure = body("c", Capsule(radius=0.3, height=1.8), mass=70.0, position=(0.0, 0.0, 0.9),
                  upright=True, angular_velocity=(0.0, 0.0, 2.0))  # fmt: skip
    log = run(world_spec(floor(), figure), 240)
    w, _, _, z = log.state.quaternion_wxyz[-1, 1]
    assert 2 * math.atan2(z, w) == pytest.approx(2.0, abs=1e-6)


def test_capsules_take_part_in_compounds() -> None:
    two = (
        Collision(shape=Capsule(radius=0.2, height=1.0), position=(0.5, 0.0, 0.0)),
        Collision(shape=Sphere(radius=0.5), position=(-0.5, 0.0, 0.0)),
    )
    log = run(
        world_spec(floor(), body("c", two, mass=5.0, position=(0, 0, 0.7), upright=True)), 480
    )
    assert log.state.position[-1, 1, 2] == pytest.approx(0.5, abs=2e-3)

"""Bases of slope and nonsmooth contact: convex, apart at the start; impulses close momentum."""

from fractions import Fraction

import numpy as np
import pytest
from engine_worlds import engine_here
from scipy.spatial import ConvexHull

from wmeval.assets.gauge_cards import family
from wmeval.clock import SceneClock
from wmeval.conventions import quaternion_to_matrix
from wmeval.envs.gauge.build import build
from wmeval.envs.gauge.configurations import settings_of
from wmeval.envs.gauge.solver_rows import TUNED
from wmeval.scene import DYNAMIC, MOTIONS, Mesh
from wmeval.sim.protocol import EventRules, Probe, WorldSpec
from wmeval.sim.world import open_world

CASES = [
    (name, subtask, material)
    for name in ("slope_contact", "nonsmooth_contact")
    for subtask, one in family(name).subtasks.items()
    for material in one.frames
]


def hulls(built, *, moving):
    """Vertices (V, 3) and outward half-spaces (F, 4) of the meshes that move or stand, world."""
    out = []
    for body in built.scene.bodies:
        if (MOTIONS.index(body.motion) == DYNAMIC) != moving:
            continue
        turn = quaternion_to_matrix(np.array(body.quaternion_wxyz))
        for part in body.collision:
            if isinstance(part.shape, Mesh):
                mesh = built.meshes[part.shape.sha256]
                own = quaternion_to_matrix(np.array(part.quaternion_wxyz))
                local = mesh.vertices.astype(float) @ own.T + np.array(part.position)
                points = local @ turn.T + np.array(body.position)
                out.append((body.name, mesh, points, ConvexHull(points)))
    return out


def depth(points, hull):
    """How deep the deepest of some points lies in a hull [m]."""
    planes = hull.equations
    return float((-(points @ planes[:, :3].T + planes[:, 3]).max(axis=1)).max())


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_bases_are_convex_pieces_that_nothing_lies_in_at_the_start(case):
    built = build(family(case[0]), *case[1:])
    moving, standing = hulls(built, moving=True), hulls(built, moving=False)
    assert len(moving) == 1
    assert len(standing) == (1 if case[0] == "slope_contact" else 4 if case[1] == "1" else 2)
    for name, mesh, points, hull in [*moving, *standing]:
        # Every vertex is a corner of the hull: nothing of the mesh is hollow.
        off = points @ hull.equations[:, :3].T + hull.equations[:, 3]
        assert np.abs(off).min(axis=1).max() < 1e-7, name
        corners = points[mesh.triangles.astype(int)]
        volume = np.einsum(
            "ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])
        ).sum() / 6  # fmt: skip
        assert volume == pytest.approx(hull.volume, rel=1e-4), name
    (_, _, points, hull) = moving[0]
    for _, _, base, under in standing:
        # The tetrahedron's face lies on the slope, as far as seven digits of a card say.
        assert depth(points, under) < 1e-6
        assert depth(base, hull) < 1e-6


@pytest.mark.parametrize("engine", ["bullet", "physx"])
@pytest.mark.parametrize("case", [("slope_contact", "1"), ("nonsmooth_contact", "1")])
def test_impulses_of_contacts_make_the_momentum(engine, case):
    engine_here(engine)
    card = family(case[0])
    name = "tetrahedron" if case[0] == "slope_contact" else "pyramid"
    # PhysX tells no friction: without it normal impulses are all there is.
    built = build(card, case[1], "wood", changes={name: {"friction": 0.0}})
    hz = 1800
    settings = settings_of(card, engine, TUNED)
    clock = SceneClock(Fraction(1, hz), Fraction(1, 30))
    world = open_world(
        WorldSpec(built.scene, built.meshes, (), clock, EventRules(), engine, settings.config)
    )
    first = world.reset()
    log = world.advance((), round(0.25 * hz), Probe(states="substeps", contacts=True))
    world.close()
    i = built.scene.index(name)
    mass = built.scene.bodies[i].mass
    contacts = log.contacts
    sign = (contacts.body_a == i).astype(float) - (contacts.body_b == i)
    given = (sign * contacts.normal_impulse)[:, None] * contacts.normal
    total = given.sum(axis=0) + np.array((0.0, 0.0, -mass * 9.81 * 0.25))
    change = mass * (log.state.linear_velocity[-1, i] - first.state.linear_velocity[0, i])
    assert len(contacts.substep) > 10
    scale = mass * 9.81 * 0.25
    assert np.abs(total - change).max() < 0.01 * scale
    # And each substep's own: momentum is never made between contacts.
    speeds = np.concatenate([first.state.linear_velocity[:, i], log.state.linear_velocity[:, i]])
    each = np.zeros((round(0.25 * hz), 3))
    np.add.at(each, contacts.substep, given)
    each[:, 2] -= mass * 9.81 / hz
    assert np.abs(each - mass * np.diff(speeds, axis=0)).max() < 0.02 * scale

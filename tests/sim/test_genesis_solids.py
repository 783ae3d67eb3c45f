"""Solids of Genesis: forces on what holds them, grips, stretch, a body that hangs on one."""

import dataclasses

import numpy as np
import pytest
from engine_worlds import at_rate, engine_here, play, with_deformables
from physics_scenes import body, floor, world_spec

from wmeval.assets.gauge_cards import Drive
from wmeval.deformables import block_face, rest_shape
from wmeval.errors import UserError
from wmeval.scene import Block, Box, Pin, Soft, Tetrahedra
from wmeval.sim.engines import genesis_fem
from wmeval.sim.engines.genesis_bending import Bent
from wmeval.sim.engines.genesis_fem import _Solid, element_forces, vertex_masses
from wmeval.sim.engines.genesis_mpm import Points, carriers, lattice, located, wave_speed
from wmeval.sim.engines.genesis_pulls import Pulled
from wmeval.sim.engines.pins import pinned_vertices
from wmeval.sim.protocol import DriverSpec

BLOCK = Block(size=(0.05, 0.05, 0.1), cells=(2, 2, 4))
YOUNG, NU, DENSITY = 86_410.0, 0.23, 13.2


def foam(**fields):
    return Soft(
        **{
            "name": "foam",
            "volume": BLOCK,
            "density": DENSITY,
            "youngs_modulus": YOUNG,
            "poisson_ratio": NU,
            "position": (0.0, 0.0, 1.0),
            **fields,
        }
    )


def stretched(rate, **options):
    """Foam of which one end stays and the other is led 5 mm away in 0.1 s, without gravity."""
    grip = body("grip", (), motion="kinematic", position=(0, 0, 1.05))
    parameters = {"offset": (0, 0, 0.005), "duration": 0.1}
    pull = Drive(body="grip", profile="move", parameters=parameters).model_dump(mode="json")
    low, high = (Pin(vertices=block_face(BLOCK, "z-")),
                 Pin(vertices=block_face(BLOCK, "z+"), body="grip"))  # fmt: skip
    world = with_deformables(world_spec(grip, gravity=(0, 0, 0)), foam(pins=(low, high)))
    spec = at_rate(world, rate, "genesis", **options)
    driver = DriverSpec(kind="imposed", params={"body": "grip", "drive": pull})
    return dataclasses.replace(spec, drivers=(driver,))


# --- without the library --------------------------------------------------------------------------


def test_elements_under_uniform_strain_pull_with_the_closed_form_s_stress():
    """Stretched and narrowed by Poisson's ratio, and turned: E strain area at the ends, else 0."""
    item, strain = foam(), 0.01
    shape = rest_shape(item, {})
    middle = shape.vertices.mean(axis=0)
    out = (shape.vertices - middle) * (1 - NU * strain, 1 - NU * strain, 1 + strain)
    turn = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0], [-0.8, 0.0, 0.6]])
    forces = element_forces(item, shape.vertices, out @ turn.T + middle, shape.tetrahedra)
    back = forces @ turn
    high, low = (list(block_face(BLOCK, side)) for side in ("z+", "z-"))
    assert back[high].sum(axis=0) == pytest.approx((0, 0, -YOUNG * strain * 0.0025), abs=1e-9)
    assert back[low].sum(axis=0) == pytest.approx((0, 0, YOUNG * strain * 0.0025), abs=1e-9)
    inner = [v for v in range(len(back)) if v not in {*high, *low}]
    assert np.abs(back[inner]).max() < 1e-9


def test_forces_and_moments_of_elements_are_none_in_all_and_masses_are_the_solid_s():
    item, shape = foam(), rest_shape(foam(), {})
    rng = np.random.Generator(np.random.PCG64(5))
    now = shape.vertices + rng.normal(0, 1e-3, shape.vertices.shape)
    forces = element_forces(item, shape.vertices, now, shape.tetrahedra)
    assert np.abs(forces).max() > 1e-2
    assert np.abs(forces.sum(axis=0)).max() < 1e-9
    assert np.abs(np.cross(now, forces).sum(axis=0)).max() < 1e-9
    mass = vertex_masses(item, shape.vertices, shape.tetrahedra)
    assert mass.sum() == pytest.approx(DENSITY * 0.05 * 0.05 * 0.1)


def test_particles_fill_a_solid_and_carry_its_vertices_with_every_affine_motion():
    turned = foam(quaternion_wxyz=(0.8, 0.0, 0.6, 0.0))
    shape = rest_shape(turned, {})
    points, volume = lattice(turned, shape, 0.01)
    assert points.shape == (250, 3)
    assert volume * len(points) == pytest.approx(0.05 * 0.05 * 0.1)
    inside, weights = located(points, shape)
    assert (inside >= 0).all()
    corners = shape.vertices[shape.tetrahedra[inside]]
    assert np.einsum("nk,nkj->nj", weights, corners) == pytest.approx(points, abs=1e-12)
    chosen, shares = carriers(shape.vertices, points)
    bent = np.array([[1.1, 0.2, 0.0], [0.0, 0.9, -0.3], [0.1, 0.0, 1.2]])
    moved = points @ bent.T + (1, 2, 3)
    carried = np.einsum("vk,vkj->vj", shares, moved[chosen])
    assert carried == pytest.approx(shape.vertices @ bent.T + (1, 2, 3), abs=1e-12)
    rod = Tetrahedra(vertices=((0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)),
                     elements=((0, 1, 2, 3),))  # fmt: skip
    item = foam(volume=rod)
    points, volume = lattice(item, rest_shape(item, {}), 0.01)
    assert volume * len(points) == pytest.approx(0.1**3 / 6)
    assert len(points) == pytest.approx(1000 / 6, rel=0.2)


def test_particles_are_refused_where_waves_are_too_fast_and_where_nobody_leads():
    stiff = foam(youngs_modulus=1e12)
    scene = with_deformables(world_spec(body("load", Box(half_extents=(0.1,) * 3))), stiff).scene
    numbers = {"grid_density": 64.0, "particle_spacing": 0.0, "courant": 0.8, "substeps": 1.0}
    shape = rest_shape(stiff, {})
    with pytest.raises(UserError, match="take a smaller dt or volume fem"):
        Points(None, scene, [Bent(stiff, shape, ())], numbers, 1 / 900, set())
    held = foam(pins=(Pin(vertices=(0, 1, 3, 4), body="load"),))
    pins = tuple(pinned_vertices(scene, held, shape.vertices))
    with pytest.raises(UserError, match="pinned to the dynamic body 'load'"):
        Points(None, scene, [Bent(held, shape, pins)], numbers, 1 / 900, {0})
    soft = foam()
    made = Points(None, scene, [Bent(soft, shape, ())], numbers, 1 / 900, set())
    assert wave_speed(soft) == pytest.approx(87.0, abs=0.5)
    assert made.substeps == 8  # 87 m/s by 64 cells a metre and 900 steps a second, over 0.8


@pytest.mark.parametrize("cells", [(4, 4, 8), (6, 6, 12)])
def test_the_particles_next_to_a_pinned_face_are_held_however_fine_its_cells(cells):
    """Those 10 mm apart lie 5 mm inside: 0.6 of a vertex with cells of 12.5 mm, 0.4 with 8.3."""
    fine = Block(size=BLOCK.size, cells=cells)
    pins = tuple(Pin(vertices=block_face(fine, side)) for side in ("z-", "z+"))
    item = foam(volume=fine, pins=pins)
    scene, shape = with_deformables(world_spec(floor()), item).scene, rest_shape(item, {})
    bent = Bent(item, shape, tuple(pinned_vertices(scene, item, shape.vertices)))
    numbers = {"grid_density": 64.0, "particle_spacing": 0.0, "courant": 0.8, "substeps": 1.0}
    (filled,) = Points(None, scene, [bent], numbers, 1 / 900, set())._made
    outer = np.abs(np.abs(filled.particles[:, 2] - 1.0) - 0.045) < 1e-9
    assert outer.sum() == 50
    assert sorted(filled.held) == np.flatnonzero(outer).tolist()
    far = {**numbers, "particle_spacing": 0.05}
    with pytest.raises(UserError, match="no particle is near what is pinned: take a smaller"):
        Points(None, scene, [bent], far, 1 / 900, set())


def test_pulls_are_worked_out_for_bodies_that_move_by_them_alone(monkeypatch):
    item = foam(pins=(Pin(vertices=block_face(BLOCK, "z+"), body="grip"),
                      Pin(vertices=block_face(BLOCK, "z-"), body="load")))  # fmt: skip
    grip = body("grip", (), motion="kinematic", position=(0, 0, 1.05))
    load = body("load", Box(half_extents=(0.025,) * 3), position=(0, 0, 0.925))
    scene, shape = with_deformables(world_spec(grip, load), item).scene, rest_shape(item, {})
    solid = _Solid(
        None, Bent(item, shape, tuple(pinned_vertices(scene, item, shape.vertices))), None
    )
    monkeypatch.setattr(solid, "vertices", lambda: shape.vertices)
    (told,) = solid.pulls(np.array((0, 0, -9.81)), Pulled(scene, {}, [1], 0.01))
    assert told[0].body == 1
    # At rest the elements say nothing: the weight of what is about the face.
    assert told[2].sum(axis=0) == pytest.approx((0, 0, -9.81 * DENSITY * 0.05 * 0.05 * 0.0125))
    monkeypatch.setattr(genesis_fem, "element_forces", None)  # to be called by none
    assert solid.pulls(np.array((0, 0, -9.81)), Pulled(scene, {}, [], 0.01)) == []


def test_what_pulls_a_free_body_tells_where_it_will_be():
    """Two pulls on a turned box: Newton's and Euler's laws for one step, and nothing for others."""
    half = np.sqrt(0.5)
    load = body("load", Box(half_extents=(0.1, 0.2, 0.3)), mass=2.0, position=(0, 0, 1.0),
                quaternion_wxyz=(half, 0, 0, half))  # fmt: skip
    pulled = Pulled(world_spec(load).scene, {}, [0], 0.01)
    assert 0 in pulled
    assert None not in pulled
    pulled.begin()
    assert pulled.speeds(0, (1, 2, 3), (4, 5, 6)) == ((1, 2, 3), (4, 5, 6))
    place = (0.0, 0.0, 1.0), (half, 0.0, 0.0, half)
    up = pulled.add(0, *place, np.array([[0.0, 0.5, 1.0]]), np.array([[0.0, 0.0, 3.0]]))
    assert up[0] == pytest.approx((0, 0, 3))
    assert up[1] == pytest.approx((1.5, 0, 0))
    pulled.add(0, *place, np.array([[0.0, 0.0, 1.0]]), np.array([[4.0, 0.0, 0.0]]))
    linear, angular = pulled.speeds(0, (0, 0, 0), (0, 0, 0))
    assert linear == pytest.approx((0.02, 0, 0.01 * (1.5 - 9.81)))
    # About the world's x the box's own y lies: its inertia is m (a^2 + c^2) / 3.
    assert angular == pytest.approx((0.01 * 1.5 / (2.0 * (0.01 + 0.09) / 3), 0, 0))


# --- with it --------------------------------------------------------------------------------------


@pytest.mark.accept
def test_grips_are_exact_and_between_them_foam_stretches_evenly():
    engine_here("genesis")
    spec = stretched(450)
    log = play(spec, 0.1)
    solid, rest = log.state.vertices["foam"], rest_shape(foam(), {}).vertices
    assert solid[0] == pytest.approx(rest, abs=1e-6)
    high, low = (list(block_face(BLOCK, side)) for side in ("z+", "z-"))
    assert solid[-1, low] == pytest.approx(rest[low], abs=1e-9)
    assert solid[-1, high] == pytest.approx(rest[high] + (0, 0, 0.005), abs=1e-9)
    middle = np.abs(rest[:, 2] - 1.0) < 1e-9
    assert (solid[-1, middle, 2] - rest[middle, 2]).mean() == pytest.approx(0.0025, rel=0.01)
    width = np.ptp(solid[-1, middle, 0]) / 0.05 - 1
    assert -NU * 0.05 * 1.1 < width < -NU * 0.05 * 0.7
    assert play(spec, 0.1).state.sha256() == log.state.sha256()


@pytest.mark.accept
def test_a_body_that_hangs_on_foam_pulls_it_by_its_weight():
    """It swings up and down about where it would hang, at the rate of its mass on that spring."""
    engine_here("genesis")
    mass = 0.3
    load = body("load", Box(half_extents=(0.025,) * 3), mass=mass, position=(0, 0, 0.925))
    item = foam(pins=(Pin(vertices=block_face(BLOCK, "z+")),
                      Pin(vertices=block_face(BLOCK, "z-"), body="load")))  # fmt: skip
    spec = at_rate(with_deformables(world_spec(load), item), 900, "genesis")
    low = play(spec, 0.3).state.position[:, 0, 2]
    # Both ends are kept from narrowing: a little stiffer than E A / L.
    stiff = YOUNG * 0.0025 / 0.1
    assert (low[0] - low).mean() == pytest.approx(mass * 9.81 / stiff, rel=0.08)
    rises = np.flatnonzero((np.diff(low)[:-1] < 0) & (np.diff(low)[1:] >= 0))
    period = np.diff(rises).mean() / 900
    assert period == pytest.approx(2 * np.pi * np.sqrt(mass / stiff), rel=0.06)


@pytest.mark.accept
def test_foam_of_particles_stretches_between_what_draws_its_ends():
    engine_here("genesis")
    spec = stretched(900, volume="mpm")
    log = play(spec, 0.1)
    solid, rest = log.state.vertices["foam"], rest_shape(foam(), {}).vertices
    assert solid[0] == pytest.approx(rest, abs=1e-6)
    high, low = (list(block_face(BLOCK, side)) for side in ("z+", "z-"))
    middle = list(np.flatnonzero(np.abs(rest[:, 2] - 1.0) < 1e-9))
    gone = [(solid[-1, part, 2] - rest[part, 2]).mean() for part in (low, middle, high)]
    assert gone == pytest.approx([0, 0.0025, 0.005], abs=4e-4)
    assert play(spec, 0.1).state.sha256() == log.state.sha256()

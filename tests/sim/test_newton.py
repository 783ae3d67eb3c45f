"""Newton: what it is told without its library, and what it does where it is installed."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from engine_worlds import at_rate, cloth_of, engine_here, play, with_deformables
from physics_scenes import body, floor, world_spec

from wmeval.deformables import block_face, rest_shape, sheet_edge
from wmeval.errors import UserError
from wmeval.scene import Block, Box, Pin, Rope, Sheet, Soft, Sphere
from wmeval.sim.engines import engine_info, make_engine
from wmeval.sim.engines.newton_deformables import check_bent, rope_nodes, textile
from wmeval.sim.protocol import EngineConfig, Probe
from wmeval.sim.world import open_world

SHEET = Sheet(size=(0.1, 0.1), cells=(4, 4))


# --- without the library ------------------------------------------------------------------------


def test_nodes_of_a_rope_lie_between_its_segments():
    """Three segments of a bent chain: the ends that meet agree, or their middle is taken."""
    half = math.sqrt(0.5)
    down = [half, 0.0, 0.0, half]  # xyzw: takes z to -y
    along = [0.0, 0.0, 0.0, 1.0]
    poses = np.array([[0, 0, 0.5, *along], [0, 0, 2.1, *along], [0, -0.5, 3.1, *down]])
    nodes = rope_nodes(poses, np.array([1.0, 2.0, 1.0]))
    assert nodes == pytest.approx(np.array([[0, 0, 0], [0, 0, 1.05], [0, 0, 3.1], [0, -1.0, 3.1]]))


def test_newton_takes_the_published_mapping_unless_told_otherwise():
    numbers = {"tri_ke": 0.0, "tri_ka": 0.0, "edge_ke": 7.0}
    item = cloth_of(SHEET)
    found = textile(item, rest_shape(item, {}), numbers)
    # 2 < K_s / K_sh < 4: the measured shear; eq. 10 for the other.
    assert found["tri_ke"] == 40.0
    assert found["tri_ka"] == pytest.approx(2 * 40 * (100 - 80) / (160 - 100))
    assert found["edge_ke"] == 7.0


# --- with it ------------------------------------------------------------------------------------


@pytest.mark.accept
def test_newton_bounces_as_its_contact_is_told():
    engine_here("newton")
    ball = body("ball", Sphere(radius=0.03), mass=0.1, position=(0, 0, 0.43), restitution=0.6)
    spec = world_spec(ball, floor(restitution=1.0))
    found = {}
    for contact in ("default", "restitution"):
        state = play(at_rate(spec, 900, "newton", contact=contact), 0.5).state
        speed = state.linear_velocity[:, 0, 2]
        hit = int(np.argmin(speed))
        found[contact] = speed[hit : hit + 40].max() / -speed[hit]
    assert found["default"] < 0.15  # it has no restitution of its own
    assert found["restitution"] == pytest.approx(0.6, abs=0.05)


@pytest.mark.accept
def test_newton_carries_cloth_and_solids_by_what_they_are_pinned_to():
    """A frame that a driver moves takes its vertices along exactly; the rest follows."""
    engine_here("newton")
    frame = body("frame", (), motion="kinematic", position=(0, 0, 1.0))
    block = Block(size=(0.05, 0.05, 0.1), cells=(2, 2, 4))
    foam = Soft(name="foam", volume=block, density=20.0, youngs_modulus=2e4, poisson_ratio=0.3,
                damping=0.01, position=(0.5, 0, 1.0),
                pins=(Pin(vertices=block_face(block, "z+"), body="frame"),))  # fmt: skip
    item = cloth_of(
        SHEET, damping=0.01, pins=(Pin(vertices=sheet_edge(SHEET, "x-"), body="frame"),)
    )
    spec = with_deformables(world_spec(frame), item, foam)
    log = play(at_rate(spec, 600, "newton"), 0.25)
    sheet, solid = log.state.vertices["cloth"], log.state.vertices["foam"]
    assert sheet.shape == (151, 25, 3)
    held = list(sheet_edge(SHEET, "x-"))
    assert sheet[:, held] == pytest.approx(np.repeat(sheet[:1, held], 151, axis=0), abs=1e-6)
    free = [v for v in range(25) if v not in held]
    assert (sheet[-1, free, 2] < 1.0).all()
    hanging = solid[:, list(block_face(block, "z-")), 2].mean(axis=1)
    sag = 20.0 * 9.81 * 0.1**2 / 2 / 2e4
    assert hanging[0] - hanging[75:].mean() == pytest.approx(sag, rel=0.35)


CUBE = body("cube", Box(half_extents=(0.025,) * 3), position=(0, 0, 0.925))
CORD = Rope(name="cord", points=((0.0, 0.0, 0.0), (0.0, 0.0, 0.1)), radius=2e-3, density=1e3,
            stretch=10.0, bending=0.0)  # fmt: skip


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (cloth_of(SHEET, pins=(Pin(vertices=(0,), body="cube"),)),
         r"cloth 'cloth' is pinned to the dynamic body 'cube': newton's solver xpbd has no such "
         r"pins: leave solver out, or vbd$"),
        (CORD, r"rope 'cord': newton's solver xpbd has no ropes: leave solver out, or vbd$"),
    ],
)  # fmt: skip
def test_what_xpbd_would_leave_out_is_refused_by_name(item, said):
    """Before anything of the library is needed; what stands still may hold cloth."""
    scene = with_deformables(world_spec(CUBE), item).scene
    config = EngineConfig(options={"solver": "xpbd"})
    with pytest.raises(UserError, match=said):
        make_engine("newton").build(scene, {}, config, Fraction(1, 900), [])
    check_bent(with_deformables(world_spec(CUBE), cloth_of(SHEET)).scene, "xpbd")


@pytest.mark.accept
def test_newton_hangs_a_rope_that_stretches_by_its_weight_and_what_it_bears():
    engine_here("newton")
    length, count, stiff, radius, density = 0.34, 10, 10.6, 2.06e-3, 1100.0
    points = tuple((0.0, 0.0, -length * i / count) for i in range(count + 1))
    bob = body("bob", Sphere(radius=0.03), mass=0.1, position=(0, 0, 1 - length - 0.03))
    rope = Rope(name="rope", points=points, radius=radius, density=density, stretch=stiff,
                bending=1e-6, damping=0.005, position=(0, 0, 1),
                pins=(Pin(vertices=(0,)), Pin(vertices=(count,), body="bob")))  # fmt: skip
    log = play(at_rate(with_deformables(world_spec(bob), rope), 900, "newton"), 0.6)
    nodes, low = log.state.vertices["rope"], log.state.position[:, 0, 2]
    assert nodes.shape == (541, count + 1, 3)
    assert nodes[:, 0] == pytest.approx(np.tile([0, 0, 1.0], (541, 1)), abs=1e-4)
    tied = np.linalg.norm(nodes[:, -1] - log.state.position[:, 0], axis=1)
    assert tied == pytest.approx(0.03, abs=1e-3)
    weight = density * math.pi * radius**2 * length * 9.81
    longer = (0.1 * 9.81 + weight / 2) * length / stiff * (1 - 1 / count)
    assert (low[0] - low[270:]).mean() == pytest.approx(longer, rel=0.3)


def hanging(**config):
    """A strip under five times gravity: how much longer it is than w L^2 / 2 K_s, and its bits."""
    sheet = Sheet(size=(0.04, 0.1), cells=(4, 10))
    strip = cloth_of(sheet, shear=100 / 2.7, quaternion_wxyz=(math.sqrt(0.5),) * 2 + (0, 0),
                  pins=(Pin(vertices=sheet_edge(sheet, "y+")),))  # fmt: skip
    spec = with_deformables(world_spec(floor(), gravity=(0, 0, -49.05)), strip)
    spec = at_rate(spec, config.pop("rate"), "newton", **config.pop("options"))
    spec = dataclasses.replace(spec, config=spec.config.model_copy(update=config))
    state = play(spec, 0.5).state
    low = state.vertices["cloth"][:, list(sheet_edge(sheet, "y-")), 2].mean(axis=1)
    longer = low[0] - low[len(low) // 2 :].mean()
    return longer / (0.2 * 49.05 * 0.1**2 / 2 / 100), state.sha256()


@pytest.mark.accept
def test_sweeps_that_begin_with_the_share_of_gravity_hold_what_hangs():
    """Five of them at 900 steps a second; Newton's own beginning doubles the strip's stretch."""
    engine_here("newton")
    plain, _ = hanging(rate=900, iterations=5, options={})
    warm, bits = hanging(rate=900, iterations=5, options={"warm_start": 1})
    assert plain > 1.5
    # What is stretched by 2.5 % is a little stiffer than at first.
    assert warm == pytest.approx(1.0, abs=0.03)
    assert hanging(rate=900, iterations=5, options={"warm_start": 1, "graphs": 0})[1] == bits


@pytest.mark.accept
def test_sweeps_agree_where_they_are_many():
    """Where sweeps begin does not change what they converge to."""
    engine_here("newton")
    few, _ = hanging(rate=1800, iterations=10, options={"warm_start": 1})
    many, _ = hanging(rate=1800, iterations=30, options={})
    assert few == pytest.approx(many, rel=0.01)


@pytest.mark.accept
def test_a_free_body_hangs_on_what_is_pinned_to_it():
    """Foam holds a cube: it is longer by the cube's weight and half of its own, m g L / E A."""
    engine_here("newton")
    block = Block(size=(0.05, 0.05, 0.1), cells=(3, 3, 6))
    cube = body("cube", Box(half_extents=(0.025,) * 3), mass=0.1341, position=(0, 0, 0.925),
                linear_damping=0.99)  # fmt: skip
    item = Soft(name="foam", volume=block, density=13.2, youngs_modulus=86_410.0,
                poisson_ratio=0.0, position=(0, 0, 1.0),
                pins=(Pin(vertices=block_face(block, "z+")),
                      Pin(vertices=block_face(block, "z-"), body="cube")))  # fmt: skip
    spec = at_rate(with_deformables(world_spec(cube), item), 1800, "newton", warm_start=1)
    state = play(dataclasses.replace(spec, config=with_iterations(spec, 10)), 1.0).state
    z = state.position[:, 0, 2]
    late = state.times > 0.5
    weight = 9.81 * (0.1341 + 13.2 * 0.05**2 * 0.1 / 2)
    longer = weight * 0.1 / (86_410.0 * 0.05**2)
    assert z[0] - z[late].mean() == pytest.approx(longer, rel=0.03)
    # Its weight swings on the foam's stiffness, so that the mass is right too.
    period = 2 * math.pi * math.sqrt((0.1341 + 13.2 * 0.05**2 * 0.1 / 3) * longer / weight)
    x = -(z - z[late].mean())
    k = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    assert np.diff(state.times[k])[:4].mean() == pytest.approx(period, rel=0.04)
    # What is pinned stays on the body that it is pinned to.
    low = state.vertices["foam"][:, list(block_face(block, "z-")), 2].mean(axis=1)
    assert low - z == pytest.approx(0.025, abs=2e-4)


def with_iterations(spec, count):
    return spec.config.model_copy(update={"iterations": count})


@pytest.mark.accept
@pytest.mark.parametrize("solver", ["mujoco", "xpbd", "vbd"])
def test_two_processes_reach_the_same_bits(solver):
    """Newton says that it is deterministic: two workers, each with its own start."""
    engine_here("newton")
    ball = body("ball", Sphere(radius=0.03), mass=0.1, position=(0.01, 0, 1.06), friction=0.4)
    items = (cloth_of(SHEET, self_contact=False, position=(0, 0, 1.0)),) if solver == "vbd" else ()
    spec = with_deformables(world_spec(ball, floor()), *items)
    spec = at_rate(spec, 180, "newton", solver=solver)
    found = []
    for _ in range(2):
        world = open_world(spec)
        world.reset()
        found.append(world.advance((), 40, Probe("substeps")).state.sha256())
        world.close()
    assert engine_info("newton").deterministic
    assert found[0] == found[1]

"""Newton and Genesis, where they are installed: joints, contacts, what bends, what they refuse."""

import dataclasses
import math

import numpy as np
import pytest
from engine_worlds import (
    at_rate,
    cloth_of,
    crossings,
    engine_here,
    pendulum,
    period,
    play,
    with_deformables,
)
from physics_scenes import DT, body, floor, world_spec

from wmeval.errors import UserError
from wmeval.scene import Box, Collision, Joint, Pin, Sheet, Sphere
from wmeval.sim.drivers import DRIVERS
from wmeval.sim.engines import engine_info, make_engine
from wmeval.sim.engines.genesis_models import trees, write_mjcf
from wmeval.sim.engines.joint_tree import joint_tree
from wmeval.sim.engines.pins import pinned_vertices, pinned_where
from wmeval.sim.protocol import DriverSpec, EngineConfig

HEAVY = ("newton", "genesis")
SHEET = Sheet(size=(0.1, 0.1), cells=(4, 4))


# --- without the libraries ----------------------------------------------------------------------


@pytest.mark.parametrize("name", HEAVY)
def test_an_engine_says_what_it_is_and_refuses_what_it_does_not_know(name):
    info = engine_info(name)
    assert {"rigid", "joint"} <= set(info.body_kinds)
    assert info.version != "not installed" or info.mend == f"wmeval install {name}"
    engine = make_engine(name)
    scene = world_spec(floor()).scene
    with pytest.raises(UserError, match=f"{name} has no option 'colour'"):
        engine.build(scene, {}, EngineConfig(options={"colour": 1}), DT, ())
    with pytest.raises(UserError, match="choose from default, restitution"):
        engine.build(scene, {}, EngineConfig(options={"contact": "hard"}), DT, ())


def test_joints_are_sorted_into_trees_and_loops_are_refused():
    spec = world_spec(*(body(n, Sphere(radius=0.1)) for n in "abc"), floor())
    chain = tuple(
        Joint(name=f"{one}-{other}", kind="ball", body=one, other=other, pivot=(0, 0, 0))
        for one, other in (("a", "b"), ("b", "c"))
    )
    scene = spec.scene.model_copy(update={"joints": chain})
    tree = joint_tree(scene, "newton")
    assert tree.order == (2, 1, 0, 3)
    assert trees(tree, scene) == [[2, 1, 0], [3]]
    closing = Joint(name="c-a", kind="ball", body="c", other="a", pivot=(0, 0, 0))
    with pytest.raises(UserError, match="closes a loop: engine newton has none"):
        joint_tree(spec.scene.model_copy(update={"joints": (*chain, closing)}), "newton")
    twice = Joint(name="a-world", kind="ball", body="a", pivot=(0, 0, 0))
    with pytest.raises(UserError, match="'a-b' and 'a-world' both hold 'a'"):
        joint_tree(spec.scene.model_copy(update={"joints": (*chain, twice)}), "newton")


def test_a_tree_in_mujoco_s_words_has_the_scene_s_mass_and_places(tmp_path):
    """Read back by MuJoCo itself: places, inertia, the hinge's axis and armature."""
    mujoco = pytest.importorskip("mujoco")
    turned = (math.cos(0.3), 0.0, math.sin(0.3), 0.0)
    arm = body(
        "arm",
        (
            Collision(shape=Box(half_extents=(0.2, 0.02, 0.02))),
            Collision(shape=Sphere(radius=0.05), position=(0.1, 0, 0)),
            Collision(shape=Sphere(radius=0.05), position=(-0.1, 0, 0)),
        ),
        mass=0.7, position=(0.3, 0.1, 1.0), quaternion_wxyz=turned,
    )  # fmt: skip
    hand = body("hand", Box(half_extents=(0.05, 0.03, 0.02)), mass=0.2, position=(0.6, 0.1, 0.9))
    joints = (
        Joint(name="shoulder", kind="hinge", body="arm", pivot=(0.1, 0.1, 1.1), axis=(0, 2, 0),
              armature=0.01, damping=0.2),
        Joint(name="wrist", kind="ball", body="hand", other="arm", pivot=(0.5, 0.1, 0.9)),
    )  # fmt: skip
    scene = world_spec(arm, hand).scene.model_copy(update={"joints": joints})
    tree = joint_tree(scene, "genesis")
    path = tmp_path / "tree.xml"
    write_mjcf(path, scene, {}, tree, [0, 1], [2, 2])
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for i, each in enumerate(scene.bodies, 1):
        assert data.xpos[i] == pytest.approx(each.position)
        assert np.abs(data.xquat[i] @ np.array(each.quaternion_wxyz)) == pytest.approx(1.0)
        assert model.body_mass[i] == pytest.approx(each.mass)
    assert data.xanchor[0] == pytest.approx((0.1, 0.1, 1.1))
    assert data.xanchor[1] == pytest.approx((0.5, 0.1, 0.9))
    assert data.xaxis[0] == pytest.approx((0, 1, 0))
    assert model.dof_armature[0] == pytest.approx(0.01)
    assert model.dof_damping[0] == pytest.approx(0.2)
    box = np.array((0.05, 0.03, 0.02)) ** 2
    assert np.sort(model.body_inertia[2]) == pytest.approx(
        np.sort(0.2 / 3 * (box.sum() - box)), rel=1e-6
    )


def test_pins_follow_their_body_rigidly():
    frame = body("frame", Sphere(radius=0.1), motion="kinematic", position=(0, 0, 2.0),
                 quaternion_wxyz=(math.sqrt(0.5), 0, 0, math.sqrt(0.5)))  # fmt: skip
    item = cloth_of(SHEET, pins=(Pin(vertices=(0,)), Pin(vertices=(4, 24), body="frame")))
    scene = with_deformables(world_spec(frame), item).scene
    from wmeval.deformables import rest_shape

    rest = rest_shape(item, {}).vertices
    still, held = pinned_vertices(scene, item, rest)
    assert still.body is None
    assert pinned_where(still, None, None) == pytest.approx(rest[[0]])
    place = scene.bodies[0]
    assert pinned_where(held, place.position, place.quaternion_wxyz) == pytest.approx(rest[[4, 24]])
    moved = pinned_where(held, (1.0, 0, 2.0), place.quaternion_wxyz)
    assert moved == pytest.approx(rest[[4, 24]] + (1.0, 0, 0))
    upright = pinned_where(held, place.position, (1.0, 0.0, 0.0, 0.0))
    x, y, z = rest[4]
    assert upright[0] == pytest.approx((y, -x, z))


# --- with them ----------------------------------------------------------------------------------


@pytest.mark.accept
@pytest.mark.parametrize("name", HEAVY)
def test_a_pendulum_has_its_period_and_the_armature_that_it_is_given(name):
    engine_here(name)
    log = play(at_rate(pendulum(90), 180, name), 4.0)
    state = log.state
    measured = np.diff(crossings(state.times, state.position[:, 0, 0])).mean()
    assert measured == pytest.approx(period(90), rel=2e-4)
    away = np.linalg.norm(state.position[:, 0] - (0, 0, 1), axis=1)
    assert away == pytest.approx(0.28, abs=1e-5)
    again = play(at_rate(pendulum(90), 180, name), 4.0)
    assert again.state.sha256() == state.sha256()
    slow = play(at_rate(pendulum(10, armature=0.01), 180, name), 8.0).state
    measured = np.diff(crossings(slow.times, slow.position[:, 0, 0])).mean()
    assert measured == pytest.approx(period(10, 0.01), rel=1e-3)


@pytest.mark.accept
@pytest.mark.parametrize("name", HEAVY)
def test_a_cube_slides_and_a_driver_pushes(name):
    engine_here(name)
    angle, friction = math.radians(30), 0.3
    turned = (math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0)
    board = body("board", Box(half_extents=(2, 0.2, 0.01)), motion="static", quaternion_wxyz=turned)
    cube = body("cube", Box(half_extents=(0.025,) * 3), mass=0.1, friction=friction,
                position=(0.035 * math.sin(angle), 0, 0.035 * math.cos(angle)),
                quaternion_wxyz=turned)  # fmt: skip
    state = play(at_rate(world_spec(cube, board), 180, name), 0.6).state
    late = state.times > 0.1
    gone = np.linalg.norm(state.position[:, 0] - state.position[0, 0], axis=1)
    pull = 2 * np.polyfit(state.times[late], gone[late], 2)[0]
    assert pull == pytest.approx(9.81 * (math.sin(angle) - friction * math.cos(angle)), rel=0.02)
    ball = body("ball", Sphere(radius=0.1), mass=2.0, position=(0, 0, 1.0))
    push = DriverSpec(kind="force", params={"body": "ball", "axes": [[1, 0, 0]], "newtons": 3.0})
    spec = at_rate(world_spec(ball, gravity=(0, 0, 0)), 180, name)
    pushed = play(dataclasses.replace(spec, drivers=(push,)), 1.0, action=(1.0,)).state
    assert pushed.linear_velocity[-1, 0] == pytest.approx((1.5, 0, 0), abs=1e-3)
    assert "force" in DRIVERS


@pytest.mark.accept
def test_genesis_bounces_as_its_pair_is_told():
    engine_here("genesis")
    ball = body("ball", Sphere(radius=0.03), mass=0.1, position=(0, 0, 0.13), restitution=0.6)
    spec = world_spec(ball, floor(restitution=1.0))
    state = play(at_rate(spec, 1800, "genesis", contact="restitution"), 0.2).state
    speed = state.linear_velocity[:, 0, 2]
    hit = int(np.argmin(speed))
    assert speed[hit : hit + 40].max() / -speed[hit] == pytest.approx(0.6, abs=0.03)
    assert state.position[:, 0, 2].min() > 0.027

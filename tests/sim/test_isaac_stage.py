"""The stage that Isaac Sim is given: frames, masses, shapes, pins; by USD's own reading of it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from engine_worlds import joined, pendulum
from fake_isaac import write_launcher
from physics_scenes import body, floor, world_spec

from wmeval.assets.gauge_cards import families
from wmeval.clock import SceneClock
from wmeval.envs.gauge.build import build
from wmeval.scene import Box, Capsule, Collision, Cylinder, Joint, Sphere
from wmeval.sim.engines.isaac_stage import (
    WORLD,
    StageWriter,
    damping_of,
    frame_of,
    inertia_of,
    path_of,
    principal,
    quaternion,
    rotation,
)
from wmeval.sim.engines.job import read_members
from wmeval.sim.protocol import EngineConfig, EventRules, WorldSpec
from wmeval.sim.world import open_world

DT = Fraction(1, 180)
TURNS = [(1, 0, 0, 0), (0.5, 0.5, 0.5, 0.5), (0, 1, 0, 0), (0.8, 0, -0.6, 0), (0, 0.6, 0, 0.8)]


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """The job that a world sends."""
    monkeypatch.delenv("FAKE_ISAAC", raising=False)
    monkeypatch.setenv("FAKE_ISAAC_KEEP", str(tmp_path / "job.npz"))
    launcher = write_launcher(tmp_path)

    def send(scene, meshes=None, drivers=()):
        config = EngineConfig(iterations=16, options={"python": launcher})
        clock = SceneClock(DT, 6 * DT)
        world = open_world(
            WorldSpec(scene, meshes or {}, drivers, clock, EventRules(), "isaac", config)
        )
        world.foresee([((), 6)])
        world.reset()
        world.close()
        return read_members(tmp_path / "job.npz")

    return send


def stage_of(job, arrays):
    usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed")
    stage = usd.Stage.CreateInMemory()
    StageWriter(stage, job, arrays).write()
    return stage


# --- pure parts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", TURNS)
def test_turns_come_back_from_their_matrices(turn):
    assert abs(np.dot(quaternion(rotation(turn)), turn)) == pytest.approx(1)
    vector = np.array((0.1, -2, 3))
    w, *xyz = turn
    across = np.cross(xyz, vector)
    assert rotation(turn) @ vector == pytest.approx(
        vector + 2 * w * across + 2 * np.cross(xyz, across)
    )


def test_principal_axes_give_the_inertia_back():
    turn = rotation((0.8, 0.36, 0.48, 0))
    inertia = turn @ np.diag((1e-4, 3e-4, 2e-4)) @ turn.T
    moments, axes = principal(inertia)
    assert rotation(axes) @ np.diag(moments) @ rotation(axes).T == pytest.approx(inertia)
    assert principal(np.diag((3.0, 1.0, 2.0)))[0].tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.9, 1.0])
def test_damping_takes_its_share_a_second(share):
    dt = float(DT)
    assert (1 - damping_of(share, dt) * dt) ** 180 == pytest.approx(1 - share, abs=1e-9)


@pytest.mark.parametrize("turn", TURNS)
def test_a_joint_s_frame_is_the_same_seen_from_both_its_bodies(turn):
    pivot, axis = (0.3, -0.2, 1.0), (0, 2.0, 1.0)
    place = (1.0, 2.0, 3.0)
    at, frame = frame_of(pivot, axis, place, turn)
    assert rotation(turn) @ at + np.array(place) == pytest.approx(pivot)
    here = rotation(turn) @ rotation(frame)
    world = rotation(frame_of(pivot, axis, (0, 0, 0), (1, 0, 0, 0))[1])
    assert here == pytest.approx(world)
    assert here[:, 0] == pytest.approx(np.array(axis) / math.sqrt(5))


# --- as USD reads it ------------------------------------------------------------------------------


def test_bodies_shapes_and_joints_are_the_scene_s(sent):
    turned = (math.cos(0.3), 0.0, math.sin(0.3), 0.0)
    many = body(
        "many",
        (
            Collision(shape=Box(half_extents=(0.1, 0.2, 0.3))),
            Collision(shape=Capsule(radius=0.05, height=0.4)),
            Collision(shape=Cylinder(radius=0.05, height=0.4)),
        ),
        mass=0.7, position=(0.3, 0.1, 1.0), quaternion_wxyz=turned, friction=0.4, restitution=0.3,
        linear_damping=0.05,
    )  # fmt: skip
    hung = body("hung", Sphere(radius=0.1), mass=0.2, position=(0.6, 0.1, 0.9))
    spec = joined(
        world_spec(many, hung, floor()),
        Joint(name="hinge", kind="hinge", body="hung", other="many", pivot=(0.5, 0.1, 0.9),
              axis=(0, 1, 0), armature=0.01, damping=0.2),
        Joint(name="ball", kind="ball", body="many", pivot=(0.3, 0.1, 1.2)),
    )  # fmt: skip
    job, arrays = sent(spec.scene)
    stage = stage_of(job, arrays)
    from pxr import UsdGeom, UsdPhysics

    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    assert [path_of(job, i) for i in range(3)] == [
        f"{WORLD}/dynamic_0", f"{WORLD}/dynamic_1", f"{WORLD}/still_2"
    ]  # fmt: skip
    cache = UsdGeom.XformCache()
    prim = stage.GetPrimAtPath(path_of(job, 0))
    matrix = np.array(cache.GetLocalToWorldTransform(prim)).T
    assert matrix[:3, :3] == pytest.approx(rotation(turned))
    assert matrix[:3, 3] == pytest.approx((0.3, 0.1, 1.0))
    mass = UsdPhysics.MassAPI(prim)
    assert mass.GetMassAttr().Get() == pytest.approx(0.7)
    moments = np.array(mass.GetDiagonalInertiaAttr().Get())
    assert np.sort(moments) == pytest.approx(np.linalg.eigvalsh(inertia_of(job, 0)), rel=1e-5)
    assert prim.GetAttribute("physxRigidBody:solverPositionIterationCount").Get() == 16
    # Extents of every shape, in the world, without the body's turn.
    found = [
        UsdGeom.Imageable(stage.GetPrimAtPath(f"{path_of(job, 0)}/shape_{k}"))
        .ComputeUntransformedBound(0, "default")
        .ComputeAlignedRange()
        .GetSize()
        for k in range(3)
    ]
    scale = stage.GetPrimAtPath(f"{path_of(job, 0)}/shape_0").GetAttribute("xformOp:scale").Get()
    assert np.array(found[0]) * np.array(scale) == pytest.approx((0.2, 0.4, 0.6))
    assert np.array(found[1]) == pytest.approx((0.1, 0.1, 0.4))
    assert np.array(found[2]) == pytest.approx((0.1, 0.1, 0.4))
    # The rotor counts about the hinge's axis, here the body's y.
    assert inertia_of(job, 1)[1, 1] == pytest.approx(0.4 * 0.2 * 0.01 + 0.01)
    hinge = UsdPhysics.RevoluteJoint(stage.GetPrimAtPath(f"{WORLD}/joint_0"))
    ends = []
    for side, i in (("0", 0), ("1", 1)):
        rel = getattr(hinge, f"GetBody{side}Rel")().GetTargets()
        assert [str(p) for p in rel] == [path_of(job, i)]
        local = np.array(getattr(hinge, f"GetLocalPos{side}Attr")().Get())
        here = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(path_of(job, i)))).T
        ends.append(here[:3, :3] @ local + here[:3, 3])
    assert ends[0] == pytest.approx((0.5, 0.1, 0.9), abs=1e-6)
    assert ends[1] == pytest.approx(ends[0], abs=1e-6)
    assert hinge.GetAxisAttr().Get() == "X"
    drive = UsdPhysics.DriveAPI(hinge.GetPrim(), "angular")
    assert drive.GetDampingAttr().Get() == pytest.approx(0.2 * math.pi / 180)
    assert UsdPhysics.SphericalJoint(stage.GetPrimAtPath(f"{WORLD}/joint_1"))


def test_a_pair_s_friction_is_a_product(sent):
    ball = body("ball", Sphere(radius=0.1), mass=0.5, friction=0.4, restitution=0.3)
    stage = stage_of(*sent(world_spec(ball, floor(friction=0.5)).scene))
    from pxr import UsdPhysics, UsdShade

    values = []
    for path in (f"{WORLD}/dynamic_0", f"{WORLD}/still_1"):
        binding = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath(f"{path}/shape_0"))
        material = binding.ComputeBoundMaterial("physics")[0].GetPrim()
        for what in ("friction", "restitution"):
            mode = material.GetAttribute(f"physxMaterial:{what}CombineMode").Get()
            assert mode == "multiply"
        values.append(UsdPhysics.MaterialAPI(material).GetDynamicFrictionAttr().Get())
    assert values == pytest.approx([0.4, 0.5])


@pytest.mark.parametrize(
    ("family", "material", "kind", "elements"),
    [
        ("textile_bending", "oxford", "Surface", "omniphysics:restTriVtxIndices"),
        ("foam_stretching", "soft", "Volume", "omniphysics:restTetVtxIndices"),
    ],
)
def test_what_bends_has_its_rest_shape_its_stuff_and_its_pins(
    sent, family, material, kind, elements
):
    made = build(families()[family], "1", material)
    job, arrays = sent(made.scene, made.meshes, made.drives.specs)
    stage = stage_of(job, arrays)
    from pxr import UsdGeom, UsdShade

    (item,), name = job["deformables"], made.scene.deformables[0].name
    rest = arrays[f"rest/{name}/vertices"]
    prim = stage.GetPrimAtPath(f"{WORLD}/soft_0")
    # Schemas that usd-core does not know stand in the metadata alone.
    asked = prim.GetMetadata("apiSchemas").GetAddedOrExplicitItems()
    assert f"OmniPhysics{kind}DeformableSimAPI" in asked
    assert "OmniPhysicsDeformableBodyAPI" in asked
    points = np.array(UsdGeom.PointBased(prim).GetPointsAttr().Get())
    assert points == pytest.approx(rest, abs=1e-6)
    assert np.array(prim.GetAttribute("omniphysics:restShapePoints").Get()) == pytest.approx(points)
    count = len(prim.GetAttribute(elements).Get())
    assert count == len(arrays[f"rest/{name}/{'triangles' if kind == 'Surface' else 'tetrahedra'}"])
    stuff = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")[0].GetPrim()
    for own, key in (("youngsModulus", "young"), ("poissonsRatio", "poisson"), ("density",) * 2):
        assert stuff.GetAttribute(f"omniphysics:{own}").Get() == pytest.approx(item[key])
    if kind == "Surface":
        assert stuff.GetAttribute("omniphysics:surfaceBendStiffness").Get() == pytest.approx(
            item["bend"]
        )
    cache = UsdGeom.XformCache()
    for k in range(len(item["pins"])):
        pin = stage.GetPrimAtPath(f"{WORLD}/soft_0_pin_{k}")
        (target,) = pin.GetRelationship("omniphysics:src1").GetTargets()
        there = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(target))).T
        places = np.array(pin.GetAttribute("omniphysics:localPositionsSrc1").Get())
        vertices = np.array(pin.GetAttribute("omniphysics:vtxIndicesSrc0").Get())
        assert places @ there[:3, :3].T + there[:3, 3] == pytest.approx(rest[vertices], abs=1e-6)
    # Solids and sheets need the GPU; rigid scenes stay on the CPU.
    scene = stage.GetPrimAtPath("/physics")
    assert scene.GetAttribute("physxScene:enableGPUDynamics").Get() is True
    hung = stage_of(*sent(pendulum(90).scene))
    rigid = hung.GetPrimAtPath("/physics")
    assert rigid.GetAttribute("physxScene:enableGPUDynamics").Get() is False
    assert rigid.GetAttribute("physics:gravityMagnitude").Get() == pytest.approx(9.81)

"""Depths against every shape: built so deep, and found so deep."""

import math
from fractions import Fraction

import numpy as np
import pytest

from wmeval.deformables import rest_shape
from wmeval.eval.sweep.depths import deepest, greatest_depth
from wmeval.eval.sweep.solids import signed_distance, solids_of
from wmeval.records import StateLog
from wmeval.scene import (
    Body,
    Box,
    Camera,
    Capsule,
    Cloth,
    Collision,
    Cylinder,
    Joint,
    Material,
    Mesh,
    MeshData,
    Pin,
    Scene,
    Sheet,
    Sphere,
    Sun,
    Texture,
    Visual,
)

STONE = Material(name="stone", texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5),)))
TURNED = (math.cos(0.3), 0.0, math.sin(0.3), 0.0)


def body(name, shape, motion="static", position=(0.0, 0.0, 0.0), quaternion=(1.0, 0, 0, 0)):
    return Body(
        name=name, role=name, motion=motion, instance=0, collision=(Collision(shape=shape),),
        visuals=(Visual(shape=shape, material="stone"),), position=position,
        quaternion_wxyz=quaternion, mass=1.0 if motion == "dynamic" else 0.0,
    )  # fmt: skip


def scene_of(*bodies, joints=(), deformables=()):
    return Scene(
        name="depths", bodies=bodies, materials=(STONE,), joints=joints, deformables=deformables,
        cameras=(Camera(name="c", position=(1.0, -1.5, 1.0), target=(0.0, 0.0, 0.0)),),
        sun=Sun(direction=(0.3, 0.4, -0.8660254)),
    )  # fmt: skip


def log_of(scene, moved, vertices=None):
    """Frames in which bodies are moved by so much, (N, 3) each by name."""
    n = max([len(m) for m in moved.values()] + [len(x) for x in (vertices or {}).values()])
    position = np.tile([b.position for b in scene.bodies], (n, 1, 1)).astype(float)
    for name, way in moved.items():
        position[:, scene.index(name)] += np.asarray(way, float)
    b = len(scene.bodies)
    return StateLog(
        tuple(x.name for x in scene.bodies), Fraction(1, 30), np.arange(n), position,
        np.tile([x.quaternion_wxyz for x in scene.bodies], (n, 1, 1)).astype(float),
        np.zeros((n, b, 3)), np.zeros((n, b, 3)), np.ones((n, b), bool),
        np.full((n, b), 2, np.uint8), vertices=vertices or {},
    )  # fmt: skip


def down(*depths):
    return [(0.0, 0.0, -d) for d in depths]


TETRAHEDRON = np.array([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)], float)
FACES = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
SOLID = MeshData(TETRAHEDRON, FACES, np.zeros((4, 3)), np.zeros((4, 2)))


@pytest.mark.parametrize("motion", ["static", "kinematic", "dynamic"])
@pytest.mark.parametrize(
    "shape",
    [
        Box(half_extents=(0.2, 0.2, 0.1)),
        Cylinder(radius=0.2, height=0.2),
        Sphere(radius=0.1),
        Capsule(radius=0.1, height=0.5),
    ],
    ids=lambda s: s.kind,
)
def test_a_ball_pressed_in_is_as_deep_as_it_is_pressed(shape, motion):
    """The top of every shape is at 0.1 (a capsule lies)."""
    lying = (math.sqrt(0.5), math.sqrt(0.5), 0, 0) if shape.kind == "capsule" else (1.0, 0, 0, 0)
    scene = scene_of(
        body("base", shape, motion, quaternion=lying),
        body("ball", Sphere(radius=0.03), "dynamic", (0.0, 0.0, 0.13)),
    )
    log = log_of(scene, {"ball": down(0.0, 0.001, 0.007, 0.0)})
    found = deepest(scene, {}, log)
    assert found.depth == pytest.approx(0.007, abs=1e-9)
    assert found.time == pytest.approx(2 / 30)
    assert {found.what, found.into} == {"ball", "base"}
    assert greatest_depth(scene, {}, log.rows(slice(0, 1))) == pytest.approx(0.0, abs=1e-12)


def test_corners_are_measured_in_tilted_and_in_moving_boxes():
    normal = np.array([math.sin(0.6), 0.0, math.cos(0.6)])
    scene = scene_of(
        body("board", Box(half_extents=(0.3, 0.3, 0.005)), "kinematic", quaternion=TURNED),
        body("cube", Box(half_extents=(0.025,) * 3), "dynamic", tuple(0.03 * normal), TURNED),
    )
    # Both travel; the cube sinks into the board.
    way = np.outer(np.arange(4), (0.1, 0.2, 0.3))
    sunk = way - np.outer((0.0, 0.001, 0.004, 0.009), normal)
    log = log_of(scene, {"board": way, "cube": sunk})
    # Through the middle of a thin board: the way out is where it came in.
    assert greatest_depth(scene, {}, log) == pytest.approx(0.009, abs=1e-9)


def test_a_cube_that_hangs_over_an_edge_is_not_deep():
    scene = scene_of(
        body("table", Box(half_extents=(0.2, 0.2, 0.1))),
        body("cube", Box(half_extents=(0.025,) * 3), "dynamic", (0.2, 0.0, 0.125)),
    )
    log = log_of(scene, {"cube": [(0, 0, 0), (0.01, 0, -5e-4), (0.03, 0, -0.05)]})
    assert greatest_depth(scene, {}, log) == pytest.approx(5e-4, abs=1e-9)


def test_hulls_and_meshes_that_are_none_are_solids_too():
    meshes = {"a" * 64: SOLID}
    for convex in (True, False):
        scene = scene_of(
            body("base", Mesh(sha256="a" * 64, convex=convex)),
            body("ball", Sphere(radius=0.01), "dynamic", (0.02, 0.02, -0.01)),
        )
        log = log_of(scene, {"ball": [(0, 0, 0), (0, 0, 0.004)]})
        assert greatest_depth(scene, meshes, log) == pytest.approx(0.004, abs=1e-9)
        assert greatest_depth(scene, {}, log) == 0.0  # a mesh that is not at hand


def test_signed_distance_is_of_the_nearest_triangle():
    triangles = TETRAHEDRON[FACES]
    points = np.array([(0.02, 0.02, 0.02), (0.02, 0.02, -0.03), (-0.03, -0.04, 0.05), (0.2, 0, 0)])
    wanted = (-0.02, 0.03, 0.05, 0.1)
    assert signed_distance(points, triangles) == pytest.approx(wanted, abs=1e-12)
    slanted = (0.04 + 0.04 + 0.04 - 0.1) / math.sqrt(3)
    assert signed_distance(np.array([(0.04,) * 3]), triangles) == pytest.approx(slanted)
    (hull,) = solids_of(0, body("t", Mesh(sha256="a" * 64)), {"a" * 64: SOLID})
    assert hull.planes.shape == (4, 4)
    assert hull.outside(points).max(axis=1)[:2] == pytest.approx((-0.02, 0.03))


def test_what_is_joined_or_begins_inside_is_the_scene_s_own():
    ball = Sphere(radius=0.03)
    bodies = (body("a", ball, "dynamic"), body("b", ball, "dynamic", (0.05, 0.0, 0.0)))
    joint = Joint(name="j", kind="ball", body="a", other="b", pivot=(0.025, 0.0, 0.0))
    held = scene_of(*bodies, joints=(joint,))
    still = {"a": np.zeros((3, 3))}
    assert greatest_depth(held, {}, log_of(held, still)) == 0.0
    assert greatest_depth(scene_of(*bodies), {}, log_of(held, still)) == 0.0
    apart = scene_of(bodies[0], body("b", ball, "dynamic", (0.06, 0.0, 0.0)))
    assert greatest_depth(apart, {}, log_of(apart, {"a": [(0, 0, 0), (0.006, 0, 0)]})) == (
        pytest.approx(0.006)
    )
    led = scene_of(body("a", ball, "kinematic"), body("b", ball, "kinematic", (0.06, 0.0, 0.0)))
    assert greatest_depth(led, {}, log_of(led, {"a": [(0, 0, 0), (0.006, 0, 0)]})) == 0.0


def test_vertices_of_a_cloth_are_measured_in_bodies_and_pins_are_not():
    sheet = Sheet(size=(0.2, 0.2), cells=(10, 10))
    cloth = Cloth(name="cloth", surface=sheet, areal_density=0.2, stretch=100.0, shear=30.0,
                  bending=1e-5, pins=(Pin(vertices=(0,)),), position=(0.0, 0.0, 0.101))  # fmt: skip
    scene = scene_of(
        body("ball", Sphere(radius=0.1), "kinematic"),
        body("far", Box(half_extents=(0.1, 0.1, 0.1)), position=(2.0, 0.0, 0.0)),
        deformables=(cloth,),
    )
    rest = rest_shape(cloth, {}).vertices
    lower = np.stack([rest, rest - (0, 0, 0.001), rest - (0, 0, 0.009)])
    found = deepest(scene, {}, log_of(scene, {}, {"cloth": lower}))
    assert (found.what, found.into) == ("cloth", "ball")
    assert found.depth == pytest.approx(0.1 - 0.092, abs=1e-9)
    pinned = lower.copy()
    pinned[:, 1:] = rest[1:]
    pinned[2, 0] = (0.0, 0.0, 0.05)
    assert greatest_depth(scene, {}, log_of(scene, {}, {"cloth": pinned})) == 0.0

"""Joints and deformables of a scene: their JSON, what is refused, where vertices are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_scenes import body, floor, world_spec
from pydantic import ValidationError

from wmeval.deformables import (
    block_face,
    check_deformables,
    edge_lengths,
    edges_of,
    mean_edge,
    outer_triangles,
    rest_shape,
    sheet_edge,
    tetrahedron_volumes,
    vertex_count,
)
from wmeval.errors import UserError
from wmeval.scene import Block, Cloth, Joint, MeshData, Pin, Rope, Scene, Sheet, Soft, Sphere

CLOTH = Cloth(
    name="cloth",
    surface=Sheet(size=(0.4, 0.2), cells=(4, 3)),
    areal_density=0.13,
    stretch=112.0,
    shear=124.0,
    bending=1.4e-6,
    pins=(Pin(vertices=(0, 4)), Pin(vertices=(15, 19), body="bob")),
)
FOAM = Soft(
    name="foam",
    volume=Block(size=(0.05, 0.05, 0.2), cells=(2, 3, 4)),
    density=13.2,
    youngs_modulus=86410.0,
    poisson_ratio=0.23,
    position=(0.1, 0.2, 0.3),
)
ROPE = Rope(name="rope", points=((0, 0, 0), (0.1, 0, 0)), radius=2e-3, density=1100, stretch=10.6)
HINGE = Joint(name="pivot", kind="hinge", body="bob", pivot=(0, 0, 1), axis=(0, 1, 0), damping=0.1)


def scene_of(joints=(HINGE,), deformables=(CLOTH, FOAM, ROPE)):
    plain = world_spec(floor(), body("bob", Sphere(radius=0.1), position=(0, 0, 0.5))).scene
    return Scene.model_validate(
        {**plain.model_dump(), "joints": joints, "deformables": deformables}
    )


def test_a_scene_with_all_kinds_goes_through_json_and_back():
    scene = scene_of()
    again = Scene.model_validate_json(scene.model_dump_json())
    assert again == scene
    assert again.content_hash() == scene.content_hash()
    assert scene_of(joints=()).content_hash() != scene.content_hash()


def test_a_scene_without_them_has_the_json_it_always_had():
    fields = set(scene_of((), ()).model_dump())
    assert fields == {
        "name", "gravity", "bodies", "materials", "cameras", "sun", "sky", "modal"
    }  # fmt: skip
    assert '"joints"' not in scene_of((), ()).model_dump_json()


@pytest.mark.parametrize(
    ("joint", "deformable", "said"),
    [
        ({"body": "nobody"}, {}, "holds 'nobody', which is no body"),
        ({"body": "floor"}, {}, "its body 'floor' is static"),
        ({"other": "bob"}, {}, "holds 'bob' to itself"),
        ({"axis": (0, 0, 0)}, {}, "axis has no length"),
        ({"kind": "ball"}, {}, "only a hinge has armature and damping"),
        ({}, {"name": "bob"}, "body name 'bob' twice"),
        ({}, {"pins": (Pin(vertices=(1,)), Pin(vertices=(2, 1)))}, "vertex 1 is pinned twice"),
        ({}, {"pins": (Pin(vertices=(1,), body="who"),)}, "pinned to 'who', which is no body"),
        ({}, {"material": "velvet"}, "no material 'velvet'"),
        ({}, {"stretch": 0.0}, "greater than 0"),
    ],
)
def test_what_names_nothing_or_makes_no_sense_is_refused(joint, deformable, said):
    with pytest.raises(ValidationError, match=said):
        scene_of(({**HINGE.model_dump(), **joint},), ({**CLOTH.model_dump(), **deformable},))


def test_pins_beyond_the_last_vertex_are_refused_by_name():
    cloth = CLOTH.model_copy(update={"pins": (Pin(vertices=(20,)),)})
    with pytest.raises(UserError, match="'cloth' pins vertex 20 of 20: name 0 to 19"):
        check_deformables(scene_of((), (cloth,)), {})
    check_deformables(scene_of(), {})


cells = st.integers(1, 4)


@settings(max_examples=25, deadline=None)
@given(cells, cells, cells)
def test_the_tetrahedra_of_a_block_fill_it_and_fit_together(nx, ny, nz):
    size = (0.3, 0.4, 0.5)
    soft = FOAM.model_copy(update={"volume": Block(size=size, cells=(nx, ny, nz))})
    shape = rest_shape(soft, {})
    volumes = tetrahedron_volumes(shape.vertices, shape.tetrahedra)
    assert volumes.min() > 0
    assert volumes.sum() == pytest.approx(0.06)
    # Every inner face belongs to two tetrahedra, so that the outside is closed and of its area.
    faces = np.sort(shape.tetrahedra[:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]], axis=-1)
    _, count = np.unique(faces.reshape(-1, 3), axis=0, return_counts=True)
    assert set(count) <= {1, 2}
    a, b, c = (shape.vertices[shape.triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a) / 2
    area = 2 * (0.3 * 0.4 + 0.4 * 0.5 + 0.3 * 0.5)
    assert np.linalg.norm(normals, axis=1).sum() == pytest.approx(area)
    outward = ((a + b + c) / 3 - np.array(FOAM.position)) * normals
    assert (outward.sum(axis=1) > 0).all()


def test_numbers_of_vertices_follow_the_stated_order():
    sheet = rest_shape(CLOTH, {})
    assert vertex_count(CLOTH, {}) == 20
    assert sheet.vertices[7] == pytest.approx((2 / 4 * 0.4 - 0.2, 1 / 3 * 0.2 - 0.1, 0))
    edges = {side: sheet.vertices[list(sheet_edge(CLOTH.surface, side))] for side in
             ("x-", "x+", "y-", "y+")}  # fmt: skip
    assert np.allclose(edges["x-"][:, 0], -0.2)
    assert np.allclose(edges["x+"][:, 0], 0.2)
    assert np.allclose(edges["y-"][:, 1], -0.1)
    assert np.allclose(edges["y+"][:, 1], 0.1)
    a, b, c = (sheet.vertices[sheet.triangles[:, k]] for k in range(3))
    assert (np.cross(b - a, c - a)[:, 2] / 2).sum() == pytest.approx(0.08)
    foam = rest_shape(FOAM, {})
    for axis, letter in enumerate("xyz"):
        for sign, side in ((-1, "-"), (1, "+")):
            face = foam.vertices[list(block_face(FOAM.volume, letter + side))]
            assert np.allclose(
                face[:, axis], FOAM.position[axis] + sign * FOAM.volume.size[axis] / 2
            )


@given(st.integers(1, 7), st.integers(1, 7))
def test_edges_of_a_sheet_are_counted_once_and_inner_ones_have_two_triangles(nx, ny):
    item = Cloth(name="c", surface=Sheet(size=(0.1 * nx, 0.2 * ny), cells=(nx, ny)),
                 areal_density=0.1, stretch=1.0, shear=1.0, bending=0.0)  # fmt: skip
    rest = rest_shape(item, {})
    edges, count = edges_of(rest)
    along, across = nx * (ny + 1), ny * (nx + 1)
    assert len(edges) == along + across + nx * ny
    assert (count == 1).sum() == 2 * (nx + ny)
    assert count.sum() == 3 * len(rest.triangles)
    assert (edges[:, 0] < edges[:, 1]).all()
    total = 0.1 * along + 0.2 * across + np.hypot(0.1, 0.2) * nx * ny
    assert mean_edge(rest) == pytest.approx(total / len(edges))
    twice = np.stack([rest.vertices, 2 * rest.vertices])
    assert edge_lengths(twice, edges)[1] == pytest.approx(2 * edge_lengths(rest.vertices, edges))


def test_a_turned_cloth_of_a_mesh_keeps_its_triangles():
    flat = rest_shape(CLOTH, {})
    mesh = MeshData(
        flat.vertices.astype(np.float32),
        flat.triangles.astype(np.uint32),
        np.zeros((20, 3), np.float32),
        np.zeros((20, 2), np.float32),
    )
    key = mesh.content_hash()
    half = np.sqrt(0.5)
    cloth = Cloth.model_validate(
        {**CLOTH.model_dump(), "surface": {"kind": "mesh", "sha256": key},
         "quaternion_wxyz": (half, half, 0, 0), "position": (0, 0, 1)}
    )  # fmt: skip
    shape = rest_shape(cloth, {key: mesh})
    assert np.allclose(shape.vertices[:, 2], 1 + flat.vertices[:, 1], atol=1e-7)
    assert (shape.triangles == flat.triangles).all()
    with pytest.raises(UserError, match=r"cloth 'cloth': mesh .* is not among the meshes"):
        rest_shape(cloth, {})


def test_a_solid_turned_inside_out_is_refused():
    volume = {
        "kind": "tetrahedra",
        "vertices": ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "elements": ((0, 1, 2, 3), (0, 2, 1, 3)),
    }
    soft = Soft.model_validate({**FOAM.model_dump(), "volume": volume})
    with pytest.raises(UserError, match="element 1 has the volume"):
        rest_shape(soft, {})
    one = outer_triangles(np.array([[0, 1, 2, 3]], np.int32))
    assert len(one) == 4

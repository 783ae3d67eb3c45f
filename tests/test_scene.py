"""A Scene round-trips exactly and refuses what is not one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from wmeval.scene import (
    Body,
    Box,
    Camera,
    Collision,
    Cylinder,
    Material,
    MeshData,
    Scene,
    Sphere,
    Sun,
    Texture,
    Visual,
)

finite = st.floats(-1e6, 1e6, allow_nan=False)
positive = st.floats(1e-6, 1e6)
shapes = st.one_of(
    positive.map(lambda r: Sphere(radius=r)),
    st.tuples(positive, positive, positive).map(lambda h: Box(half_extents=h)),
    st.tuples(positive, positive).map(lambda p: Cylinder(radius=p[0], height=p[1])),
)


def make_scene(shape=None, position=(0.0, 0.0, 1.0), **changes):
    shape = shape or Sphere(radius=0.5)
    values = {
        "name": "test",
        "bodies": (
            Body(
                name="ball",
                role="player",
                motion="dynamic",
                instance=1,
                mass=2.0,
                position=position,
                collision=(Collision(shape=shape),),
                visuals=(Visual(shape=shape, material="red"),),
            ),
        ),
        "materials": (Material(name="red", texture=Texture(builder="noise", colors=((1, 0, 0),))),),
        "cameras": (Camera(name="static", position=(0, -5, 2), target=(0, 0, 0)),),
        "sun": Sun(direction=(0, 0.6, -0.8)),
    }
    return Scene(**{**values, **changes})


@given(shapes, st.tuples(finite, finite, finite))
def test_json_round_trip_is_exact(shape, position):
    scene = make_scene(shape, position)
    again = Scene.model_validate_json(scene.model_dump_json())
    assert again == scene
    assert again.content_hash() == scene.content_hash()


def test_an_unknown_key_is_refused_by_name():
    text = make_scene().model_dump_json().replace('"gravity"', '"gravitty"')
    with pytest.raises(ValidationError, match="gravitty"):
        Scene.model_validate_json(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": 0.0}, "mass > 0"),
        ({"quaternion_wxyz": (1.0, 1.0, 0.0, 0.0)}, "not 1"),
        ({"mass": float("nan")}, "finite"),
        ({"restitution": 1.5}, "less than or equal to 1"),
        ({"instance": 70000}, "65535"),
    ],
)
def test_a_body_says_what_is_wrong_with_it(change, message):
    with pytest.raises(ValidationError, match=message):
        make_scene().with_bodies(ball=change)


def test_names_and_materials_must_be_unique_and_known():
    scene = make_scene()
    with pytest.raises(ValidationError, match="'ball' twice"):
        Scene(**{**dict(scene), "bodies": scene.bodies * 2})
    with pytest.raises(ValidationError, match="no material 'red'"):
        Scene(**{**dict(scene), "materials": ()})
    with pytest.raises(ValidationError):
        scene.name = "other"


def test_with_bodies_changes_one_body_only():
    scene = make_scene()
    heavier = scene.with_bodies(ball={"mass": 3.0})
    assert heavier.bodies[0].mass == 3.0
    assert scene.bodies[0].mass == 2.0
    assert heavier.content_hash() != scene.content_hash()
    with pytest.raises(KeyError, match="no body 'bal'"):
        scene.with_bodies(bal={"mass": 3.0})


def test_a_mesh_hash_depends_on_every_array():
    arrays = {
        "vertices": np.zeros((3, 3), np.float32),
        "triangles": np.array([[0, 1, 2]], np.uint32),
        "normals": np.zeros((3, 3), np.float32),
        "uv": np.zeros((3, 2), np.float32),
    }
    base = MeshData(**arrays).content_hash()
    for name, array in arrays.items():
        changed = array.copy()
        changed.flat[1] += 1
        assert MeshData(**{**arrays, name: changed}).content_hash() != base

"""Meshes without thickness are seen, lit and cast shadows from both sides."""

import math

import numpy as np
import pytest
from exactness import Still, View, check_ids_depth, check_normals, check_shadow_ids
from physics_scenes import world_spec

from wmeval.scene import (
    Body,
    Box,
    Camera,
    Material,
    Mesh,
    MeshData,
    Scene,
    Sun,
    Texture,
    Visual,
)

pytestmark = pytest.mark.gl


def card(half_x: float, half_y: float) -> MeshData:
    """A flat rectangle that looks up."""
    v = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], np.float32)
    v[:, 0] *= half_x
    v[:, 1] *= half_y
    uv = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float32)
    up = np.tile(np.array([0, 0, 1], np.float32), (4, 1))
    return MeshData(v, np.array([(0, 1, 2), (0, 2, 3)], np.uint32), up, uv)


LEAF = card(0.3, 0.2)
KEY = LEAF.content_hash()


def turned(axis, degrees):
    axis = np.array(axis, float) / np.linalg.norm(axis)
    half = math.radians(degrees) / 2
    return (math.cos(half), *(math.sin(half) * axis).tolist())


def leaves(two_sided: bool, sun=(0.4, 0.5, -0.77)) -> Still:
    """A dozen leaves that hang every way over a floor, and three that lie over each other."""
    leaf = Material(
        name="leaf", texture=Texture(builder="noise", colors=((0.1, 0.4, 0.1),)),
        roughness=0.8, two_sided=two_sided,
    )  # fmt: skip
    ground = Material(name="ground", texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5),)))
    bodies = [
        Body(
            name="floor", role="floor", motion="static", instance=1, position=(0, 0, -0.5),
            visuals=(Visual(shape=Box(half_extents=(30, 30, 0.5)), material="ground"),),
        )
    ]  # fmt: skip
    rng = np.random.default_rng(5)
    places = [(1.4 * (i % 4 - 1.5), 1.5 * (i // 4 - 1), 1.2) for i in range(12)]
    places += [(0.1 * i, 4.0, 0.9 + 0.5 * i) for i in range(3)]
    for i, place in enumerate(places):
        turn = turned(rng.normal(size=3), rng.uniform(0, 360)) if i < 12 else (1.0, 0, 0, 0)
        bodies.append(
            Body(
                name=f"leaf {i}", role="leaf", motion="kinematic", instance=i + 2, position=place,
                quaternion_wxyz=turn,
                visuals=(Visual(shape=Mesh(sha256=KEY, convex=False), material="leaf"),),
            )
        )  # fmt: skip
    scene = Scene(
        name="leaves",
        bodies=tuple(bodies),
        materials=(leaf, ground),
        cameras=(
            Camera(name="above", position=(0.5, -4.5, 3.5), target=(0, 0.6, 0.6), fov_y_deg=60),
            Camera(name="below", position=(0.3, -3.0, 0.2), target=(0, 0.5, 1.4), fov_y_deg=75),
        ),
        sun=Sun(direction=tuple(np.array(sun) / np.linalg.norm(sun))),
    )
    base = world_spec()
    return Still(type(base)(scene, {KEY: LEAF}, (), base.clock, base.rules, config=base.config))


@pytest.mark.parametrize("sun", [(0.4, 0.5, -0.77), (-0.9, 0.1, -0.25), (0.05, 0.02, -1)])
@pytest.mark.parametrize("view", ["above", "below"])
def test_leaves_are_right_from_both_sides(view, sun):
    still, rng = leaves(True, sun), np.random.default_rng(1)
    assert check_ids_depth(still, rng, 600, view=view) > 300
    assert check_normals(still, rng, 600, view=view) > 300
    assert check_shadow_ids(still, rng, 1200, view=view, share=0.97) > 50
    still.close()


def test_the_sunny_side_of_a_leaf_does_not_shade_itself():
    for sun in ((0.4, 0.5, -0.77), (-0.7, 0.1, -0.5), (0.05, 0.02, -1)):
        still = leaves(True, sun)
        for view in ("above", "below"):
            seen = View(still, ("ids", "shadow_ids"), view=view, size=(640, 352))
            ids, shade = seen.layers["ids"], seen.layers["shadow_ids"]
            assert (ids > 1).sum() > 3000
            own = (ids > 1) & (ids == shade)
            assert own.sum() < 0.003 * (ids > 1).sum()
            # And every leaf that hangs free lies in the sun as a whole, or not at all.
            assert ((ids == 1) & (shade > 1)).sum() > 300 or view == "below"
        still.close()


def test_without_two_sides_a_leaf_is_nothing_from_behind():
    both, one = leaves(True), leaves(False)
    count = []
    for still in (both, one):
        seen = View(still, ("ids",), view="above")
        count.append(int((seen.layers["ids"] > 1).sum()))
        check_ids_depth(still, np.random.default_rng(2), 600, view="above")
        still.close()
    assert 0.2 * count[0] < count[1] < 0.8 * count[0]


def test_colours_of_both_sides_are_lit_by_the_side_that_looks_to_the_sun():
    still = leaves(True, (0.3, 0.2, -0.93))
    seen = View(still, ("rgb", "ids", "normals", "shadow_ids"), view="below", size=(640, 352))
    to_sun = -seen.state.sun_direction
    green = seen.layers["rgb"][..., 1].astype(float)
    leaf = (seen.layers["ids"] > 1) & (seen.layers["shadow_ids"] == 0)
    facing = seen.layers["normals"] @ to_sun
    lit, dark = leaf & (facing > 0.3), leaf & (facing < -0.3)
    assert lit.sum() > 200 < dark.sum()
    assert green[lit].mean() > 1.4 * green[dark].mean()
    still.close()

"""What a row fixes: everything, in any process and order; actors where the layout says, in view."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plain_setting import CARDS, row, simulate, spec_of

from wmeval.assets.cards import TaskCard
from wmeval.assets.meshes import box
from wmeval.conventions import look_at, project, quaternion_to_matrix
from wmeval.envs.rigidbench import framing
from wmeval.envs.rigidbench.physics import PHYSICS
from wmeval.envs.rigidbench.prompts import LOCKED_CAMERA, NEGATIVE_PROMPT, fill
from wmeval.envs.rigidbench.sample import ACTIVE, PASSIVE, Sample, draw_sample
from wmeval.envs.rigidbench.sight import Surroundings, crossed, solid_of, visible_shares
from wmeval.errors import UserError
from wmeval.scene import Body, Box, Material, Scene, Texture, Visual
from wmeval.sim.protocol import Probe
from wmeval.sim.world import LocalWorld

TASKS = tuple(CARDS.splits.tasks)
ALL = tuple(CARDS.objects)


def digest(x: Sample, frames: int = 6) -> str:
    told = x.scene.model_dump_json() + json.dumps(x.metadata(width=1280, height=704))
    return hashlib.sha256((told + simulate(x, frames).state.sha256()).encode()).hexdigest()


_CODE = """
import sys
sys.path.insert(0, sys.argv[1])
from plain_setting import CARDS, row, use_plain_settings
from test_sample import TASKS, digest, draw_sample
use_plain_settings()
for task in reversed(TASKS):
    print(task, digest(draw_sample(row(task, 7), CARDS)))
"""


def test_a_row_fixes_its_sample_in_any_process_and_order() -> None:
    here = {task: digest(draw_sample(row(task, 7), CARDS)) for task in TASKS}
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(Path(__file__).parent)],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    there = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert there == here
    assert len(set(here.values())) == len(TASKS)
    assert digest(draw_sample(row(TASKS[0], 8), CARDS)) != here[TASKS[0]]


@pytest.mark.parametrize("task", TASKS)
def test_bodies_stand_where_the_layout_says(task: str) -> None:
    for seed in range(6):
        x = draw_sample(row(task, seed, objects=ALL), CARDS)
        center = np.array(CARDS.settings[x.row.scene_id].surfaces[x.row.surface_name].center)
        turn = math.radians(x.turn_deg)
        c, s = math.cos(turn), math.sin(turn)
        rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        for actor, told in zip(x.layout.actors, x.actors, strict=True):
            body = x.scene.bodies[x.scene.index(actor.name)]
            assert (body.role, body.instance) == (told.role, told.instance)
            own = quaternion_to_matrix(np.array(body.quaternion_wxyz))
            vertices = np.concatenate([x.meshes[v.shape.sha256].vertices for v in body.visuals])
            world = vertices.astype(np.float64) @ own.T + np.array(body.position)
            # Within the layout's turned box, and as large as it.
            frame = rotation @ quaternion_to_matrix(np.array(actor.quaternion_wxyz))
            inside = (world - center - rotation @ np.array(actor.position)) @ frame
            half = np.array(actor.size) / 2
            np.testing.assert_allclose(inside.max(axis=0), half, atol=2e-4)
            np.testing.assert_allclose(inside.min(axis=0), -half, atol=2e-4)
        if x.layout.actors[0].wedge is not None:
            ramp = x.scene.bodies[x.scene.index(x.layout.actors[0].name)]
            own = quaternion_to_matrix(np.array(ramp.quaternion_wxyz))
            vertices = x.meshes[ramp.visuals[0].shape.sha256].vertices @ own.T
            # The high edge lies behind: the slope falls along the task's x axis.
            high = vertices[vertices[:, 2] > vertices[:, 2].max() - 1e-5] @ rotation[:, 0]
            assert high.max() < 0


def test_instances_count_the_actors_and_passive_things_have_the_default_physics() -> None:
    x = draw_sample(row("ball_chain", 3), CARDS)
    assert [a.instance for a in x.actors] == [1, 2, 3, 4, 5]
    assert [a.role for a in x.actors] == [PASSIVE, *[ACTIVE] * 4]
    others = {b.instance for b in x.scene.bodies if b.role not in (ACTIVE, PASSIVE)}
    assert others == {0, 65000}
    for body in x.scene.bodies:
        if body.motion == "static" and body.collision:
            assert (body.friction, body.restitution) == (0.4, 0.3)
        if body.motion == "dynamic":
            assert (body.linear_damping, body.angular_damping) == (0.1, 0.5)
            name = next(a.object for a in x.actors if a.name == body.name)
            assert body.mass == CARDS.objects[name].physics.mass
    springy = draw_sample(row("bounce", 3), CARDS)
    support = next(b for b in springy.scene.bodies if b.role == "support")
    ground = next(b for b in springy.scene.bodies if b.role == "ground")
    assert (support.friction, support.restitution) == (0.3, 0.6)
    assert (ground.friction, ground.restitution) == (0.4, 0.3)


def test_faithful_physics_collides_hulls_throughout() -> None:
    kinds = {}
    for name in ("bullet", "bullet-faithful"):
        x = draw_sample(row("bounce", 1), CARDS, physics=name)
        kinds[name] = x.scene.bodies[x.scene.index("bouncing")].collision[0].shape.kind
        assert x.config == PHYSICS[name].config
        assert x.metadata(width=640, height=352)["physics"] == name
    assert kinds == {"bullet": "sphere", "bullet-faithful": "mesh"}


def test_the_camera_keeps_every_actor_in_the_picture() -> None:
    for task in TASKS:
        x = draw_sample(row(task, 5), CARDS, width=1280, height=704)
        told = x.metadata(width=1280, height=704)
        pose = look_at(np.array(x.camera.position), np.array(x.camera.target))
        np.testing.assert_allclose(told["camera"]["T_world_camera"], pose)
        K = np.array(told["camera"]["intrinsics_px"])
        assert K[0, 0] == pytest.approx(35 / 36 * 1280)
        center = np.array(CARDS.settings[x.row.scene_id].surfaces[x.row.surface_name].center)
        turn = math.radians(x.turn_deg)
        c, s = math.cos(turn), math.sin(turn)
        corners = np.concatenate([a.corners() for a in x.layout.actors])
        world = corners @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + center
        pixels, depth = project(world, K, pose)
        assert (depth > 0).all()
        assert (pixels >= 0).all()
        assert (pixels <= [1280, 704]).all()
        away = np.array(x.camera.position) - np.array(x.camera.target)
        azimuth = math.degrees(math.atan2(away[1], away[0]))
        assert (azimuth - x.azimuth_deg + 180) % 360 - 180 == pytest.approx(0, abs=1e-6)
        # At 0 the camera looks along the task's x axis, down the first ramp.
        relative = (x.azimuth_deg - x.turn_deg + 180) % 360
        ranges = CARDS.tasks[task].camera_deg
        assert any(low - 1e-6 <= relative <= high + 1e-6 for low, high in ranges)
        assert x.share >= framing.ENOUGH_SEEN


def test_metadata_is_json_and_says_what_table_8_asks_for() -> None:
    x = draw_sample(row("ramp_collision", 2), CARDS)
    told = json.loads(json.dumps(x.metadata(width=1280, height=704)))
    assert told["partition"] == "train"
    assert told["footprint_m"] == list(x.layout.footprint)
    assert told["resolution"] == [1280, 704]
    assert (told["fps"], told["frames"]) == (24, 49)
    assert [a["name"] for a in told["actors"]] == [
        "ramp_left", "ramp_right", "rolling_left", "rolling_right",
    ]  # fmt: skip
    assert told["actors"][0]["object"] in CARDS.tasks["ramp_collision"].ramp_materials
    assert {"task", "scene", "surface", "seed", "task_rotation_deg", "camera_azimuth_deg"} <= set(
        told
    )


def test_prompts_have_articles_capitals_and_the_shared_suffix() -> None:
    phrases = {"a": CARDS.objects["apple"].phrase, "b": CARDS.objects["rubiks_cube"].phrase}
    assert fill("{a} and {b} fall.", phrases) == "An apple and a Rubik's cube fall."
    x = draw_sample(row("free_fall", 0, objects=("red_bull_can",)), CARDS)
    assert x.prompt == "A Red Bull can is dropping."
    assert x.full_prompt == f"{x.prompt} {LOCKED_CAMERA}"
    assert x.negative_prompt == NEGATIVE_PROMPT


def test_a_support_that_is_too_small_is_one_clear_error() -> None:
    small = CARDS.settings["modular_flat"].model_dump()
    surface = next(iter(small["surfaces"]))
    small["surfaces"][surface]["size"] = (0.6, 0.4)
    flat = CARDS.settings["modular_flat"].model_validate(small)
    cards = dataclasses.replace(CARDS, settings={**CARDS.settings, "modular_flat": flat})
    with pytest.raises(UserError, match=r"no layout of 'ball_chain' fits .*0.6 x 0.4 m.*choose"):
        draw_sample(row("ball_chain", scene="modular_flat"), cards)
    assert draw_sample(row("free_fall", scene="modular_flat"), cards).share > 0


def test_a_layout_keeps_within_a_round_support() -> None:
    radius = CARDS.settings["beach_gazebo"].surfaces["Cylinder"].size[0] / 2
    for seed in range(8):
        x = draw_sample(row("ball_chain", seed, scene="beach_gazebo"), CARDS)
        assert x.layout.reach <= radius


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scene_id": "attic"}, "scene_id: no card 'attic'"),
        ({"surface_name": "Roof"}, "surface_name: no card 'Roof'"),
        ({"objects": ("brick",)}, "objects: no card 'brick'"),
    ],
)
def test_unknown_names_are_refused(fields: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        draw_sample(row("free_fall").model_copy(update=fields), CARDS)
    with pytest.raises(UserError, match="unknown physics 'magic': choose from bullet, bullet-fai"):
        draw_sample(row("free_fall"), CARDS, physics="magic")


def test_narrowed_cards_rotations_and_azimuths_are_kept() -> None:
    card = CARDS.tasks["free_fall"].model_dump()
    card["placements"][0].update(height_m=(0.6, 0.6), objects=("coconut",))
    task = TaskCard.model_validate(card)
    x = draw_sample(row("free_fall", 4), CARDS, task=task, turn_deg=30.0, azimuth_deg=45.0)
    assert x.actors[0].object == "coconut"
    assert x.layout.actors[0].position[2] == pytest.approx(0.6)
    surface = CARDS.settings[x.row.scene_id].surfaces[x.row.surface_name]
    assert x.turn_deg == pytest.approx(surface.long_axis_deg + 30)
    assert (x.azimuth_deg - x.turn_deg) % 360 == pytest.approx(225)


# --- sight --------------------------------------------------------------------------------------


def test_ways_through_a_box_are_told_from_ways_past_it() -> None:
    rng = np.random.default_rng(0)
    half = np.array([0.3, 0.2, 0.1])
    solid = solid_of(box((0.3, 0.2, 0.1)), np.zeros((1, 3)))
    turn = quaternion_to_matrix(np.array([math.cos(0.3), 0, math.sin(0.3), 0]))
    at = np.array([1.0, -2.0, 0.5])
    origins = at + rng.normal(size=(4000, 3))
    ends = at + rng.normal(size=(4000, 3))
    t = np.linspace(0, 1, 2001)[:, None, None]
    local = ((origins + t * (ends - origins)) - at) @ turn
    depth = (half - np.abs(local)).min(axis=2).max(axis=0)
    sure = np.abs(depth) > 2e-3
    found = crossed(solid, at, turn, origins, ends)
    np.testing.assert_array_equal(found[sure], depth[sure] > 0)
    assert 0.02 < found.mean() < 0.9


def test_a_wall_hides_what_stands_behind_it_and_glass_does_not() -> None:
    def wall(material: str, bottom: float) -> Body:
        shape = Box(half_extents=(0.01, 2.0, 1.0))
        return Body(name=material, role="wall", motion="static", instance=0,
                    visuals=(Visual(shape=shape, material=material),),
                    position=(1.0, 0.0, bottom + 1.0))  # fmt: skip

    texture = Texture(builder="noise", colors=((0.5, 0.5, 0.5),))
    looks = (Material(name="brick", texture=texture),
             Material(name="glass", texture=texture, opacity=0.2))  # fmt: skip
    mesh = box((0.1, 0.1, 0.1))
    solid = solid_of(mesh, framing.surface_points(mesh, 1000))
    still, upright = np.zeros(3), np.eye(3)
    eyes = np.array([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])

    def shares(*walls: Body) -> list[float]:
        around = Surroundings(walls, looks, {})
        return visible_shares([solid], [still], [upright], eyes, around).tolist()

    assert shares() == [1.0, 1.0]
    assert shares(wall("brick", -1.0)) == [0.0, 1.0]
    assert shares(wall("glass", -1.0)) == [1.0, 1.0]
    # From a line of sight up: half of the points lie above the middle.
    assert shares(wall("brick", 0.0))[0] == pytest.approx(0.5, abs=0.01)


def test_an_actor_hides_what_stands_behind_it() -> None:
    mesh = box((0.1, 0.1, 0.1))
    solid = solid_of(mesh, framing.surface_points(mesh, 1000))
    around = Surroundings((), (), {})
    eyes = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    places = [np.zeros(3), np.array([0.5, 0.0, 0.0])]
    found = visible_shares([solid, solid], places, [np.eye(3)] * 2, eyes, around)
    assert found[0] == 0.0
    assert found[1] == 1.0


def test_scenes_read_back_from_their_json() -> None:
    x = draw_sample(row("drop_into_cluster", 1), CARDS)
    assert Scene.model_validate_json(x.scene.model_dump_json()) == x.scene


def test_what_touches_what_is_told_as_events() -> None:
    world = LocalWorld(spec_of(draw_sample(row("ball_chain", 1), CARDS)), events=True)
    world.reset()
    found = world.advance((), 1440, Probe()).events
    world.close()
    pairs = {frozenset((e.body_a, e.body_b)) for e in found if e.kind == "contact"}
    assert {"rolling", "ramp"} in pairs
    assert {"rolling", "chain_0"} in pairs

"""The five tasks as environments: what they observe, draw, take and refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plain_setting import CARDS, row

from wmeval.assets.cards import library
from wmeval.envs import environment_class, environment_row, make_environment
from wmeval.envs.base import Snapshot
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.record import record
from wmeval.envs.rigidbench.prompts import LOCKED_CAMERA, NEGATIVE_PROMPT
from wmeval.errors import UserError
from wmeval.generators.rigidbench import rows_of

NAMES = ("FreeFall", "Bounce", "RampCollision", "BallChain", "DropIntoCluster")


def task_of(name: str) -> str:
    return environment_class(name).TASK


@pytest.mark.parametrize("name", NAMES)
def test_a_clip_is_48_steps_of_30_substeps(name: str) -> None:
    env = make_environment(name)
    _, info = env.reset(seed=0)
    assert env.clock.substeps == 30
    for step in range(48):
        observation, reward, terminated, truncated, later = env.step([])
        assert (reward, terminated, truncated) == (0.0, False, step == 47)
        assert later == {}
    assert env.observation_space.contains(observation)
    assert env.log.state.substep.tolist() == [1440]
    assert info["prompt"].endswith(LOCKED_CAMERA)
    assert info["negative_prompt"] == NEGATIVE_PROMPT
    assert info["sample"] == env.sample.metadata(width=640, height=352)
    json.dumps(info)
    env.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_vector_is_the_log_actor_by_actor(name: str) -> None:
    env = make_environment(name, info_level="state")
    first, _ = env.reset(seed=1)
    vectors = [first, *(env.step([])[0] for _ in range(20))]
    state = env.log.state
    names = [a.name for a in env.sample.actors]
    assert names == list(env.SLOTS)
    assert environment_row(name).observation == 13 * len(names)
    told = [
        np.concatenate([getattr(state, field)[-1, state.bodies.index(n)] for field in (
            "position", "quaternion_wxyz", "linear_velocity", "angular_velocity")])
        for n in names
    ]  # fmt: skip
    np.testing.assert_array_equal(vectors[-1], np.concatenate(told).astype(np.float32))
    start = [env.scene.bodies[env.scene.index(n)] for n in names]
    for i, body in enumerate(start):
        slot = first[13 * i : 13 * i + 13]
        np.testing.assert_allclose(slot[:3], body.position, atol=1e-6)
        # q and -q are one rotation; Bullet reads them from matrices.
        assert abs(slot[3:7] @ np.array(body.quaternion_wxyz)) == pytest.approx(1, abs=1e-6)
        assert not slot[7:].any()
    env.close()


def test_a_published_row_makes_its_sample_whatever_the_seed() -> None:
    published = row("bounce", 424242).model_dump(mode="json")
    digests = set()
    for seed in (0, 1):
        env = make_environment("Bounce")
        env.reset(seed=seed, options={"row": published})
        assert env.sample.row.seed == 424242
        digests.add(env.scene.content_hash())
        env.close()
    assert len(digests) == 1


def test_seeds_draw_rows_of_their_side_of_the_split() -> None:
    env = make_environment("DropIntoCluster")
    train, held_out = CARDS.splits.train, CARDS.splits.held_out
    seen, splits = set(), set()
    for seed in range(12):
        env.reset(seed=seed)
        assert env.sample.row.split == "train"
        assert env.sample.row.scene_id in train.scenes
        assert env.sample.row.objects == train.objects
        seen.add(env.sample.row.seed)
        env.reset(seed=seed, options={"seed_space": "evaluation"})
        splits.add(env.sample.row.split)
        seen.add(env.sample.row.seed)
    assert len(seen) == 24
    assert "train" not in splits
    assert len(splits) > 1
    env.reset(seed=0, options={"split": "ood-both"})
    assert env.sample.row.scene_id in held_out.scenes
    assert env.sample.row.objects == held_out.objects
    env.close()


def test_what_is_fixed_stays_fixed_and_the_rest_is_drawn() -> None:
    env = make_environment("RampCollision")
    options = {
        "setting": "modular_flat",
        "objects": ["apple", "orange", "tennis_ball"],
        "ramp_material": "dark_wood",
        "placements": {
            "ramp_left": {"height_m": 0.2, "length_m": [0.4, 0.41]},
            "rolling_left": {"objects": ["tennis_ball"], "position": 0.5},
        },
        "turn_deg": 0,
        "azimuth_deg": 90,
    }
    for seed in (0, 1):
        env.reset(seed=seed, options=options)
        left, right, ball, other = env.sample.layout.actors
        assert left.wedge.height == pytest.approx(0.2)
        assert 0.4 <= left.wedge.length <= 0.41
        assert left.wedge.material == right.wedge.material == "dark_wood"
        assert ball.object == "tennis_ball"
        assert other.object in ("apple", "orange", "tennis_ball")
        assert env.sample.row.scene_id == "modular_flat"
        assert (env.sample.azimuth_deg - env.sample.turn_deg) % 360 == pytest.approx(270)
    env.close()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("FreeFall", {"setting": "attic"}, "no setting 'attic': choose from beach_gazebo"),
        ("FreeFall", {"surface": "Roof"}, "surface_name: no card 'Roof': choose from"),
        ("FreeFall", {"objects": ["brick"]}, "objects: no card 'brick': choose from apple"),
        ("FreeFall", {"objects": []}, "option setting, surface or objects: objects"),
        ("FreeFall", {"split": "test"}, "unknown option split 'test': choose from train, in_dis"),
        ("FreeFall", {"row": {"seed": 1}}, "option row: "),
        ("FreeFall", {"row": row("bounce").model_dump(mode="json")}, "is of task 'bounce', not"),
        ("FreeFall", {"row": {}, "setting": "x"}, "option row says all: leave out setting"),
        ("FreeFall", {"placements": {"roof": {}}}, "no slot 'roof': choose from falling"),
        ("FreeFall", {"placements": {"falling": {"colour": 1}}}, "option placements: .*colour"),
        ("FreeFall", {"placements": {"falling": {"height_m": [2, 1]}}}, "does not ascend"),
        ("FreeFall", {"placements": {"falling": {"objects": ["x"]}}}, "no object 'x': choose from"),
        ("FreeFall", {"setting": ["attic"]}, "no setting"),
        ("FreeFall", {"split": ["train"]}, "unknown option split"),
        (
            "FreeFall",
            {"placements": {"falling": {"height_m": 1e6}}},
            "option placements: .*height_m",
        ),
        ("FreeFall", {"placements": {"falling": {"height_m": 0.01}}}, "into the support: give at"),
        ("FreeFall", {"placements": {"falling": {"slot": "x"}}}, "no object in slot 'falling'"),
        ("Bounce", {"objects": ["apple"]}, "none of apple is tagged 'bouncy', as slot 'bouncing'"),
        ("BallChain", {"placements": {"ramp": {"length_m": 0}}}, "option placements: .*length_m"),
        (
            "BallChain",
            {"placements": {"chain": {"count": 4}}},
            "chain_3 there, the environment obs",
        ),
        ("BallChain", {"placements": {"chain": {"count": 2}}}, "observes ramp, rolling, chain_0"),
        ("BallChain", {"ramp_material": ["dark_wood"]}, "choose from light_wood, dark_wood"),
        ("FreeFall", {"placements": 3}, "give {slot: {field: value}}"),
        ("FreeFall", {"ramp_material": "dark_wood"}, "this task has no ramps"),
        ("BallChain", {"ramp_material": "ice"}, "choose from light_wood, dark_wood"),
        ("BallChain", {"turn_deg": "north"}, "give an angle in degrees"),
    ],
)
def test_bad_options_are_refused_at_reset(name: str, options: dict, message: str) -> None:
    env = make_environment(name)
    with pytest.raises(UserError, match=message):
        env.reset(seed=0, options=options)


def test_physics_is_an_argument_and_part_of_a_snapshot() -> None:
    env = make_environment("Bounce", physics="bullet-faithful")
    env.reset(seed=2)
    for _ in range(20):
        env.step([])
    snapshot = Snapshot.model_validate_json(env.get_state().model_dump_json())
    assert snapshot.settings["physics"] == "bullet-faithful"
    other = make_environment("Bounce", physics="bullet-faithful")
    other.set_state(snapshot)
    assert other.log.state.sha256() == env.log.state.sha256()
    with pytest.raises(UserError, match="its physics is 'bullet-faithful', here it is 'bullet'"):
        make_environment("Bounce").set_state(snapshot)
    with pytest.raises(UserError, match="unknown physics 'magic'"):
        make_environment("Bounce", physics="magic")
    with pytest.raises(UserError, match="physics 'bullet' runs on engine 'bullet', not on 'blend"):
        make_environment("Bounce", physics="bullet", engine="blender")
    env.close()
    other.close()


def test_cards_of_a_users_folder_replace_the_built_in_ones(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    card = CARDS.objects["baseball"].model_dump(mode="json")
    card["physics"]["mass"] = 3.5
    (tmp_path / "objects" / "baseball.yaml").write_text(json.dumps(card))
    env = make_environment("Bounce", assets=str(tmp_path))
    env.reset(seed=0, options={"objects": ["baseball"]})
    assert env.scene.bodies[env.scene.index("bouncing")].mass == 3.5
    env.close()


def test_a_users_task_keeps_the_actors_that_are_observed(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    card = CARDS.tasks["ball_chain"].model_dump(mode="json")
    card["placements"][2]["count"] = 4
    (tmp_path / "tasks" / "ball_chain.yaml").write_text(json.dumps(card))
    with pytest.raises(UserError, match=r"task card 'ball_chain' puts ramp, .*chain_3 there"):
        make_environment("BallChain", assets=str(tmp_path))
    make_environment("FreeFall", assets=str(tmp_path)).close()
    with pytest.raises(UserError, match=r"task card 'ball_chain' puts"):
        rows_of("eval", library(tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_its_plan_is_its_clip(name: str) -> None:
    assert plans_of(name) == ("clip",)
    env = make_environment(name)
    rollout = record(env, plan=load_plan(name, "clip"), seed=0)
    assert len(rollout.log.state.substep) == 1441
    assert rollout.log.events
    assert len(rollout.log.contacts.substep)
    assert env.view == "main"
    env.close()


_CODE = """
import sys
sys.path.insert(0, sys.argv[1])
from plain_setting import use_plain_settings
from wmeval.envs import make_environment
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
use_plain_settings()
for name in sys.argv[2].split(",")[::-1]:
    print(name, record(make_environment(name), plan=load_plan(name, "clip"), seed=6).sha256())
"""


def test_two_processes_give_the_same_bits_in_any_order() -> None:
    here = {
        n: record(make_environment(n), plan=load_plan(n, "clip"), seed=6).sha256() for n in NAMES
    }
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(Path(__file__).parent), ",".join(NAMES)],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    there = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert there == here

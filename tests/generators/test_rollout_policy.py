"""Rollouts in which a named policy acts instead of a plan."""

import numpy as np
import pytest
import yaml

from wmeval.datasets.rollout import read
from wmeval.datasets.validate import validate
from wmeval.envs.record import remake
from wmeval.errors import UserError
from wmeval.generators.rollout_folder import RolloutConfig, make_rollout_folder
from wmeval.generators.rollouts import generate_rollouts

GARDEN, BALLS = "WMEval/WanderingGarden-v0", "WMEval/BallRoller-v0"


@pytest.mark.gl
@pytest.mark.parametrize(("env_id", "policy"), [(GARDEN, "explorer"), (BALLS, "random")])
def test_a_rollout_of_a_policy_is_whole_and_can_be_made_again(tmp_path, env_id, policy):
    config = RolloutConfig(
        env_id=env_id, policy=policy, seed=5, width=64, height=48, fps="12", max_steps=40,
        layers=("ids",),
    )  # fmt: skip
    done = make_rollout_folder(config, tmp_path / "one")
    assert done.summary["steps"] == 40
    assert not validate(done.path)
    document = yaml.safe_load((done.path / "config.yaml").read_text())
    assert document["policy"] == policy
    assert "plan" not in document
    again = make_rollout_folder(RolloutConfig.from_document(document, "here"), tmp_path / "two")
    assert again.summary["sha256"] == done.summary["sha256"]
    assert make_rollout_folder(config, tmp_path / "one").reused
    kept = read(done.path / "rollout.h5")
    assert kept.metadata["policy"]["kind"] == policy
    np.testing.assert_array_equal(remake(kept.metadata).actions, kept.actions)


def test_a_plan_or_a_policy_one_of_them():
    with pytest.raises(UserError, match="give a plan or a policy, one of them"):
        RolloutConfig(env_id=BALLS).resolved()
    with pytest.raises(UserError, match="give a plan or a policy, one of them"):
        RolloutConfig(env_id=BALLS, plan="forward", policy="random").resolved()
    with pytest.raises(UserError, match="unknown policy 'clever': choose from random, explorer"):
        RolloutConfig(env_id=BALLS, policy="clever").resolved()


def test_a_set_of_explorers_differs_from_seed_to_seed(tmp_path):
    made = generate_rollouts(
        GARDEN, "explorer", 2, tmp_path / "set", video=False, max_steps=30, workers=0,
        policy_kwargs={"pace": 0.7},
    )  # fmt: skip
    assert made.complete
    runs = [read(tmp_path / "set" / "episodes" / f"{i:06d}.h5") for i in range(2)]
    assert np.abs(runs[0].actions - runs[1].actions).max() > 0.01
    assert runs[0].metadata["policy"]["pace"] == 0.7
    with pytest.raises(UserError, match="explorer policy"):
        generate_rollouts(GARDEN, "explorer", 1, tmp_path / "no", policy_kwargs={"pace": 2.0})

"""Scoring against a frozen suite simulates no reference again, and says the same."""

import pytest

from wmeval.errors import UserError
from wmeval.eval.pair import PairConfig, run_pair
from wmeval.generators.suites import build_suite, cases_of

ENV = "WMEval/BallRoller-v0"
CONFIG = PairConfig(
    env_id=ENV,
    candidate="frozen:fps=15",
    plan="left",
    scene_seeds=(0,),
    width=96,
    height=64,
    env_kwargs={"max_steps": 40},
)

pytestmark = pytest.mark.gl


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    out = tmp_path_factory.mktemp("suite") / "suite"
    cases = cases_of(
        ENV, ["left"], [0], view="static", width=96, height=64, env_kwargs={"max_steps": 40}
    )
    build_suite(cases, out, fps=(20,))
    return out


def values(results):
    return {row.key: (row.value, row.pixel_floor, row.identity) for row in results.rows}


@pytest.mark.parametrize("fps", [20, 15])
def test_a_suite_gives_the_same_numbers_without_simulating(fps, suite, tmp_path, monkeypatch):
    config = CONFIG.model_copy(update={"candidate": f"frozen:fps={fps}"})
    recorded = run_pair(config, tmp_path / "recorded")

    def never(*args, **kwargs):
        raise AssertionError("a reference was simulated")

    monkeypatch.setattr("wmeval.envs.record.record", never)
    stored = run_pair(config.model_copy(update={"suite": str(suite)}), tmp_path / "stored")
    assert values(stored) == values(recorded)
    assert stored.suite_sha256 == recorded.suite_sha256
    assert len(stored.config["suite_content"]) == 64


def test_a_suite_without_the_plan_names_what_it_has(suite, tmp_path):
    config = CONFIG.model_copy(update={"suite": str(suite), "plan": "right"})
    with pytest.raises(UserError, match="BallRoller-left-s000"):
        run_pair(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()

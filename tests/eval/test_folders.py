"""Whose a run's folder is."""

import pytest

from wmeval.errors import UserError
from wmeval.eval.folders import settle
from wmeval.eval.results import PairConfig

JOB = PairConfig(env_id="WMEval/BallRoller-v0", candidate="frozen:fps=8", plan="forward")


@pytest.mark.parametrize("name", ["thesis.tex", "cases/notes.txt"])
def test_overwriting_forgets_a_comparison_and_nothing_else(tmp_path, name):
    other = JOB.model_copy(update={"plan": "left"})
    settle(tmp_path / "out", JOB, overwrite=False)
    with pytest.raises(UserError, match="plan is 'forward' there"):
        settle(tmp_path / "out", other, overwrite=False)
    settle(tmp_path / "out", other, overwrite=True)
    (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "out" / name).write_text("mine")
    with pytest.raises(UserError, match=rf"wmeval did not write here \({name}\)"):
        settle(tmp_path / "out", JOB, overwrite=True)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "config.yaml").write_text("mine: 1\n")
    with pytest.raises(UserError, match="wmeval did not write here"):
        settle(tmp_path / "project", JOB, overwrite=True)
    assert (tmp_path / "out" / name).exists()
    assert (tmp_path / "project" / "config.yaml").read_text() == "mine: 1\n"

"""One named trajectory through `wmeval rollout` and `wmeval pair`."""

from wmeval.datasets.rollout import read
from wmeval.datasets.validate import validate
from wmeval.envs import ENVIRONMENTS, short_name
from wmeval.envs.plans import load_plan, plans_of
from wmeval.eval.pair import PairConfig, run_pairs
from wmeval.generators.rollout_folder import RolloutConfig, make_rollout_folder

ALL = [(short_name(env_id), plan) for env_id in ENVIRONMENTS for plan in plans_of(env_id)]
SIZE = {"width": 96, "height": 64}


def roll(folder, name, plan, steps):
    """Record, read back, check."""
    config = RolloutConfig(env_id=name, plan=plan, max_steps=steps, **SIZE)
    done = make_rollout_folder(config, folder)
    assert validate(folder) == []
    assert done.summary["steps"] == steps
    assert done.summary["frames"] >= 2
    rollout = read(folder / "rollout.h5")
    told = rollout.metadata["camera_motion"]
    wanted = load_plan(name, plan).reset_options.get("camera_motion")
    assert (told or {}).get("regime") == wanted
    poses = rollout.log.cameras.T_world_camera[
        :, rollout.log.cameras.camera(config.resolved().view)
    ]
    if wanted is not None:
        assert abs(poses[-1] - poses[0]).max() > 1e-3
    return rollout


def compare(folder, name, plan, steps, candidates=("twin", "frozen")):
    """Every number of the twin is the identity's; whatever is missing says why."""
    jobs = [
        PairConfig(
            env_id=name, candidate=c, plan=plan, env_kwargs={"max_steps": steps}, **SIZE
        )
        for c in candidates
    ]  # fmt: skip
    done = run_pairs(jobs, folder)
    for results in done:
        assert results.rows
        for row in results.rows:
            assert (row.value is None) == (row.status != "measured")
            assert row.value is not None or row.reason
    twin = done[0]
    for row in twin.rows:
        if row.source == "oracle" and row.value is not None:
            assert row.value == row.identity, row.key
            if row.metric in ("fde", "dtw", "rmse", "momentum_rmse", "energy_rmse", "rel_epe_dyn"):
                assert row.value == 0.0, row.key
    assert (folder / "report.html").is_file()
    return done

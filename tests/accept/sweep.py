"""Named trajectories through `wmeval rollout` and `wmeval pair`, and what comes of them."""

import json
from functools import cache

import numpy as np

from wmeval.clock import exact
from wmeval.datasets.rollout import read
from wmeval.datasets.validate import validate
from wmeval.envs import ENVIRONMENTS, environment_class, environment_row, short_name
from wmeval.envs.plans import load_plan, plans_of
from wmeval.eval.pair import PairConfig, run_pairs
from wmeval.generators.rollout_folder import RolloutConfig, make_rollout_folder

ALL = [(short_name(env_id), plan) for env_id in ENVIRONMENTS for plan in plans_of(env_id)]
SIZE = {"width": 96, "height": 64}
EVERY = 6
"""Control steps between two looks at an idle world."""
ACTING = {"BilliardGame": ("execute",)}
"""Channels by which a scene is moved, where others only set up."""
DIFFERS = 1e-3
"""[m], or of a rotation's or a light's entries: less is no difference that one could see."""


@cache
def acting(name, plan):
    """(T,) True where a plan moves something."""
    row = environment_row(name)
    card = load_plan(name, plan)
    actions = card.actions(row.channels, row.control_period, branches=row.branches)
    channels = ACTING.get(name, row.channels)
    return actions[:, [row.channels.index(c) for c in channels]].any(axis=1)


def turns(name, plan):
    """Whether a plan's regime turns the camera."""
    return "camera_motion" in load_plan(name, plan).reset_options


def length(name, plan):
    """Control steps of a whole plan."""
    return round(exact(load_plan(name, plan).duration) / environment_row(name).control_period)


def begins(name, plan):
    """The first control step in which a plan does anything: acts, or turns the camera."""
    return 0 if turns(name, plan) else int(np.argmax(acting(name, plan)))


def shown(log):
    """What a row of a log shows: poses of bodies and cameras, the light; (N, ...) each."""
    return (
        log.state.position,
        log.state.quaternion_wxyz,
        log.cameras.T_world_camera,
        log.lights.sun_direction,
    )


@cache
def idle(name, options, steps):
    """What a scene shows every `EVERY` steps when nobody acts and no regime turns the camera."""
    env = environment_class(name)(observation_mode="vector", action_mode="flat", max_steps=steps)
    env.reset(seed=0, options=json.loads(options))
    seen = [shown(env.log)]
    for step in range(1, steps + 1):
        env.step(np.zeros(len(env.channels), np.float32))
        if step % EVERY == 0:
            seen.append(shown(env.log))
    env.close()
    return tuple(np.concatenate(column) for column in zip(*seen, strict=True))


def apart(one, other):
    """Largest difference between two stretches of what is shown."""
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def check_done(rollout, name, plan, steps):
    """The recorded world is another than the idle one, unless the plan is to rest."""
    given = load_plan(name, plan).reset_options
    options = {k: v for k, v in given.items() if k not in ("camera_motion", "view")}
    still = idle(name, json.dumps(options), steps)
    period = rollout.log.state.substep[-1] // steps
    rows = [rollout.log.state.row_of_substep(k * period) for k in range(0, steps + 1, EVERY)]
    played = shown(rollout.log.rows(np.array(rows)))
    if turns(name, plan) or acting(name, plan)[:steps].any():
        assert apart(played, still) > DIFFERS
    else:
        assert apart(played, still) == 0
    # A scene without actions moves by itself.
    if not environment_row(name).channels:
        assert max(float(np.ptp(array, axis=0).max()) for array in played) > DIFFERS


def roll(folder, name, plan, steps, fps="24"):
    """Record, read back, check."""
    config = RolloutConfig(env_id=name, plan=plan, max_steps=steps, fps=fps, **SIZE)
    done = make_rollout_folder(config, folder)
    assert validate(folder) == []
    assert done.summary["steps"] == steps
    assert done.summary["frames"] >= 2
    rollout = read(folder / "rollout.h5")
    told = rollout.metadata["camera_motion"]
    wanted = load_plan(name, plan).reset_options.get("camera_motion")
    assert (told or {}).get("regime") == wanted
    check_done(rollout, name, plan, steps)
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

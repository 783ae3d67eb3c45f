"""The one recording loop: an environment, somebody who acts, and everything that happens."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from wmeval.clock import CandidateClock, exact
from wmeval.conventions import intrinsics
from wmeval.datasets.rollout import Frames, Rollout
from wmeval.envs import make_environment
from wmeval.envs.base import Time, WorldEnv, motion_record, rendered_layers
from wmeval.envs.policies import (
    CLOSED_LOOP,
    PlanPolicy,
    Policy,
    ReplayPolicy,
    Task,
    make_policy,
)
from wmeval.errors import UserError
from wmeval.layers import LAYERS
from wmeval.plan import ActionPlan
from wmeval.records import WorldLog

IN_MEMORY_BYTES = 256 * 2**20
"""Pictures beyond this lie in an unnamed temporary file instead of memory."""


def record(
    env: gym.Env[Any, Any],
    *,
    plan: ActionPlan | None = None,
    policy: Policy | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    layers: str | Sequence[str] = (),
    view: str | None = None,
    width: int | None = None,
    height: int | None = None,
    fps: Time | None = None,
    frame_times: Sequence[Time] | None = None,
    max_steps: int | None = None,
) -> Rollout:
    """Play one episode and keep all: every substep's state, contacts, events, cameras, lights.

    The episode ends with the plan or policy, with the environment's own end, or after ``max_steps``
    actions. Recording changes nothing: the states are those of an unrecorded episode, bit for bit.

    Args:
        env: one of the environments; wrappers are looked through.
        plan: what is done; or
        policy: who acts.
        seed: of the scene; None draws one.
        options: reset options, over the plan's own.
        layers: pictures to draw, of `wmeval.layers.RENDERED`; none by default.
        view: camera of the pictures; default: the reset's.
        width: [px]; default: the environment's.
        height: [px]; default: the environment's.
        fps: exact frame rate, at most 1 / dt; frame j lies at j / fps and shows state
            floor(j / (fps dt) + 1/2). Default: one frame a control period.
        frame_times: ascending exact times [s] instead of a rate, by the same rule.
        max_steps: most actions to take.

    Returns:
        The rollout; frames that would show a state after the last are left out.

    Raises:
        UserError: neither or both of plan and policy, or anything that the environment refuses.
    """
    base = getattr(env, "unwrapped", env)
    if not isinstance(base, WorldEnv):
        raise UserError(f"record: {base} is not an environment of wmeval")
    if plan is not None and not isinstance(plan, ActionPlan):
        raise UserError(f"record: plan = {plan!r}: give an ActionPlan, such as load_plan's")
    if max_steps is not None and (not isinstance(max_steps, int) or max_steps < 1):
        raise UserError(f"record: max_steps = {max_steps!r}: give a whole number, at least 1")
    if (plan is None) == (policy is None):
        raise UserError("record: give a plan or a policy, one of them")
    if fps is not None and frame_times is not None:
        raise UserError("record: give fps or frame_times, not both")
    names = rendered_layers(layers) if layers else ()
    actor = PlanPolicy(plan) if plan is not None else policy
    assert actor is not None
    chosen = {**(plan.reset_options if plan is not None else {}), **(options or {})}
    grid = _Grid(base, fps, frame_times)
    size = base.picture_size(width, height)
    episode = _play(base, actor, seed, chosen, max_steps, view)
    frames = _draw(base, episode.log, grid, names, view, size) if names else None
    metadata = _metadata(base, plan, actor, names)
    metadata["record"] = {
        "layers": list(names),
        "view": view,
        "width": width,
        "height": height,
        "fps": None if fps is None else str(exact(fps)),
        "frame_times": None if frame_times is None else [str(exact(t)) for t in frame_times],
        "max_steps": max_steps,
    }
    return Rollout(
        scene=base.scene,
        meshes=base.meshes,
        log=episode.log,
        actions=base.actions,
        rewards=np.array(episode.rewards, np.float64),
        terminated=np.array(episode.terminated, np.bool_),
        truncated=np.array(episode.truncated, np.bool_),
        observations=np.array(episode.observations, np.float32),
        frames=frames,
        metadata=metadata,
    )


def frames_of(
    env: WorldEnv,
    rollout: Rollout,
    *,
    frame_times: Sequence[Time],
    layers: str | Sequence[str],
    view: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Frames:
    """Pictures of a recorded episode on another grid of times: drawn, nothing is simulated.

    Args:
        env: reset to the episode's scene.
        rollout: with every substep's state.
        frame_times: ascending exact times [s]; times after the last state are left out.
        layers: pictures to draw, of `wmeval.layers.RENDERED`.
        view: camera; default: the reset's.
        width: [px]; default: the environment's.
        height: [px]; default: the environment's.

    Raises:
        UserError: the environment stands at another scene than the rollout's.
    """
    if env.scene.content_hash() != rollout.scene.content_hash():
        raise UserError(
            f"{env.ID}: this version makes another scene than the recorded one; record it anew"
        )
    grid = _Grid(env, None, frame_times)
    size = env.picture_size(width, height)
    return _draw(env, rollout.log, grid, rendered_layers(layers), view, size)


def remake(metadata: Mapping[str, Any], *, actions: NDArray[Any] | None = None) -> Rollout:
    """Make a rollout again from its metadata; equal versions give equal bits.

    Args:
        metadata: of a `Rollout`.
        actions: the rollout's actions (T, A); needed where a policy of the user's own acted.

    Raises:
        UserError: the metadata lack something, or name a policy that cannot be made again without
            ``actions``.
    """
    missing = [
        k for k in ("env_id", "env_kwargs", "seed", "options", "record") if k not in metadata
    ]
    if missing:
        raise UserError(f"remake: the metadata lack {', '.join(missing)}")
    plan = metadata.get("plan")
    settings = dict(metadata["record"])
    policy: Policy | None = None
    if actions is not None:
        policy, plan = ReplayPolicy(actions), None
    elif plan is None:
        policy = _policy_again(metadata.get("policy", {}))
    env = make_environment(metadata["env_id"], **metadata["env_kwargs"])
    try:
        return record(
            env,
            plan=None if plan is None else ActionPlan.read(plan),
            policy=policy,
            seed=int(metadata["seed"]),
            options=metadata["options"],
            **settings,
        )
    finally:
        env.close()


# --- parts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Episode:
    log: WorldLog
    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    observations: list[NDArray[np.float32]]


class _Grid:
    """Which state each frame shows."""

    def __init__(self, env: WorldEnv, fps: Time | None, frame_times: Sequence[Time] | None) -> None:
        self._dt = env.clock.dt
        self._times: tuple[Fraction, ...] | None = None
        try:
            if frame_times is not None:
                self._times = tuple(exact(t) for t in frame_times)
            else:
                rate = 1 / env.clock.control_period if fps is None else env.clock.frame_rate(fps)
                self._clock = CandidateClock(rate, 1)
        except ValueError as error:
            raise UserError(f"record: {error}") from error
        times = self._times or ()
        if any(b <= a for a, b in pairwise(times)) or (times and times[0] < 0):
            raise UserError("record: frame_times must ascend from 0 on")

    def frames(self, last_state: int) -> tuple[tuple[Fraction, ...], NDArray[np.int64]]:
        """Times of the frames and the states that they show, up to the last state."""
        times: list[Fraction] = []
        states: list[int] = []
        j = 0
        while self._times is None or j < len(self._times):
            if self._times is None:
                time, state = self._clock.frame_time(j), self._clock.state_of_frame(j, self._dt)
            else:
                time = self._times[j]
                state = int((time / self._dt + Fraction(1, 2)).__floor__())
            if state > last_state:
                break
            times.append(time)
            states.append(state)
            j += 1
        return tuple(times), np.array(states, np.int64)


def _play(
    env: WorldEnv,
    actor: Policy,
    seed: int | None,
    options: dict[str, Any],
    max_steps: int | None,
    view: str | None,
) -> _Episode:
    with env.keeping(), env.unpictured(getattr(actor, "observes", "") == "vector"):
        observation, info = env.reset(seed=seed, options=options)
        env.camera_index(view)  # Refused before the episode is played, not after.
        episode = _Episode(env.log, [], [], [], [env.vector])
        logs = [env.step_log]
        limit = env.max_steps if max_steps is None else min(max_steps, env.max_steps)
        actor.begin(Task.of(env, limit))
        for step in range(limit):
            action = actor.act(step, observation, info)
            if action is None:
                break
            observation, reward, terminated, truncated, info = env.step(action)
            logs.append(env.step_log)
            episode.observations.append(env.vector)
            episode.rewards.append(reward)
            episode.terminated.append(terminated)
            episode.truncated.append(truncated)
            if terminated or truncated:
                break
    return _Episode(
        WorldLog.concatenate(logs),
        episode.rewards,
        episode.terminated,
        episode.truncated,
        episode.observations,
    )


def _draw(
    env: WorldEnv,
    log: WorldLog,
    grid: _Grid,
    names: tuple[str, ...],
    view: str | None,
    size: tuple[int, int],
) -> Frames:
    width, height = size
    camera = env.camera_index(view)
    times, rows = grid.frames(int(log.state.substep[-1]))
    stores = {
        name: _store((len(rows), *LAYERS[name].shape(height, width)), LAYERS[name].dtype)
        for name in names
    }
    for j, row in enumerate(rows.tolist()):
        drawn = env.draw(names, width=width, height=height, view=view, log=log, row=row)
        for name, store in stores.items():
            store[j] = drawn[name]
    K = np.array(
        [intrinsics(float(log.cameras.fov_y[row, camera]), width, height) for row in rows.tolist()]
    ).reshape(len(rows), 3, 3)
    return Frames(env.scene.cameras[camera].name, rows, times, K, stores)


def _store(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size <= IN_MEMORY_BYTES:
        return np.empty(shape, dtype)
    # Nameless at once, so that nothing is left behind; reserved at once, so that a full disk is an
    # error here and not a crash in the middle.
    with tempfile.TemporaryFile() as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{size / 2**30:.1f} GiB of pictures do not fit into {tempfile.gettempdir()}: "
                "record fewer layers or smaller pictures, or set TMPDIR",
            ) from error
        return np.memmap(file, dtype=dtype, mode="r+", shape=shape)


def _metadata(
    env: WorldEnv, plan: ActionPlan | None, actor: Policy, layers: tuple[str, ...]
) -> dict[str, Any]:
    import wmeval
    from wmeval.sim.engines import engine_info
    from wmeval.sim.render.shadows import mask_bits

    info = engine_info(env.engine)
    return {
        "env_id": env.ID,
        "env_kwargs": env.settings,
        "seed": env.seed,
        "options": env.options,
        "plan": None if plan is None else plan.model_dump(mode="json"),
        "policy": actor.describe(),
        "channels": list(env.channels),
        "engine": info.name,
        "engine_version": info.version,
        "engine_config": env.world_spec.config.model_dump(mode="json"),
        "renderer": env.renderer if layers else None,
        "renderer_version": env.renderer_version if layers else None,
        **({"renderer_about": about} if layers and (about := env.renderer_about) else {}),
        "dt": str(env.clock.dt),
        "control_period": str(env.clock.control_period),
        "camera_motion": None
        if env.camera_motion is None
        else motion_record(
            env.camera_motion.regime, env.camera_motion.camera, env.camera_motion.in_place
        ),
        "shape": env.shape() if env.world_spec.rules.chain != "none" else None,
        "wmeval": wmeval.__version__,
        **env.facts,
        **({"shadow_bits": mask_bits(env.scene)} if "shadow_masks" in layers else {}),
        # An empty table would read as "nothing touched".
        **({} if info.contact_impulses else {"contacts": f"not told by engine {info.name}"}),
    }


def _policy_again(described: Mapping[str, Any]) -> Policy:
    arguments = dict(described)
    if (kind := arguments.pop("kind", None)) in CLOSED_LOOP:
        return make_policy(str(kind), **arguments)
    raise UserError(
        f"remake: policy {described.get('kind')!r} cannot be made again from its description: "
        "give the rollout's actions"
    )

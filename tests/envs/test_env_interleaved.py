"""Worlds of different scenes in one process do not touch each other's bits."""

from __future__ import annotations

import numpy as np
import pytest

from wmeval.envs import make_environment


def played(name: str, beside: str | None, steps: int = 130) -> str:
    """Digest of an episode, with another scene's episode stepped in turn with it."""
    env = make_environment(name, info_level="state", action_mode="flat")
    other = make_environment(beside, action_mode="flat") if beside else None
    env.reset(seed=1)
    if other is not None:
        other.reset(seed=1)
    push = np.zeros(env.action_space.shape, np.float32)
    push[:1] = 1.0
    still = np.zeros(other.action_space.shape, np.float32) if other is not None else None
    for _ in range(steps):
        env.step(push)
        if other is not None:
            other.step(still)
    digest = env.log.state.sha256()
    env.close()
    if other is not None:
        other.close()
    return digest


@pytest.mark.parametrize("beside", ["ChessBoard", "RigidBench/DropIntoCluster-v0"])
def test_another_scene_in_turn_changes_no_bit(beside: str) -> None:
    steps = 45 if beside.startswith("RigidBench") else 130
    alone = played("BeamDomino", None, steps)
    assert played("BeamDomino", beside, steps) == alone


def test_a_scene_played_before_changes_no_bit() -> None:
    alone = played("BeamDomino", None)
    played("ChessBoard", None, 5)
    assert played("BeamDomino", None) == alone

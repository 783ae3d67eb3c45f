"""The physics modes on the same samples, and how far apart they come.

All modes fall alike until the first touch. Bullet with its defaults then bounces a ball as Blender
does, to a millimetre: it is the same solver. Bullet as we correct it bounces higher or
lower, as the phase of the impact has it, and lets balls rest on the surface, not a collision margin
above it. Where hulls tumble or several bodies meet, the modes part by centimetres within a second:
neither is the other's error bar.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from blender_here import needs_bpy, take_bpy_away, without_bpy
from plain_setting import CARDS, row, spec_of

from wmeval.envs.rigidbench.sample import ACTIVE, draw_sample
from wmeval.records import WorldLog
from wmeval.sim.protocol import Probe
from wmeval.sim.world import LocalWorld

TASKS = tuple(CARDS.splits.tasks)
BLENDER = pytest.param("blender", marks=[without_bpy, pytest.mark.accept])


def paths(task: str, seed: int, physics: str, until: int = 960) -> np.ndarray:
    """Positions (substeps, actors, 3) [m] of what moves."""
    x = draw_sample(row(task, seed), CARDS, physics=physics)
    world = LocalWorld(spec_of(x))
    log = WorldLog.concatenate([world.reset(), world.advance((), until, Probe("substeps"))])
    world.close()
    return np.asarray(log.state.position[:, list(x.scene.indices(ACTIVE))])


def apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Largest distance (substeps,) [m] of an actor from itself."""
    return np.asarray(np.linalg.norm(a - b, axis=2).max(axis=1))


@pytest.mark.parametrize("other", ["bullet-faithful", BLENDER])
@pytest.mark.parametrize("task", ["free_fall", "bounce"])
def test_modes_fall_alike_until_the_first_touch(task: str, other: str) -> None:
    for seed in (1, 2):
        gap = apart(paths(task, seed, "bullet", 210), paths(task, seed, other, 210))
        assert gap.max() < (1e-9 if other != "blender" else 5e-5)


@pytest.mark.parametrize("other", ["bullet-faithful", BLENDER])
@pytest.mark.parametrize("task", TASKS)
def test_modes_part_by_centimetres_after_contacts(task: str, other: str) -> None:
    for seed in (1, 2):
        gap = apart(paths(task, seed, "bullet"), paths(task, seed, other))
        assert gap[240] < 0.03
        # It settles a margin deeper, at the least; and nothing is flung away.
        assert 5e-4 < gap.max() < 0.6


@needs_bpy
def test_bullet_with_its_defaults_bounces_balls_as_blender_does() -> None:
    for seed in range(1, 6):
        faithful, blender = (paths("bounce", seed, mode) for mode in ("bullet-faithful", "blender"))
        gap = apart(faithful, blender)
        # Alike over the first bounce; then single precision grows with each touch, sideways.
        assert gap[:350].max() < 1e-5
        assert gap.max() < 0.01
        assert abs(faithful[-1, 0, 2] - blender[-1, 0, 2]) < 1e-4


def test_the_table_tells_each_pair_of_modes_or_why_not(monkeypatch, capsys, tmp_path) -> None:
    take_bpy_away(monkeypatch, tmp_path)
    monkeypatch.setattr("sys.argv", ["physics_modes", "--clips", "1"])
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    importlib.import_module("benchmarks.physics_modes").main()
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("bullet - bullet-faithful") for line in lines) == 2 * len(TASKS)
    assert [line.split(": ")[0].split() for line in lines[-2:]] == [
        ["bullet", "-", "blender", "not_run"],
        ["bullet-faithful", "-", "blender", "not_run"],
    ]
    for line in lines[1 : 1 + 2 * len(TASKS)]:
        median, largest = (float(word) for word in line.split()[-2:])
        assert 0 < median == largest < 600

"""Sets made on a Ray cluster are those made here, whatever dies on the way."""

import hashlib
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from wmeval.datasets.set_runs import merge_set
from wmeval.datasets.validate import validate
from wmeval.errors import UserError
from wmeval.generators import rollouts
from wmeval.generators.making import make_set, needs_of
from wmeval.generators.rollouts import generate_rollouts
from wmeval.jobs.executors import Needs
from wmeval.jobs.ray_executor import RayExecutor

ray = pytest.importorskip("ray")
ENV = "WMEval/BallRoller-v0"
EPISODE = rollouts._episode
MAKE = partial(
    generate_rollouts, ENV, "random", 6, size=(48, 32), layers="depth,ids", max_steps=20, workers=0
)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*")
        if p.is_file()
    }


def dies_once(mark: Path, at: int, job, url, episode):
    """An episode whose process is killed, the first time, between its rollout and its video."""
    if episode == at and not mark.exists():
        mark.touch()
        rollouts.write_film = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    return EPISODE(job, url, episode)


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({}, Needs()),
        ({"renderer": "raster", "renderer_options": {"device": "gpu"}}, Needs()),
        ({"renderer": "cycles"}, Needs()),
        ({"renderer": "cycles", "renderer_options": {"device": "cpu"}}, Needs()),
        ({"renderer": "cycles", "renderer_options": {"device": "gpu"}}, Needs(gpus=1)),
        ({"renderer": "cycles", "renderer_options": "wrong"}, Needs()),
    ],
)
def test_only_what_fills_a_gpu_asks_for_one(settings, needs):
    assert needs_of(settings) == needs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"executor": "slurm"}, "unknown executor 'slurm': choose from local, ray"),
        ({"executor": "ray", "workers": 0}, "needs workers >= 1"),
        ({"executor": "ray", "out": "memory://set"}, "memory of this process"),
        ({"ray_address": "10.0.0.1:6379"}, "for executor ray"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(tmp_path, arguments, message):
    with pytest.raises(UserError, match=message):
        MAKE(**{"out": tmp_path / "set", **arguments})
    assert not (tmp_path / "set").exists()


@pytest.mark.accept
@pytest.mark.gl
def test_a_killed_worker_loses_nothing_and_changes_no_byte(tmp_path, monkeypatch):
    """Shards, a kill that is retried, one that a rerun mends, and a merge: all as made here."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert MAKE(tmp_path / "here").complete
    expected = digests(tmp_path / "here")
    on_ray = partial(MAKE, tmp_path / "set", executor="ray", workers=2)
    with RayExecutor(workers=2) as cluster:
        assert cluster.map(abs, [-1])[0].value == 1
        # Who is connected to a cluster stays so: the next runs use it.
        with monkeypatch.context() as patch:
            patch.setattr(rollouts, "make_set", partial(make_set, retries=1))
            patch.setattr(rollouts, "_episode", partial(dies_once, tmp_path / "first", 2))
            first = on_ray(shard="0/2")
        assert (tmp_path / "first").exists()
        assert (first.made, first.failed, first.complete) == ((0, 2, 4), {}, False)

        # Without a retry it is one failed sample, and the next run makes it.
        with monkeypatch.context() as patch:
            patch.setattr(rollouts, "_episode", partial(dies_once, tmp_path / "second", 3))
            second = on_ray(shard="1/2")
        assert ray.is_initialized()
    assert not ray.is_initialized()
    assert (second.made, set(second.failed)) == ((1, 5), {3})
    assert "died (killed, or crashed)" in next(iter(second.failed.values()))
    with pytest.raises(UserError, match="1 of 6 episodes are missing"):
        merge_set(tmp_path / "set")
    assert MAKE(tmp_path / "set", shard="1/2").made == (3,)
    merge_set(tmp_path / "set")
    assert digests(tmp_path / "set") == expected
    assert validate(tmp_path / "set") == []
    # All is there: no cluster is started for nothing.
    assert on_ray().reused == tuple(range(6))
    assert not ray.is_initialized()

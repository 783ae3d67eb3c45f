"""Sets made on a Ray cluster are those made here, whatever dies on the way."""

import hashlib
import os
import signal
import threading
import time
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
MAKE = partial(
    generate_rollouts, ENV, "random", 6, size=(48, 32), layers="depth,ids", max_steps=20, workers=0
)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*")
        if p.is_file()
    }


def units_at_work() -> list[int]:
    """Processes below this one that run a unit of Ray: they carry its name while they do."""
    parents, named = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            pid, stat = int(folder.name), (folder / "stat").read_text()
            parents[pid] = int(stat.rsplit(")", 1)[1].split()[1])
            if (folder / "cmdline").read_bytes().startswith(b"ray::_Unit.run"):
                named.append(pid)
        except OSError:
            continue
    # Driver, raylet, worker.
    return [pid for pid in named if parents.get(parents[pid]) == os.getpid()]


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
@pytest.mark.timeout(600)
@pytest.mark.gl
def test_a_killed_worker_loses_nothing_and_changes_no_byte(tmp_path, monkeypatch):
    """Shards, a kill that is retried, one that a rerun mends, and a merge: all as made here."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert MAKE(tmp_path / "here").complete
    expected = digests(tmp_path / "here")
    killed: list[int] = []

    def kill_one():
        deadline = time.monotonic() + 60
        while not killed and time.monotonic() < deadline:
            killed.extend(units_at_work()[:1])
            time.sleep(0.01)
        os.kill(killed[0], signal.SIGKILL)

    def after_the_first(done, asked, outcome):
        if done == 1:
            threading.Thread(target=kill_one, daemon=True).start()

    on_ray = partial(MAKE, tmp_path / "set", executor="ray", workers=2)
    with RayExecutor(workers=2) as cluster:
        assert cluster.map(abs, [-1])[0].value == 1
        # Who is connected to a cluster stays so: the next runs use it.
        with monkeypatch.context() as patch:
            patch.setattr(rollouts, "make_set", partial(make_set, retries=1))
            first = on_ray(shard="0/2", progress=after_the_first)
        assert killed
        assert (first.made, first.failed, first.complete) == ((0, 2, 4), {}, False)

        # Without a retry it is one failed sample, and the next run makes it.
        killed.clear()
        second = on_ray(shard="1/2", progress=after_the_first)
        assert killed
        assert ray.is_initialized()
    assert not ray.is_initialized()
    assert len(second.failed) == 1
    assert "died (killed, or crashed)" in next(iter(second.failed.values()))
    with pytest.raises(UserError, match="1 of 6 episodes are missing"):
        merge_set(tmp_path / "set")
    assert MAKE(tmp_path / "set", shard="1/2").made == tuple(second.failed)
    merge_set(tmp_path / "set")
    assert digests(tmp_path / "set") == expected
    assert validate(tmp_path / "set") == []
    # All is there: no cluster is started for nothing.
    assert on_ray().reused == tuple(range(6))
    assert not ray.is_initialized()

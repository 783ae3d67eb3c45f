"""Sets of rollouts: the same bytes by any way, complete or resumable, never of evaluation seeds."""

import hashlib
import resource
from functools import partial
from pathlib import Path

import fsspec
import numpy as np
import pytest

from wmeval.datasets.set_runs import merge_set
from wmeval.datasets.sets import read_set
from wmeval.datasets.validate import validate
from wmeval.envs.plans import plans_of
from wmeval.errors import UserError
from wmeval.generators import rollouts
from wmeval.generators.rollouts import generate_rollouts
from wmeval.jobs.atomic import claim

ENV = "WMEval/BallRoller-v0"
BARE = partial(generate_rollouts, ENV, video=False, max_steps=8, workers=0)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*")
        if p.is_file()
    }


def test_the_way_does_not_change_a_byte(tmp_path):
    """One process, two processes, shards merged, and a run that was interrupted."""
    assert BARE("random", 4, tmp_path / "one").complete
    expected = digests(tmp_path / "one")
    assert len(expected) == 4 + 4 + 2
    assert BARE("random", 4, tmp_path / "two", workers=2).made == (0, 1, 2, 3)
    assert digests(tmp_path / "two") == expected

    first = BARE("random", 4, tmp_path / "shards", shard="0/2")
    assert first.made == (0, 2)
    assert not first.complete
    with pytest.raises(UserError, match=r"2 of 4 episodes are missing or damaged \(1, 3\)"):
        merge_set(tmp_path / "shards")
    assert BARE("random", 4, tmp_path / "shards", shard=(1, 2)).complete
    assert digests(tmp_path / "shards") == expected

    BARE("random", 4, tmp_path / "part", shard="1/2")
    BARE("random", 4, tmp_path / "gathered", shard="0/2")
    merge_set(tmp_path / "gathered", [tmp_path / "part"])
    assert digests(tmp_path / "gathered") == expected

    # A kill after a sample but before its row: the sample does not count and is made again.
    (tmp_path / "two" / "rows" / "000002.json").unlink()
    (tmp_path / "two" / "manifest.json").unlink()
    (tmp_path / "two" / "episodes" / "000002.h5").write_bytes(b"half")
    again = BARE("random", 4, tmp_path / "two")
    assert (again.made, again.reused) == ((2,), (0, 1, 3))
    assert digests(tmp_path / "two") == expected
    assert validate(tmp_path / "two") == []


def test_samples_are_what_they_say(tmp_path):
    BARE("random", 3, tmp_path / "set", seed0=7)
    made = read_set(tmp_path / "set")
    assert len(made) == 3
    for row, rollout in zip(made.rows, made, strict=True):
        assert row["rollout_sha256"] == rollout.sha256()
        assert row["seed"] == rollout.metadata["seed"]
        assert row["steps"] == len(rollout) == 8
        assert np.abs(rollout.actions).max() <= 1
    assert [row["seed"] for row in made.rows] == [7, 8, 9]
    assert len({row["rollout_sha256"] for row in made.rows}) == 3


def test_plans_are_taken_in_turn_and_replays_repeat_the_source(tmp_path):
    BARE("plan", 3, tmp_path / "plans", plan=("forward", "left"))
    planned = read_set(tmp_path / "plans")
    assert [row["plan"] for row in planned.rows] == ["forward", "left", "forward"]
    BARE("replay", 3, tmp_path / "again", source=tmp_path / "plans")
    for a, b in zip(planned, read_set(tmp_path / "again"), strict=True):
        assert a.sha256() == b.sha256()
    heavier = BARE(
        "replay",
        1,
        tmp_path / "other",
        source=tmp_path / "plans",
        env_kwargs={"perturb": "gravity=0.5"},
    )
    assert heavier.complete
    other = read_set(tmp_path / "other")[0]
    assert np.array_equal(other.actions, planned[0].actions)
    assert other.sha256() != planned[0].sha256()
    with pytest.raises(UserError, match="holds 3 rollouts, 4"):
        BARE("replay", 4, tmp_path / "more", source=tmp_path / "plans")
    with pytest.raises(UserError, match="cannot replay in WMEval/BeamDomino-v0"):
        generate_rollouts("BeamDomino", "replay", 1, tmp_path / "b", source=tmp_path / "plans")


def test_evaluation_seeds_are_refused(tmp_path):
    with pytest.raises(UserError, match="evaluation"):
        BARE("random", 1, tmp_path / "set", options={"seed_space": "evaluation"})
    assert not (tmp_path / "set").exists()


def test_other_settings_are_refused_unless_overwritten(tmp_path):
    BARE("random", 2, tmp_path / "set")
    with pytest.raises(UserError, match="seed0: 0 there, 5 asked"):
        BARE("random", 2, tmp_path / "set", seed0=5)
    assert BARE("random", 1, tmp_path / "set", seed0=5, overwrite=True).complete
    assert validate(tmp_path / "set") == []
    assert len(list((tmp_path / "set" / "episodes").iterdir())) == 1


@pytest.mark.parametrize("name", ["thesis.tex", "episodes/notes.txt"])
def test_files_of_others_are_never_touched(tmp_path, name):
    BARE("random", 1, tmp_path / "set")
    for out in (tmp_path / "set", tmp_path / "mine"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
        with pytest.raises(UserError, match=rf"wmeval did not write here \({name}\)"):
            BARE("random", 1, out, overwrite=True)
        assert (out / name).read_text() == "mine"
    with pytest.raises(UserError, match=r"wmeval did not write here"):
        BARE("random", 1, tmp_path / "mine")
    make = partial(BARE, "random", 1, tmp_path / "zarr", backend="zarr", max_steps=2)
    make()
    note = tmp_path / "zarr" / "episodes" / "000000.zarr" / "notes.txt"
    note.write_text("mine")
    (note.parent / "zarr.json").unlink()
    with pytest.raises(UserError, match=r"wmeval did not write here \(notes.txt\)"):
        make()
    assert note.read_text() == "mine"
    assert BARE("random", 1, tmp_path / "set").reused == (0,)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))


def lose(path):
    path.unlink()


@pytest.mark.parametrize(
    ("backend", "name", "damage", "again"),
    [
        ("hdf5", "episodes/000001.h5", flip, (1,)),
        ("hdf5", "episodes/000001.h5", lose, (1,)),
        ("hdf5", "rows/000001.json", flip, (1,)),
        ("hdf5", "rows/000001.json", lose, (1,)),
        ("hdf5", "manifest.json", flip, ()),
        ("hdf5", "manifest.json", lose, ()),
        ("hdf5", "set.json", flip, ()),
        ("hdf5", "set.json", lose, ()),
        ("zarr", "episodes/000001.zarr/manifest.json", flip, (1,)),
        ("zarr", "episodes/000001.zarr/zarr.json", lose, (1,)),
        ("zarr", "episodes/000001.zarr/step/action/c.0.0", flip, (1,)),
    ],
)
def test_a_run_on_a_damaged_set_mends_it(tmp_path, backend, name, damage, again):
    make = partial(BARE, "random", 2, tmp_path / "set", backend=backend, max_steps=2)
    make()
    expected = digests(tmp_path / "set")
    damage(tmp_path / "set" / name)
    if (name, damage) != ("manifest.json", lose):  # without it a set is one that is being made
        problems = validate(tmp_path / "set")
        assert problems
        assert all("run" in p and "again" in p for p in problems)
    made = make()
    assert (made.made, made.complete) == (again, True)
    assert digests(tmp_path / "set") == expected


def test_a_set_that_nothing_describes_is_made_anew_only_when_asked(tmp_path):
    make = partial(BARE, "random", 2, tmp_path / "set", max_steps=2)
    make()
    expected = digests(tmp_path / "set")
    for name in ("set.json", "manifest.json"):
        flip(tmp_path / "set" / name)
    with pytest.raises(UserError, match=r"set.json: missing or damaged, .* --overwrite"):
        make()
    assert make(overwrite=True).made == (0, 1)
    assert digests(tmp_path / "set") == expected


def test_a_set_grows_and_keeps_what_it_has(tmp_path):
    make = partial(BARE, "random", max_steps=2)
    make(3, tmp_path / "set")
    made = make(5, tmp_path / "set")
    assert (made.made, made.reused, made.complete) == ((3, 4), (0, 1, 2), True)
    make(5, tmp_path / "whole")
    assert digests(tmp_path / "set") == digests(tmp_path / "whole")
    with pytest.raises(UserError, match="episodes: 5 there, 3 asked"):
        make(3, tmp_path / "set")


def test_only_shards_write_in_one_place_at_once(tmp_path):
    make = partial(BARE, "random", 2, tmp_path / "set", max_steps=2)
    with claim(tmp_path / "set", shared=True):  # another shard is at work
        assert make(shard="0/2").made == (0,)
        for alone in (make, partial(merge_set, tmp_path / "set")):
            with pytest.raises(UserError, match="another run is writing here"):
                alone()
        with (
            claim(tmp_path / "set.1-of-2"),
            pytest.raises(UserError, match="another run is writing here"),
        ):
            make(shard="1/2")
    assert make().made == (1,)
    assert [p.name for p in tmp_path.iterdir()] == ["set"]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_full_disk_ends_the_run_with_one_error(tmp_path, workers):
    BARE("random", 1, tmp_path / "set", max_steps=2)
    expected = digests(tmp_path / "set")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    calls = []
    try:
        with pytest.raises(UserError, match=r"000001.h5: disk full"):
            BARE("random", 4, tmp_path / "set", max_steps=2, workers=workers,
                 progress=lambda *call: calls.append(call))  # fmt: skip
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert calls == [(1, 4, None)]
    assert {name: expected.get(name) for name in digests(tmp_path / "set")}.keys() == {
        "episodes/000000.h5", "rows/000000.json", "set.json"
    }  # fmt: skip
    assert BARE("random", 4, tmp_path / "set", max_steps=2).made == (1, 2, 3)


def test_what_is_wrong_for_every_episode_is_said_once(tmp_path):
    with pytest.raises(UserError, match="nonsense"):
        BARE("random", 3, tmp_path / "set", env_kwargs={"nonsense": 1})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"policy": "clever"},
            "unknown policy 'clever': choose from random, explorer, plan, replay",
        ),
        ({"policy": "plan", "plan": "upwards"}, "no plan 'upwards'"),
        ({"policy": "random", "plan": "forward"}, "takes no plan"),
        ({"policy": "replay"}, "needs source"),
        ({"env_id": "WMEval/Nowhere-v0"}, "unknown environment"),
        ({"episodes": 0}, "episodes >= 1"),
        ({"backend": "tar"}, "unknown backend"),
        ({"shard": "4/4"}, "shard 4/4"),
        ({"shard": "one"}, "give i/n"),
        ({"layers": "dept"}, "unknown layer"),
        ({"policy_kwargs": {"scale": -1}}, "scale"),
        ({"shard": "0/2", "overwrite": True}, "whole set"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(tmp_path, arguments, message):
    wanted = {
        "env_id": ENV,
        "policy": "random",
        "episodes": 1,
        "out": tmp_path / "set",
        **arguments,
    }
    with pytest.raises(ValueError, match=message):
        generate_rollouts(**wanted)
    assert not (tmp_path / "set").exists()


def test_a_failed_episode_is_told_and_made_by_the_next_run(tmp_path, monkeypatch):
    genuine = rollouts.record

    def failing(env, **options):
        if options["seed"] == 1:
            raise RuntimeError("the engine broke")
        return genuine(env, **options)

    monkeypatch.setattr(rollouts, "record", failing)
    calls = []
    made = BARE(
        "random", 3, tmp_path / "set", progress=lambda done, asked, _: calls.append((done, asked))
    )
    assert made.failed == {1: "RuntimeError: the engine broke"}
    assert made.made == (0, 2)
    assert not made.complete
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert not (tmp_path / "set" / "manifest.json").exists()
    assert validate(tmp_path / "set") == []
    monkeypatch.undo()
    assert BARE("random", 3, tmp_path / "set").made == (1,)
    assert (tmp_path / "set" / "manifest.json").exists()


def test_a_damaged_sample_row_or_manifest_is_found(tmp_path):
    BARE("random", 2, tmp_path / "set")
    for name in ("episodes/000001.h5", "rows/000000.json", "manifest.json", "set.json"):
        path = tmp_path / "set" / name
        content = path.read_bytes()
        for at in (0, len(content) // 2, len(content) - 1):
            bad = bytearray(content)
            bad[at] ^= 4
            path.write_bytes(bytes(bad))
            assert validate(tmp_path / "set"), (name, at)
        path.write_bytes(content)
    assert validate(tmp_path / "set") == []


@pytest.mark.gl
@pytest.mark.parametrize("backend", ["hdf5", "zarr"])
def test_pictures_and_videos_at_any_url(backend):
    url = f"memory://sets/{backend}"
    made = generate_rollouts(
        ENV, "plan", 2, url, plan="forward", layers="depth,ids", size=(64, 36), max_steps=6,
        fps=30, backend=backend,
    )  # fmt: skip
    assert made.complete, made.failed
    assert validate(url) == []
    sample = read_set(url)[1]
    assert sample.frames.size == (64, 36)
    assert np.isfinite(sample.frames.layers["depth"][2]).any()
    assert fsspec.filesystem("memory").exists(f"sets/{backend}/episodes/000001.mp4")


def test_every_plan_is_there_by_default(tmp_path):
    names = plans_of(ENV)
    BARE("plan", len(names), tmp_path / "set", max_steps=2)
    assert [row["plan"] for row in read_set(tmp_path / "set").rows] == list(names)

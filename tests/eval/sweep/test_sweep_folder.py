"""What is kept of a cell: markers in every frame with their faces, and how far two runs part."""

import numpy as np
import pytest
from test_sweep_otherwise import FRAMES, record

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.build import build
from wmeval.envs.gauge.markers import followers
from wmeval.eval.metrics import surfaces
from wmeval.eval.sweep import course, folder, otherwise, prepared, running, sweeping
from wmeval.eval.sweep.cells import CellResult, parse_engines
from wmeval.eval.sweep.conclude import agreements
from wmeval.eval.sweep.course import course_of
from wmeval.eval.sweep.folder import arrays_of, marker_arrays, strip_rows
from wmeval.eval.sweep.planning import plan, tasks_of
from wmeval.records import CameraLog, LightLog, WorldLog


def test_markers_are_kept_in_every_frame_and_make_the_compared_areas():
    card, built, state = record("foam_stretching", lambda x: 0.1 * x * [0, 0, 1])
    kept = marker_arrays(built, state)
    assert kept["markers"].shape == (FRAMES, 28, 3)
    areas = surfaces.face_areas(kept["markers"], kept["marker_faces"])
    course = course_of(card, "1", "soft", built, state)
    assert np.array_equal(areas, course.values)
    assert kept["marker_faces_published"].tolist() == built.markers.published_faces.tolist()
    ball = families()["bouncing_ball"]
    assert marker_arrays(build(ball, "1", "rubber"), state) == {}


def test_two_runs_that_part_between_the_strip_s_instants_are_told_apart():
    _, built, state = record("foam_stretching")
    (cell,) = plan(
        parse_engines("newton"), tasks_of("foam_stretching/1/soft"), ["tuned"], twice="none"
    )
    pair = [
        CellResult(
            cell=cell.model_copy(update={"repeat": k}), key=f"k{k}", status="ok", sha256=f"{k}",
            deterministic=False,
        )
        for k in (0, 1)
    ]  # fmt: skip
    (foam,) = built.scene.deformables
    strip = strip_rows(FRAMES)
    odd = next(k for k in range(FRAMES) if k not in strip)

    def kept(shift):
        moved = state.vertices[foam.name].copy()
        moved[odd] += shift
        own = {f"vertices/{foam.name}": moved[strip], "position": state.position}
        state.vertices[foam.name][:] = moved
        arrays = own | {"strip": np.array(strip)} | marker_arrays(built, state)
        state.vertices[foam.name][odd] -= shift
        return arrays

    arrays = {"k0": kept(0.0), "k1": kept(0.003)}
    (one,) = agreements(pair, arrays.__getitem__)
    assert (one.same, one.spread) == (False, pytest.approx(0.003))
    # One that ended early has its strip at other instants: those vertices are not compared.
    short = {name: x[: FRAMES // 2] for name, x in arrays["k0"].items() if name != "strip"}
    arrays["k1"] = {**short, "strip": np.array(strip_rows(FRAMES // 2))}
    arrays["k1"][f"vertices/{foam.name}"] = arrays["k0"][f"vertices/{foam.name}"] + 1.0
    assert agreements(pair, arrays.__getitem__)[0].spread == 0.0


def test_a_cell_that_diverged_keeps_its_markers_too(tmp_path, monkeypatch):
    _, _, state = record("foam_stretching")
    (cell,) = plan(
        parse_engines("newton"), tasks_of("foam_stretching/1/soft"), ["tuned"], twice="none"
    )
    n = FRAMES
    log = WorldLog(
        state, CameraLog(("a",), np.ones((n, 1)), np.zeros((n, 1, 4, 4))),
        LightLog(np.ones((n, 3)), np.ones((n, 3)), np.ones((n, 3, 3))),
    )  # fmt: skip

    def pretend(what, key, ready, limit):
        return CellResult(cell=what, key=key, status="diverged"), log

    monkeypatch.setattr(running, "_stepped", pretend)
    sweeping.run_unit(("cell", cell, "k"), out=str(tmp_path), limit=None)
    kept = arrays_of(tmp_path, "k")
    assert kept["markers"].shape == (n, 28, 3)
    assert kept["marker_faces"].shape == (24, 3)
    assert "course" not in kept


def test_a_cell_s_world_is_built_once_and_its_markers_are_followed_once(tmp_path, monkeypatch):
    _, _, state = record("foam_stretching")
    (cell,) = plan(
        parse_engines("newton"), tasks_of("foam_stretching/1/soft"), ["tuned"], twice="none"
    )
    log = WorldLog(
        state, CameraLog(("a",), np.ones((FRAMES, 1)), np.zeros((FRAMES, 1, 4, 4))),
        LightLog(np.ones((FRAMES, 3)), np.ones((FRAMES, 3)), np.ones((FRAMES, 3, 3))),
    )  # fmt: skip
    monkeypatch.setattr(
        running, "_stepped", lambda c, key, *_: (CellResult(cell=c, key=key, status="ok"), log)
    )
    calls = []

    def counted(name, function):
        def call(*args, **kwargs):
            calls.append((name, *args[3:]))
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(prepared, "build", counted("build", prepared.build))
    followed = counted("followers", followers)
    for module in (folder, course, otherwise):
        monkeypatch.setattr(module, "followers", followed)
    result = sweeping.run_unit(("cell", cell, "k"), out=str(tmp_path), limit=None)
    assert result.measurement("rmse_published").value is not None
    assert sorted(calls) == [("build",), ("followers",), ("followers", "hungarian")]
    kept = arrays_of(tmp_path, "k")
    assert np.array_equal(
        kept["course"], surfaces.face_areas(kept["markers"], kept["marker_faces"])
    )


def test_states_that_were_damaged_are_none(tmp_path):
    (tmp_path / "cells").mkdir()
    for text in (b"", b"PK\x03\x04 cut off", b"no archive"):
        (tmp_path / "cells" / "k.npz").write_bytes(text)
        assert arrays_of(tmp_path, "k") == {}

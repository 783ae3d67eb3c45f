"""Areas scored from the start and as published: what each shows that the RMSE itself does not."""

from fractions import Fraction

import numpy as np
import pytest

from wmeval.assets.gauge_cards import families
from wmeval.assets.gauge_published import published
from wmeval.datasets.mocap import Header, Mocap, make_trial, write_mocap
from wmeval.deformables import rest_shape
from wmeval.envs.gauge.build import build
from wmeval.envs.gauge.markers import followers
from wmeval.eval.metrics import surfaces
from wmeval.eval.metrics.trajectory import rmse
from wmeval.eval.sweep.cells import CellResult, parse_engines
from wmeval.eval.sweep.measure import measure, reference_of
from wmeval.eval.sweep.otherwise import relative, rows_of
from wmeval.eval.sweep.planning import plan, tasks_of
from wmeval.eval.sweep.prepared import resolved
from wmeval.eval.sweep.results import SweepResults, flat_rows
from wmeval.eval.sweep.tables import main_lines, real_lines
from wmeval.records import StateLog

FRAMES = 60


def record(family, moved=lambda x: 0 * x, cell=None):
    """A record in which the foam's vertices, ramping to the last frame, move by a function."""
    card = families()[family]
    card = card if cell is None else resolved(card, cell)
    built = build(card, "1", "soft")
    (foam,) = built.scene.deformables
    rest = rest_shape(foam, built.meshes).vertices
    ramp = np.linspace(0, 1, FRAMES)[:, None, None]
    bodies = built.scene.bodies
    n, b = FRAMES, len(bodies)
    state = StateLog(
        tuple(x.name for x in bodies), Fraction(1, 30), np.arange(n),
        np.tile([x.position for x in bodies], (n, 1, 1)).astype(float),
        np.tile([x.quaternion_wxyz for x in bodies], (n, 1, 1)).astype(float),
        np.zeros((n, b, 3)), np.zeros((n, b, 3)), np.ones((n, b), bool),
        np.full((n, b), 2, np.uint8), vertices={foam.name: rest + ramp * moved(rest)},
    )  # fmt: skip
    return card, built, state


def numbers(card, built, state, data=""):
    found = measure(card, "1", "soft", built, state, data=data)
    return {(m.metric, m.truth): m for m in found if m.metric.startswith("rmse")}


def test_nodes_near_the_markers_are_off_before_anything_moves():
    found = numbers(*(made := record("foam_twisting")))
    truth = "block_twists"
    _, true = reference_of(made[0], "1", "soft", made[2].times)
    signal = rmse(true * 1e6, np.repeat(true[:1] * 1e6, len(true), 0))
    # Nothing moves: what is off is the whole signal, from the start as well.
    assert found["rmse", truth].value == pytest.approx(signal, rel=1e-6)
    assert found["rmse_relative", truth].value == pytest.approx(signal, rel=1e-6)
    assert found["rmse_published", truth].value > 20 * signal
    assert found["rmse_published", truth].baseline == (
        published().find("foam_twisting", "1", "soft", "rmse").baseline
    )


def test_the_published_faces_do_not_see_the_other_side():
    still = numbers(*record("foam_twisting"))

    def only_y(x):  # what is on the +y side alone is moved
        out = np.zeros_like(x)
        side = x[:, 1] > x[:, 1].max() - 1e-6
        out[side & (x[:, 0] < x[:, 0].max() - 1e-6), 2] = 0.004
        out[:, 2] *= (x[:, 2] - x[:, 2].mean()) * 20
        return out

    moved = numbers(*record("foam_twisting", only_y))
    truth = "block_twists"
    assert moved["rmse", truth].value > still["rmse", truth].value + 1
    assert moved["rmse_published", truth].value == pytest.approx(
        still["rmse_published", truth].value, rel=1e-9
    )
    markers = build(families()["foam_twisting"], "1", "soft").markers
    rows = rows_of(markers.published_faces, markers.faces)
    assert rows == [*range(12), *range(12)]
    with pytest.raises(ValueError, match="face 0 is not among"):
        rows_of(markers.faces, markers.faces[1:])


def test_from_the_start_a_constant_factor_or_offset_is_no_error():
    rng = np.random.Generator(np.random.PCG64(3))
    true = rng.uniform(1, 2, (9, 4))
    assert relative(true * [1.2, 0.9, 1.0, 2.0], true, "area") == pytest.approx(0, abs=1e-12)
    assert relative(true + np.array([0.3, -1.0, 0, 5]), true, "curvature") == pytest.approx(
        0, abs=1e-12
    )
    twice = true[0] + 2 * (true - true[0])
    assert relative(twice, true, "curvature") == pytest.approx(rmse(true, true[:1] + 0 * true))


def trials_file(path, card, built, state):
    """Trials that are the record, its markers a thousandth further apart or nearer together."""
    track = followers(built.scene, built.meshes, built.markers).track(state)
    count = len(built.markers.points)
    header = Header(
        format="wmeval-mocap/1", title="made up", rate=30.0, family=card.id, subtask="1",
        material="soft", markers=tuple(f"m{k}" for k in range(count)),
    )  # fmt: skip
    trials = tuple(
        make_trial(header, f"t{k}", np.arange(FRAMES) / 30, {"markers": track * s})
        for k, s in enumerate((0.999, 1.001))
    )
    write_mocap(Mocap(header, trials), path)
    return str(path), track


def stretched(x):
    return 0.1 * (x - x.mean(0)) * [0, 0, 1]


def test_a_marker_that_no_node_is_near_costs_the_number_of_nodes_alone(tmp_path):
    card, built, state = record("foam_stretching", stretched, cell=0.05)
    path, _ = trials_file(tmp_path / "foam.h5", card, built, state)
    found = numbers(card, built, state, data=path)
    assert {truth for _, truth in found} == {"block_stretches", "real"}
    for (metric, truth), m in found.items():
        if metric == "rmse_published":
            assert m.value is None, truth
            assert "marker" in m.reason
            assert m.unit == "mm^2"
        else:
            assert m.value is not None, (metric, truth)
    (cell,) = plan(
        parse_engines("newton"), tasks_of("foam_stretching/1/soft"), ["tuned"], twice="none"
    )
    fine = record("foam_stretching", stretched)
    results = [
        CellResult(
            cell=cell.model_copy(update={"grid": {"cell": size}}), key="k", status="ok",
            measurements=measure(*(x[0], "1", "soft", *x[1:]), data=path),
        )
        for size, x in ((0.02, fine), (0.05, (card, built, state)))
    ]  # fmt: skip
    both = SweepResults(wmeval="0", engines=(cell.engine,), versions={}, cells=tuple(results))
    (line,) = [x for x in real_lines(both, "tuned") if (x.what, x.truth) == (
        "RMSE, published faces", "real")]  # fmt: skip
    assert line.entries[1].text == "not measured"
    assert "marker" in line.entries[1].full
    assert any("rmse_published not measured" in note for note in both.notes())


def test_real_trials_are_scored_in_all_three_ways(tmp_path):
    card, built, state = record("foam_stretching", stretched)
    path, track = trials_file(tmp_path / "foam.h5", card, built, state)
    found = numbers(card, built, state, data=path)
    own, start = found["rmse", "real"], found["rmse_relative", "real"]
    assert own.value < 0.01 * own.baseline
    # The trials differ by a constant factor alone.
    assert (start.baseline, start.reason) == (None, "trials do not differ: nothing to divide by")
    assert own.reason == ""
    assert found["rmse_published", "real"].value > 20 * own.baseline
    areas = surfaces.face_areas(track, built.markers.published_faces) * 1e6
    spread = rmse(areas * 0.999**2, areas * (0.999**2 + 1.001**2) / 2)
    assert found["rmse_published", "real"].baseline == pytest.approx(spread, rel=1e-3)


def test_results_and_report_show_them_beside_what_is_published():
    card, built, state = record("foam_twisting")
    (cell,) = plan(
        parse_engines("newton"), tasks_of("foam_twisting/1/soft"), ["tuned"], twice="none"
    )
    result = CellResult(
        cell=cell, key="k", status="ok", measurements=measure(card, "1", "soft", built, state)
    )
    rows = {r["metric"]: r for r in flat_rows([result])}
    known = published().find("foam_twisting", "1", "soft", "rmse")
    assert rows["rmse_published"]["published_newton"] == known.engines["newton"]
    assert rows["rmse_relative"]["value"] > 0
    results = SweepResults(wmeval="0", engines=(cell.engine,), versions={}, cells=(result,))
    lines = {line.what: line for line in main_lines(results, "tuned")}
    assert {"RMSE from the start", "RMSE, published faces"} <= set(lines)
    assert any(e.text != "–" for e in lines["RMSE, published faces"].published)

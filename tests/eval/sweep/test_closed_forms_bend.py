"""Closed forms of what bends hold in ``tuned``, on Newton: by the sweep's own cells.

Tolerances are stated per number; what is found is printed (``pytest -s``). Grid points and shorter
records keep it cheap: docs/guide/closed-forms.md has every figure, of whole records and of Genesis.
"""

from fractions import Fraction

import numpy as np
import pytest
from engine_worlds import engine_here

from wmeval.assets.gauge_cards import family
from wmeval.clock import SceneClock
from wmeval.envs.gauge.build import build
from wmeval.envs.gauge.configurations import settings_of
from wmeval.eval.sweep.cells import Cell, parse_engines
from wmeval.eval.sweep.prepared import resolved
from wmeval.eval.sweep.running import run_cell
from wmeval.eval.truths import predict
from wmeval.sim.protocol import EventRules, Probe, WorldSpec
from wmeval.sim.world import open_world

ENGINE = "newton"
# set-up: seconds of the record (None: all), grid point, and by number the relative tolerance.
HOLDS = {
    "foam_stretching/1/soft": (None, {}, {"facet_change": 0.05}),
    "foam_shearing/1/soft": (None, {}, {"face_strain": 0.10, "axial_strain": 0.10}),
    # As declared: by the foam's law beyond small strains, and by how its cells hinder the warping.
    "foam_twisting/1/soft": (
        None, {"dt": "1/900"},
        {"turn": 0.02, "facet_area_change_x": 0.40, "facet_area_change_y": 0.40},
    ),
    "foam_bending/1/soft": (
        0.5, {}, {"deflection_25": 0.10, "deflection_50": 0.10, "deflection_75": 0.10},
    ),
    "cantilever_beam/1/soft": (
        0.9, {},
        {
            "mean_drop": 0.10, "mean_reach": 0.10, "mean_angle_2": 0.10, "mean_angle_4": 0.10,
            "frequency": 0.10,
        },
    ),
    "textile_bending/1/oxford": (
        None, {"cell": 0.04}, {"sag_half": 0.05, "sag_three_quarters": 0.05, "sag": 0.05},
    ),
    "stick_stack/1/soft": (1.2, {}, {"slip": 0.10}),
    "tablecloth_pulling/1/wood": (0.1667, {}, {"acceleration": 0.05}),
}  # fmt: skip


@pytest.mark.accept
@pytest.mark.parametrize("task", HOLDS)
def test_closed_forms_of_what_bends_hold_where_tuned(task):
    engine_here(ENGINE)
    seconds, grid, wanted = HOLDS[task]
    name, subtask, material = task.split("/")
    (engine,) = parse_engines(ENGINE)
    cell = Cell(engine=engine, config="tuned", family=name, subtask=subtask, material=material,
                grid=grid)  # fmt: skip
    result = run_cell(cell, "closed-form", seconds=seconds)
    assert result.status == "ok", result.reason
    print(f"\n{task}: {result.cpu_s:.1f} CPU-s")
    off = []
    for number, tolerance in wanted.items():
        found = result.measurement(number)
        assert found is not None, number
        away = abs(found.value - found.expected)
        held = away <= tolerance * abs(found.expected)
        line = f"{number} {found.value:.4g} of {found.expected:.4g} {found.unit} +- {tolerance}"
        print(f"  {line} {'holds' if held else 'OFF'}")
        off += [] if held else [line]
    assert not off, "\n".join(off)


def modes(x, step, count):
    """Frequencies [Hz] of the strongest damped swings that channels (T, C) share (pencil)."""
    half = len(x) // 2
    windows = [x[k : k + half] for k in range(len(x) - half + 1)]
    u, _, _ = np.linalg.svd(np.concatenate(windows, axis=1), full_matrices=False)
    u = u[:, : 2 * count + 4]
    z = np.linalg.eigvals(np.linalg.lstsq(u[:-1], u[1:], rcond=None)[0])
    shares = np.linalg.lstsq(z ** np.arange(len(x))[:, None], x.astype(complex), rcond=None)[0]
    order = np.argsort(-np.linalg.norm(shares, axis=1))
    hertz = np.log(z).imag / (2 * np.pi * step)
    return sorted([float(hertz[k]) for k in order if hertz[k] > 0.1][:count])


def test_modes_are_found_in_sums_of_swings():
    t = np.arange(100) / 30
    swings = [np.exp(-0.2 * t) * np.cos(2 * np.pi * f * t + f) for f in (0.848, 1.946)]
    x = np.stack([a * swings[0] + b * swings[1] for a, b in ((1, 0.2), (0.5, -0.3), (0.2, 0.1))], 1)
    assert modes(x, 1 / 30, 2) == pytest.approx([0.848, 1.946], rel=1e-6)


@pytest.mark.accept
def test_a_gently_flung_sheet_swings_as_a_hanging_chain():
    """The family's own jerks of 0.3 m leave swings of 0.3 m; this one is of 10 mm, once."""
    engine_here(ENGINE)
    card = resolved(family("textile_flinging"), 0.04)
    sub = card.subtasks["1"]
    (drive,) = sub.drives["any"]
    gentle = {**drive.parameters, "offset": (0.0, 0.01, 0.0), "count": 1.0}
    drive = drive.model_copy(update={"parameters": gentle})
    sub = sub.model_copy(update={"drives": {"any": (drive,)}})
    card = card.model_copy(update={"subtasks": {"1": sub}})
    built, settings = build(card, "1", "leather"), settings_of(card, ENGINE, "tuned")
    settle = round(built.drives.settle * settings.hz)
    spec = WorldSpec(
        built.scene, built.meshes, built.drives.specs,
        SceneClock(settings.dt, Fraction(1, 30)), EventRules(), ENGINE, settings.config, settle,
    )  # fmt: skip
    world = open_world(spec)
    try:
        states = [world.reset()]
        states += [world.advance((), k * spec.clock.substeps, Probe("last")) for k in range(1, 120)]
    finally:
        world.close()
    columns, rows = built.scene.deformables[0].surface.cells
    x = np.concatenate([s.state.vertices["textile"][-1:] for s in states])
    x = x.reshape(len(x), rows + 1, columns + 1, 3)
    aside = x[..., 1].mean(axis=2)
    aside = (aside - aside[:, -1:])[26:, :-1]
    found = modes(aside, 1 / 30, 2)
    numbers = {
        n: v.value for p in predict(family("textile_flinging"), "1", "leather")
        for n, v in p.numbers.items()
    }  # fmt: skip
    lengths = np.linalg.norm(np.diff(x, axis=1), axis=-1).sum(axis=1).mean(axis=1)
    strain = lengths[-60:].mean() / lengths[0] - 1
    print(f"\nmodes {found} of {numbers['mode_1']:.4g}, {numbers['mode_2']:.4g} Hz; strain "
          f"{strain:.3g} of {numbers['strain']:.3g}")  # fmt: skip
    assert found == pytest.approx([numbers["mode_1"], numbers["mode_2"]], rel=0.05)
    assert strain == pytest.approx(numbers["strain"], rel=0.05)

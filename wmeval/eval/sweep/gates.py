"""Which numbers count: a table of what each rests on, held against the conformance suite.

A number says something about an engine only where the engine has the parameters that were asked
for. Every number rests on checks of `wmeval.eval.conformance`, run in the same sweep under the
very settings of its cell: step, iterations, options. Where one of them is off, the number is shown
with the reason, and is not ranked. So is one of a sheet or foam whose grid sets another mesh than
the card's: no check has been run on it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from pydantic import JsonValue

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import NAMES, settings_of
from wmeval.envs.gauge.solver_rows import ROWS
from wmeval.errors import UserError, one_line
from wmeval.eval.conformance import CHECKS, Outcome, rows_of, run_suite
from wmeval.eval.sweep.ablations import cell_of
from wmeval.eval.sweep.cells import (
    Cell,
    CellResult,
    EngineSpec,
    Measurement,
    absent,
    engine_config,
    fraction,
    version_of,
)
from wmeval.eval.sweep.toss import FAMILY, toss_settings
from wmeval.jobs.ledger import checksum
from wmeval.sim.engines.engine_options import with_python
from wmeval.sim.protocol import EngineConfig
from wmeval.sim.world import World

_FREE, _SLIDE, _STICK = "free_fall", "friction_slide", "friction_stick"
_SWING, _ENERGY, _MOMENTUM = "pendulum_period", "pendulum_energy", "collision_momentum"
_APART = "collision_restitution"
_TUMBLE = ("tumble_energy", "tumble_momentum")
_CLOTH, _ON_CLOTH, _BAR = "cloth_stretch", "cloth_slide", "bar_stretch"
_BEND = "cloth_bend"

RESTS: Mapping[tuple[str, str, str], tuple[str, ...]] = {
    # (family, subtask, number); "" stands for every one; the first row that fits is taken, from
    # the most particular.
    ("slope_contact", "", ""): (_SLIDE,),
    # Its closed form ends with the first contact.
    ("nonsmooth_contact", "", ""): (_FREE,),
    ("slope_slider", "1", ""): (_STICK,),
    ("slope_slider", "2", ""): (_SLIDE,),
    ("slope_slider", "3", ""): (_STICK, _SLIDE),
    ("turntable", "1", ""): (_STICK,),
    ("turntable", "2", ""): (_SLIDE,),
    ("turntable", "3", ""): (_STICK, _SLIDE),
    # Rubber's restitution of 0.58 is nearest to that check.
    ("bouncing_ball", "", ""): (_FREE, "bounce_0.5"),
    ("newtons_cradle", "", ""): (_SWING, _MOMENTUM, _APART, "bounce_0.2"),
    ("newtons_cradle", "", "lsd"): (_SWING,),
    # Its closed form ends with the first contact.
    ("wall_breaking", "", ""): (_SWING,),
    ("pendulum", "", ""): (_SWING,),
    ("pendulum", "", "el"): (_SWING, _ENERGY),
    ("pendulum", "", "energy_loss"): (_SWING, _ENERGY),
    ("rope_winding", "", ""): (_FREE, _SLIDE),
    ("textile_stretching", "", ""): (_CLOTH,),
    ("textile_bending", "", ""): (_CLOTH, _BEND),
    # Closed forms of a chain, which has no bending stiffness.
    ("textile_bending", "", "sag_half"): (_CLOTH,),
    ("textile_bending", "", "sag_three_quarters"): (_CLOTH,),
    ("textile_flinging", "", ""): (_CLOTH, _BEND),
    ("textile_flinging", "", "mode_1"): (_CLOTH,),
    ("textile_flinging", "", "mode_2"): (_CLOTH,),
    ("textile_flinging", "", "mode_3"): (_CLOTH,),
    ("textile_flinging", "", "strain"): (_CLOTH,),
    ("funnel", "", ""): (_CLOTH, _ON_CLOTH),
    ("rotating_ball", "", ""): (_CLOTH, _ON_CLOTH),
    ("tablecloth_pulling", "", ""): (_CLOTH, _ON_CLOTH, _SLIDE),
    ("tablecloth_pulling", "", "stretch"): (_CLOTH,),
    ("foam_stretching", "", ""): (_BAR,),
    ("foam_compressing", "", ""): (_BAR,),
    ("foam_shearing", "", ""): (_BAR,),
    ("foam_twisting", "", ""): (_BAR,),
    ("foam_bending", "", ""): (_BAR,),
    ("stick_stack", "", ""): (_BAR, _STICK),
    ("cantilever_beam", "", ""): (_BAR,),
    # The authors' acrylic: mu 0.18, e 0.125.
    (FAMILY, "", ""): (_FREE, _SLIDE, "bounce_0.2"),
}
"""What a number of a family rests on: names of conformance checks."""

WHOLE: Mapping[str, tuple[str, ...]] = {
    "slope_contact": (_FREE, _SLIDE, _STICK, "bounce_0.5", *_TUMBLE),
    "nonsmooth_contact": (_FREE, _SLIDE, _STICK, "bounce_0.5", *_TUMBLE),
    "wall_breaking": (_SWING, _MOMENTUM, _APART, _SLIDE, "stack", *_TUMBLE),
}
"""Of families whose closed form ends early: what numbers of the whole record rest on."""

_OF_RECORD = ("real", "")
"""Truths of numbers that are of the whole record."""

Row = Mapping[str, Any]


def rests_on(family: str, subtask: str, metric: str, truth: str = "") -> tuple[str, ...]:
    """Checks that a number rests on.

    Args:
        family: id of its family, or ``cube_toss``.
        subtask: of it.
        metric: of the measurement.
        truth: what it is held against.

    Raises:
        UserError: a family that the table does not know.
    """
    if metric == "penetration" or truth == "curvature_sums_to_zero":  # geometry
        return ()
    if truth in _OF_RECORD and family in WHOLE:
        return WHOLE[family]
    for key in ((family, subtask, metric), (family, "", metric), (family, subtask, "")):
        if key in RESTS:
            return RESTS[key]
    found = RESTS.get((family, "", ""))
    if found is None:
        raise UserError(f"no conformance checks are named for {family}: add a row to RESTS")
    return found


def checks_of(family: str, subtask: str) -> tuple[str, ...]:
    """All checks that any number of a set-up may rest on, in the suite's order."""
    names = set(WHOLE.get(family, ()))
    for (name, part, _), checks in RESTS.items():
        if name == family and part in ("", subtask):
            names |= set(checks)
    return tuple(c for c in CHECKS if c in names)


# --- suites ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Suite:
    """Checks to run: an engine, under one configuration's settings of one kind of body.

    Attributes:
        engine: who.
        config: name of the configuration, or path of the fitted file.
        dt: substep [s].
        settings: `EngineConfig` as JSON.
        checks: names.
    """

    engine: EngineSpec
    config: str
    dt: Fraction
    settings: str
    checks: tuple[str, ...]

    def key(self, version: str) -> str:
        """Name of its file."""
        parts = [CHECKS[c] for c in self.checks]
        told = [[c.name, c.asked, c.tolerance, c.seconds, c.scene().model_dump(mode="json")]
                for c in parts]  # fmt: skip
        what = [self.engine.model_dump(), self.config, *_profile(self)[2:], told, version]
        return f"{self.engine.label}-{checksum(what)[:12]}"


Profile = tuple[str, str, str, str]
"""Engine label, configuration, substep and settings: under which a check was run."""


def _profile(suite: Suite) -> Profile:
    return suite.engine.label, suite.config, str(suite.dt), suite.settings


def _settings(config: EngineConfig) -> str:
    return json.dumps(config.model_dump(mode="json"), sort_keys=True)


def profile_of(cell: Cell) -> Profile | None:
    """Under which settings a cell runs; None where the engine has not its physics.

    What is installed here is not asked: the cell may have run elsewhere.
    """
    try:
        if cell.family == FAMILY:
            chosen = toss_settings(cell)
        else:
            chosen = settings_of(families()[cell.family], cell.engine.adapter, cell.config)
        dt = fraction(cell.grid.get("dt", chosen.dt))
        config = engine_config(cell, chosen.config)
    except UserError:
        return None
    return cell.engine.label, cell.config, str(dt), _settings(config)


@cache
def kind_of(check: str) -> str:
    """Rates of the bodies that a check is of: ``rigid``, ``textile`` or ``volume``."""
    kinds = {d.kind for d in CHECKS[check].scene().deformables}
    return "volume" if "soft" in kinds else "textile" if kinds else "rigid"


def suites_of(cells: Sequence[Cell]) -> list[Suite]:
    """The whole suite of every engine and named configuration, each check at its kind's settings.

    And, where a cell's settings are others (a family's own, a grid point, a fitted file, friction
    under a textile's solver), the checks that its numbers rest on, under these.
    """
    wanted: dict[Profile, set[str]] = {}
    engines = {c.engine.label: c.engine for c in cells}
    away = {label for label, engine in engines.items() if absent(engine)}
    cells = [c for c in cells if c.engine.label not in away]
    for label, config in dict.fromkeys((c.engine.label, c.config) for c in cells):
        engine = engines[label]
        if config not in NAMES:
            continue
        for check in CHECKS:
            row = ROWS.get((config, engine.adapter, kind_of(check)))
            base = with_python(row.config if row is not None else EngineConfig(), engine.python)
            hz = row.hz if row is not None else CHECKS[check].rate
            profile = (label, config, str(Fraction(1, hz)), _settings(base))
            wanted.setdefault(profile, set()).add(check)
    for cell in cells:
        own = profile_of(cell)
        if own is not None:
            wanted.setdefault(own, set()).update(checks_of(cell.family, cell.subtask))
    return [
        Suite(engines[label], config, Fraction(dt), settings,
              tuple(c for c in CHECKS if c in checks))
        for (label, config, dt, settings), checks in wanted.items() if checks
    ]  # fmt: skip


def conformance_rows(
    suite: Suite, taken: list[World] | None = None, limit: float | None = None
) -> list[dict[str, JsonValue]]:
    """Run a suite.

    Args:
        suite: which.
        taken: this process' last world, whose worker is used again.
        limit: time-out of a check on an engine that runs whole jobs [s].
    """
    config = EngineConfig.model_validate_json(suite.settings)
    outcomes = run_suite(
        suite.engine.adapter,
        config,
        checks=suite.checks,
        dt=suite.dt,
        taken=taken,
        limit=limit,
    )
    # Of an engine that is named by its interpreter the suite itself knows no version.
    version = version_of(suite.engine)
    return [{**row, **_head(suite), "version": version} for row in rows_of(outcomes)]


def _head(suite: Suite) -> dict[str, JsonValue]:
    return {
        "label": suite.engine.label, "config": suite.config, "dt": str(suite.dt),
        "settings": suite.settings,
    }  # fmt: skip


def failed_rows(suite: Suite, error: str, version: str) -> list[dict[str, JsonValue]]:
    """Rows of a suite whose process did not come back."""
    engine, said = suite.engine.adapter, one_line(error)
    lost = (
        Outcome(n, engine, version, CHECKS[n].asked, None, "failed", said, 0.0)
        for n in suite.checks
    )
    return [{**row, **_head(suite)} for row in rows_of(lost)]


# --- the gate -------------------------------------------------------------------------------------


def said(row: Row) -> str:
    """A check that is not right, in words: ``cloth_stretch: 33 of 100 N/m``."""
    if row["effective"] is None:
        return f"{row['check']}: {str(row['status']).replace('_', ' ')} ({row['reason']})"
    unit = "" if row["unit"] == "1" else f" {row['unit']}"
    effective, asked = float(row["effective"]), float(row["asked"])
    # Of a restitution of 0.5, 1e-9 is none.
    shown = 0.0 if abs(effective) < 1e-4 * abs(asked) else effective
    return f"{row['check']}: {shown:.3g} of {asked:.3g}{unit}"


def gated(cells: Sequence[CellResult], rows: Sequence[Row]) -> list[CellResult]:
    """Cells, each number told whether it counts, and where not, because of what.

    Args:
        cells: results.
        rows: of `conformance_rows` of all suites. Without any, no suite was run, and nothing is
            said; with some, a number whose own checks are not among them does not count.
    """
    found: dict[Profile, dict[str, Row]] = {}
    for row in rows:
        profile = str(row["label"]), str(row["config"]), str(row["dt"]), str(row["settings"])
        found.setdefault(profile, {})[str(row["check"])] = row
    out = []
    for r in cells:
        own = profile_of(r.cell) if r.measurements else None
        known = found.get(own, {}) if own is not None else {}
        made = tuple(_judged(m, r.cell, known, bool(rows)) for m in r.measurements)
        out.append(r.model_copy(update={"measurements": made}))
    return out


def _judged(m: Measurement, cell: Cell, known: Mapping[str, Row], ran: bool) -> Measurement:
    checks = rests_on(cell.family, cell.subtask, m.metric, m.truth)
    if not ran:
        return m.model_copy(update={"counts": None if checks else True, "because": ""})
    unknown = [c for c in checks if c not in known]
    if unknown:
        because = f"{', '.join(unknown)}: not run under its settings"
        return m.model_copy(update={"counts": False, "because": because})
    size = other_mesh(cell)
    strange = [c for c in checks if size is not None and kind_of(c) != "rigid"]
    why = []
    if size is not None and strange:
        why.append(f"{', '.join(strange)}: not run with cells of {1000 * size:g} mm")
    why += [said(known[c]) for c in checks if c not in strange and known[c]["status"] != "ok"]
    return m.model_copy(update={"counts": not why, "because": "; ".join(why)})


def other_mesh(cell: Cell) -> float | None:
    """Size of a cell's mesh [m] where its grid sets another than its card's; None where not.

    The suite has meshes of its own, of about the size that cards have; solvers of few iterations,
    or of corrections by edge, give another stiffness on others.
    """
    size = cell.grid.get("cell")
    if not isinstance(size, int | float) or cell.family not in families():
        return None
    own = cell_of(families()[cell.family])
    same = own is not None and math.isclose(size, own, rel_tol=1e-3)
    return None if same else float(size)

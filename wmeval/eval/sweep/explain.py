"""Why a cell departs: one setting at a time is changed, and what closes the gap is named."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import settings_of
from wmeval.errors import UserError
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.ablations import (
    ABLATIONS,
    COMMON,
    SECONDS,
    STRETCH_SECONDS,
    applies,
    cell_of,
    grid_of,
    is_change,
)
from wmeval.eval.sweep.cells import (
    COMPLETE,
    Cell,
    CellResult,
    Measurement,
    fraction,
    parse_engines,
)
from wmeval.eval.sweep.departures import SMALL, departure, least_said, off, slight
from wmeval.eval.sweep.otherwise import OTHERWISE
from wmeval.eval.sweep.prepared import scene_of
from wmeval.eval.sweep.running import run_cell
from wmeval.eval.sweep.scoring import Scoring, scorings
from wmeval.eval.sweep.scoring import told as scoring_told
from wmeval.eval.sweep.tables import PREDICTED
from wmeval.eval.sweep.toss import FAMILY
from wmeval.records import WorldLog
from wmeval.scene import Card

CLOSES, HELPS = 0.2, 0.75
"""Share of the error that may be left where a change closes the gap, and where it helps."""
MOVES = 0.03
"""Share of the gap by which a number has moved."""
FINER = 10
"""By how much the step is shorter where changes that closed nothing are tried again."""
ROUNDS = 2
"""How often changes are tried on top of the best."""


class Trial(Card):
    """One ablation as it came out.

    Attributes:
        name: what was changed; ``settings``: to what.
        value, error: of the explained number; None where it was not measured.
        left: share of the gap that is left; 1: none of it closed.
        status, reason: of the cell.
        wall_s: of stepping [s].
    """

    name: str
    settings: dict[str, JsonValue]
    value: float | None
    error: float | None
    left: float | None
    status: str
    reason: str = ""
    wall_s: float | None = None


class Explanation(Card):
    """What was found about one cell.

    Attributes:
        cell: its name.
        metric, truth, unit, expected: the number that departs most.
        value, error: as the cell is.
        trials: from what leaves least of the gap.
        seconds: of the record that were run [s].
        scorings: the same record, its areas scored several ways.
        verdict: in a sentence.
        untried: ablations for which the budget did not suffice.
    """

    cell: str
    metric: str = ""
    truth: str = ""
    unit: str = ""
    expected: float | None = None
    value: float | None = None
    error: float | None = None
    seconds: float = 0.0
    trials: tuple[Trial, ...] = ()
    scorings: tuple[Scoring, ...] = ()
    verdict: str
    untried: tuple[str, ...] = ()


def parse_cell(text: str) -> Cell:
    """``ENGINE:CONFIG:FAMILY/SUBTASK/MATERIAL``; engines as `parse_engines` reads them.

    Raises:
        UserError: not of this form, or more than one set-up.
    """
    parts = text.split(":")
    if len(parts) != 3:
        raise UserError(
            f"cell {text!r}: write ENGINE:CONFIG:FAMILY/SUBTASK/MATERIAL, as "
            "bullet:published-settings:bouncing_ball/1/rubber"
        )
    cells = planning.plan(
        parse_engines(parts[0]), planning.tasks_of(parts[2]), [planning.check_config(parts[1])],
        twice="none",
    )  # fmt: skip
    if len(cells) != 1:
        raise UserError(
            f"cell {text!r}: {len(cells)} set-ups: name subtask and material, as {cells[0].task}"
        )
    if cells[0].family == FAMILY:
        raise UserError(f"cell {text!r}: ablations are of GAUGE's families")
    return cells[0]


def worst(result: CellResult, metric: str = "") -> Measurement | None:
    """The named number, or the one that the cell's status is of, or the one that departs most."""
    wanted = metric or _OF_STATUS.get(result.status, "")
    if wanted:
        found = named(result, wanted)
        if metric or found is not None:
            return found
    told = [
        m
        for m in result.measurements
        if m.truth
        and m.metric not in ("dtw", *OTHERWISE)
        and not m.ideal
        and math.isfinite(departure(m))
    ]
    stretch = result.measurement("stretch")
    if stretch is not None and departure(stretch) > 1:
        told.append(stretch)
    return max(told, key=departure, default=None)


def named(result: CellResult, metric: str, truth: str | None = None) -> Measurement | None:
    """A number by its name, held against what is right with the stated parameters.

    Where its own closed form is of an ideal that these have not, or it has none, this is that of
    the number by which tables rank it (`PREDICTED`).

    Args:
        result: of a cell.
        metric: its name.
        truth: what it is held against; None: anything.
    """
    known = [m for m in result.measurements if off(m) is not None]
    own = [m for m in known if m.metric == metric and truth in (None, m.truth)]
    ranks = [m for m in known if m.metric == PREDICTED.get(metric) and m.truth and not m.ideal]
    if own and own[0].ideal and ranks:
        right = {"expected": ranks[0].expected, "ideal": "", "accuracy": ranks[0].accuracy}
        return own[0].model_copy(update=right)
    return next(iter(own or ranks), None)


def _check_metric(result: CellResult, metric: str) -> None:
    names = dict.fromkeys(m.metric for m in result.measurements)
    if metric and names and metric not in names:
        told = dict.fromkeys(m.metric for m in result.measurements if off(m) is not None)
        raise UserError(
            f"--metric {metric}: {result.cell.task} has no such number: choose from "
            f"{', '.join(told)}"
        )


def seconds_of(cell: Cell, metric: str) -> float | None:
    """How much of a record is run by default [s]; None: all."""
    if metric == "stretch":
        return STRETCH_SECONDS
    return SECONDS.get(cell.family)


def explain(
    cell: Cell,
    *,
    budget: float,
    metric: str = "",
    seconds: float | None = None,
    told: Callable[[str], None] | None = None,
) -> Explanation:
    """Run a cell and its ablations, one change each, as long as the budget lasts.

    Args:
        cell: which.
        budget: wall time of the changes [s], and at most as much for the cell itself.
        metric: the number to explain; "": the one that departs most.
        seconds: of the record that are run [s]; None: `seconds_of`.
        told: hears of every trial.

    Raises:
        UserError: the engine has not the physics, or the cell no such number.
    """
    say = told or (lambda _: None)
    seconds = seconds_of(cell, metric) if seconds is None else seconds
    logs: list[WorldLog] = []

    def keep(_: CellResult, log: WorldLog | None, arrays: object) -> None:
        if log is not None:
            logs.append(log)

    result = run_cell(cell, "explain", limit=budget, seconds=seconds, keep=keep)
    if result.status == "not_run":
        raise UserError(f"{cell.name}: {result.reason}")
    _check_metric(result, metric)
    base = worst(result, metric)
    base_error = off(base) if base is not None else None
    if base is None or base_error is None:
        why = result.reason or (f"no number {metric!r}" if metric else "no number with a truth")
        return Explanation(cell=cell.name, verdict=f"nothing to explain: {result.status}, {why}")
    head = {
        "cell": cell.name, "metric": base.metric, "truth": base.truth, "unit": base.unit,
        "expected": base.expected, "value": base.value, "error": base_error,
        "seconds": result.ended, "scorings": _scorings(cell, logs),
    }  # fmt: skip
    if base.ideal:
        return Explanation.model_validate(
            {**head, "verdict": f"nothing to explain: {_value(base)}, and {_right(base)} is right "
             f"only if {base.ideal}"}
        )  # fmt: skip
    # Of what the record tells by itself the closed form's number is the one that is explained.
    led = f"{_words(metric)}, told by " if metric not in ("", base.metric) else ""
    lies = f" ({result.reason})" if base.metric == "penetration" and result.reason else ""
    say(f"{cell.name}: {led}{_said(base)}{lies}")
    if slight(base):
        return Explanation.model_validate(
            {
                **head,
                "verdict": _joined(
                    f"it does not depart: {led}{_said(base)} is off by less than what counts "
                    f"({least_said(base)})",
                    head["scorings"],
                ),
            }
        )
    trials: list[Trial] = []
    untried: list[str] = []
    # The first run may have compiled kernels: it does not tell what the others take.
    began = time.perf_counter()
    plain = [result.wall_s or 0.0]

    def attempt(name: str, grid: dict[str, JsonValue], factor: float) -> None:
        spent = time.perf_counter() - began
        if spent + min(plain) * factor > budget:
            untried.append(name)
            return
        made = run_cell(
            cell.model_copy(update={"grid": grid}),
            "explain",
            limit=max(1.0, budget - spent),
            seconds=seconds,
        )
        if made.status in COMPLETE and made.wall_s is not None:
            plain.append(made.wall_s / factor)
        found = named(made, base.metric, base.truth)
        error = off(found) if found is not None and made.status in COMPLETE else None
        trials.append(
            Trial(
                name=name, settings=grid, value=found.value if found is not None else None,
                error=error, left=error / base_error if error is not None else None,
                status=made.status, reason=made.reason, wall_s=made.wall_s,
            )
        )  # fmt: skip
        say(_line(trials[-1]))

    own = [
        (a.name, grid_of(cell, a))
        for a in (*ABLATIONS.get(cell.engine.adapter, ()), *COMMON)
        if applies(a, cell)
    ]
    own = [(name, grid) for name, grid in own if is_change(cell, grid)]

    def able() -> list[tuple[str, dict[str, JsonValue]]]:
        """Changes that could be run alone: what could not be cannot be with others."""
        never = {t.name for t in trials if t.status == "not_run"}
        return [(name, grid) for name, grid in own if name not in never]

    base_dt = settings_of(families()[cell.family], cell.engine.adapter, cell.config).dt

    def try_on(name: str, grid: dict[str, JsonValue]) -> None:
        attempt(name, grid, cost(cell, grid))

    for name, grid in own:
        try_on(name, grid)
    helped = [t for t in trials if t.left is not None and t.left < 1 - SMALL]
    if len(helped) > 1 and not _closed(trials):
        # No single change closes it: what helps, together; of one setting the better value.
        together: dict[str, JsonValue] = {}
        for t in sorted(helped, key=lambda t: -(t.left or 0.0)):
            together |= t.settings
        try_on("all that help, together: " + ", ".join(t.name for t in helped), together)
    finer: dict[str, JsonValue] = {"dt": str(base_dt / FINER)}
    if not _closed(trials) and families()[cell.family].rates == "rigid":
        # A contact that needs a finer step may be worse without it: what moved the number at all.
        moved = {t.name for t in trials if t.left is None or abs(t.left - 1) > MOVES}
        for name, grid in able():
            if name in moved and grid.keys() != finer.keys() and not _closed(trials):
                try_on(f"{name} + step / {FINER}", {**grid, **finer})
    for _ in range(ROUNDS):
        # Nor do they: one after another on top of the best, for one may hide what another does.
        best = min((t for t in trials if t.left is not None), key=_left, default=None)
        if best is None or _closed(trials) or best.left is None or best.left > 1 - SMALL:
            break
        for name, grid in able():
            if not grid.items() <= best.settings.items():
                try_on(f"{best.name} + {name}", {**best.settings, **grid})
        if min(_left(t) for t in trials) > best.left - SMALL:
            break
    trials.sort(key=_left)
    return Explanation.model_validate(
        {**head, "trials": tuple(trials), "untried": tuple(untried),
         "verdict": _joined(led + verdict(base, trials), head["scorings"])}
    )  # fmt: skip


def cost(cell: Cell, grid: Mapping[str, JsonValue]) -> float:
    """How many times as long as the cell itself a grid point takes, by its steps and cells."""
    card = families()[cell.family]
    out = 1.0
    if "dt" in grid:
        base = settings_of(card, cell.engine.adapter, cell.config).dt
        out *= float(base / fraction(grid["dt"]))
    size, own = grid.get("cell"), cell_of(card)
    if isinstance(size, int | float) and own is not None:
        out *= (own / size) ** (3 if card.rates == "volume" else 2)
    return out


def _left(t: Trial) -> float:
    return math.inf if t.left is None else t.left


def _closed(trials: Sequence[Trial]) -> bool:
    return any(_left(t) <= CLOSES for t in trials)


def _scorings(cell: Cell, logs: Sequence[WorldLog]) -> tuple[Scoring, ...]:
    if not logs or families()[cell.family].quantity != "area":
        return ()
    card, _, built = scene_of(cell)
    return scorings(card, cell.subtask, cell.material, built, logs[0].state)


def _joined(text: str, found: object) -> str:
    assert isinstance(found, tuple)
    return "; ".join(t for t in (text, scoring_told(found)) if t)


def _said(m: Measurement) -> str:
    should = f" where {m.expected:.4g} is right" if m.expected is not None else ""
    return _value(m) + should


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def _value(m: Measurement) -> str:
    return f"{_words(m.metric)} {m.value:.4g}{_unit(m)}"


def _right(m: Measurement) -> str:
    return f"{m.expected:.4g}{_unit(m)}"


def _unit(m: Measurement) -> str:
    return "" if m.unit == "1" else f" {m.unit}"


def _line(t: Trial) -> str:
    if t.left is None:
        return f"  {t.name}: {t.status} {t.reason}".rstrip()
    return f"  {t.name}: {t.value:.4g}, {100 * t.left:.0f} % of the gap left"


def verdict(base: Measurement, trials: Sequence[Trial]) -> str:
    """Names what closes the gap, or says that nothing tried does."""
    known = [t for t in trials if t.left is not None]
    closing = [t for t in known if t.left is not None and t.left <= CLOSES]
    helping = [t for t in known if t.left is not None and CLOSES < t.left <= HELPS]

    def names(found: Sequence[Trial]) -> str:
        return "; ".join(f"{t.name} ({t.value:.4g})" for t in found)

    if closing:
        more = f"; also closes it: {names(closing[1:4])}" if closing[1:] else ""
        return f"{_said(base)}: closed by {names(closing[:1])}{more}"
    if helping:
        return f"{_said(base)}: nothing alone closes it; it helps: {names(helping[:3])}"
    return f"{_said(base)}: nothing that was tried closes it ({_tried(trials)})"


def _tried(trials: Sequence[Trial]) -> str:
    """How many changes were tried, and how many of them came to no number, by how they ended."""
    ended: dict[str, int] = {}
    for t in trials:
        if t.left is None:
            said = _ENDED.get(t.status, "did not have the number")
            ended[said] = ended.get(said, 0) + 1
    many = f"{len(trials)} change{'' if len(trials) == 1 else 's'}"
    return ", ".join([many, *(f"{n} of them {said}" for said, n in ended.items())])


_OF_STATUS = {"penetration": "penetration", "energy_gain": "energy_rise"}
"""The number that a status is of, where the family has it."""
_ENDED = {
    "time_out": "timed out", "crash": "crashed", "diverged": "diverged",
    "not_run": "could not be run",
}  # fmt: skip

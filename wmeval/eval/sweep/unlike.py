"""Cells of one task that were scored on different trials, whose numbers are not of the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wmeval.eval.sweep.cells import COMPLETE, CellResult


def unlike(cells: Sequence[CellResult]) -> list[str]:
    """Tasks of which fitted numbers were scored on other trials than named configurations.

    What was fitted on is never scored, so that one task stands for other trials there.

    Args:
        cells: of a sweep.

    Returns:
        A line for every such task.
    """
    of: dict[str, dict[frozenset[str] | int, list[str]]] = {}
    for r in cells:
        scored = _scored(r)
        if r.status in COMPLETE and not r.cell.repeat and scored:
            who = of.setdefault(r.cell.task, {}).setdefault(scored, [])
            label = f"{r.cell.engine.label}:{r.cell.config}"
            if label not in who:
                who.append(label)
    out = []
    for task, groups in of.items():
        if len(groups) < 2:
            continue
        told = "; ".join(f"{_count(x)} for {', '.join(who)}" for x, who in groups.items())
        sets = [x for x in groups if isinstance(x, frozenset)]
        common = f", {len(frozenset.intersection(*sets))} of them the same" if sets else ""
        half = f": name the half that no fit saw, as {_half(task, cells)}" if sets else ""
        out.append(
            f"{task} was scored on other trials, {told}{common}: their numbers are not to be "
            f"compared{half}"
        )
    return out


def _half(task: str, cells: Sequence[CellResult]) -> str:
    """A task of tosses as one of the other half: ``cube_toss/odd-100x1`` of ``100x1``."""
    fits = [str(r.facts.get("fitted_on", "")) for r in cells if r.cell.task == task]
    other = "even" if any("odd places" in x for x in fits) else "odd"
    family, wanted, _ = task.split("/")
    number = re.sub(r"^(even|odd)?-?(all)?", "", wanted)
    return f"{family}/{other}{'-' if number[:1].isdigit() else ''}{number}"


def _scored(r: CellResult) -> frozenset[str] | int:
    """Names of the tosses that a cell was scored on, or how many trials; nothing of others."""
    tosses = r.facts.get("tosses")
    if isinstance(tosses, dict):
        return frozenset(tosses)
    return next((m.trials for m in r.measurements if m.truth == "real" and m.trials), 0)


def _count(scored: frozenset[str] | int) -> int:
    return scored if isinstance(scored, int) else len(scored)

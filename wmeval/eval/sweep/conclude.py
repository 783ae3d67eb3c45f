"""What cells say together: twice the same, convergence in the step, engines apart."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import QUANTITY_UNITS, families
from wmeval.errors import UserError
from wmeval.eval.metrics.gauge import SCALES
from wmeval.eval.sweep.cells import COMPLETE, CellResult, fraction
from wmeval.eval.sweep.results import Agreement, Apart, Converged
from wmeval.eval.truths.converged import engine_spread, self_convergence

F8 = NDArray[np.float64]
Arrays = Callable[[str], Mapping[str, NDArray[Any]]]
"""States of a cell by its key."""


OVER = ("dt", "cell")
"""Grid settings in which cells converge: the step [s], a sheet's cells [m]."""


def _point(result: CellResult, *without: str) -> str:
    return ",".join(f"{k}={v}" for k, v in result.cell.grid.items() if k not in without)


def agreements(cells: Sequence[CellResult], arrays: Arrays) -> tuple[Agreement, ...]:
    """Pairs of a cell and its repeat, where both have states."""
    first = {c.cell.name: c for c in cells if c.cell.repeat == 0}
    out = []
    for again in cells:
        if not again.cell.repeat or not again.sha256:
            continue
        one = first.get(again.cell.model_copy(update={"repeat": 0}).name)
        if one is None or not one.sha256:
            continue
        same = one.sha256 == again.sha256
        spread = 0.0
        if not same:
            a, b = arrays(one.key), arrays(again.key)
            spread = _difference(a, b)
        out.append(
            Agreement(
                cell=one.cell.name, engine=one.cell.engine.label,
                declared=bool(one.deterministic), same=same, spread=spread,
            )
        )  # fmt: skip
    return tuple(out)


def _difference(a: Mapping[str, NDArray[Any]], b: Mapping[str, NDArray[Any]]) -> float:
    """Of bodies and markers at every frame, of what bends also at the instants of its strip.

    Of tosses at their last frames.
    """
    worst = 0.0
    strips = np.array_equal(a.get("strip", ()), b.get("strip", ()))
    for name in a.keys() & b.keys():
        if name in ("position", "markers", "toss_ends") or (
            strips and name.startswith("vertices/")
        ):
            n = min(len(a[name]), len(b[name]))
            if a[name].size and b[name].size:
                worst = max(worst, float(np.abs(a[name][:n] - b[name][:n]).max()))
    return worst


def _courses(cells: Sequence[CellResult], arrays: Arrays) -> list[tuple[CellResult, F8]]:
    out = []
    for r in cells:
        if r.cell.repeat or r.status not in COMPLETE:
            continue
        found = arrays(r.key).get("course")
        if found is not None and np.isfinite(found).all():
            scale = SCALES[families()[r.cell.family].quantity]
            out.append((r, np.asarray(found, np.float64) * scale))
    return out


def _size(result: CellResult, over: str) -> float:
    return float(fraction(result.cell.grid[over], over))


def convergence(cells: Sequence[CellResult], arrays: Arrays) -> tuple[Converged, ...]:
    """Of every engine, configuration and task with three steps, or sizes of cells, in the grid."""
    out = []
    for over in OVER:
        groups: dict[tuple[str, str, str, str], list[CellResult]] = defaultdict(list)
        for r in cells:
            if over in r.cell.grid:
                key = (r.cell.engine.label, r.cell.config, r.cell.task, _point(r, over))
                groups[key].append(r)
        for key, group in groups.items():
            if len(group) >= 3 and (made := _converged(key, group, over, arrays)) is not None:
                out.append(made)
    return tuple(out)


def _converged(
    key: tuple[str, str, str, str], group: list[CellResult], over: str, arrays: Arrays
) -> Converged | None:
    engine, config, task, point = key
    found = sorted(_courses(group, arrays), key=lambda x: -_size(x[0], over))
    if len(found) < 3:
        return None
    steps = [_size(r, over) for r, _ in found]
    values = [g for _, g in found]
    try:
        made = self_convergence(steps, values)
    except UserError:
        return None
    known = np.isfinite(made.limit).all()
    return Converged(
        engine=engine, config=config, task=task, point=point, over=over, steps=tuple(steps),
        errors=tuple(
            float(np.sqrt(np.mean((g - made.limit) ** 2))) if known else None for g in values
        ),
        unit=QUANTITY_UNITS[families()[found[0][0].cell.family].quantity],
        order=made.order if math.isfinite(made.order) else None,
        order_before=_order(steps[:-1], values[:-1]),
        error=made.error if math.isfinite(made.error) else None,
    )  # fmt: skip


def _order(steps: Sequence[float], values: Sequence[F8]) -> float | None:
    """Observed order; None where there are fewer than three, or it is none."""
    try:
        order = self_convergence(steps, values).order
    except UserError:
        return None
    return order if math.isfinite(order) else None


def spreads(cells: Sequence[CellResult], arrays: Arrays) -> tuple[Apart, ...]:
    """Of every task that two engines or more ran under one configuration."""
    groups: dict[tuple[str, str, str], dict[str, CellResult]] = defaultdict(dict)
    for r in cells:
        if not r.cell.repeat:
            groups[r.cell.config, r.cell.task, _point(r)][r.cell.engine.label] = r
    out = []
    for (config, task, point), group in groups.items():
        if len(group) < 2:
            continue
        found = {r.cell.engine.label: g for r, g in _courses(list(group.values()), arrays)}
        shapes: dict[tuple[int, ...], int] = defaultdict(int)
        for g in found.values():
            shapes[g.shape] += 1
        # A rope of links and one of nodes are not compared.
        common = max(shapes, key=lambda s: shapes[s], default=())
        found = {k: g for k, g in found.items() if g.shape == common}
        if len(found) < 2:
            continue
        made = engine_spread(found)
        unit = QUANTITY_UNITS[families()[task.split("/")[0]].quantity]
        out.append(
            Apart(
                config=config, task=task, point=point, unit=unit,
                pairs={f"{a} - {b}": v for (a, b), v in made.pairs.items()},
                largest=made.largest, between=made.between,
            )
        )  # fmt: skip
    return tuple(out)

"""The table for a paper: booktabs, with "not separable" marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wmeval.errors import UserError
from wmeval.eval import statistics
from wmeval.eval.metrics.table import METRICS
from wmeval.eval.results import PairResults, Row
from wmeval.eval.wording import main_rows, number

SETTINGS = ("view", "grid", "tolerance", "crf", "classical")
"""Settings that change what a number means; one table holds one value of each."""


def latex(results: Sequence[PairResults]) -> str:
    """A booktabs table of one or several candidates on the SAME references.

    The best value of a line is bold where every other candidate can be told apart from it; values
    that cannot be told apart from the best carry a dagger: "not separable". Equal values are
    equally good. With too few repetitions to tell anything apart, one footnote says so instead.

    Raises:
        UserError: nothing to show, or results on different references or by other settings.
    """
    if not results:
        raise UserError("a table needs at least one results.json")
    first = results[0]
    for other in results[1:]:
        if other.suite_sha256 != first.suite_sha256:
            raise UserError(
                f"{other.candidate!r} was compared with other references than {first.candidate!r} "
                f"({other.suite_sha256[:12]} and {first.suite_sha256[:12]}): one table holds one "
                "set; run both on the same plan and scene seeds"
            )
        for name in SETTINGS:
            ours, theirs = first.config.get(name), other.config.get(name)
            if ours != theirs:
                raise UserError(
                    f"{other.candidate!r} was measured with {name} {theirs!r}, "
                    f"{first.candidate!r} with {ours!r}: one table holds one way of measuring"
                )
        if other.wmeval != first.wmeval:
            raise UserError(
                f"{other.candidate!r} was measured by wmeval {other.wmeval}, {first.candidate!r} "
                f"by {first.wmeval}: run both with one version"
            )
    keys = dict.fromkeys(r.key for one in results for r in main_rows(one) if r.status == "measured")
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{tabular}{ll" + "r" * len(results) + "}",
        r"\toprule",
        " & ".join(["Metric", "Source", *(_tex(one.candidate) for one in results)]) + r" \\",
        r"\midrule",
    ]
    dimension = ""
    stands = []
    for key in keys:
        rows = [find(one, key) for one in results]
        stands.append(standing(rows))
        known = next(r for r in rows if r is not None and r.status == "measured")
        if dimension and known.dimension != dimension:
            lines.append(r"\addlinespace")
        dimension = known.dimension
        arrow = {"lower": r" $\downarrow$", "higher": r" $\uparrow$", "none": ""}[known.direction]
        unit = "" if known.unit == "1" else f" ({_tex(known.unit)})"
        cells = _tex_cells(rows, stands[-1])
        lines.append(" & ".join([_tex(known.title) + unit + arrow, known.source, *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    scenes, generations = len(first.config["scene_seeds"]), first.config["generations"]  # type: ignore[arg-type]
    lines += [
        f"% {_plain(first.config['env_id'])}, plan {_plain(first.config['plan'])}, "
        f"{scenes} scene seeds, {generations} generations; {first.note}",
        f"% references {first.suite_sha256}",
        "% mean over scenes, +- sample standard deviation over generations (N/A with one)",
        "% --: not measured, not run or ineligible",
        *("% " + note.replace("†", r"$^\dagger$:") for note in notes(results, stands)),
    ]
    return "\n".join(lines) + "\n"


def find(results: PairResults, key: tuple[str, str, str]) -> Row | None:
    """A candidate's row by key; None where it has none."""
    return next((r for r in results.rows if r.key == key), None)


@dataclass(frozen=True)
class Standing:
    """How the candidates of one line stand; rows go by their ``id``.

    Attributes:
        best: those with the best value; empty where nothing ranks: fewer than two are measured, no
            direction is better, or all are equal.
        tied: those not separable from the best.
        few: repetitions a side, where they are too few to separate anything; else None.
    """

    best: frozenset[int] = frozenset()
    tied: frozenset[int] = frozenset()
    few: int | None = None


def standing(rows: Sequence[Row | None]) -> Standing:
    """Who is best of a line, and who cannot be told from the best."""
    measured = [r for r in rows if r is not None and r.value is not None]
    if not measured or measured[0].direction == "none":
        return Standing()
    pick = min if measured[0].direction == "lower" else max
    top = pick(r.value or 0.0 for r in measured)
    best = [r for r in measured if r.value == top]
    others = [r for r in measured if r.value != top]
    if not others:
        return Standing()
    counts = [repetitions(r) for r in measured]
    names = frozenset(map(id, best))
    if not statistics.can_separate(*sorted(counts)[-2:]):
        return Standing(names, few=max(counts))
    tied = {id(r) for r in others if not all(separable(b, r) for b in best)}
    return Standing(names, frozenset(tied))


def notes(results: Sequence[PairResults], stands: Sequence[Standing]) -> list[str]:
    """What the marks of a table mean, one line each."""
    out = []
    if any(stand.tied for stand in stands):
        out.append("† not separable from the best of its line")
    few = [stand.few for stand in stands if stand.few is not None]
    if few:
        unit = "scenes" if len(results[0].cases) > 1 and max(few) > 1 else "repetitions"
        out.append(f"too few {unit} to separate the candidates ({max(few)}; it takes 4)")
    return out


def _tex_cells(rows: Sequence[Row | None], stand: Standing) -> list[str]:
    out = []
    for row in rows:
        if row is None or row.value is None:
            out.append("--")
            continue
        text = number(row.value)
        if row.std is not None:
            text += rf" \pm {number(row.std)}"
        if id(row) in stand.best and not stand.tied and stand.few is None:
            text = rf"\mathbf{{{text}}}"
        mark = r"^{\dagger}" if id(row) in stand.tied else ""
        out.append(f"${text}{mark}$")
    return out


def repetitions(row: Row) -> int:
    """Units of replication: scenes; or the generations of the only one, but for a proportion."""
    only = row.scenes == 1 and METRICS[row.metric].aggregate != "proportion"
    return row.generations if only else row.scenes


def separable(a: Row, b: Row) -> bool:
    """Whether two candidates are told apart by one line of the table.

    Proportions by Fisher's exact test over scenes (one is kept when all its generations are),
    everything else by `statistics.compare`.
    """
    left, right = _samples(a), _samples(b)
    if METRICS[a.metric].aggregate == "proportion":
        counts = [
            (sum(all(v > 50 for v in vs) for vs in scenes.values()), len(scenes))
            for scenes in (statistics.measured(left), statistics.measured(right))
        ]
        return statistics.fisher(*counts[0], *counts[1]) < statistics.ALPHA
    return statistics.compare(left, right).separable


def _samples(row: Row) -> dict[int, list[float]]:
    return {
        int(s): [math.nan if v is None else v for v in values] for s, values in row.samples.items()
    }


_TEX = {"\\": r"\textbackslash{}", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text)


def _plain(value: Any) -> str:
    return str(value).replace("\n", " ")

"""Results in words: numbers with units, sentences, lines of tables, what a value is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wmeval.eval.metrics.table import METRICS
from wmeval.eval.results import PairResults, Row

ARROWS: Mapping[str, str] = {"lower": "↓", "higher": "↑", "none": ""}


def number(value: float | None, *, unit: str = "", digits: int = 3) -> str:
    """A number with so many significant digits, whole ones without decimals, and its unit.

    A value that is none is "–".
    """
    if value is None or not math.isfinite(value):
        return "–"
    rounded = float(f"{value:.{digits - 1}e}")
    if value == round(value) and abs(value) < 1e5:
        text = f"{value:.0f}"
    elif abs(rounded) < 1e-6:
        text = "< 1e-6"
    elif abs(rounded) < 1e-4:
        text = f"{rounded:.{digits - 1}e}".replace("e-0", "e-")
    elif abs(rounded) < 10 ** (digits - 1):
        text = f"{rounded:.{digits - 1 - math.floor(math.log10(abs(rounded)))}f}"
    else:
        text = f"{rounded:.0f}" if abs(value) < 1e5 else f"{value:.{digits - 1}e}"
    text = "0" if text == "-0" else text
    return text if not unit or unit == "1" else f"{text} {unit}"


@dataclass(frozen=True)
class Line:
    """A line of a table: one row with its number, or all that lack theirs for one reason."""

    rows: tuple[Row, ...]

    @property
    def row(self) -> Row:
        """Its first row."""
        return self.rows[0]

    @property
    def title(self) -> str:
        """Title and direction of its metrics."""
        return ", ".join(f"{r.title} {ARROWS[r.direction]}".strip() for r in self.rows)


def lines(rows: Sequence[Row]) -> tuple[Line, ...]:
    """Measured rows as they come; then the others, joined by dimension, source and reason."""
    out: dict[Any, list[Row]] = {}
    for row in rows:
        missing = (row.dimension, row.subject, row.source, row.status, row.reason)
        out.setdefault(row.key if row.status == "measured" else missing, []).append(row)
    joined = sorted(out.values(), key=lambda group: group[0].status != "measured")
    return tuple(Line(tuple(group)) for group in joined)


def main_rows(results: PairResults) -> tuple[Row, ...]:
    """Rows of the driven body, picture, chain, light and liquid: those a reader looks at first."""
    first = (player_of(results), *_SUBJECTS)
    return tuple(r for r in results.rows if r.subject in first)


def player_of(results: PairResults) -> str:
    """Name of the driven body; empty where no path was asked for."""
    paths = [r.subject for r in results.rows if r.metric == "fde"]
    return paths[0] if paths else ""


_SUBJECTS = ("picture", "chain", "light", "liquid")
_HEADLINES = (
    "fde", "rmse", "robust_error", "rel_epe_dyn", "cos_sim_dyn", "csr", "icra",
    "surface_normal_error", "modal_amplitude_rmse", "sun_direction_error", "sun_color_error",
)  # fmt: skip


@dataclass(frozen=True)
class Headline:
    """What one dimension says, for a reader in a hurry.

    Attributes:
        dimension: evaluation dimension.
        sentences: (text, note, tone) by quantity; the note says what the number is worth, the tone
            is "good", "bad" or "plain" as `tone` gives it.
    """

    dimension: str
    sentences: tuple[tuple[str, str, str], ...]

    @property
    def tone(self) -> str:
        """The worst of its sentences' tones."""
        tones = [t for _, _, t in self.sentences]
        return next((t for t in ("bad", "plain", "good") if t in tones), "plain")


def headlines(results: PairResults) -> tuple[Headline, ...]:
    """A sentence per quantity, by dimension: the exact source where there is one."""
    out: dict[str, list[tuple[str, str, str]]] = {}
    rows = main_rows(results)
    for name in _HEADLINES:
        found = [r for r in rows if r.metric == name]
        if found:
            row = next((r for r in found if r.status == "measured"), found[0])
            video = next((r for r in found if r.source == "classical" and r is not row), None)
            out.setdefault(row.dimension, []).append(_sentence(row, video))
    return tuple(Headline(d, tuple(sentences)) for d, sentences in out.items())


def _sentence(row: Row, video: Row | None) -> tuple[str, str, str]:
    card = METRICS[row.metric]
    if row.status != "measured":
        return f"{card.title}: {status_text(row)}.", row.reason, "plain"

    def shown(value: float | None) -> str:
        return number(value, unit=card.unit)

    who = "It" if row.subject in _SUBJECTS else f"Its {spoken(row.subject)}"
    text = f"{who} {card.says.format(value=shown(row.value))}."
    notes = []
    own = "the reference's own video"
    if row.source == "classical":
        notes.append(f"measured from its video; {own}: {shown(row.pixel_floor)}")
    elif video is not None and video.value is not None:
        notes.append(f"from its video {shown(video.value)}; {own}: {shown(video.pixel_floor)}")
    if row.reduction_floor is not None and row.reduction_floor != row.identity:
        notes.append(f"coarser control alone: {shown(row.reduction_floor)}")
    if row.reason:
        notes.append(row.reason)
    return text, "; ".join(notes), tone(row)


def gist(results: PairResults) -> str:
    """One candidate in one sentence: where it ends, and where its causal chain breaks."""
    parts = []
    measured: dict[str, Row] = {}
    for row in main_rows(results):
        if row.status == "measured":
            measured.setdefault(row.metric, row)
    fde = measured.get("fde")
    if fde is not None:
        parts.append(METRICS["fde"].says.format(value=number(fde.value, unit=fde.unit)))
    csr = measured.get("csr")
    if csr is not None:
        broken, share = _first_break(results), number(csr.value, unit="%")
        if not broken:
            parts.append("keeps the causal chain whole" + (" as far as it goes" * bool(csr.reason)))
        elif csr.value:
            parts.append(f"keeps the causal chain in {share} of the cases, else breaks it")
        else:
            parts.append(f"breaks the causal chain at {broken}")
    return "; ".join(parts) or "nothing could be measured; its page says why"


def _first_break(results: PairResults) -> str:
    """The first stage that a case got wrong; empty when none did."""
    for case in results.cases:
        for x in case.measurements:
            if x.metric == "csr" and x.status == "measured":
                marks: Any = x.detail["stages_seen_caused"]
                wrong = next((name for name, _, caused in marks if not caused), "")
                if wrong:
                    return spoken(str(wrong))
    return ""


def short_names(candidates: Sequence[str]) -> tuple[list[str], str]:
    """Candidates without the options that all of them share, and those options in words.

    "twin:fps=15", "twin:delay=0.2,fps=15" are "twin", "twin:delay=0.2" and " · all with fps=15".
    """
    parts = [(kind, rest.split(",")) for kind, _, rest in (c.partition(":") for c in candidates)]
    shared = [x for x in parts[0][1] if "=" in x and all(x in rest for _, rest in parts)]
    names = []
    for kind, rest in parts:
        own = ",".join(x for x in rest if x not in shared)
        names.append(f"{kind}:{own}" if own else kind)
    if len(candidates) < 2 or not shared or len(set(names)) < len(names):
        return list(candidates), ""
    return names, f" · all with {', '.join(shared)}"


def spoken(name: str) -> str:
    """A name as it is said."""
    return name.replace("_", " ")


def tone(row: Row) -> str:
    """Whether a value is told from its worst floor: "good" within, "bad" clearly off, "plain"."""
    if row.status != "measured" or row.value is None:
        return "plain"
    floors = [f for f in (row.identity, row.pixel_floor, row.reduction_floor) if f is not None]
    if not floors or row.direction == "none":
        return "plain"
    lower = row.direction == "lower"
    worst = max(floors) if lower else min(floors)
    slack = 1e-9 + 0.1 * abs(worst)
    within = row.value <= worst + slack if lower else row.value >= worst - slack
    return "good" if within else "bad"


def status_text(row: Row) -> str:
    """A missing value, in words."""
    words = {"not_measured": "not measured", "not_run": "not run", "ineligible": "ineligible"}
    return words.get(row.status, row.status)


def span(interval: tuple[float, float]) -> str:
    """An interval as text."""
    return f"{number(interval[0])} … {number(interval[1])}"

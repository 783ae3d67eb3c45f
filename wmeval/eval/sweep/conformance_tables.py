"""Tables of what engines do with each parameter, and of what rests on which check."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import JsonValue

from wmeval.envs.gauge.configurations import NAMES
from wmeval.eval.conformance import CHECKS
from wmeval.eval.sweep.gates import RESTS
from wmeval.eval.sweep.tables import Entry, metric_title
from wmeval.eval.wording import number
from wmeval.sim.engines.engine_options import without_python


@dataclass(frozen=True)
class Conformance:
    """A check and every engine's effective value."""

    check: str
    quantity: str
    asked: str
    entries: tuple[Entry, ...]


def conformance_lines(
    rows: Sequence[Mapping[str, JsonValue]],
) -> tuple[list[str], list[Conformance]]:
    """Columns (engine and configuration) and lines of the conformance table.

    The first run of every check is the configuration's own; the others stand in `other_checks`.
    """
    heads = list(dict.fromkeys((str(r["label"]), str(r["config"])) for r in rows))
    by_check: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for r in rows:
        found = by_check.setdefault(str(r["check"]), {})
        found.setdefault((str(r["label"]), str(r["config"])), r)
    by_check = {name: by_check[name] for name in CHECKS if name in by_check}
    out = []
    for check, found in by_check.items():
        one = next(iter(found.values()))
        entries = []
        for head in heads:
            row = found.get(head)
            if row is None:
                entries.append(Entry("–"))
            elif row["effective"] is None:
                entries.append(_missing(row))
            else:
                entries.append(_effective(row))
        unit = "" if one["unit"] == "1" else f" [{one['unit']}]"
        asked = f"{number(float(one['asked']))} ± {number(float(one['tolerance']))}"
        out.append(Conformance(check, f"{one['quantity']}{unit}", asked, tuple(entries)))
    return [f"{label}, {config}" for label, config in heads], out


def _missing(row: Mapping[str, Any]) -> Entry:
    """What stands in place of a value; of a missing physics its first words say enough."""
    reason = str(row["reason"]).split(", and scene")[0]
    return Entry(str(row["status"]).replace("_", " "), reason)


def _effective(row: Mapping[str, Any]) -> Entry:
    """An effective value; where it is off, by how much."""
    off = row["status"] == "off"
    more = f"off by {number(row['off_by'])}" if off else ""
    value = float(row["effective"])
    text = f"{value:.2g}" if 0 < abs(value) < 1e-3 else number(value)
    return Entry(text, more, bad=off)


@dataclass(frozen=True)
class Other:
    """A check under settings that are not its configuration's own."""

    engine: str
    config: str
    settings: str
    check: str
    asked: str
    entry: Entry


def other_checks(rows: Sequence[Mapping[str, Any]]) -> list[Other]:
    """Checks under a family's own settings, a grid point's or a fitted file's."""
    seen: set[tuple[str, str, str]] = set()
    out = []
    for r in rows:
        key = (str(r["label"]), str(r["config"]), str(r["check"]))
        first = key not in seen
        seen.add(key)
        if first and r["config"] in NAMES:
            continue
        entry = _missing(r) if r["effective"] is None else _effective(r)
        asked = number(float(r["asked"]), unit=str(r["unit"]))
        out.append(Other(key[0], key[1], solved_with(r), key[2], asked, entry))
    return out


def solved_with(row: Mapping[str, Any]) -> str:
    """Settings of a conformance row in words: ``1800/s, 50 iterations, solver vbd``."""
    config = json.loads(str(row["settings"]))
    options = "".join(f", {k} {v}" for k, v in without_python(config["options"]).items())
    rate = float(1 / Fraction(str(row["dt"])))
    return f"{rate:g}/s, {config['iterations']} iterations{options}"


def resting() -> list[tuple[str, str]]:
    """Families with the checks that their numbers rest on, as the table says."""
    out: dict[str, list[str]] = {}
    for (family, subtask, metric), checks in RESTS.items():
        parts = f"subtask {subtask}" if subtask else "", metric_title(metric) if metric else ""
        of = " ".join(x for x in parts if x)
        names = ", ".join(c.replace("_", " ") for c in checks)
        out.setdefault(family, []).append(f"{of}: {names}" if of else names)
    return [(family, "; ".join(texts)) for family, texts in out.items()]

"""Shards of a sweep, before they are joined: whether they are whole, and all are there."""

from __future__ import annotations

import json
import os
import platform
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from wmeval.errors import UserError
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.planning import parse_shard
from wmeval.eval.sweep.results import SweepResults, read_sweep

_OF_ONE_RUN = ("shard", "limit_s", "engines", "machine")
"""What shards of one sweep may say differently; of engines the labels must be the same."""


def machine() -> str:
    """What a command runs on: its processor's name, and how many of its cores it sees."""
    try:
        told = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        names = [t.partition(":")[2].strip() for t in told.splitlines() if t[:10] == "model name"]
    except OSError:
        names = []
    name = names[0] if names else platform.processor() or platform.machine()
    cores = os.cpu_count() or 1
    return f"{' '.join(name.split())}, {cores} core{'s' if cores > 1 else ''}"


def plans_of(plan: Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """What was run by a plan of results, or by those that were joined; empty where none says."""
    if "merged" in plan:
        joined = plan.get("of")
        return [p for p in joined if isinstance(p, dict)] if isinstance(joined, list) else []
    return [dict(plan)] if plan else []


def _begun(folder: Path) -> dict[str, JsonValue] | None:
    """The plan of the last command in a folder; None where none is."""
    try:
        plan = json.loads((folder / "sweep.json").read_text("utf-8"))["plan"]
        return dict(plan)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{folder / 'sweep.json'}: cannot be read: run the command of this folder again"
        ) from error


def read_shard(folder: Path) -> SweepResults:
    """What a part of a sweep came to.

    Raises:
        UserError: the folder holds no sweep, or one that did not end.
    """
    begun, ended = _begun(folder), (folder / "results.json").is_file()
    if begun is None and not ended:
        raise UserError(f"{folder}: holds no cells of a sweep")
    results = read_sweep(folder) if ended else None
    # Results of an earlier command in the same folder are not what its last one came to.
    if results is None or begun not in (None, results.plan):
        raise UserError(f"{folder}: this shard did not end: run its command again, then merge")
    return results


def joined_in(out: Path) -> list[SweepResults]:
    """What is in the folder in which shards are joined: a sweep, those joined before, or nothing.

    Raises:
        UserError: a sweep that did not end.
    """
    begun = _begun(out)
    if begun is None or "merged" in begun:  # a merge that was killed is done again
        return [read_sweep(out)] if (out / "results.json").is_file() else []
    return [read_shard(out)]


def whole_shards(out: Path, parts: Sequence[SweepResults]) -> list[JsonValue]:
    """Plans of all that is joined in ``out``.

    Raises:
        UserError: a shard of the same sweep is missing.
    """
    plans = [plan for part in parts for plan in plans_of(part.plan)]
    found: dict[str, set[int]] = defaultdict(set)
    of: dict[str, int] = {}
    for plan in plans:
        i, n = parse_shard(str(plan.get("shard", "1/1")))
        sweep = json.dumps(
            [{k: v for k, v in plan.items() if k not in _OF_ONE_RUN}, _labels(plan), n]
        )
        found[sweep].add(i)
        of[sweep] = n
    missing = [
        f"{i}/{n}" for sweep, n in of.items() for i in range(1, n + 1) if i not in found[sweep]
    ]
    if missing:
        many = len(missing) > 1
        raise UserError(
            f"{out}: shard{'s' if many else ''} {', '.join(missing)} {'are' if many else 'is'} "
            f"missing: run {'them' if many else 'it'} (--shard {missing[0]}), then merge all"
        )
    return list({json.dumps(p): p for p in plans}.values())


def _labels(plan: dict[str, JsonValue]) -> list[str]:
    try:
        return [e.label for e in parse_engines(str(plan.get("engines", "")))]
    except UserError:
        return []

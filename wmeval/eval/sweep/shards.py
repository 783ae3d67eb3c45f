"""Shards of a sweep, before they are joined: whether they are whole, and all are there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from wmeval.errors import UserError
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.planning import parse_shard

_OF_ONE_RUN = ("shard", "limit_s", "engines")
"""What shards of one sweep may say differently; of engines the labels must be the same."""


def plans_of(folder: Path) -> list[dict[str, JsonValue]]:
    """What was run in a folder, or in those that were joined there; empty where nothing says."""
    try:
        plan = json.loads((folder / "sweep.json").read_text("utf-8"))["plan"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    if not isinstance(plan, dict):
        return []
    joined = plan.get("of")
    if "merged" in plan:
        return [p for p in joined if isinstance(p, dict)] if isinstance(joined, list) else []
    return [plan]


def whole_shards(out: Path, parts: Sequence[Path]) -> list[JsonValue]:
    """Plans of all that is joined, in ``out`` and in parts.

    Raises:
        UserError: a part did not end, or a shard of the same sweep is missing.
    """
    for part in parts:
        if (part / "sweep.json").is_file() and not (part / "results.json").is_file():
            raise UserError(f"{part}: this shard did not end: run its command again, then merge")
    plans = [plan for folder in (out, *parts) for plan in plans_of(folder)]
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

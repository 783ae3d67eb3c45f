"""What a set of clips will cost: core-hours, bytes and money, from a measured calibration.

``calibration.json`` beside this file is what ``python -m benchmarks.rigidbench`` measured; what it
did not measure is not told.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wmeval.assets.cards import library
from wmeval.datasets.set_runs import parse_shard
from wmeval.errors import UserError
from wmeval.generators.rigidbench import QUALITIES, chosen_quality, rows_of
from wmeval.sim.render import RENDERERS

CALIBRATION = Path(__file__).with_name("calibration.json")


@dataclass(frozen=True)
class Cost:
    """What clips of one renderer and preset take; None where nothing was measured.

    Attributes:
        renderer: row of `wmeval.sim.render.RENDERERS`.
        quality: row of `wmeval.generators.rigidbench.QUALITIES`.
        width: of the pictures [px].
        height: of the pictures [px].
        clips: how many.
        core_hours: of all clips.
        bytes: of all clips, without the meshes that clips share.
    """

    renderer: str
    quality: str
    width: int
    height: int
    clips: int
    core_hours: float | None
    bytes: float | None


def read_calibration() -> dict[str, Any]:
    """What was measured, and on which machine.

    Raises:
        UserError: nothing was.
    """
    try:
        return dict(json.loads(CALIBRATION.read_text()))
    except FileNotFoundError:
        raise UserError(
            f"{CALIBRATION} is not there: measure it with `python -m benchmarks.rigidbench`"
        ) from None


def costs(
    tasks: Sequence[str], *, width: int | None = None, height: int | None = None
) -> tuple[Cost, ...]:
    """Costs of clips, per renderer and preset.

    Drawing, encoding and bytes are taken as proportional to the pixels where another size than the
    preset's is asked for; drawing the sample and physics are not.

    Args:
        tasks: task of each clip.
        width: of the pictures [px]; default: the preset's.
        height: of the pictures [px]; default: the preset's.
    """
    measured = read_calibration()["clips"]
    wanted = Counter(tasks)
    out = []
    for renderer in RENDERERS:
        for quality in QUALITIES:
            size = chosen_quality(quality, width, height)
            known = measured.get(f"{renderer}/{quality}")
            seconds = taken = None
            if known is not None and all(task in known["by_task"] for task in wanted):
                ratio = size.width * size.height / (known["width"] * known["height"])
                each = known["by_task"]
                seconds = sum(
                    n * (each[t]["simulate_s"] + ratio * (each[t]["draw_s"] + each[t]["write_s"]))
                    for t, n in wanted.items()
                )
                taken = sum(n * ratio * each[t]["bytes"] for t, n in wanted.items())
            out.append(
                Cost(
                    renderer,
                    quality,
                    size.width,
                    size.height,
                    len(tasks),
                    None if seconds is None else seconds / 3600,
                    taken,
                )
            )
    return tuple(out)


def estimate(
    manifest: str | Path,
    *,
    quality: str | None = None,
    limit: int | None = None,
    tasks: Sequence[str] = (),
    assets: str | Path | None = None,
    hold_back: Sequence[str | Path] = (),
    seed: int = 0,
    shard: str | None = None,
    width: int | None = None,
    height: int | None = None,
    price: float | None = None,
) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """A table of what `generate_rigidbench` would cost with these arguments.

    Args:
        manifest: see `generate_rigidbench`, as all others.
        quality: checked; all are told.
        limit: only the first so many rows.
        tasks: only these.
        assets: folder of cards.
        hold_back: manifests.
        seed: of our own manifests.
        shard: "i/n".
        width: of the pictures [px].
        height: of the pictures [px].
        price: of a core-hour, in whatever currency.

    Returns:
        Title, columns and rows.

    Raises:
        UserError: as `generate_rigidbench`.
    """
    if quality is not None:
        chosen_quality(quality)
    part, parts = parse_shard(shard)
    rows = rows_of(manifest, library(assets), seed=seed, tasks=tasks, hold_back=hold_back)
    chosen = rows[:limit][part::parts]
    machine = read_calibration()["machine"]
    table: list[tuple[str, ...]] = []
    for cost in costs([row.task_type for row in chosen], width=width, height=height):
        head = (cost.renderer, cost.quality, f"{cost.width}x{cost.height}")
        if cost.core_hours is None or cost.bytes is None:
            table.append((*head, "not measured", "not measured", "" if price is None else "-"))
        else:
            money = "" if price is None else f"{cost.core_hours * price:.2f}"
            table.append((*head, f"{cost.core_hours:.2f}", _size(cost.bytes), money))
    title = f"{len(chosen)} clips, from clips measured on {machine['cpu']}"
    columns = ("renderer", "quality", "size", "core-hours", "bytes", "cost")
    shown = len(columns) - (price is None)
    return title, columns[:shown], [row[:shown] for row in table]


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"

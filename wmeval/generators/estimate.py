"""What a set of clips will cost: core-hours, bytes and money, from a measured calibration.

``calibration.json`` beside this file is what ``python -m benchmarks.rigidbench`` measured; what it
did not measure is not told.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wmeval.assets.cards import library
from wmeval.datasets.set_runs import parse_shard
from wmeval.envs.rigidbench.physics import FRAMES
from wmeval.errors import UserError
from wmeval.generators.rigidbench import QUALITIES, chosen_quality, rows_of
from wmeval.sim.render import RENDERERS

CALIBRATION = Path(__file__).with_name("calibration.json")

BASES = {
    "clips": "means of whole clips of this size",
    "scaled": "extrapolated from whole clips of the preset's size: a fixed part, more by pixels",
    "frames": "extrapolated from one small frame of each task, by pixels and samples; physics, "
    "writing and bytes are the raster's",
}
"""How a figure is known."""


@dataclass(frozen=True)
class Cost:
    """What clips of one renderer and preset take; None where nothing was measured.

    Attributes:
        basis: row of `BASES`: how it is known.
        renderer: row of `wmeval.sim.render.RENDERERS`.
        quality: row of `wmeval.generators.rigidbench.QUALITIES`.
        width: of the pictures [px].
        height: of the pictures [px].
        clips: how many.
        core_hours: of all clips.
        bytes: of all clips, without the meshes that clips share.
    """

    basis: str
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


def _fixed(measured: Mapping[str, Any], renderer: str, task: str, part: str) -> float:
    """What of a part of a clip's cost the pixels do not change.

    Of the raster it is where the line through draft and preview, which differ in size alone, meets
    no pixels; of Cycles, which is measured by frames, their overhead. 0 where neither is known.
    """
    if renderer == "cycles" and part == "draw_s":
        frames = [c["frame"] for name, c in measured.items() if name.startswith("cycles/")]
        return FRAMES * min((float(f["overhead_s"]) for f in frames), default=0.0)
    two = [measured.get(f"raster/{quality}") for quality in ("draft", "preview")]
    if None in two or any(task not in c["by_task"] for c in two if c):
        return 0.0
    (x0, y0), (x1, y1) = (
        (c["width"] * c["height"], c["by_task"][task][part]) for c in two if c is not None
    )
    return max(0.0, float(y0 - x0 * (y1 - y0) / (x1 - x0))) if x1 != x0 else 0.0


def costs(
    tasks: Sequence[str], *, width: int | None = None, height: int | None = None
) -> tuple[Cost, ...]:
    """Costs of clips, per renderer and preset.

    Where another size than the preset's is asked for, drawing, encoding and bytes are a fixed part
    and one that grows with the pixels; drawing the sample and physics stay.

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
            basis = "none"
            if known is not None and all(task in known["by_task"] for task in wanted):
                ratio = size.width * size.height / (known["width"] * known["height"])
                basis = "frames" if "frame" in known else "clips" if ratio == 1 else "scaled"
                seconds, taken = 0.0, 0.0
                for task, n in wanted.items():
                    each = known["by_task"][task]
                    at = dict(each)
                    for part in ("draw_s", "write_s", "bytes"):
                        fixed = min(each[part], _fixed(measured, renderer, task, part))
                        at[part] = fixed + ratio * (each[part] - fixed)
                    seconds += n * (at["simulate_s"] + at["draw_s"] + at["write_s"])
                    taken += n * at["bytes"]
            out.append(
                Cost(
                    basis,
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
    each: int | None = None,
    assets: str | Path | None = None,
    hold_back: Sequence[str | Path] = (),
    seed: int = 0,
    shard: str | None = None,
    width: int | None = None,
    height: int | None = None,
    price: float | None = None,
) -> tuple[str, tuple[str, ...], list[tuple[str, ...]], tuple[str, ...]]:
    """A table of what `generate_rigidbench` would cost with these arguments.

    Args:
        manifest: see `generate_rigidbench`, as all others.
        quality: checked; all are told.
        limit: only the first so many rows.
        tasks: only these.
        each: only the first so many rows of each task.
        assets: folder of cards.
        hold_back: manifests.
        seed: of our own manifests.
        shard: "i/n".
        width: of the pictures [px].
        height: of the pictures [px].
        price: of a core-hour, in whatever currency.

    Returns:
        Title, columns, rows, and how its figures are known.

    Raises:
        UserError: as `generate_rigidbench`.
    """
    if quality is not None:
        chosen_quality(quality)
    part, parts = parse_shard(shard)
    rows = rows_of(
        manifest, library(assets), seed=seed, tasks=tasks, each=each, hold_back=hold_back
    )
    chosen = rows[:limit][part::parts]
    machine = read_calibration()["machine"]
    table: list[tuple[str, ...]] = []
    bases: list[str] = []
    for cost in costs([row.task_type for row in chosen], width=width, height=height):
        head = (cost.renderer, cost.quality, f"{cost.width}x{cost.height}")
        if cost.core_hours is None or cost.bytes is None:
            told = ("not measured", "not measured")
            money = "-"
        else:
            told = (f"{cost.core_hours:.2f}", _size(cost.bytes))
            money = "-" if price is None else f"{cost.core_hours * price:.2f}"
        table.append((*head, *told, cost.basis, money))
        if cost.basis not in bases:
            bases.append(cost.basis)
    title = f"{len(chosen)} clips, from clips measured on {machine['cpu']}"
    columns = ("renderer", "quality", "size", "core-hours", "bytes", "from", "cost")
    shown = len(columns) - (price is None)
    notes = tuple(f"from {basis}: {BASES[basis]}" for basis in bases if basis in BASES)
    return title, columns[:shown], [row[:shown] for row in table], notes


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"

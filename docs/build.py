"""Write docs/generated/*.md from the code's own tables and docstrings, and copy the root pages."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE / "generated"
sys.path.insert(0, str(HERE.parent))  # for the benchmarks' docstrings


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def environments() -> str:
    """One section per environment: its class docstring is its page."""
    from wmeval.envs import every_row

    parts = ["# Environments\n"]
    for row in every_row().values():
        module, name = row.entry_point.split(":")
        cls = getattr(importlib.import_module(module), name)
        text = inspect.cleandoc(cls.__doc__ or "")
        text = re.sub(r"^(#+) ", lambda m: "#" * (len(m[1]) + 1) + " ", text, flags=re.M)
        parts.append(f"## {row.id}\n\n{text}\n")
    return "\n".join(parts)


def plans() -> str:
    """Every plan card."""
    from wmeval.envs import every_row
    from wmeval.envs.plans import load_plan, plans_of

    parts = ["# Action plans\n"]
    for env_id in (i for i in every_row() if plans_of(i)):
        rows = []
        for name in plans_of(env_id):
            plan = load_plan(env_id, name)
            rows.append((f"`{name}`", f"{plan.duration} s", ", ".join(plan.dimensions), plan.doc))
        parts += [
            f"## {env_id}\n",
            table(("plan", "length", "dimensions", "what it elicits"), rows),
        ]
    return "\n".join(parts)


def records() -> str:
    """The table of fields and the table of layers."""
    from wmeval.layers import LAYERS
    from wmeval.records import FIELDS

    fields = [
        (f"`{f.path}`", f.dtype, " × ".join(f.dims), f.unit, f.doc + (" (optional)" * f.optional))
        for f in FIELDS.values()
    ]
    layers = [
        (f"`{x.name}`", x.dtype, x.channels or 1, x.fill, x.unit, x.time_rule, x.doc)
        for x in LAYERS.values()
    ]
    return (
        "# Records and layers\n\n## Arrays of a rollout\n\n"
        + table(("path", "type", "dimensions", "unit", "meaning"), fields)
        + "\n## Picture layers\n\n"
        + table(("layer", "type", "channels", "fill", "unit", "between frames", "meaning"), layers)
    )


def metrics() -> str:
    """The table of metrics."""
    from wmeval.eval.metrics import METRICS
    from wmeval.eval.metrics.gauge_table import GAUGE_METRICS

    def rows(of: Any) -> list[tuple[str, ...]]:
        return [
            (f"`{m.name}`", m.unit, m.direction, m.dimension, m.nan_rule, m.source)
            for m in of.values()
        ]

    head = ("metric", "unit", "better", "dimension", "when it is not a number", "source")
    return (
        "# Metrics\n\nEach is reported on its own; there is no composite score.\n\n"
        + table(head, rows(METRICS))
        + "\n## Engines against truth (GAUGE)\n\n"
        + table(head, rows(GAUGE_METRICS))
    )


def commands() -> str:
    """The command's own help, as Markdown."""
    import typer.main

    from wmeval.cli import app

    def section(command: Any, path: str) -> list[str]:
        out = [f"## `{path}`\n", inspect.cleandoc(command.help or "") + "\n"]
        rows = []
        for param in command.params:
            if param.name == "help":
                continue
            names = ", ".join(f"`{o}`" for o in param.opts) if param.opts else f"`{param.name}`"
            note = getattr(param, "help", None) or ""
            rows.append((names, note))
        if rows:
            out.append(table(("argument or option", "meaning"), rows))
        for name, child in getattr(command, "commands", {}).items():
            out += section(child, f"{path} {name}")
        return out

    return "# Commands\n\n" + "\n".join(section(typer.main.get_command(app), "wmeval"))


def speed() -> str:
    """The last benchmark run that is in the tree, table by table."""
    results = json.loads((HERE.parent / "benchmarks" / "latest.json").read_text())
    machine = results.pop("machine")
    parts = [
        "# Speed\n",
        "Written by `make bench`: each figure and its yardstick (the bare engine, renderer or "
        "disk) are measured in one run.\n",
        table(("machine", ""), list(machine.items())),
    ]
    for name, figures in results.items():
        module = importlib.import_module(f"benchmarks.{name}")
        parts.append(f"## {name}\n\n{inspect.cleandoc(module.__doc__ or '')}\n")
        columns = getattr(module, "COLUMNS", None)
        if columns is None:
            parts.append(table(("figure", "value"), list(flat(figures))))
        else:
            rows = [(key, *(row[c] for c in columns)) for key, row in figures.items()]
            parts.append(table(("scene", *columns.values()), rows))
    return "\n".join(parts)


def flat(value: Any, prefix: str = "") -> Any:
    """(dotted name, number) of nested dictionaries."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, value


COLORS = (
    "Depth: near is bright. Ids: one colour per instance. Shadow masks: the colours of all bodies "
    "that cast a shadow there, mixed. Shadow azimuth: the hue is the direction in the picture. "
    "Flow: the hue is the direction, the saturation the length.\n"
)


def gallery() -> str:
    """Every scene with its layers, drawn now."""
    import cv2

    from docs.pictures import pictures_of, shoot, shot_of
    from wmeval.envs import ENVIRONMENTS, short_name
    from wmeval.tables import DIMENSIONS

    (OUT / "gallery").mkdir(exist_ok=True)
    parts = [
        "# All scenes\n",
        "Drawn from the scenes themselves when this page was built, by the renderer that rollouts "
        "use, each with the layers that have something to show there. The "
        "[environments](environments.md) page says what each scene is made of.\n",
        COLORS,
        table(
            ("scene", "actions", "observation", *DIMENSIONS.values()),
            [
                (
                    f"[{short_name(row.id)}](#{short_name(row.id).lower()})",
                    row.actions_text,
                    row.observation_text,
                    *("●" if d in row.dimensions else "" for d in DIMENSIONS),
                )
                for row in ENVIRONMENTS.values()
            ],
        ),
    ]
    for row in ENVIRONMENTS.values():
        name, shot = short_name(row.id), shot_of(row.id)
        parts.append(f"## {name}\n\n{row.summary[:1].upper()}{row.summary[1:]}.\n")
        parts.append(
            f"Actions: {row.actions_text}"
            + (f" (`{'`, `'.join(row.channels)}`)" if row.channels else "")
            + f". Observation: {row.observation_text}. Dimensions: "
            + ", ".join(d.replace("_", " ") for d in row.dimensions)
            + f". Shown: plan `{shot.plan}` at {shot.time} s.\n"
        )
        pictures = pictures_of(shoot(shot))
        for layer, picture in pictures.items():
            file = OUT / "gallery" / f"{name}-{layer}.jpg"
            small = picture if layer == "rgb" else cv2.resize(
                picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA
            )  # fmt: skip
            cv2.imwrite(str(file), small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 90])
            width = 640 if layer == "rgb" else 210
            what = f"{name}: {layer.replace('_', ' ')}"
            parts.append(f'![{what}](gallery/{file.name} "{what}"){{ width="{width}" }}')
        below = ", ".join(layer.replace("_", " ") for layer in pictures if layer != "rgb")
        parts.append(f"\nBelow the picture, in order: {below}.\n")
    return "\n".join(parts)


PAGES = {
    "gallery": gallery,
    "environments": environments,
    "plans": plans,
    "records": records,
    "metrics": metrics,
    "commands": commands,
    "speed": speed,
}


def main() -> None:
    """Build every page."""
    OUT.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (OUT / f"{name}.md").write_text(page())
    for source, target in (
        ("CONTRIBUTING.md", "contributing.md"),
        ("CHANGELOG.md", "changelog.md"),
    ):
        shutil.copy(HERE.parent / source, HERE / target)


if __name__ == "__main__":
    main()

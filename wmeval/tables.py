"""The product's tables as rows of text, for ``wmeval list`` and for the docs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wmeval.errors import UserError

Listing = tuple[str, tuple[str, ...], Sequence[tuple[str, ...]]]

# Evaluation dimensions in the paper's order (WMEval, Table 10 and section "Metrics Design").
DIMENSIONS: dict[str, str] = {
    "controllability": "control",
    "consistency": "consist.",
    "kinematics": "kinem.",
    "fluid": "fluid",
    "causality": "causal",
    "lighting": "light",
    "causal_lpips": "cLPIPS",
    "prompt_consistency": "prompt",
}


def _environments() -> Listing:
    from wmeval.envs import every_row

    rows = [
        (
            row.id,
            row.actions_text,
            row.observation_text,
            *("x" if d in row.dimensions else "" for d in DIMENSIONS),
            row.summary,
        )
        for row in every_row().values()
    ]
    return "environments", ("id", "act.", "obs.", *DIMENSIONS.values(), "what it is"), rows


def _plans() -> Listing:
    from wmeval.envs import every_row
    from wmeval.envs.plans import load_plan, plans_of

    rows = []
    for env_id in every_row():
        for name in plans_of(env_id):
            plan = load_plan(env_id, name)
            rows.append((env_id, name, f"{plan.duration} s", ", ".join(plan.dimensions), plan.doc))
    return "action plans", ("environment", "plan", "length", "dimensions", "what it elicits"), rows


def _engines() -> Listing:
    from wmeval.sim.engines import ENGINES, engine_info

    rows = []
    for name in ENGINES:
        info = engine_info(name)
        deterministic = "bit-identical" if info.deterministic else "no"
        rows.append((name, info.version, ", ".join(info.body_kinds), deterministic, info.clock))
    return "engines", ("name", "version", "bodies", "deterministic", "clock"), rows


def _renderers() -> Listing:
    from wmeval.sim.render import RENDERERS

    return "renderers", ("name", "class"), [(name, str(row)) for name, row in RENDERERS.items()]


def _candidates() -> Listing:
    from wmeval.envs.candidates import CANDIDATES

    rows = [(name, row.example, row.summary) for name, row in CANDIDATES.items()]
    return "candidates", ("name", "how it is written", "what it is"), rows


def _adapters() -> Listing:
    from wmeval.envs.adapters import ADAPTERS

    rows = [(name, row.summary) for name, row in ADAPTERS.items()]
    return "adapters", ("paradigm", "what it does"), rows


def _layers() -> Listing:
    from wmeval.layers import DERIVED, LAYERS

    rows = [
        (
            x.name,
            x.dtype,
            x.unit,
            f"from {', '.join(DERIVED[x.name])}, on reading" if x.name in DERIVED else "drawn",
            x.time_rule,
            x.doc,
        )
        for x in LAYERS.values()
    ]
    columns = ("name", "type", "unit", "how it is had", "between frames", "what it is")
    return "picture layers", columns, rows


def _metrics() -> Listing:
    from wmeval.eval.metrics import METRICS
    from wmeval.eval.metrics.gauge_table import GAUGE_METRICS

    known = (*METRICS.values(), *GAUGE_METRICS.values())
    rows = [(m.name, m.unit, m.direction, m.dimension, m.source) for m in known]
    return "metrics", ("name", "unit", "better", "dimension", "source"), rows


def _families() -> Listing:
    from wmeval.assets.gauge_cards import QUANTITY_UNITS, families

    rows = [
        (
            card.id,
            card.kind,
            str(len(card.subtasks)),
            ", ".join(card.materials),
            f"{card.quantity} {QUANTITY_UNITS[card.quantity]}",
            "x" if card.benchmarked else "",
            card.says,
        )
        for card in families().values()
    ]
    columns = ("family", "kind", "subtasks", "materials", "compared", "benchmarked", "what it is")
    return "families of GAUGE", columns, rows


def _truths() -> Listing:
    from wmeval.assets.gauge_cards import families
    from wmeval.eval.truths import predict

    rows = []
    for card in families().values():
        for name, subtask in card.subtasks.items():
            for material in subtask.frames:
                rows += [
                    (card.id, name, material, key, f"{number.value:.5g}", number.unit, number.says)
                    for made in predict(card, name, material)
                    for key, number in made.numbers.items()
                ]
    columns = ("family", "subtask", "material", "number", "value", "unit", "what it is")
    return "closed forms, worked out for the cards", columns, rows


def _published() -> Listing:
    from wmeval.assets.gauge_published import published

    known = published()

    def text(value: float | None) -> str:
        return "-" if value is None else f"{value:g}"

    rows = [
        (
            row.family, row.subtask, row.material, row.metric,
            f"{row.baseline:g} ({text(row.spread)})", row.unit,
            *(text(row.engines[e]) for e in known.engines),
        )
        for row in known.rows
    ]  # fmt: skip
    engines = (f"{e.name} {e.version}" for e in known.engines.values())
    columns = ("family", "subtask", "material", "metric", "baseline (std)", "unit", *engines)
    return (
        "published by GAUGE (Table 5), engines over the baseline, el raw; not ours",
        columns,
        rows,
    )


LISTINGS: dict[str, Callable[[], Listing]] = {
    "envs": _environments,
    "plans": _plans,
    "engines": _engines,
    "renderers": _renderers,
    "candidates": _candidates,
    "adapters": _adapters,
    "layers": _layers,
    "metrics": _metrics,
    "families": _families,
    "truths": _truths,
    "published": _published,
}


def listing(what: str) -> Listing:
    """Title, columns and rows of a table.

    Raises:
        UserError: no such table, naming the known ones.
    """
    if what not in LISTINGS:
        raise UserError(f"nothing called {what!r} to list: choose from {', '.join(LISTINGS)}")
    return LISTINGS[what]()

"""What a sweep is made of: engines as a caller names them, cells, and what became of each."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue, ValidationError, computed_field, model_validator

from wmeval.assets.gauge_cards import families
from wmeval.errors import UserError, first_problem, one_line
from wmeval.jobs import installed
from wmeval.jobs.ledger import checksum
from wmeval.scene import Card
from wmeval.sim.engines import ENGINES, WORKERS, engine_info
from wmeval.sim.engines.engine_checks import OF_EVERY_ENGINE
from wmeval.sim.engines.engine_options import with_python, without_python
from wmeval.sim.protocol import EngineConfig

UNSEEN = "the record does not show it"
"""Reason of a number that a record has, in principle, and this one does not tell."""
Status = Literal[
    "ok", "diverged", "penetration", "energy_gain", "time_out", "crash", "not_run"
]  # fmt: skip
STATUSES: dict[Status, str] = {
    "ok": "ran to its end",
    "diverged": "a state is not finite, something left the scene for good, or a rope has fallen",
    "penetration": "ran to its end, but something lay deep inside a body",
    "energy_gain": "ran to its end, but bodies gained energy that nothing gave them",
    "time_out": "was stopped after the time that a cell may take",
    "crash": "its process died, or the engine raised an error",
    "not_run": "the engine is not installed, or has not the physics",
}
"""How a cell can end."""
COMPLETE: tuple[Status, ...] = ("ok", "penetration", "energy_gain")
"""Of these the record reached its end."""

OF_SCENE = ("gap", "cell")
"""Grid settings that change the scene, not the engine."""


class EngineSpec(Card):
    """An engine as a caller names it.

    Attributes:
        label: its name in tables.
        adapter: row of `wmeval.sim.engines.ENGINES`.
        python: interpreter that holds its library; "": the one that is found. Of engines that
            run in this one (Bullet) none can be named.
    """

    label: str
    adapter: str
    python: str = ""


def absent(engine: EngineSpec) -> str:
    """Why a program that cannot be installed from here does not run; "" where it does."""
    if engine.adapter != "isaac":
        return ""
    try:
        installed.interpreter("isaac", engine.python)
    except UserError:
        return "Isaac Sim is not installed"
    return ""


def version_of(engine: EngineSpec) -> str:
    """Version of an engine as it is installed; "" where it is not."""
    if engine.adapter in (*WORKERS, "isaac"):
        return installed.version(engine.adapter, engine.python) or ""
    return engine_info(engine.adapter).version


def engines() -> tuple[str, ...]:
    """Adapters that have some of GAUGE's families."""
    return tuple(e for e in ENGINES if any(e in card.engines for card in families().values()))


def parse_engines(text: str) -> tuple[EngineSpec, ...]:
    """Engines of ``newton,bullet`` or ``name=main,adapter=newton,python=PATH,name=...``.

    Args:
        text: comma-separated; ``name=`` begins an engine whose ``adapter=`` and ``python=`` follow.

    Raises:
        UserError: an unknown engine or key, no adapter, one name twice, another engine's name, or
            an interpreter for what runs in this one.
    """
    out: list[dict[str, str]] = []
    keyed = False
    for token in (t.strip() for t in text.split(",")):
        if not token:
            continue
        key, equals, value = token.partition("=")
        if not equals:
            out.append({"name": token, "adapter": token})
            keyed = False
        elif key == "name":
            out.append({"name": value})
            keyed = True
        elif keyed and key in ("adapter", "python"):
            out[-1][key] = value
        else:
            raise UserError(
                f"--engines: {token!r}: write NAME, or name=LABEL,adapter=NAME,python=PATH"
            )
    specs = []
    for one in out:
        adapter = one.get("adapter", one["name"])
        known = engines()
        if adapter not in known:
            why = (
                f"{adapter} has none of GAUGE's families"
                if adapter in ENGINES
                else (f"no engine {adapter!r}")
            )
            raise UserError(f"--engines: {why}: choose from {', '.join(known)}")
        if not re.fullmatch(r"[A-Za-z0-9_.+-]+", one["name"]):
            raise UserError(f"--engines: the name {one['name']!r}: use letters, digits, _ . + -")
        if one["name"].casefold() in ENGINES and one["name"].casefold() != adapter:
            raise UserError(
                f"--engines: the name {one['name']!r} is another engine's, and this one is "
                f"{adapter}: choose another"
            )
        if "python" in one and adapter not in (*WORKERS, "isaac"):
            raise UserError(
                f"--engines: {one['name']}: {adapter} runs in wmeval's own interpreter: leave "
                "python= out, or run wmeval itself with the other one, and compare by --baseline"
            )
        specs.append(EngineSpec(label=one["name"], adapter=adapter, python=one.get("python", "")))
    labels = [s.label for s in specs]
    folded = [x.casefold() for x in labels]
    for k, label in enumerate(labels):
        if label in labels[:k]:
            raise UserError(f"--engines: {label!r} is named twice: tell them apart by name=LABEL")
        if folded[k] in folded[:k]:
            raise UserError(
                f"--engines: {labels[folded.index(folded[k])]!r} and {label!r} differ by case "
                "alone: tell them apart by name=LABEL"
            )
    if not specs:
        raise UserError("--engines: name one engine or more")
    return tuple(specs)


class Cell(Card):
    """One run: an engine, its settings, a set-up.

    Attributes:
        engine: who.
        config: ``published-settings``, ``tuned`` or the path of a file of fitted numbers.
        family, subtask, material: the set-up.
        grid: settings in place of the configuration's: ``dt`` (a fraction, as text) [s],
            ``iterations``, ``restitution_threshold`` and the engine's own options; of the scene
            (`OF_SCENE`) ``gap`` [m] between the cradle's balls and ``cell`` [m] of a sheet or foam.
        repeat: 0; 1 runs the same once more, to see whether it comes out the same.
        data: file of real data, where it is not the default's.
        drive: file of a recorded motion in place of the card's; "": the card's.
    """

    engine: EngineSpec
    config: str
    family: str
    subtask: str
    material: str
    grid: dict[str, JsonValue] = Field(default_factory=dict)
    repeat: int = 0
    data: str = ""
    drive: str = ""

    @property
    def task(self) -> str:
        """Its set-up, as tables say it."""
        return f"{self.family}/{self.subtask}/{self.material}"

    @property
    def name(self) -> str:
        """Engine, configuration, set-up and grid point: what tells it from other cells."""
        point = ",".join(f"{k}={v}" for k, v in self.grid.items())
        led = f" led by {Path(self.drive).name}" if self.drive else ""
        more = (f" [{point}]" if point else "") + led + (f" #{self.repeat}" if self.repeat else "")
        return f"{self.engine.label}:{self.config}:{self.task}{more}"

    @property
    def setting(self) -> tuple[str, str, str]:
        """Engine label, configuration and grid point: what rows of one table column share."""
        return self.engine.label, self.config, ",".join(f"{k}={v}" for k, v in self.grid.items())

    def key(self, stamp: str) -> str:
        """Name of its folder; ``stamp`` stands for versions and cards."""
        slug = re.sub(r"[^A-Za-z0-9._+-]+", "_", self.name)[:90]
        told = self.model_dump(mode="json", exclude=None if self.drive else {"drive"})
        return f"{slug}-{checksum([told, stamp])[:12]}"


def engine_config(cell: Cell, base: EngineConfig) -> EngineConfig:
    """A configuration with a grid point's settings in place of its own.

    Raises:
        UserError: a value of the wrong kind.
    """
    own = {k: v for k, v in cell.grid.items() if k not in ("dt", *OF_SCENE)}
    fields: dict[str, Any] = {name: own.pop(name) for name in OF_EVERY_ENGINE if name in own}
    told = {**base.model_dump(), **fields, "options": {**base.options, **own}}
    try:
        config = EngineConfig.model_validate(told)
    except ValidationError as error:
        raise UserError(f"--grid: {one_line(first_problem(error), 200)}") from error
    return with_python(config, cell.engine.python)


def told_settings(config: EngineConfig) -> dict[str, JsonValue]:
    """What a result says of a configuration: iterations, threshold, options."""
    return {
        "iterations": config.iterations,
        "restitution_threshold": config.restitution_threshold,
        **without_python(config.options),
    }


class Measurement(Card):
    """One number of one cell.

    Attributes:
        metric: ``rmse``, ``dtw``, ... of GAUGE, ``rmse_relative`` and ``rmse_published``
            (`wmeval.eval.sweep.otherwise`), or a number that a closed form predicts.
        truth: what it is held against: a row of `wmeval.eval.truths.TRUTHS`, ``converged``,
            ``real``; "" where the number stands by itself.
        value: None where it was not measured.
        unit: of value and expected.
        expected: the true value, where the metric is no error itself.
        ideal: what ``expected`` takes for granted where the stated parameters have it not (as an
            impact without loss); the number is then shown and not ranked.
        accuracy: relative error of the truth itself.
        baseline: what real trials come to in this metric [unit]: against ``real`` the recording's
            own, else GAUGE's; None where there is none.
        spread: standard deviation of ``baseline`` over its trials [unit]; None where it is unknown.
        trials: how many real trials ``baseline`` is of; 0 where there is none.
        n: frames that it is of.
        low, high: 95 % interval, or the range over repeats; None where there is none.
        reason: why it is missing; of a recording also how it was brought to the card's place.
        counts: whether the engine has the parameters that the number rests on, by the conformance
            suite under this cell's settings; False also where the suite was run, but not under
            these; None where it was not run at all.
        because: where it does not count, the checks that are off or were not run.
    """

    metric: str
    truth: str = ""
    value: float | None = None
    unit: str = "1"
    expected: float | None = None
    ideal: str = ""
    accuracy: float = 0.0
    baseline: float | None = None
    spread: float | None = None
    trials: int = 0
    n: int = 0
    low: float | None = None
    high: float | None = None
    reason: str = ""
    counts: bool | None = None
    because: str = ""

    @model_validator(mode="before")
    @classmethod
    def _made_anew(cls, told: Any) -> Any:
        """What is written with a number and worked out from it is not read."""
        return (
            {k: v for k, v in told.items() if k != "normalised"} if isinstance(told, dict) else told
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def normalised(self) -> float | None:
        """Value over its baseline; the energy loss stays raw, as published."""
        if self.value is None or self.baseline is None:
            return None
        if self.metric == "el":
            return self.value
        return self.value / self.baseline if self.baseline else None

    @property
    def error(self) -> float | None:
        """How far from what is true: the value of an error, the distance from what is expected."""
        if self.value is None:
            return None
        if self.expected is not None:
            return abs(self.value - self.expected)
        return self.value if self.metric in ERRORS else None


ERRORS = (
    "rmse", "dtw", "rmse_relative", "rmse_published", "penetration", "position_error",
    "rotation_error",
)  # fmt: skip
"""Metrics that are errors themselves: 0 is right."""


class CellResult(Card):
    """What became of a cell.

    Attributes:
        cell: which.
        key: name of its folder.
        status: row of `STATUSES`; ``reason``: in one line, with the time at which it ended.
        ended: simulated time reached [s]; ``seconds``: asked for [s].
        version: of the engine; ``solver``: as the configuration says; ``departs``: from it.
        deterministic: whether the engine declares it.
        hz: solver steps per second; ``settings``: iterations, threshold, options.
        facts: regimes of the parameter mapping, hashes of the drives.
        frames: recorded at 30 Hz.
        wall_s, cpu_s: of stepping [s]; None where the processes cannot tell.
        build_s: until state 0 [s].
        sha256: of all recorded states.
        penetration_mm: greatest depth of a corner, ball, rim or vertex in a body.
        measurements: the numbers.
    """

    cell: Cell
    key: str
    status: Status
    reason: str = ""
    ended: float = 0.0
    seconds: float = 0.0
    version: str = ""
    solver: str = ""
    departs: str = ""
    deterministic: bool | None = None
    hz: float = 0.0
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    frames: int = 0
    wall_s: float | None = None
    cpu_s: float | None = None
    build_s: float | None = None
    sha256: str = ""
    penetration_mm: float | None = None
    measurements: tuple[Measurement, ...] = ()

    def measurement(self, metric: str, truth: str | None = None) -> Measurement | None:
        """A number by its metric, and by its truth where several have it."""
        for one in self.measurements:
            if one.metric == metric and truth in (None, one.truth):
                return one
        return None


def fraction(text: object, what: str = "dt") -> Fraction:
    """A step as a user writes it: ``1/360`` or ``0.001``.

    Raises:
        UserError: no positive number.
    """
    try:
        value = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise UserError(f"{what} = {text}: write a positive fraction of a second, as 1/360")
    return value

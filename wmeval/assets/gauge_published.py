"""GAUGE's published baselines and engine results (Tables 3 and 5), read from their data card.

They stand beside this package's results as "published" and are never counted as its own. Engine
values are the published ones: each over its baseline, except the energy loss, which is raw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from wmeval.assets.gauge_cards import QUANTITY_UNITS, families
from wmeval.errors import UserError, first_problem
from wmeval.scene import Card

MetricName = Literal["rmse", "dtw", "lsd", "mte_first", "pd_fourier", "el"]
TRIALS = 20
"""Real trials that every published baseline is of (GAUGE, section 4.1)."""
_Number = float | None
_Row = tuple[
    str, str, str, Annotated[int, Field(ge=1)], MetricName,
    float, _Number, _Number, _Number, _Number,
]  # fmt: skip


class EngineVersion(Card):
    """An engine as it was benchmarked."""

    name: str
    version: str


class _Document(Card):
    source: str
    record_hz: int
    engines: dict[str, EngineVersion]
    units: dict[str, str]
    raw: tuple[str, ...]
    columns: tuple[str, ...]
    table_3: tuple[tuple[str, str, str], ...]
    rows: tuple[_Row, ...]

    @model_validator(mode="after")
    def _check(self) -> _Document:
        if self.columns[7:] != tuple(self.engines):
            raise ValueError("columns: the last three are the engines, in their order")
        keys = [(*row[:3], row[4]) for row in self.rows]
        twice = next((k for k in keys if keys.count(k) > 1), None)
        if twice:
            raise ValueError(f"rows: {twice} stands twice")
        cells = {k[:3] for k in keys}
        lost = [c for c in self.table_3 if c not in cells]
        if lost:
            raise ValueError(f"table_3: {lost[0]} has no row")
        return self


@dataclass(frozen=True)
class Published:
    """One published row.

    Attributes:
        family, subtask, material, metric: what it is of.
        frames: frames of the record.
        baseline: mean over the 20 real trials; of rmse and dtw the within-trial error [unit].
        spread: its standard deviation over trials [unit]; None where none is given.
        unit: of baseline and spread.
        engines: each engine's value over ``baseline`` (raw where ``raw``); None without a rollout.
        raw: whether the engines' values are raw.
        main_table: whether Table 3 shows it.
    """

    family: str
    subtask: str
    material: str
    frames: int
    metric: MetricName
    baseline: float
    spread: float | None
    unit: str
    engines: Mapping[str, float | None]
    raw: bool
    main_table: bool

    def absolute(self, engine: str) -> float | None:
        """An engine's value in ``unit``: the normalised one times the baseline.

        Raises:
            UserError: the engine was not benchmarked.
        """
        if engine not in self.engines:
            raise UserError(
                f"no published values of {engine!r}: choose from {', '.join(self.engines)}"
            )
        value = self.engines[engine]
        return value if value is None or self.raw else value * self.baseline


@dataclass(frozen=True)
class PublishedResults:
    """All published rows and the engines they are of."""

    source: str
    engines: Mapping[str, EngineVersion]
    rows: tuple[Published, ...]

    def find(self, family: str, subtask: str, material: str, metric: str) -> Published | None:
        """The row of a cell; None where GAUGE publishes none."""
        want = (family, subtask, material, metric)
        for row in self.rows:
            if (row.family, row.subtask, row.material, row.metric) == want:
                return row
        return None


def read_published(path: str | Path | Traversable) -> PublishedResults:
    """Read a card of published results.

    Raises:
        UserError: no such file, no YAML, or a wrong field.
    """
    entry = Path(path) if isinstance(path, str) else path
    try:
        card = _Document.model_validate(yaml.safe_load(entry.read_text("utf-8")))
    except ValidationError as error:
        raise UserError(f"card {entry}: {first_problem(error)}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"card {entry}: {error}") from error
    known = families()
    rows = []
    for row in card.rows:
        name, subtask, material, frames, metric, baseline, spread, *values = row
        if name not in known:
            raise UserError(f"card {entry}: there is no family {name!r}")
        unit = card.units.get(metric, QUANTITY_UNITS[known[name].quantity])
        rows.append(
            Published(
                name, subtask, material, frames, metric, baseline, spread, unit,
                dict(zip(card.engines, values, strict=True)), metric in card.raw,
                (name, subtask, material) in card.table_3,
            )
        )  # fmt: skip
    return PublishedResults(card.source, card.engines, tuple(rows))


@cache
def published() -> PublishedResults:
    """The built-in card of Tables 3 and 5."""
    return read_published(files("wmeval.assets").joinpath("gauge", "published.yaml"))

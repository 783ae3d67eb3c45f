"""Results as typed data: what was measured, on what, and how sure it is.

`Measurement` is one number of one case; `CaseRecord` one generation of one scene seed; `Row` one
line of the table over all of them; `PairResults` the whole of results.json. A number that does not
exist is ``None`` with a status and a reason; there is no composite over rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, JsonValue, ValidationError

from wmeval.errors import UserError, first_problem, what_of
from wmeval.scene import Card

FORMAT = "wmeval-results/1"
NOTE = "own scenes: not comparable with the papers' tables"

Status = Literal["measured", "not_measured", "not_run", "ineligible"]
MeasureSource = Literal["oracle", "classical", "learned", "none"]
Document = TypeVar("Document", bound=Card)


class PairConfig(Card):
    """All that makes a comparison again.

    Attributes:
        env_id: environment.
        candidate: as `wmeval.envs.candidates.parse_candidate` reads it.
        plan: name of a plan card of the environment.
        scene_seeds: seeds of references, of the evaluation family.
        generations: draws of the candidate per case.
        view: camera; metres from pixels need a still one. "": the plan's, else static.
        width, height: the reference's picture size; a candidate's own size wins for its case.
        env_kwargs: constructor arguments of the environment.
        grid: "candidate": the reference is shown at the candidate's frames, nothing interpolated;
            "reference": the candidate's paths are interpolated at the control times.
        tolerance: windowing of the causal chain [s]; None: the candidate's whole clip.
        crf: quality of the mp4 files that pixels are measured from.
        suite: folder of a frozen suite that the references are read from; None records them.
        suite_content: content hash of that suite.
    """

    env_id: str
    candidate: str
    plan: str
    scene_seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    generations: int = Field(default=1, ge=1, le=1000)
    view: str = ""
    width: int = Field(default=640, ge=16, le=8192)
    height: int = Field(default=352, ge=16, le=8192)
    env_kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    grid: Literal["candidate", "reference"] = "candidate"
    tolerance: float | None = Field(default=None, gt=0)
    crf: int = Field(default=18, ge=0, le=51)
    suite: str | None = None
    suite_content: str | None = None


class Measurement(Card):
    """One number of one case.

    Attributes:
        metric: row of `wmeval.eval.metrics.table.METRICS`.
        subject: whose it is: a body, a group of bodies, "picture", "chain", "light" or "liquid".
        source: how the candidate's quantities were recovered; the reference's are always exact.
        status: measured, or why not.
        value: None unless measured.
        n: things counted (frames, quantities, flow pairs, stages).
        coverage: share of what should have been counted, in [0, 1]; None where it has no meaning.
        reason: of a missing value; empty otherwise.
        detail: raw parts beside the number.
    """

    metric: str
    subject: str
    source: MeasureSource
    status: Status = "measured"
    value: float | None = None
    n: int = 0
    coverage: float | None = None
    reason: str = ""
    detail: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """(metric, subject, source)."""
        return self.metric, self.subject, self.source


class Track(Card):
    """A body's path as the report draws it; ``None`` where not measured.

    Attributes:
        body: name.
        source: oracle or classical.
        xyz: (T, 3) [m], rounded to 0.1 mm.
    """

    body: str
    source: MeasureSource
    xyz: tuple[tuple[float, float, float] | None, ...]


class EventMark(Card):
    """An event as the report draws it."""

    kind: str
    time: float
    label: str


class CaseRecord(Card):
    """One generation of one scene seed, as committed to disk.

    Attributes:
        scene_seed, generation: which.
        case_id: name of the case.
        model: the candidate's card.
        fingerprint: of the candidate that was scored.
        reference_sha256: of the reference's states, contacts and actions.
        reference_files: stands for the reference's files (sha256 of their SHA256SUMS).
        shape: the reference's trajectory shape ("none" where the scene has no chain).
        candidate_shape: the candidate's, by its own events; None where they are not known.
        times: of the shared frames [s].
        measurements: the candidate against the reference.
        identity: the oracle on itself.
        pixel_floor: the reference's own video through the same classical perception.
        reduction_floor: the same world driven by the reduced actions.
        quantities: the mechanical quantities behind ErrorRate, one mapping each.
        reference_tracks, candidate_tracks, floor_tracks: for plots.
        reference_events, candidate_events: for timelines; None where not known.
        files: name -> path relative to the output folder.
    """

    scene_seed: int
    generation: int
    case_id: str
    model: dict[str, JsonValue]
    fingerprint: str
    reference_sha256: str
    reference_files: str
    shape: str
    candidate_shape: str | None
    times: tuple[float, ...]
    measurements: tuple[Measurement, ...]
    identity: tuple[Measurement, ...]
    pixel_floor: tuple[Measurement, ...]
    reduction_floor: tuple[Measurement, ...]
    quantities: tuple[dict[str, JsonValue], ...]
    reference_tracks: tuple[Track, ...]
    candidate_tracks: tuple[Track, ...]
    floor_tracks: tuple[Track, ...]
    reference_events: tuple[EventMark, ...]
    candidate_events: tuple[EventMark, ...] | None
    files: dict[str, str]


class Row(Card):
    """One line of the table.

    Attributes:
        metric, subject, source, unit, direction, dimension, title: what it is.
        status: measured when any case was.
        value: mean over scenes of the scenes' means over generations (a maximum or a percentage
            where the metric says so); None unless measured.
        std: over generations within scenes; None with one generation ("N/A").
        interval: 95 %, over scenes by cluster bootstrap, Clopper-Pearson for proportions; None
            below two scenes.
        scenes, generations: measured scenes and values.
        cases: cases in all, measured or not.
        coverage: mean over measured cases.
        identity, pixel_floor, reduction_floor: means over cases; None where there is none.
        floor_reason: why there is no pixel floor.
        p_reference: Fisher exact p against the reference's own chain (proportions only).
        samples: scene seed -> values of its generations (None: not measured).
        reason: of a missing value, or what some cases lack.
    """

    metric: str
    subject: str
    source: MeasureSource
    title: str
    dimension: str
    unit: str
    direction: Literal["lower", "higher", "none"]
    status: Status
    value: float | None
    std: float | None
    interval: tuple[float, float] | None
    scenes: int
    generations: int
    cases: int
    coverage: float | None
    identity: float | None
    pixel_floor: float | None
    reduction_floor: float | None
    floor_reason: str = ""
    p_reference: float | None = None
    samples: dict[str, tuple[float | None, ...]]
    reason: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """(metric, subject, source)."""
        return self.metric, self.subject, self.source


class PairResults(Card):
    """All of results.json.

    Attributes:
        format: this format's name and version.
        wmeval: version of the package.
        note: how far the numbers compare.
        candidate: as it was asked for.
        model: the candidate's card.
        config: everything that makes the run again.
        suite_sha256: content hash of the references; tables refuse to mix different ones.
        rows: the table.
        cases: the records behind it.
    """

    format: Literal["wmeval-results/1"] = "wmeval-results/1"
    wmeval: str
    note: str = NOTE
    candidate: str
    model: dict[str, JsonValue]
    config: dict[str, JsonValue]
    suite_sha256: str
    rows: tuple[Row, ...]
    cases: tuple[CaseRecord, ...]

    def row(self, metric: str, subject: str, source: str) -> Row:
        """A line of the table.

        Raises:
            KeyError: no such line.
        """
        for row in self.rows:
            if row.key == (metric, subject, source):
                return row
        raise KeyError((metric, subject, source))

    def to_json(self) -> str:
        """Stable text: sorted keys, one trailing newline."""
        return dumps(self)


def dumps(card: Card) -> str:
    """A card as stable JSON text."""
    return json.dumps(card.model_dump(mode="json"), sort_keys=True, indent=1) + "\n"


def read_results(path: str | Path) -> PairResults:
    """Read a results.json, or the one in a folder.

    Raises:
        UserError: not there, not JSON, or not of this format; the message names the field.
    """
    return read_document(path, PairResults, FORMAT, made_by="wmeval pair")


def read_document(path: str | Path, kind: type[Document], form: str, *, made_by: str) -> Document:
    """Read a card from results.json, or from the one in a folder.

    Args:
        path: file or folder.
        kind: of the card.
        form: what its ``format`` must say.
        made_by: the command that writes such a file.

    Raises:
        UserError: not there, not JSON, or not of this format; the message names the field.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "results.json"
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run `{made_by}` first") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{path}: not a JSON file that can be read ({what_of(error)})") from error
    if not isinstance(document, dict) or document.get("format") != form:
        raise UserError(f"{path}: not a {form} file")
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from error

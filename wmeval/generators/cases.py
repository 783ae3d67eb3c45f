"""The hand-off to a machine that only runs the model: cases out as files, clips back as mp4.

``export_cases`` writes a folder that needs nothing of this package to be used:

- ``model.yaml``: the model's card; ``cases.json``: what is expected back;
- ``<case_id>/context/000.png ...``: context frames at the model's size, the last is the seed frame;
- ``<case_id>/case.json``: prompts, intrinsics, frames to make, a seed per generation;
- ``<case_id>/controls.json``: native controls on the model's own clock, one per block.

The model's code puts ``<case_id>/<generation>.mp4`` beside them; frame 0 is the seed frame.
``check_cases`` says what is missing or wrong; the ``video`` candidate then plays the folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from wmeval.datasets.png import read_png, write_png
from wmeval.datasets.suite import Suite, SuiteCase
from wmeval.envs.adapters import Keys, channels_of, control_json, holds, make_adapter
from wmeval.envs.candidates.video import read_clip
from wmeval.envs.case import Case, resized_context
from wmeval.envs.model import ModelSpec, read_spec
from wmeval.envs.wrapper import model_controls
from wmeval.errors import UserError
from wmeval.jobs.atomic import FolderKind, atomic_dir, claim

FORMAT = "wmeval-cases/1"
CASES_FOLDER = FolderKind(
    files=r"(model\.yaml|cases\.json)|[^/]+/((case|controls)\.json|context/\d+\.png|\d+\.mp4)",
    marks={r"cases\.json": f'"{FORMAT}"'},
)
SEED_FRAME_LIKENESS = 0.85
"""Below this `likeness`, frame 0 of a clip is not taken for the seed frame.

Measured on seed frames of the three scenes, two views, 256x144 and 640x352: re-encoded at crf 18 to
35 they keep 0.944 or more, blurred and brightened as by an image model's decoder 0.959, shrunk to a
quarter and back 0.894; the frame's mean colour reaches 0.68, mirrored or seen from another camera
0.70, with red and blue exchanged 0.39, its columns' means 0.81.
"""


@dataclass(frozen=True)
class Exported:
    """What `export_cases` did.

    Attributes:
        folder: where.
        exported: case to frames expected, seed frame included.
        ineligible: case to the reasons for which no dimension of it may be scored.
        skipped: (case, dimension) to the reason, for cases that are exported for other dimensions.
    """

    folder: Path
    exported: dict[str, int]
    ineligible: dict[str, tuple[str, ...]]
    skipped: dict[tuple[str, str], str]


@dataclass(frozen=True)
class Checked:
    """What `check_cases` found.

    Attributes:
        expected: clips expected.
        good: clips that are there and right.
        missing: relative names of clips that are not there.
        wrong: relative name to what is wrong and how to mend it.
        doubtful: relative name to what looks wrong (frame 0 is not the seed frame).
        extra: mp4 files that nobody asked for.
    """

    expected: int
    good: int
    missing: tuple[str, ...]
    wrong: dict[str, str]
    doubtful: dict[str, str]
    extra: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Every clip is there and right."""
        return self.good == self.expected


def export_cases(
    suite: Suite,
    card: str | Path | ModelSpec,
    out: str | Path,
    *,
    generations: int = 5,
    overwrite: bool = False,
) -> Exported:
    """Write the cases of a suite for one model.

    Args:
        suite: of `wmeval.datasets.suite.read_suite`.
        card: the model's card, or its file.
        out: new folder.
        generations: draws of every case that are wanted.
        overwrite: replace such a folder at ``out``, with all clips in it.

    Raises:
        UserError: a bad card, a folder that exists or holds anything else, or a plan too short for
            one block.
    """
    spec = card if isinstance(card, ModelSpec) else read_spec(card)
    if generations < 1:
        raise UserError(f"generations = {generations}: give at least 1")
    exported: dict[str, int] = {}
    ineligible: dict[str, tuple[str, ...]] = {}
    skipped: dict[tuple[str, str], str] = {}
    rows = []
    replaced = CASES_FOLDER if overwrite else None
    with claim(out), atomic_dir(out, replaces=replaced) as folder:
        for entry in suite.cases():
            case = _case(entry)
            reference = entry.reference()
            actions = reference.actions
            channels = case.followed(channels_of(case.env_id), reference.log, actions)
            adapter = make_adapter(
                spec, channels, control_period=entry.control_period, prompt=case.plan.prompt
            )
            reasons = {d: adapter.eligible(case.env_id, d, spec) for d in case.plan.dimensions}
            refused = {d: r for d, r in reasons.items() if r is not None}
            if len(refused) == len(reasons):
                ineligible[entry.case_id] = tuple(refused.values())
                continue
            skipped.update({(entry.case_id, d): r for d, r in refused.items()})
            controls = model_controls(spec, entry.control_period, adapter, actions)
            frames = len(controls) * spec.frames_per_action + 1
            _write_case(folder / entry.case_id, entry, case, spec, controls, frames, generations)
            exported[entry.case_id] = frames
            rows.append({"case_id": entry.case_id, "frames": frames, "not_scored": refused})
        text = yaml.safe_dump(spec.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        (folder / "model.yaml").write_text(text, encoding="utf-8")
        _dump(
            folder / "cases.json",
            {
                "format": FORMAT,
                "suite": suite.content_hash,
                "generations": generations,
                "frame_0": "the seed frame",
                "fps": str(spec.fps),
                "width": spec.width,
                "height": spec.height,
                "cases": rows,
                "ineligible": {c: list(r) for c, r in ineligible.items()},
            },
        )
    return Exported(Path(out), exported, ineligible, skipped)


def check_cases(folder: str | Path) -> Checked:
    """Check the clips that came back, every frame of each.

    Args:
        folder: of `export_cases`.

    Raises:
        UserError: not such a folder.
    """
    folder = Path(folder)
    spec = read_spec(folder / "model.yaml")
    try:
        index = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
        expected = {
            f"{row['case_id']}/{g}.mp4": int(row["frames"])
            for row in index["cases"]
            for g in range(int(index["generations"]))
        }
        if index["format"] != FORMAT:
            raise ValueError(f"format {index['format']!r}, not {FORMAT!r}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{folder / 'cases.json'}: not written by `wmeval cases export` ({error})"
        ) from error
    missing, wrong, doubtful = [], {}, {}
    for name, count in expected.items():
        path = folder / name
        if not path.is_file():
            missing.append(name)
            continue
        try:
            clip = read_clip(path, spec, count)
        except UserError as error:
            wrong[name] = str(error)
            continue
        seed = read_png(path.parent / "context" / f"{spec.context_length - 1:03d}.png")
        found = likeness(clip[0], seed)
        if found < SEED_FRAME_LIKENESS:
            doubtful[name] = (
                f"frame 0 is not like the seed frame (correlation {found:.2f}, at least "
                f"{SEED_FRAME_LIKENESS} is expected): frame 0 of the mp4 must be the last context "
                "frame"
            )
    present = {p.relative_to(folder).as_posix() for p in folder.glob("*/*.mp4")}
    good = len(expected) - len(missing) - len(wrong) - len(doubtful)
    extra = tuple(sorted(present - set(expected)))
    return Checked(len(expected), good, tuple(missing), wrong, doubtful, extra)


def likeness(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Pearson correlation of two pictures' values (H, W, 3), -1 to 1; 0 where one is plain."""
    x, y = (p.astype(np.float64).ravel() - p.mean() for p in (a, b))
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0


def _case(entry: SuiteCase) -> Case:
    try:
        return Case.model_validate(entry.case)
    except ValueError as error:
        raise UserError(f"{entry.folder / 'case.json'}: {error}") from error


def _write_case(
    folder: Path,
    entry: SuiteCase,
    case: Case,
    spec: ModelSpec,
    controls: Sequence[Any],
    frames: int,
    generations: int,
) -> None:
    context = resized_context(entry.seed_frame(), entry.K, case.plan, spec, entry.control_period)
    for i, frame in enumerate(context.frames):
        write_png(folder / "context" / f"{i:03d}.png", frame)
    S: Fraction = spec.clock.block_duration
    document: dict[str, Any] = {
        "paradigm": spec.paradigm,
        "fps": str(spec.fps),
        "frames_per_action": spec.frames_per_action,
        "chunk": spec.chunk,
        "block_seconds": str(S),
        "controls": [control_json(c) for c in controls],
    }
    if spec.paradigm == "keyboard":
        keys = [c for c in controls if isinstance(c, Keys)]
        document["holds"] = [
            {"key": h.key, "start": str(h.start), "duration": str(h.duration)}
            for h in holds(keys, S)
        ]
    _dump(folder / "controls.json", document)
    _dump(
        folder / "case.json",
        {
            "case_id": entry.case_id,
            "env_id": case.env_id,
            "view": case.view,
            "camera_motion": case.camera_motion,
            "prompt": case.plan.prompt,
            "negative_prompt": case.plan.negative_prompt,
            "context_frames": len(context.frames),
            "frames": frames,
            "fps": str(spec.fps),
            "width": spec.width,
            "height": spec.height,
            "intrinsics": context.K.tolist(),
            "seeds": list(range(generations)),
            "clips": [f"{entry.case_id}/{g}.mp4" for g in range(generations)],
        },
    )


def _dump(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")

"""Pairing: the same actions to a reference world and to a candidate, and how far they part.

For every scene seed the reference is recorded once, on the candidate's frames; every generation of
the candidate is driven with the same actions on the same clock and measured against it. Beside each
number stand the checks that tell what it is worth: the oracle on itself, the reference's own video
through the same perception, and what reducing the actions costs by itself.

A run is resumed by running it again: a finished case is a ``case.json`` that was written last.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import Field, JsonValue, ValidationError

from wmeval.clock import CandidateClock
from wmeval.errors import UserError
from wmeval.eval import measure as m
from wmeval.eval import statistics
from wmeval.eval.metrics.flow import sampled_frames
from wmeval.eval.metrics.table import METRICS, NEEDS_WEIGHTS
from wmeval.eval.perception import (
    CLASSICAL_SETTINGS,
    Estimate,
    Still,
    classical,
    floor_balls,
    oracle,
    resample,
)
from wmeval.eval.results import (
    CaseRecord,
    EventMark,
    Measurement,
    PairResults,
    Row,
    Track,
    dumps,
)
from wmeval.records import Clip, Event, Events, WorldLog
from wmeval.scene import Card

F8 = NDArray[np.float64]
Progress = Callable[[str], None]

ROUNDING_PX = 1e-3
"""Exact flow below this is rounding of the labels, and counts as none."""

_DIMENSIONS = tuple(
    dict.fromkeys([*(x.dimension for x in METRICS.values()),
                   *(x.dimension for x in NEEDS_WEIGHTS.values())])
)  # fmt: skip


class PairConfig(Card):
    """All that makes a comparison again.

    Attributes:
        env_id: environment.
        candidate: as `wmeval.envs.candidates.parse_candidate` reads it.
        plan: name of a plan card of the environment.
        scene_seeds: seeds of references, of the evaluation family.
        generations: draws of the candidate per case.
        view: camera; metres from pixels need a still one.
        width, height: the reference's picture size; a candidate's own size wins for its case.
        env_kwargs: constructor arguments of the environment.
        grid: "candidate": the reference is shown at the candidate's frames, nothing interpolated;
            "reference": the candidate's paths are interpolated at the control times.
        tolerance: windowing of the causal chain [s]; None: the candidate's whole clip.
        crf: quality of the mp4 files that pixels are measured from.
    """

    env_id: str
    candidate: str
    plan: str
    scene_seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    generations: int = Field(default=1, ge=1, le=1000)
    view: str = "static"
    width: int = Field(default=640, ge=16, le=8192)
    height: int = Field(default=352, ge=16, le=8192)
    env_kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    grid: Literal["candidate", "reference"] = "candidate"
    tolerance: float | None = Field(default=None, gt=0)
    crf: int = Field(default=18, ge=0, le=51)


def run_pair(
    config: PairConfig,
    out: str | Path,
    *,
    workers: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> PairResults:
    """Compare a candidate with a reference world, and leave results.json and report.html.

    Args:
        config: what is compared.
        out: folder; a run of the same settings that stands there is completed, and may be given
            more scene seeds or generations.
        workers: processes over scene seeds; 0 runs here.
        overwrite: forget what stands in ``out``.
        progress: called with one line per step.

    Returns:
        The results, as written.

    Raises:
        UserError: unknown names, a folder of other settings, or a candidate that failed; finished
            cases stay and are not repeated.
    """
    from wmeval.eval.report import write_report
    from wmeval.jobs.atomic import write_text
    from wmeval.jobs.executors import LocalExecutor

    tell = progress or (lambda line: None)
    out = Path(out)
    job = _resolved(config)
    _claim(out, job, overwrite=overwrite)
    if workers:
        units = [partial_seed(job, str(out), seed) for seed in config.scene_seeds]
        outcomes = LocalExecutor(workers=workers).map(_run_unit, units)
        failed = [o.error for o in outcomes if not o.ok]
        if failed:
            raise UserError(str(failed[0]))
    else:
        for seed in config.scene_seeds:
            run_seed(job, out, seed, tell)
    cases = [
        _finished(_folder(out, job, seed, generation))
        for seed in config.scene_seeds
        for generation in range(config.generations)
    ]
    results = collect(job, [c for c in cases if c is not None])
    write_text(out / "results.json", results.to_json())
    write_report(results, out)
    tell(f"{out / 'report.html'}")
    return results


# --- the run's folder ---------------------------------------------------------------------------

_GROWS = ("scene_seeds", "generations")


def _resolved(config: PairConfig) -> PairConfig:
    from wmeval.envs import environment_row
    from wmeval.envs.candidates import parse_candidate
    from wmeval.envs.plans import load_plan

    row = environment_row(config.env_id)
    load_plan(row.id, config.plan)
    parse_candidate(config.candidate)
    return config.model_copy(update={"env_id": row.id})


def _claim(out: Path, job: PairConfig, *, overwrite: bool) -> None:
    """Make the folder this job's, or refuse."""
    import shutil

    from wmeval.jobs.atomic import write_text

    path = out / "config.yaml"
    if overwrite and path.exists():
        shutil.rmtree(out)
    if path.exists():
        try:
            old = PairConfig.model_validate(yaml.safe_load(path.read_text("utf-8")))
        except (yaml.YAMLError, ValidationError) as error:
            raise UserError(
                f"{path}: not a comparison's settings ({error}); choose another --out"
            ) from error
        for name in PairConfig.model_fields:
            if name not in _GROWS and getattr(old, name) != getattr(job, name):
                raise UserError(
                    f"{path}: {name} is {getattr(old, name)!r} there and {getattr(job, name)!r} "
                    "now; choose another --out, or --overwrite"
                )
    elif out.is_dir() and any(out.iterdir()):
        raise UserError(f"{out}: not empty and not a comparison; choose another --out")
    write_text(path, yaml.safe_dump(job.model_dump(mode="json"), sort_keys=False))


def _folder(out: Path, job: PairConfig, seed: int, generation: int) -> Path:
    case_id: str = _case(job, seed).case_id
    return out / "cases" / case_id / f"g{generation:02d}"


def _finished(folder: Path) -> CaseRecord | None:
    """The record of a case that was finished; None when it has to be done (again)."""
    try:
        record = CaseRecord.model_validate_json((folder / "case.json").read_text("utf-8"))
    except (OSError, ValidationError):
        return None
    root = folder.parents[2]
    return record if all((root / f).is_file() for f in record.files.values()) else None


def partial_seed(job: PairConfig, out: str, seed: int) -> tuple[str, str, int]:
    """One unit for a worker process."""
    return job.model_dump_json(), out, seed


def _run_unit(unit: tuple[str, str, int]) -> None:
    text, out, seed = unit
    run_seed(PairConfig.model_validate_json(text), Path(out), seed, lambda line: None)


# --- one scene seed -----------------------------------------------------------------------------


def _case(job: PairConfig, seed: int, *, width: int = 0, height: int = 0) -> Any:
    from wmeval.envs.case import Case
    from wmeval.envs.plans import load_plan

    return Case(
        env_id=job.env_id,
        env_kwargs=job.env_kwargs,
        scene_seed=seed,
        plan=load_plan(job.env_id, job.plan),
        view=job.view,
        width=width or job.width,
        height=height or job.height,
    )


def run_seed(job: PairConfig, out: Path, seed: int, tell: Progress) -> None:
    """All generations of one scene seed; those that are finished are left alone."""
    from wmeval.envs.adapters import channels_of, make_adapter
    from wmeval.envs.candidates import parse_candidate
    from wmeval.envs.wrapper import drive
    from wmeval.jobs.atomic import write_text

    todo = [g for g in range(job.generations) if _finished(_folder(out, job, seed, g)) is None]
    if not todo:
        return
    candidate = parse_candidate(job.candidate)
    case = _case(job, seed)
    model = candidate(case, generation=todo[0])
    try:
        spec = model.spec
        with case.open() as env:
            actions = case.actions(env)
            context = case.context(env, spec)
            adapter = make_adapter(
                spec,
                channels_of(env),
                control_period=env.clock.control_period,
                prompt=case.plan.prompt,
            )
            reasons = _ineligible(env, spec)
            tell(f"seed {seed}: reference")
            reference = Reference.record(env, case, spec, actions, job, out)
            for generation in todo:
                folder = _folder(out, job, seed, generation)
                if generation != todo[0]:
                    model.close()
                    model = candidate(case, generation=generation)
                tell(f"seed {seed}, generation {generation}: {spec.name}")
                clip = None
                if not set(_DIMENSIONS) <= set(reasons):
                    clip = drive(model, adapter, actions, context, seed=generation)
                record = reference.compare(clip, generation, candidate.kind, reasons, folder)
                write_text(folder / "case.json", dumps(record))
    finally:
        model.close()


def _ineligible(env: Any, spec: Any) -> dict[str, str]:
    from wmeval.envs.adapters import channels_of, ineligible

    moves = channels_of(env).moves
    found = {d: ineligible(env.ID, d, spec, moves) for d in _DIMENSIONS}
    return {d: reason for d, reason in found.items() if reason is not None}


@dataclass(frozen=True, eq=False)
class Reference:
    """One recorded reference, ready to be compared with.

    Attributes:
        job: settings.
        out: the run's folder.
        seed: scene seed.
        case_id: name of the case.
        env: to draw exact labels with; open while in use.
        fps: the candidate's frame rate.
        size: the candidate's picture (width, height) [px].
        truth: on the candidate's frames.
        tracks: on the frames of the chosen grid (the truth's own for grid "candidate").
        sha256: of the states, contacts and actions.
        masks: movable body -> mask (H, W) in the first frame.
        camera: the still camera, or None.
        files: reference.mp4, reference.h5, relative to ``out``.
        identity, pixel_floor, reduction_floor: the checks.
        floor: the estimate behind the pixel floor.
    """

    job: PairConfig
    out: Path
    seed: int
    case_id: str
    env: Any
    fps: Fraction
    size: tuple[int, int]
    truth: m.Truth
    tracks: m.Truth
    sha256: str
    masks: Mapping[str, NDArray[np.bool_]]
    camera: Still | None
    files: Mapping[str, str]
    identity: tuple[Measurement, ...]
    pixel_floor: tuple[Measurement, ...]
    reduction_floor: tuple[Measurement, ...]
    floor: Estimate

    @classmethod
    def record(
        cls, env: Any, case: Any, spec: Any, actions: F8, job: PairConfig, out: Path
    ) -> Reference:
        """Record the reference on the candidate's frames, and measure its floors."""
        from wmeval.datasets.rollout import write_hdf5
        from wmeval.datasets.video import read_mp4, write_mp4
        from wmeval.envs.record import record
        from wmeval.envs.wrapper import frame_count

        clock = spec.clock
        period = env.clock.control_period
        frames = frame_count(spec, period, len(actions))
        times = spec.times(0, frames)
        size = (spec.width, spec.height)
        rollout = record(
            env,
            plan=case.plan,
            seed=case.scene_seed,
            options=case.options,
            layers=("rgb",),
            view=case.view,
            width=size[0],
            height=size[1],
            frame_times=times,
        )
        if rollout.frames is None or len(rollout.frames) < 2:
            raise UserError(f"{case.case_id}: the reference ends before the candidate's 2nd frame")
        # The reference may end early (it left the floor): both stop at the shorter.
        times = times[: len(rollout.frames)]
        folder = out / "cases" / case.case_id
        rgb = rollout.frames.layers["rgb"]
        write_mp4(folder / "reference.mp4", (rgb[i] for i in range(len(times))), clock.fps,
                  crf=job.crf)  # fmt: skip
        write_hdf5(rollout, folder / "reference.h5", layers=())
        log = rollout.state_of_frames()
        sampled = sampled_frames(times)
        pairs = tuple(pairwise(sampled))
        shape = rollout.metadata.get("shape") or "none"
        truth = m.Truth(
            rollout.scene, log, times, pairs, exact_flows(env, log, case.view, size, pairs),
            rollout.log.events, shape, env.PLAYER,
        )  # fmt: skip
        tracks = truth
        if job.grid == "reference":
            steps = [k for k in range(len(actions) + 1) if k * period <= times[-1]]
            rows = [rollout.log.state.row_of_substep(k * env.clock.substeps) for k in steps]
            tracks = m.Truth(
                rollout.scene, rollout.log.rows(rows), tuple(k * period for k in steps), pairs,
                truth.flows, truth.events, shape, env.PLAYER,
            )  # fmt: skip
        masks = first_masks(env, log, case.view, size)
        camera = still_camera(env, log, case.view, size)
        decoded, _ = read_mp4(folder / "reference.mp4")
        floor = classical(
            decoded, times, scene=truth.scene, balls=floor_balls(truth.scene), masks=masks,
            camera=camera, pairs=pairs,
        )  # fmt: skip
        bodies = [b for group in truth.subjects.values() for b in group]
        self = cls(
            job=job, out=out, seed=case.scene_seed, case_id=case.case_id, env=env, fps=clock.fps,
            size=size, truth=truth, tracks=tracks, sha256=rollout.sha256(), masks=masks,
            camera=camera, identity=(), pixel_floor=(), reduction_floor=(), floor=floor,
            files={
                "reference.mp4": f"cases/{case.case_id}/reference.mp4",
                "reference.h5": f"cases/{case.case_id}/reference.h5",
            },
        )  # fmt: skip
        own = oracle(_with_events(log, truth.events), times, bodies=bodies, flows=truth.flows)
        changes: dict[str, Any] = {
            "identity": self.score(own)[0],
            "pixel_floor": self.score(floor)[0],
        }
        changes["reduction_floor"] = self._reduced(case, spec, actions, changes["identity"])
        return cls(**{**self.__dict__, **changes})

    def score(self, estimate: Estimate) -> tuple[tuple[Measurement, ...], tuple[Any, ...]]:
        """Every metric of an estimate on this reference's grid."""
        if self.job.grid == "reference":
            estimate = resample(estimate, self.tracks.times)
        return m.measure(self.tracks, estimate, tolerance=self.job.tolerance)

    def _reduced(
        self, case: Any, spec: Any, actions: F8, identity: tuple[Measurement, ...]
    ) -> tuple[Measurement, ...]:
        """The same world driven by the actions as the candidate's clock reduces them.

        Nothing at the reference's own clock; the identity where every block sees one action alone.
        """
        from wmeval.envs.adapters import channels_of, make_adapter
        from wmeval.envs.candidates import parse_candidate
        from wmeval.envs.wrapper import drive

        period = self.env.clock.control_period
        if spec.clock.frames_per_action == 1 and spec.clock.fps * period == 1:
            return ()
        if spec.clock.fps * self.env.clock.dt > 1:
            return ()
        if reduces_nothing(spec.clock, period, actions):
            return identity
        # Its pictures are not looked at, so they are as small as pictures may be.
        text = (
            f"twin:fps={spec.clock.fps},stride={spec.clock.frames_per_action},"
            f"chunk={spec.clock.chunk},width=16,height=16"
        )
        twin = parse_candidate(text)(case)
        try:
            adapter = make_adapter(twin.spec, channels_of(self.env), control_period=period)
            case.reset(self.env)
            clip = drive(twin, adapter, actions, case.context(self.env, twin.spec))
        finally:
            twin.close()
        return self.score(self._oracle(clip))[0]

    def _oracle(self, clip: Clip) -> Estimate:
        """What a simulator-backed candidate's record says, cut to the shared frames."""
        assert clip.record is not None
        n = min(len(clip), len(self.truth.times))
        log = clip.record.rows(slice(0, n))
        bodies = [b for group in self.truth.subjects.values() for b in group]
        pairs = [p for p in self.truth.pairs if p[1] < n]
        flows = exact_flows(self.env, log, self.job.view, self.size, pairs)
        return oracle(log, clip.times[:n], bodies=bodies, flows=flows)

    def compare(
        self,
        clip: Clip | None,
        generation: int,
        kind: str,
        reasons: Mapping[str, str],
        folder: Path,
    ) -> CaseRecord:
        """Measure one generation.

        Args:
            clip: the candidate's frames; None when it may be scored on nothing.
            generation: which draw.
            kind: of candidate; a "video" was encoded before and is not encoded again.
            reasons: dimension -> why it is ineligible.
            folder: for the candidate's mp4.
        """
        from wmeval.datasets.video import read_mp4, write_mp4

        files = dict(self.files)
        estimates: list[Estimate] = []
        if clip is not None:
            if len(clip) < len(self.truth.times):
                raise UserError(
                    f"{self.case_id}: the candidate has {len(clip)} frames where the reference has "
                    f"{len(self.truth.times)}; run it again with all its controls"
                )
            n = len(self.truth.times)
            write_mp4(folder / "candidate.mp4", iter(clip.frames), self.fps, crf=self.job.crf)
            files["candidate.mp4"] = f"cases/{self.case_id}/{folder.name}/candidate.mp4"
            seen = clip.frames if kind == "video" else read_mp4(folder / "candidate.mp4")[0]
            if clip.record is not None:
                estimates.append(self._oracle(clip))
            estimates.append(
                classical(
                    seen[:n], clip.times[:n], scene=self.truth.scene,
                    balls=floor_balls(self.truth.scene), masks=self.masks, camera=self.camera,
                    pairs=self.truth.pairs,
                )
            )  # fmt: skip
        measurements: list[Measurement] = []
        quantities: list[dict[str, JsonValue]] = []
        for estimate in estimates:
            found, behind = self.score(estimate)
            measurements += found
            quantities += [_quantity(q, estimate.source) for q in behind]
        if clip is None:
            measurements = [x.model_copy(update={"source": "none"}) for x in self.identity]
        served = tuple(self.env.row.dimensions)
        measured = m.ineligible([*measurements, *m.unrun(served)], reasons)
        events = next((e.events for e in estimates if e.events is not None), None)
        return CaseRecord(
            scene_seed=self.seed,
            generation=generation,
            case_id=self.case_id,
            reference_sha256=self.sha256,
            shape=self.truth.shape,
            candidate_shape=None if events is None else _shape(events),
            times=tuple(float(t) for t in self.truth.times),
            measurements=measured,
            identity=self.identity,
            pixel_floor=self.pixel_floor,
            reduction_floor=self.reduction_floor,
            quantities=tuple(quantities),
            reference_tracks=tuple(
                _track(b, "oracle", self.truth.position(b)) for b in self._shown()
            ),
            candidate_tracks=tuple(
                _track(b, e.source, e.positions[b])
                for e in estimates
                for b in self._shown()
                if b in e.positions
            ),
            floor_tracks=tuple(
                _track(b, "classical", self.floor.positions[b])
                for b in self._shown()
                if b in self.floor.positions
            ),
            reference_events=_marks(self.truth.events),
            candidate_events=None if events is None else _marks(events),
            files=files,
        )

    def _shown(self) -> tuple[str, ...]:
        """Bodies whose paths the report draws."""
        groups = self.truth.subjects
        return tuple(b for names in groups.values() if len(names) <= 16 for b in names)


def reduces_nothing(clock: CandidateClock, control_period: Fraction, actions: F8) -> bool:
    """Whether every block that is sent overlaps equal actions, so that reducing changes none."""
    for b in range(clock.blocks_sent(len(actions), control_period)):
        first, last = (clock.weights_of_block(b, control_period)[k][0] for k in (0, -1))
        if (actions[first : last + 1] != actions[first]).any():
            return False
    return True


# --- what the reference's renderer and log say --------------------------------------------------


def exact_flows(
    env: Any,
    log: WorldLog,
    view: str,
    size: tuple[int, int],
    pairs: Sequence[tuple[int, int]],
) -> tuple[NDArray[np.float32], ...]:
    """Exact flows (H, W, 2) [px] of frame pairs, from depth, ids and poses of a scene's log.

    NaN where a surface point cannot be seen in the second frame (ours): the far side of a rolling
    ball moves, but no picture shows where to.
    """
    from wmeval.sim.protocol import render_state
    from wmeval.sim.render import labels

    camera = env.camera_index(view)
    instance = labels.instances(env.scene)
    drawn: dict[int, Any] = {}
    out = []
    for a, b in pairs:
        for k in {a, b} - set(drawn):
            drawn[k] = env.draw(
                ("depth", "ids"), width=size[0], height=size[1], view=view, log=log, row=k
            )
        first, second = (render_state(log, k, env.scene, camera) for k in (a, b))
        here = drawn.pop(a)
        field = np.asarray(labels.flow(here["depth"], here["ids"], first, second, instance))
        hidden = labels.occlusion(
            here["depth"], here["ids"], first, drawn[b]["depth"], drawn[b]["ids"], second,
            instance, tolerance=0.005,
        )  # fmt: skip
        field = np.where(hidden[..., None], np.float32(np.nan), field.astype(np.float32))
        # A still picture has no direction: rounding must not give it one.
        field[np.hypot(field[..., 0], field[..., 1]) < ROUNDING_PX] = 0.0
        out.append(field)
    return tuple(out)


def first_masks(
    env: Any, log: WorldLog, view: str, size: tuple[int, int]
) -> dict[str, NDArray[np.bool_]]:
    """Masks (H, W) of the movable bodies that the first frame shows."""
    ids = env.draw(("ids",), width=size[0], height=size[1], view=view, log=log, row=0)["ids"]
    movable = [b for b in env.scene.bodies if b.motion != "static" and b.mass > 0 and b.instance]
    masks = {b.name: ids == b.instance for b in movable}
    return {name: mask for name, mask in masks.items() if mask.any()}


def still_camera(env: Any, log: WorldLog, view: str, size: tuple[int, int]) -> Still | None:
    """The view's camera when it does not move in the whole log, else None."""
    from wmeval.conventions import intrinsics

    camera = env.camera_index(view)
    poses, fov = log.cameras.T_world_camera[:, camera], log.cameras.fov_y[:, camera]
    if (poses != poses[0]).any() or (fov != fov[0]).any():
        return None
    return Still(intrinsics(float(fov[0]), *size), poses[0])


def _with_events(log: WorldLog, events: Events) -> WorldLog:
    return WorldLog(log.state, log.cameras, log.lights, log.contacts, events)


def _shape(events: Events) -> str:
    from wmeval.sim.events import classify_shape

    return classify_shape(events)


def _track(body: str, source: Any, xyz: F8) -> Track:
    rows = tuple(
        tuple(round(float(v), 4) for v in row) if np.isfinite(row).all() else None for row in xyz
    )
    return Track(body=body, source=source, xyz=rows)


def _marks(events: Events) -> tuple[EventMark, ...]:
    def label(e: Event) -> str:
        return " – ".join(x for x in (e.body_a, e.body_b) if x)

    return tuple(EventMark(kind=e.kind, time=e.time, label=label(e)) for e in events)


def _quantity(q: Any, source: str) -> dict[str, JsonValue]:
    return {
        "name": q.name,
        "body": q.body,
        "unit": q.unit,
        "source": source,
        "candidate": q.candidate if math.isfinite(q.candidate) else None,
        "reference": q.reference,
        "floor": q.floor,
    }


# --- the table ----------------------------------------------------------------------------------


def collect(job: PairConfig, cases: Sequence[CaseRecord]) -> PairResults:
    """Sum up cases: one row per metric, subject and source."""
    import wmeval
    from wmeval.envs.candidates import parse_candidate

    candidate = parse_candidate(job.candidate)
    model = candidate(_case(job, job.scene_seeds[0]), generation=0)
    try:
        spec = model.spec
    finally:
        model.close()
    keys = list(dict.fromkeys(x.key for case in cases for x in case.measurements))
    subjects = list(dict.fromkeys(subject for _, subject, _ in keys))
    keys.sort(key=lambda key: _order(key, subjects))
    return PairResults(
        wmeval=wmeval.__version__,
        candidate=job.candidate,
        model=spec.model_dump(mode="json"),
        config={**job.model_dump(mode="json"), "classical": dict(CLASSICAL_SETTINGS)},
        suite_sha256=suite_hash(cases),
        rows=tuple(_row(key, cases) for key in keys),
        cases=tuple(cases),
    )


def suite_hash(cases: Sequence[CaseRecord]) -> str:
    """Sha256 over the references' content, seed by seed: equal for equal references only."""
    lines = sorted({f"{c.case_id} {c.reference_sha256}" for c in cases})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _order(key: tuple[str, str, str], subjects: Sequence[str]) -> tuple[int, ...]:
    metric, subject, source = key
    names = [*METRICS, *NEEDS_WEIGHTS]
    sources = ["oracle", "classical", "learned", "none"]
    return (
        _DIMENSIONS.index(m.dimension_of(metric)),
        names.index(metric),
        subjects.index(subject),
        sources.index(source),
    )


def _row(key: tuple[str, str, str], cases: Sequence[CaseRecord]) -> Row:
    metric, subject, source = key
    card = METRICS.get(metric) or NEEDS_WEIGHTS[metric]
    aggregate = getattr(card, "aggregate", "mean")
    found = [x for c in cases for x in c.measurements if x.key == key]
    samples: dict[int, list[float]] = {}
    for case in cases:
        for x in case.measurements:
            if x.key == key:
                value = math.nan if x.value is None else x.value
                samples.setdefault(case.scene_seed, []).append(value)
    summary = statistics.summarise(samples)
    values = [v for vs in statistics.measured(samples).values() for v in vs]
    value, std, interval = summary.mean, summary.std, (summary.low, summary.high)
    p_reference = None
    if aggregate == "proportion" and values:
        right, n = sum(v > 50 for v in values), len(values)
        low, high = statistics.clopper_pearson(right, n)
        value, std, interval = 100.0 * right / n, math.nan, (100 * low, 100 * high)
        # One reference per scene: the candidate's generations do not multiply it.
        own = {c.scene_seed: x.value for c in cases for x in c.identity if x.metric == metric}
        p_reference = statistics.fisher(right, n, sum(v == 100 for v in own.values()), len(own))
    elif aggregate == "max" and values:
        value, std, interval = max(values), math.nan, (math.nan, math.nan)
    covered = [x.coverage for x in found if x.status == "measured" and x.coverage is not None]
    missing = sorted({x.reason for x in found if x.status != "measured"})
    floor, why = _floor(cases, metric, subject, source)
    return Row(
        metric=metric,
        subject=subject,
        source=source,
        title=card.title,
        dimension=card.dimension,
        unit=card.unit,
        direction=card.direction,
        status="measured" if values else found[0].status,
        value=_or_none(value),
        std=_or_none(std),
        interval=None if math.isnan(interval[0]) else interval,
        scenes=summary.scenes,
        generations=summary.values,
        cases=len(found),
        coverage=float(np.mean(covered)) if covered else None,
        identity=_check(cases, "identity", metric, subject),
        pixel_floor=floor,
        reduction_floor=_check(cases, "reduction_floor", metric, subject),
        floor_reason=why,
        p_reference=None if p_reference is None else _or_none(p_reference),
        samples={str(s): tuple(_or_none(v) for v in vs) for s, vs in samples.items()},
        reason="; ".join(missing),
    )


def _check(cases: Sequence[CaseRecord], name: str, metric: str, subject: str) -> float | None:
    values = [
        x.value
        for c in cases
        for x in getattr(c, name)
        if (x.metric, x.subject) == (metric, subject) and x.value is not None
    ]
    return float(np.mean(values)) if values else None


def _floor(
    cases: Sequence[CaseRecord], metric: str, subject: str, source: str
) -> tuple[float | None, str]:
    """The pixel floor of a row, or why there is none."""
    if source != "classical":
        return None, "read from the simulator's records, not from pixels" if source == "oracle" \
            else ""  # fmt: skip
    value = _check(cases, "pixel_floor", metric, subject)
    if value is not None:
        return value, ""
    reasons = {
        x.reason for c in cases for x in c.pixel_floor if (x.metric, x.subject) == (metric, subject)
    }
    return None, "; ".join(sorted(reasons))


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

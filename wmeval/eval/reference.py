"""One recorded reference: what candidates are held against, and what measuring costs by itself.

A `Reference` is recorded once on a candidate's frames; it measures its own floors (the oracle on
itself, its own video through classical perception, the reduced actions) and then any generation.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.clock import CandidateClock
from wmeval.datasets.rollout import Frames, Rollout
from wmeval.errors import UserError
from wmeval.eval import folders
from wmeval.eval import measure as m
from wmeval.eval.metrics.flow import sampled_frames
from wmeval.eval.perception import Estimate, Still, classical, floor_balls, oracle, resample
from wmeval.eval.results import CaseRecord, EventMark, Measurement, PairConfig, Track
from wmeval.records import Clip, Event, Events, WorldLog

F8 = NDArray[np.float64]

ROUNDING_PX = 1e-3
"""Exact flow below this is rounding of the labels, and counts as none."""


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
        sealed: sha256 that stands for these files.
        identity, pixel_floor, reduction_floor: the checks.
        still: what a picture that never moves scores.
        floor: the estimate behind the pixel floor.
        seen: digest of the pictures behind it: equal pictures are not looked at twice.
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
    sealed: str
    identity: tuple[Measurement, ...]
    pixel_floor: tuple[Measurement, ...]
    reduction_floor: tuple[Measurement, ...]
    still: tuple[Measurement, ...]
    floor: Estimate
    seen: str

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
        if job.suite is None:
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
        else:
            rollout = _stored(job.suite, env, case, times, size)
        if rollout.frames is None or len(rollout.frames) < 2:
            raise UserError(f"{case.case_id}: the reference ends before the candidate's 2nd frame")
        # The reference may end early (it left the floor): both stop at the shorter.
        times = times[: len(rollout.frames)]
        folder = folders.case_folder(out, case.case_id) / folders.REFERENCE
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
            floor_balls(rollout.scene, roles=env.tracked_roles), tuple(env.row.dimensions),
        )  # fmt: skip
        tracks = truth
        if job.grid == "reference":
            steps = [k for k in range(len(actions) + 1) if k * period <= times[-1]]
            rows = [rollout.log.state.row_of_substep(k * env.clock.substeps) for k in steps]
            tracks = m.Truth(
                rollout.scene, rollout.log.rows(rows), tuple(k * period for k in steps), pairs,
                truth.flows, truth.events, shape, env.PLAYER, truth.tracked, truth.dimensions,
            )  # fmt: skip
        masks = first_masks(env, log, case.view, size)
        camera = still_camera(env, log, case.view, size)
        decoded = _as_seen(np.asarray(rgb[0]), read_mp4(folder / "reference.mp4")[0])
        bodies = [b for group in truth.subjects.values() for b in group]
        own = oracle(_with_events(log, truth.events), times, bodies=bodies, flows=truth.flows)
        self = cls(
            job=job, out=out, seed=case.scene_seed, case_id=case.case_id, env=env, fps=clock.fps,
            size=size, truth=truth, tracks=tracks, sha256=rollout.sha256(), masks=masks,
            camera=camera, identity=(), pixel_floor=(), reduction_floor=(), still=(), floor=own,
            sealed=folders.seal_reference(folder), seen="",
            files={
                name: f"cases/{case.case_id}/{folders.REFERENCE}/{name}"
                for name in ("reference.mp4", "reference.h5")
            },
        )  # fmt: skip
        floor = self.perceive(decoded, times)
        changes: dict[str, Any] = {
            "floor": floor,
            "seen": _digest(decoded),
            "identity": self.score(own)[0],
            "pixel_floor": self.score(floor)[0],
            "still": self.score(_held(own))[0],
        }
        changes["reduction_floor"] = self._reduced(case, spec, actions, changes["identity"])
        return replace(self, **changes)

    @staticmethod
    def key(job: PairConfig, case: Any, spec: Any) -> str:
        """Equal for candidates that can share a reference: same case, clock, picture, settings."""
        clock = spec.clock
        picture = (spec.width, spec.height, spec.max_frames)
        return repr((case.case_id, clock, picture, job.grid, job.tolerance, job.crf))

    def at(self, out: Path) -> Reference:
        """The same reference for another run's folder, its files copied there."""
        from wmeval.jobs.atomic import write_bytes

        if out != self.out:
            for name in self.files.values():
                write_bytes(out / name, (self.out / name).read_bytes())
            folders.seal_reference(folders.case_folder(out, self.case_id) / folders.REFERENCE)
        return replace(self, out=out)

    def perceive(self, pictures: NDArray[np.uint8], times: Sequence[Fraction]) -> Estimate:
        """What pixels alone tell of a clip."""
        if self.seen == _digest(pictures):
            return self.floor
        return classical(
            pictures, times, scene=self.truth.scene, balls=self.truth.tracked,
            masks=self.masks, camera=self.camera, pairs=self.truth.pairs,
        )  # fmt: skip

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
        fingerprint: str,
        spec: Any,
        reasons: Mapping[str, str],
        folder: Path,
    ) -> CaseRecord:
        """Measure one generation.

        Args:
            clip: the candidate's frames; None when it may be scored on nothing.
            generation: which draw.
            kind: of candidate; a "video" was encoded before and is not encoded again.
            fingerprint: of the candidate as it is now.
            spec: the candidate's card.
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
            seen = clip.frames
            if kind != "video":
                seen = _as_seen(seen[0], read_mp4(folder / "candidate.mp4")[0])
            if clip.record is not None:
                estimates.append(self._oracle(clip))
            estimates.append(self.perceive(seen[:n], clip.times[:n]))
        measurements: list[Measurement] = []
        quantities: list[dict[str, JsonValue]] = []
        for estimate in estimates:
            found, behind = self.score(estimate)
            measurements += found
            quantities += [_quantity(q, estimate.source) for q in behind]
        if clip is None:
            measurements = [x.model_copy(update={"source": "none"}) for x in self.identity]
        served = tuple(self.env.row.dimensions)
        measurements = m.below_floor(measurements, self.pixel_floor, self.still)
        measured = m.ineligible([*measurements, *m.unrun(served)], reasons)
        events = next((e.events for e in estimates if e.events is not None), None)
        return CaseRecord(
            scene_seed=self.seed,
            generation=generation,
            case_id=self.case_id,
            model=spec.model_dump(mode="json"),
            fingerprint=fingerprint,
            reference_sha256=self.sha256,
            reference_files=self.sealed,
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


def _digest(pictures: NDArray[np.uint8]) -> str:
    return hashlib.sha256(pictures.tobytes()).hexdigest()


def _held(estimate: Estimate) -> Estimate:
    """The first frame's quantities for ever: what a picture that never moves says."""

    def first(tracks: Mapping[str, F8]) -> dict[str, F8]:
        return {name: np.repeat(track[:1], len(track), axis=0) for name, track in tracks.items()}

    return replace(
        estimate,
        positions=first(estimate.positions),
        velocities={name: np.zeros_like(v) for name, v in estimate.velocities.items()},
        series=first(estimate.series),
        flows=tuple(np.zeros_like(f) for f in estimate.flows or ()),
        events=(),
    )


def _as_seen(seed: NDArray[np.uint8], decoded: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """What a file shows, after the seed frame itself, which is everybody's and was never coded."""
    return np.concatenate([seed[None], decoded[1:]])


def reduces_nothing(clock: CandidateClock, control_period: Fraction, actions: F8) -> bool:
    """Whether every block that is sent overlaps equal actions, so that reducing changes none."""
    for b in range(clock.blocks_sent(len(actions), control_period)):
        first, last = (clock.weights_of_block(b, control_period)[k][0] for k in (0, -1))
        if (actions[first : last + 1] != actions[first]).any():
            return False
    return True


def _stored(
    suite: str, env: Any, case: Any, times: Sequence[Fraction], size: tuple[int, int]
) -> Rollout:
    """A suite's reference with its colour frames at the candidate's times and size.

    The frames cached there are used where they fit; else they are drawn from the stored states.
    Nothing is simulated.
    """
    from wmeval.datasets.suite import read_suite
    from wmeval.envs.record import frames_of

    entry = read_suite(suite, verify=False).case(case.case_id)
    for rate in entry.rates:
        rollout = entry.reference(rate)
        frames = rollout.frames
        if frames is not None and frames.size == size and "rgb" in frames.layers:
            count = min(len(times), len(frames))
            if frames.times[:count] == tuple(times[:count]):
                return replace(rollout, frames=_first(frames, count))
    rollout = entry.reference()
    drawn = frames_of(
        env, rollout, frame_times=times, layers=("rgb",), view=case.view,
        width=size[0], height=size[1],
    )  # fmt: skip
    return replace(rollout, frames=drawn)


def _first(frames: Frames, count: int) -> Frames:
    """The first frames, colour only."""
    return Frames(
        frames.camera,
        frames.state_index[:count],
        frames.times[:count],
        frames.K[:count],
        {"rgb": frames.layers["rgb"][0:count]},
    )


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

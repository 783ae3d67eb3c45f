"""A clip: a rollout that was made for its pictures, with what the picture is of.

A clip is a `Rollout` whose metadata holds `ClipFacts` under ``clip``: the row of its manifest, its
actors, its prompt. `ClipRecord` reads one by actor and frame; it stores nothing of its own: masks,
flow, tracks, boxes, normals and amodal masks are computed when they are asked for, unless they were
stored (`wmeval.datasets.materialize`): then they are read, and the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from wmeval.conventions import continuous_quaternions
from wmeval.datasets import clip_labels
from wmeval.datasets.rollout import FrameArray, Frames, Rollout
from wmeval.errors import UserError, first_problem
from wmeval.records import Contacts
from wmeval.scene import Card
from wmeval.sim.protocol import RenderState, render_state
from wmeval.sim.render import labels
from wmeval.sim.render.relief import normals_of_depth

F8 = NDArray[np.float64]
Mask = NDArray[np.bool_]
Array = NDArray[Any]

KEY = "clip"
"""Where a rollout's metadata keep the facts."""

TRACKS_PER_ACTOR, TRACK_EROSIONS, TRACK_SEED = 20, 3, 42
"""Points followed on each actor, how far within its first mask, their seed (section A.5)."""
AMODAL_RENDERER = "raster"
"""What draws amodal masks; those that are stored are its."""


class ClipActor(Card):
    """A thing that the task put there.

    Attributes:
        name: of its body in the scene.
        role: "active" moves, "passive" does not (a ramp).
        object: id of its object's card, of a ramp its material's; None for anything else.
        instance: its id in label layers.
        seen_share: share of the clip's frames in which a pixel shows it; None: nobody looked. The
            camera frames what stands there at first: what is thrown off may leave the picture.
    """

    name: str = Field(min_length=1)
    role: Literal["active", "passive"]
    object: str | None = None
    instance: int = Field(ge=1, le=65535)
    seen_share: float | None = Field(default=None, ge=0, le=1)


class ClipFacts(Card):
    """What a clip is of. The first seven are the row of its manifest, by their published names.

    Attributes:
        sample_id: name of the clip.
        task_type: task.
        scene_id: setting.
        surface_name: support in the setting.
        seed: of everything drawn in it.
        split: partition.
        objects: ids that its task may draw from.
        actors: in the order of masks and states.
        prompt: what happens, in one sentence.
        full_prompt: what a video model is told: the sentence, and what holds for every clip.
        negative_prompt: what shall not be seen.
        physics: mode of the simulation.
        turn_deg: task about the vertical [deg].
        azimuth_deg: camera about the vertical [deg].
        footprint_m: extents of the layout along the task's x and y [m].
        visible_share: least share of surface points of an actor seen in the first frame.
    """

    sample_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    task_type: str
    scene_id: str
    surface_name: str
    seed: int = Field(ge=0)
    split: str
    objects: tuple[str, ...] = ()
    actors: tuple[ClipActor, ...] = Field(min_length=1)
    prompt: str
    full_prompt: str = ""
    negative_prompt: str = ""
    physics: str = ""
    turn_deg: float = 0.0
    azimuth_deg: float = 0.0
    footprint_m: tuple[float, float] | None = None
    visible_share: float | None = Field(default=None, ge=0, le=1)

    @model_validator(mode="after")
    def _check(self) -> ClipFacts:
        for what in ("name", "instance"):
            values = [getattr(actor, what) for actor in self.actors]
            if len(set(values)) < len(values):
                raise ValueError(f"two actors have the same {what}")
        return self

    @property
    def seen_share(self) -> float | None:
        """Least `ClipActor.seen_share` of what moves; None: nobody looked."""
        shares = [a.seen_share for a in self.actors if a.role == "active"]
        return min((s for s in shares if s is not None), default=None)


def with_facts(rollout: Rollout, facts: ClipFacts) -> Rollout:
    """The rollout as a clip; what its ids show says how long each actor is seen.

    Raises:
        UserError: it holds no frames, or an actor is no body of its scene.
    """
    layers = rollout.frames.layers if rollout.frames is not None else {}
    if "ids" in layers:
        actors = [
            a.model_copy(update={"seen_share": _seen_share(layers, a.instance)})
            for a in facts.actors
        ]
        facts = facts.model_copy(update={"actors": tuple(actors)})
    metadata = {**rollout.metadata, KEY: facts.model_dump(mode="json")}
    return ClipRecord(replace(rollout, metadata=metadata)).rollout


def _seen_share(layers: Mapping[str, FrameArray], instance: int) -> float:
    """Share of frames in which a pixel shows an instance, be it through glass or as glass."""
    seen = np.zeros(len(layers["ids"]), bool)
    for name in ("ids", "glass_ids"):
        if name in layers:
            seen |= [bool((np.asarray(ids) == instance).any()) for ids in layers[name]]
    return float(seen.mean())


@dataclass(frozen=True, eq=False)
class ActorStates:
    """What N actors do over T frames; SI, world frame, velocities from the engine.

    Attributes:
        position: (T, N, 3) centre of mass [m].
        quaternion_wxyz: (T, N, 4); of q and -q the one next to the frame before's.
        linear_velocity: (T, N, 3) [m/s].
        angular_velocity: (T, N, 3) [rad/s].
    """

    position: F8
    quaternion_wxyz: F8
    linear_velocity: F8
    angular_velocity: F8

    def __repr__(self) -> str:
        count, actors = self.position.shape[:2]
        return f"<ActorStates: {count} frames, {actors} actors>"


@dataclass(frozen=True, eq=False)
class ClipRecord:
    """One clip, read by actor and frame. Actors are named or numbered, frames numbered from 0.

    Attributes:
        rollout: all of it, with ``metadata["clip"]``.
        film: its colour frames where the rollout does not hold them without loss.

    Raises:
        UserError: no clip: no facts, no frames, or an actor that is no body of the scene.
    """

    rollout: Rollout
    film: FrameArray | None = None

    def __post_init__(self) -> None:
        bodies = {b.name: b.instance for b in self.rollout.scene.bodies}
        for actor in self.facts.actors:
            if bodies.get(actor.name) != actor.instance:
                raise UserError(
                    f"{self._name}: actor {actor.name!r} with instance {actor.instance} is no "
                    "body of the scene"
                )
        if not len(self.frames):
            raise UserError(f"{self._name}: holds no frames, so it is no clip")

    def __repr__(self) -> str:
        width, height = self.size
        names = ", ".join(actor.name for actor in self.actors)
        return (
            f"<ClipRecord {self.facts.sample_id}, {self.facts.task_type} in {self.facts.scene_id}: "
            f"{len(self)} frames of {width}x{height} px, actors {names}>"
        )

    # --- what it is ---------------------------------------------------------------------------

    @cached_property
    def facts(self) -> ClipFacts:
        """What the clip is of."""
        try:
            return ClipFacts.model_validate(self.rollout.metadata[KEY])
        except KeyError:
            raise UserError(
                f"{self._name}: metadata hold no {KEY!r}: a rollout, but no clip"
            ) from None
        except ValidationError as error:
            raise UserError(f"{self._name}: {KEY}: {first_problem(error)}") from error

    @property
    def _name(self) -> str:
        facts = self.rollout.metadata.get(KEY)
        name = facts.get("sample_id") if isinstance(facts, dict) else None
        return f"clip {name}" if name else f"rollout of {self.rollout.metadata.get('env_id')}"

    @property
    def actors(self) -> tuple[ClipActor, ...]:
        """Who is in it, in the order of masks and states."""
        return self.facts.actors

    @property
    def prompt(self) -> str:
        """What happens, in one sentence."""
        return self.facts.prompt

    @property
    def negative_prompt(self) -> str:
        """What shall not be seen."""
        return self.facts.negative_prompt

    def __len__(self) -> int:
        """Number of frames T."""
        return len(self.frames)

    @property
    def frames(self) -> Frames:
        """Times, states and stored layers of the frames."""
        if self.rollout.frames is None:
            raise UserError(f"{self._name}: holds no frames, so it is no clip")
        return self.rollout.frames

    @property
    def size(self) -> tuple[int, int]:
        """Width and height [px]."""
        return self.frames.size

    @property
    def fps(self) -> Fraction:
        """Frames per second.

        Raises:
            UserError: the frames are not evenly spaced.
        """
        gaps = {b - a for a, b in pairwise(self.frames.times)}
        if len(gaps) != 1:
            raise UserError(f"{self._name}: its {len(self)} frames have no one rate")
        return 1 / gaps.pop()

    # --- pictures -----------------------------------------------------------------------------

    def layer(self, name: str) -> FrameArray:
        """A stored picture layer (T, H, W[, C]), read when it is sliced.

        Raises:
            UserError: it is not stored.
        """
        held = self.frames.layers
        if name in held:
            return held[name]
        if name == "rgb" and self.film is not None:
            return self.film
        raise UserError(f"{self._name}: no layer {name!r} is stored: there are {', '.join(held)}")

    def stored(self, name: str) -> FrameArray | None:
        """A layer that lies in the clip's files; None for one that is derived or not there."""
        held = self.frames.layers.get(name)
        return None if getattr(held, "derived", False) else held

    @property
    def rgb(self) -> FrameArray:
        """(T, H, W, 3) uint8 sRGB: without loss where it is stored so, else of the video."""
        return self.layer("rgb")

    @property
    def lossless_rgb(self) -> bool:
        """`rgb` is what the renderer drew, to the bit."""
        return "rgb" in self.frames.layers

    @property
    def depth(self) -> FrameArray:
        """(T, H, W) float32 planar depth [m], +inf where nothing is hit."""
        return self.layer("depth")

    @property
    def ids(self) -> FrameArray:
        """(T, H, W) uint16 instance of what each pixel shows, 0 for what has none."""
        return self.layer("ids")

    def mask(self, frame: int, actor: str | int) -> Mask:
        """Pixels (H, W) where an actor is seen, its glass parts too."""
        return np.asarray(self._masks(frame, [self._actor(actor)])[0])

    def masks(self, frame: int) -> Mask:
        """Pixels (N, H, W) where each actor is seen; two where one is seen through another."""
        return self._masks(frame, range(len(self.actors)))

    def _masks(self, frame: int, actors: Sequence[int]) -> Mask:
        ids = self.ids[frame]
        wanted = [self.actors[i].instance for i in actors]
        out: Mask = np.stack([ids == instance for instance in wanted])
        if "glass_ids" in self.frames.layers:
            glass = self.frames.layers["glass_ids"][frame]
            out |= np.stack([glass == instance for instance in wanted])
        return out

    # --- states -------------------------------------------------------------------------------

    @cached_property
    def states(self) -> ActorStates:
        """Poses and velocities of the actors at the frames."""
        log = self.rollout.log.state
        rows = self.frames.state_index[:, None]
        body = np.array([self.body(i) for i in range(len(self.actors))])[None, :]
        return ActorStates(
            log.position[rows, body],
            continuous_quaternions(log.quaternion_wxyz[rows, body]),
            log.linear_velocity[rows, body],
            log.angular_velocity[rows, body],
        )

    @property
    def K(self) -> F8:
        """(T, 3, 3) intrinsics [px], pixel centres at +0.5."""
        return self.frames.K

    @property
    def T_world_camera(self) -> F8:
        """(T, 4, 4) OpenCV camera pose."""
        cameras = self.rollout.log.cameras
        index = cameras.camera(self.frames.camera)
        return np.asarray(cameras.T_world_camera[self.frames.state_index, index])

    @property
    def contacts(self) -> Contacts:
        """All contacts, one row per substep and point, impulses in N s."""
        return self.rollout.log.contacts

    def contacts_of_frame(self, frame: int) -> Contacts:
        """Contacts of the substeps between the frame before and this one."""
        return self.rollout.contacts_of_frame(frame)

    def body(self, actor: str | int) -> int:
        """Index of an actor's body in the scene, the log and the contacts."""
        return self.rollout.scene.index(self.actors[self._actor(actor)].name)

    def _actor(self, actor: str | int) -> int:
        names = [a.name for a in self.actors]
        if isinstance(actor, str) and actor in names:
            return names.index(actor)
        if isinstance(actor, int | np.integer) and -len(names) <= actor < len(names):
            return int(actor) % len(names)
        raise UserError(f"{self._name}: no actor {actor!r}: there are {', '.join(names)}")

    # --- what follows -------------------------------------------------------------------------

    @cached_property
    def _instance(self) -> NDArray[np.uint16]:
        return labels.instances(self.rollout.scene)

    def instant(self, frame: int) -> RenderState:
        """The world at a frame, as renderers and labels take it."""
        log = self.rollout.log
        camera = log.cameras.camera(self.frames.camera)
        row = int(self.frames.state_index[frame])
        return render_state(log, row, self.rollout.scene, camera)

    def flow(self, a: int, b: int) -> NDArray[np.float32]:
        """Displacement (H, W, 2) [px] of what frame ``a`` shows, from ``a`` to any frame ``b``."""
        kept = self.stored("flow")
        if kept is not None and b == a + 1 and a >= 0:
            return np.asarray(kept[a], np.float32)
        return labels.flow(
            self.depth[a], self.ids[a], self.instant(a), self.instant(b), self._instance
        )

    def occlusion(self, a: int, b: int) -> Mask:
        """Pixels (H, W) of frame ``a`` whose surface point is not seen in frame ``b``."""
        return labels.occlusion(
            self.depth[a],
            self.ids[a],
            self.instant(a),
            self.depth[b],
            self.ids[b],
            self.instant(b),
            self._instance,
        )

    def normals(self, frame: int) -> NDArray[np.float32]:
        """World normals (H, W, 3): the stored layer where there is one, else from the depth."""
        if "normals" in self.frames.layers:
            return np.asarray(self.frames.layers["normals"][frame], np.float32)
        pose = self.T_world_camera[frame]
        return normals_of_depth(self.depth[frame], self.ids[frame], self.K[frame], pose)

    def boxes(self, frame: int) -> dict[str, labels.PixelBox]:
        """Box around each actor that is seen, by name."""
        if clip_labels.BOXES in self.rollout.labels:
            rows = self.rollout.labels[clip_labels.BOXES][frame]
            return clip_labels.unpack_boxes(rows, [actor.name for actor in self.actors])
        masks = self.masks(frame)
        found = {}
        for actor, mask in zip(self.actors, masks, strict=True):
            box = labels.boxes(mask.astype(np.uint16)).get(1)
            if box is not None:
                found[actor.name] = box
        return found

    def track_queries(self, points: int = TRACKS_PER_ACTOR) -> tuple[F8, NDArray[np.int64]]:
        """Points to follow, drawn on the first frame as section A.5 draws them.

        Three erosions keep them off the mask's edge (the whole mask where fewer than ``points``
        pixels stay); drawn without replacement, anew for each actor.

        Returns:
            Pixels (P, 2) [px, centres at +0.5] and number of the actor (P,); fewer than ``points``
            an actor where it shows fewer pixels.

        Raises:
            UserError: not at least one point an actor.
        """
        if points < 1:
            raise UserError(f"{self._name}: {points} points an actor: follow at least 1")
        from scipy.ndimage import binary_erosion

        pixels, actors = [np.zeros((0, 2))], [np.zeros(0, np.int64)]
        ids = self.ids[0]
        for number, actor in enumerate(self.actors):
            mask = ids == actor.instance
            inner = binary_erosion(mask, iterations=TRACK_EROSIONS)
            rows, columns = np.nonzero(inner if inner.sum() >= points else mask)
            chosen = np.random.default_rng(TRACK_SEED).choice(
                len(rows), min(points, len(rows)), replace=False
            )
            pixels.append(np.stack([columns[chosen], rows[chosen]], axis=1) + 0.5)
            actors.append(np.full(len(chosen), number))
        return np.concatenate(pixels), np.concatenate(actors)

    def tracks(self, points: int = TRACKS_PER_ACTOR) -> labels.Tracks:
        """Paths of `track_queries` through all frames, with visibility; raises as that."""
        kept = self.rollout.labels
        if points == TRACKS_PER_ACTOR and f"{clip_labels.TRACKS}ids" in kept:
            return clip_labels.unpack_tracks(kept)
        queries, _ = self.track_queries(points)
        states = [self.instant(i) for i in range(len(self))]
        return labels.tracks(queries, 0, states, list(self.depth), list(self.ids), self._instance)

    def amodal_masks(
        self, frames: int | Sequence[int] | None = None, renderer: str = AMODAL_RENDERER
    ) -> Mask:
        """Pixels (F, N, H, W) that each actor would cover if nothing stood before it.

        Of one frame, given as a number, (N, H, W).

        Drawn anew from the scene, each actor alone, where they are not stored: needs the renderer,
        and a second to load it.

        Args:
            frames: which; default: all.
            renderer: row of `wmeval.sim.render.RENDERERS`.
        """
        if isinstance(frames, int | np.integer):
            return np.asarray(self.amodal_masks([int(frames)], renderer)[0])
        chosen = range(len(self)) if frames is None else frames
        kept = self.stored("amodal_masks")
        if kept is not None and renderer == AMODAL_RENDERER:
            count = len(self.actors)
            return np.stack([clip_labels.unpack_masks(kept[i], count) for i in chosen])
        return np.stack(list(self.each_amodal_mask(chosen, renderer)))

    def each_amodal_mask(
        self, frames: Sequence[int] | None = None, renderer: str = AMODAL_RENDERER
    ) -> Iterator[Mask]:
        """The same (N, H, W), drawn frame by frame."""
        from wmeval.sim.render import make_renderer

        width, height = self.size
        draws = make_renderer(renderer, self.rollout.scene, self.rollout.meshes)
        try:
            for i in range(len(self)) if frames is None else frames:
                state = self.instant(i)
                yield np.stack(
                    [
                        labels.amodal_mask(
                            draws.draw, state, self.body(n), self._instance, width, height
                        )
                        for n in range(len(self.actors))
                    ]
                )
        finally:
            draws.close()

    def arrays(self, names: Sequence[str]) -> dict[str, Any]:
        """Whole arrays of the clip by name, with its ``sample_id`` and ``prompt``.

        Args:
            names: of `ARRAYS`; all are (T, ...).

        Raises:
            UserError: an unknown name.
        """
        unknown = [name for name in names if name not in ARRAYS]
        if unknown:
            raise UserError(f"no array {unknown[0]!r}: choose from {', '.join(ARRAYS)}")
        held = {name: ARRAYS[name](self) for name in names}
        return {"sample_id": self.facts.sample_id, "prompt": self.prompt, **held}


def _each(make: Callable[[ClipRecord, int], Array]) -> Callable[[ClipRecord], Array]:
    return lambda clip: np.stack([make(clip, i) for i in range(len(clip))])


ARRAYS: dict[str, Callable[[ClipRecord], Array]] = {
    "rgb": lambda clip: np.asarray(clip.rgb[:]),
    "depth": lambda clip: np.asarray(clip.depth[:]),
    "ids": lambda clip: np.asarray(clip.ids[:]),
    "masks": _each(lambda clip, i: clip.masks(i)),
    "normals": _each(lambda clip, i: clip.normals(i)),
    "flow": _each(lambda clip, i: clip.flow(i, min(i + 1, len(clip) - 1))),
    "position": lambda clip: clip.states.position,
    "quaternion_wxyz": lambda clip: clip.states.quaternion_wxyz,
    "linear_velocity": lambda clip: clip.states.linear_velocity,
    "angular_velocity": lambda clip: clip.states.angular_velocity,
    "K": lambda clip: clip.K,
    "T_world_camera": lambda clip: clip.T_world_camera,
    "time": lambda clip: np.array([float(t) for t in clip.frames.times]),
}
"""Arrays (T, ...) that a clip gives whole; ``flow`` is forward, zero in the last frame."""

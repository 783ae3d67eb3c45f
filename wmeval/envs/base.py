"""The base of every environment: `gymnasium.Env` over a World.

A subclass says what its world is made of (`_compose`), what its flat vector holds (`_observe`) and
which rewards it knows; everything else lives here. Physics knows nothing of Gymnasium, and nothing
but a World's own verbs steps it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypedDict, cast, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue, ValidationError

from wmeval.clock import SceneClock, period_of, substep_of
from wmeval.envs import EnvironmentRow, environment_row
from wmeval.envs.actions import ActionForm, ActionMode
from wmeval.envs.pictures import Pictures
from wmeval.errors import UserError, first_problem
from wmeval.layers import DERIVED, LAYERS, RENDERED, layers_of
from wmeval.records import Event, WorldLog
from wmeval.scene import Camera, Card, Meshes, Scene
from wmeval.sim.protocol import (
    DriverSpec,
    EngineConfig,
    EventRules,
    Probe,
    StateView,
    WorldSpec,
    render_state,
)
from wmeval.sim.rows import LastRow
from wmeval.sim.world import open_world

if TYPE_CHECKING:
    from wmeval.sim.drivers.camera_motion import CameraMotion
    from wmeval.sim.perturb import Perturbation
    from wmeval.sim.world import World

Observation = NDArray[np.float32]
"""The flat vector (D,)."""
ObservationMode = Literal["full", "vector"]
InfoLevel = Literal["none", "state", "full"]
Perturb: TypeAlias = "Perturbation | str | Mapping[str, float] | None"
Time = str | int | float | Fraction

SEED_SPACES = {"training": 0, "evaluation": 1}
"""Spawn keys: the two spaces never share a scene, whatever the seed."""

EYES = ("first",)
"""Views of an eye: a regime turns them in place, others about what they look at."""

FLOOR_LEFT_Z = -2.0
"""A player whose centre lies below this height [m] has left the floor."""

_COMMON_OPTIONS = {
    "view": "camera of `render` and the default of `draw`; default: the scene's first camera",
    "camera": "a still camera of your own, {position, target, fov_y_deg}; its view is custom",
    "camera_motion": "a regime outside the action space that turns the view's camera: "
    "perturb_left, perturb_right, sweep_left, sweep_right or turn",
    "seed_space": "training (default) or evaluation: two families of scenes for the same seeds",
}


class EnvOptions(TypedDict, total=False):
    """Constructor arguments that all environments share; see `WorldEnv`."""

    engine: str | None
    dt: Time | None
    control_period: Time | None
    max_steps: int | None
    width: int | None
    height: int | None
    render_mode: str | None
    info_level: InfoLevel
    reward: str | None
    branching: bool
    perturb: Perturb
    renderer: str
    renderer_options: Mapping[str, JsonValue] | None
    action_mode: ActionMode
    observation_mode: ObservationMode


_EPISODE = (
    "seed", "options", "view", "vector", "camera_motion",
    "_spec", "_log", "_probe", "_over", "_player",
)  # fmt: skip
"""Attributes that a fork shares with its episode."""


@dataclass(frozen=True)
class Composition:
    """What one episode's world is made of, before clock, engine and perturbation.

    ``settle`` substeps pass before it begins (`WorldSpec`).
    """

    scene: Scene
    drivers: tuple[DriverSpec, ...]
    rules: EventRules
    meshes: Meshes = field(default_factory=dict)
    config: EngineConfig = field(default_factory=EngineConfig)
    settle: int = 0


class Snapshot(Card):
    """A moment of an episode: replaying it reaches the same bits on the same engine version.

    Attributes:
        env_id: environment.
        settings: constructor arguments that say what happens: engine, clock, perturbation and the
            scene's own.
        seed: seed of the episode's scene.
        options: reset options.
        actions: all actions so far, (T, A).
    """

    env_id: str
    settings: dict[str, JsonValue]
    seed: int
    options: dict[str, JsonValue]
    actions: tuple[tuple[float, ...], ...]


class WorldEnv(gym.Env[Any, Any]):
    """A reference world as a Gymnasium environment.

    Args:
        engine: one of the row's engines; default: its first.
        dt: substep [s], exact ("1/480"), or the float next to one (1 / 480); default: the scene's
            row.
        control_period: time that one action holds [s]; a whole multiple of ``dt``.
        max_steps: actions until truncation; default: the scene's, scaled to the control period.
        width: picture width [px].
        height: picture height [px].
        render_mode: None or "rgb_array".
        info_level: "none": info is empty and nothing is looked for; "state": named poses and
            velocities, ``events`` of this step, and at the episode's end ``episode_events`` (all
            of them) and ``shape``; "full": contacts with impulses, cameras and lights too.
        reward: None (always 0.0) or a row of ``REWARDS``.
        branching: physics lives in a worker that can fork: `branch` takes milliseconds.
        perturb: a wrong world ("gravity=0.8,delay=0.1", or a mapping); None is the reference.
        renderer: row of `wmeval.sim.render.RENDERERS`.
        renderer_options: its own keyword arguments, such as {"samples": 8}.
        action_mode: where the scene has branches: "hybrid" makes the action space
            Dict(continuous=Box, discrete=MultiBinary), "flat" one Box. `step` takes both forms.
        observation_mode: where the scene observes pictures: "full" makes the observation
            Dict(vector=Box, image=Box), "vector" the flat vector alone, which needs no renderer.

    Raises:
        UserError: an unknown engine, renderer, reward or info level, or a clock that does not
            divide.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    ID: ClassVar[str]
    OPTIONS: ClassVar[Mapping[str, str]] = {}
    """Reset options beside the common ones: name to meaning."""
    REWARDS: ClassVar[Mapping[str, str]] = {}
    """Task rewards: name to meaning."""
    PLAYER: ClassVar[str | None] = None
    """Name of the body that the agent drives; None where there is none."""
    tracked_roles: ClassVar[tuple[str, ...]] = ("player",)
    """Roles of balls that stay on the plane z = 0: pixels of a still camera tell where they are."""
    one_shot_channels: ClassVar[tuple[str, ...]] = ()
    """Channels that are pressed, not held: a rise above 1/2 is one press (a jump, a shot).

    What follows must depend on the rise alone, not on how long it is held: a candidate is told of
    the press in the one block that holds its start."""
    ending_channels: ClassVar[tuple[str, ...]] = ()
    """Branches that end the episode when they are 1; random policies leave them at 0."""
    camera_twist: ClassVar[NDArray[np.float64] | None] = None
    """(6, A) camera velocity (v [m/s], w [rad/s], OpenCV camera frame) per unit of each channel,
    for scenes whose actions move the camera."""
    _MEMORY: ClassVar[tuple[str, ...]] = ()
    """Attributes that carry an episode's history; a fork copies them."""

    def __init__(
        self,
        *,
        engine: str | None = None,
        dt: Time | None = None,
        control_period: Time | None = None,
        max_steps: int | None = None,
        width: int | None = None,
        height: int | None = None,
        render_mode: str | None = None,
        info_level: InfoLevel = "none",
        reward: str | None = None,
        branching: bool = False,
        perturb: Perturb = None,
        renderer: str = "raster",
        renderer_options: Mapping[str, JsonValue] | None = None,
        action_mode: ActionMode = "hybrid",
        observation_mode: ObservationMode = "full",
        **unknown: Any,
    ) -> None:
        row = self.row
        if unknown:
            choices = ", ".join(sorted(self.arguments()))
            raise UserError(f"{row.id}: no argument {min(unknown)!r}: choose from {choices}")
        engine = row.engines[0] if engine is None else engine
        self.clock = _clock(row, dt, control_period)
        _known("info_level", info_level, get_args(InfoLevel))
        _known("engine", engine, row.engines, where=row.id)
        _known("renderer", renderer, _renderers())
        if reward is not None:
            _known("reward", reward, tuple(self.REWARDS), where=row.id)
        if render_mode is not None:
            _known("render_mode", render_mode, tuple(self.metadata["render_modes"]))
        _known("action_mode", action_mode, get_args(ActionMode))
        _known("observation_mode", observation_mode, get_args(ObservationMode))
        period = self.clock.control_period
        if max_steps is None:
            max_steps = -int(-(row.max_steps * row.control_period) // period)
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
            raise UserError(
                f"max_steps = {max_steps!r}: give a whole number of actions, at least 1"
            )
        self.max_steps = max_steps
        self.width, self.height = _size(width, height, row.size)
        if not isinstance(branching, bool):
            raise UserError(f"branching = {branching!r}: give true or false")
        self.render_mode = render_mode
        self.info_level = info_level
        self.reward = reward
        self.engine = engine
        self.renderer = renderer
        self.renderer_options = dict(renderer_options or {})
        self.branching = branching
        self.perturb = _perturbation(perturb)
        self.channels = self._channels()
        self.metadata = {**type(self).metadata, "render_fps": float(1 / period)}
        self.action_mode, self.observation_mode = action_mode, observation_mode
        self._form = ActionForm(row.id, self.channels, row.branches, action_mode)
        self._flat = self._form.flat
        self.action_space = self._form.space
        low, high = self._bounds()
        vector = gym.spaces.Box(low, high, dtype=np.float32)
        self._image = row.image if observation_mode == "full" else None
        self.observation_space = vector
        if self._image is not None:
            image = gym.spaces.Box(0, 255, (*self._image[::-1], 3), np.uint8)
            self.observation_space = gym.spaces.Dict({"vector": vector, "image": image})

        self.seed = 0
        self.options: dict[str, JsonValue] = {}
        self.view = row.view
        self.vector: Observation = np.zeros(0, np.float32)
        """The newest flat vector (D,), whatever the observation's form."""
        self._player = -1
        self.camera_motion: CameraMotion.Params | None = None
        """How a regime turns the view's camera in this episode."""
        self._spec: WorldSpec | None = None
        self._world: World | None = None
        self._pictures = Pictures(renderer, self.renderer_options)
        self._log: WorldLog | None = None
        self._probe: Probe | None = None
        self._substeps = self.clock.substeps
        self._actions: list[tuple[float, ...]] = []
        self._events: list[Event] = []
        self._keeping = False
        self._looking = False
        self._over = self._closed = False
        self._pictured = True
        self._speaks = type(self)._side_info is not WorldEnv._side_info
        self._gain, self._late = 1.0, 0
        if self.perturb is not None:
            self._gain = self.perturb.gain
            self._late = self.perturb.delay_steps(period)

    # --- what a subclass says -------------------------------------------------------------------

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lower and upper bounds (D,) of the flat vector."""
        raise NotImplementedError

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        """The world of one episode.

        Args:
            rng: all of the episode's randomness.
            options: reset options, names already checked.
        """
        raise NotImplementedError

    def _begin(self, scene: Scene) -> None:
        """Prepare for a new episode: body indices, history."""

    def _observe(self, now: StateView) -> Observation:
        """Flat vector (D,) of the newest state, a new array; called once per step, in order."""
        raise NotImplementedError

    def _reward(self, name: str) -> float:
        """Task reward of the step just observed."""
        raise NotImplementedError

    def _terminated(self, now: StateView) -> bool:
        """Whether the newest state ends the episode physically."""
        player = self._player
        return player >= 0 and now.pose(player)[0][2] < FLOOR_LEFT_Z

    def _side_info(self, now: StateView, step: int) -> Mapping[str, Any]:
        """What every info holds beside its level's: of the newest state, after ``step`` actions."""
        return {}

    def _settings(self) -> dict[str, JsonValue]:
        """The subclass's own constructor arguments."""
        return {}

    def _channels(self) -> tuple[str, ...]:
        """Components of the action; asked for once, before anything else is known."""
        return self.row.channels

    # --- facts ----------------------------------------------------------------------------------

    @property
    def row(self) -> EnvironmentRow:
        """This environment's row of the table."""
        return environment_row(self.ID)

    @property
    def facts(self) -> Mapping[str, JsonValue]:
        """What a rollout's metadata hold beside what all do: of this episode."""
        return {}

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Constructor arguments, resolved, as JSON values: ``type(env)(**env.settings)``."""
        return {
            "max_steps": self.max_steps,
            "width": self.width,
            "height": self.height,
            "info_level": self.info_level,
            "reward": self.reward,
            "branching": self.branching,
            "renderer": self.renderer,
            **({"renderer_options": self.renderer_options} if self.renderer_options else {}),
            "action_mode": self.action_mode,
            "observation_mode": self.observation_mode,
            **self._physics(),
        }

    def _physics(self) -> dict[str, JsonValue]:
        """The settings that say what happens."""
        return {
            "engine": self.engine,
            "dt": str(self.clock.dt),
            "control_period": str(self.clock.control_period),
            "perturb": str(self.perturb) if self.perturb is not None else None,
            **self._settings(),
        }

    @classmethod
    def arguments(cls) -> frozenset[str]:
        """Names of the constructor's arguments."""
        return frozenset(
            name
            for base in cls.__mro__
            if "__init__" in vars(base)
            for name, p in signature(vars(base)["__init__"]).parameters.items()
            if p.kind is p.KEYWORD_ONLY
        )

    @property
    def world_spec(self) -> WorldSpec:
        """All that makes this episode's world again.

        Raises:
            UserError: before the first reset.
        """
        if self._spec is None:
            raise UserError(f"{self.ID}: call reset() first")
        return self._spec

    @property
    def scene(self) -> Scene:
        """This episode's scene."""
        return self.world_spec.scene

    @property
    def meshes(self) -> Meshes:
        """This episode's meshes."""
        return self.world_spec.meshes

    @property
    def step_log(self) -> WorldLog:
        """What the newest step (or reset) told: one row, or every substep while `keeping`."""
        if self._log is None:
            if self._world is None:
                raise UserError(f"{self.ID}: call reset() first")
            # At level "none" steps keep nothing: rows are made when somebody looks.
            self._log = self._world.log()
        return self._log

    @property
    def log(self) -> WorldLog:
        """The newest state, one row."""
        log = self.step_log
        return log if len(log) == 1 else log.rows(slice(-1, None))

    @property
    def actions(self) -> NDArray[np.float64]:
        """Actions of this episode so far, (T, A)."""
        return np.array(self._actions, np.float64).reshape(len(self._actions), len(self.channels))

    @property
    def events(self) -> tuple[Event, ...]:
        """Events of this episode so far; none are looked for at ``info_level="none"``."""
        return tuple(self._events)

    @property
    def time(self) -> Fraction:
        """Time of the newest state [s]."""
        return len(self._actions) * self.clock.control_period

    # --- Gymnasium ------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: of the scene; None draws one from ``np_random`` (see ``env.seed``).
            options: ``view``, ``camera``, ``camera_motion``, ``seed_space`` and the scene's own
                (class docstring).

        Raises:
            UserError: no whole seed, or an unknown option or value, naming the known ones.
        """
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        if seed is not None and not (whole and seed >= 0):
            raise UserError(f"{self.ID}: seed = {seed!r}: give a whole number, at least 0, or None")
        super().reset(seed=None if seed is None else int(seed))
        chosen = self._checked(options)
        # A drawn seed, not a drawn state: every episode can be made again from its seed alone.
        self.seed = int(self.np_random.integers(2**31)) if seed is None else int(seed)
        key = SEED_SPACES[chosen.get("seed_space", "training")]
        sequence = np.random.SeedSequence(self.seed, spawn_key=(key,))
        rng = np.random.Generator(np.random.PCG64(sequence))
        parts = self._compose(rng, chosen)
        scene = _with_camera(parts.scene, chosen.get("camera"))
        names = tuple(c.name for c in scene.cameras)
        view = camera_name(chosen.get("view", "custom" if "camera" in chosen else names[0]), names)
        _known("option view", view, names, where=self.ID)
        drivers = parts.drivers
        self.camera_motion = self._motion(chosen.get("camera_motion"), view, scene, drivers)
        if self.camera_motion is not None:
            params = self.camera_motion.model_dump(mode="json", exclude_none=True)
            drivers = (*drivers, DriverSpec(kind="camera_motion", params=params))
        spec = WorldSpec(
            scene,
            parts.meshes,
            drivers,
            self.clock,
            parts.rules,
            engine=self.engine,
            config=parts.config,
            settle=parts.settle,
        )
        if self.perturb is not None:
            spec = self.perturb.apply(spec)
        self._looking = looking = self._keeping or self.info_level != "none"
        full = self._keeping or self.info_level == "full"
        # A step tells of its last state alone, unless it is kept: no more is shown.
        self._probe = (
            Probe("substeps" if full else "last", contacts=full, shown=self._keeping)
            if looking
            else None
        )
        last, self._world = self._world, None
        self._world = open_world(spec, events=looking, branching=self.branching, instead_of=last)
        self._spec, self.options, self.view = spec, chosen, view
        self._actions, self._events, self._over, self._closed = [], [], False, False
        self._player = -1 if self.PLAYER is None else scene.index(self.PLAYER)
        try:
            self._log = log = self._world.reset()
        except BaseException:
            # An engine that cannot build the scene leaves no world behind.
            self._world.close()
            self._world = None
            raise
        self._begin(scene)
        now = LastRow(log)
        self.vector = self._observe(now)
        self._events.extend(log.events)
        return self._observation(), {**self._info(), **self._side_info(now, 0)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold an action for one control period.

        Args:
            action: (A,) in [-1, 1], branches 0 or 1 (above 1/2 is 1); or, where there are branches,
                {"continuous": (C,), "discrete": (D,)}.

        Raises:
            UserError: a wrong shape or type, NaN, a value out of range, or no episode to step.
        """
        values = self._flat(action)
        if self._world is None or self._over:
            what = "this episode is over" if self._over else "no episode has begun"
            raise UserError(f"{self.ID}: {what}: call reset()")
        self._actions.append(values)
        count = len(self._actions)
        driven = values if self._gain == 1.0 and not self._late else self._perturbed(count - 1)
        until = count * self._substeps
        if self._probe is None:
            now = self._world.run(driven, until)
            self._log = None
        else:
            self._log = log = self._world.advance(driven, until, self._probe)
            self._events.extend(log.events)
            now = LastRow(log)
        self.vector = observation = self._observe(now)
        terminated = self._terminated(now)
        truncated = count >= self.max_steps
        self._over = terminated or truncated
        reward = 0.0 if self.reward is None else self._reward(self.reward)
        info = self._info()
        if self._speaks:
            info.update(self._side_info(now, count))
        if self._image is not None:
            return self._observation(), reward, terminated, truncated, info
        return observation, reward, terminated, truncated, info

    def _observation(self) -> Any:
        """The newest observation in the space's form."""
        if self._image is None or not self._pictured:
            return self.vector
        width, height = self._image
        view = self.scene.cameras[0].name
        image = self.draw(("rgb",), width=width, height=height, view=view)["rgb"]
        return {"vector": self.vector, "image": image}

    def render(self) -> NDArray[np.uint8] | None:
        """Colour picture (H, W, 3) of the newest state; None unless ``render_mode="rgb_array"``."""
        if self.render_mode is None:
            gym.logger.warn(f"{self.ID}: render() needs gym.make(..., render_mode='rgb_array')")
            return None
        return cast("NDArray[np.uint8]", self.draw(("rgb",))["rgb"])

    def close(self) -> None:
        """Free the world and the renderer; may be called twice."""
        if self._world is not None:
            self._log = self.step_log
            self._world.close()
            self._world = None
        self._pictures.release()
        self._over = self._closed = True

    # --- pictures -------------------------------------------------------------------------------

    def draw(
        self,
        layers: str | Sequence[str] = ("rgb",),
        *,
        width: int | None = None,
        height: int | None = None,
        view: str | None = None,
        log: WorldLog | None = None,
        row: int = -1,
    ) -> dict[str, NDArray[Any]]:
        """Draw the newest state, or any row of a log of this scene.

        Args:
            layers: of `wmeval.layers.RENDERED`.
            width: [px]; default: the environment's.
            height: [px]; default: the environment's.
            view: camera; default: the one that the reset chose.
            log: any log of this scene; default: the newest state.
            row: row of ``log``.

        Raises:
            UserError: an unknown layer or view, a size out of range, no such row, or the
                environment is closed.
        """
        names = rendered_layers(layers)
        size = self.picture_size(width, height)
        if self._closed:
            raise UserError(f"{self.ID}: the environment is closed: call reset() before draw()")
        spec = self.world_spec
        shown = self.log if log is None else log
        if not -len(shown) <= row < len(shown):
            raise UserError(f"row {row}: the log has {len(shown)} rows")
        state = render_state(shown, row, spec.scene, self.camera_index(view))
        return dict(self._pictures.draw(spec.scene, spec.meshes, state, size, names))

    def picture_size(self, width: int | None = None, height: int | None = None) -> tuple[int, int]:
        """Checked picture (width, height) [px]; None is the environment's own.

        Raises:
            UserError: not whole numbers in 16..8192.
        """
        return _size(width, height, (self.width, self.height))

    def camera_index(self, view: str | None = None) -> int:
        """Index into the scene's cameras; None is the view that the reset chose.

        Raises:
            UserError: no such camera.
        """
        names = tuple(c.name for c in self.scene.cameras)
        view = self.view if view is None else camera_name(view, names)
        _known("view", view, names, where=self.ID)
        return names.index(view)

    @property
    def renderer_version(self) -> str:
        """Version of the renderer; starts it if need be."""
        return self._pictures.version(self.scene, self.meshes)

    @property
    def renderer_about(self) -> dict[str, Any]:
        """What the renderer says of itself since it draws: quality, device; {} for most."""
        return self._pictures.about

    # --- snapshots and branches -----------------------------------------------------------------

    def get_state(self) -> Snapshot:
        """This moment as a snapshot: seed, options and all actions so far."""
        if self._world is None:
            raise UserError(f"{self.ID}: call reset() first")
        return Snapshot(
            env_id=self.ID,
            settings=self._physics(),
            seed=self.seed,
            options=self.options,
            actions=tuple(self._actions),
        )

    def set_state(self, snapshot: Snapshot) -> tuple[Any, dict[str, Any]]:
        """Return to a snapshot by replay, exactly.

        Returns:
            Observation and info as of that moment.

        Raises:
            UserError: the snapshot is of another environment or of other physics, or is longer
                than an episode.
        """
        if not isinstance(snapshot, Snapshot):
            raise UserError(
                f"{self.ID}: set_state takes a Snapshot of get_state(), not "
                f"{type(snapshot).__name__}; Snapshot.model_validate_json reads a saved one"
            )
        ours: dict[str, JsonValue] = {"env_id": self.ID, **self._physics()}
        theirs: dict[str, JsonValue] = {"env_id": snapshot.env_id, **snapshot.settings}
        for name in ours | theirs:
            if ours.get(name) != theirs.get(name):
                raise UserError(
                    f"{self.ID}: the snapshot is of another world: its {name} is "
                    f"{theirs.get(name)!r}, here it is {ours.get(name)!r}; make the environment "
                    "with the snapshot's settings"
                )
        if len(snapshot.actions) > self.max_steps:
            raise UserError(
                f"{self.ID}: the snapshot has {len(snapshot.actions)} actions, an episode at most "
                f"{self.max_steps}: make the environment with a larger max_steps"
            )
        result = self.reset(seed=snapshot.seed, options=dict(snapshot.options))
        for action in snapshot.actions:
            observation, _, _, _, info = self.step(np.array(action, np.float32))
            result = observation, info
        return result

    def branch(self, n: int) -> list[WorldEnv]:
        """Continuations of the present state, each an environment of its own.

        With ``branching=True`` the physics worker forks (milliseconds); otherwise each branch
        replays the episode. Both give the same bits. Branches draw with this environment's
        renderer; close them when done.

        Args:
            n: how many, at least 1.

        Raises:
            UserError: n < 1, or no episode to branch.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise UserError(f"branch({n!r}): give a whole number of branches, at least 1")
        if self._world is None:
            raise UserError(f"{self.ID}: call reset() first")
        worlds: list[Any] = self._world.fork(int(n)) if self.branching else [None] * int(n)
        return [self._branch(i, world) for i, world in enumerate(worlds)]

    def _branch(self, index: int, world: World | None) -> WorldEnv:
        other = type(self)(**cast("Any", {**self.settings, "render_mode": self.render_mode}))
        other._pictures = self._pictures.share()
        other._keeping = self._keeping
        other._looking = self._looking
        if world is None:
            other.set_state(self.get_state())
        else:
            for name in _EPISODE:
                setattr(other, name, getattr(self, name))
            other._world = world
            other._actions, other._events = list(self._actions), list(self._events)
            other._begin(self.scene)
            for name in self._MEMORY:
                setattr(other, name, copy.copy(getattr(self, name)))
        sequence = np.random.SeedSequence(self.seed, spawn_key=(len(SEED_SPACES), index))
        other._np_random = np.random.Generator(np.random.PCG64(sequence))
        return other

    # --- recording ------------------------------------------------------------------------------

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep every substep's state, contacts and events in `step_log` from the next reset on.

        What is kept never changes what happens: the bits are those of an unrecorded episode.
        """
        before, self._keeping = self._keeping, True
        try:
            yield
        finally:
            self._keeping = before

    @contextmanager
    def unpictured(self, unseen: bool = True) -> Iterator[None]:
        """Observe the flat vector alone for a while: nobody looks at the pictures."""
        before, self._pictured = self._pictured, not unseen
        try:
            yield
        finally:
            self._pictured = before

    # --- parts ----------------------------------------------------------------------------------

    def _motion(
        self, name: Any, view: str, scene: Scene, drivers: Sequence[DriverSpec]
    ) -> CameraMotion.Params | None:
        """How the view's camera is turned: in place when it is an eye, else about what it sees."""
        if name is None:
            return None
        from wmeval.sim.drivers.camera_motion import REGIMES, CameraMotion

        _known("option camera_motion", name, tuple(REGIMES), where=self.ID)
        pivot: dict[str, Any] = {}
        if view not in EYES:
            followed = [d.params for d in drivers if d.params.get("camera") == view]
            bodies = [p["body"] for p in followed if isinstance(p.get("body"), str)]
            camera = next(c for c in scene.cameras if c.name == view)
            pivot = {"body": bodies[0]} if bodies else {"point": camera.target}
        return CameraMotion.Params(camera=view, regime=name, **pivot)

    def _checked(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        if options is not None and not isinstance(options, Mapping):
            raise UserError(
                f"{self.ID}: options = {options!r}: give a mapping of option names to values"
            )
        try:
            # Plain JSON values: files and snapshots hold them, and nobody else changes them.
            chosen: dict[str, Any] = json.loads(json.dumps(dict(options or {}), default=_plain))
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.ID}: options are JSON values: {error}") from error
        known = {**_COMMON_OPTIONS, **self.OPTIONS}
        for name in chosen:
            _known("option", name, tuple(known), where=self.ID)
        _known("option seed_space", chosen.get("seed_space", "training"), tuple(SEED_SPACES))
        return chosen

    def _perturbed(self, step: int) -> tuple[float, ...]:
        """What the world gets at a step: `Perturbation.actions`, one row at a time."""
        if step < self._late:
            return (0.0,) * len(self.channels)
        values = self._actions[step - self._late]
        n = len(values) - len(self.row.branches)
        # A branch is pressed or not: there is nothing to scale.
        return (*(self._gain * v for v in values[:n]), *values[n:])

    def _info(self) -> dict[str, Any]:
        if self.info_level == "none":
            return {}
        log = self.step_log
        state = log.state
        fields = ("position", "quaternion_wxyz", "linear_velocity", "angular_velocity")
        info: dict[str, Any] = {
            "time": float(self.time),
            "substep": int(state.substep[-1]),
            "state": {
                name: dict(zip(fields, values, strict=True))
                for name, *values in zip(
                    state.bodies, *(getattr(state, key)[-1] for key in fields), strict=True
                )
            },
            "events": log.events,
        }
        if self.info_level == "full":
            info["contacts"] = log.contacts
            info["cameras"] = log.cameras.rows(slice(-1, None))
            info["lights"] = log.lights.rows(slice(-1, None))
        if self._over:
            info["episode_events"] = self.events
            if self.world_spec.rules.chain != "none":
                info["shape"] = self.shape()
        return info

    def shape(self) -> str:
        """Shape of the trajectory so far: canonical, glancing, direct_strike or none.

        Raises:
            UserError: nothing was looked for (``info_level="none"``).
        """
        from wmeval.sim.events import classify_shape

        if not self._looking:
            raise UserError(
                f"{self.ID}: shape() needs events: make the environment with info_level='state'"
            )
        return classify_shape(self.events)


def motion_record(regime: str, view: str, in_place: bool) -> dict[str, JsonValue]:
    """A camera regime as JSON: ``regime``, ``view``, ``in_place`` and its ``legs``.

    Each leg has a name ("out" and "in" belong together), exact ``start`` and ``end`` [s] as text,
    and the yaw at both, counter-clockwise from above [deg].

    Raises:
        UserError: no such regime.
    """
    from wmeval.sim.drivers import camera_motion

    legs: list[JsonValue] = [
        {**leg._asdict(), "start": str(leg.start), "end": str(leg.end)}
        for leg in camera_motion.regime(regime).legs(in_place)
    ]
    return {"regime": regime, "view": view, "in_place": in_place, "legs": legs}


def rendered_layers(layers: str | Sequence[str]) -> tuple[str, ...]:
    """Checked names of layers that a renderer draws.

    Raises:
        UserError: an unknown layer, or one that lies between two frames.
    """
    try:
        names = tuple(layer.name for layer in layers_of(_listed(layers)))
    except TypeError as error:
        raise UserError(f"layers = {layers!r}: give names of layers") from error
    for name in names:
        if name not in RENDERED:
            raise UserError(
                f"layer {name!r} is not drawn"
                f"{', being not of one instant' if LAYERS[name].time_rule == 'never' else ''}: "
                f"record {' and '.join(DERIVED[name])}, from "
                "which it is derived when the rollout is read"
            )
    return names


def _listed(layers: str | Sequence[str]) -> str | tuple[str, ...]:
    return layers if isinstance(layers, str) else tuple(layers)


def _clock(row: EnvironmentRow, dt: Time | None, control_period: Time | None) -> SceneClock:
    try:
        period = row.control_period if control_period is None else period_of(control_period)
        return SceneClock(row.dt if dt is None else substep_of(dt, period), period)
    except ValueError as error:
        raise UserError(f"{row.id}: {error}") from error


def _known(what: str, value: Any, known: Sequence[str], *, where: str = "") -> None:
    if value not in known:
        place = f"{where}: " if where else ""
        choices = ", ".join(known) if known else "none are defined here"
        raise UserError(f"{place}unknown {what} {value!r}: choose from {choices}")


def camera_name(name: Any, cameras: Sequence[str]) -> Any:
    """A camera's own name: "third" stands for "follow" where a scene follows."""
    alias = name == "third" and "third" not in cameras and "follow" in cameras
    return "follow" if alias else name


def _size(width: int | None, height: int | None, default: tuple[int, int]) -> tuple[int, int]:
    width, height = (d if v is None else v for v, d in zip((width, height), default, strict=True))
    for name, value in (("width", width), ("height", height)):
        if isinstance(value, bool) or not isinstance(value, int) or not 16 <= value <= 8192:
            raise UserError(f"{name} = {value!r}: give a whole number of pixels in 16..8192")
    return width, height


def _plain(value: Any) -> Any:
    """Numpy's numbers and arrays as JSON values."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is none")


def _with_camera(scene: Scene, camera: Mapping[str, Any] | None) -> Scene:
    if camera is None:
        return scene
    try:
        custom = Camera.model_validate({"name": "custom", **dict(camera)})
    except (TypeError, ValueError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error
        raise UserError(
            "option camera: give {'position': [x, y, z], 'target': [x, y, z], 'fov_y_deg': 45}: "
            f"{problem}"
        ) from error
    return scene.model_copy(update={"cameras": (*scene.cameras, custom)})


def _perturbation(perturb: Perturb) -> Perturbation | None:
    from wmeval.sim.perturb import Perturbation

    if perturb is None or isinstance(perturb, Perturbation):
        return perturb
    if isinstance(perturb, Mapping):
        perturb = ",".join(f"{name}={value}" for name, value in perturb.items())
    if not isinstance(perturb, str):
        raise UserError(f"perturb = {perturb!r}: give a text like 'gravity=0.8' or a mapping")
    return Perturbation.parse(perturb)


def _renderers() -> tuple[str, ...]:
    from wmeval.sim import render

    return tuple(render.RENDERERS)

"""The nouns of the simulation floor: engine, driver, probe, renderer, world specification.

An **Engine** knows physics only. A **Driver** is everything that changes a scene over time; it is
named by a `DriverSpec` (plain data), so that a worker process can rebuild it. Engines run the
drivers inside `Engine.advance`, once per substep, through the narrow `SubstepView`: forces,
releases and follow cameras cost a few calls there and nothing crosses a process boundary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from wmeval.clock import SceneClock
from wmeval.records import CameraLog, Contacts, LightLog, StateLog, WorldLog
from wmeval.scene import Card, Meshes, Scene

Vec = tuple[float, float, float]
Quat = tuple[float, float, float, float]


# --- physics ------------------------------------------------------------------------------------


class EngineConfig(Card):
    """How an engine solves; one row of settings per configuration.

    Attributes:
        iterations: constraint solver iterations per substep.
        restitution_threshold: approach speed [m/s] below which nothing bounces.
        options: engine-specific settings, each known to the engine or refused by it.
    """

    iterations: int = Field(default=50, ge=1, le=1000)
    restitution_threshold: float = Field(default=0.2, ge=0)
    options: dict[str, JsonValue] = Field(default_factory=dict)


@dataclass(frozen=True)
class EngineInfo:
    """What an engine is and can do.

    Attributes:
        name, version: as results record them.
        body_kinds: of "rigid", "cloth", "rope", "soft".
        deterministic: bit-identical states in any process of this version.
        clock: "fixed" steps or "exact" (event-driven).
        contact_impulses: contacts carry impulses.
    """

    name: str
    version: str
    body_kinds: tuple[str, ...]
    deterministic: bool
    clock: Literal["fixed", "exact"]
    contact_impulses: bool


@dataclass(frozen=True)
class Probe:
    """What to keep of a stretch of time.

    Attributes:
        states: "substeps" keeps every state, "last" only the last.
        contacts: keep contact points of every substep: True all, pairs of bodies (in either
            order) those between them.
        bodies: indices whose state is wanted; None means all. Others repeat their last known state.
    """

    states: Literal["substeps", "last"] = "last"
    contacts: bool | tuple[tuple[int, int], ...] = False
    bodies: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ContactPoint:
    """One contact of the substep just done; ``normal`` from b to a, impulses [N s] on a."""

    body_a: int
    body_b: int
    position: Vec
    normal: Vec
    normal_impulse: float
    tangential_impulse: Vec
    distance: float


class StateView(Protocol):
    """One state in plain numbers, read when asked for; arguments are scene indices.

    What lives shows the present: it is good until its world goes on.
    """

    def pose(self, body: int) -> tuple[Vec, Quat]:
        """Position [m] and ``wxyz`` quaternion."""

    def velocity(self, body: int) -> tuple[Vec, Vec]:
        """Linear [m/s] and angular [rad/s] velocity, world frame."""

    def motion(self, body: int) -> int:
        """STATIC, KINEMATIC or DYNAMIC."""

    def camera(self, camera: int) -> tuple[float, ...]:
        """``T_world_camera``, sixteen numbers, row-major."""


class SubstepView(StateView, Protocol):
    """What a driver may read and do around one substep; body arguments are scene indices."""

    substep: int
    """Substeps done so far (state index)."""
    dt: float
    """Substep [s]."""
    action: Sequence[float]
    """Action in force."""

    def contacts(self, body: int, other: int) -> list[ContactPoint]:
        """Contacts with positive impulse between two bodies in the substep just done."""

    def apply_force(self, body: int, force: Vec) -> None:
        """Force [N] through the centre of mass during the next substep, world frame."""

    def set_motion(self, body: int, motion: int) -> None:
        """Make a body STATIC, KINEMATIC or DYNAMIC (with the scene's mass, at rest)."""

    def set_state(
        self, body: int, position: Vec, quaternion: Quat, linear: Vec, angular: Vec
    ) -> None:
        """Put a body's state; put after a substep, it undoes that substep's contacts of the body.

        They are not recorded: they led to no change of momentum.
        """

    def set_camera(self, camera: int, position: Vec, target: Vec) -> None:
        """Put a camera [m] (index into ``scene.cameras``)."""


class Driver(Protocol):
    """A thing that changes a scene over time. Stateless apart from what `reset` makes anew.

    A class that inherits from this one may leave out `before` or `after`.
    """

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""

    def before(self, view: SubstepView) -> None:
        """Called before every substep."""

    def after(self, view: SubstepView) -> None:
        """Called after every substep, when ``view.substep`` has been counted up."""


class DriverSpec(Card):
    """A driver by the name of its row in `wmeval.sim.drivers`, with its parameters."""

    kind: str
    params: dict[str, JsonValue] = Field(default_factory=dict)


class Engine(Protocol):
    """Physics of one scene."""

    info: EngineInfo

    def build(
        self,
        scene: Scene,
        meshes: Meshes,
        config: EngineConfig,
        dt: Fraction,
        drivers: Sequence[Driver],
    ) -> None:
        """Make the scene at state 0 and reset the drivers.

        Raises:
            ValueError: the scene holds what the engine has no physics for, or an unknown option.
        """

    def log(self, probe: Probe) -> tuple[StateLog, CameraLog, LightLog]:
        """The present state as one row."""

    def advance(
        self, action: Sequence[float], until: int, probe: Probe
    ) -> tuple[StateLog, CameraLog, LightLog, Contacts]:
        """Run substeps up to state ``until`` under one action; rows as the probe asks."""

    def run(self, action: Sequence[float], until: int) -> StateView:
        """Run substeps as `advance` does, and keep nothing."""

    def close(self) -> None:
        """Free everything; idempotent."""


@runtime_checkable
class RayQuery(Protocol):
    """Optional verb of an engine: exact ray casts."""

    def raycast(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3)."""


# --- the whole of a world, as data --------------------------------------------------------------


class EventRules(Card):
    """What counts as an event; `wmeval.sim.events` finds it.

    Attributes:
        chain: "beam_domino" finds stages and shapes; "none" finds contacts only.
        contact_roles: pairs of roles whose first contacts and re-contacts are events.
        contact_gap: a pair apart for longer than this [s] makes a new contact event.
        fall_deg: tilt [deg] at which a domino, or the slab, counts as fallen.
        plateau: time without a new fall [s] that ends a cascade.
        impact_impulse: normal impulse of one substep [N s] from which a touch is an impact.
        bounds: lower and upper corner [m] of the box that a body's centre must not leave.
    """

    chain: Literal["none", "beam_domino"] = "none"
    contact_roles: tuple[tuple[str, str], ...] = ()
    contact_gap: float = Field(default=0.1, ge=0)
    fall_deg: float = Field(default=30.0, gt=0)
    plateau: float = Field(default=0.5, gt=0)
    impact_impulse: float = Field(default=0.01, ge=0)
    bounds: tuple[Vec, Vec] = ((-500.0, -500.0, -5.0), (500.0, 500.0, 500.0))


@dataclass(frozen=True)
class WorldSpec:
    """All that makes a world again: the same spec and the same actions give the same bits."""

    scene: Scene
    meshes: Meshes
    drivers: tuple[DriverSpec, ...]
    clock: SceneClock
    rules: EventRules
    engine: str = "bullet"
    config: EngineConfig = field(default_factory=EngineConfig)


# --- pictures -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RenderState:
    """One instant, for a renderer: poses of all bodies, one camera, the sun.

    Attributes:
        position: (B, 3) [m].
        quaternion_wxyz: (B, 4).
        active: (B,) bool.
        fov_y: vertical field of view [rad].
        T_world_camera: (4, 4).
        near, far: clip planes [m].
        sun_direction: (3,) along which sunlight travels.
        sun_color: (3,) linear RGB times strength.
    """

    position: NDArray[np.float64]
    quaternion_wxyz: NDArray[np.float64]
    active: NDArray[np.bool_]
    fov_y: float
    T_world_camera: NDArray[np.float64]
    near: float
    far: float
    sun_direction: NDArray[np.float64]
    sun_color: NDArray[np.float64]


def render_state(log: WorldLog, row: int, scene: Scene, camera: int) -> RenderState:
    """The instant of one row of a log seen by one camera."""
    spec = scene.cameras[camera]
    return RenderState(
        log.state.position[row],
        log.state.quaternion_wxyz[row],
        log.state.active[row],
        float(log.cameras.fov_y[row, camera]),
        log.cameras.T_world_camera[row, camera],
        spec.near,
        spec.far,
        log.lights.sun_direction[row],
        log.lights.sun_color[row],
    )


class Renderer(Protocol):
    """Pictures of one scene. Made lazily; holds a GL context or a process."""

    name: str
    version: str

    def draw(
        self, state: RenderState, width: int, height: int, layers: tuple[str, ...]
    ) -> Mapping[str, NDArray[Any]]:
        """Layers of one instant, as `wmeval.layers.LAYERS` describes them, rows top-down."""

    def close(self) -> None:
        """Free everything; idempotent."""

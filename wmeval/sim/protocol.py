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
from types import MappingProxyType
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from wmeval.clock import SceneClock
from wmeval.errors import UserError
from wmeval.records import CameraLog, Contacts, LightLog, StateLog, WorldLog
from wmeval.scene import Card, Deform, Mesh, Meshes, Scene

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
        body_kinds: of "rigid", "joint", "cloth", "rope", "soft": what `check_kinds` lets in.
        deterministic: bit-identical states in any process of this version.
        clock: "fixed" steps or "exact" (event-driven).
        contact_impulses: contacts carry impulses; an engine that does not gives no contacts.
        mend: command that installs what it needs to run; empty when it can.
        stepped: it goes on one substep at a time; else it runs whole jobs
            (`wmeval.sim.world.foresee`).
    """

    name: str
    version: str
    body_kinds: tuple[str, ...]
    deterministic: bool
    clock: Literal["fixed", "exact"]
    contact_impulses: bool
    mend: str = ""
    stepped: bool = True


@dataclass(frozen=True)
class Probe:
    """What to keep of a stretch of time.

    Attributes:
        states: "substeps" keeps every state, "last" only the last.
        contacts: keep contact points of every substep: True all, pairs of bodies (in either
            order) those between them.
        bodies: indices whose state is wanted; None means all. Others repeat their last known state.
        shown: every row tells what drivers show. If not, only the last one does: what is shown in
            the others (data bodies, cameras, lights) may be of an earlier state.
    """

    states: Literal["substeps", "last"] = "last"
    contacts: bool | tuple[tuple[int, int], ...] = False
    bodies: tuple[int, ...] | None = None
    shown: bool = True


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

    def active(self, body: int) -> bool:
        """Whether the body's slot is in the world."""

    def camera(self, camera: int) -> tuple[float, ...]:
        """``T_world_camera``, sixteen numbers, row-major."""

    def fov_y(self, camera: int) -> float:
        """Vertical field of view [rad]."""

    def sun(self) -> tuple[Vec, Vec]:
        """Direction along which sunlight travels (unit), and linear RGB times strength."""

    def sky(self) -> tuple[Vec, Vec, Vec]:
        """Zenith, horizon and ground, each linear RGB times strength."""

    def modal(self, name: str) -> tuple[float, ...]:
        """Named extra state, as many numbers as `wmeval.scene.Modal.size` says.

        Raises:
            UserError: the scene declares no such state.
        """

    def vertices(self, name: str) -> NDArray[np.float64]:
        """Vertices (V, 3) [m] of a deformable, world frame.

        Raises:
            UserError: the scene has none of that name.
        """


@dataclass(frozen=True)
class RayHit:
    """The nearest body on a ray.

    Attributes:
        body: scene index.
        position: of the hit [m].
        normal: of the surface there, unit.
        fraction: of the way from origin to end, in [0, 1].
    """

    body: int
    position: Vec
    normal: Vec
    fraction: float


class SubstepView(StateView, Protocol):
    """What a driver may read and do around one substep; body arguments are scene indices.

    A body without collision geometry is *data*: its state is what a driver puts, no engine moves
    it, nothing touches it. Visual parts that move (leaves, limbs, wings, particles) are such
    bodies, ``motion="kinematic"``: every label follows from their poses.

    Constants of the world come from the scene that `Driver.reset` is given (``scene.gravity``,
    ``scene.bodies[i].mass``), never from a driver's own numbers: a perturbed twin changes them
    there.
    """

    substep: int
    """Substeps done so far (state index); negative while a world settles (`WorldSpec.settle`)."""
    dt: float
    """Substep [s]."""
    action: Sequence[float]
    """Action in force."""

    def contacts(self, body: int, other: int | None = None) -> list[ContactPoint]:
        """Contacts with positive impulse of a body in the substep just done.

        Args:
            body: ``body_a`` of what is returned.
            other: only those with this body; None: with any.
        """

    def apply_force(self, body: int, force: Vec, at: Vec | None = None) -> None:
        """Force [N] during the next substep, world frame.

        Args:
            body: a dynamic body.
            force: [N].
            at: world point [m] on which it acts; None: the centre of mass.
        """

    def apply_torque(self, body: int, torque: Vec) -> None:
        """Torque [N m] during the next substep, world frame."""

    def set_motion(self, body: int, motion: int) -> None:
        """Make a body STATIC, KINEMATIC or DYNAMIC (with the scene's mass, at rest)."""

    def set_state(
        self, body: int, position: Vec, quaternion: Quat, linear: Vec, angular: Vec
    ) -> None:
        """Put a body's state: dynamic, kinematic or data.

        Put after a substep, it undoes that substep's contacts of a dynamic body. They are not
        recorded: they led to no change of momentum.

        A kinematic body stays where it is put; its velocity acts on what touches it, and what it
        pushed or carried is recorded.

        Args:
            body: which.
            position: centre of mass [m].
            quaternion: unit, ``wxyz``.
            linear: [m/s].
            angular: [rad/s], world frame.
        """

    def set_states(self, bodies: NDArray[np.intp], numbers: NDArray[np.float64]) -> None:
        """Put the states of many data bodies at once.

        Args:
            bodies: (n,) scene indices, each at most once.
            numbers: (n, 13) position 3, quaternion wxyz 4, linear 3 and angular velocity 3.

        Raises:
            UserError: one of them has collision geometry.
        """

    def set_active(self, body: int, on: bool) -> None:
        """Let a data body's slot appear or vanish.

        Raises:
            UserError: it has collision geometry.
        """

    def set_camera(
        self, camera: int, position: Vec, target: Vec, fov_y: float | None = None
    ) -> None:
        """Put a camera (index into ``scene.cameras``).

        Args:
            camera: which.
            position: eye [m].
            target: looked-at point [m].
            fov_y: vertical field of view [rad]; None keeps it.
        """

    def set_camera_pose(self, camera: int, pose: tuple[float, ...]) -> None:
        """Put a camera by its ``T_world_camera``, sixteen numbers, row-major."""

    def set_sun(self, direction: Vec, color: Vec) -> None:
        """Put the sun: direction along which its light travels, linear RGB times strength."""

    def set_sky(self, zenith: Vec, horizon: Vec, ground: Vec) -> None:
        """Put the sky's colours, linear RGB times strength each."""

    def set_modal(self, name: str, values: Sequence[float]) -> None:
        """Put a named extra state.

        Raises:
            UserError: the scene declares no such state, or one of another size.
        """

    def raycast(self, origin: Vec, end: Vec, ignore: tuple[int, ...] = ()) -> RayHit | None:
        """The nearest body with collision geometry on a ray, but for those in ``ignore``.

        Exact on static and kinematic bodies. A dynamic body is met at the pose with which the
        substep began. It changes nothing: the same bits follow with and without rays.
        """


def check_kinds(scene: Scene, info: EngineInfo) -> None:
    """Does an engine have physics for all that a scene holds?

    Raises:
        UserError: not so, naming what it lacks.
    """
    if scene.joints and "joint" not in info.body_kinds:
        raise UserError(
            f"engine {info.name} has no joints, and scene {scene.name!r} has "
            f"{scene.joints[0].name!r}: run it with another engine"
        )
    for item in scene.deformables:
        if item.kind not in info.body_kinds:
            raise UserError(
                f"engine {info.name} has no {item.kind}, and scene {scene.name!r} has "
                f"{item.name!r}: run it with another engine"
            )


class Driver(Protocol):
    """A thing that changes a scene over time. Stateless apart from what `reset` makes anew.

    A class that inherits from this one may leave out any hook but `reset`.
    """

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""

    def before(self, view: SubstepView) -> None:
        """Called before every substep."""

    def after(self, view: SubstepView) -> None:
        """Called after every substep, when ``view.substep`` has been counted up."""

    def show(self, view: SubstepView) -> None:
        """Called when somebody looks: before a row is written or a shown thing is read.

        For what is a PURE function of time, physical state and modal state: leaves in the wind,
        poses of a gait, spin of a wheel, the sun, a regime's camera. It keeps no memory, since how
        often it is called depends on who looks. It puts data bodies, cameras, sun, sky and modal
        state only; what it puts cannot be read in `before` and `after`. A camera it may read: as
        the other hooks, or earlier drivers' `show`, have put it for this state.
        """


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
    """Optional verb of an engine: exact ray casts at all bodies, between substeps."""

    def cast_rays(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3)."""


@runtime_checkable
class Foresight(Protocol):
    """Verb of an engine that runs whole jobs: it is told beforehand what will be asked for."""

    def foresee(
        self,
        stretches: Sequence[tuple[tuple[float, ...], int]],
        *,
        every: bool = False,
        limit: float | None = None,
    ) -> None:
        """Before `Engine.build`: actions, each with the state up to which it is in force.

        Args:
            stretches: in order.
            every: all states are wanted, not only those at the ends of stretches.
            limit: time-out of the job [s].
        """


@dataclass(frozen=True)
class BodyMechanics:
    """Mechanics of one body at one instant.

    Attributes:
        momentum: (3,) [kg m/s], world frame.
        angular_momentum: about its centre of mass, (3,) [kg m^2/s].
        translational_energy, rotational_energy: [J].
    """

    momentum: Vec
    angular_momentum: Vec
    translational_energy: float
    rotational_energy: float

    @property
    def energy(self) -> float:
        """Kinetic energy [J]."""
        return self.translational_energy + self.rotational_energy


@runtime_checkable
class MechanicsQuery(Protocol):
    """Optional verb of an engine that knows its bodies' motion at all times, not only at states."""

    def mechanics(self, time: float) -> dict[str, BodyMechanics]:
        """Momentum and kinetic energy of what moves, by name, at any time [s] up to the present."""


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
    """All that makes a world again: the same spec and the same actions give the same bits.

    With ``settle`` so many substeps pass before state 0, unrecorded, under no action: states
    -settle to 0. `SubstepView.substep` tells drivers, which may hold, damp or wait then.
    """

    scene: Scene
    meshes: Meshes
    drivers: tuple[DriverSpec, ...]
    clock: SceneClock
    rules: EventRules
    engine: str = "bullet"
    config: EngineConfig = field(default_factory=EngineConfig)
    settle: int = 0


# --- pictures -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RenderState:
    """One instant, for a renderer: poses of all bodies, one camera, the light, the modal state.

    Attributes:
        position: (B, 3) [m].
        quaternion_wxyz: (B, 4).
        active: (B,) bool.
        fov_y: vertical field of view [rad].
        T_world_camera: (4, 4).
        near, far: clip planes [m].
        sun_direction: (3,) along which sunlight travels.
        sun_color: (3,) linear RGB times strength.
        sky: (3, 3) zenith, horizon and ground, linear RGB times strength.
        modal: named extra state, each (size,).
        deforms: index of every body whose mesh follows modal state, with how.
        hidden: (B,) bodies that the camera does not see, though mirrors and the sun do; None: none.
        vertices: of each deformable by name, (V, 3) [m], world frame.
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
    sky: NDArray[np.float64]
    modal: Mapping[str, NDArray[np.float64]] = field(default_factory=lambda: MappingProxyType({}))
    deforms: tuple[tuple[int, Deform], ...] = ()
    hidden: NDArray[np.bool_] | None = None
    vertices: Mapping[str, NDArray[np.float64]] = field(
        default_factory=lambda: MappingProxyType({})
    )


def deforms_of(scene: Scene) -> tuple[tuple[int, Deform], ...]:
    """Index of every body whose mesh follows modal state, with how (its first such visual)."""
    if not scene.modal:
        return ()
    out = []
    for i, body in enumerate(scene.bodies):
        found = [v.shape.deform for v in body.visuals if isinstance(v.shape, Mesh)]
        out += [(i, deform) for deform in found if deform is not None][:1]
    return tuple(out)


def hidden_from(scene: Scene, camera: int) -> NDArray[np.bool_] | None:
    """Bodies (B,) that a camera does not see; None for none."""
    hides = frozenset(scene.cameras[camera].hides)
    return np.array([body.name in hides for body in scene.bodies]) if hides else None


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
        log.lights.sky[row],
        {name: values[row] for name, values in log.state.modal.items()},
        deforms_of(scene),
        hidden_from(scene, camera),
        {name: values[row] for name, values in log.state.vertices.items()},
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

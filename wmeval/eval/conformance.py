"""What an engine does with each parameter: asked against effective, one small world each.

An engine passes this suite before its numbers of anything else count. Every check is a scene with
one known answer, a time to run, and a pure function of the log that gives the *effective* value of
the quantity that was asked for: gravity, restitution, friction, a period, a stiffness. A check that
an engine has no physics for is `not_run`, one that it cannot finish is `failed`, each with the
reason; neither is left out.

Effective values depend on dt, iterations and settings: the table is of one configuration.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.clock import SceneClock
from wmeval.deformables import block_face, sheet_edge
from wmeval.errors import UserError, one_line
from wmeval.eval.truths.rigid import small_period, swing_period
from wmeval.jobs.worker import WorkerError
from wmeval.records import WorldLog
from wmeval.scene import (
    Block,
    Body,
    Box,
    Camera,
    Cloth,
    Collision,
    Cylinder,
    Deformable,
    Joint,
    Material,
    Pin,
    Scene,
    Sheet,
    Soft,
    Sphere,
    Sun,
    Texture,
    Visual,
)
from wmeval.sim.engines import engine_info
from wmeval.sim.protocol import EngineConfig, EventRules, Probe, WorldSpec, check_kinds
from wmeval.sim.world import World, foresee, open_world

F8 = NDArray[np.float64]
Status = Literal["ok", "off", "not_run", "failed"]

GRAVITY = 9.81
RATE, SOFT_RATE = 180, 900
"""Substeps per second of rigid bodies and cloth, and of solids, unless said otherwise."""
RESTITUTIONS = (0.2, 0.5, 0.8, 0.95)
_MU = 0.3
_LEG, _BALL, _WEIGHT = 0.28, 0.03, 0.1
_STRIP = {"stretch": 100.0, "areal_density": 0.2, "length": 0.1, "width": 0.04, "gravity": 49.05}
_FOAM = {"young": 86_410.0, "density": 13.2, "length": 0.2, "gravity": 490.5}


@dataclass(frozen=True)
class Check:
    """One quantity in one small world.

    Attributes:
        name: key; what it is about comes first.
        quantity: what is measured, with its symbol.
        unit: SI unit, "1" for none.
        asked: the right value.
        tolerance: greatest |effective - asked| that conforms.
        seconds: how long the world runs.
        rate: substeps per second.
        scene: makes the world at t = 0.
        measure: effective value, of a log with every state.
        doc: what is right, and why.
    """

    name: str
    quantity: str
    unit: str
    asked: float
    tolerance: float
    seconds: float
    rate: int
    scene: Callable[[], Scene]
    measure: Callable[[WorldLog], float]
    doc: str


@dataclass(frozen=True)
class Outcome:
    """What an engine made of a check.

    Attributes:
        check: its name.
        engine, version: who.
        asked: the right value.
        effective: the measured one; None where there is none.
        status: "ok" within tolerance, "off" beyond, "not_run" and "failed" with a reason.
        reason: one line; empty when measured.
        wall_s: of the run [s].
    """

    check: str
    engine: str
    version: str
    asked: float
    effective: float | None
    status: Status
    reason: str
    wall_s: float


# --- scenes ---------------------------------------------------------------------------------------

_STONE = Material(name="stone", texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5),)))


def _body(name: str, *shapes: Any, **fields: Any) -> Body:
    parts = tuple(s if isinstance(s, Collision) else Collision(shape=s) for s in shapes)
    return Body.model_validate(
        {
            "name": name,
            "role": name,
            "motion": "dynamic",
            "instance": 0,
            "collision": parts,
            "visuals": tuple(
                Visual(
                    shape=p.shape,
                    material="stone",
                    position=p.position,
                    quaternion_wxyz=p.quaternion_wxyz,
                )
                for p in parts
            ),
            "mass": 0.0 if fields.get("motion") == "static" else 1.0,
            **fields,
        }
    )


def _scene(
    *bodies: Body,
    gravity: float = GRAVITY,
    joints: tuple[Joint, ...] = (),
    deformables: tuple[Deformable, ...] = (),
) -> Scene:
    return Scene(
        name="conformance",
        gravity=(0.0, 0.0, -gravity),
        bodies=bodies,
        materials=(_STONE,),
        cameras=(Camera(name="static", position=(1.0, -1.5, 1.0), target=(0.0, 0.0, 0.3)),),
        sun=Sun(direction=(0.3, 0.4, -0.8660254)),
        joints=joints,
        deformables=deformables,
    )


def _ground(**fields: Any) -> Body:
    return _body(
        "ground", Box(half_extents=(2.0, 2.0, 0.1)), motion="static", position=(0.0, 0.0, -0.1),
        **fields,
    )  # fmt: skip


def _falling() -> Scene:
    return _scene(_body("ball", Sphere(radius=_BALL), mass=_WEIGHT, position=(0.0, 0.0, 5.0)))


def _bouncing(restitution: float) -> Callable[[], Scene]:
    def make() -> Scene:
        ball = _body(
            "ball", Sphere(radius=_BALL), mass=_WEIGHT, position=(0.0, 0.0, 0.4 + _BALL),
            restitution=restitution,
        )  # fmt: skip
        return _scene(ball, _ground(restitution=1.0))

    return make


def _slope(degrees: float) -> Callable[[], Scene]:
    def make() -> Scene:
        angle = math.radians(degrees)
        turned = (math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0)
        out = 0.035
        cube = _body(
            "cube", Box(half_extents=(0.025,) * 3), mass=_WEIGHT, friction=_MU,
            position=(out * math.sin(angle), 0.0, out * math.cos(angle)), quaternion_wxyz=turned,
        )  # fmt: skip
        board = _body(
            "board", Box(half_extents=(2.0, 0.2, 0.01)), motion="static", quaternion_wxyz=turned
        )
        return _scene(cube, board)

    return make


def _stack() -> Scene:
    boxes = [
        _body(f"box_{i}", Box(half_extents=(0.05,) * 3), friction=0.5, mass=_WEIGHT,
              position=(0.0, 0.0, 0.05 + 0.1 * i))
        for i in range(5)
    ]  # fmt: skip
    return _scene(*boxes, _ground(friction=1.0))


def _pendulum() -> Scene:
    ball = _body("ball", Sphere(radius=_BALL), mass=_WEIGHT, position=(-_LEG, 0.0, 1.0))
    hinge = Joint(
        name="hinge", kind="hinge", body="ball", pivot=(0.0, 0.0, 1.0), axis=(0.0, 1.0, 0.0)
    )
    return _scene(ball, joints=(hinge,))


_TOP = {"radius": 0.08, "height": 0.02, "arm": 0.05, "spin": 40.0, "tilt": math.radians(20)}


def top_precession() -> float:
    """Steady precession [rad/s] of the suite's top, the slow one.

    I1 W^2 cos(tilt) - I3 w3 W + m g l = 0 with w3 the spin along the axis (Goldstein 5.7).
    """
    r, h, arm = _TOP["radius"], _TOP["height"], _TOP["arm"]
    axial = r * r / 2
    across = (3 * r * r + h * h) / 12 + arm * arm
    a, b, c = across * math.cos(_TOP["tilt"]), axial * _TOP["spin"], GRAVITY * arm
    return (b - math.sqrt(b * b - 4 * a * c)) / (2 * a)


def _top() -> Scene:
    """A disc on a rod that stands on a point, begun in its steady precession."""
    tilt, rate = _TOP["tilt"], top_precession()
    axis = np.array((math.sin(tilt), 0.0, math.cos(tilt)))
    place = 1.0 * np.array((0, 0, 1)) + _TOP["arm"] * axis
    turning = _TOP["spin"] * axis + rate * (np.array((0, 0, 1.0)) - math.cos(tilt) * axis)
    disc = _body(
        "top", Cylinder(radius=_TOP["radius"], height=_TOP["height"]), mass=_WEIGHT,
        position=tuple(place.tolist()),
        quaternion_wxyz=(math.cos(tilt / 2), 0.0, math.sin(tilt / 2), 0.0),
        angular_velocity=tuple(turning.tolist()),
        linear_velocity=tuple(np.cross(turning, _TOP["arm"] * axis).tolist()),
    )  # fmt: skip
    point = Joint(name="point", kind="ball", body="top", pivot=(0.0, 0.0, 1.0))
    return _scene(disc, joints=(point,))


def _collision() -> Scene:
    """A ball strikes another, of another mass, aside of its middle."""
    first = _body(
        "first", Sphere(radius=0.05), mass=1.0, position=(-0.3, 0.03, 0.0), friction=0.3,
        restitution=0.7, linear_velocity=(1.0, 0.0, 0.0),
    )  # fmt: skip
    second = _body(
        "second", Sphere(radius=0.05), mass=2.0, position=(0.0, 0.0, 0.0), friction=0.3,
        restitution=0.7,
    )  # fmt: skip
    return _scene(first, second, gravity=0.0)


def _strip_sheet() -> Sheet:
    return Sheet(size=(_STRIP["width"], _STRIP["length"]), cells=(4, 10))


def _strip() -> Scene:
    sheet = _strip_sheet()
    cloth = Cloth(
        name="strip",
        surface=sheet,
        areal_density=_STRIP["areal_density"],
        stretch=_STRIP["stretch"],
        shear=_STRIP["stretch"] / 2.7,
        bending=1e-5,
        pins=(Pin(vertices=sheet_edge(sheet, "y+")),),
        position=(0.0, 0.0, 1.0),
        quaternion_wxyz=(math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0),
    )
    return _scene(_ground(), gravity=_STRIP["gravity"], deformables=(cloth,))


def _bar_block() -> Block:
    return Block(size=(0.05, 0.05, _FOAM["length"]), cells=(3, 3, 12))


def _bar() -> Scene:
    block = _bar_block()
    foam = Soft(
        name="bar",
        volume=block,
        density=_FOAM["density"],
        youngs_modulus=_FOAM["young"],
        poisson_ratio=0.23,
        pins=(Pin(vertices=block_face(block, "z+")),),
        position=(0.0, 0.0, 1.0),
    )
    return _scene(_ground(), gravity=_FOAM["gravity"], deformables=(foam,))


# --- measures -------------------------------------------------------------------------------------


def acceleration(times: F8, along: F8) -> float:
    """Of a path (N,) [m] at constant acceleration, by least squares [m/s^2]."""
    return float(2 * np.polyfit(times, along, 2)[0])


def effective_gravity(log: WorldLog) -> float:
    """Downward acceleration of body 0 [m/s^2]."""
    return -acceleration(log.state.times, log.state.position[:, 0, 2])


def effective_restitution(log: WorldLog) -> float:
    """Greatest speed up within 40 ms of the greatest speed down, over that, of body 0."""
    speed = log.state.linear_velocity[:, 0, 2]
    hit = int(np.argmin(speed))
    after = speed[hit : hit + max(2, round(0.04 / float(log.state.dt)) + 1)]
    return float(max(0.0, after.max()) / -speed[hit])


def _slid(log: WorldLog) -> F8:
    return np.asarray(np.linalg.norm(log.state.position[:, 0] - log.state.position[0, 0], axis=1))


def creep(log: WorldLog) -> float:
    """How far body 0 has gone in the second half of the time [m]."""
    gone = _slid(log)
    return float(abs(gone[-1] - gone[len(gone) // 2]))


def _effective_friction(degrees: float) -> Callable[[WorldLog], float]:
    def measure(log: WorldLog) -> float:
        angle = math.radians(degrees)
        settled = log.state.times > 0.1
        pull = acceleration(log.state.times[settled], _slid(log)[settled])
        return math.tan(angle) - pull / (GRAVITY * math.cos(angle))

    return measure


def stack_drift(log: WorldLog) -> float:
    """Greatest distance of any moving body from where it began, at the end [m]."""
    gone = log.state.position[-1] - log.state.position[0]
    return float(np.linalg.norm(gone, axis=1).max())


def pendulum_period(log: WorldLog) -> float:
    """Mean time between rises of body 0 through x = 0 [s].

    Raises:
        UserError: fewer than two.
    """
    times, x = log.state.times, log.state.position[:, 0, 0]
    k = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    if len(k) < 2:
        raise UserError("the pendulum did not swing through twice")
    at = times[k] + (times[k + 1] - times[k]) * (-x[k]) / (x[k + 1] - x[k])
    return float(np.diff(at).mean())


def pendulum_energy(log: WorldLog) -> float:
    """Energy of the last over that of the first second of the pendulum, above its lowest point."""
    state = log.state
    linear = (state.linear_velocity[:, 0] ** 2).sum(axis=1)
    spin = (state.angular_velocity[:, 0] ** 2).sum(axis=1) * 0.4 * _BALL**2
    above = state.position[:, 0, 2] - (1.0 - _LEG)
    energy = 0.5 * (linear + spin) + GRAVITY * above
    second = round(1.0 / float(state.dt))
    return float(energy[-second:].mean() / energy[:second].mean())


def precession(log: WorldLog) -> float:
    """Mean rate at which the centre of body 0 goes round the z axis [rad/s]."""
    x, y = log.state.position[:, 0, 0], log.state.position[:, 0, 1]
    turned = np.unwrap(np.arctan2(y, x))
    return float(np.polyfit(log.state.times, turned, 1)[0])


def momentum_drift(log: WorldLog) -> float:
    """Change of the two balls' momentum over what the first had."""
    masses = np.array((1.0, 2.0))
    momentum = (log.state.linear_velocity[:, :2] * masses[:, None]).sum(axis=1)
    return float(np.linalg.norm(momentum[-1] - momentum[0]) / np.linalg.norm(momentum[0]))


def spin_drift(log: WorldLog) -> float:
    """Change of the two balls' angular momentum about the origin over what the first had."""
    masses = np.array((1.0, 2.0))[:, None]
    state = log.state
    orbit = np.cross(state.position[:, :2], state.linear_velocity[:, :2]) * masses
    own = 0.4 * 0.05**2 * state.angular_velocity[:, :2] * masses
    total = (orbit + own).sum(axis=1)
    return float(np.linalg.norm(total[-1] - total[0]) / np.linalg.norm(total[0]))


def _hang(log: WorldLog, name: str, numbers: Sequence[int]) -> float:
    """How far the lower edge hangs under where it began, on average over the second half [m].

    Let go without damping, it swings about where it would hang: dozens of times in that half.
    """
    low = log.state.vertices[name][:, list(numbers), 2].mean(axis=1)
    return float(low[0] - low[len(low) // 2 :].mean())


def effective_stretch(log: WorldLog) -> float:
    """K_s [N/m] of the hanging strip: w L^2 / 2 over its longer hang."""
    longer = _hang(log, "strip", sheet_edge(_strip_sheet(), "y-"))
    weight = _STRIP["areal_density"] * _STRIP["gravity"]
    return weight * _STRIP["length"] ** 2 / 2 / longer


def effective_young(log: WorldLog) -> float:
    """E [Pa] of the hanging bar: rho g L^2 / 2 over its longer hang."""
    longer = _hang(log, "bar", block_face(_bar_block(), "z-"))
    return _FOAM["density"] * _FOAM["gravity"] * _FOAM["length"] ** 2 / 2 / longer


# --- the table ------------------------------------------------------------------------------------


def _checks() -> Iterable[Check]:
    yield Check("free_fall", "gravity g", "m/s^2", GRAVITY, 0.01, 0.5, RATE, _falling,
                effective_gravity, "the acceleration of a ball that nothing touches")  # fmt: skip
    for e in RESTITUTIONS:
        yield Check(f"bounce_{e:g}", "restitution e", "1", e, 0.03, 0.6, RATE, _bouncing(e),
                    effective_restitution, "speed after over speed before, from 0.4 m")  # fmt: skip
    yield Check("friction_stick", "creep", "m", 0.0, 1e-3, 1.0, RATE, _slope(10.0), creep,
                "tan 10 deg < mu = 0.3: a cube on the slope stays")  # fmt: skip
    yield Check("friction_slide", "friction mu", "1", _MU, 0.01, 0.6, RATE, _slope(30.0),
                _effective_friction(30.0), "tan a - a_s / (g cos a), sliding")  # fmt: skip
    yield Check("stack", "drift", "m", 0.0, 2e-3, 2.0, RATE, _stack, stack_drift,
                "five boxes stand on each other for two seconds")  # fmt: skip
    yield Check("top", "precession", "rad/s", top_precession(), 0.02 * top_precession(), 1.0, RATE,
                _top, precession, "a heavy symmetric top in steady precession")  # fmt: skip
    period = swing_period(small_period(_LEG, inertia=0.4 * _BALL**2), math.pi / 2)
    yield Check("pendulum_period", "period T", "s", period, 2e-3 * period, 5.0, RATE, _pendulum,
                pendulum_period, "a ball on a hinge, let go at 90 degrees")  # fmt: skip
    yield Check("pendulum_energy", "energy ratio", "1", 1.0, 0.01, 10.0, RATE, _pendulum,
                pendulum_energy, "energy of the tenth second over the first")  # fmt: skip
    yield Check("collision_momentum", "momentum drift", "1", 0.0, 1e-3, 0.6, RATE, _collision,
                momentum_drift, "an oblique impact of two balls keeps their momentum")  # fmt: skip
    yield Check("collision_spin", "angular momentum drift", "1", 0.0, 0.02, 0.6, RATE, _collision,
                spin_drift, "and their angular momentum, spin and orbit together")  # fmt: skip
    yield Check("cloth_stretch", "stretch K_s", "N/m", _STRIP["stretch"],
                0.1 * _STRIP["stretch"], 1.0, RATE, _strip, effective_stretch,
                "a strip hangs by its own weight: w L^2 / 2 K_s longer")  # fmt: skip
    yield Check("bar_stretch", "Young's modulus E", "Pa", _FOAM["young"], 0.1 * _FOAM["young"],
                0.4, SOFT_RATE, _bar, effective_young,
                "a clamped bar hangs by its own weight: rho g L^2 / 2 E longer")  # fmt: skip


CHECKS: dict[str, Check] = {check.name: check for check in _checks()}
"""The suite, by name."""


def spec_of(
    check: Check,
    engine: str,
    config: EngineConfig | None = None,
    *,
    substeps: int = 1,
    dt: Fraction | None = None,
) -> WorldSpec:
    """The world of a check, at a step of ``dt`` [s], or at ``substeps`` times its rate."""
    dt = dt or Fraction(1, check.rate * substeps)
    return WorldSpec(
        check.scene(), {}, (), SceneClock(dt, dt), EventRules(), engine, config or EngineConfig()
    )


def run_suite(
    engine: str,
    config: EngineConfig | None = None,
    *,
    checks: Sequence[str] | None = None,
    substeps: int = 1,
    dt: Fraction | None = None,
    told: Callable[[Outcome], None] | None = None,
    taken: list[World] | None = None,
) -> list[Outcome]:
    """Run checks on an engine, one worker for all.

    Args:
        engine: row of `wmeval.sim.engines.ENGINES`.
        config: its settings; None: defaults.
        checks: names; None: all.
        substeps: times the rate of every check.
        dt: substep of every check [s], in place of that.
        told: hears of every outcome as it comes.
        taken: a world that is no longer needed, whose worker is used again; the last one of the
            suite is left there. None: nothing is left open.

    Raises:
        UserError: an unknown check or engine.
    """
    names = list(CHECKS) if checks is None else list(checks)
    unknown = [n for n in names if n not in CHECKS]
    if unknown:
        raise UserError(f"no check {unknown[0]!r}: choose from {', '.join(CHECKS)}")
    out: list[Outcome] = []
    world: World | None = taken.pop() if taken else None
    try:
        for name in names:
            step = dt or Fraction(1, CHECKS[name].rate * substeps)
            outcome, world = _run(CHECKS[name], engine, config, step, world)
            out.append(outcome)
            if told is not None:
                told(outcome)
    except BaseException:
        if world is not None:
            world.close()
        raise
    if world is not None:
        if taken is None:
            world.close()
        else:
            taken.append(world)
    return out


def _run(
    check: Check, engine: str, config: EngineConfig | None, dt: Fraction, last: World | None
) -> tuple[Outcome, World | None]:
    info = engine_info(engine)
    spec = spec_of(check, engine, config, dt=dt)
    started = time.perf_counter()

    def outcome(status: Status, effective: float | None, reason: str = "") -> Outcome:
        wall = time.perf_counter() - started
        return Outcome(
            check.name, engine, info.version, check.asked, effective, status, reason, wall
        )

    try:
        check_kinds(spec.scene, info)
    except UserError as error:
        return outcome("not_run", None, one_line(str(error))), last
    try:
        world = last = open_world(spec, instead_of=last)
        steps = round(check.seconds / dt)
        foresee(world, [((), steps)], every=True)
        first = world.reset()
    except UserError as error:
        return outcome("not_run", None, one_line(str(error))), last
    except WorkerError as error:
        return outcome("failed", None, one_line(error.what)), None
    try:
        log = world.advance((), steps, Probe("substeps"))
        effective = check.measure(WorldLog.concatenate([first, log]))
    except UserError as error:
        return outcome("failed", None, one_line(str(error))), last
    except WorkerError as error:
        return outcome("failed", None, one_line(error.what)), None
    if not math.isfinite(effective):
        return outcome("failed", None, f"its {check.quantity} is not finite"), last
    near = abs(effective - check.asked) <= check.tolerance
    return outcome("ok" if near else "off", effective), last


def rows_of(outcomes: Iterable[Outcome]) -> list[dict[str, str | float | None]]:
    """The table: one row a check and engine, with unit, tolerance and meaning, for any report."""
    return [
        {
            "check": o.check,
            "quantity": CHECKS[o.check].quantity,
            "unit": CHECKS[o.check].unit,
            "engine": o.engine,
            "version": o.version,
            "asked": o.asked,
            "effective": o.effective,
            "tolerance": CHECKS[o.check].tolerance,
            "off_by": None if o.effective is None else o.effective - o.asked,
            "status": o.status,
            "reason": o.reason,
            "wall_s": o.wall_s,
        }
        for o in outcomes
    ]

"""A billiard table read from a scene, or the reason why it is none.

- Balls: dynamic bodies of one sphere each, all of one radius, resting on the bed.
- Bed: static bodies of role "bed", level boxes of one height; their top is the cloth.
- Cushions: static bodies of role "cushion", upright boxes. The face towards the bed's middle is the
  line of the nose; the height of the box's CENTRE above the cloth is the height at which the nose
  touches a ball (at least the ball's radius: the nose presses down).
- Everything else has no collision shapes.

Pairs: sliding friction, friction with a cushion and the scale of ball-ball friction are products of
the two bodies' ``friction`` (1 for a ball with the published friction between balls);
restitutions are products of ``restitution``; the rolling resistance is the lever arm
``ball.rolling_friction bed.friction + bed.rolling_friction ball.friction`` [m] over the radius.

Options of the engine: ``spin_friction``, torque about the vertical over m g R (default 0.0125: with
R = 30.75 mm it slows spin by 10 rad/s^2; Marlow's and Alciatore's range is 5 to 15);
``ball_friction``, the three numbers of `PairFriction`; ``contact_time`` [s]; ``throw`` and
``cushion``, the names of the models of impacts in `carom_collisions`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Body, Box, Scene, Sphere
from wmeval.sim.engines.carom_collisions import CUSHION_MODELS, THROW_MODELS, PairFriction
from wmeval.sim.engines.carom_motion import BallState, Cloth
from wmeval.sim.engines.carom_spec import Cushion, TableSpec
from wmeval.sim.protocol import EngineConfig, Quat, Vec

OVERLAP = 1e-9
"""Overlap [m] from which bodies cannot be where they are put."""
_LEVEL = 1e-9
_MODELS = {"throw": tuple(THROW_MODELS), "cushion": tuple(CUSHION_MODELS)}


@dataclass(frozen=True)
class Reading:
    """A table as the scene says it is.

    Attributes:
        spec: constants.
        balls: scene indices of the balls.
        cushions: scene indices of the cushions.
        height: of the balls' centres [m].
        states, rotations: of the balls at t = 0.
    """

    spec: TableSpec
    balls: tuple[int, ...]
    cushions: tuple[int, ...]
    height: float
    states: tuple[BallState, ...]
    rotations: tuple[Quat, ...]


def read_table(scene: Scene, config: EngineConfig) -> Reading:
    """The table of a scene.

    Raises:
        UserError: something that this engine has no physics for, or an unknown option.
    """
    gx, gy, gz = scene.gravity
    if gx or gy or gz > 0:
        raise UserError(f"carom: gravity {scene.gravity} must point straight down: level the table")
    spin, pair_friction, contact_time = _options(config)
    throw, cushion = _models(config)
    balls, beds, cushions = _sorted(scene)
    body = [scene.bodies[i] for i in balls]
    radius, masses = _radius(body), tuple(b.mass for b in body)
    top, bed = _bed([scene.bodies[i] for i in beds])
    cloths = tuple(
        Cloth(
            radius,
            b.friction * bed.friction * -gz,
            (b.rolling_friction * bed.friction + bed.rolling_friction * b.friction) / radius * -gz,
            2.5 * spin * -gz / radius,
        )
        for b in body
    )
    middle = (bed.position[0], bed.position[1])
    rails = [scene.bodies[k] for k in cushions]
    spec = TableSpec(
        radius,
        masses,
        cloths,
        tuple(_cushion(b, middle, top, radius) for b in rails),
        tuple(tuple(a.restitution * b.restitution for b in body) for a in body),
        tuple(tuple(a.friction * b.friction for b in body) for a in body),
        tuple(tuple(a.restitution * b.restitution for b in rails) for a in body),
        tuple(tuple(a.friction * b.friction for b in rails) for a in body),
        pair_friction,
        contact_time,
        throw,
        cushion,
    )
    height = top + radius
    states = tuple(
        ball_state(scene, i, height, b.position, b.linear_velocity, b.angular_velocity)
        for i, b in zip(balls, body, strict=True)
    )
    rotations = tuple(b.quaternion_wxyz for b in body)
    check_places(scene, spec, balls, states)
    return Reading(spec, balls, cushions, height, states, rotations)


def ball_state(
    scene: Scene, body: int, height: float, position: Vec, linear: Vec, angular: Vec
) -> BallState:
    """State of a ball on the table.

    Raises:
        UserError: it is not on the cloth, or moves up or down.
    """
    x, y, z = position
    if abs(z - height) > _LEVEL or linear[2] != 0.0:
        raise UserError(
            f"carom: ball {scene.bodies[body].name!r} at height {z} m with vertical velocity "
            f"{linear[2]} m/s: balls stay on the cloth, their centres at {height} m"
        )
    return BallState(x, y, linear[0], linear[1], *angular)


def check_places(
    scene: Scene, spec: TableSpec, balls: tuple[int, ...], states: tuple[BallState, ...]
) -> None:
    """Refuse balls that overlap or are not on the table.

    Raises:
        UserError: naming the bodies.
    """
    problem = misplaced(spec, states)
    if problem is None:
        return
    i, j = problem
    name = scene.bodies[balls[i]].name
    if j is None:
        raise UserError(
            f"carom: ball {name!r} at ({states[i].x:.6g}, {states[i].y:.6g}) m lies in or beyond a "
            "cushion: put it on the table"
        )
    other = scene.bodies[balls[j]].name
    raise UserError(f"carom: balls {name!r} and {other!r} overlap: put them apart")


def misplaced(spec: TableSpec, states: tuple[BallState, ...]) -> tuple[int, int | None] | None:
    """The first ball that overlaps another, (i, j), or a cushion, (i, None); None: all are well."""
    for i, a in enumerate(states):
        for cushion in spec.cushions:
            nx, ny = cushion.normal
            if a.x * nx + a.y * ny - cushion.offset < -OVERLAP:
                return i, None
        for j in range(i):
            b = states[j]
            if math.hypot(a.x - b.x, a.y - b.y) < 2.0 * spec.radius - OVERLAP:
                return j, i
    return None


# --- parts --------------------------------------------------------------------------------------


def _options(config: EngineConfig) -> tuple[float, PairFriction, float]:
    known = ("ball_friction", "contact_time", *_MODELS, "spin_friction")
    values = {"contact_time": 1e-3, "spin_friction": 0.0125}
    friction = PairFriction()
    for key, value in config.options.items():
        if key not in known:
            raise UserError(f"carom has no option {key!r}; known: {', '.join(known)}")
        if key in _MODELS:
            continue
        numbers = value if isinstance(value, list) else [value]
        plain = [float(v) for v in numbers if isinstance(v, int | float) and v >= 0]
        wanted = 3 if key == "ball_friction" else 1
        if len(plain) != wanted or isinstance(value, bool):
            raise UserError(f"carom option {key} = {value!r}: give {wanted} number(s) >= 0")
        if key == "ball_friction":
            friction = PairFriction(*plain)
        else:
            values[key] = plain[0]
    return values["spin_friction"], friction, values["contact_time"]


def _models(config: EngineConfig) -> tuple[str, str]:
    """Names of the models of impacts between balls and with cushions."""
    found = []
    for key, models in _MODELS.items():
        name = config.options.get(key, models[0])
        if not isinstance(name, str) or name not in models:
            raise UserError(f"carom option {key} = {name!r}: choose from {', '.join(models)}")
        found.append(name)
    throw, cushion = found
    return throw, cushion


def _sorted(scene: Scene) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Scene indices of balls, beds and cushions; everything else must be data."""
    balls, beds, cushions = [], [], []
    for i, body in enumerate(scene.bodies):
        if not body.active or (not body.collision and body.motion != "dynamic"):
            continue
        if body.motion == "dynamic":
            _check_ball(body)
            balls.append(i)
        elif body.motion == "static" and body.role == "bed":
            beds.append(i)
        elif body.motion == "static" and body.role == "cushion":
            cushions.append(i)
        else:
            raise UserError(
                f"carom: body {body.name!r} ({body.motion}, role {body.role!r}) has collision "
                "shapes, but this engine knows balls, a bed and cushions only: take its collision "
                "shapes away or choose engine='bullet'"
            )
    if not balls or not beds:
        raise UserError("carom: the scene has no ball or no static body of role 'bed'")
    return tuple(balls), tuple(beds), tuple(cushions)


def _check_ball(body: Body) -> None:
    part = body.collision[0] if len(body.collision) == 1 else None
    if part is None or not isinstance(part.shape, Sphere) or any(part.position):
        raise UserError(
            f"carom: dynamic body {body.name!r} is not one sphere about its own centre: this "
            "engine moves balls only; choose engine='bullet'"
        )
    if body.linear_damping or body.angular_damping:
        raise UserError(
            f"carom: ball {body.name!r} has damping: friction with the cloth is what slows balls "
            "here; use friction and rolling_friction"
        )
    if body.inertia is not None:
        raise UserError(
            f"carom: ball {body.name!r} states its inertia: balls are solid here; leave it out"
        )


def _radius(balls: list[Body]) -> float:
    radii = sorted({b.collision[0].shape.radius for b in balls})  # type: ignore[union-attr]
    if len(radii) > 1:
        raise UserError(
            f"carom: balls of radius {radii[0]} m and {radii[-1]} m: all must be equal, so that "
            "they meet at one height"
        )
    return radii[0]


def _box(body: Body) -> tuple[Box, tuple[float, float, float], tuple[tuple[float, ...], ...]]:
    """Its only shape, where that is, and its rotation's columns."""
    part = body.collision[0] if len(body.collision) == 1 else None
    if part is None or not isinstance(part.shape, Box) or any(part.position):
        raise UserError(f"carom: {body.role} {body.name!r} must be one box about its own centre")
    columns = quaternion_to_matrix(np.array(body.quaternion_wxyz)).T.tolist()
    if abs(columns[2][2]) < 1.0 - 1e-12:
        raise UserError(f"carom: {body.role} {body.name!r} must stand upright")
    return part.shape, body.position, tuple(tuple(c) for c in columns)


def _bed(beds: list[Body]) -> tuple[float, Body]:
    tops = []
    for body in beds:
        shape, position, _ = _box(body)
        tops.append(position[2] + shape.half_extents[2])
    if max(tops) - min(tops) > _LEVEL:
        raise UserError("carom: the bed's boxes end at different heights: level them")
    return tops[0], beds[0]


def _cushion(body: Body, middle: tuple[float, float], top: float, radius: float) -> Cushion:
    shape, (px, py, pz), columns = _box(body)
    sine = (pz - top - radius) / radius
    if not 0.0 <= sine < 0.9:
        raise UserError(
            f"carom: cushion {body.name!r} touches balls {pz - top:.4g} m above the cloth: give a "
            f"height of its centre in [{radius:.4g}, {1.9 * radius:.4g}) m"
        )
    # The face that the bed's middle lies furthest in front of.
    best = None
    for axis in (0, 1):
        for sign in (1.0, -1.0):
            nx, ny = sign * columns[axis][0], sign * columns[axis][1]
            face = px * nx + py * ny + shape.half_extents[axis]
            front = middle[0] * nx + middle[1] * ny - face
            if best is None or front > best[0]:
                best = (front, nx, ny, face)
    assert best is not None
    front, nx, ny, face = best
    if front <= radius:
        raise UserError(f"carom: cushion {body.name!r} stands over the middle of the bed")
    return Cushion((nx, ny), face + radius * math.sqrt(1.0 - sine * sine), sine)

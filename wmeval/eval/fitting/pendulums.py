"""A torque-driven pendulum on an engine: all pieces of a recording swing in one world.

The recording is cut into pieces; each begins at its measured angle and rate and runs under the
torque that was recorded. On an engine a piece is a ball on a hinge with the engine's own damping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.clock import SceneClock
from wmeval.datasets.mocap.schema import Trial
from wmeval.errors import UserError
from wmeval.eval.truths.real import pieces, slope
from wmeval.records import StateLog
from wmeval.scene import (
    Body,
    Camera,
    Collision,
    Joint,
    Material,
    Scene,
    Sphere,
    Sun,
    Texture,
    Visual,
)
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, Probe, WorldSpec
from wmeval.sim.world import World, seated

F8 = NDArray[np.float64]

GRAVITY = 9.81
RADIUS = 0.02
"""Of the ball [m]."""
APART = 3.0
"""Distance of neighbouring pivots [m]."""
HIGH = 2.0
"""Height of the pivots [m]."""
WINDOW = 0.3
"""Length of a piece [s]: beyond, the error of its first rate hides the parameters."""
AXIS = (0.0, -1.0, 0.0)
"""Angles grow from hanging down towards +x."""


@dataclass(frozen=True)
class Pendulum:
    """What swings.

    Attributes:
        length: from the pivot to the ball's centre [m]; mass: of the ball [kg].
        damping: of the hinge [N m s/rad].
    """

    length: float
    mass: float
    damping: float

    @property
    def inertia(self) -> float:
        """About the pivot [kg m^2]."""
        return self.mass * (self.length**2 + 0.4 * RADIUS**2)

    @property
    def weight(self) -> float:
        """Its greatest torque by gravity [N m]."""
        return self.mass * GRAVITY * self.length


@dataclass(frozen=True, eq=False)
class Piece:
    """One piece of a recording.

    Attributes:
        name: of it.
        times: (N,) from 0 [s]; angles: measured (N,) [rad]; torques: (N,) [N m].
        rate: at its first sample [rad/s].
    """

    name: str
    times: F8
    angles: F8
    torques: F8
    rate: float


def cut(trial: Trial, window: float = WINDOW) -> tuple[Piece, ...]:
    """A recording in pieces, each from its own measured state.

    Raises:
        UserError: it is too short, or has not the pendulum's signals.
    """
    if trial.signals.shape[1] != 3:
        raise UserError(f"trial {trial.name!r}: angle, rate and torque are wanted")
    starts, length = pieces(trial, window)
    t, angle, torque = trial.times, trial.signals[:, 0], trial.signals[:, 2]
    return tuple(
        Piece(
            f"{trial.name}[{t[k]:.2f}-{t[k + length]:.2f} s]", t[k : k + length + 1] - t[k],
            angle[k : k + length + 1], torque[k : k + length + 1], slope(t, angle, int(k)),
        )
        for k in starts.tolist()
    )  # fmt: skip


def scene_of(what: Pendulum, starts: Sequence[tuple[float, float]]) -> Scene:
    """Pendulums side by side, each from its angle [rad] and rate [rad/s]."""
    stone = Material(name="ball", texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5),)))
    ball = Sphere(radius=RADIUS)
    bodies, joints = [], []
    for k, (angle, rate) in enumerate(starts):
        x, y = math.sin(angle), -math.cos(angle)
        place = k * APART - (len(starts) - 1) * APART / 2
        bodies.append(
            Body(
                name=f"ball_{k}", role="actor", motion="dynamic", instance=0,
                collision=(Collision(shape=ball),), visuals=(Visual(shape=ball, material="ball"),),
                mass=what.mass,
                position=(place + what.length * x, 0.0, HIGH + what.length * y),
                linear_velocity=(-what.length * rate * y, 0.0, what.length * rate * x),
                angular_velocity=(0.0, -rate, 0.0),
            )
        )  # fmt: skip
        joints.append(
            Joint(
                name=f"hinge_{k}", kind="hinge", body=f"ball_{k}", pivot=(place, 0.0, HIGH),
                axis=AXIS, damping=what.damping,
            )
        )  # fmt: skip
    return Scene(
        name="driven_pendulum", gravity=(0.0, 0.0, -GRAVITY), bodies=tuple(bodies),
        joints=tuple(joints), materials=(stone,),
        cameras=(Camera(name="main", position=(0.0, -4.0, HIGH), target=(0.0, 0.0, HIGH)),),
        sun=Sun(direction=(0.3, 0.4, -0.8660254)),
    )  # fmt: skip


def swing(
    what: Pendulum,
    given: Sequence[Piece],
    *,
    engine: str,
    config: EngineConfig,
    dt: Fraction,
    taken: list[World],
) -> list[F8]:
    """Angles [rad] of every piece at its own times.

    Args:
        what: the pendulum.
        given: pieces.
        engine: row of `wmeval.sim.engines.ENGINES`.
        config: of it.
        dt: substep [s].
        taken: the process' last world, whose worker is used again; what remains is put there.

    Raises:
        UserError: the engine is not installed, or has no hinges.
        WorkerError: its worker died.
    """
    longest = max(float(p.times[-1]) for p in given)
    step = float(dt)
    grid = np.arange(math.ceil(longest / step) + 2) * step
    # The torque at every substep: the driver then interpolates between like times.
    torques: JsonValue = {
        f"ball_{k}": np.interp(grid, p.times, p.torques, right=0.0).tolist()
        for k, p in enumerate(given)
    }
    driver = DriverSpec(
        kind="torques", params={"axis": list(AXIS), "step": step, "torques": torques}
    )
    scene = scene_of(what, [(float(p.angles[0]), p.rate) for p in given])
    spec = WorldSpec(scene, {}, (driver,), SceneClock(dt, dt), EventRules(), engine, config)
    with seated(taken) as seat:
        world = seat.open(spec)
        log = [world.reset().state, world.advance((), len(grid) - 1, Probe("substeps")).state]
    state = StateLog.concatenate(log)
    out = []
    for k, p in enumerate(given):
        at = state.position[:, state.body(f"ball_{k}")]
        place = k * APART - (len(given) - 1) * APART / 2
        angle = np.unwrap(np.arctan2(at[:, 0] - place, HIGH - at[:, 2]))
        angle += 2 * np.pi * round(float(p.angles[0] - angle[0]) / (2 * np.pi))
        out.append(np.interp(p.times, state.times, angle))
    return out


def error(found: Sequence[F8], given: Sequence[Piece]) -> F8:
    """Root mean square error of each piece [rad] (K,); infinite where a state is not finite."""
    return np.array([
        float(np.sqrt(np.mean((a - p.angles) ** 2))) if np.isfinite(a).all() else math.inf
        for a, p in zip(found, given, strict=True)
    ])  # fmt: skip


# --- without an engine ----------------------------------------------------------------------------


def linear_swing(inertia: float, damping: float, weight: float, piece: Piece) -> F8:
    """Angles of I th'' = tau - b th' - k th in closed form, the torque linear between samples.

    Between two samples the motion is a particular solution (a straight line) and a damped
    oscillation, or its overdamped sum of exponentials.
    """
    th, w = float(piece.angles[0]), piece.rate
    out = [th]
    for k in range(len(piece.times) - 1):
        h = float(piece.times[k + 1] - piece.times[k])
        a, there = float(piece.torques[k]), float(piece.torques[k + 1])
        b = (there - a) / h
        # A line c + d s answers a torque a + b s.
        d = b / weight
        c = (a - damping * d) / weight
        x, v = th - c, w - d
        decay = damping / (2 * inertia)
        root = np.emath.sqrt(weight / inertia - decay**2)
        q = complex(root) if abs(root) > 1e-12 else 1e-12 + 0j
        e, cos, sin = math.exp(-decay * h), np.cos(q * h), np.sin(q * h)
        th = float(np.real(e * (x * cos + (v + decay * x) / q * sin))) + c + d * h
        w = float(np.real(e * (v * cos - (decay * v + weight / inertia * x) / q * sin))) + d
        out.append(th)
    return np.array(out)

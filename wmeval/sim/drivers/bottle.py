"""A vessel that is moved and turned by six commands, as by a steady hand."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, Quat, SubstepView
from wmeval.vectors import product


class Bottle(Driver):
    """Six degrees of freedom with bounded accelerations; a response law of ours.

    Each translation is along a world axis. A command u in [-1, 1] is an acceleration ``a u`` until
    the speed ``speed sign(u)`` is reached. Released (u = 0), the body brakes at ``a`` to rest. It
    brakes at ``a`` early enough to stop at the bound of the work volume, however long the command
    is held, and it does not leave the volume. Between substeps the acceleration is constant, so
    position and velocity follow it exactly.

    Each rotation is about a world axis through the body's origin: u is an angular acceleration
    ``turn_acceleration u`` up to the rate ``turn_rate |u|``, and braked likewise when released. The
    three rates are the components of the angular velocity, held over a substep.

    The height that is steered is the hand's. The lowest point of the body never sinks below the
    floor: turned near it, the body stands on its edge, higher than the hand holds it.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            body: name of the moved body; a data body.
            carried: names of data bodies in the same frame.
            translation: action channels along world x, y and z.
            rotation: action channels about the world axes of ``rotation_axes``.
            rotation_axes: axis of each rotation's positive sense (right-handed, unit).
            acceleration: [m/s^2].
            speed: largest [m/s].
            turn_acceleration: [rad/s^2].
            turn_rate: largest [rad/s].
            low, high: corners of the work volume of the body's origin [m].
            outline: (radius, z) [m] of the body of revolution's hull, in its frame.
            floor_z: height of the floor [m].
        """

        body: str
        carried: tuple[str, ...] = ()
        translation: tuple[int, int, int]
        rotation: tuple[int, int, int]
        rotation_axes: tuple[Vec3, Vec3, Vec3]
        acceleration: float = Field(gt=0)
        speed: float = Field(gt=0)
        turn_acceleration: float = Field(gt=0)
        turn_rate: float = Field(gt=0)
        low: Vec3
        high: Vec3
        outline: tuple[tuple[float, float], ...] = Field(min_length=1)
        floor_z: float = 0.0

        @model_validator(mode="after")
        def _check(self) -> Bottle.Params:
            for low, high in zip(self.low, self.high, strict=True):
                if low > high:
                    raise ValueError(f"work volume: {low} m lies above {high} m")
            return self

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0, at rest."""
        p = self._params
        self._body = body_index(scene, p.body, "bottle")
        self._carried = [body_index(scene, n, "bottle") for n in p.carried]
        position, quaternion = view.pose(self._body)
        self._position: list[float] = list(position)
        self._quaternion: Quat = quaternion
        self._height = position[2]
        self._velocity = [0.0, 0.0, 0.0]
        self._rates = [0.0, 0.0, 0.0]
        self._still = True
        zero = (0.0, 0.0, 0.0)
        view.set_state(self._body, position, quaternion, zero, zero)

    def after(self, view: SubstepView) -> None:
        """Move through the substep just done."""
        p, dt, action = self._params, view.dt, view.action
        push = [action[i] for i in p.translation]
        turn = [action[i] for i in p.rotation]
        if self._still and not any(push) and not any(turn):
            return
        x, v = self._position, self._velocity
        start, start_z = list(v), x[2]
        for k in range(3):
            v[k] = self._speed(push[k], v[k], x[k], p.low[k], p.high[k], dt)
            # Only rounding could carry it out.
            x[k] = min(max(x[k] + 0.5 * (start[k] + v[k]) * dt, p.low[k]), p.high[k])
        rates = self._rates
        for k in range(3):
            wish = turn[k] * p.turn_rate
            most = p.turn_acceleration * (abs(turn[k]) if turn[k] else 1.0) * dt
            rates[k] += min(max(wish - rates[k], -most), most)
        wx, wy, wz = (sum(rates[k] * p.rotation_axes[k][i] for k in range(3)) for i in range(3))
        if wx or wy or wz:
            self._quaternion = _turned(self._quaternion, wx * dt, wy * dt, wz * dt)
        # The hand holds it at a height; where that is too low, the floor carries it.
        z = max(x[2], p.floor_z + self._reach_down())
        vz = v[2] if z == x[2] and self._height == start_z else (z - self._height) / dt
        self._height = z
        self._still = not (any(v) or any(rates) or vz)
        view.set_state(
            self._body, (x[0], x[1], z), self._quaternion, (v[0], v[1], vz), (wx, wy, wz)
        )

    def show(self, view: SubstepView) -> None:
        """What is carried has the same pose and motion."""
        pose, velocity = view.pose(self._body), view.velocity(self._body)
        for body in self._carried:
            view.set_state(body, *pose, *velocity)

    def _speed(self, u: float, v: float, x: float, low: float, high: float, dt: float) -> float:
        """Speed after a substep of one translation."""
        a = self._params.acceleration
        wish = math.copysign(self._params.speed, u) if u else 0.0
        most = a * (abs(u) if u else 1.0) * dt
        new = v + min(max(wish - v, -most), most)
        # The highest speed from which braking at a still stops at the bound: the speeds on that
        # parabola fall by exactly a dt a substep.
        new = min(new, _braked(high - x, v, a, dt))
        return max(new, -_braked(x - low, -v, a, dt))

    def _reach_down(self) -> float:
        """How far [m] the body reaches below its origin."""
        _, x, y, _ = self._quaternion
        c = 1 - 2 * (x * x + y * y)
        s = math.sqrt(max(1 - c * c, 0.0))
        return max(r * s - h * c for r, h in self._params.outline)


def _braked(room: float, v: float, a: float, dt: float) -> float:
    """Largest next speed towards a bound ``room`` [m] away from which one can still stop there."""
    b = 0.5 * a * dt
    return math.sqrt(max(b * b + 2 * a * room - a * v * dt, b * b)) - b


def _turned(q: Quat, rx: float, ry: float, rz: float) -> Quat:
    """A quaternion turned by a rotation vector [rad] in the world frame, normalised."""
    angle = math.sqrt(rx * rx + ry * ry + rz * rz)
    s = math.sin(angle / 2) / angle
    out = product((math.cos(angle / 2), rx * s, ry * s, rz * s), q)
    n = 1 / math.sqrt(sum(e * e for e in out))
    return (out[0] * n, out[1] * n, out[2] * n, out[3] * n)

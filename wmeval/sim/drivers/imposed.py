"""Motions that are imposed: kinematic bodies led by a profile, a measured file or the action.

Profiles are those of `wmeval.assets.gauge_profiles`. What deformables are pinned to follows.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from wmeval.assets.gauge_cards import Drive
from wmeval.assets.gauge_profiles import Measured, Motion, axis, check, motion
from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, Quat, SubstepView, Vec
from wmeval.vectors import cross, dot, minus, plus, product, scaled, unit

F8 = NDArray[np.float64]
Place = tuple[Vec, Quat, Vec, Vec]
"""Position, quaternion, linear and angular velocity."""

ACTION_CHANNELS = ("x", "y", "z", "turn")
_AHEAD = 256


class Imposed(Driver):
    """Leads a kinematic body: its pose at every state is exactly the motion's.

    The body turns by the motion's angle about the axis through the pivot and is moved by the
    motion's offset. What acts on bodies that touch it is, in each substep, the velocity that takes
    it from one state's pose to the next, so that nothing slips or sinks by a discrete step; what a
    state tells is the motion's own velocity at that instant. Before time 0 it is at rest.
    """

    class Params(Card):
        """Parameters: one of ``drive``, ``samples`` and ``action``.

        Attributes:
            body: name of a kinematic body.
            drive: profile and its numbers; ``body`` of it does not matter.
            samples: measured times [s], offsets x, y, z [m] and angles [rad], straight between.
            action: first of four channels: velocity along x, y, z in units of ``speed``, rate of
                turn in units of ``rate``.
            axis: of turns.
            pivot: point of that axis [m], world frame; None: where the body begins.
            speed: of a full action [m/s].
            rate: of a full action [rad/s].
        """

        body: str
        drive: Drive | None = None
        samples: tuple[tuple[float, float, float, float, float], ...] = ()
        action: int | None = Field(default=None, ge=0)
        axis: Vec3 = (0.0, 0.0, 1.0)
        pivot: Vec3 | None = None
        speed: float = Field(default=1.0, gt=0)
        rate: float = Field(default=1.0, gt=0)

        @model_validator(mode="after")
        def _check(self) -> Imposed.Params:
            given = (self.drive is not None, bool(self.samples), self.action is not None)
            if sum(given) != 1:
                raise ValueError("give one of drive, samples and action")
            if self.drive is not None:
                check(self.drive)
                if self.drive.profile == "kick":
                    raise ValueError("a kick is of the driver kick")
            if self.samples:
                times = [row[0] for row in self.samples]
                if len(times) < 2 or any(b <= a for a, b in pairwise(times)):
                    raise ValueError("samples: two or more, at ascending times")
            if not any(self.axis):
                raise ValueError("axis: it has no length")
            return self

    def __init__(self, params: Params) -> None:
        self._params = params
        table = np.array(params.samples, np.float64).reshape(-1, 5)
        self._measured = Measured(table[:, 0], table[:, 1:]) if len(table) else None

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        params = self._params
        self._body = body_index(scene, params.body, "imposed")
        body = scene.bodies[self._body]
        if body.motion != "kinematic":
            raise UserError(
                f"driver imposed leads kinematic bodies; {body.name!r} is {body.motion}"
            )
        self._axis = unit(params.axis if params.drive is None else _vec(axis(params.drive)))
        pivot = params.drive.parameters.get("pivot") if params.drive else None
        chosen = params.pivot if pivot is None else pivot
        self._pivot = body.position if chosen is None else _vec(np.array(chosen, np.float64))
        self._arm = minus(body.position, self._pivot)
        self._side, self._share = cross(self._axis, self._arm), dot(self._axis, self._arm)
        self._turn = body.quaternion_wxyz
        self._moved, self._angle = (0.0, 0.0, 0.0), 0.0
        self._first, self._places = 0, list[Place]()
        self._acting: list[tuple[Vec, Vec]] = []
        self._now, _, _ = self._of(view, 0)
        view.set_state(self._body, *self._now)

    def before(self, view: SubstepView) -> None:
        """Put the velocity that leads to the next state's pose."""
        if self._params.action is not None:
            self._act(view)
            return
        place, linear, angular = self._of(view, view.substep)
        view.set_state(self._body, place[0], place[1], linear, angular)

    def after(self, view: SubstepView) -> None:
        """Put the pose of the state reached, with the motion's own velocity."""
        if self._params.action is not None:
            view.set_state(self._body, *self._now)
            return
        place, _, _ = self._of(view, view.substep)
        view.set_state(self._body, *place)

    # --- by a table of times ----------------------------------------------------------------------

    def _of(self, view: SubstepView, state: int) -> tuple[Place, Vec, Vec]:
        """Place at a state, and the mean velocities of the substep that follows it."""
        if self._params.action is not None:
            still = (0.0, 0.0, 0.0)
            return self._place(still, 0.0, still, still), still, still
        k = state - self._first
        if not 0 <= k < len(self._acting):
            self._tabulate(state, view.dt)
            k = 0
        return (self._places[k], *self._acting[k])

    def _tabulate(self, first: int, dt: float) -> None:
        """Places at the next states: a profile's arrays cost as much for one time as for many."""
        times = np.arange(first, first + _AHEAD + 1) * dt
        moved = self._motion(np.maximum(times, 0.0))
        still = times < 0
        velocities = np.where(still[:, None], 0.0, moved.velocity).tolist()
        rates = np.where(still, 0.0, moved.rate).tolist()
        angles = moved.angle.tolist()
        self._places = [
            self._place((x, y, z), angle, (u, v, w), scaled(self._axis, rate))
            for (x, y, z), angle, (u, v, w), rate in zip(
                moved.offset.tolist(), angles, velocities, rates, strict=True
            )
        ]
        self._acting = [
            (scaled(minus(b[0], a[0]), 1 / dt), scaled(self._axis, (end - begin) / dt))
            for (a, b), (begin, end) in zip(pairwise(self._places), pairwise(angles), strict=True)
        ]
        self._first = first

    def _motion(self, times: F8) -> Motion:
        if self._measured is not None:
            return self._measured.motion(times)
        assert self._params.drive is not None
        return motion(self._params.drive, times)

    def _turned(self, angle: float) -> Vec:
        """The arm after a turn, by Rodrigues' formula."""
        c, s = math.cos(angle), math.sin(angle)
        across = plus(scaled(self._arm, c), scaled(self._side, s))
        return plus(across, scaled(self._axis, (1 - c) * self._share))

    def _place(self, offset: Vec, angle: float, velocity: Vec, spin: Vec) -> Place:
        """Place after an offset and a turn; the body also moves as its arm turns."""
        arm = self._turned(angle)
        turn = (math.cos(angle / 2), *scaled(self._axis, math.sin(angle / 2)))
        return (
            plus(plus(self._pivot, offset), arm),
            product(turn, self._turn),
            plus(velocity, cross(spin, arm)),
            spin,
        )

    # --- by the action ----------------------------------------------------------------------------

    def _act(self, view: SubstepView) -> None:
        """One substep at the action's velocities."""
        first, dt = self._params.action or 0, view.dt
        given = list(view.action[first : first + 4]) or [0.0] * 4
        if len(given) < 4:
            raise UserError(
                f"driver imposed: channels {first} to {first + 3} are beyond the action"
            )
        x, y, z, turn = given
        velocity = scaled((x, y, z), self._params.speed)
        spin = scaled(self._axis, turn * self._params.rate)
        self._moved = plus(self._moved, scaled(velocity, dt))
        self._angle += dt * turn * self._params.rate
        before = self._now[0]
        self._now = self._place(self._moved, self._angle, velocity, spin)
        mean = scaled(minus(self._now[0], before), 1 / dt)
        position, quaternion = view.pose(self._body)
        view.set_state(self._body, position, quaternion, mean, spin)


class Kick(Driver):
    """Bodies that settle, damped, and are set off at state 0.

    Until then (`wmeval.sim.protocol.WorldSpec.settle`) every body of ``damped`` loses the share
    ``damping`` of its velocity and spin per second.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            velocities: what each body gets at state 0 [m/s], by name.
            damped: names of bodies that are damped until then.
            damping: share of velocity lost per second, below 1.
        """

        velocities: dict[str, Vec3] = Field(min_length=1)
        damped: tuple[str, ...] = ()
        damping: float = Field(default=0.95, ge=0, lt=1)

    def __init__(self, params: Params) -> None:
        self.params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0, or before it."""
        self._kicked, self._damped = self.bodies(scene)
        self._keep = (1.0 - self.params.damping) ** view.dt
        self._done = False

    def bodies(self, scene: Scene) -> tuple[list[tuple[int, Vec]], list[int]]:
        """What is set off, with what velocity [m/s], and what is damped: scene indices.

        Raises:
            UserError: the scene has no such body, or one that is not dynamic.
        """
        params = self.params
        kicked = [(body_index(scene, name, "kick"), v) for name, v in params.velocities.items()]
        damped = [body_index(scene, name, "kick") for name in params.damped]
        for i in (*damped, *(i for i, _ in kicked)):
            if scene.bodies[i].motion != "dynamic":
                raise UserError(f"driver kick: body {scene.bodies[i].name!r} is not dynamic")
        return kicked, damped

    def before(self, view: SubstepView) -> None:
        """Damp, or set off."""
        if view.substep < 0:
            k = self._keep
            for i in self._damped:
                place, ((vx, vy, vz), (wx, wy, wz)) = view.pose(i), view.velocity(i)
                view.set_state(i, *place, (k * vx, k * vy, k * vz), (k * wx, k * wy, k * wz))
        elif not self._done and view.motion(self._kicked[0][0]) == DYNAMIC:
            # A world without settling is set off where it begins.
            self._set_off(view)

    def after(self, view: SubstepView) -> None:
        """Set off when the world has settled: state 0 tells of it."""
        if view.substep == 0:
            self._set_off(view)

    def _set_off(self, view: SubstepView) -> None:
        self._done = True
        for i, velocity in self._kicked:
            position, quaternion = view.pose(i)
            view.set_state(i, position, quaternion, velocity, (0.0, 0.0, 0.0))


def _vec(v: F8) -> Vec:
    x, y, z = v.tolist()
    return (x, y, z)


__all__ = ["ACTION_CHANNELS", "Imposed", "Kick"]

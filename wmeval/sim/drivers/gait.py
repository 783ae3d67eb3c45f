"""The limbs of a figure, after how its root moves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from wmeval.assets import mannequin as man
from wmeval.scene import Card, Modal, Scene
from wmeval.sim.drivers import strides
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, Quat, SubstepView, Vec
from wmeval.vectors import axes, product

F8 = NDArray[np.float64]

PHASE, SPEED, MOVE, RUN, AIR, RISE, CROUCH, SINK, LEAN_Y, LEAN_X = range(10)
"""Places of the modal state's numbers."""

_NEUTRAL = 0.27
"""Phase at which one foot stands below the body and the other passes it."""
_CROUCH_RATE = 14.0
_AHEAD_S = 1e-3


class Gait(Driver):
    """Poses a mannequin's limbs: walk, run, stand, jump and land; `strides` says how.

    The root is any body that faces +y of its own frame: a character's capsule, or a data body that
    another driver leads along a path. Its motion is taken from its poses. The phase of the stride
    goes on with the distance travelled forward, so that a foot on the ground does not slide at
    constant speed. Drivers that move the root come before this one.

    Modal state ``<modal>`` (10): phase [strides], speed [m/s], move, run, air (shares), rise (share
    of the take-off speed), crouch [m], its rate [m/s], lean forward and to the right [rad].
    """

    class Params(Card):
        """Parameters.

        Attributes:
            root: name of the body that leads.
            prefix: limbs are the data bodies ``prefix + bone`` of `mannequin.SKELETON`.
            modal: name of the modal state.
            ground: height [m] of the ground below the root's origin when it stands.
            stature: of the figure [m].
            grounded: name of the modal state that tells whether it stands; None: it always does.
            jump_speed: usual vertical speed at take-off [m/s].
            breaths: a second.
        """

        root: str
        prefix: str
        modal: str
        ground: float = Field(ge=0)
        stature: float = Field(default=man.STATURE_M, gt=0)
        grounded: str | None = None
        jump_speed: float = Field(default=4.43, gt=0)
        breaths: float = Field(default=0.25, ge=0)

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0, standing."""
        p = self._params
        self._root = body_index(scene, p.root, "gait")
        self._bones = np.array(
            [body_index(scene, p.prefix + bone.name, "gait") for bone in man.SKELETON], np.intp
        )
        self._centres = np.array([bone.centre for bone in man.SKELETON]) * p.stature
        self._gravity = max(math.sqrt(sum(g * g for g in scene.gravity)), 0.1)
        self._dt = view.dt
        self._at = view.pose(self._root)[0]
        self._speed_before = 0.0
        self._fall = 0.0
        self._airborne = False
        self._gains = tuple(-math.expm1(-rate * view.dt) for rate in (14.0, 9.0, 16.0, 7.0))
        self._state = [_NEUTRAL] + [0.0] * 9
        view.set_modal(p.modal, self._state)

    def after(self, view: SubstepView) -> None:
        """Carry the modal state on by one substep."""
        p, s, dt = self._params, self._state, self._dt
        (x, y, z), quaternion = view.pose(self._root)
        ox, oy, oz = self._at
        self._at = (x, y, z)
        # Forward is +y of the root, in the horizontal plane.
        _, (fx, fy, _), _ = axes(quaternion)
        dx, dy = x - ox, y - oy
        way = dx * fx + dy * fy
        quick, slow, air, ease = self._gains
        speed = way / dt
        before = s[SPEED]
        s[SPEED] = now = before + (speed - before) * quick
        size = abs(now)
        s[MOVE] += (strides.smoothstep(0.05, 0.45, size) - s[MOVE]) * slow
        s[RUN] += (strides.run_share(size, p.stature, self._gravity) - s[RUN]) * slow
        grounded = p.grounded is None or view.modal(p.grounded)[0] > 0.5
        if size < 0.02 and s[MOVE] < 0.02:
            s[PHASE] = _NEUTRAL
        elif grounded:
            s[PHASE] = (s[PHASE] + way / strides.stride_length(size, s[RUN], p.stature)) % 1.0
        climb = (z - oz) / dt
        s[AIR] += ((0.0 if grounded else 1.0) - s[AIR]) * air
        if not grounded:
            s[RISE] = min(max(climb / p.jump_speed, -1.0), 1.0)
            self._fall = max(-climb, 0.0)
        elif self._airborne:
            # The fall is caught by the knees: a critically damped spring takes up its speed.
            s[SINK] += 0.8 * min(self._fall, 6.0) * (p.stature / man.STATURE_M) ** 0.5
            self._fall = 0.0
        self._airborne = not grounded
        if s[CROUCH] or s[SINK]:
            a = s[SINK] + _CROUCH_RATE * s[CROUCH]
            fade = math.exp(-_CROUCH_RATE * dt)
            s[CROUCH] = (s[CROUCH] + a * dt) * fade
            s[SINK] = (s[SINK] - _CROUCH_RATE * a * dt) * fade
            if abs(s[CROUCH]) < 1e-5 and abs(s[SINK]) < 1e-4:
                s[CROUCH] = s[SINK] = 0.0
        gain = (speed - self._speed_before) / dt if grounded else 0.0
        self._speed_before = speed
        pull = min(max(0.35 * gain / self._gravity, -0.14), 0.20)
        s[LEAN_Y] += (pull - s[LEAN_Y]) * ease
        spin = view.velocity(self._root)[1][2]
        # Into the turn: a right turn has a negative spin and leans to the right.
        side = min(max(-0.5 * now * spin / self._gravity, -0.20), 0.20) if grounded else 0.0
        s[LEAN_X] += (side - s[LEAN_X]) * ease
        view.set_modal(p.modal, s)

    def show(self, view: SubstepView) -> None:
        """Put the limbs where the modal state and the root have them."""
        p = self._params
        position, quaternion = view.pose(self._root)
        linear, angular = view.velocity(self._root)
        modal = view.modal(p.modal)
        time = view.substep * view.dt
        now = self._limbs(modal, position, quaternion, time)
        # What the limbs do in the next millisecond is their velocity.
        h = _AHEAD_S
        later = list(modal)
        stands = p.grounded is None or view.modal(p.grounded)[0] > 0.5
        if stands and modal[MOVE] > 0.02:
            length = strides.stride_length(abs(modal[SPEED]), modal[RUN], p.stature)
            later[PHASE] = modal[PHASE] + h * modal[SPEED] / length
        later[CROUCH] = modal[CROUCH] + h * modal[SINK]
        (x, y, z), (vx, vy, vz) = position, linear
        moved = (x + h * vx, y + h * vy, z + h * vz)
        half = 0.5 * angular[2] * h
        spun = product((math.cos(half), 0.0, 0.0, math.sin(half)), quaternion)
        then = self._limbs(later, moved, spun, time + h)
        numbers: F8 = np.empty((len(self._bones), 13))
        numbers[:, 0:3], numbers[:, 3:7] = now
        numbers[:, 7:10] = (then[0] - now[0]) / h
        numbers[:, 10:13] = _rates(now[1], then[1], h)
        view.set_states(self._bones, numbers)

    def _limbs(
        self, modal: Sequence[float], position: Vec, quaternion: Quat, time: float
    ) -> tuple[F8, F8]:
        """Places (18, 3) [m] and quaternions (18, 4) of the limbs' bodies in the world."""
        p = self._params
        state = strides.GaitState(
            phase=modal[PHASE],
            speed=abs(modal[SPEED]),
            move=modal[MOVE],
            run=modal[RUN],
            air=modal[AIR],
            rise=modal[RISE],
            crouch=modal[CROUCH],
            lean=(modal[LEAN_Y], modal[LEAN_X]),
            breath=p.breaths * time,
        )
        _, (fx, fy, _), _ = axes(quaternion)
        n = math.sqrt(fx * fx + fy * fy)
        c, s = fy / n, -fx / n
        heading = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        pose = strides.pose(state, p.stature)
        joints = np.array([at for at, _ in pose])
        # Rows of a frame are where its axes point: the columns of its rotation.
        frames = np.array([frame for _, frame in pose])
        places = joints + np.einsum("nk,nkj->nj", self._centres, frames)
        x, y, z = position
        return places @ heading.T + (x, y, z - p.ground), quaternions(frames @ heading.T)


def gait_modal(name: str) -> Modal:
    """The modal state that a scene with this driver declares, one for each figure."""
    return Modal(
        name=name,
        size=10,
        doc="phase, speed, move, run, air, rise, crouch, its rate, lean forward and to the right",
    )


def quaternions(frames: F8) -> F8:
    """Unit ``wxyz`` quaternions (N, 4) of frames (N, 3, 3) whose rows are where their axes point.

    Four times the outer product of a quaternion with itself follows from the frame without
    division; its row with the largest diagonal is the quaternion but for its length.
    """
    (a, b, c), (d, e, f), (g, h, i) = np.moveaxis(frames, 0, 2)
    outer = np.array(
        [
            [1 + a + e + i, f - h, g - c, b - d],
            [f - h, 1 + a - e - i, b + d, c + g],
            [g - c, b + d, 1 - a + e - i, f + h],
            [b - d, c + g, f + h, 1 - a - e + i],
        ]
    )
    which = np.diagonal(outer).argmax(axis=1)
    rows = outer[which, :, np.arange(len(frames))]
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _rates(a: F8, b: F8, h: float) -> F8:
    """Angular velocities (N, 3) [rad/s] from one set of orientations (N, 4) to the next."""
    (aw, ax, ay, az), (bw, bx, by, bz) = a.T, b.T
    w = aw * bw + ax * bx + ay * by + az * bz
    # b times the conjugate of a, for small angles.
    turn = np.stack(
        [
            bx * aw - bw * ax - by * az + bz * ay,
            by * aw - bw * ay - bz * ax + bx * az,
            bz * aw - bw * az - bx * ay + by * ax,
        ],
        axis=1,
    )
    return np.asarray(turn * np.where(w >= 0, 2.0 / h, -2.0 / h)[:, None])

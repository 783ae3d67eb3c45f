"""When things happen in a record of 30 frames a second: slips, ends of boards, contacts.

A slip begins too gently for its first frame to be seen. It is dated from where the body has gone
`SLID`, less the time that the closed form takes to get there: a record of the closed form itself
reads the closed form's number. What the record is too short for is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from wmeval.assets.gauge_cards import RECORD_HZ, Box, Bricks, Cylinder, Sphere, rotation
from wmeval.assets.gauge_profiles import Motion, motion
from wmeval.conventions import quaternion_to_matrix
from wmeval.eval.truths.prediction import Prediction

if TYPE_CHECKING:
    from wmeval.eval.sweep.predicted import Record

F8 = NDArray[np.float64]
SLID = 2e-3
"""Way by which a body has slid that slides [m]."""
_NEAR = 5e-3
"""Distance from a wall up to which a ball has surely not met it [m]."""
_MOMENT = 1e-4
"""Times apart of which a speed is taken [s]."""
_FEW = 6
"""Frames that what comes next is taken from."""


def passes(times: F8, values: F8, level: float) -> float:
    """When values (N,) first rise through a level, by a line between frames; NaN if they do not."""
    over = values > level
    k = int(np.argmax(over))
    if not over[k] or k == 0:
        return math.nan
    share = (level - values[k - 1]) / (values[k] - values[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


@dataclass(frozen=True, eq=False)
class _Course:
    """The polynomial through few frames: their times (N,) and values (N, K)."""

    times: F8
    values: F8

    @property
    def _powers(self) -> F8:
        scaled = (self.times - self.times[-1]) * RECORD_HZ
        return np.asarray(np.linalg.solve(np.vander(scaled), self.values), np.float64)

    def at(self, time: float) -> F8:
        """Values (K,)."""
        u = (time - float(self.times[-1])) * RECORD_HZ
        out: F8 = u ** np.arange(len(self.times))[::-1] @ self._powers
        return out

    def speed(self, time: float) -> F8:
        """By how much they change a second (K,)."""
        out: F8 = (self.at(time + _MOMENT) - self.at(time - _MOMENT)) / (2 * _MOMENT)
        return out

    def passes(self, first: float, last: float) -> float:
        """When the first value is 0, between two times; NaN if it is not."""

        def value(time: float) -> float:
            return float(self.at(time)[0])

        return float(brentq(value, first, last)) if value(first) * value(last) <= 0 else math.nan


def within(r: Record, p: Prediction, name: str) -> bool:
    """Whether a time that is predicted comes before the record ends."""
    return p.numbers[name].value <= float(r.state.times[-1])


def onset(r: Record, p: Prediction, name: str, found: F8, true: F8) -> float:
    """When ways (N,) of a record begin that the closed form's (M,) begin at ``name`` [s]."""
    t = r.state.times
    late = passes(t[: len(true)], true, SLID) - p.numbers[name].value
    return passes(t, found, SLID) - late


def _driven(r: Record, body: str, times: F8) -> Motion:
    drive = next(d for d in r.card.drives(r.subtask, r.material) if d.body == body)
    return motion(drive, times)


def _until(r: Record, p: Prediction) -> F8:
    """Frames' times for which the trajectory holds."""
    return r.state.times[r.state.times <= p.valid[1] + 1e-9]


def slides_off(r: Record, p: Prediction) -> dict[str, float]:
    """Of a cube on a board that tilts: slip, and its centre's way over the board's end."""
    assert p.trajectory is not None
    board = r.card.bodies["board"].shape
    assert isinstance(board, Box)
    centre = np.array(r.card.poses(r.subtask, r.material)["board"].position)

    def along(path: F8, times: F8) -> F8:
        angle = _driven(r, "board", times).angle
        own = path - centre
        out: F8 = own[:, 0] * np.cos(angle) - own[:, 2] * np.sin(angle)
        return out

    t, held = r.state.times, _until(r, p)
    way, true = along(r.path("cube"), t), along(p.trajectory(held), held)
    slip = onset(r, p, "slip_time", way - way[0], true - true[0])
    out = {
        "slip_time": slip,
        "slip_angle": math.degrees(float(_driven(r, "board", np.array([slip])).angle[0])),
    }
    if within(r, p, "off_time"):
        out |= _off(t, way, board.size[0] / 2)
    return out


def comes_off(r: Record, p: Prediction) -> dict[str, float]:
    """When a cube's centre is over the end of a board that stands still."""
    if not within(r, p, "off_time"):
        return {}
    board, pose = r.card.bodies["board"].shape, r.card.poses(r.subtask, r.material)["board"]
    assert isinstance(board, Box)
    way = (r.path("cube") - pose.position) @ rotation(pose.euler_deg)[:, 0]
    return {"off_time": _off(r.state.times, way, board.size[0] / 2)["off_time"]}


def _off(times: F8, way: F8, end: float) -> dict[str, float]:
    """When and how fast a way passes an end, by four frames before it: after it things tip."""
    when = passes(times, way, end)
    if not math.isfinite(when):
        return {"off_time": math.nan, "off_speed": math.nan}
    k = int(np.searchsorted(times, when))
    rows = slice(max(0, k - 4), k)
    course = _Course(times[rows], way[rows, None] - end)
    when = course.passes(float(times[k - 1]), float(2 * times[k] - times[k - 1]))
    if not math.isfinite(when):
        return {"off_time": math.nan, "off_speed": math.nan}
    return {"off_time": when, "off_speed": float(course.speed(when)[0])}


def turns_with(r: Record, p: Prediction, own: F8) -> dict[str, float]:
    """Of a cube on a plate, by its places in the plate's frame: slip, rest on it again, the rim."""
    assert p.trajectory is not None
    plate = r.card.bodies["plate"].shape
    assert isinstance(plate, Cylinder)
    t, held = r.state.times, _until(r, p)
    axis = np.array(r.card.poses(r.subtask, r.material)["plate"].position)[:2]
    true = in_plate(p.trajectory(held)[:, :2] - axis, _driven(r, "plate", held).angle)
    out = {}
    if within(r, p, "slip_time"):
        ways = (np.linalg.norm(x - x[0], axis=1) for x in (own, true))
        out["slip_time"] = onset(r, p, "slip_time", *ways)
    if within(r, p, "stick_time"):
        # From the end of the record: by when all but so much of the way is behind it.
        left = [np.linalg.norm(x - x[-1], axis=1)[::-1] for x in (own, true)]
        found, early = (-passes(-t[::-1], x, SLID) for x in left)
        out["stick_time"] = found + p.numbers["stick_time"].value - early
    if within(r, p, "rim_time"):
        out["rim_time"] = _off(t, np.linalg.norm(own, axis=1), plate.radius)["off_time"]
    return out


def in_plate(plane: F8, angle: F8) -> F8:
    """Places (N, 2) about an axis in the frame of what has turned about it by angles (N,)."""
    c, s = np.cos(-angle), np.sin(-angle)
    return np.stack([c * plane[:, 0] - s * plane[:, 1], s * plane[:, 0] + c * plane[:, 1]], axis=1)


def meets_wall(r: Record, p: Prediction) -> dict[str, float]:
    """When, how fast and where the ball comes to the wall's face, by its frames before that."""
    ball, wall = r.card.bodies["ball"].shape, r.card.bodies["wall"].shape
    assert isinstance(ball, Sphere)
    assert isinstance(wall, Bricks)
    face = min(wall.columns) - wall.size[0] / 2 - ball.diameter / 2
    path, t = r.path("ball"), r.state.times
    near = np.abs(path[:, 0] - face) < _NEAR
    # Nearer than that it may have met it already; between two frames it passes by more.
    near |= np.sign(path[:, 0] - face) != np.sign(path[0, 0] - face)
    k = int(np.argmax(near))
    names = ("contact", "speed", "height")
    if not near[k] or k < _FEW:
        return dict.fromkeys(names, math.nan)
    course = _Course(t[k - _FEW : k], path[k - _FEW : k] - [face, 0, 0])
    last, step = float(t[k - 1]), float(t[k] - t[k - 1])
    when = course.passes(last, last + 2 * step)
    if not math.isfinite(when):
        return dict.fromkeys(names, math.nan)
    speed = float(np.linalg.norm(course.speed(when)))
    return dict(zip(names, (when, speed, float(course.at(when)[2])), strict=True))


def slips_under(r: Record, pull: F8) -> dict[str, float]:
    """When the cloth's trailing edge is below the cube's centre, and how far the cube has gone."""
    cloth, cube, t = r.state.vertices["textile"] @ pull, r.path("cube") @ pull, r.state.times
    gap = cloth[:, cloth[0] < cloth[0].min() + 1e-6].mean(axis=1) - cube
    when = passes(t, gap, 0.0)
    if not math.isfinite(when):
        return {"passed": math.nan, "moved": math.nan}
    # By few frames, for the cube is slowed after it.
    k = int(np.searchsorted(t, when))
    rows = slice(max(0, k - _FEW + 1), k + 1)
    course = _Course(t[rows], np.stack([gap, cube - cube[0]], axis=1)[rows])
    when = course.passes(float(t[k - 1]), float(t[k]))
    return {"passed": when, "moved": float(course.at(when)[1])}


def turned(r: Record, p: Prediction) -> float:
    """Greatest angle by which a tetrahedron has turned while it should only slide [deg]."""
    rows = r.state.times <= p.valid[1] + 1e-9
    turn = quaternion_to_matrix(r.state.quaternion_wxyz[rows, r.state.body("tetrahedron")])
    cosine = (np.einsum("nij,ij->n", turn, turn[0]) - 1) / 2
    return math.degrees(float(np.arccos(np.clip(cosine, -1, 1)).max()))

"""What a ball does to the sheet that it leads, as a record shows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import HoledBoard, Sphere
from wmeval.assets.gauge_profiles import motion
from wmeval.assets.gauge_proxies import on_triangles
from wmeval.deformables import rest_shape
from wmeval.eval.truths.prediction import Prediction

if TYPE_CHECKING:
    from wmeval.eval.sweep.predicted import Record

F8 = NDArray[np.float64]


def led(r: Record, p: Prediction) -> dict[str, float]:
    """Of a sheet that a ball pushes, once it is half a radius in, or turns, once it turns."""
    ball = r.card.bodies["ball"].shape
    assert isinstance(ball, Sphere)
    poses = r.card.poses(r.subtask, r.material)
    drive = next(d for d in r.card.drives(r.subtask, r.material) if d.body == "ball")
    angle = motion(drive, r.state.times).angle
    sheet, path = r.built.scene.deformables[0], r.path("ball")
    rest, start = rest_shape(sheet, r.built.meshes), np.array(poses["textile"].position)
    proxy = on_triangles(start[None], rest.vertices, rest.triangles.astype(np.intp))
    middle = proxy.follow(r.state.vertices[sheet.name])[:, 0]
    side = math.copysign(1.0, start[2] - path[0, 2])
    pole = path + np.array([0.0, 0.0, side * ball.diameter / 2])
    pressed = (side * (pole[:, 2] - start[2]) > ball.diameter / 4) | (np.abs(angle) > 0)
    if not pressed.any():
        return {}
    axis = path[0, :2]
    out = {
        "middle_gap": float(np.linalg.norm(middle - pole, axis=1)[pressed].max()),
        "uneven": _uneven(r, axis),
    }
    if "corner_turn" in p.numbers and abs(angle[-1]) > math.pi / 2:
        first = int(np.argmax(pressed)) - 1
        out["corner_turn"] = _turned(r.values[max(0, first) :, :, :2] - axis) / float(angle[-1])
    if "through" in p.numbers and np.ptp(path[-2:, 2]) == 0:
        board = r.card.bodies["board"].shape
        assert isinstance(board, HoledBoard)
        out["through"] = _through(
            r.state.vertices[sheet.name][-1][rest.triangles].mean(axis=1),
            np.array(poses["board"].position), board,
        )  # fmt: skip
    return out


def _uneven(r: Record, axis: F8) -> float:
    """Of markers from where their opposites come to by half a turn, in the mean at the end [m]."""
    assert r.built.markers is not None
    began, ended = r.built.markers.points, r.values[-1]
    opposite = np.linalg.norm(began[:, None] - _half_turn(began, axis)[None], axis=2).argmin(axis=1)
    return float(np.linalg.norm(ended - _half_turn(ended, axis)[opposite], axis=1).mean())


def _half_turn(points: F8, axis: F8) -> F8:
    out: F8 = points * [-1, -1, 1] + [2 * axis[0], 2 * axis[1], 0]
    return out


def _turned(corners: F8) -> float:
    """By how much corners (N, M, 2) about an axis have turned, in the mean [rad]."""
    angles = np.unwrap(np.arctan2(corners[..., 1], corners[..., 0]), axis=0)
    return float((angles[-1] - angles[0]).mean())


def _through(centres: F8, board_at: F8, board: HoledBoard) -> float:
    """Which part of the faces, all of one area, is below a board and not beyond its edges."""
    from_board = centres - board_at
    within = (np.abs(from_board[:, :2]) < np.array(board.size[:2]) / 2).all(axis=1)
    return float((within & (from_board[:, 2] < -board.size[2] / 2)).mean())

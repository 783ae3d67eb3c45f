"""Numbers of closed forms, as a record of 30 frames a second shows them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import GRAVITY, RECORD_HZ, Box, Family, Sphere
from wmeval.assets.gauge_profiles import motion
from wmeval.conventions import quaternion_to_matrix
from wmeval.envs.gauge.build import Built
from wmeval.envs.gauge.markers import followers
from wmeval.eval.metrics import gauge
from wmeval.eval.metrics.crossings import pd_crossings
from wmeval.eval.metrics.gauge import EnergyLoss
from wmeval.eval.sweep import timed
from wmeval.eval.sweep.carried import led
from wmeval.eval.truths.blocks import whole_swings
from wmeval.eval.truths.prediction import Number, Prediction
from wmeval.records import StateLog
from wmeval.scene import Cloth, Sheet

F8 = NDArray[np.float64]
BENT = 2.5e-3
"""Deflection at which a pressed beam's shape is read [m]."""
SLIPPED = 2.5e-4
"""By how much an end has slipped that slips [m]."""


@dataclass(frozen=True, eq=False)
class Record:
    """A set-up's recorded states.

    Attributes:
        card, subtask, material: the set-up.
        built: its world.
        state: at 30 Hz.
        values: the family's quantity (N, ...), SI units.
    """

    card: Family
    subtask: str
    material: str
    built: Built
    state: StateLog
    values: F8

    def path(self, body: str) -> F8:
        """Positions of a body (N, 3) [m]."""
        return self.state.position[:, self.state.body(body)]

    def hanging(self, body: str) -> float:
        """Height of a hung ball at rest [m]."""
        pose = self.card.poses(self.subtask, self.material)[body]
        return float(pose.position[2]) - (self.card.bodies[body].rod or 0.0)

    def length(self, body: str) -> float:
        """Of a block, along its longest edge [m]."""
        shape = self.card.bodies[body].shape
        assert isinstance(shape, Box)
        return max(shape.size)

    def swing(self) -> F8:
        """Coordinate of the pendulum's ball along its swing (N,) [m]."""
        return gauge.swing_coordinate(self.path("ball"))

    def angle(self, body: str) -> F8:
        """Of a hung ball about its hinge, from hanging down (N,) [rad]; without jumps."""
        pose = self.card.poses(self.subtask, self.material)[body]
        away = self.path(body) - np.array(pose.position)
        aside = away[:, 1 if self.card.bodies[body].hinge == "x" else 0]
        return np.unwrap(np.arctan2(aside, -away[:, 2]))

    def energy_loss(self) -> EnergyLoss:
        """Of the pendulum, whose lowest point is below the pivot by the rod."""
        return gauge.energy_loss(self.path("ball")[:, 2], self.hanging("ball"))

    def longest_rest(self) -> float:
        """Of the cradle's last ball, by the speeds that the engine tells [s]."""
        i = self.state.body("ball_5")
        return gauge.longest_rest(
            self.state.position[:, i], RECORD_HZ, velocities=self.state.linear_velocity[:, i]
        )

    def momentum_transfer(self) -> float:
        """Of the cradle's first impact [1]."""
        return gauge.mte_first(
            self.path("ball_1")[:, 2], self.path("ball_5")[:, 2],
            rest_in=self.hanging("ball_1"), rest_out=self.hanging("ball_5"),
        )  # fmt: skip


def acceleration(path: F8, times: F8, direction: F8, until: float) -> float:
    """Of a t^2 / 2 along a direction, by least squares over the frames up to a time [m/s^2]."""
    rows = (times <= until + 1e-9) & (times > 0)
    t = times[rows]
    way = (path[rows] - path[0]) @ direction
    return float(2 * (way * t**2).sum() / (t**4).sum()) if len(t) else math.nan


def _sticks(r: Record, p: Prediction) -> dict[str, float]:
    path = r.path("cube")
    return {"displacement": float(np.linalg.norm(path - path[0], axis=1).max())}


def _accelerates(r: Record, p: Prediction) -> dict[str, float]:
    assert p.trajectory is not None
    t = r.state.times
    ends = p.trajectory(np.array([0.0, p.valid[1]]))
    direction = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    return {"acceleration": acceleration(r.path(p.body), t, direction, p.valid[1])}


def _slides_and_tips(r: Record, p: Prediction) -> dict[str, float]:
    return {**_accelerates(r, p), "turn": timed.turned(r, p)}


def _slides_off(r: Record, p: Prediction) -> dict[str, float]:
    return {**_accelerates(r, p), **timed.comes_off(r, p)}


def _turns(r: Record, p: Prediction) -> dict[str, float]:
    """Its slip and stick, the radius at the end, creep on the plate before it should slip."""
    axis = np.array(r.card.poses(r.subtask, r.material)["plate"].position)
    plane = r.path("cube")[:, :2] - axis[:2]
    drive = next(d for d in r.card.drives(r.subtask, r.material) if d.body == "plate")
    own = timed.in_plate(plane, motion(drive, r.state.times).angle)
    rows = r.state.times <= p.numbers["slip_time"].value
    creep = float(np.linalg.norm(own[rows] - own[0], axis=1).max())
    out = {"creep": creep, **timed.turns_with(r, p, own)}
    if not math.isfinite(p.numbers["rim_time"].value):
        out["end_radius"] = float(np.linalg.norm(plane[-1]))
    return out


def _bounces(r: Record, p: Prediction) -> dict[str, float]:
    ball = r.card.bodies["ball"].shape
    assert isinstance(ball, Sphere)
    ground = r.card.ground(r.subtask, r.material) or 0.0
    height = r.path("ball")[:, 2] - ball.diameter / 2 - ground
    tops = gauge.peaks(height, floor=1e-4)
    # Without a bounce it lies where it fell.
    place, top = gauge.parabola_peak(height, tops[0]) if tops else (math.nan, 0.0)
    fall = p.numbers["height"].value
    return {
        "apex_height": top,
        "apex": place / RECORD_HZ,
        "restitution": math.sqrt(max(top, 0.0) / fall),
    }


def _cradle(r: Record, p: Prediction) -> dict[str, float]:
    passed = 100 * r.momentum_transfer()
    return {"mte_first": passed, "mte_of_restitution": passed, "lsd": r.longest_rest()}


def _pendulum(r: Record, p: Prediction) -> dict[str, float]:
    return {
        "period": pd_crossings(r.angle("ball"), r.state.times, level=0.0).period,
        "energy_loss": r.energy_loss().interpolated,
    }


def _sags(r: Record, p: Prediction) -> dict[str, float]:
    """The sheet's lowest point below its clamps: the last second's mean, and on the way."""
    z = r.state.vertices["textile"][:, :, 2]
    held = [v for pin in r.built.scene.deformables[0].pins for v in pin.vertices]
    sag = z[:, held].mean(axis=1) - z.min(axis=1)
    way = np.abs(r.path("rod_moving")[:, 0] - r.path("rod_moving")[0, 0])
    rise = slice(0, int(np.argmax(way >= way.max() - 1e-9)) + 1)
    half, most = np.interp(np.array([0.5, 0.75]) * way.max(), way[rise], sag[rise])
    return {
        "sag": float(sag[-RECORD_HZ:].mean()),
        "sag_half": float(half),
        "sag_three_quarters": float(most),
    }


def _hangs(r: Record, p: Prediction) -> dict[str, float]:
    """Mean strain of the last second, along the sheet from its upper edge to its lower one."""
    item = r.built.scene.deformables[0]
    assert isinstance(item, Cloth)
    assert isinstance(item.surface, Sheet)
    columns, rows = item.surface.cells
    x = r.state.vertices["textile"].reshape(-1, rows + 1, columns + 1, 3)
    lengths = np.linalg.norm(np.diff(x, axis=1), axis=-1).sum(axis=1).mean(axis=1)
    return {"strain": float(lengths[-RECORD_HZ:].mean() / lengths[0] - 1)}


def _slips_along(r: Record, p: Prediction) -> dict[str, float]:
    """Of the cube, whenever the pull has come to it through a cloth that stretches."""
    assert p.trajectory is not None
    t = r.state.times
    ends = p.trajectory(np.array([0.0, p.valid[1]]))
    direction = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    rows = (t > 0) & (t <= p.valid[1] + 1e-9)
    out = timed.slips_under(r, direction)
    if rows.sum() >= 4:
        fit = np.polyfit(t[rows], r.path(p.body)[rows] @ direction, 2)
        out["acceleration"] = float(2 * fit[0])
    return out


def _stretches(r: Record, p: Prediction) -> dict[str, float]:
    return {"facet_change": float((r.values[-1] / r.values[0]).mean() - 1)}


def _rows(r: Record) -> F8:
    """Rows of markers along foam (N, strips, 7, 2, 3) [m]: two to a row, a strip to a face."""
    assert r.built.markers is not None
    track = followers(r.built.scene, r.built.meshes, r.built.markers).track(r.state)
    return track.reshape(len(track), -1, 7, 2, 3)


def _shears(r: Record, p: Prediction) -> dict[str, float]:
    """Strains of the strips' lengths at the end: of the outer ones by bending, of all in mean."""
    lengths = np.linalg.norm(np.diff(_rows(r)[[0, -1]], axis=2), axis=-1).mean(axis=-1)
    strain = lengths[1] / lengths[0] - 1
    return {
        "face_strain": float((np.abs(strain[:, -1] - strain[:, 0]) / 2).mean()),
        "axial_strain": float(strain.mean()),
    }


def _twists(r: Record, p: Prediction) -> dict[str, float]:
    change = r.values[-1] - r.values[0]
    half = len(change) // 2
    foam = r.built.scene.deformables[0]
    ends = _rows(r)[[0, -1]].swapaxes(1, 2).reshape(2, 7, -1, 3)
    a, b = (e[..., :2] - np.array(foam.position[:2]) for e in ends)
    angle = np.arctan2(
        (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]).sum(axis=1), (a * b).sum(axis=(1, 2))
    )
    slope = np.polyfit(ends[0].mean(axis=1)[:, 2], angle, 1)[0]
    return {
        "facet_area_change_x": float(change[:half].mean()),
        "facet_area_change_y": float(change[half:].mean()),
        "turn": math.degrees(abs(slope)) * r.length("foam"),
    }


def _bends(r: Record, p: Prediction) -> dict[str, float]:
    """Shape of the beam's axis when its middle has gone down by a twentieth of its depth."""
    down = _rows(r)[:, 0].mean(axis=2)[:, :, 2]
    down = down[0] - down
    frame = int(np.argmax(down[:, 3] > BENT))
    if not frame:
        return {}
    # Between the frames about it: the shape at that deflection.
    share = (BENT - down[frame - 1, 3]) / (down[frame, 3] - down[frame - 1, 3])
    shape = down[frame - 1] + share * (down[frame] - down[frame - 1])
    even = (shape + shape[::-1])[:3][::-1] / 2 / shape[3]
    return {f"deflection_{25 * k}": float(even[k - 1]) for k in (1, 2, 3)}


def _hangs_bent(r: Record, p: Prediction) -> dict[str, float]:
    """The end's middle below the root and the cubes' slopes, in the mean of whole swings."""
    root = np.array(r.card.poses(r.subtask, r.material)["pedestal"].position)
    slopes = {}
    for name in ("cube_2", "cube_4"):
        turn = quaternion_to_matrix(r.state.quaternion_wxyz[:, r.state.body(name)])
        slopes[name] = np.degrees(np.arcsin(-turn[:, 2, 1]))
        end = r.path(name) + turn[:, :, 1] * r.length(name) / 2
    down, out = root[2] - end[:, 2], end[:, 1] - root[1] - r.length("pedestal") / 2
    swings = whole_swings(down)
    if swings is None:
        return {}
    return {
        "mean_drop": float(down[swings].mean()),
        "mean_reach": float(out[swings].mean()),
        "mean_angle_2": float(slopes["cube_2"][swings].mean()),
        "mean_angle_4": float(slopes["cube_4"][swings].mean()),
        "frequency": 1 / pd_crossings(down, r.state.times).period,
    }


def _slips(r: Record, p: Prediction) -> dict[str, float]:
    """Way of the clamp aside by which the middle of the rod's lower end has slipped."""
    rest = r.state.vertices["rod"][0]
    low = int(np.argmin(np.abs(rest - [*rest[:, :2].mean(axis=0), rest[:, 2].min()]).sum(axis=1)))
    end, clamp = r.state.vertices["rod"][:, low], r.path("clamp")
    way = np.abs(clamp[:, 0] - clamp[0, 0])
    # From where it stands when the press is over.
    moved = np.abs(end[:, 0] - end[max(0, int(np.argmax(way > 1e-6)) - 1), 0])
    moved[way <= 1e-6] = 0.0
    frame = int(np.argmax(moved > SLIPPED))
    if not frame:
        return {}
    return {
        "slip": float(np.interp(SLIPPED, moved[frame - 1 : frame + 1], way[frame - 1 : frame + 1]))
    }


def _sums(r: Record, p: Prediction) -> dict[str, float]:
    worn = r.built.markers
    if worn is None or not len(worn.faces):
        return {}
    return {"sum": float(np.abs(r.values.sum(axis=1)).max())}


def _rises(r: Record, p: Prediction) -> dict[str, float]:
    """Of both balls together: of one alone energy says nothing while the other sinks."""
    z = (r.path("ball_1")[:, 2] + r.path("ball_2")[:, 2]) / 2
    return {"rise": float((z - z[0]).max())}


MEASURED: Mapping[str, Callable[[Record, Prediction], dict[str, float]]] = {
    "tetrahedron_slides": _slides_and_tips,
    "falls_until_contact": _accelerates,
    "cube_sticks": _sticks,
    "cube_slides": _slides_off,
    "cube_slides_as_board_tilts": timed.slides_off,
    "cube_on_turntable": _turns,
    "wall_is_struck": timed.meets_wall,
    "ball_bounces": _bounces,
    "cradle_transfers": _cradle,
    "pendulum_swings": _pendulum,
    "rope_wraps": _rises,
    "sheet_sags": _sags,
    "sheet_hangs": _hangs,
    "curvature_sums_to_zero": _sums,
    "ball_leads_sheet": led,
    "cloth_slips_below_cube": _slips_along,
    "block_stretches": _stretches,
    "block_twists": _twists,
    "block_shears": _shears,
    "beam_is_pressed": _bends,
    "rod_sticks_and_slips": _slips,
    "blocks_hang": _hangs_bent,
}
"""By truth: numbers of a record by the names that the closed form predicts them under."""


def expected(r: Record, p: Prediction, name: str) -> Number:
    """What a number of `MEASURED` should be: the closed form's, or what follows from it."""
    if name in p.numbers:
        return p.numbers[name]
    if name == "restitution":
        e = r.card.body_properties(r.subtask, r.material, "ball").number("restitution")
        return Number(e, "1", "asked for")
    if name == "creep":
        return Number(0.0, "m", "it does not slip yet")
    if name == "turn":
        return Number(0.0, "deg", "it does not tip yet")
    if name == "acceleration":
        return Number(GRAVITY, "m/s^2", "of free fall")
    raise KeyError(name)

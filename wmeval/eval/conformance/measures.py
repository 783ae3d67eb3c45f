"""Effective values, as pure functions of a log of a check's world with every state."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from wmeval.conventions import quaternion_to_matrix
from wmeval.deformables import block_face, sheet_edge
from wmeval.errors import UserError
from wmeval.eval.conformance.scenes import (
    BALL,
    BRICK,
    FOAM,
    GRAVITY,
    LEG,
    OVERHANG,
    STRIKER,
    STRIP,
    WEIGHT,
    bar_block,
    overhang_sheet,
    strip_sheet,
)
from wmeval.eval.truths.flexible import overhang
from wmeval.records import WorldLog

F8 = NDArray[np.float64]
_MASSES = np.array((STRIKER["mass"], STRIKER["other_mass"]))


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


def effective_friction(degrees: float) -> Callable[[WorldLog], float]:
    """Friction mu of a cube that slides down a slope of so many degrees."""

    def measure(log: WorldLog) -> float:
        angle = math.radians(degrees)
        settled = log.state.times > 0.1
        pull = acceleration(log.state.times[settled], _slid(log)[settled])
        return math.tan(angle) - pull / (GRAVITY * math.cos(angle))

    return measure


def cloth_friction(log: WorldLog) -> float:
    """Friction mu of body 0 on a level sheet: its slowing over g while it has 1/5 of its speed.

    Raises:
        UserError: it stopped at once.
    """
    state = log.state
    speed = state.linear_velocity[:, 0, 0]
    on = (state.times > 0.02) & np.logical_and.accumulate(speed > 0.2 * speed[0])
    if on.sum() < 5:
        raise UserError("the cube did not slide on the sheet")
    return -acceleration(state.times[on], state.position[on, 0, 0]) / GRAVITY


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
    spin = (state.angular_velocity[:, 0] ** 2).sum(axis=1) * 0.4 * BALL**2
    above = state.position[:, 0, 2] - (1.0 - LEG)
    energy = 0.5 * (linear + spin) + GRAVITY * above
    second = round(1.0 / float(state.dt))
    return float(energy[-second:].mean() / energy[:second].mean())


def precession(log: WorldLog) -> float:
    """Mean rate at which the centre of body 0 goes round the z axis [rad/s]."""
    x, y = log.state.position[:, 0, 0], log.state.position[:, 0, 1]
    turned = np.unwrap(np.arctan2(y, x))
    return float(np.polyfit(log.state.times, turned, 1)[0])


def _turning(log: WorldLog) -> tuple[F8, F8]:
    """Of the brick: its spin's energy (T,) [J] and its angular momentum (T, 3) [kg m^2/s]."""
    turn = quaternion_to_matrix(log.state.quaternion_wxyz[:, 0])
    x, y, z = (half * half for half in BRICK)
    inertia = WEIGHT / 3 * np.array([y + z, x + z, x + y])
    own = np.einsum("nji,nj->ni", turn, log.state.angular_velocity[:, 0])
    return (inertia * own**2).sum(axis=1) / 2, np.einsum("nij,nj->ni", turn, inertia * own)


def tumble_energy(log: WorldLog) -> float:
    """Energy of the brick's spin at the end over that at the start."""
    energy, _ = _turning(log)
    return float(energy[-1] / energy[0])


def tumble_momentum(log: WorldLog) -> float:
    """Greatest change of the brick's angular momentum, as a vector, over what it began with."""
    _, momentum = _turning(log)
    gone = np.linalg.norm(momentum - momentum[0], axis=1)
    return float(gone.max() / np.linalg.norm(momentum[0]))


def _struck(log: WorldLog) -> None:
    """Raise unless the second of the two balls has been set moving by the first.

    Raises:
        UserError: it has not.
    """
    speed = np.linalg.norm(log.state.linear_velocity[:, :2], axis=2)
    if speed[-1, 1] < 0.1 * speed[0, 0]:
        raise UserError("the first ball did not strike the second")


def momentum_drift(log: WorldLog) -> float:
    """Change of the two balls' momentum over what the first had.

    Raises:
        UserError: they did not meet.
    """
    _struck(log)
    momentum = (log.state.linear_velocity[:, :2] * _MASSES[:, None]).sum(axis=1)
    return float(np.linalg.norm(momentum[-1] - momentum[0]) / np.linalg.norm(momentum[0]))


def spin_drift(log: WorldLog) -> float:
    """Change of the two balls' angular momentum about the origin over what the first had.

    Raises:
        UserError: they did not meet.
    """
    _struck(log)
    state, masses = log.state, _MASSES[:, None]
    orbit = np.cross(state.position[:, :2], state.linear_velocity[:, :2]) * masses
    own = 0.4 * STRIKER["radius"] ** 2 * state.angular_velocity[:, :2] * masses
    total = (orbit + own).sum(axis=1)
    return float(np.linalg.norm(total[-1] - total[0]) / np.linalg.norm(total[0]))


def ball_restitution(log: WorldLog) -> float:
    """Speed at which the two balls part along their centres at contact, over that before.

    Where the centres are then follows from where the first ball goes by: no gravity bends its way.

    Raises:
        UserError: they did not meet.
    """
    _struck(log)
    aside = STRIKER["aside"] / (2 * STRIKER["radius"])
    normal = np.array((math.sqrt(1 - aside**2), -aside, 0.0))
    nearing = (log.state.linear_velocity[:, 0] - log.state.linear_velocity[:, 1]) @ normal
    return float(-nearing[-1] / nearing[0])


def _hang(log: WorldLog, name: str, numbers: Sequence[int]) -> float:
    """How far the lower edge hangs under where it began, on average over the second half [m].

    Let go without damping, it swings about where it would hang: dozens of times in that half.
    """
    low = log.state.vertices[name][:, list(numbers), 2].mean(axis=1)
    return float(low[0] - low[len(low) // 2 :].mean())


def effective_stretch(log: WorldLog) -> float:
    """K_s [N/m] of the hanging strip: w L^2 / 2 over its longer hang.

    Held by its whole edge it cannot narrow there: an exact continuum reads 1.9 % more.
    """
    longer = _hang(log, "strip", sheet_edge(strip_sheet(), "y-"))
    weight = STRIP["areal_density"] * STRIP["gravity"]
    return weight * STRIP["length"] ** 2 / 2 / longer


def effective_young(log: WorldLog) -> float:
    """E [Pa] of the hanging bar: rho g L^2 / 2 over its longer hang.

    Held by its whole face it cannot narrow there: an exact continuum reads 1.0 % more.
    """
    longer = _hang(log, "bar", block_face(bar_block(), "z-"))
    return FOAM["density"] * FOAM["gravity"] * FOAM["length"] ** 2 / 2 / longer


def effective_bending(log: WorldLog) -> float:
    """B [N m] of the overhanging strip: of the heavy elastica that droops as far.

    The droop is the mean of the last two thirds, smoothly faded in and out, so that what swings
    about it counts for little. 0.0 where it droops more than an elastica of B / 1000. (Cloth that
    has no bending stiffness and swings without loss reads up to a sixth of B: as far off.)

    Raises:
        UserError: it does not droop at all, or less than an elastica of 1000 B.
    """
    strip = log.state.vertices["strip"][:, list(sheet_edge(overhang_sheet(), "x+")), 2]
    droop = (strip[0] - strip).mean(axis=1)[len(strip) // 3 :]
    mean = float(np.average(droop, weights=np.hanning(len(droop) + 2)[1:-1]))
    weight, asked = OVERHANG["areal_density"] * OVERHANG["gravity"], OVERHANG["bending"]

    def beyond(decades: float) -> float:
        return overhang(OVERHANG["length"], asked * 10**decades, weight).droop - mean

    if not math.isfinite(mean):
        return math.nan
    if beyond(3.0) >= 0:
        raise UserError("the strip does not hang down")
    if beyond(-3.0) <= 0:
        return 0.0
    return asked * float(10 ** brentq(beyond, -3.0, 3.0, xtol=1e-4))

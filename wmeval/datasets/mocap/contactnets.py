"""The ContactNets cube tosses: a cube thrown on a board, 6-DoF at 148 Hz.

Pfrommer, Halm and Posa, "ContactNets", CoRL 2020; data of DAIRLab/contact-nets (BSD-3). Read from
the authors' folder (one .pt a toss, lengths in half widths of the cube) or from one .npz of all
tosses in SI units. Their friction 0.18 and restitution 0.125 are themselves fitted to these tosses.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.datasets.mocap.schema import Header, Mocap, Trial, make_trial
from wmeval.datasets.mocap.torch_file import read_torch
from wmeval.errors import UserError

F8 = NDArray[np.float64]

RATE = 148.0
HALF_WIDTH = 0.0524
GRAVITY = 9.81

_SOURCE = "DAIRLab/contact-nets; Pfrommer, Halm, Posa: ContactNets, CoRL 2020"
# Its inertia is stated as 0.295 for a half width of 1.
_METADATA: dict[str, str | float | int | bool] = {
    "mass_kg": 0.37,
    "side_m": 2 * HALF_WIDTH,
    "inertia_kg_m2": 0.2950002913583124 * HALF_WIDTH**2,
    "friction_fitted": 0.18,
    "restitution_fitted": 0.125,
    "fitted_note": "friction and restitution were fitted by the authors to these tosses",
    "ground_z_m": 0.0,
}


def _header() -> Header:
    return Header(
        format="wmeval-mocap/1",
        title="Cube tosses",
        source=_SOURCE,
        licence="BSD-3-Clause",
        rate=RATE,
        bodies=("cube",),
        family="cube_toss",
        metadata=_METADATA,
    )


def _toss(header: Header, name: str, p: F8, q: F8, v: F8, w: F8, where: str) -> Trial:
    """One toss; the published angular velocity is in the cube's frame."""
    return make_trial(
        header,
        name,
        np.arange(len(p)) / RATE,
        {
            "positions": p[:, None],
            "quaternions_wxyz": q[:, None],
            "linear_velocities": v[:, None],
            "angular_velocities": rotated(q, w)[:, None],
        },
        where=where,
    )


def rotated(quaternions_wxyz: F8, vectors: F8) -> F8:
    """Vectors (N, 3) of a body's frame in the world, by unit quaternions (N, 4)."""
    q = quaternions_wxyz / np.linalg.norm(quaternions_wxyz, axis=1, keepdims=True)
    w, u = q[:, :1], q[:, 1:]
    t = 2 * np.cross(u, vectors)
    out: F8 = vectors + w * t + np.cross(u, t)
    return out


def read_contactnets(path: str | Path) -> Mocap:
    """All tosses, in SI units and the world frame.

    Args:
        path: the authors' folder of .pt files (or their checkout that holds
            ``data/tosses_processed``), or the .npz.

    Raises:
        UserError: no such place, or not these data; the message says which file.
    """
    place = Path(path)
    if place.suffix == ".npz":
        return _from_npz(place)
    inner = place / "data" / "tosses_processed"
    return _from_folder(inner if inner.is_dir() else place)


_KEYS = ("offsets", "toss_id", "position_m", "quaternion_wxyz", "linear_velocity_mps",
         "angular_velocity")  # fmt: skip


def _from_npz(path: Path) -> Mocap:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [k for k in _KEYS if k not in file]
            if missing:
                raise UserError(f"{path}: has no array {missing[0]!r}: no cube tosses")
            offsets, ids, p, q, v, w = (np.asarray(file[k]) for k in _KEYS)
    except UserError:
        raise
    except Exception as error:  # a damaged archive raises what it likes
        raise UserError(f"{path}: no readable npz: {error}") from error
    fits = (
        offsets.ndim == ids.ndim == 1
        and len(offsets) == len(ids) + 1
        and offsets[0] == 0
        and (np.diff(offsets) > 0).all()
        and p.shape == v.shape == w.shape == (offsets[-1], 3)
        and q.shape == (offsets[-1], 4)
    )
    if not fits:
        raise UserError(f"{path}: offsets and arrays do not fit together")
    header = _header()
    p, q, v, w = (np.asarray(x, np.float64) for x in (p, q, v, w))
    trials = []
    for k, toss in enumerate(ids.tolist()):
        rows = slice(int(offsets[k]), int(offsets[k + 1]))
        trials.append(
            _toss(header, f"toss-{toss:03d}", p[rows], q[rows], v[rows], w[rows], f"{path}: ")
        )
    return Mocap(header, tuple(trials))


def _from_folder(folder: Path) -> Mocap:
    files = sorted((f for f in folder.glob("*.pt") if f.stem.isdigit()), key=lambda f: int(f.stem))
    if not files:
        raise UserError(f"{folder}: holds no toss (0.pt, 1.pt, ...)")
    header = _header()
    trials = []
    for file in files:
        found = read_torch(file)
        rows = np.asarray(found[0] if isinstance(found, (list, tuple)) else found, np.float64)
        rows = rows[0] if rows.ndim == 3 and len(rows) == 1 else rows
        if rows.ndim != 2 or len(rows) < 2 or rows.shape[1] < 13:
            raise UserError(f"{file}: {rows.shape} numbers; (frames, 13 or more) are wanted")
        # Position and velocity are in half widths; what follows column 13 is control, all zero.
        trials.append(
            _toss(
                header, f"toss-{int(file.stem):03d}", rows[:, :3] * HALF_WIDTH, rows[:, 3:7],
                rows[:, 7:10] * HALF_WIDTH, rows[:, 10:13], f"{file}: ",
            )
        )  # fmt: skip
    return Mocap(header, tuple(trials))


@dataclass(frozen=True, eq=False)
class TossState:
    """State at a toss's first frame, from its first frames.

    Attributes:
        position: (3,) [m]; quaternion_wxyz: (4,).
        linear: (3,) [m/s]; angular: (3,) [rad/s], world frame.
        position_sigma: residual of the flight's parabola, per axis [m].
        linear_sigma: standard error of ``linear``, per axis [m/s].
        angular_sigma: of ``angular``, from the scatter of the recorded ones, per axis [rad/s].
    """

    position: F8
    quaternion_wxyz: F8
    linear: F8
    angular: F8
    position_sigma: float
    linear_sigma: float
    angular_sigma: float


def first_state(trial: Trial, frames: int = 6) -> TossState:
    """State from which a toss is simulated: a free flight fitted to its first frames.

    Position and velocity by least squares of p + v t - g t^2 / 2, the angular velocity as the mean
    of the recorded ones (the cube's inertia is isotropic, so that it is constant in flight).

    Args:
        trial: a toss; it must not touch the board in these frames.
        frames: how many.

    Raises:
        UserError: too few frames, one of them not measured, or the cube touches in them.
    """
    if frames < 3 or len(trial) < frames:
        raise UserError(f"trial {trial.name!r}: {frames} frames are wanted, 3 or more")
    if trial.angular_velocities is None:
        raise UserError(f"trial {trial.name!r}: has no angular velocities")
    t = trial.times[:frames] - trial.times[0]
    p, q = trial.positions[:frames, 0], trial.quaternions_wxyz[:frames, 0]
    w = trial.angular_velocities[:frames, 0]
    if not all(np.isfinite(x).all() for x in (p, q, w)):
        raise UserError(f"trial {trial.name!r}: its first {frames} frames are not all measured")
    lowest = float(lowest_corner(p, q).min())
    if lowest < 0.002:
        raise UserError(
            f"trial {trial.name!r}: the cube is {lowest * 1e3:.1f} mm above the board within "
            f"{frames} frames: take fewer"
        )
    fall = np.zeros((frames, 3))
    fall[:, 2] = -GRAVITY * t**2 / 2
    basis = np.stack([np.ones(frames), t], axis=1)
    found, *_ = np.linalg.lstsq(basis, p - fall, rcond=None)
    residual = p - fall - basis @ found
    sigma = float(np.sqrt((residual**2).sum() / (3 * (frames - 2))))
    spread = float(np.sqrt(np.linalg.inv(basis.T @ basis)[1, 1]))
    return TossState(
        found[0], q[0], found[1], w.mean(axis=0), sigma, sigma * spread,
        float(np.sqrt(w.var(axis=0, ddof=1).mean() / frames)),
    )  # fmt: skip


def lowest_corner(position: F8, quaternion_wxyz: F8, half: float = HALF_WIDTH) -> F8:
    """Height of the cube's lowest corner [m] (...); below the board it is a penetration.

    Args:
        position: (..., 3) [m].
        quaternion_wxyz: (..., 4), of unit length.
        half: half width [m].
    """
    heights = quaternion_to_matrix(np.asarray(quaternion_wxyz, np.float64))[..., 2, :]
    out: F8 = np.asarray(position, np.float64)[..., 2] - half * np.abs(heights).sum(axis=-1)
    return out

"""The measured torque-driven pendulum of DFKI: angle, rate and torque at about 300 Hz.

dfki-ric-underactuated-lab/torque_limited_simple_pendulum (BSD-3). The recording states no mass,
length or damping: it serves to fit them on a part of it and to score on the rest.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wmeval.datasets.mocap.schema import Header, Mocap, Signal, make_trial
from wmeval.errors import UserError, what_of

COLUMNS = ("time", "position", "velocity", "torque")

_HEADER = Header(
    format="wmeval-mocap/1",
    title="Torque-driven pendulum",
    source="DFKI RIC Underactuated Lab, torque_limited_simple_pendulum",
    licence="BSD-3-Clause",
    signals=(
        Signal(name="position", unit="rad", doc="angle from hanging down"),
        Signal(name="velocity", unit="rad/s", doc="its rate, as the motor reports it"),
        Signal(name="torque", unit="N m", doc="of the motor"),
    ),
    metadata={"note": "mass, length and damping are not stated"},
)


def read_pendulum(path: str | Path) -> Mocap:
    """Read a recording: CSV with the header ``time,position,velocity,torque`` [s, rad, rad/s, N m].

    Raises:
        UserError: no such file, another header, or lines that are not four finite numbers.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {what_of(error)}") from error
    if not lines or tuple(x.strip() for x in lines[0].split(",")) != COLUMNS:
        raise UserError(f"{path}: the first line must read {','.join(COLUMNS)}")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        try:
            row = [float(x) for x in line.split(",")]
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
        if len(row) != len(COLUMNS) or not np.isfinite(row).all():
            raise UserError(f"{path}, line {number}: four finite numbers are wanted")
        rows.append(row)
    if len(rows) < 2:
        raise UserError(f"{path}: two lines or more are wanted")
    table = np.array(rows)
    trial = make_trial(
        _HEADER, Path(path).stem, table[:, 0], {"signals": table[:, 1:]}, where=f"{path}: "
    )
    return Mocap(_HEADER, (trial,))

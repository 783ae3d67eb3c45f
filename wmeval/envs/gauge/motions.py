"""How GAUGE's set-ups are moved: drives of the card, measured files, or the action."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets.gauge_cards import Drive, Family
from wmeval.assets.gauge_profiles import (
    COLUMNS,
    Measured,
    axis,
    drive_hash,
    motion,
    read_measured,
)
from wmeval.envs.gauge.measured import check_units
from wmeval.errors import UserError
from wmeval.sim.drivers.imposed import ACTION_CHANNELS
from wmeval.sim.protocol import DriverSpec

F8 = NDArray[np.float64]

ACTION = "action"
ACTION_SPEED, ACTION_RATE = 1.0, 10.0
"""Of a full action [m/s], [rad/s]."""


@dataclass(frozen=True)
class Drives:
    """What moves a set-up.

    Attributes:
        specs: drivers.
        settle: time before state 0 [s].
        hashes: of each moved body's motion, by name: what results carry. "action" where the agent
            moves it.
        leads: bodies that are led, each with the motion's offsets (N, 3) over the record [m].
    """

    specs: tuple[DriverSpec, ...]
    settle: float
    hashes: dict[str, str]
    leads: dict[str, F8]


def led_bodies(card: Family, subtask: str, material: str) -> tuple[Drive, ...]:
    """Drives that lead a body (a kick sets a free one off)."""
    return tuple(d for d in card.drives(subtask, material) if d.profile != "kick")


def channels(card: Family, subtask: str, material: str) -> tuple[str, ...]:
    """Components of the action where the agent moves what the card's drives would."""
    return tuple(
        f"{drive.body}_{part}"
        for drive in led_bodies(card, subtask, material)
        for part in ACTION_CHANNELS
    )


def drives(
    card: Family, subtask: str, material: str, drive: str | None, seconds: float,
    damped: tuple[str, ...] = (),
) -> Drives:  # fmt: skip
    """The drivers of a set-up.

    Args:
        card: the family.
        subtask: of it.
        material: of it.
        drive: file of a measured motion, "action", or None: the card's.
        seconds: length of the record.
        damped: bodies that are damped while the set-up settles.

    Raises:
        UserError: a file or the action for a set-up in which not just one body is led, a file that
            is none, or one of other units.
    """
    of_card = card.drives(subtask, material)
    led = led_bodies(card, subtask, material)
    measured = _measured(card, drive, led, seconds)
    times = np.linspace(0.0, seconds, 61)
    specs, hashes, leads = [], {}, {}
    for number, one in enumerate(led):
        made, mark, moved = _lead(one, number, drive, measured, times)
        specs.append(DriverSpec(kind="imposed", params=made))
        hashes[one.body], leads[one.body] = mark, moved
    kicks = [d for d in of_card if d.profile == "kick"]
    settle = 0.0
    if kicks:
        settle = max(_number(d, "settle") for d in kicks)
        velocities: dict[str, JsonValue] = {d.body: list(_three(d, "velocity")) for d in kicks}
        specs.append(
            DriverSpec(kind="kick", params={"velocities": velocities, "damped": list(damped)})
        )
        hashes |= {d.body: drive_hash(d) for d in kicks}
    return Drives(tuple(specs), settle, hashes, leads)


def _measured(
    card: Family, drive: str | None, led: tuple[Drive, ...], seconds: float
) -> Measured | None:
    if drive is None:
        return None
    if not led:
        raise UserError(
            f"{card.id}: nothing is led in this set-up, so no drive = {drive!r} can lead it: "
            "leave drive out"
        )
    if drive == ACTION:
        return None
    if len(led) > 1:
        raise UserError(
            f"{card.id}: {', '.join(d.body for d in led)} are led, and a measured file leads one"
        )
    if not Path(drive).is_file():
        raise UserError(
            f"{card.id}: drive = {drive!r} is no file: name a .csv file {','.join(COLUMNS)} of a "
            f"measured motion, or give {ACTION!r}"
        )
    found = read_measured(drive)
    check_units(found, drive, led[0], seconds)
    return found


def _lead(
    one: Drive, number: int, drive: str | None, measured: Measured | None, times: F8
) -> tuple[dict[str, JsonValue], str, F8]:
    """Parameters of the driver, the motion's hash, its offsets."""
    params: dict[str, Any] = {"body": one.body}
    along = axis(one).tolist()
    if drive == ACTION:
        params |= {
            "action": number * len(ACTION_CHANNELS),
            "axis": along,
            "speed": ACTION_SPEED,
            "rate": ACTION_RATE,
        }
        return params, ACTION, np.zeros((1, 3))
    if measured is not None:
        table = np.column_stack([measured.times, measured.samples])
        params |= {"samples": table.tolist(), "axis": along}
        return params, drive_hash(measured), measured.samples[:, :3]
    params["drive"] = one.model_dump(mode="json")
    return params, drive_hash(one), motion(one, times).offset


def _number(drive: Drive, name: str) -> float:
    value = drive.parameters[name]
    assert isinstance(value, (int, float))
    return float(value)


def _three(drive: Drive, name: str) -> tuple[float, float, float]:
    value = drive.parameters[name]
    assert isinstance(value, tuple)
    return value

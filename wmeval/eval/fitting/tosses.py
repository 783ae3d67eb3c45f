"""Real cube tosses and what was thrown, as sweeps and fits take them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field

from wmeval.datasets.mocap import first_state, read_contactnets, read_mocap
from wmeval.datasets.mocap.contactnets import TossState
from wmeval.datasets.mocap.schema import Mocap, Trial
from wmeval.datasets.mocap.sources import data_home
from wmeval.envs.gauge.changes import check_numbers
from wmeval.errors import UserError
from wmeval.eval.fitting.cubes import CubeBody
from wmeval.scene import Card

FAMILY = "cube_toss"
BODY = "cube"
LIKE = "nonsmooth_contact"
"""The family whose settings the cube has: a free body with corners meets what stands still."""
FRAMES = (6, 5, 4, 3)
"""First frames from which a toss' state is read: as many as are free of contact."""


def recording_in(path: Path | None) -> Path:
    """The file of the cube tosses: itself, the one of a folder, or the fetched one.

    Raises:
        UserError: there is none, or there are several.
    """
    if path is None:
        path = data_home() / "contactnets" / "contactnets.h5"
    if path.is_dir():
        found = [p for p in sorted(path.iterdir()) if p.suffix in (".h5", ".npz")]
        if len(found) == 1:
            return found[0]
        raise UserError(
            f"{path}: {len(found)} recordings (.h5, .npz) in this folder: name one file"
        )
    if not path.exists():
        raise UserError(
            f"{path}: no cube tosses: `wmeval data get contactnets`, or name their file"
        )
    return path


def read_tosses(path: Path) -> Mocap:
    """The recording: `wmeval-mocap/1`, or the authors' own form.

    Raises:
        UserError: it cannot be read, or is of something else.
    """
    mocap = read_mocap(path) if path.suffix in (".h5", ".json") else read_contactnets(path)
    if len(mocap.header.bodies) != 1:
        raise UserError(f"{path}: {len(mocap.header.bodies)} bodies; one cube is wanted")
    missing = [
        k
        for k in ("mass_kg", "friction_fitted", "restitution_fitted")
        if k not in mocap.header.metadata
    ]
    if missing:
        raise UserError(f"{path}: its metadata say no {missing[0]}")
    for trial in mocap.trials:
        if np.isnan(trial.quaternions_wxyz).all():
            raise UserError(
                f"{path}: trial {trial.name!r}: no quaternions_wxyz, and a toss tumbles: give the "
                "cube's orientations"
            )
    return mocap


def start_of(trial: Trial) -> TossState:
    """The first state, from as many free frames as there are.

    Raises:
        UserError: the cube touches the board from the beginning.
    """
    for frames in FRAMES[:-1]:
        try:
            return first_state(trial, frames)
        except UserError:
            continue
    return first_state(trial, FRAMES[-1])


class CubeNumbers(Card):
    """Numbers of the cube that fitted ones take the place of.

    Attributes:
        mass: [kg]; inertia: about every axis through the centre [kg m^2].
        friction, restitution: of the pair of cube and board.
    """

    mass: float | None = Field(default=None, gt=0)
    friction: float | None = Field(default=None, ge=0)
    restitution: float | None = Field(default=None, ge=0, le=1)
    inertia: float | None = Field(default=None, gt=0)


def check_cube(changes: Mapping[str, Mapping[str, float]]) -> None:
    """Refuse fitted numbers that the cube does not take.

    Raises:
        UserError: another body, another number, or one out of its range.
    """
    check_numbers(FAMILY, {BODY: tuple(CubeNumbers.model_fields)}, changes, CubeNumbers)


def cube_of(metadata: Mapping[str, object], changes: Mapping[str, float]) -> CubeBody:
    """The cube as it was measured, with fitted numbers in place of the authors' own."""
    names = {
        "mass": "mass_kg",
        "friction": "friction_fitted",
        "restitution": "restitution_fitted",
        "inertia": "inertia_kg_m2",
    }
    given = {k: metadata[v] for k, v in names.items() if v in metadata} | dict(changes)
    return CubeBody(**{k: float(str(v)) for k, v in given.items()})

"""Freezing cases as a suite: every case recorded once, with frames at the rates asked for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import wmeval
from wmeval.clock import exact
from wmeval.conventions import intrinsics
from wmeval.datasets.rollout import write_hdf5
from wmeval.datasets.suite import (
    Suite,
    read_suite,
    reference_name,
    seal,
    write_case_json,
    write_png,
)
from wmeval.envs.case import Case
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.errors import UserError
from wmeval.jobs.atomic import atomic_dir

LAYERS = ("rgb", "depth", "ids")
"""What scoring needs of the reference's pictures: colour, and what flow and masks derive from."""


def cases_of(
    env_id: str,
    plans: Iterable[str],
    scene_seeds: Iterable[int],
    *,
    view: str = "follow",
    width: int = 640,
    height: int = 352,
    env_kwargs: dict[str, Any] | None = None,
) -> tuple[Case, ...]:
    """Cases of one environment: every plan with every scene seed.

    Raises:
        UserError: an unknown environment or plan.
    """
    seeds = tuple(scene_seeds)
    return tuple(
        Case(
            env_id=env_id,
            env_kwargs=env_kwargs or {},
            scene_seed=seed,
            plan=load_plan(env_id, plan),
            view=view,
            width=width,
            height=height,
        )
        for plan in plans
        for seed in seeds
    )


def build_suite(
    cases: Sequence[Case],
    out: str | Path,
    *,
    fps: Sequence[Any] = (),
    layers: Sequence[str] = LAYERS,
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Suite:
    """Freeze cases as a suite; run again, it goes on where it was stopped.

    Args:
        cases: what candidates shall be asked; their names must differ.
        out: folder; a finished suite of the same cases there is checked and returned.
        fps: frame rates at which the reference's frames are cached; default: one per action.
        layers: of `wmeval.layers.RENDERED`, cached at each rate.
        overwrite: make every case again.
        progress: called with one line per case.

    Raises:
        UserError: no cases, two of one name, or a folder that holds something else.
    """
    out = Path(out)
    tell = progress or (lambda line: None)
    ids = [c.case_id for c in cases]
    if not ids:
        raise UserError("a suite needs at least one case")
    twice = next((i for i in ids if ids.count(i) > 1), None)
    if twice:
        raise UserError(f"two cases are called {twice!r}")
    rates = tuple(exact(r) for r in fps)
    if any(r <= 0 for r in rates) or len(set(rates)) != len(rates):
        raise UserError(f"suite: fps {', '.join(map(str, rates))}: rates are > 0 and differ")
    index = out / "suite.json"
    if overwrite:
        index.unlink(missing_ok=True)  # until the new one is whole, there is none
    elif index.is_file() and sorted(read_suite(out, verify=False).case_ids) != sorted(ids):
        raise UserError(
            f"{out} is a finished suite of other cases; build into another folder, or --overwrite"
        )
    for stranger in (p for p in _folders(out) if p.name not in ids):
        if not overwrite:
            raise UserError(
                f"{out} holds case {stranger.name!r}, which is not asked for; build into another "
                "folder, or --overwrite"
            )
        shutil.rmtree(stranger)
    versions: dict[str, str] = {"wmeval": wmeval.__version__}
    for case in cases:
        folder = out / "cases" / case.case_id
        if folder.exists() and not overwrite:
            _check_same(folder, case, rates)
            tell(f"{case.case_id}: kept")
            continue
        with atomic_dir(folder, overwrite=True) as made:
            _freeze(case, made, rates, tuple(layers))
        tell(f"{case.case_id}: made")
    if index.is_file():
        return read_suite(out)
    return seal(out, ids, made_with=versions)


def _folders(out: Path) -> list[Path]:
    cases = out / "cases"
    # Names that begin with a point are what an interrupted writer left; the next one removes them.
    return [p for p in cases.iterdir() if p.name[0] != "."] if cases.is_dir() else []


def _check_same(folder: Path, case: Case, rates: tuple[Fraction, ...]) -> None:
    try:
        document = json.loads((folder / "case.json").read_text())
        same = Case.model_validate(document["case"]) == case
        cached = {exact(r) for r in document["rates"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder}: holds no case ({error}); use --overwrite") from error
    if not same or (rates and cached != set(rates)):
        what = "another case of this name" if not same else "other frame rates"
        raise UserError(f"{folder}: holds {what}; use --overwrite or another folder")


def _freeze(case: Case, folder: Path, rates: tuple[Fraction, ...], layers: tuple[str, ...]) -> None:
    env = case.make()
    try:
        width, height = case.width, case.height
        own = 1 / env.clock.control_period
        for rate in rates or (own,):
            rollout = record(
                env,
                plan=case.plan,
                seed=case.scene_seed,
                options=case.options,
                layers=layers,
                view=case.view,
                width=width,
                height=height,
                fps=rate,
            )
            write_hdf5(rollout, folder / reference_name(rate))
        case.reset(env)
        camera = env.camera_index(case.view)
        frame = env.draw(("rgb",), view=case.view, width=width, height=height)["rgb"]
        write_png(folder / "context" / "000.png", np.asarray(frame, np.uint8))
        write_case_json(
            folder,
            case.model_dump(mode="json"),
            K=intrinsics(float(env.log.cameras.fov_y[-1, camera]), width, height),
            T_world_camera=env.log.cameras.T_world_camera[-1, camera],
            dt=env.clock.dt,
            control_period=env.clock.control_period,
            rates=rates or (own,),
        )
    finally:
        env.close()

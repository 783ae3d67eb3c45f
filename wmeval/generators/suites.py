"""Freezing cases as a suite: every case recorded once, with frames at the rates asked for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import wmeval
from wmeval.clock import exact
from wmeval.conventions import intrinsics
from wmeval.datasets.png import read_png, write_png
from wmeval.datasets.rollout import FORMAT as STORE_FORMAT
from wmeval.datasets.rollout import write_hdf5
from wmeval.datasets.suite import (
    FORMAT,
    INDEX,
    Suite,
    digests,
    read_suite,
    reference_name,
    seal,
    write_case_json,
)
from wmeval.datasets.validate import validate
from wmeval.envs.case import Case
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.errors import UserError
from wmeval.jobs.atomic import FolderKind, atomic_dir, claim

CASE_FOLDER = FolderKind(
    files=r"case\.json|context/000\.png|reference-\d+(_\d+)?\.h5",
    marks={
        r"case\.json": '"T_world_camera"',
        r"reference-.*": STORE_FORMAT,
        r"context/.*": "PNG",
    },
)
SUITE_FOLDER = FolderKind(
    files=rf"suite\.json|cases/[^/]+/({CASE_FOLDER.files})",
    marks={
        r"suite\.json": f'"{FORMAT}"',
        **{f"cases/[^/]+/{name}": text for name, text in CASE_FOLDER.marks.items()},
    },
)
LAYERS = ("rgb", "depth", "ids")
"""What scoring needs of the reference's pictures: colour, and what flow and masks derive from."""


def cases_of(
    env_id: str,
    plans: Iterable[str],
    scene_seeds: Iterable[int],
    *,
    view: str | None = None,
    width: int = 640,
    height: int = 352,
    max_steps: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> tuple[Case, ...]:
    """Cases of one environment: every plan with every scene seed.

    ``view`` is the camera that candidates see; None is the plan's, else the environment's own.
    ``max_steps`` ends
    each after so many actions; None keeps the plans' lengths.

    Raises:
        UserError: an unknown environment or plan.
    """
    seeds = tuple(scene_seeds)
    kwargs = dict(env_kwargs or {})
    if max_steps is not None:
        kwargs["max_steps"] = max_steps
    return tuple(
        Case(
            env_id=env_id,
            env_kwargs=kwargs,
            scene_seed=seed,
            plan=load_plan(env_id, plan),
            view=view or "",
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
    """Freeze cases as a suite; run again, it goes on where it was stopped and mends damage.

    Args:
        cases: what candidates shall be asked; their names must differ.
        out: folder; a finished suite of the same cases there is checked, mended and returned.
        fps: frame rates at which the reference's frames are cached; default: one per action.
        layers: of `wmeval.layers.RENDERED`, cached at each rate.
        overwrite: make every case again.
        progress: called with one line per case.

    Raises:
        UserError: no cases, two of one name, a folder that holds something else, or a damaged case
            of a finished suite that comes out otherwise now.
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
    with claim(out):
        SUITE_FOLDER.refuse_others(out)
        finished = _begin(out, ids, overwrite)
        for case in cases:
            folder = out / "cases" / case.case_id
            listed = None if finished is None else _listed(finished, case.case_id)
            if not overwrite and _whole(folder, case, rates, listed):
                tell(f"{case.case_id}: kept")
                continue
            again = folder.exists()
            with atomic_dir(folder, replaces=CASE_FOLDER) as made:
                _freeze(case, made, rates, tuple(layers))
                if listed is not None and digests(made) != listed:
                    raise UserError(
                        f"{folder}: damaged, and made now it differs from the suite's; get an "
                        "unchanged copy, or make the whole suite anew with --overwrite"
                    )
            tell(f"{case.case_id}: {'made again' if again else 'made'}")
        if finished is not None:
            return read_suite(out)
        return seal(out, ids, made_with={"wmeval": wmeval.__version__})


def _begin(out: Path, ids: Sequence[str], overwrite: bool) -> Suite | None:
    """The finished suite that stands there; None where one has to be made."""
    index = out / INDEX
    if overwrite:
        index.unlink(missing_ok=True)  # until the new one is whole, there is none
    finished = read_suite(out, verify=False) if index.is_file() else None
    if finished is not None and sorted(finished.case_ids) != sorted(ids):
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
    return finished


def _folders(out: Path) -> list[Path]:
    cases = out / "cases"
    # Names that begin with a point are what an interrupted writer left; the next one removes them.
    return [p for p in cases.iterdir() if p.name[0] != "."] if cases.is_dir() else []


def _listed(suite: Suite, case_id: str) -> dict[str, tuple[str, int]]:
    start = f"cases/{case_id}/"
    return {n.removeprefix(start): v for n, v in suite.files.items() if n.startswith(start)}


def _whole(
    folder: Path,
    case: Case,
    rates: tuple[Fraction, ...],
    listed: Mapping[str, tuple[str, int]] | None,
) -> bool:
    """The case is there and undamaged.

    Args:
        folder: of the case.
        case: what it must hold.
        rates: what must be cached; empty: any.
        listed: its files as a finished suite lists them; None where none is finished.

    Raises:
        UserError: it holds another case, or other rates.
    """
    try:
        document = json.loads((folder / "case.json").read_text())
        same = Case.model_validate(document["case"]) == case
        cached = tuple(exact(r) for r in document["rates"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if not same or (rates and set(cached) != set(rates)):
        what = "another case of this name" if not same else "other frame rates"
        raise UserError(f"{folder}: holds {what}; use --overwrite or another folder")
    found = digests(folder)
    if listed is not None:
        return found == listed
    names = {"case.json", "context/000.png", *map(reference_name, cached)}
    try:
        read_png(folder / "context" / "000.png")
    except UserError:
        return False
    return set(found) == names and not validate(folder)


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

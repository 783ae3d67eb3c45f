"""Fit an engine's numbers on a stated half of a real recording; the file is a configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast, get_args

import yaml

from wmeval.assets.gauge_cards import families
from wmeval.datasets.checksums import sha256_of
from wmeval.datasets.mocap import read_pendulum
from wmeval.envs.gauge.configurations import (
    NAMES,
    Fitted,
    Identified,
    Name,
    check_engine,
    settings_of,
)
from wmeval.errors import UserError
from wmeval.eval.fitting import pendulum_fit
from wmeval.eval.fitting.halves import Half, half_of, spaced
from wmeval.eval.fitting.pendulums import cut
from wmeval.eval.fitting.search import OPTIMIZER, Found, Parameter, search
from wmeval.eval.fitting.toss_fit import LOSS, TossLoss, parameters, parts
from wmeval.eval.fitting.tosses import FAMILY, LIKE, read_tosses, recording_in
from wmeval.jobs import installed
from wmeval.jobs.atomic import write_text
from wmeval.sim.engines import WORKERS, engine_info

DIGITS = 6
"""Significant digits of found numbers: the file says what was run, and is read by people."""


def fit_tosses(
    data: Path | None,
    engine: str,
    *,
    half: str = "",
    split: str = "",
    base: Name = "tuned",
    trials: int = 0,
    evaluations: int = 60,
    seed: int = 0,
    python: str = "",
    told: Callable[[int, int, str], None] | None = None,
) -> Fitted:
    """Friction, restitution and contact softness of an engine by the cube tosses.

    Args:
        data: the recording, or the folder that it lies in; None: the fetched one.
        engine: row of `wmeval.sim.engines.ENGINES`.
        half: "even" or "odd", by place: which trials are fitted on.
        split: instead, a file of names or a seed, as `half_of` reads it.
        base: the configuration whose solver settings are kept.
        trials: evenly spaced ones of that half; 0: all. None of the half is ever scored.
        evaluations: of the loss.
        seed: of the search.
        python: interpreter of the engine; "": the installed one.
        told: after each evaluation: how many, of how many, what came out.

    Raises:
        UserError: no such engine or data, or a choice that leaves nothing to score.
        WorkerError: the engine's worker died.
    """
    card = families()[LIKE]
    check_engine(card, engine)
    settings = settings_of(card, engine, base)
    data = recording_in(data)
    mocap = read_tosses(data)
    chosen = half_of([t.name for t in mocap.trials], half=half, split=split)
    names = spaced(chosen.names, trials)
    wanted = parameters(engine, mocap, settings)
    loss = TossLoss(engine, settings, mocap, names, python)

    try:
        found = search(
            lambda values: loss(_rounded(values)), wanted, evaluations=evaluations, seed=seed,
            told=_heard(told, evaluations, "mm"),
        )  # fmt: skip
    finally:
        loss.close()
    best = _rounded(found.values)
    properties, options = parts(engine, best)
    few = f", evenly spaced ones of {len(chosen.names)}" if len(names) < len(chosen.names) else ""
    return Fitted(
        family=FAMILY,
        fitted_on=f"{len(names)} of {len(mocap.trials)} tosses of {data.name}: {chosen.said}" + few,
        base=base,
        options=dict(options),
        properties=properties,
        identified=_identified(
            engine, python, data, chosen, names, wanted, found, evaluations, LOSS, seed
        ),
    )


def fit_driven_pendulum(
    data: Path | None,
    engine: str,
    *,
    half: str = "",
    split: str = "",
    base: Name = "tuned",
    trials: int = 0,
    evaluations: int = 60,
    seed: int = 0,
    python: str = "",
    told: Callable[[int, int, str], None] | None = None,
) -> Fitted:
    """Length, mass and damping of an engine's pendulum by pieces of a torque-driven one.

    Args: as `fit_tosses`; a trial is a piece of 0.3 s, and ``data`` the recording's .csv.

    Raises:
        UserError: as `fit_tosses`.
        WorkerError: the engine's worker died.
    """
    card = families()[pendulum_fit.LIKE]
    check_engine(card, engine)
    settings = settings_of(card, engine, base)
    path = _pendulum_in(data)
    (trial,) = read_pendulum(path).trials
    given = cut(trial)
    pendulum_fit.check_driven(trial)
    chosen = half_of([p.name for p in given], half=half, split=split)
    names = spaced(chosen.names, trials)
    own = [p for p in given if p.name in names]
    rest = [p for p in given if p.name not in chosen.names]
    loss = pendulum_fit.PendulumLoss(engine, settings, python)
    try:
        found = search(
            lambda values: loss.of(_rounded(values), own), pendulum_fit.PARAMETERS,
            evaluations=evaluations, seed=seed, told=_heard(told, evaluations, "deg"),
        )  # fmt: skip
        best = _rounded(found.values)
        others = {
            f"{engine}, {pendulum_fit.FITTED}": loss.of(best, rest),
            f"{engine}, {pendulum_fit.START}": loss.of(
                {p.name: p.start for p in pendulum_fit.PARAMETERS}, rest
            ),
        }
    finally:
        loss.close()
    numbers = [k for k, p in enumerate(given) if p.name in names]
    others |= pendulum_fit.baselines(trial, given, numbers)
    return Fitted(
        family=pendulum_fit.FAMILY,
        fitted_on=f"{len(names)} of {len(given)} pieces of {path.name}: {chosen.said}",
        base=base,
        properties={pendulum_fit.BODY: best},
        identified=_identified(
            engine, python, path, chosen, names, pendulum_fit.PARAMETERS, found, evaluations,
            pendulum_fit.LOSS, seed,
            {k: v for k, v in others.items() if math.isfinite(v)},
            pendulum_fit.remarks(trial, engine, others),
        ),
    )  # fmt: skip


def _identified(
    engine: str, python: str, data: Path, chosen: Half, used: Sequence[str],
    wanted: Sequence[Parameter], found: Found, asked: int, loss: str, seed: int,
    others: Mapping[str, float] = MappingProxyType({}),
    remarks: Sequence[str] = (),
) -> Identified:  # fmt: skip
    """What stands in a file of fitted numbers of how they were found."""
    return Identified(
        engine=engine, version=_version(engine, python), data=data.name, sha256=sha256_of(data),
        half=chosen.said, trials=chosen.names, used=tuple(used), parameters=_rounded(found.values),
        start={p.name: p.start for p in wanted}, bounds={p.name: (p.low, p.high) for p in wanted},
        loss=loss, loss_before=found.before, loss_after=found.after, improved=found.improved,
        other_half=dict(others), evaluations=found.evaluations, asked=asked, optimizer=OPTIMIZER,
        seed=seed,
        remarks=tuple(remarks),
    )  # fmt: skip


def _pendulum_in(path: Path | None) -> Path:
    if path is None:
        raise UserError("--data: name the pendulum's recording, a .csv of time and three signals")
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.csv"))
    if len(found) != 1:
        raise UserError(f"{path}: {len(found)} recordings (.csv) in this folder: name one file")
    return found[0]


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {k: float(f"{v:.{DIGITS}g}") for k, v in values.items()}


def _heard(
    told: Callable[[int, int, str], None] | None, total: int, unit: str
) -> Callable[[int, dict[str, float], float], None]:
    def heard(count: int, values: dict[str, float], found: float) -> None:
        if told is not None:
            text = ", ".join(f"{k} {v:.4g}" for k, v in values.items())
            told(count, total, f"{text}: {found:.4g} {unit}")

    return heard


def _version(engine: str, python: str) -> str:
    if engine in WORKERS:
        return installed.version(engine, python) or ""
    return engine_info(engine).version


def check_base(name: str) -> Name:
    """The name of a configuration that fitted numbers may be laid over.

    Raises:
        UserError: there is none of that name.
    """
    for known in get_args(Name):
        if name == known:
            return cast(Name, known)
    raise UserError(f"--base {name}: choose from {', '.join(NAMES)}")


FITS: dict[str, Callable[..., Fitted]] = {FAMILY: fit_tosses, "pendulum": fit_driven_pendulum}
"""What is fitted, by family."""


def fit(family: str, data: Path | None, engine: str, **options: object) -> Fitted:
    """Fit a family's numbers, as its row of `FITS` does.

    Raises:
        UserError: no such family, or as its row.
    """
    if family not in FITS:
        raise UserError(f"--family {family}: choose from {', '.join(FITS)}")
    return FITS[family](data, engine, **options)


def write_fitted(fitted: Fitted, path: Path) -> None:
    """Write a fitted configuration, whole or not at all.

    Raises:
        UserError: the name does not end in .yaml, or it cannot be written.
    """
    if path.suffix not in (".yaml", ".yml"):
        raise UserError(f"--out {path}: a configuration is a .yaml file")
    content = fitted.model_dump(mode="json", exclude_none=True, exclude_defaults=False)
    write_text(path, yaml.safe_dump(content, sort_keys=False, width=96))

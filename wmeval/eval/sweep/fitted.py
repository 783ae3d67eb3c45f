"""Numbers that were fitted to trials are never scored on these."""

from __future__ import annotations

from pathlib import Path

from wmeval.datasets.checksums import sha256_of
from wmeval.envs.gauge.configurations import NAMES, Fitted, file_of, read_fitted
from wmeval.errors import UserError


def fitted_trials(config: str, engine: str, data: Path) -> tuple[str, ...]:
    """Trials of a recording that a configuration was fitted on; none of a named one's.

    Args:
        config: name of a configuration, or path of a fitted file.
        engine: whose; it stands for ``{engine}`` in the path.
        data: the recording to score on.

    Raises:
        UserError: the file does not say on which trials, or it was fitted on another recording, of
            which nobody knows what it shares with this one.
    """
    if config in NAMES:
        return ()
    path = file_of(config, engine)
    return trials_of(read_fitted(path), path, data)


def trials_of(fit: Fitted, path: str, data: Path) -> tuple[str, ...]:
    """`fitted_trials` of numbers that were read from a path.

    Raises:
        UserError: as `fitted_trials`.
    """
    of = fit.identified
    if of is None:
        raise UserError(
            f"{path}: it names no trials (identified.trials), so that none of {data.name} is known "
            "not to be fitted on: fit with `wmeval fit gauge`, or score against closed forms only"
        )
    if sha256_of(data) != of.sha256:
        raise UserError(
            f"{path}: fitted on {of.data} (sha256 {of.sha256[:12]}...), and {data} is another "
            "file: score on the one that was fitted on, whose fitted trials are left out"
        )
    return of.trials

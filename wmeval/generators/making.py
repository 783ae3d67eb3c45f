"""The making of a set, whatever its samples are: begun, shared out, resumed, retried, completed.

What makes one sample is a function found by name; it writes the sample and, last, its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wmeval.datasets import set_runs, sets
from wmeval.datasets.location import Location
from wmeval.datasets.sets import SetKind
from wmeval.envs import make_environment
from wmeval.envs.base import WorldEnv
from wmeval.errors import DiskError, UserError
from wmeval.jobs.executors import Executor, Needs, Outcome, make_executor
from wmeval.jobs.ledger import canonical
from wmeval.sim.render import gpus_of

Progress = Callable[[int, int, Outcome[Any] | None], None]
"""Called with (samples done, samples asked, what just ended or None at the start)."""


@dataclass(frozen=True)
class Made:
    """What the making of a set came to.

    Attributes:
        url: the set.
        made: samples made now.
        reused: samples that were there already, byte for byte as their rows say.
        failed: error by sample; a rerun tries them again.
        complete: all samples, of all shards, are there and ``manifest.json`` is written.
        content_hash: of the complete set (`wmeval.datasets.sets.content_hash`).
    """

    url: str
    made: tuple[int, ...]
    reused: tuple[int, ...]
    failed: Mapping[int, str]
    complete: bool
    content_hash: str | None = None


def make_set(
    place: Location,
    job: dict[str, Any],
    kind: SetKind,
    make: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    shard: str | tuple[int, int] | None = None,
    workers: int | None = None,
    executor: str = "local",
    ray_address: str | None = None,
    needs: Needs | None = None,
    timeout: float | None = None,
    max_bytes: int | None = None,
    order: Callable[[Any], Any] | None = None,
    retries: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Made:
    """Make the samples of a set that are missing; complete it when none is.

    Args:
        place: where the set lies.
        job: what it is made of (`set_runs.begin`).
        kind: what set it is.
        make: makes sample i, with its row, of ``items[i]``; importable.
        items: one per sample, in order.
        shard: "i/n": only the samples i, i + n, ...
        workers: processes; None: one per core; 0: none but this one (always so for ``memory://``).
        executor: row of `wmeval.jobs.executors.EXECUTORS`: where they run.
        ray_address: of a Ray cluster to join (`wmeval.jobs.ray_executor.RayExecutor`).
        needs: what one sample holds while it is made, where workers are placed.
        timeout: wall time [s] after which a sample is given up.
        max_bytes: memory beyond which a process is replaced after its sample.
        order: of an item: what is alike in it is made one after the other; None: as they come.
        retries: how often a sample is tried again whose failure may pass (not a `UserError`).
        overwrite: forget the set that is there.
        progress: see `Progress`.

    Returns:
        What was made; a failed sample does not stop the others.

    Raises:
        UserError: something else is there already, another run writes there, the disk is full,
            all samples fail alike, or the executor cannot work or its workers not see the place.
    """
    part, parts = set_runs.parse_shard(shard)
    runner = _executor(place, workers, executor, ray_address, needs, timeout, max_bytes)
    if overwrite and parts > 1:
        raise UserError("overwrite forgets the whole set: use it without shard.")
    with set_runs.claimed(place, part, parts):
        set_runs.begin(place, job, kind=kind, overwrite=overwrite)
        asked = range(part, len(items), parts)
        there = [i for i in asked if sets.is_whole(place, i, kind)]
        todo = sorted(set(asked) - set(there))
        turns = (
            todo if order is None else [i for _, i in sorted((order(items[i]), i) for i in todo)]
        )
        try:
            with runner:
                failed = _make(
                    place, kind, make, items, turns, len(asked), runner, retries, progress
                )
        finally:
            close_environment()
            set_runs.sweep(place, kind)
        faults = {str(o.fault): o.fault for o in failed.values()}
        fault = next(iter(faults.values()), None)
        if fault is not None and len(faults) == 1 and len(failed) == len(todo):
            raise fault  # The same for every sample: it lies in what was asked.
        complete = not failed and len(set_runs.readable_rows(place, len(items), kind)) == len(items)
        stated = set_runs.complete(place, kind) if complete else None
    return Made(
        place.url,
        tuple(i for i in todo if i not in failed),
        tuple(there),
        {i: str(o.error) for i, o in sorted(failed.items())},
        complete,
        stated,
    )


def _executor(
    place: Location,
    workers: int | None,
    name: str,
    address: str | None,
    needs: Needs | None,
    timeout: float | None,
    max_bytes: int | None,
) -> Executor:
    if place.url.startswith("memory://"):  # The memory file system is this process's own.
        if name != "local":
            raise UserError(
                f"{place.url} is the memory of this process: executor {name} needs a folder or URL "
                "that its workers reach"
            )
        workers = 0
    return make_executor(
        name,
        workers=workers,
        timeout=timeout,
        max_bytes=max_bytes,
        needs=needs,
        address=address,
        folder=place.path,
    )


def _make(
    place: Location,
    kind: SetKind,
    make: Callable[[Any], Any],
    items: Sequence[Any],
    todo: Sequence[int],
    asked: int,
    executor: Executor,
    retries: int,
    progress: Progress | None,
) -> dict[int, Outcome[Any]]:
    """Make samples; outcomes of those that failed in the end, each recorded in the set."""
    done = asked - len(todo)
    if progress is not None:
        progress(done, asked, None)
    failed: dict[int, Outcome[Any]] = {}
    numbers = list(todo)
    for left in range(retries, -1, -1):
        again: list[int] = []

        def on_outcome(
            unit: int,
            outcome: Outcome[Any],
            numbers: list[int] = numbers,
            again: list[int] = again,
            left: int = left,
        ) -> None:
            nonlocal done
            if isinstance(outcome.fault, DiskError):
                raise outcome.fault  # The next samples would meet it as well.
            number = numbers[unit]
            if not outcome.ok and left and outcome.fault is None:
                again.append(number)
                return
            if outcome.ok:
                set_runs.forget_failure(place, number)
            else:
                failed[number] = outcome
                set_runs.note_failure(place, number, str(outcome.error), kind)
            done += 1
            if progress is not None:
                progress(done, asked, outcome)

        executor.map(make, [items[i] for i in numbers], on_outcome=on_outcome)
        numbers = sorted(again)
        if not numbers:
            break
    return failed


def needs_of(settings: Mapping[str, Any]) -> Needs:
    """What making a sample holds: a core, and a GPU where ``renderer`` keeps one busy.

    Args:
        settings: ``renderer`` and ``renderer_options`` of the environment, as far as they are set.
    """
    options = settings.get("renderer_options")
    known = options if isinstance(options, Mapping) else {}  # What is wrong, the renderer says.
    return Needs(gpus=gpus_of(str(settings.get("renderer")), known))


# --- one environment per process ----------------------------------------------------------------

_environments: dict[str, WorldEnv] = {}


def kept_environment(env_id: str, **kwargs: Any) -> WorldEnv:
    """An environment; one is kept per process, since making a GL context takes long.

    Raises:
        UserError: unknown environment or arguments.
    """
    key = canonical({"env_id": env_id, **kwargs})
    if key not in _environments:
        close_environment()
        try:
            _environments[key] = make_environment(env_id, **kwargs)
        except TypeError as error:
            raise UserError(f"{env_id}: {error}") from error
    return _environments[key]


def close_environment() -> None:
    """Free the environment that this process keeps."""
    while _environments:
        _environments.popitem()[1].close()

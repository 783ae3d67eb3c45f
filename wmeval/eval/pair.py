"""Pairing: the same actions to a reference world and to candidates, and how far they part.

For every scene seed the reference is recorded once on a candidate's frames, and shared by all that
have the same clock and picture; every generation of every candidate is driven with the same actions
on the same clock and measured against it. Beside each number stand the checks that tell what it is
worth: the oracle on itself, the reference's own video through the same perception, and what
reducing the actions costs by itself.

A run is resumed by running it again: a finished case is a ``case.json`` that was written last.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wmeval.errors import UserError
from wmeval.eval import folders
from wmeval.eval.collect import DIMENSIONS, DRIVEN_FOR, collect
from wmeval.eval.reference import Reference, reduces_nothing
from wmeval.eval.results import CaseRecord, PairConfig, PairResults

__all__ = ["PairConfig", "Reference", "reduces_nothing", "run_pair", "run_pairs"]

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """One candidate's settings, its folder, and what it is now.

    Attributes:
        job: settings.
        out: its folder.
        fingerprints: (scene seed, generation) -> `Candidate.fingerprint`.
    """

    job: PairConfig
    out: Path
    fingerprints: Mapping[tuple[int, int], str]


def run_pair(
    config: PairConfig,
    out: str | Path,
    *,
    workers: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> PairResults:
    """Compare one candidate with a reference world: results.json and report.html in ``out``.

    Args:
        config: what is compared.
        out: folder; a run of the same settings that stands there is completed, and may be given
            more scene seeds or generations.
        workers: processes over scene seeds; 0 runs here.
        overwrite: forget what stands in ``out``.
        progress: called with one line per step.

    Returns:
        The results, as written.

    Raises:
        UserError: unknown names, a folder of other settings, or a candidate that failed; finished
            cases stay and are not repeated.
    """
    (results,) = run_pairs([config], out, workers=workers, overwrite=overwrite, progress=progress)
    return results


def run_pairs(
    configs: Sequence[PairConfig],
    out: str | Path,
    *,
    workers: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> tuple[PairResults, ...]:
    """Compare one or several candidates.

    One candidate's results lie in ``out`` itself. Several have a folder each, named after them, and
    ``out/report.html`` shows them side by side.

    Args:
        configs: one per candidate.
        out: folder, as in `run_pair`.
        workers: processes over scene seeds; 0 runs here.
        overwrite: forget what stands there.
        progress: called with one line per step.

    Raises:
        UserError: as in `run_pair`, or one candidate given twice.
    """
    from wmeval.eval.report import write_joint_report, write_report
    from wmeval.jobs.atomic import claim, write_text

    tell = progress or (lambda line: None)
    out = Path(out)
    seeds = list(dict.fromkeys(s for c in configs for s in c.scene_seeds))
    tell(
        f"{_count(len(seeds), 'scene')} x {_count(len(configs), 'candidate')}, "
        + (_count(workers, "worker") if workers else "in this process")
    )
    checked = [_checked(c) for c in configs]
    places = folders.candidate_folders([job for job, _ in checked], out)
    tasks = [Task(job, place, prints) for (job, prints), place in zip(checked, places, strict=True)]
    with claim(out):
        for task in tasks:
            folders.settle(task.out, task.job, overwrite=overwrite)
        seeds = list(dict.fromkeys(s for task in tasks for s in task.job.scene_seeds))
        _run(tasks, seeds, workers, tell)
        everything = []
        for task in tasks:
            results = collect(task.job, _cases(task))
            write_text(task.out / "results.json", results.to_json())
            write_report(results, task.out)
            everything.append(results)
        if len(tasks) > 1:
            folders.write_order(out, places)
            write_joint_report(everything, places, out)
    tell(f"report: {out / 'report.html'}")
    return tuple(everything)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


# --- what is refused before a folder is touched -------------------------------------------------


def _checked(config: PairConfig) -> tuple[PairConfig, dict[tuple[int, int], str]]:
    """The settings in full, and the fingerprints of every generation."""
    from wmeval.envs import environment_row
    from wmeval.envs.candidates import parse_candidate
    from wmeval.envs.plans import load_plan

    row = environment_row(config.env_id)
    plan = load_plan(row.id, config.plan)
    view = config.view or str(plan.reset_options.get("view", "static"))
    job = config.model_copy(update={"env_id": row.id, "view": view})
    if job.suite is not None:
        job = _from_suite(job, job.suite)
    candidate = parse_candidate(job.candidate)
    cases = {seed: case_of(job, seed) for seed in job.scene_seeds}
    candidate.check(cases[job.scene_seeds[0]])
    wanted = [(seed, generation) for seed in cases for generation in range(job.generations)]
    if candidate.kind == "video":
        _check_clips(job, [candidate(cases[seed], generation=g) for seed, g in wanted])
    return job, {key: candidate.fingerprint(cases[key[0]], key[1]) for key in wanted}


def _check_clips(job: PairConfig, clips: Sequence[Any]) -> None:
    """Refuse clips made elsewhere when some are missing, unless none of them is asked for."""
    missing = [clip.path for clip in clips if not clip.path.is_file()]
    if not missing:
        return
    case = case_of(job, job.scene_seeds[0])
    with case.open() as env:
        if not set(_ineligible(case, env, clips[0].spec)) >= DRIVEN_FOR:
            raise UserError(
                f"candidate {job.candidate!r}: {len(missing)} of {len(clips)} clips are missing, "
                f"{missing[0]} first; `wmeval cases check` names all: add them, or ask for fewer "
                "scene seeds and generations"
            )


def _suite_cases(job: PairConfig, folder: str) -> list[Any]:
    """The suite's own cases of the job's environment and plan: frozen cards, not today's."""
    from wmeval.datasets.suite import read_suite
    from wmeval.envs.case import Case

    suite = read_suite(folder, verify=False)
    cases = [Case.model_validate(dict(entry.case)) for entry in suite.cases()]
    return [c for c in cases if c.env_id == job.env_id and c.plan.name == job.plan]


def _from_suite(job: PairConfig, folder: str) -> PairConfig:
    """The settings with the suite's own seeds, view, size, arguments and content hash.

    Raises:
        UserError: a damaged suite, or one without a case of this plan.
    """
    from wmeval.datasets.suite import read_suite

    suite = read_suite(folder)
    cases = _suite_cases(job, folder)
    if not cases:
        raise UserError(
            f"suite {folder} has no case of {job.env_id} with plan {job.plan!r}; it has "
            f"{', '.join(suite.case_ids)}"
        )
    shared = {k: getattr(cases[0], k) for k in ("view", "width", "height", "env_kwargs")}
    if any(getattr(c, k) != v for c in cases for k, v in shared.items()):
        raise UserError(f"suite {folder}: its cases of {job.plan!r} differ in view or size")
    seeds = tuple(sorted(c.scene_seed for c in cases))
    return job.model_copy(
        update={**shared, "scene_seeds": seeds, "suite_content": suite.content_hash}
    )


def _cases(task: Task) -> list[CaseRecord]:
    found = [_finished(task, *key) for key in task.fingerprints]
    cases = [case for case in found if isinstance(case, CaseRecord)]
    if len(cases) < len(found):
        why = next(case for case in found if isinstance(case, str)) or "a case vanished"
        raise UserError(f"{task.out}: {why}; run it again")
    return cases


def _folder(task: Task, seed: int, generation: int) -> Path:
    case_id: str = case_of(task.job, seed).case_id
    return folders.case_folder(task.out, case_id) / f"g{generation:02d}"


def _finished(task: Task, seed: int, generation: int) -> CaseRecord | str:
    fingerprint = task.fingerprints[seed, generation]
    return folders.finished(_folder(task, seed, generation), fingerprint)


# --- one scene seed -----------------------------------------------------------------------------


def _run(tasks: Sequence[Task], seeds: Sequence[int], workers: int, tell: Progress) -> None:
    from wmeval.jobs.executors import LocalExecutor, Outcome

    if not workers:
        for seed in seeds:
            run_seed(tasks, seed, tell)
        return
    with _relayed(tell) as journal:

        def ended(k: int, outcome: Outcome[None]) -> None:
            how = f"done in {outcome.seconds:.0f} s" if outcome.ok else "failed"
            # Through the journal, so that it stands after what the worker said.
            with open(journal, "a", encoding="utf-8") as stream:
                print(f"seed {seeds[k]}: {how}", file=stream)

        outcomes = LocalExecutor(workers=workers).map(
            partial(_run_unit, tasks, journal), seeds, on_outcome=ended
        )
    failed = next((o for o in outcomes if not o.ok), None)
    if failed is not None:
        # A worker that died is no fault of the input.
        raise failed.fault or RuntimeError(f"{failed.error}\n{failed.details}")


@contextmanager
def _relayed(tell: Progress) -> Iterator[str]:
    """A file whose lines, whichever process appends them, are told here as they come."""
    done = threading.Event()
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", prefix="wmeval-") as stream:

        def follow() -> None:
            last = False
            while not last:
                last = done.wait(0.2)
                while line := stream.readline():
                    tell(line.rstrip("\n"))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield stream.name
        finally:
            done.set()
            thread.join()


def _run_unit(tasks: Sequence[Task], journal: str, seed: int) -> None:
    with open(journal, "a", encoding="utf-8", buffering=1) as stream:
        run_seed(tasks, seed, lambda line: print(line, file=stream))


def case_of(job: PairConfig, seed: int) -> Any:
    """The `wmeval.envs.case.Case` of one scene seed."""
    from wmeval.envs.case import Case
    from wmeval.envs.plans import load_plan

    if job.suite is not None:
        return next(c for c in _suite_cases(job, job.suite) if c.scene_seed == seed)
    return Case(
        env_id=job.env_id,
        env_kwargs=job.env_kwargs,
        scene_seed=seed,
        plan=load_plan(job.env_id, job.plan),
        view=job.view,
        width=job.width,
        height=job.height,
    )


def run_seed(tasks: Sequence[Task], seed: int, tell: Progress) -> None:
    """All generations of all candidates on one scene seed; finished ones are left alone."""
    with ExitStack() as stack:
        references: dict[str, Reference] = {}
        environments: dict[str, Any] = {}
        for task in tasks:
            if seed in task.job.scene_seeds:
                _run_candidate(task, seed, tell, references, environments, stack)


def _run_candidate(
    task: Task,
    seed: int,
    tell: Progress,
    references: dict[str, Reference],
    environments: dict[str, Any],
    stack: ExitStack,
) -> None:
    from wmeval.envs.adapters import make_adapter
    from wmeval.envs.candidates import parse_candidate
    from wmeval.envs.wrapper import drive

    job = task.job
    stand = {g: _finished(task, seed, g) for g in range(job.generations)}
    todo = [g for g, found in stand.items() if isinstance(found, str)]
    if not todo:
        return
    for g in todo:
        if stand[g]:
            tell(f"seed {seed}, generation {g}: {stand[g]}: it is made again")
    candidate = parse_candidate(job.candidate)
    case = case_of(job, seed)
    if case.case_id not in environments:
        environments[case.case_id] = stack.enter_context(case.open())
    env = environments[case.case_id]
    model = candidate(case, generation=todo[0])
    try:
        spec = model.spec
        case.reset(env)
        actions = case.actions(env)
        context = case.context(env, spec)
        period = env.clock.control_period
        reasons = _ineligible(case, env, spec)
        key = Reference.key(job, case, spec)
        if key not in references:
            tell(f"seed {seed}: reference, {spec.fps} fps")
            references[key] = Reference.record(env, case, spec, actions, job, task.out)
        reference = references[key].at(task.out)
        channels = case.channels(env, reference.truth.log)
        adapter = make_adapter(spec, channels, control_period=period, prompt=case.plan.prompt)
        made = todo[0]
        # The reference stands anew: where nothing else was wrong, a generation stands with it.
        for generation in [g for g in todo if isinstance(_finished(task, seed, g), str)]:
            folder = _folder(task, seed, generation)
            if generation != made:
                model.close()
                model, made = candidate(case, generation=generation), generation
            tell(f"seed {seed}, generation {generation}: {spec.name}")
            clip = None
            if not set(reasons) >= DRIVEN_FOR:
                clip = drive(model, adapter, actions, context, seed=generation)
            record = reference.compare(
                clip, generation, candidate.kind, task.fingerprints[seed, generation], spec,
                reasons, folder,
            )  # fmt: skip
            folders.seal_case(folder, record)
    finally:
        model.close()


def _ineligible(case: Any, env: Any, spec: Any) -> dict[str, str]:
    from wmeval.envs.adapters import ineligible

    moves = case.channels(env).moves
    found = {d: ineligible(env.ID, d, spec, moves) for d in DIMENSIONS}
    return {d: reason for d, reason in found.items() if reason is not None}

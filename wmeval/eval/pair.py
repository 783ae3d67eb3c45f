"""Pairing: the same actions to a reference world and to candidates, and how far they part.

For every scene seed the reference is recorded once on a candidate's frames, and shared by all that
have the same clock and picture; every generation of every candidate is driven with the same actions
on the same clock and measured against it. Beside each number stand the checks that tell what it is
worth: the oracle on itself, the reference's own video through the same perception, and what
reducing the actions costs by itself.

A run is resumed by running it again: a finished case is a ``case.json`` that was written last.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from wmeval.errors import UserError
from wmeval.eval.collect import DIMENSIONS, collect
from wmeval.eval.reference import Reference, reduces_nothing
from wmeval.eval.results import CaseRecord, PairConfig, PairResults, dumps

__all__ = ["PairConfig", "Reference", "reduces_nothing", "run_pair", "run_pairs"]

Progress = Callable[[str], None]
Task = tuple[PairConfig, Path]
"""One candidate's settings and its folder."""


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
    from wmeval.jobs.atomic import write_text
    from wmeval.jobs.executors import LocalExecutor

    tell = progress or (lambda line: None)
    out = Path(out)
    jobs = [_resolved(c) for c in configs]
    tasks = list(zip(jobs, _folders(jobs, out), strict=True))
    for job, folder in tasks:
        _claim(folder, job, overwrite=overwrite)
    seeds = list(dict.fromkeys(s for job in jobs for s in job.scene_seeds))
    if workers:
        texts = tuple((job.model_dump_json(), str(folder)) for job, folder in tasks)
        outcomes = LocalExecutor(workers=workers).map(partial(_run_unit, texts), seeds)
        failed = [o.error for o in outcomes if not o.ok]
        if failed:
            raise UserError(str(failed[0]))
    else:
        for seed in seeds:
            run_seed(tasks, seed, tell)
    everything = []
    for job, folder in tasks:
        results = collect(job, _cases(job, folder))
        write_text(folder / "results.json", results.to_json())
        write_report(results, folder)
        everything.append(results)
    if len(tasks) > 1:
        write_joint_report(everything, [folder for _, folder in tasks], out)
    tell(f"report: {out / 'report.html'}")
    return tuple(everything)


# --- the run's folders --------------------------------------------------------------------------

_GROWS = ("scene_seeds", "generations")


def _resolved(config: PairConfig) -> PairConfig:
    from wmeval.envs import environment_row
    from wmeval.envs.candidates import parse_candidate
    from wmeval.envs.plans import load_plan

    row = environment_row(config.env_id)
    load_plan(row.id, config.plan)
    job = config.model_copy(update={"env_id": row.id})
    if job.suite is not None:
        job = _from_suite(job, job.suite)
    candidate = parse_candidate(job.candidate)
    case = case_of(job, job.scene_seeds[0])
    # What can be refused is refused here, before a folder is touched.
    with case.open():
        candidate(case).close()
    return job


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


def _folders(jobs: Sequence[PairConfig], out: Path) -> list[Path]:
    if len(jobs) == 1:
        return [out]
    names = [re.sub(r"[^A-Za-z0-9.=_-]+", "_", job.candidate)[:100] for job in jobs]
    twice = [job.candidate for job, n in zip(jobs, names, strict=True) if names.count(n) > 1]
    if twice:
        raise UserError(f"candidate {twice[0]!r} is given twice")
    if (out / "config.yaml").exists():
        raise UserError(f"{out} holds one candidate's comparison; choose another --out")
    return [out / name for name in names]


def _claim(out: Path, job: PairConfig, *, overwrite: bool) -> None:
    """Make the folder this job's, or refuse."""
    from wmeval.jobs.atomic import write_text

    path = out / "config.yaml"
    if overwrite and path.exists():
        shutil.rmtree(out)
    if path.exists():
        try:
            old = PairConfig.model_validate(yaml.safe_load(path.read_text("utf-8")))
        except (yaml.YAMLError, ValidationError) as error:
            raise UserError(
                f"{path}: not a comparison's settings ({error}); choose another --out"
            ) from error
        for name in PairConfig.model_fields:
            if name not in _GROWS and getattr(old, name) != getattr(job, name):
                raise UserError(
                    f"{path}: {name} is {getattr(old, name)!r} there and {getattr(job, name)!r} "
                    "now; choose another --out, or --overwrite"
                )
    elif out.is_dir() and any(out.iterdir()):
        raise UserError(f"{out}: not empty and not a comparison; choose another --out")
    write_text(path, yaml.safe_dump(job.model_dump(mode="json"), sort_keys=False))


def _folder(out: Path, job: PairConfig, seed: int, generation: int) -> Path:
    case_id: str = case_of(job, seed).case_id
    return out / "cases" / case_id / f"g{generation:02d}"


def _finished(folder: Path) -> CaseRecord | None:
    """The record of a case that was finished; None when it has to be done (again)."""
    try:
        record = CaseRecord.model_validate_json((folder / "case.json").read_text("utf-8"))
    except (OSError, ValidationError):
        return None
    root = folder.parents[2]
    return record if all((root / f).is_file() for f in record.files.values()) else None


def _cases(job: PairConfig, folder: Path) -> list[CaseRecord]:
    found = [
        _finished(_folder(folder, job, seed, generation))
        for seed in job.scene_seeds
        for generation in range(job.generations)
    ]
    cases = [case for case in found if case is not None]
    if len(cases) < len(found):
        raise UserError(f"{folder}: {len(found) - len(cases)} cases vanished; run it again")
    return cases


# --- one scene seed -----------------------------------------------------------------------------


def _run_unit(texts: Sequence[tuple[str, str]], seed: int) -> None:
    tasks = [(PairConfig.model_validate_json(text), Path(out)) for text, out in texts]
    run_seed(tasks, seed, lambda line: None)


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
        for job, out in tasks:
            if seed in job.scene_seeds:
                _run_candidate(job, out, seed, tell, references, environments, stack)


def _run_candidate(
    job: PairConfig,
    out: Path,
    seed: int,
    tell: Progress,
    references: dict[str, Reference],
    environments: dict[str, Any],
    stack: ExitStack,
) -> None:
    from wmeval.envs.adapters import channels_of, make_adapter
    from wmeval.envs.candidates import parse_candidate
    from wmeval.envs.wrapper import drive
    from wmeval.jobs.atomic import write_text

    todo = [g for g in range(job.generations) if _finished(_folder(out, job, seed, g)) is None]
    if not todo:
        return
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
        adapter = make_adapter(
            spec, channels_of(env), control_period=period, prompt=case.plan.prompt
        )
        reasons = _ineligible(env, spec)
        key = Reference.key(job, case, spec)
        if key not in references:
            tell(f"seed {seed}: reference, {spec.fps} fps")
            references[key] = Reference.record(env, case, spec, actions, job, out)
        reference = references[key].at(out)
        for generation in todo:
            folder = _folder(out, job, seed, generation)
            if generation != todo[0]:
                model.close()
                model = candidate(case, generation=generation)
            tell(f"seed {seed}, generation {generation}: {spec.name}")
            clip = None
            if not set(DIMENSIONS) <= set(reasons):
                clip = drive(model, adapter, actions, context, seed=generation)
            record = reference.compare(clip, generation, candidate.kind, spec, reasons, folder)
            write_text(folder / "case.json", dumps(record))
    finally:
        model.close()


def _ineligible(env: Any, spec: Any) -> dict[str, str]:
    from wmeval.envs.adapters import channels_of, ineligible

    moves = channels_of(env).moves
    found = {d: ineligible(env.ID, d, spec, moves) for d in DIMENSIONS}
    return {d: reason for d, reason in found.items() if reason is not None}

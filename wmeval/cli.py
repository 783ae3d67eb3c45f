"""The ``wmeval`` command: thin. Every command calls one documented function with a typed result.

Exit codes: 0 done, 1 done with failures (they are listed), 2 bad input (the message says how to
mend it), 130 stopped from the keyboard.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import yaml

from wmeval.errors import UserError, first_problem, one_line

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(
    rich_markup_mode=None,  # brackets of our texts are no markup
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reference worlds, matched rollouts and fidelity metrics for world models and engines.",
)
generate_app = typer.Typer(no_args_is_help=True, help="Make many: sets of rollouts, of clips.")
suite_app = typer.Typer(no_args_is_help=True, help="Frozen sets of cases under one content hash.")
cases_app = typer.Typer(no_args_is_help=True, help="Hand cases to a cluster and take clips back.")
app.add_typer(generate_app, name="generate")
app.add_typer(suite_app, name="suite")
app.add_typer(cases_app, name="cases")
data_app = typer.Typer(no_args_is_help=True, help="Measured motion: fetch it, look into it.")
app.add_typer(data_app, name="data")
sweep_app = typer.Typer(help="Physics engines against what is true.")
app.add_typer(sweep_app, name="sweep")
fit_app = typer.Typer(no_args_is_help=True, help="Engines' numbers from one half of real data.")
app.add_typer(fit_app, name="fit")


# --- reading of options -------------------------------------------------------------------------


def parse_size(text: str) -> tuple[int, int]:
    """Size (640, 352) of the text "640x352".

    Raises:
        UserError: not two whole numbers in 16..8192.
    """
    try:
        width, height = (int(part) for part in text.lower().split("x"))
    except ValueError as error:
        raise UserError(f"size {text!r}: write WIDTHxHEIGHT, for example 640x352") from error
    if not (16 <= width <= 8192 and 16 <= height <= 8192):
        raise UserError(f"size {text!r}: each side lies in 16..8192 px")
    return width, height


MAX_SEEDS, END_OF_SEEDS = 100_000, 2**31


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds (0, 1, 2, 3, 4) of the text "0:5", (0, 3, 7) of "0,3,7".

    Raises:
        UserError: no ascending range and no list of whole numbers below `END_OF_SEEDS`, or more
            than `MAX_SEEDS`.
    """
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            # One too many is enough to see.
            seeds = tuple(range(first, min(last, first + MAX_SEEDS + 1)))
        else:
            seeds = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UserError(f"seeds {text!r}: write FIRST:END or a list like 0,3,7") from error
    if not seeds or min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise UserError(f"seeds {text!r}: give at least one, none below 0, none twice")
    if len(seeds) > MAX_SEEDS or max(seeds) >= END_OF_SEEDS:
        raise UserError(f"seeds {text!r}: give at most {MAX_SEEDS}, each below {END_OF_SEEDS}")
    return seeds


def parse_settings(
    pairs: Sequence[str] | None, options: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """["ball_count=20", "dt=1/480"] -> values read as YAML.

    Args:
        pairs: as the user wrote them.
        options: names that an option of the command sets, with that option.

    Raises:
        UserError: not NAME=VALUE, or a name that belongs to an option.
    """
    out: dict[str, Any] = {}
    for pair in pairs or ():
        name, mark, value = pair.partition("=")
        if not (name and mark):
            raise UserError(f"--set {pair!r}: write NAME=VALUE")
        if name in options:
            raise UserError(f"--set {pair!r}: write {options[name]} instead")
        try:
            out[name] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise UserError(f"--set {pair!r}: the value is not YAML: {error}") from error
    return out


_SIZED = {"width": "--size WIDTHxHEIGHT", "height": "--size WIDTHxHEIGHT"}
"""Arguments of an environment that every command sets by an option of its own."""


EnvId = Annotated[str, typer.Argument(help="Environment, e.g. WMEval/BeamDomino-v0.")]
Plan = Annotated[str, typer.Option("--plan", help="Name of a plan card; see `wmeval list plans`.")]
Out = Annotated[Path, typer.Option("--out", help="Folder to write; complete or absent.")]
SceneSeeds = Annotated[
    str, typer.Option("--scene-seeds", help="Seeds of references: FIRST:END or a list.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=END_OF_SEEDS - 1, help="Scene seed.")]
Size = Annotated[str, typer.Option("--size", help="Picture size, WIDTHxHEIGHT.")]
EngineName = Annotated[
    str | None, typer.Option("--engine", help="Row of `wmeval list engines`; default: the scene's.")
]
View = Annotated[
    str | None,
    typer.Option("--view", help="Camera: static, top, ...; default: the plan's, else the scene's."),
]
Fps = Annotated[str, typer.Option("--fps", help="Frames per second, exact: 24, 24000/1001.")]
MaxSteps = Annotated[
    int | None, typer.Option("--max-steps", min=1, help="Actions until an early stop.")
]
ExecutorName = Annotated[
    str, typer.Option("--executor", help="local, or ray: the processes of a Ray cluster.")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        help="Cluster to join, HOST:PORT or auto; default: RAY_ADDRESS, else one is started.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what stands at --out.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Constructor argument of the environment, NAME=VALUE; repeatable."),
]


def _table(*columns: str, rows: Sequence[Sequence[str]], title: str | None = None) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _print(what: Table | str) -> None:
    # Text keeps whole lines, and its brackets: a script reads them.
    if isinstance(what, str):
        typer.echo(what)
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False, markup=False, emoji=False).print(what)


# --- looking around -----------------------------------------------------------------------------


@app.command("list")
def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="envs, plans, engines, renderers, candidates, adapters, layers, metrics, "
            "families, truths or published."
        ),
    ] = "envs",
) -> None:
    """Show what there is: environments with the dimensions they serve, plans, engines, ..."""
    from wmeval import tables

    title, columns, rows = tables.listing(what)
    _print(_table(*columns, rows=rows, title=title))


@app.command()
def doctor() -> None:
    """Say what is installed, which GL driver draws, which engines run, and what mends the rest."""
    from wmeval.doctor import diagnose, parts

    wide = max(map(len, parts()))
    well = True
    # Line by line: a probe may take a minute, and what is known already should be seen.
    for f in diagnose():
        line = f"{f.part:{wide}}  {f.status:7}  {one_line(f.detail, 200)}"
        _print(line + (f"; mend with: {f.mend}" if f.mend else ""))
        sys.stdout.flush()
        well = well and not (f.needed and f.status != "ok")
    if not well:
        raise typer.Exit(1)


@app.command()
def install(
    names: Annotated[
        list[str] | None, typer.Argument(help="Environments; see `wmeval install --list`.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show what can be installed.")] = False,
    python: Annotated[
        str | None, typer.Option("--python", help="Interpreter to make them from.")
    ] = None,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Make them anew, with the newest fitting versions.")
    ] = False,
) -> None:
    """Put heavy engines (Blender, Newton, ...) into virtual environments of their own."""
    from wmeval.jobs import installed

    if listed or not names:
        rows = [
            (
                row.name,
                "by hand" if row.by_hand else f"{row.size_mb} MB",
                installed.version(row.name) or "-",
                row.summary,
            )
            for row in installed.ENVIRONMENTS.values()
        ]
        title = f"environments, in {installed.home()}"
        _print(_table("name", "on disk", "version", "what", rows=rows, title=title))
        return
    for name in dict.fromkeys(names):
        installed.environment(name)
    for name in dict.fromkeys(names):
        folder = installed.install(
            name,
            python=python,
            upgrade=upgrade,
            progress=lambda line: typer.echo(one_line(line, 160), err=True),
        )
        found = (installed.recorded(name) or {}).get("versions", {})
        versions = ", ".join(
            f"{p} {found.get(p, '?')}" for p in installed.environment(name).packages
        )
        _print(f"{folder}: {versions}")


# --- recording ----------------------------------------------------------------------------------


@app.command()
def rollout(
    env_id: EnvId,
    out: Out,
    plan: Annotated[
        str, typer.Option("--plan", help="Name of a plan card; see `wmeval list plans`.")
    ] = "",
    policy: Annotated[
        str, typer.Option("--policy", help="Instead of a plan: random or explorer.")
    ] = "",
    seed: Seed = 0,
    engine: EngineName = None,
    size: Size = "640x352",
    layers: Annotated[
        str, typer.Option(help="Layers kept without loss in rollout.h5, comma-separated.")
    ] = "depth,ids",
    view: View = None,
    fps: Fps = "24",
    max_steps: MaxSteps = None,
    overwrite: Overwrite = False,
    settings: Set = None,
) -> None:
    """Record one reference rollout: rollout.h5, video.mp4, summary.json, config.yaml."""
    from wmeval.generators.rollout_folder import RolloutConfig, make_rollout_folder

    width, height = parse_size(size)
    config = RolloutConfig(
        env_id=env_id,
        plan=plan,
        policy=policy,
        seed=seed,
        engine=engine,
        width=width,
        height=height,
        layers=tuple(x for x in layers.split(",") if x),
        view=view or "",
        fps=fps,
        max_steps=max_steps,
        env_kwargs=parse_settings(settings, {**_SIZED, "engine": "--engine NAME"}),
    )
    _report_rollout(make_rollout_folder(config, out, overwrite=overwrite))


def _report_rollout(done: Any) -> None:
    facts = done.summary
    _print(
        f"{done.path}: {facts['duration_s']:.2f} s, {facts['states']} states, "
        f"{facts['frames']} frames, {facts['contacts']} contact points"
        + (f", shape {facts['shape']}" if facts.get("shape") else "")
        + (" (already complete)" if done.reused else "")
    )


@app.command()
def rerun(
    folder: Annotated[Path, typer.Argument(help="Folder that `wmeval rollout` left.")],
    out: Out,
    overwrite: Overwrite = False,
) -> None:
    """Make a rollout folder again from its config.yaml; equal versions give equal bytes."""
    from wmeval.generators.rollout_folder import RolloutConfig, make_rollout_folder

    path = folder / "config.yaml"
    if not path.is_file():
        what = "has no config.yaml" if folder.is_dir() else "is no folder"
        raise UserError(f"{folder} {what}: give a folder that `wmeval rollout` left")
    try:
        document = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(document, dict):
        raise UserError(f"{path} holds no configuration")
    config = RolloutConfig.from_document(document, str(path))
    _report_rollout(make_rollout_folder(config, out, overwrite=overwrite))


@app.command()
def validate(
    path: Annotated[str, typer.Argument(help="A file, folder or URL that wmeval wrote.")],
    workers: Annotated[
        int, typer.Option(min=0, max=1024, help="Processes for the samples of a set; 0: this one.")
    ] = 0,
) -> None:
    """Re-check every checksum, table and video of a file, folder or store.

    A set that is not complete is no fault: it is said how many samples are there and failed.
    """
    from wmeval.datasets.validate import examine

    found = examine(path, workers=workers)
    for line in (*found.problems, *(f"note: {note}" for note in found.notes)):
        _print(one_line(line))
    for line in found.unfinished:
        _print(one_line(f"not complete: {line}"))
    if found.problems:
        typer.echo(f"error: {path}: {_many(len(found.problems), 'problem')}", err=True)
        raise typer.Exit(2)
    _print(f"{path}: valid" + (" so far, not complete" if found.unfinished else ""))


# --- many ---------------------------------------------------------------------------------------


@generate_app.command("rollouts")
def generate_rollouts(
    env: Annotated[str, typer.Option("--env", help="Environment.")],
    out: Annotated[str, typer.Option("--out", help="Folder or fsspec URL of the set.")],
    policy: Annotated[str, typer.Option(help="random, explorer, plan or replay.")] = "random",
    episodes: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many.")] = 1,
    plan: Annotated[
        list[str] | None, typer.Option("--plan", help="Plans for --policy plan; default: all.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Set or rollout that --policy replay repeats.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=END_OF_SEEDS - 1, help="Seed of episode 0.")
    ] = 0,
    workers: Annotated[
        int | None, typer.Option(min=0, max=1024, help="Processes; default: one per core.")
    ] = None,
    size: Size = "640x352",
    layers: Annotated[str, typer.Option(help="Layers to keep, comma-separated.")] = "",
    video: Annotated[bool, typer.Option(help="Write an mp4 beside each rollout.")] = True,
    view: View = None,
    fps: Annotated[str | None, typer.Option(help="Frame rate; default: one per action.")] = None,
    max_steps: MaxSteps = None,
    backend: Annotated[str, typer.Option(help="hdf5 or zarr.")] = "hdf5",
    executor: ExecutorName = "local",
    ray_address: RayAddress = None,
    shard: Annotated[str | None, typer.Option(help="i/n: only every n-th episode.")] = None,
    overwrite: Overwrite = False,
    settings: Set = None,
) -> None:
    """Make a set of action-labelled rollouts, in parallel; run it again to go on."""
    from wmeval.generators import rollouts

    with _Bar("episodes") as bar:
        done = rollouts.generate_rollouts(
            env,
            policy,
            episodes,
            out,
            plan=plan,
            source=source,
            seed0=seed,
            workers=workers,
            size=parse_size(size),
            layers=layers,
            video=video,
            view=view,
            fps=fps,
            max_steps=max_steps,
            backend=backend,
            executor=executor,
            ray_address=ray_address,
            shard=shard,
            overwrite=overwrite,
            env_kwargs=parse_settings(settings, _SIZED),
            progress=lambda count, total, _: bar.at(count, total),
        )
    _report_set(done, "episode")


@generate_app.command("rigidbench")
def generate_rigidbench(
    out: Annotated[str, typer.Option("--out", help="Folder or fsspec URL of the set.")],
    manifest: Annotated[
        str, typer.Option("--manifest", help="eval, train, or a file in the published form.")
    ] = "eval",
    quality: Annotated[str, typer.Option(help="draft, preview or paper.")] = "draft",
    renderer: Annotated[str, typer.Option(help="raster or cycles.")] = "raster",
    physics: Annotated[str, typer.Option(help="bullet, bullet-faithful or blender.")] = "bullet",
    format: Annotated[
        str, typer.Option("--format", help="store, or bundle: the published files of each clip.")
    ] = "store",
    materialize: Annotated[
        str,
        typer.Option(
            help="Store what readers derive: flow, normals, tracks, boxes, amodal_masks "
            "(comma-separated), or all."
        ),
    ] = "",
    exr: Annotated[
        bool, typer.Option("--exr", help="Of bundles: EXR streams of object index and depth, too.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=0, max=1024, help="Processes; default: one per core.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many rows.")] = None,
    tasks: Annotated[str, typer.Option(help="Only these tasks, comma-separated.")] = "",
    each: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many rows of each task.")
    ] = None,
    executor: ExecutorName = "local",
    ray_address: RayAddress = None,
    shard: Annotated[str | None, typer.Option(help="i/n: only every n-th row.")] = None,
    assets: Annotated[
        Path | None, typer.Option(help="Folder of your own cards, which replace ours.")
    ] = None,
    hold_back: Annotated[
        list[Path] | None,
        typer.Option(
            "--hold-back", help="Manifest or suite whose seeds stay out of training; repeatable."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=END_OF_SEEDS - 1, help="Of our own manifests.")
    ] = 0,
    width: Annotated[int | None, typer.Option(min=16, max=8192, help="Of the pictures.")] = None,
    height: Annotated[int | None, typer.Option(min=16, max=8192, help="Of the pictures.")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=1, help="Seconds after which a clip is given up.")
    ] = None,
    overwrite: Overwrite = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost; make nothing.")
    ] = False,
    price: Annotated[
        float | None, typer.Option(min=0, help="Of a core-hour, for --dry-run to tell the cost.")
    ] = None,
) -> None:
    """Make a set of clips of five rigid tasks, in parallel; run it again to go on."""
    from wmeval.generators import rigidbench

    asked: dict[str, Any] = {
        "quality": quality,
        "limit": limit,
        "tasks": [name for name in map(str.strip, tasks.split(",")) if name],
        "each": each,
        "assets": assets,
        "hold_back": hold_back or (),
        "seed": seed,
        "width": width,
        "height": height,
    }
    if dry_run:
        from wmeval.generators.estimate import estimate

        if materialize:
            raise UserError(
                "--dry-run knows the cost of clips without --materialize: leave that out"
            )
        title, columns, rows, notes = estimate(manifest, shard=shard, price=price, **asked)
        _print(_table(*columns, rows=rows, title=title))
        for note in notes:
            _print(note)
        return
    with _Bar("clips", rate=True) as bar:
        done = rigidbench.generate_rigidbench(
            manifest,
            out,
            renderer=renderer,
            physics=physics,
            format=format,
            materialize=[name for name in map(str.strip, materialize.split(",")) if name],
            exr=exr,
            workers=workers,
            executor=executor,
            ray_address=ray_address,
            shard=shard,
            timeout=timeout,
            overwrite=overwrite,
            progress=bar.outcome,
            **asked,
        )
    _report_set(done, "clip", f", {bar.rate}" if bar.rate else "")


def _report_set(done: Any, what: str, more: str = "") -> None:
    _print(
        f"{done.url}: {len(done.made)} made{more}, {len(done.reused)} there already, "
        f"{len(done.failed)} failed"
        + (f", content hash {done.content_hash}" if done.complete else "; not complete yet")
    )
    for number, error in done.failed.items():
        typer.echo(one_line(f"{what} {number}: {error}"), err=True)
    if done.failed:
        raise typer.Exit(1)


@app.command()
def merge(
    out: Annotated[str, typer.Argument(help="The set to complete.")],
    parts: Annotated[list[str] | None, typer.Argument(help="Shards that worked elsewhere.")] = None,
) -> None:
    """Join the shards of a set, check that none is missing, write its manifest."""
    from wmeval.datasets.set_runs import merge_set

    _print(f"{merge_set(out, parts or [])}: complete")


@app.command()
def describe(
    source: Annotated[str, typer.Argument(metavar="SET", help="Set of clips, complete or not.")],
    url: Annotated[str, typer.Option(help="Where it can be had, https://...")] = "",
    creator: Annotated[str, typer.Option(help="Who publishes it.")] = "",
    date: Annotated[str, typer.Option(help="Of publication, YYYY-MM-DD.")] = "",
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Also replace what was changed by hand or said before."),
    ] = False,
) -> None:
    """Write a set's card (README.md, croissant.json) and its page to look at (index.html)."""
    from wmeval.datasets.card import describe_set
    from wmeval.datasets.croissant import Publication

    done = describe_set(
        source,
        publication=Publication(url=url, creator=creator, date=date),
        overwrite=overwrite,
    )
    _print(f"{done.url}: {_many(done.clips, done.what)} described")
    for name in done.kept:
        _print(f"{name}: changed by hand, left as it is; --overwrite replaces it")


@app.command()
def export(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT", help="bundle, webdataset, diffsynth, minari, lerobot or hf."
        ),
    ],
    source: Annotated[str, typer.Argument(metavar="SRC", help="Set of clips or of rollouts.")],
    out: Annotated[str, typer.Argument(metavar="DST", help="Folder or fsspec URL to write.")],
    split: Annotated[str | None, typer.Option(help="Only clips of this split.")] = None,
    task: Annotated[str | None, typer.Option(help="Only clips of this task.")] = None,
    exr: Annotated[
        bool, typer.Option("--exr", help="Of bundles: EXR streams of object index and depth, too.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a set in a format that others read."""
    from wmeval.datasets import exports

    with _Bar("samples") as bar:
        done = exports.export(
            name,
            source,
            out,
            split=split,
            task=task,
            overwrite=overwrite,
            exr=exr,
            progress=bar.at,
        )
    _print(f"{done.url}: {_many(done.samples, 'sample')} as {name}")


# --- measured motion ----------------------------------------------------------------------------


@data_app.command("list")
def data_list() -> None:
    """Show what can be fetched, with its terms."""
    from wmeval.datasets.mocap import SOURCES
    from wmeval.datasets.mocap.sources import data_home

    rows = [(s.name, s.title, s.licence, s.url, s.commit[:12]) for s in SOURCES.values()]
    title = f"public motion capture, fetched to {data_home()}"
    _print(_table("name", "what", "licence", "from", "commit", rows=rows, title=title))


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help="Data set; see `wmeval data list`.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder; default: the user's data folder.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="A mirror of its repository; same commit.")
    ] = None,
) -> None:
    """Fetch public motion capture at its pinned commit and store it as wmeval-mocap/1."""
    from wmeval.datasets.mocap import get

    _print(str(get(name, out, url=url, progress=_say)))


@data_app.command("show")
def data_show(
    file: Annotated[str, typer.Argument(help="A wmeval-mocap/1 file or URL (.json, .h5).")],
) -> None:
    """Read a motion capture file, refuse what is wrong in it, and say what it holds."""
    from wmeval.datasets.mocap import read_mocap

    mocap = read_mocap(file)
    header = mocap.header
    frames = sorted(len(t) for t in mocap.trials)
    seconds = sorted(float(t.times[-1] - t.times[0]) for t in mocap.trials)
    what = ", ".join(
        f"{len(names)} {kind}"
        for kind in ("bodies", "markers", "signals")
        if (names := header.names(kind))
    )
    _print(
        f"{header.title}: {len(mocap.trials)} trials of {what}; {frames[0]} to {frames[-1]} frames,"
        f" {seconds[0]:.3g} to {seconds[-1]:.3g} s"
    )


# --- comparing ----------------------------------------------------------------------------------


@app.command()
def pair(
    env_id: EnvId,
    candidate: Annotated[
        list[str],
        typer.Option("--candidate", help="Who stands against the reference; repeatable."),
    ],
    plan: Plan,
    out: Out,
    scene_seeds: SceneSeeds = "0:5",
    generations: Annotated[
        int, typer.Option(min=1, max=1000, help="Draws of the candidate per case.")
    ] = 1,
    view: Annotated[
        str | None,
        typer.Option(
            "--view",
            help="Camera: static, top, ...; default: the plan's, else static, every scene's still "
            "view of the whole action.",
        ),
    ] = None,
    size: Size = "640x352",
    grid: Annotated[str, typer.Option(help="candidate or reference: whose frame times.")] = (
        "candidate"
    ),
    tolerance: Annotated[
        float | None, typer.Option(help="Strict window of the causal chain [s]; default: none.")
    ] = None,
    max_steps: MaxSteps = None,
    suite: Annotated[
        Path | None,
        typer.Option(help="Frozen suite to read references from; its seeds, view and size count."),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, max=1024, help="Processes; 0: this one.")] = 0,
    overwrite: Overwrite = False,
    settings: Set = None,
) -> None:
    """Compare candidates with the reference world: results.json and report.html."""
    from wmeval.eval.pair import PairConfig, run_pairs
    from wmeval.eval.report import joint_table, terminal_table

    width, height = parse_size(size)
    kwargs = parse_settings(settings, _SIZED)
    if max_steps is not None:
        kwargs["max_steps"] = max_steps
    configs = [
        PairConfig(
            env_id=env_id,
            candidate=text,
            plan=plan,
            scene_seeds=parse_seeds(scene_seeds),
            generations=generations,
            view=view or "",
            width=width,
            height=height,
            grid=_grid(grid),
            tolerance=tolerance,
            env_kwargs=kwargs,
            suite=None if suite is None else str(suite),
        )
        for text in candidate
    ]
    done = run_pairs(configs, out, workers=workers, overwrite=overwrite, progress=_say)
    _print(joint_table(done) if len(done) > 1 else terminal_table(done[0]))
    _print(f"report: {out / 'report.html'}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder of the report.")] = Path("runs/demo"),
    workers: Annotated[int, typer.Option(min=0, max=1024, help="Processes over scenes.")] = 2,
    overwrite: Overwrite = False,
) -> None:
    """Compare five candidates of known error with BeamDomino, and check what must be so."""
    from wmeval.eval.demo import run_demo
    from wmeval.eval.report import joint_table

    done = run_demo(out, workers=workers, overwrite=overwrite, progress=_say)
    _print(joint_table(done.results))
    for claim in done.claims:
        _print(("yes  " if claim.holds else "NO   ") + claim.text)
    _print(f"report: {done.report.resolve()}")
    if not all(claim.holds for claim in done.claims):
        raise typer.Exit(1)


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that `wmeval pair` left.")],
    latex: Annotated[bool, typer.Option("--latex", help="A booktabs table for a paper.")] = False,
    every: Annotated[bool, typer.Option("--every", help="All rows, not the main ones.")] = False,
) -> None:
    """Show results again: a table here, or LaTeX with "not separable" marks."""
    from wmeval.eval import report as reports
    from wmeval.eval.folders import results_files
    from wmeval.eval.results import read_results

    paths = [p for folder in folders for p in results_files(folder)]
    results = [read_results(p) for p in paths]
    if latex:
        typer.echo(reports.latex(results))
        return
    for one in results:
        _print(reports.terminal_table(one, every=every))


# --- physics engines ----------------------------------------------------------------------------


@sweep_app.callback(invoke_without_command=True)
def sweep(
    context: typer.Context,
    explain: Annotated[
        list[str] | None,
        typer.Option("--explain", help="Cell ENGINE:CONFIG:FAMILY/SUBTASK/MATERIAL; repeatable."),
    ] = None,
    budget: Annotated[
        float,
        typer.Option("--budget", min=1.0, help="Wall time of the changes tried on each cell [s]."),
    ] = 60.0,
    metric: Annotated[
        str, typer.Option("--metric", help="Number to explain; default: what departs most.")
    ] = "",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", min=0.1, help="Of the record to run [s]; default: as much as shows it."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for explain.json; default: none.")
    ] = None,
) -> None:
    """Physics engines against what is true."""
    if not explain:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
            raise typer.Exit(2)
        return
    from wmeval.eval.sweep import explain as explaining
    from wmeval.jobs.atomic import write_text

    made = [
        explaining.explain(cell, budget=budget, metric=metric, seconds=seconds, told=_say)
        for cell in [explaining.parse_cell(text) for text in explain]
    ]
    for one in made:
        _print(f"{one.cell}: {one.verdict}")
        if one.untried:
            _print(f"  not tried within {budget:g} s: {', '.join(one.untried)}")
    if out is not None:
        text = json.dumps([one.model_dump(mode="json") for one in made], indent=1)
        write_text(out / "explain.json", text + "\n")


@sweep_app.command("gauge")
def sweep_gauge(
    out: Out,
    engines: Annotated[
        str,
        typer.Option(
            "--engines", help="bullet,newton,... or name=LABEL,adapter=newton,python=PATH."
        ),
    ] = "bullet",
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks",
            help="benchmarked, table-3, all, cube_toss/N, FAMILY[/SUBTASK[/MATERIAL]],...",
        ),
    ] = "benchmarked",
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            help="published-settings, tuned, or a .yaml of fitted numbers, in whose name {engine} "
            "stands for each engine's; repeatable.",
        ),
    ] = None,
    grid: Annotated[
        str,
        typer.Option(
            "--grid", help="Settings to vary: dt=1/180,1/360,iterations=10,50,cell=0.02,..."
        ),
    ] = "",
    twice: Annotated[
        str, typer.Option("--twice", help="Cells that run again to compare: first, all or none.")
    ] = "first",
    limit: Annotated[
        float, typer.Option("--limit", min=0.1, help="Wall time a cell may take [s].")
    ] = 300.0,
    workers: Annotated[int, typer.Option(min=0, max=1024, help="Processes; 0: this one.")] = 1,
    executor: ExecutorName = "local",
    ray_address: RayAddress = None,
    shard: Annotated[str, typer.Option("--shard", help="Part I/N of the cells.")] = "1/1",
    conformance: Annotated[
        bool,
        typer.Option(
            "--conformance/--no-conformance", help="Run the suite that says which numbers count."
        ),
    ] = True,
    strips: Annotated[
        bool, typer.Option("--strips/--no-strips", help="Draw film strips in the report.")
    ] = True,
    tosses: Annotated[
        Path | None,
        typer.Option("--tosses", help="Recording for cube_toss; default: the fetched one."),
    ] = None,
    real: Annotated[
        list[Path] | None,
        typer.Option("--real", help="Recording (wmeval-mocap/1) of a task's trials; repeatable."),
    ] = None,
    drive: Annotated[
        list[str] | None,
        typer.Option(
            "--drive", help="FAMILY=FILE: a recorded motion (.csv) in place of its own; repeatable."
        ),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="Older results.json to compare with.")
    ] = None,
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression", help="Exit with 1 where a number got worse or was lost."
        ),
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run again what crashed or timed out.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Run GAUGE's families on engines: results.json and report.html; what is done is kept."""
    from wmeval.eval.sweep import planning
    from wmeval.eval.sweep.cells import parse_engines
    from wmeval.eval.sweep.compare import compare
    from wmeval.eval.sweep.driven import parse_drives
    from wmeval.eval.sweep.report import write_sweep_report
    from wmeval.eval.sweep.results import read_sweep
    from wmeval.eval.sweep.shards import machine
    from wmeval.eval.sweep.sweeping import run_sweep
    from wmeval.eval.sweep.tables import terminal_tables

    if fail_on_regression and baseline is None:
        raise UserError("--fail-on-regression compares with a --baseline: name one")
    old = None if baseline is None else read_sweep(baseline)
    configs = [planning.check_config(c) for c in config or ["published-settings"]]
    wanted = planning.tasks_of(tasks)
    planned = planning.plan(
        parse_engines(engines), wanted, configs, planning.parse_grid(grid),
        twice=planning.parse_twice(twice), tosses="" if tosses is None else str(tosses),
        real=[str(p) for p in real or ()], drives=parse_drives(drive or (), wanted),
    )  # fmt: skip
    cells = planning.share(planned, planning.parse_shard(shard))
    kept: list[str] = []
    with _Bar("cells", estimated=True) as bar:
        results = run_sweep(
            cells, out,
            plan={"engines": engines, "tasks": tasks, "config": list(configs), "grid": grid,
                  "twice": twice, "limit_s": limit, "shard": shard, "drive": list(drive or ()),
                  "machine": machine()},
            workers=workers, executor=executor, address=ray_address, limit=limit,
            conformance=conformance, retry=retry, overwrite=overwrite,
            progress=lambda *heard: _heard(bar, *heard), kept=kept.append,
        )  # fmt: skip
    page = write_sweep_report(results, out, strips=strips)
    for table in terminal_tables(results):
        _print(table)
    for said in kept:
        _print(said)
    _report_sweep(results, page)
    if old is not None:
        made = compare(old, results, elsewhere={c.name for c in planned} - {c.name for c in cells})
        for change in (*made.engines, *made.changes):
            _print(str(change))
        _print(f"{made.compared} numbers compared, {len(made.regressions)} got worse or were lost")
        if fail_on_regression and cells and not made.compared:
            raise UserError(
                f"--fail-on-regression: {baseline} has no number that this sweep has: "
                "name its engines, tasks and settings"
            )
        if fail_on_regression and made.regressions:
            raise typer.Exit(1)
    if results.idle():
        _print("nothing was measured: no engine got through a cell")
        raise typer.Exit(1)


def _heard(bar: _Bar, count: int, total: int, said: str, left: float | None) -> None:
    from wmeval.eval.sweep.estimate import clock

    rest = "" if left is None or count == total else f"about {clock(left)} left"
    bar.at(count, total, rest)
    if said and not sys.stderr.isatty():
        typer.echo(one_line(f"{count}/{total} {said}", 200) + (rest and f"; {rest}"), err=True)


def _report_sweep(results: Any, page: Path) -> None:
    for one in results.twice:
        _print(f"twice: {one.cell}: {one.said}")
    for note in results.notes():
        _print(note)
    for engine, reason, count in results.not_run():
        _print(f"not run: {engine}, {_many(count, 'cell')}: {reason}")
    for engine, reason, count in results.crashed():
        _print(f"crash: {engine}, {'all its ' * (count > 1)}{_many(count, 'cell')}: {reason}")
    counts = ", ".join(f"{n} {s.replace('_', ' ')}" for s, n in results.counts().items())
    _print(f"cells: {counts or 'none'}")
    _print(results.gate())
    _print(f"report: {page}")


@sweep_app.command("merge")
def sweep_merge(
    out: Annotated[Path, typer.Argument(help="Folder of the joined sweep.")],
    parts: Annotated[list[Path] | None, typer.Argument(help="Folders of its shards.")] = None,
    strips: Annotated[
        bool, typer.Option("--strips/--no-strips", help="Draw film strips in the report.")
    ] = True,
) -> None:
    """Join the shards of a sweep: their cells, results.json and report.html of all."""
    from wmeval.eval.sweep.report import write_sweep_report
    from wmeval.eval.sweep.sweeping import merge as join

    results = join(out, list(parts or []))
    _report_sweep(results, write_sweep_report(results, out, strips=strips))


def _grid(text: str) -> Literal["candidate", "reference"]:
    if text not in ("candidate", "reference"):
        raise UserError(f"--grid {text!r}: choose candidate or reference")
    return "candidate" if text == "candidate" else "reference"


def _say(line: str) -> None:
    typer.echo(one_line(line), err=True)


@fit_app.command("gauge")
def fit_gauge(
    out: Annotated[Path, typer.Option("--out", help="The .yaml file to write.")],
    family: Annotated[str, typer.Option("--family", help="cube_toss or pendulum.")] = "cube_toss",
    engine: Annotated[
        str, typer.Option("--engine", help="Whose numbers are looked for.")
    ] = "bullet",
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Recording, or the folder it lies in; default: the fetched."),
    ] = None,
    half: Annotated[
        str, typer.Option("--half", help="Fit on the trials in even or in odd places.")
    ] = "",
    split: Annotated[
        str, typer.Option("--split", help="Instead: a file of trials' names, or a seed.")
    ] = "",
    base: Annotated[
        str, typer.Option("--base", help="Solver settings to keep: tuned or published-settings.")
    ] = "tuned",
    trials: Annotated[
        int, typer.Option("--trials", min=0, help="Of that half, evenly spaced; 0: all.")
    ] = 0,
    evaluations: Annotated[
        int, typer.Option("--evaluations", min=1, max=100_000, help="Of the loss.")
    ] = 60,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the search.")] = 0,
) -> None:
    """Identify an engine's parameters on a half of real data, for `sweep --config` to score."""
    from wmeval.eval.fitting.fit import check_base, fit, write_fitted
    from wmeval.eval.sweep.cells import parse_engines

    (one, *more) = parse_engines(engine)
    if more:
        raise UserError(f"--engine {engine}: numbers are one engine's: fit one after another")
    with _Bar("evaluations") as bar:
        found = fit(
            family, data, one.adapter, half=half, split=split, base=check_base(base),
            trials=trials, evaluations=evaluations, seed=seed, python=one.python,
            told=lambda count, total, said: _heard(bar, count, total, said, None),
        )  # fmt: skip
    write_fitted(found, out)
    of = found.identified
    assert of is not None
    for name, value in of.parameters.items():
        low, high = of.bounds[name]
        at = " (at its bound)" if value in (low, high) else ""
        _print(f"{name}: {value:g} (from {of.start[name]:g}, within {low:g} to {high:g}){at}")
    _print(f"loss: {of.loss_before:.4g} to {of.loss_after:.4g}, {of.evaluations} evaluations")
    if not of.improved:
        _print(
            "nothing better than the start was found: the numbers are those that it began with; "
            f"give more than --evaluations {evaluations}, or fit another half"
        )
    _print(f"fitted on {found.fitted_on}")
    for name, value in of.other_half.items():
        _print(f"on the other half: {value:.4g}, {name}")
    for remark in of.remarks:
        _print(f"look at this: {remark}")
    if not of.other_half:
        _print(f"{out}: give it to sweep gauge --config; the other half is scored")


# --- suites and the hand-off to a cluster -------------------------------------------------------


@suite_app.command("build")
def suite_build(
    out: Out,
    env: Annotated[str | None, typer.Option("--env", help="Environment.")] = None,
    plan: Annotated[
        list[str] | None, typer.Option("--plan", help="Plan cards; repeatable.")
    ] = None,
    scene_seeds: Annotated[
        str | None,
        typer.Option("--scene-seeds", help="Seeds: FIRST:END or a list; default: 0:5."),
    ] = None,
    manifest: Annotated[
        str | None,
        typer.Option(
            "--manifest",
            help="Instead of --env: eval, or a file of evaluation rows in the published form.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many rows.")] = None,
    tasks: Annotated[str, typer.Option(help="Only rows of these tasks, comma-separated.")] = "",
    assets: Annotated[
        Path | None, typer.Option(help="Of --manifest: folder of your own cards.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=END_OF_SEEDS - 1, help="Of our own manifest.")
    ] = 0,
    fps: Annotated[
        list[str] | None, typer.Option("--fps", help="Rates of cached frames; repeatable.")
    ] = None,
    view: View = None,
    size: Size = "640x352",
    max_steps: MaxSteps = None,
    overwrite: Overwrite = False,
    settings: Set = None,
) -> None:
    """Freeze cases as files under one content hash (wmeval-suite/1)."""
    from wmeval.generators.suites import build_suite, cases_of

    width, height = parse_size(size)
    shared: dict[str, Any] = {
        "view": view,
        "width": width,
        "height": height,
        "max_steps": max_steps,
        "env_kwargs": parse_settings(settings, _SIZED),
    }
    if manifest is not None:
        from wmeval.generators.manifest_cases import cases_of_manifest

        if env is not None or plan or scene_seeds is not None:
            raise UserError("a row of --manifest says environment, plan and seed: leave those out")
        names = [name for name in tasks.split(",") if name]
        cases = cases_of_manifest(
            manifest, seed=seed, limit=limit, tasks=names, assets=assets, **shared
        )
    else:
        if env is None or not plan:
            raise UserError("a suite needs --env and --plan, or --manifest")
        if limit is not None or tasks or assets is not None or seed:
            raise UserError("--limit, --tasks, --assets and --seed choose rows of a --manifest")
        cases = cases_of(env, plan, parse_seeds(scene_seeds or "0:5"), **shared)
    suite = build_suite(cases, out, fps=tuple(fps or ()), overwrite=overwrite, progress=_say)
    _print(f"{out}: {_many(len(suite.case_ids), 'case')}, content hash {suite.content_hash}")


@cases_app.command("export")
def cases_export(
    suite: Annotated[Path, typer.Option("--suite", help="Folder of `wmeval suite build`.")],
    model_card: Annotated[Path, typer.Option("--model-card", help="The model's card (YAML).")],
    out: Out,
    generations: Annotated[
        int, typer.Option(min=1, max=1000, help="Draws wanted of every case.")
    ] = 5,
    overwrite: Overwrite = False,
) -> None:
    """Write context frames, prompts and native controls of a suite for one model."""
    from wmeval.datasets.suite import read_suite
    from wmeval.generators.cases import export_cases

    done = export_cases(
        read_suite(suite), model_card, out, generations=generations, overwrite=overwrite
    )
    _print(f"{done.folder}: {_many(len(done.exported), 'case')} of {generations} generations each")
    for case, reasons in done.ineligible.items():
        _print(f"{case}: ineligible: {'; '.join(reasons)}")
    for (case, dimension), reason in done.skipped.items():
        _print(f"{case}: {dimension} ineligible: {reason}")


@cases_app.command("check")
def cases_check(
    folder: Annotated[Path, typer.Argument(help="Folder of `wmeval cases export`.")],
) -> None:
    """Say which predictions are missing, wrong or doubtful; exit code 1 unless all are good."""
    from wmeval.generators.cases import check_cases

    found = check_cases(folder)
    for name in found.missing:
        _print(f"missing: {name}")
    for name, problem in found.wrong.items():
        _print(one_line(f"wrong: {name}: {problem}"))
    for name, doubt in found.doubtful.items():
        _print(one_line(f"doubtful: {name}: {doubt}"))
    for name in found.extra:
        _print(f"not asked for: {name}")
    _print(f"{found.good} of {found.expected} clips are there and right")
    if found.good < found.expected:
        raise typer.Exit(1)


class _Bar:
    """A progress bar on a terminal, nothing in a pipe.

    Args:
        what: what is counted.
        rate: also show how many an hour, and how many failed.
        estimated: who counts says what time is left, in place of the bar's own guess.
    """

    def __init__(self, what: str, *, rate: bool = False, estimated: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        self.rate = ""
        """Such as "240 clips/hour"; "" until one is made."""
        self._what, self._began, self._ended, self._failed = what, time.monotonic(), 0, 0
        self._progress = Progress(
            "{task.description}",
            BarColumn(),
            MofNCompleteColumn(),
            *(() if estimated else (TimeRemainingColumn(),)),
            *(("{task.fields[speed]}",) if rate or estimated else ()),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task(what, total=None, speed="")

    def at(self, count: int, total: int, said: str = "") -> None:
        """Show that ``count`` of ``total`` are done, and what else there is to say."""
        self._progress.update(self._task, completed=count, total=total)
        if said:
            self._progress.update(self._task, speed=said)

    def outcome(self, count: int, total: int, ended: Any) -> None:
        """As `at`, after one has ended (None: at the start)."""
        if ended is not None:
            self._ended += 1
            self._failed += not ended.ok
            hours = max(time.monotonic() - self._began, 1e-9) / 3600
            self.rate = f"{(self._ended - self._failed) / hours:.0f} {self._what}/hour"
            failed = f", {self._failed} failed" if self._failed else ""
            self._progress.update(self._task, speed=self.rate + failed)
        self.at(count, total)

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


# --- the entry point ----------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; bad input becomes one line and exit code 2."""
    code: Any = 130
    try:
        app(args=None if argv is None else list(argv), prog_name="wmeval")
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        pass
    except (ValueError, OSError) as error:
        said = _said(error)
        if said is None:
            raise
        typer.echo(one_line(f"error: {said}"), err=True)
        code = 2
    if code == 130:
        typer.echo("stopped; run the same command again to go on", err=True)
    sys.exit(code)


def _said(error: ValueError | OSError) -> str | None:
    """What the user is told; None for a fault of the program."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror or error}"
    from pydantic import ValidationError

    return first_problem(error) if isinstance(error, ValidationError) else None


if __name__ == "__main__":
    main()

"""Making many: `wmeval generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wmeval.cli.console import Bar, say, show, table
from wmeval.cli.options import (
    END_OF_SEEDS,
    SIZED,
    ExecutorName,
    Exr,
    Limit,
    MaxSteps,
    Overwrite,
    RayAddress,
    Set,
    SetUrl,
    Size,
    View,
    Workers,
    joined,
    parse_settings,
    parse_size,
)
from wmeval.errors import UserError

app = typer.Typer(no_args_is_help=True, help="Make many: sets of rollouts, of clips.")

_Side = Annotated[int | None, typer.Option(min=16, max=8192, help="Of the pictures.")]


@app.command("rollouts")
def generate_rollouts(
    env: Annotated[str, typer.Option("--env", help="Environment.")],
    out: SetUrl,
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
    workers: Workers = None,
    size: Size = "640x352",
    layers: Annotated[
        list[str] | None, typer.Option(help="Layers to keep, comma-separated; repeatable.")
    ] = None,
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

    with Bar("episodes") as bar:
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
            layers=joined(layers),
            video=video,
            view=view,
            fps=fps,
            max_steps=max_steps,
            backend=backend,
            executor=executor,
            ray_address=ray_address,
            shard=shard,
            overwrite=overwrite,
            env_kwargs=parse_settings(settings, SIZED),
            progress=lambda count, total, _: bar.at(count, total),
        )
    _report_set(done, "episode")


@app.command("rigidbench")
def generate_rigidbench(
    out: SetUrl,
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
        list[str] | None,
        typer.Option(
            help="Store what readers derive: flow, normals, tracks, boxes, amodal_masks "
            "(comma-separated; repeatable), or all."
        ),
    ] = None,
    exr: Exr = False,
    workers: Workers = None,
    limit: Limit = None,
    tasks: Annotated[
        list[str] | None, typer.Option(help="Only these tasks, comma-separated; repeatable.")
    ] = None,
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
    width: _Side = None,
    height: _Side = None,
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
        "tasks": _names(joined(tasks)),
        "each": each,
        "assets": assets,
        "hold_back": hold_back or (),
        "seed": seed,
        "width": width,
        "height": height,
    }
    if dry_run:
        from wmeval.generators.estimate import estimate

        if joined(materialize):
            raise UserError(
                "--dry-run knows the cost of clips without --materialize: leave that out"
            )
        title, columns, rows, notes = estimate(manifest, shard=shard, price=price, **asked)
        show(table(*columns, rows=rows, title=title))
        for note in notes:
            show(note)
        return
    with Bar("clips", rate=True) as bar:
        done = rigidbench.generate_rigidbench(
            manifest,
            out,
            renderer=renderer,
            physics=physics,
            format=format,
            materialize=_names(joined(materialize)),
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


def _names(text: str) -> list[str]:
    return [name for name in map(str.strip, text.split(",")) if name]


def _report_set(done: Any, what: str, more: str = "") -> None:
    show(
        f"{done.url}: {len(done.made)} made{more}, {len(done.reused)} there already, "
        f"{len(done.failed)} failed"
        + (f", content hash {done.content_hash}" if done.complete else "; not complete yet")
    )
    for number, error in done.failed.items():
        say(f"{what} {number}: {error}")
    if done.failed:
        raise typer.Exit(1)

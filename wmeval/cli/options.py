"""How options are read: sizes, seeds, settings, and those that several commands have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
import yaml

from wmeval.errors import UserError

MAX_SEEDS, END_OF_SEEDS = 100_000, 2**31


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


def joined(given: Sequence[str] | None, default: str = "") -> str:
    """A comma-separated list that was given in one or several options.

    Args:
        given: each option's text; None or none: it was not given.
        default: the list then.
    """
    return ",".join(given) if given else default


SIZED = {"width": "--size WIDTHxHEIGHT", "height": "--size WIDTHxHEIGHT"}
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
Workers = Annotated[
    int | None, typer.Option(min=0, max=1024, help="Processes; default: one per core.")
]
Processes = Annotated[int, typer.Option(min=0, max=1024, help="Processes; 0: this one.")]
SetUrl = Annotated[str, typer.Option("--out", help="Folder or fsspec URL of the set.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many rows.")]
Exr = Annotated[
    bool, typer.Option("--exr", help="Of bundles: EXR streams of object index and depth, too.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what stands at --out.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Constructor argument of the environment, NAME=VALUE; repeatable."),
]

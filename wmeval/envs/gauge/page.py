"""The documentation page of a family: what its card says, and what holds for all."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

from wmeval.assets import gauge_cards as cards
from wmeval.assets.gauge_cards import Family, family
from wmeval.envs.gauge.configurations import engines_of
from wmeval.envs.gauge.family_env import SLOT_WIDTH, FamilyEnv

_T = TypeVar("_T", bound=type[FamilyEnv])

_PAGE = """{summary}

## Description

{description}

| subtask | what happens | frames, by material |
|---|---|---|
{subtasks}

{notes}

## Action space

`Box(-1, 1, (0,), float32)`: there is nothing to do, and every step passes one frame, 1/30 s.
{action}

## Observation space

`Box(({width},), float32)` in the world's frame: SI, right-handed, z up, quaternions `wxyz`.

| index | quantity | unit |
|---|---|---|
{rows}

## Rewards

0.0; there is no task reward.

## Starting state

As the card says, the same for every seed. {settling}`reset` tells in `info["gauge"]`, and a rollout
in its metadata, the set-up, the configuration, what became of measured stiffness, and a hash of
every imposed motion.

## Episode end

Never terminated; truncated when the card's frames are recorded.

## Arguments

`material`: {materials}. `subtask`: {names}. `engine`: {engines}. `config`: `published-settings`
({hz} steps a second and the engine's defaults), `tuned` (by the material card and by convergence
alone) or a .yaml file of fitted numbers. `drive`: {drive}. `solver`: settings over the
configuration's. See `WorldEnv` for the rest.

## Reset options

`view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `main` (as in the
published clips), `static` (from the other side and farther), `top`.

## Physical parameters

{bodies}

{numbers}

{drives}

g = 9.81 m/s^2, no air. Friction and restitution of a pair are the moving object's, as they were
measured. Sources, of which the most specific counts: {sources}.

## Version history

* v0: initial version.
"""


def complete(cls: _T) -> _T:
    """Make a family's docstring its whole page."""
    card = family(cls.FAMILY)
    summary, _, description = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")
    led = sorted({d.body for s in card.subtasks for m in card.subtasks[s].frames
                  for d in card.drives(s, m) if d.profile != "kick"})  # fmt: skip
    settles = any(
        d.profile == "kick"
        for s in card.subtasks
        for m in card.subtasks[s].frames
        for d in card.drives(s, m)
    )
    cls.__doc__ = _PAGE.format(
        summary=summary,
        description=description,
        subtasks="\n".join(
            f"| `{name}` | {s.says} | " + ", ".join(f"{m} {n}" for m, n in s.frames.items()) + " |"
            for name, s in card.subtasks.items()
        ),
        notes="\n".join(f"- {note}" for note in card.notes) or "- Nothing to note.",
        action=(
            f'With `drive="action"`, `Box(-1, 1, ({4 * len(led)},), float32)`: velocity along x, '
            f"y, z [m/s] and rate of turn [10 rad/s] of {', '.join(led)}."
            if led
            else "Nothing is led here."
        ),
        width=_width(card),
        rows=_rows(card),
        settling="It has settled before: see the motions below. " if settles else "",
        materials=_listed(card.materials),
        names=_listed(tuple(card.subtasks)),
        engines=_listed(engines_of(card)),
        hz=card.solver_hz,
        drive=(
            "a .csv file `time,x,y,z,angle` of a measured motion, or `action`"
            if led
            else "none is taken here"
        ),
        bodies=_bodies(card),
        numbers=_numbers(card),
        drives=_drives(card),
        sources="; ".join(f"`{k}` {v}" for k, v in sorted(card.sources.items())),
    )
    return cls


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _width(card: Family) -> int:
    if card.markers is not None:
        return 3 * card.markers.count
    return sum(n for _, n in _slots(card))


def _slots(card: Family) -> list[tuple[str, int]]:
    """Name and numbers of what is observed, in the first set-up."""
    subtask = next(iter(card.subtasks))
    there = card.bodies_of(subtask, card.materials[0])
    bent = cards.Bricks | cards.Rope | cards.Sheet
    out = [
        (name, SLOT_WIDTH)
        for name, body in there.items()
        if body.motion == "dynamic" and not isinstance(body.shape, bent)
    ]
    rope = there.get("rope")
    if rope is not None and isinstance(rope.shape, cards.Rope):
        out.append(("rope", 3 * rope.shape.nodes))
    return out


def _rows(card: Family) -> str:
    if card.markers is not None:
        last = 3 * card.markers.count - 1
        return f"| 0-{last} | positions of {card.markers.count} markers, x y z each | m |"
    out, first = [], 0
    several = len({tuple(card.bodies_of(s, next(iter(card.subtasks[s].frames))))
                   for s in card.subtasks}) > 1  # fmt: skip
    for name, size in _slots(card):
        whom = "the body that falls" if several else f"`{name}`"
        if size == SLOT_WIDTH:
            for a, b, what, unit in (
                (0, 3, "position of the centre of mass", "m"), (3, 7, "quaternion", "1"),
                (7, 10, "linear velocity", "m/s"), (10, 13, "angular velocity", "rad/s"),
            ):  # fmt: skip
                out.append(f"| {first + a}-{first + b - 1} | {whom}: {what} | {unit} |")
        else:
            out.append(f"| {first}-{first + size - 1} | `{name}`: positions of its nodes | m |")
        first += size
    return "\n".join(out)


def _bodies(card: Family) -> str:
    lines = ["| body | form [m] | motion |", "|---|---|---|"]
    for name, body in card.bodies.items():
        form = _told(body.shape.model_dump(exclude={"type"}))
        hung = f", hangs from its pivot by {body.rod:g} m about {body.hinge}" if body.rod else ""
        kind = body.shape.type.replace("_", " ")
        lines.append(f"| `{name}` | {kind}: {form} | {body.motion}{hung} |")
    return "\n".join(lines)


def _numbers(card: Family) -> str:
    rows = [(m, b, p) for m, bodies in card.properties.items() for b, p in bodies.items()]
    rows += [
        (f"{material}, subtask {name}", body, own)
        for name, subtask in card.subtasks.items()
        for material, bodies in subtask.overrides.items()
        for body, own in bodies.items()
    ]
    lines = ["| material | body | numbers |", "|---|---|---|"]
    lines += [f"| {m} | `{b}` | {_told(p.model_dump(exclude_none=True))} |" for m, b, p in rows]
    return "\n".join(lines)


def _drives(card: Family) -> str:
    """What the profiles of `wmeval.assets.gauge_profiles` are given, by set-up."""
    rows = [
        (name, material, drive)
        for name, subtask in card.subtasks.items()
        for material, drives in subtask.drives.items()
        for drive in drives
    ]
    if not rows:
        return "No motion is imposed."
    lines = ["| subtask | material | body | imposed motion [m, s, rad] |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {material} | `{drive.body}` | `{drive.profile}`: {_told(drive.parameters)} |"
        for name, material, drive in rows
    ]
    return "\n".join(lines)


def _told(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_number(value)}" for key, value in numbers.items())


def _number(value: Any) -> str:
    """A number, or numbers in brackets; corners of solids are told by their count alone."""
    if isinstance(value, (tuple, list)):
        if any(isinstance(v, (tuple, list)) for v in value):
            return str(len(value))
        return f"({', '.join(map(_number, value))})"
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)

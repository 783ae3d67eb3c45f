"""The documentation page of a task: what its class says, and what holds for all five."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from wmeval.envs.rigidbench.task_env import SLOT_WIDTH, RigidBenchTask

_T = TypeVar("_T", bound=type[RigidBenchTask])

_QUANTITIES = (
    (0, 3, "position (centre of mass)", "m", "+-100"),
    (3, 7, "quaternion `wxyz`", "1", "+-1"),
    (7, 10, "linear velocity", "m/s", "+-100"),
    (10, 13, "angular velocity", "rad/s", "+-2000"),
)
"""First and last but one index within a slot; quantity, unit and range."""

_PAGE = """{summary}

## Description

{description}

What stands there at first decides where the camera stands, as published; what is thrown off or
rolls away may leave the picture. A clip's facts say how long each actor is seen.

## Action space

`Box(-1, 1, (0,), float32)`: there is nothing to do. Every step passes one frame, 1/24 s.

## Observation space

`Box(({width},), float32)` in the world's frame: SI, right-handed, z up, quaternions `wxyz` (of q
and -q the one that the engine gives).

| index | quantity | unit | range |
|---|---|---|---|
{rows}

## Rewards

0.0; there is no task reward.

## Starting state

Everything is at rest. Setting, support, objects and dimensions are drawn from the seed, or from
the seed of a manifest's row (`row`), which fixes the sample in any process; `reset` tells them
in `info["sample"]`, with what a video model is told in `info["prompt"]`.

## Episode end

Never terminated; truncated after 48 steps: 49 frames, 2 s.

## Arguments

`physics`: `bullet` (default: restitution as the coefficients say), `bullet-faithful` (the
solver's own defaults, as in the published clips) or `blender` (Blender's own rigid bodies,
which need bpy and tell no contacts); `assets`: a folder of your own cards. See `WorldEnv` for
the rest. dt 1/720 s, control period 1/24 s.

## Reset options

`row`, or `setting`, `surface`, `objects`, `split`; `placements`{ramp_option}, `turn_deg`,
`azimuth_deg`: see `OPTIONS`. `view`, `camera`, `camera_motion`, `seed_space`: see
`WorldEnv.reset`. Views: `main` (the clip's: 35 mm, 10 degrees above, its azimuth chosen so that at
least half of every actor is seen), `static` (higher and wider), `top`.

## Physical parameters

{own}Masses, friction and restitution of the objects follow the published cards; a pair's value is
the product. Supports and ramps: friction 0.4, restitution 0.3. {physics}Active bodies lose 10 % of
their velocity and 50 % of their spin a second; 20 solver iterations (RigidBench, Tables 4 and 7).
Sizes of objects are ours, of the real things.

## Version history

* v0: initial version.
"""


def complete(*, physics: str = "") -> Callable[[_T], _T]:
    """Make a task's docstring its whole page.

    Args:
        physics: what is the task's own among the physical parameters, in one sentence.
    """

    def page(cls: _T) -> _T:
        summary, _, description = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")
        ramps = any(slot.startswith("ramp") for slot in cls.SLOTS)
        cls.__doc__ = _PAGE.format(
            summary=summary,
            description=description,
            width=SLOT_WIDTH * len(cls.SLOTS),
            rows="\n".join(
                f"| {SLOT_WIDTH * i + first}-{SLOT_WIDTH * i + end - 1} | `{slot}` {what} | {unit} "
                f"| {span} |"
                for i, slot in enumerate(cls.SLOTS)
                for first, end, what, unit, span in _QUANTITIES
            ),
            ramp_option=", `ramp_material`" if ramps else "",
            own="A ramp is a static mesh; its material is its look alone. " if ramps else "",
            physics=f"{physics} " if physics else "",
        )
        return cls

    return page

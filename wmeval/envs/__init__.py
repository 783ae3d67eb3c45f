"""What an agent sees: the table of environments.

A new environment is one file with one class and one row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from wmeval.errors import UserError

if TYPE_CHECKING:
    from wmeval.envs.base import WorldEnv


@dataclass(frozen=True)
class EnvironmentRow:
    """One environment.

    Attributes:
        id: Gymnasium id.
        entry_point: "module:Class", loaded on first use.
        dimensions: evaluation dimensions that it serves.
        dt: default substep [s].
        control_period: default time that one action holds [s].
        max_steps: default step limit, in actions.
        size: default picture (width, height) [px].
        channels: components of the action, in order: continuous ones, then ``branches``.
        observation: length of the flat observation.
        termination: what ends an episode physically.
        summary: one line for tables.
        branches: components of the action that are 0 or 1.
        engines: rows of `wmeval.sim.engines.ENGINES` that run it; the first is the default.
        image: picture (width, height) [px] that it observes beside the flat vector, or None.
        view: its paper camera, the first of its scene and the default of everything that looks.
    """

    id: str
    entry_point: str
    dimensions: tuple[str, ...]
    dt: Fraction
    control_period: Fraction
    max_steps: int
    size: tuple[int, int]
    channels: tuple[str, ...]
    observation: int
    termination: str
    summary: str
    branches: tuple[str, ...] = ()
    engines: tuple[str, ...] = ("bullet",)
    image: tuple[int, int] | None = None
    view: str = "follow"

    @property
    def actions_text(self) -> str:
        """Components of the action as Table 10 counts them: "2C + 1D", "none"."""
        continuous = len(self.channels) - len(self.branches)
        counts = ((continuous, "C"), (len(self.branches), "D"))
        return " + ".join(f"{n}{kind}" for n, kind in counts if n) or "none"

    @property
    def observation_text(self) -> str:
        """Size of the observation as Table 10 counts it: "48", "50 + 128x128"."""
        return str(self.observation) + ("" if self.image is None else f" + {_by(self.image)}")


def _by(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


_LEFT = "the player's centre lies below z = -2 m"


def _rigid_task(name: str, actors: int, summary: str) -> EnvironmentRow:
    """A RigidBench task: a clip of 49 frames of 30 substeps each (its section A.4)."""
    return EnvironmentRow(
        id=f"RigidBench/{name}-v0",
        entry_point=f"wmeval.envs.rigidbench.tasks:{name}",
        dimensions=("kinematics",),
        dt=Fraction(1, 720),
        control_period=Fraction(1, 24),
        max_steps=48,
        size=(640, 352),
        channels=(),
        observation=13 * actors,
        termination="never",
        summary=summary,
        engines=("bullet", "blender"),
        view="main",
    )


ENVIRONMENTS: dict[str, EnvironmentRow] = {
    row.id: row
    for row in (
        EnvironmentRow(
            id="WMEval/BallRoller-v0",
            entry_point="wmeval.envs.ball_roller:BallRoller",
            dimensions=("controllability", "consistency", "causal_lpips", "prompt_consistency"),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=600,
            size=(640, 352),
            channels=("force_x", "force_z"),
            observation=48,
            termination=_LEFT,
            summary="a white ball among 15 coloured balls, a ramp, a dome and a cube",
        ),
        EnvironmentRow(
            id="WMEval/BeamDomino-v0",
            entry_point="wmeval.envs.beam_domino:BeamDomino",
            dimensions=("causality", "controllability", "causal_lpips"),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=480,
            size=(640, 352),
            channels=("force_z", "force_x"),
            observation=92,
            termination=_LEFT,
            summary="a heavy ball topples a platform whose ball sets off 20 dominoes",
        ),
        EnvironmentRow(
            id="WMEval/BilliardGame-v0",
            entry_point="wmeval.envs.billiard_game:BilliardGame",
            dimensions=("kinematics", "causal_lpips", "consistency"),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=600,
            size=(640, 352),
            channels=(
                "ball_0_x",
                "ball_0_z",
                "ball_1_x",
                "ball_1_z",
                "ball_2_x",
                "ball_2_z",
                "angle",
                "force",
                "hit_x",
                "hit_y",
                "execute",
                "force_end",
            ),
            observation=13,
            termination="force_end is 1",
            summary="three-ball carom: place the balls, aim, strike with English",
            branches=("execute", "force_end"),
            engines=("carom",),
            view="overhead",
        ),
        EnvironmentRow(
            id="WMEval/ChessBoard-v0",
            entry_point="wmeval.envs.chess_board:ChessBoard",
            dimensions=("consistency", "prompt_consistency"),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=900,
            size=(640, 352),
            channels=("move_x", "move_z", "jump", "sprint"),
            branches=("jump", "sprint"),
            observation=8,
            termination=_LEFT,
            summary="a mannequin walks and jumps among giant chess pieces and a chrome sphere",
        ),
        EnvironmentRow(
            id="WMEval/LiquidContainer-v0",
            entry_point="wmeval.envs.liquid_container:LiquidContainer",
            dimensions=("fluid",),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=1200,
            size=(640, 352),
            channels=("forward", "right", "up", "pitch", "yaw", "roll"),
            observation=24,
            termination="never",
            summary="a sealed, half-full glass bottle, moved and turned by hand at the coast",
            view="side",
        ),
        EnvironmentRow(
            id="WMEval/MirrorRollingBall-v0",
            entry_point="wmeval.envs.mirror_rolling_ball:MirrorRollingBall",
            dimensions=("consistency", "kinematics", "controllability", "prompt_consistency"),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=600,
            size=(640, 352),
            channels=("force_x", "force_z"),
            observation=297,
            termination=_LEFT,
            summary="a chrome ball in a field of up to 48 glossy yellow balls",
        ),
        EnvironmentRow(
            id="WMEval/RacingCar-v0",
            entry_point="wmeval.envs.racing_car:RacingCar",
            dimensions=("kinematics", "consistency", "prompt_consistency"),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=600,
            size=(640, 352),
            channels=("steering", "throttle", "brake"),
            branches=("brake",),
            observation=13,
            termination=_LEFT,
            summary="a yellow sports car on an endless highway that begins at an edge in the sky",
        ),
        EnvironmentRow(
            id="WMEval/WanderingGarden-v0",
            entry_point="wmeval.envs.wandering_garden:WanderingGarden",
            dimensions=("consistency",),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=900,
            size=(640, 352),
            channels=("strafe", "forward", "yaw", "pitch"),
            observation=50,
            termination=_LEFT,
            summary="a first-person walk through a garden court with five landmarks",
            image=(128, 128),
            view="first",
        ),
        EnvironmentRow(
            id="WMEval/SunRisesAndSets-v0",
            entry_point="wmeval.envs.sun_rises_and_sets:SunRisesAndSets",
            dimensions=("lighting",),
            dt=Fraction(1, 240),
            control_period=Fraction(1, 60),
            max_steps=720,
            size=(640, 352),
            channels=(),
            observation=9,
            termination="never",
            summary="a breakfast table on a terrace while the sun turns around it in 3.6 s",
            view="orbit",
        ),
        _rigid_task("FreeFall", 1, "an everyday object drops on to a support in a room"),
        _rigid_task("Bounce", 1, "a ball drops on to a springy support and bounces"),
        _rigid_task("RampCollision", 4, "two objects roll down facing ramps and collide"),
        _rigid_task("BallChain", 5, "an object rolls down a ramp into a row of three"),
        _rigid_task("DropIntoCluster", 4, "an object drops on to a cluster of three"),
    )
}


def every_row() -> dict[str, EnvironmentRow]:
    """All environments by id: those of `ENVIRONMENTS`, and GAUGE's families.

    The families are apart since most of them need an engine that is installed on its own.
    """
    from wmeval.envs.gauge.rows import FAMILIES

    return {**ENVIRONMENTS, **FAMILIES}


def environment_row(env_id: str) -> EnvironmentRow:
    """Row of an environment by id ("WMEval/BeamDomino-v0") or short name ("BeamDomino").

    Gymnasium's spelling with the module in front ("wmeval:WMEval/BeamDomino-v0") is one too.

    Raises:
        UserError: no such environment; the message names the known ones.
    """
    name = str(env_id).removeprefix("wmeval:")
    rows = every_row()
    for row in rows.values():
        if name in (row.id, row.id.split("/", 1)[-1], short_name(row.id)):
            return row
    raise UserError(f"unknown environment {env_id!r}: choose from {', '.join(rows)}")


def short_name(env_id: str) -> str:
    """Name of an environment without name space and version ("BeamDomino")."""
    return env_id.rsplit("/", 1)[-1].rsplit("-v", 1)[0]


def environment_class(env_id: str) -> type[WorldEnv]:
    """Class of an environment, loaded now.

    Raises:
        UserError: no such environment.
    """
    module, name = environment_row(env_id).entry_point.split(":")
    cls: type[WorldEnv] = getattr(import_module(module), name)
    return cls


def make_environment(env_id: str, **kwargs: Any) -> WorldEnv:
    """An environment with constructor arguments that may be wrong.

    Raises:
        UserError: no such environment, or an argument that it does not take; names the known ones.
    """
    cls = environment_class(env_id)
    known = {
        name
        for base in cls.__mro__
        for name, p in signature(base).parameters.items()
        if p.kind is p.KEYWORD_ONLY
    }
    unknown = sorted(set(kwargs) - known)
    if unknown:
        raise UserError(
            f"{cls.ID}: no argument {unknown[0]!r}: choose from {', '.join(sorted(known))}"
        )
    return cls(**kwargs)


def register_all() -> None:
    """Register every row with Gymnasium; a second call changes nothing."""
    from gymnasium.envs.registration import register, registry

    for row in every_row().values():
        if row.id not in registry:
            # The environment truncates by itself, so that a snapshot knows its steps.
            register(id=row.id, entry_point=row.entry_point)

"""The rows of the 22 families, in the order of GAUGE's Table 2.

Numbers stand here so that a table of environments needs no card; a test compares them.
"""

from __future__ import annotations

from fractions import Fraction

from wmeval.envs import EnvironmentRow

RIGID = ("bullet", "physx", "newton", "genesis")
ROPES = ("bullet", "physx", "newton")
BENDING = ("newton", "genesis")

_ROWS: tuple[tuple[str, int, int, int, tuple[str, ...], str], ...] = (
    # name, frames, steps per second, observation, engines, summary
    ("SlopeContact", 10, 180, 13, RIGID, "a tetrahedron slides and tips off a slope"),
    ("NonsmoothContact", 11, 180, 13, RIGID, "an apex or an edge falls into a hole"),
    ("SlopeSlider", 9, 180, 13, RIGID, "a cube on a board that is or gets steep"),
    ("Turntable", 95, 180, 13, RIGID, "a cube on a plate that turns"),
    ("BouncingBall", 18, 180, 13, RIGID, "a rubber ball falls and bounces"),
    ("NewtonsCradle", 1027, 180, 65, RIGID, "momentum passes through five touching balls"),
    ("WallBreaking", 60, 180, 13, RIGID, "a swinging ball breaks a wall of 118 bricks"),
    ("Pendulum", 300, 180, 13, RIGID, "a pendulum is let go from level"),
    ("RopeWinding", 150, 7200, 131, ROPES, "a rope winds about a beam under two balls"),
    ("TextileStretching", 432, 180, 75, BENDING, "a probe pokes a framed sheet"),
    ("TextileBending", 379, 180, 42, BENDING, "a sheet sags between two rods that approach"),
    ("TextileFlinging", 303, 180, 189, BENDING, "a hanging sheet is jerked to and fro"),
    ("Funnel", 120, 180, 120, BENDING, "a ball pushes a sheet through a hole"),
    ("RotatingBall", 150, 180, 12, BENDING, "a sheet on a ball that begins to turn"),
    ("TableclothPulling", 30, 180, 13, BENDING, "a cloth is pulled from under a cube"),
    ("FoamStretching", 30, 900, 84, BENDING, "a foam block is drawn out"),
    ("FoamCompressing", 30, 900, 84, BENDING, "a foam block is pressed"),
    ("FoamShearing", 37, 900, 84, BENDING, "the top of a foam block is moved sideways"),
    ("FoamTwisting", 65, 900, 84, BENDING, "the top of a foam block is turned"),
    ("FoamBending", 35, 900, 42, BENDING, "a cube presses a foam beam"),
    ("StickStack", 90, 900, 12, BENDING, "an elastic rod sticks and slips on a board"),
    ("CantileverBeam", 150, 900, 60, BENDING, "a beam of foam and rubber cubes hangs from a wall"),
)  # fmt: skip

FAMILIES: dict[str, EnvironmentRow] = {
    row.id: row
    for row in (
        EnvironmentRow(
            id=f"GAUGE/{name}-v0",
            entry_point=f"wmeval.envs.gauge.tasks:{name}",
            dimensions=(),
            dt=Fraction(1, hz),
            control_period=Fraction(1, 30),
            max_steps=frames - 1,
            size=(640, 352),
            channels=(),
            observation=numbers,
            termination="never",
            summary=summary,
            engines=engines,
            view="main",
        )
        for name, frames, hz, numbers, engines, summary in _ROWS
    )
}

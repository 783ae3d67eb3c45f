"""GAUGE's 22 families as environments.

A class says what is its own: the rest of its page is `wmeval.envs.gauge.page`'s, from its card.
"""

from __future__ import annotations

from wmeval.envs.gauge.family_env import FamilyEnv
from wmeval.envs.gauge.page import complete


@complete
class SlopeContact(FamilyEnv):
    """A trirectangular tetrahedron slides and tips off a slope.

    It lies at rest with its largest face on the slope that is left where it was cut from a block's
    upper corner, and is let go. (GAUGE, Table 2: slope contact.) Its orientation is told in the
    principal frame of its inertia.
    """

    ID = "GAUGE/SlopeContact-v0"
    FAMILY = "slope_contact"


@complete
class NonsmoothContact(FamilyEnv):
    """An apex or an edge falls into a hole.

    A pyramid with its apex down, or a wedge with its edge down, falls tilted on to a plate with a
    square hole, or on to half of such a plate. (GAUGE, Table 2: nonsmooth contact.)
    """

    ID = "GAUGE/NonsmoothContact-v0"
    FAMILY = "nonsmooth_contact"


@complete
class SlopeSlider(FamilyEnv):
    """A cube on a board: it sticks, slides, or begins to slide as the board tilts.

    The cube lies at the upper end of a wooden board. (GAUGE, Table 2: slope slider.)
    """

    ID = "GAUGE/SlopeSlider-v0"
    FAMILY = "slope_slider"


@complete
class Turntable(FamilyEnv):
    """A cube on a plate that begins to turn.

    Static friction carries it along, or it slides off, or it slips and sticks again. (GAUGE,
    Table 2: turntable.)
    """

    ID = "GAUGE/Turntable-v0"
    FAMILY = "turntable"


@complete
class BouncingBall(FamilyEnv):
    """A rubber ball falls and bounces.

    It is let go 0.41 m above the ground. (GAUGE, Table 2: bouncing ball.)
    """

    ID = "GAUGE/BouncingBall-v0"
    FAMILY = "bouncing_ball"


@complete
class NewtonsCradle(FamilyEnv):
    """Momentum passes through a row of five touching balls.

    The first ball is let go with its rod level. (GAUGE, Table 2: newton's cradle.)
    """

    ID = "GAUGE/NewtonsCradle-v0"
    FAMILY = "newtons_cradle"


@complete
class WallBreaking(FamilyEnv):
    """A ball on a rod breaks a wall of loose bricks.

    118 wooden bricks stand in eleven layers, two deep; the ball swings into them from 30 degrees.
    (GAUGE, Table 2: wall breaking.) What touches a brick has the brick's friction and restitution.
    """

    ID = "GAUGE/WallBreaking-v0"
    FAMILY = "wall_breaking"


@complete
class Pendulum(FamilyEnv):
    """A pendulum is let go from level.

    A metal ball on a massless rod. (GAUGE, Table 2: pendulum.)
    """

    ID = "GAUGE/Pendulum-v0"
    FAMILY = "pendulum"


@complete
class RopeWinding(FamilyEnv):
    """A rope winds about a beam.

    It hangs over the beam with a ball at either end; the balls are set off sideways, one each way.
    (GAUGE, Table 2: rope winding.) On bullet and physx 34 capsules and springs, at 7,200 steps a
    second; a sweep gives Isaac Sim a chain of 34 links that does not stretch. All pairs have the
    friction of rope and beam and the restitution of the balls.
    """

    ID = "GAUGE/RopeWinding-v0"
    FAMILY = "rope_winding"


@complete
class TextileStretching(FamilyEnv):
    """A probe pokes and strokes a framed sheet.

    (GAUGE, Table 2: textile stretching.)
    """

    ID = "GAUGE/TextileStretching-v0"
    FAMILY = "textile_stretching"


@complete
class TextileBending(FamilyEnv):
    """A sheet sags between two rods that approach each other.

    Two opposite edges are clamped. (GAUGE, Table 2: textile bending.)
    """

    ID = "GAUGE/TextileBending-v0"
    FAMILY = "textile_bending"


@complete
class TextileFlinging(FamilyEnv):
    """A hanging sheet is jerked to and fro.

    Its upper edge is clamped to a rod. (GAUGE, Table 2: textile flinging.)
    """

    ID = "GAUGE/TextileFlinging-v0"
    FAMILY = "textile_flinging"


@complete
class Funnel(FamilyEnv):
    """A ball pushes a sheet through a hole.

    The sheet lies flat on a board with a round hole; a ball comes down. (GAUGE, Table 2: funnel.)
    """

    ID = "GAUGE/Funnel-v0"
    FAMILY = "funnel"


@complete
class RotatingBall(FamilyEnv):
    """A sheet on a ball that begins to turn.

    It drapes for 1.5 s, and the ball turns about the vertical. (GAUGE, Table 2: rotating ball.)
    """

    ID = "GAUGE/RotatingBall-v0"
    FAMILY = "rotating_ball"


@complete
class TableclothPulling(FamilyEnv):
    """A cloth is pulled from under a cube.

    One edge is clamped to a rod that is pulled away. (GAUGE, Table 2: tablecloth pulling.)
    """

    ID = "GAUGE/TableclothPulling-v0"
    FAMILY = "tablecloth_pulling"


@complete
class FoamStretching(FamilyEnv):
    """A foam block is drawn out.

    Both ends are clamped and the upper clamp rises. (GAUGE, Table 2: foam stretching.)
    """

    ID = "GAUGE/FoamStretching-v0"
    FAMILY = "foam_stretching"


@complete
class FoamCompressing(FamilyEnv):
    """A foam block is pressed.

    Both ends are clamped and the upper clamp comes down. (GAUGE, Table 2: foam compressing.)
    """

    ID = "GAUGE/FoamCompressing-v0"
    FAMILY = "foam_compressing"


@complete
class FoamShearing(FamilyEnv):
    """The top of a foam block is moved sideways.

    Both ends are clamped; the upper clamp moves level along a diagonal. (GAUGE, Table 2: foam
    shearing.)
    """

    ID = "GAUGE/FoamShearing-v0"
    FAMILY = "foam_shearing"


@complete
class FoamTwisting(FamilyEnv):
    """The top of a foam block is turned.

    Both ends are clamped; the upper clamp turns about the vertical. (GAUGE, Table 2: foam
    twisting.)
    """

    ID = "GAUGE/FoamTwisting-v0"
    FAMILY = "foam_twisting"


@complete
class FoamBending(FamilyEnv):
    """A cube presses a foam beam.

    The beam is held at both ends and pressed in its middle. (GAUGE, Table 2: foam bending.)
    """

    ID = "GAUGE/FoamBending-v0"
    FAMILY = "foam_bending"


@complete
class StickStack(FamilyEnv):
    """An elastic rod sticks and slips on a board.

    Its upper end is clamped, pressed down and moved aside. (GAUGE, Table 2: stick-stack.)
    """

    ID = "GAUGE/StickStack-v0"
    FAMILY = "stick_stack"


@complete
class CantileverBeam(FamilyEnv):
    """A beam of foam and rubber cubes hangs from a wall.

    Foam, rubber, foam, rubber, glued; let go from level. (GAUGE, Table 2: cantilever beam.)
    """

    ID = "GAUGE/CantileverBeam-v0"
    FAMILY = "cantilever_beam"

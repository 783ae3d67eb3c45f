"""Closed forms of rope, textile and soft families, from their cards."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import GRAVITY, Box, Cylinder, HoledBoard, Rope, Sheet, Sphere
from wmeval.assets.gauge_mapping import poisson
from wmeval.assets.gauge_markers import markers
from wmeval.eval.metrics.surfaces import face_areas
from wmeval.eval.truths import flexible, soft
from wmeval.eval.truths.blocks import block_swing
from wmeval.eval.truths.prediction import Number, Prediction, SetUp

F8 = NDArray[np.float64]


_BY_LAW = 0.4
"""Of a twisted facet's change, the share that depends on the foam's law beyond small strains."""


def _made(truth: str, s: SetUp, numbers: dict[str, Number]) -> Prediction:
    return Prediction(truth, s.card.id, s.subtask, s.material, numbers)


def _weight(s: SetUp) -> float:
    return s.number("textile", "areal_density") * GRAVITY


def _sheet(s: SetUp) -> Sheet:
    return s.shape("textile", Sheet)


# --- rope and textiles ----------------------------------------------------------------------------


def rope_wraps(s: SetUp) -> Prediction:
    """Bounds of the winding: capstan ratios, strand strain, greatest rise.

    The rise is that of the balls' common centre, from rest on the stretched rope. Energy is not
    made: when the balls, 2 m, are h higher,

        2 m g h + K + U <= m v^2 + U0,

    with K kinetic and U elastic energy, neither below 0: h <= v^2 / 2g + U0 / (2 m g). The rope's
    own height is left out: it weighs 0.8 % of the balls, and hangs straight and stretched at the
    start. U0 is that of two strands of half the length each (`flexible.strand_energy`; on the beam
    friction leaves less tension), and of half a turn about the beam, pi E I / (2 R). A ball that is
    kicked straight up comes as high as that, but for bending, if its strand is slack by then.
    """
    friction = s.number("rope", "friction")
    mass = s.number("ball_1", "mass")
    pull = mass * GRAVITY
    speed = float(np.linalg.norm(s.drive("ball_1").parameters["velocity"]))
    rope, beam = s.shape("rope", Rope), s.shape("beam", Cylinder)
    stretch = s.number("rope", "axial_stiffness")
    weight = s.number("rope", "density") * math.pi * rope.radius**2 * GRAVITY
    strand = flexible.strand_energy(rope.length / 2, stretch, pull, weight)
    bending = stretch * rope.radius**2 / 4
    stored = 2 * strand + math.pi * bending / (2 * (beam.radius + rope.radius))
    return _made(
        "rope_wraps", s,
        {
            **{
                f"capstan_{k}pi": Number(
                    flexible.capstan(friction, k * math.pi), "1", f"greatest T1 / T2 over {k} pi"
                )
                for k in (1, 2, 3)
            },
            "strand_strain": Number(pull / stretch, "1", "of a strand under one ball"),
            "stored": Number(stored, "J", "elastic energy at rest, at most"),
            "rise": Number(
                speed**2 / (2 * GRAVITY) + stored / (2 * pull), "m", "greatest, of the balls' mean"
            ),
        },
    )  # fmt: skip


def sheet_sags(s: SetUp) -> Prediction:
    """Sag between the rods, by the chain and by the clamped heavy elastica, at the drive's end."""
    offset = s.motion("rod_moving", np.array([s.duration])).offset[0]
    sheet = _sheet(s)
    arc = sheet.size[0]
    span = arc - float(offset[0])
    on_the_way = {
        name: Number(flexible.catenary_sag(arc - share * float(offset[0]), arc), "m", says)
        for name, share, says in (
            ("sag_half", 0.5, "without bending, the rod half its way"),
            ("sag_three_quarters", 0.75, "without bending, the rod three quarters of its way"),
        )
    }
    return _made(
        "sheet_sags", s,
        {
            **on_the_way,
            "span": Number(span, "m", "between the clamps at the end"),
            "chain_sag": Number(flexible.catenary_sag(span, arc), "m", "without bending"),
            "sag": Number(
                flexible.clamped_sag(span, arc, s.number("textile", "bend_stiffness"), _weight(s)),
                "m", "with it",
            ),
        },
    )  # fmt: skip


def sheet_hangs(s: SetUp) -> Prediction:
    """Modes and mean strain of the hanging sheet, once the rod is still."""
    length = _sheet(s).size[1]
    modes = flexible.hanging_modes(length)
    return _made(
        "sheet_hangs", s,
        {
            **{f"mode_{n}": Number(float(f), "Hz", "small swings") for n, f in enumerate(modes, 1)},
            "strain": Number(
                flexible.hanging_strain(
                    length, _weight(s), s.number("textile", "stretch_stiffness")
                ),
                "1", "mean, hanging still",
            ),
        },
    )  # fmt: skip


def ball_leads_sheet(s: SetUp) -> Prediction:
    """Symmetry and bounds of a sheet that a ball pushes through a hole, or turns.

    Ball, hole and sheet have one upright axis, and half a turn about it leaves the set-up and the
    sheet's mesh as they are. So the sheet's middle stays on that axis and, while the ball presses
    on it, at the ball's pole; and opposite markers stay opposite, as long as its folds do. A sheet
    that does not stretch has no place higher above its middle than it is far from it along the
    sheet: what is nearer than the middle is deep below the board is through the hole. Friction
    alone turns the sheet: no farther than the ball.
    """
    made = s.motion("ball", np.array([s.duration]))
    radius = s.shape("ball", Sphere).diameter / 2
    numbers = {
        "middle_gap": Number(0.0, "m", "greatest, of the sheet's middle from the ball's pole"),
        "uneven": Number(
            0.0, "m", "of markers from their opposites' places after half a turn, at the end",
            ideal="its folds are even",
        ),
    }  # fmt: skip
    if made.angle[0]:
        numbers["corner_turn"] = Number(
            1.0, "1", "of the ball's turn, by the corners, at most", ideal="nothing slips"
        )
    if made.offset[0, 2]:
        board = s.shape("board", HoledBoard)
        pole = s.position("ball")[2] + made.offset[0, 2] - radius
        deep = float(s.position("board")[2] - board.size[2] / 2 - pole)
        part = math.pi * deep**2 / math.prod(_sheet(s).size)
        numbers["through"] = Number(
            part, "1", "of the sheet, below the board, at least", ideal="no more than must"
        )
    return _made("ball_leads_sheet", s, numbers)


def curvature_sums_to_zero(s: SetUp) -> Prediction:
    """Sum over markers of k_i = 0 for any shape of a disc (Gauss-Bonnet): tests the metric."""
    return _made(
        "curvature_sums_to_zero", s, {"sum": Number(0.0, "rad", "over all markers, at any time")}
    )


def cloth_slips_below_cube(s: SetUp) -> Prediction:
    """`flexible.tablecloth` until the cloth's edge passes below the cube's centre."""
    drive = s.drive("rod").parameters
    start = s.position("cube")
    edge = float(s.position("textile")[0]) + _sheet(s).size[0] / 2 - float(start[0])
    direction = np.asarray(drive["direction"], np.float64)
    numbers = {k: v for k, v in drive.items() if isinstance(v, float)}
    made = flexible.tablecloth(
        s.number("cube", "friction"), edge,
        acceleration=numbers["acceleration"], speed=numbers["speed"],
    )  # fmt: skip

    def at(times: F8) -> F8:
        t = np.asarray(times, np.float64)
        out: F8 = start + made.acceleration * t[:, None] ** 2 / 2 * direction
        return out

    return Prediction(
        "cloth_slips_below_cube", s.card.id, s.subtask, s.material,
        {
            "acceleration": Number(made.acceleration, "m/s^2", "of the cube along the pull"),
            "passed": Number(made.passed, "s", "the cloth's edge is below its centre"),
            "moved": Number(made.moved, "m", "way of the cube by then"),
        },
        "cube", at, (0.0, min(made.passed, s.duration)),
    )  # fmt: skip


# --- soft bodies ----------------------------------------------------------------------------------


def _block(s: SetUp, body: str = "foam") -> tuple[float, float]:
    """Side of a bar's square section and its length [m]."""
    size = s.shape(body, Box).size
    return min(size), max(size)


def _elastic(s: SetUp, body: str = "foam") -> tuple[float, float]:
    return s.number(body, "young"), poisson(s.number(body, "poisson")).value


def _areas(s: SetUp, points: F8) -> F8:
    """Areas (N, F) of our faces for marker positions (N, M, 3)."""
    return face_areas(points, markers(s.card, s.subtask, s.material).faces)


def block_stretches(s: SetUp) -> Prediction:
    """Uniform stretch with transverse stretch (1 + eps)^(-nu); force; buckling strains."""
    young, nu = _elastic(s)
    side, length = _block(s)
    rest = _areas(s, markers(s.card, s.subtask, s.material).points[None])[0]

    def strain(times: F8) -> F8:
        out: F8 = s.motion("clamp_top", np.asarray(times, np.float64)).offset[:, 2] / length
        return out

    def at(times: F8) -> F8:
        out: F8 = rest * (1 + strain(times))[:, None] ** (1 - nu)
        return out

    final = float(strain(np.array([s.duration]))[0])
    euler, engesser = soft.buckling_strain(side, length, nu)
    change = soft.facet_stretch(final, nu)
    numbers = {
        "strain": Number(final, "1", "at the end"),
        "facet_change": Number(change, "1", "relative, of every facet"),
        "facet_area_change": Number(change * float(rest.mean()), "m^2", "of every facet"),
        "force": Number(abs(soft.stretch_force(young, side, final)), "N", "at the end"),
    }
    if final < 0:
        numbers["buckling_euler"] = Number(euler, "1", "strain at which it buckles, no shear")
        numbers["buckling_engesser"] = Number(engesser, "1", "the same with shear")
    return Prediction(
        "block_stretches", s.card.id, s.subtask, s.material, numbers, "foam", at,
        (0.0, s.duration),
    )  # fmt: skip


def block_shears(s: SetUp) -> Prediction:
    """`soft.clamped_shear` and the strains that it leaves on the +x face's outer facets."""
    young, nu = _elastic(s)
    side, length = _block(s)
    offset = s.motion("clamp_top", np.array([s.duration])).offset[0]
    shift = float(np.linalg.norm(offset[:2]))
    made = soft.clamped_shear(young, nu, side, length, shift)
    face = soft.shear_face_strain(made.phi, abs(float(offset[0])), side / 2, length, 0.0625)
    return _made(
        "block_shears", s,
        {
            "phi": Number(made.phi, "1", "shear over bending"),
            "force": Number(made.force, "N", "sideways"),
            "pure_shear_force": Number(made.pure_shear_force, "N", "G A d / L: too large"),
            "face_strain": Number(face, "1", "+- at the outer facets of the +x face"),
            "axial_strain": Number(made.axial, "1", "of the axis, along the whole of it"),
        },
    )  # fmt: skip


def block_twists(s: SetUp) -> Prediction:
    """`soft.torque`, and facet areas of a uniform twist about the block's axis, free to warp.

    A facet's area feels the warping most: without it, its change would be of the other sign. By how
    much the section shrinks or grows besides depends on the law of the foam beyond small strains,
    and is left out: finite elements of six cells a side lose up to a tenth less than is said here
    by a neo-Hookean law, and a third more by the corotated linear one.
    """
    young, nu = _elastic(s)
    side, length = _block(s)
    marked = markers(s.card, s.subtask, s.material)
    centre = s.position("foam")
    low = float(centre[2]) - length / 2

    def at(times: F8) -> F8:
        angles = s.motion("clamp_top", np.asarray(times, np.float64)).angle
        shapes = [
            soft.twisted(marked.points, centre[:2], low, length, float(a), side) for a in angles
        ]
        return _areas(s, np.array(shapes))

    turn = float(s.motion("clamp_top", np.array([s.duration])).angle[0])
    start, end = at(np.array([0.0, s.duration]))
    change = end - start
    half = len(change) // 2
    return Prediction(
        "block_twists", s.card.id, s.subtask, s.material,
        {
            "torque": Number(soft.torque(young, nu, side, length, abs(turn)), "N m", "at the end"),
            "facet_area_change_x": Number(
                float(change[:half].mean()), "m^2", "on the +x face", accuracy=_BY_LAW
            ),
            "facet_area_change_y": Number(
                float(change[half:].mean()), "m^2", "on the +y face", accuracy=_BY_LAW
            ),
            "turn": Number(math.degrees(abs(turn)), "deg", "of the whole, by its markers' rows"),
        },
        "foam", at, (0.0, s.duration),
    )  # fmt: skip


def beam_is_pressed(s: SetUp) -> Prediction:
    """`soft.press_stiffness` and `soft.press_shape`: of the first millimetres."""
    young, nu = _elastic(s)
    side, length = _block(s)
    gap = float(s.position("cube")[2] - s.position("foam")[2]) - side / 2
    cube = s.shape("cube", Box).size
    gap -= cube[2] / 2
    return _made(
        "beam_is_pressed", s,
        {
            "stiffness": Number(
                soft.press_stiffness(young, nu, side, length, cube[1] / 2), "N/m",
                "force over the cube's way, up to 5 mm",
            ),
            "gap": Number(gap, "m", "way of the cube until it touches"),
            **{
                f"deflection_{round(1e3 * at)}": Number(
                    soft.press_shape(nu, side, length, cube[1] / 2, at), "1",
                    f"{round(1e3 * at)} mm from the middle, over the middle's",
                )
                for at in (0.025, 0.05, 0.075)
            },
        },
    )  # fmt: skip


def rod_sticks_and_slips(s: SetUp) -> Prediction:
    """`soft.stick_slip` from the press that the clamp makes first."""
    rod = s.shape("rod", Cylinder)
    press = -float(s.motion("clamp", np.linspace(0.0, s.duration, 301)).offset[:, 2].min())
    young, nu = _elastic(s, "rod")
    made = soft.stick_slip(young, rod.radius, rod.length, s.number("rod", "friction"), press)
    return _made(
        "rod_sticks_and_slips", s,
        {
            "press": Number(made.press, "N", "normal force at first"),
            "buckling": Number(made.buckling, "N", "load at which it buckles"),
            "slip": Number(made.slip, "m", "way of the clamp at which the end slips"),
            "poisson": Number(nu, "1", "that it is run with (eq. 6)"),
        },
    )  # fmt: skip


def blocks_hang(s: SetUp) -> Prediction:
    """`soft.block_cantilever` of foam and rubber cubes, and `blocks.block_swing` from level.

    A record of a swing tells no rest: its means are held against those of the same swing undamped.
    """
    young, nu = _elastic(s, "cube_1")
    side, _ = _block(s, "cube_1")
    masses = s.number("cube_1", "mass"), s.number("cube_2", "mass")
    made = soft.block_cantilever(young, nu, side, 2, *masses)
    swing = block_swing(young, nu, side, 2, *masses, duration=s.duration)
    first, second = (math.degrees(a) for a in made.angles)
    mean = "in the mean of whole swings from level, undamped"
    return _made(
        "blocks_hang", s,
        {
            "drop": Number(made.drop, "m", "of the end, at rest"),
            "reach": Number(made.reach, "m", "of the end from the root, at rest"),
            "angle_2": Number(first, "deg", "of the first rubber cube, at rest"),
            "angle_4": Number(second, "deg", "of the second, at rest"),
            "outer_strain": Number(made.outer_strain, "1", "greatest, of the foam, at rest"),
            "mean_drop": Number(swing.drop, "m", mean),
            "mean_reach": Number(swing.reach, "m", mean),
            "mean_angle_2": Number(math.degrees(swing.angles[0]), "deg", mean),
            "mean_angle_4": Number(math.degrees(swing.angles[1]), "deg", mean),
            "frequency": Number(swing.frequency, "Hz", "of small swings about rest"),
        },
    )  # fmt: skip

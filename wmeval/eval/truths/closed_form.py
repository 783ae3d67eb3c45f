"""The table of closed forms: which family each is of, how far it holds, where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wmeval.assets.gauge_cards import Family
from wmeval.assets.gauge_profiles import Measured
from wmeval.errors import UserError
from wmeval.eval.truths import deformable_families as soft
from wmeval.eval.truths import rigid_families as rigid
from wmeval.eval.truths.prediction import Prediction, SetUp


@dataclass(frozen=True)
class ClosedForm:
    """A row of `TRUTHS`.

    Attributes:
        name: key.
        families: card ids.
        subtasks: for which it holds.
        function: what it says about a set-up.
        validity: until when and under what it holds.
        derivation: where it comes from.
        accuracy: relative error of the model itself; 0 where it is exact under its assumptions.
    """

    name: str
    families: tuple[str, ...]
    subtasks: tuple[str, ...]
    function: Callable[[SetUp], Prediction]
    validity: str
    derivation: str
    accuracy: float = 0.0


_ALL = ("1",)
_COULOMB = "Coulomb friction and Newton's law"

_ROWS = (
    ClosedForm(
        "tetrahedron_slides", ("slope_contact",), _ALL, rigid.tetrahedron_slides,
        "until the contact's resultant leaves the slope: frames 0 to 4",
        f"{_COULOMB}; support of two overlapping triangles (rigid.tetrahedron_slide)",
    ),
    ClosedForm(
        "falls_until_contact", ("nonsmooth_contact",), ("1", "2", "3"), rigid.falls_until_contact,
        "until the first contact, which rests on an inferred base: frames 0 to 3, in 2 to 4",
        "free fall; contact by linear programming (rigid.first_contact)",
    ),
    ClosedForm(
        "cube_sticks", ("slope_slider",), ("1",), rigid.cube_sticks,
        "always, for tan th < mu", _COULOMB,
    ),
    ClosedForm(
        "cube_slides", ("slope_slider",), ("2",), rigid.cube_slides,
        "until its centre is over the board's lower end", _COULOMB,
    ),
    ClosedForm(
        "cube_slides_as_board_tilts", ("slope_slider",), ("3",), rigid.cube_slides_as_board_tilts,
        "until its centre is over the board's lower end; no tipping",
        f"{_COULOMB} in the turning frame (rigid.tilting_board)",
    ),
    ClosedForm(
        "cube_on_turntable", ("turntable",), ("1", "2", "3"), rigid.cube_on_turntable,
        "until it leaves the plate; its footprint is ignored",
        f"{_COULOMB} in the plane (rigid.turntable)", 0.02,
    ),
    ClosedForm(
        "ball_bounces", ("bouncing_ball",), _ALL, rigid.ball_bounces,
        "always, for a restitution that does not depend on speed",
        "free fall, Newton's restitution",
    ),
    ClosedForm(
        "cradle_transfers", ("newtons_cradle",), _ALL, rigid.cradle_transfers,
        "lossless and at one contact at a time",
        "energy; elliptic integral (rigid.swing_period); impacts in turn (chain.chain_transfer)",
    ),
    ClosedForm(
        "wall_is_struck", ("wall_breaking",), _ALL, rigid.wall_is_struck,
        "until the first contact", "undamped pendulum of a solid ball (rigid.swing_time)",
    ),
    ClosedForm(
        "pendulum_swings", ("pendulum",), ("1", "2"), rigid.pendulum_swings,
        "always, without damping, for a solid ball that turns with its rod",
        "Jacobi's elliptic functions (rigid.swing_angle)",
    ),
    ClosedForm(
        "rope_wraps", ("rope_winding",), _ALL, soft.rope_wraps,
        "bounds: ratios are the greatest possible, energy never rises from rest and the kick",
        "Euler and Eytelwein; kinetic and elastic energy at the start (soft.rope_wraps)",
    ),
    ClosedForm(
        "sheet_sags", ("textile_bending",), _ALL, soft.sheet_sags,
        "static, inextensible, once the rod is still", "catenary; clamped heavy elastica", 0.01,
    ),
    ClosedForm(
        "sheet_hangs", ("textile_flinging",), _ALL, soft.sheet_hangs,
        "after the rod stops, small amplitude, no air", "hanging chain (Bessel's zeros)", 0.02,
    ),
    ClosedForm(
        "curvature_sums_to_zero", ("textile_stretching", "textile_flinging"), _ALL,
        soft.curvature_sums_to_zero,
        "always, for markers whose faces form a disc", "Gauss and Bonnet",
    ),
    ClosedForm(
        "ball_leads_sheet", ("funnel", "rotating_ball"), _ALL, soft.ball_leads_sheet,
        "while the ball presses on the sheet, which does not stretch; corners and folds: bounds",
        "symmetry under half a turn; a chord is no longer than its arc (soft.ball_leads_sheet)",
    ),
    ClosedForm(
        "cloth_slips_below_cube", ("tablecloth_pulling",), _ALL, soft.cloth_slips_below_cube,
        "until the cloth's edge passes below the cube's centre; the cloth does not stretch",
        _COULOMB,
    ),
    ClosedForm(
        "block_stretches", ("foam_stretching", "foam_compressing"), _ALL, soft.block_stretches,
        "quasi-static, below the buckling strain; the clamps' hindrance is ignored",
        "uniform strain with a constant logarithmic Poisson ratio", 0.05,
    ),
    ClosedForm(
        "block_shears", ("foam_shearing",), _ALL, soft.block_shears,
        "static, small rotation", "Timoshenko's beam, ends clamped (soft.clamped_shear)", 0.10,
    ),
    ClosedForm(
        "block_twists", ("foam_twisting",), _ALL, soft.block_twists,
        "quasi-static, free warping; facets by 40 %, for foam's law beyond small strains",
        "Saint-Venant's torsion", 0.10,
    ),
    ClosedForm(
        "beam_is_pressed", ("foam_bending",), _ALL, soft.beam_is_pressed,
        "for the first 5 mm of deflection",
        "Timoshenko's beam, ends clamped, pressed by two edges (soft.press_stiffness)", 0.10,
    ),
    ClosedForm(
        "rod_sticks_and_slips", ("stick_stack",), _ALL, soft.rod_sticks_and_slips,
        "until the end slips", "clamped beam on the rim of its end (soft.stick_slip)", 0.10,
    ),
    ClosedForm(
        "blocks_hang", ("cantilever_beam",), _ALL, soft.blocks_hang,
        "at rest, and in the mean of an undamped swing from level",
        "Reissner's beam, root moment by shooting (soft.block_cantilever); "
        "a chain of Timoshenko's beams in turning frames (blocks.block_swing)", 0.10,
    ),
)  # fmt: skip

TRUTHS: Mapping[str, ClosedForm] = {row.name: row for row in _ROWS}

NO_CLOSED_FORM: Mapping[str, str] = {
    "slope_contact": "after it tips: penetration, energy that never rises",
    "nonsmooth_contact": "after the first contact: as slope_contact",
    "wall_breaking": "after the first contact: as slope_contact; bricks fallen are counted",
    "textile_stretching": "a poke into a framed sheet has no uniaxial form: convergence",
    "foam_bending": "at its full deflection: convergence",
    "funnel": "stretch, penetration, how far the middle is from the ball, what is through the hole",
    "rotating_ball": "stretch, penetration, how far the middle is from the ball, corners' turn",
}
"""What has no closed form, and what is measured in its place: `wmeval.eval.sweep.conserved` where
bodies are rigid, depths and strains for the rest. How little a number changes with the step is no
number of one run: two points of a grid tell it."""


def closed_forms(card: Family, subtask: str | None = None) -> tuple[ClosedForm, ...]:
    """Closed forms of a family, or of one of its subtasks."""
    return tuple(
        row
        for row in TRUTHS.values()
        if card.id in row.families and (subtask is None or subtask in row.subtasks)
    )


def predict(
    card: Family,
    subtask: str,
    material: str,
    *,
    motions: Mapping[str, Measured] | None = None,
) -> tuple[Prediction, ...]:
    """What the closed forms say about a set-up.

    Args:
        card: the family; a changed card gives other predictions.
        subtask: of it.
        material: of it.
        motions: measured motions by body, in place of the card's drives.

    Raises:
        UserError: no such subtask, material, or number on the card.
    """
    card.frames(subtask, material)
    for body in motions or {}:
        if body not in {d.body for d in card.drives(subtask, material)}:
            raise UserError(f"{card.id}: nothing drives {body!r}, so no motion can replace it")
    set_up = SetUp(card, subtask, material, motions or {})
    return tuple(row.function(set_up) for row in closed_forms(card, subtask))

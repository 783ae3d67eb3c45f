"""From recovered quantities to measurements: the reference's truth against one estimate.

Every metric that a scene allows is asked for here, once, whatever the estimate's source; what an
estimate lacks comes out as ``not_measured`` with its reason, never as a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.eval.metrics import causality, flow, mechanics, trajectory
from wmeval.eval.metrics.table import METRICS, NEEDS_WEIGHTS
from wmeval.eval.perception import Estimate, series_of
from wmeval.eval.results import Measurement, MeasureSource
from wmeval.records import Events, WorldLog
from wmeval.scene import Scene

F8 = NDArray[np.float64]

LEAST_COVERAGE = 0.5
"""Share of the frames (of the moving pixels) that must be measured before a path (flow) counts."""
LEAST_SPEED_MPS = 0.05
"""Speed below which a reference's momentum and energy are under the floor of ErrorRate."""


@dataclass(frozen=True, eq=False)
class Truth:
    """What the reference knows, on the candidate's frames.

    Attributes:
        scene: of this case.
        log: row i is the state beside frame i.
        times: of the frames, exact [s].
        pairs: frame pairs whose flow is compared.
        flows: exact flows of the pairs (H, W, 2) [px].
        events: of the whole reference.
        shape: its trajectory shape ("none" where there is no chain).
        player: name of the driven body; None where nothing is driven.
        tracked: bodies that pixels are asked for beside it.
        dimensions: evaluation dimensions that the scene serves: light and liquid are compared
            where they are what is asked about.
    """

    scene: Scene
    log: WorldLog
    times: tuple[Fraction, ...]
    pairs: tuple[tuple[int, int], ...]
    flows: tuple[NDArray[np.float32], ...]
    events: Events
    shape: str
    player: str | None
    tracked: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()

    @property
    def seconds(self) -> F8:
        """Times of the frames [s]."""
        return np.array([float(t) for t in self.times])

    @property
    def roles(self) -> dict[str, str]:
        """Body -> role."""
        return {b.name: b.role for b in self.scene.bodies}

    @property
    def subjects(self) -> dict[str, tuple[str, ...]]:
        """Whose paths are compared: the driven body, then every other role that can move.

        Groups go by their role; the driven body by its name.
        """
        out: dict[str, tuple[str, ...]] = {}
        if self.player is not None:
            out[self.player] = (self.player,)
        for body in self.scene.bodies:
            moves = body.motion != "static" and body.mass > 0 and body.active
            if moves and body.name != self.player:
                out[body.role] = (*out.get(body.role, ()), body.name)
        return out

    def mass(self, body: str) -> float:
        """Mass [kg]."""
        return self.scene.bodies[self.scene.index(body)].mass

    def position(self, body: str) -> F8:
        """(T, 3) [m]."""
        return self.log.state.position[:, self.log.state.body(body)]

    def velocity(self, body: str) -> F8:
        """(T, 3) [m/s], the engine's own."""
        return self.log.state.linear_velocity[:, self.log.state.body(body)]


def measure(
    truth: Truth, estimate: Estimate, *, tolerance: float | None = None
) -> tuple[tuple[Measurement, ...], tuple[mechanics.Quantity, ...]]:
    """Every metric of one estimate, and the mechanical quantities behind them.

    Args:
        truth: the reference on the estimate's frames.
        estimate: of the candidate (or of the reference itself: identity check, floor).
        tolerance: windowing of the causal chain, see `causality.answers`.
    """
    subjects = truth.subjects
    if estimate.source != "oracle":
        # Pixels are only asked for what the tracker was seeded with.
        asked = {truth.player, *truth.tracked}
        subjects = {s: b for s, b in subjects.items() if asked.issuperset(b)}
    out: list[Measurement] = []
    if not truth.subjects:
        reason = "nothing in this scene is driven or moved"
        out += _absent((*_PATH_METRICS, *_MECHANICS), "scene", estimate.source, reason)
    for subject, bodies in subjects.items():
        out += _paths(truth, estimate, subject, bodies)
    quantities: list[mechanics.Quantity] = []
    everyone = tuple(b for bodies in subjects.values() for b in bodies)
    groups: dict[str, tuple[str, ...]] = {}
    if truth.player is not None:
        groups[truth.player] = (truth.player,)
    if len(everyone) > 1:
        groups["all bodies"] = everyone
    for subject, bodies in groups.items():
        rows, found = _mechanics(truth, estimate, subject, bodies)
        out += rows
        quantities += found if subject == truth.player else []
    out += _flows(truth, estimate)
    if truth.shape in causality.SHAPE_CHAINS:
        out += _chain(truth, estimate, tolerance)
    for dimension in _RECORDED:
        if dimension in truth.dimensions:
            out += _recorded(truth, estimate, dimension)
    return tuple(out), tuple(quantities)


def unrun(dimensions: Sequence[str]) -> tuple[Measurement, ...]:
    """Metrics of these dimensions that need weights which are not here."""
    return tuple(
        Measurement(
            metric=row.name,
            subject="picture",
            source="learned",
            status="not_run",
            reason=f"weights {row.weights}",
        )
        for row in NEEDS_WEIGHTS.values()
        if row.dimension in dimensions
    )


def ineligible(
    measurements: Sequence[Measurement], reasons: Mapping[str, str]
) -> tuple[Measurement, ...]:
    """Replace the numbers of dimensions that a model may not be scored on.

    Args:
        measurements: of one case.
        reasons: dimension -> why it is ineligible.
    """
    return tuple(
        Measurement(
            metric=m.metric,
            subject=m.subject,
            source=m.source,
            status="ineligible",
            reason=reasons[dimension],
        )
        if (dimension := dimension_of(m.metric)) in reasons
        else m
        for m in measurements
    )


def below_floor(
    measurements: Sequence[Measurement],
    pixel_floor: Sequence[Measurement],
    still: Sequence[Measurement],
) -> list[Measurement]:
    """Withdraw what pixels cannot measure here (ours).

    Errors of momenta, energies and flow are judged against the reference's own motion: where its
    own video already scores no better than a picture that never moves, no number from pixels says
    anything of a candidate. Metres keep their floor beside them.

    Args:
        measurements: of one case.
        pixel_floor: of the reference's own video.
        still: of a picture that never moves.
    """
    own = {x.key[:2]: x.value for x in pixel_floor}
    frozen = {x.key[:2]: x.value for x in still}

    def checked(x: Measurement) -> Measurement:
        card, floor, scale = METRICS[x.metric], own.get(x.key[:2]), frozen.get(x.key[:2])
        if x.source != "classical" or x.value is None or card.dimension not in _RELATIVE:
            return x
        if floor is None or scale is None:
            return x
        if floor < scale if card.direction == "lower" else floor > scale:
            return x
        unit = "" if card.unit == "1" else f" {card.unit}"
        return Measurement(
            metric=x.metric,
            subject=x.subject,
            source=x.source,
            status="not_measured",
            n=x.n,
            coverage=x.coverage,
            reason=f"below the pixel floor: the reference's own video scores {floor:.3g}{unit}, "
            f"a picture that never moves {scale:.3g}{unit}",
            detail={"value": x.value},
        )

    return [checked(x) for x in measurements]


def dimension_of(metric: str) -> str:
    """Evaluation dimension of a metric."""
    return (METRICS.get(metric) or NEEDS_WEIGHTS[metric]).dimension


# --- parts --------------------------------------------------------------------------------------


def _number(
    metric: str,
    subject: str,
    source: MeasureSource,
    value: float,
    *,
    n: int,
    coverage: float | None = None,
    **detail: Any,
) -> Measurement:
    kept = {k: (None if isinstance(v, float) and not math.isfinite(v) else v)
            for k, v in detail.items()}  # fmt: skip
    share = None if coverage is None or not math.isfinite(coverage) else coverage
    if not math.isfinite(value):
        return Measurement(
            metric=metric,
            subject=subject,
            source=source,
            status="not_measured",
            n=n,
            coverage=share,
            reason=METRICS[metric].nan_rule,
            detail=kept,
        )
    return Measurement(
        metric=metric, subject=subject, source=source, value=value, n=n, coverage=share,
        detail=kept,
    )  # fmt: skip


def _absent(
    metrics: Sequence[str],
    subject: str,
    source: MeasureSource,
    reason: str,
    coverage: float | None = None,
) -> list[Measurement]:
    return [
        Measurement(
            metric=m,
            subject=subject,
            source=source,
            status="not_measured",
            reason=reason,
            coverage=coverage,
        )
        for m in metrics
    ]


_RELATIVE = ("mechanics", "controllability")
"""Dimensions whose metrics compare with the size of the reference's own motion."""
_PATH_METRICS = ("fde", "dtw", "dtw_sum", "rmse")
_MECHANICS = ("momentum_rmse", "energy_rmse", "exact_match", "error_rate", "robust_error")
_FLOWS = ("rel_epe_dyn", "cos_sim_dyn")
_CHAIN = ("csr", "amcl", "mcl", "rf", "ws", "dua", "icra", "stage_delay")


_RECORDED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "lighting": (
        "light",
        {
            "sun_direction_error": "sun_direction",
            "sun_color_error": "sun_color",
            "sky_color_error": "sky",
        },
    ),
    "fluid": (
        "liquid",
        {
            "surface_normal_error": "surface_normal",
            "modal_amplitude_rmse": "slosh_amplitude",
        },
    ),
}
"""Dimension -> its subject, and metrics of records with the series that they compare."""


def _unmeasurable(truth: Truth, estimate: Estimate, bodies: Sequence[str]) -> tuple[str, float]:
    """Why the paths of bodies cannot be scored (empty: they can), and their coverage."""
    if "positions" in estimate.missing:
        return estimate.missing["positions"], 0.0
    if estimate.source == "classical" and not set(bodies) & set(estimate.positions):
        return "pixels follow balls on the floor that the first frame shows, and this is none", 0.0
    valid = [
        trajectory.jointly_valid(estimate.positions[b], truth.position(b))
        if b in estimate.positions
        else np.zeros(len(truth.times), bool)
        for b in bodies
    ]
    coverage = float(np.mean(valid)) if len(truth.times) else 0.0
    if coverage < LEAST_COVERAGE:
        share = f"{100 * coverage:.0f} % of the frames"
        return f"found in {share}, needs {100 * LEAST_COVERAGE:.0f} %", coverage
    return "", coverage


def _mean(values: Sequence[float]) -> float:
    finite = [v for v in values if math.isfinite(v)]
    return float(np.mean(finite)) if finite else math.nan


def _paths(
    truth: Truth, estimate: Estimate, subject: str, bodies: Sequence[str]
) -> list[Measurement]:
    reason, coverage = _unmeasurable(truth, estimate, bodies)
    if reason:
        return _absent(_PATH_METRICS, subject, estimate.source, reason, coverage)
    pairs = [(estimate.positions[b], truth.position(b)) for b in bodies if b in estimate.positions]
    warps = [trajectory.warp(c, r) for c, r in pairs]
    values = {
        "fde": _mean([trajectory.final_displacement(c, r) for c, r in pairs]),
        "dtw": _mean([w.mean for w in warps]),
        "dtw_sum": _mean([w.total for w in warps]),
        "rmse": _mean([trajectory.rmse(c, r) for c, r in pairs]),
    }
    frames = int(sum(trajectory.jointly_valid(c, r).sum() for c, r in pairs))
    valid = np.flatnonzero(trajectory.jointly_valid(*pairs[0])).tolist() if pairs else []
    last = float(truth.seconds[valid[-1]]) if valid else math.nan
    details: dict[str, dict[str, Any]] = {
        "fde": {"at_s": last} if len(bodies) == 1 else {},
        "dtw": {"path_length": len(warps[0].path)} if len(bodies) == 1 else {},
    }
    return [
        _number(
            name, subject, estimate.source, value, n=frames, coverage=coverage,
            bodies=len(bodies), **details.get(name, {}),
        )
        for name, value in values.items()
    ]  # fmt: skip


def _candidate_velocity(truth: Truth, estimate: Estimate, body: str) -> F8:
    if body in estimate.velocities:
        return estimate.velocities[body]
    if body in estimate.positions:
        track = estimate.positions[body]
        if estimate.source == "oracle":
            return mechanics.difference_velocity(track, truth.seconds)
        return mechanics.fitted_velocity(track, truth.seconds)
    return np.full((len(truth.times), 3), np.nan)


def _mechanics(
    truth: Truth, estimate: Estimate, subject: str, bodies: Sequence[str]
) -> tuple[list[Measurement], list[mechanics.Quantity]]:
    reason, coverage = _unmeasurable(truth, estimate, bodies)
    if not reason and not any(truth.mass(b) > 0 for b in bodies):
        reason = "the body has no mass" if len(bodies) == 1 else "the bodies have no mass"
    if reason:
        return _absent(_MECHANICS, subject, estimate.source, reason, coverage), []
    # What a hand or a gait moves has no mass to carry a momentum with.
    bodies = [b for b in bodies if truth.mass(b) > 0]
    quantities: list[mechanics.Quantity] = []
    momentum_errors: list[float] = []
    energy_errors: list[float] = []
    for body in bodies:
        mass = truth.mass(body)
        v_c, v_r = _candidate_velocity(truth, estimate, body), truth.velocity(body)
        valid = trajectory.jointly_valid(v_c, v_r)
        p_c, p_r = mechanics.momentum(mass, v_c), mechanics.momentum(mass, v_r)
        e_c, e_r = mechanics.kinetic_energy(mass, v_c), mechanics.kinetic_energy(mass, v_r)
        momentum_errors.append(trajectory.rmse(p_c, p_r))
        energy_errors.append(trajectory.rmse(e_c[:, None], e_r[:, None]))
        quantities += _quantities(body, mass, valid, p_c, p_r, e_c, e_r)
    out = [
        _number("momentum_rmse", subject, estimate.source, _mean(momentum_errors),
                n=len(bodies), coverage=coverage),
        _number("energy_rmse", subject, estimate.source, _mean(energy_errors),
                n=len(bodies), coverage=coverage),
    ]  # fmt: skip
    for name in ("exact_match", "error_rate", "robust_error"):
        score: mechanics.Score = METRICS[name].function(quantities)
        out.append(
            _number(
                name, subject, estimate.source, score.value, n=score.n, coverage=coverage,
                below_floor=score.below_floor, unmeasured=score.unmeasured,
            )
        )  # fmt: skip
    return out, quantities


def _quantities(
    body: str, mass: float, valid: NDArray[np.bool_], p_c: F8, p_r: F8, e_c: F8, e_r: F8
) -> list[mechanics.Quantity]:
    """Momentum magnitude and kinetic energy of one body at the end and at their peaks."""
    where = np.flatnonzero(valid)
    momentum_floor = mass * LEAST_SPEED_MPS
    energy_floor = 0.5 * mass * LEAST_SPEED_MPS**2
    size_c, size_r = np.linalg.norm(p_c, axis=1), np.linalg.norm(p_r, axis=1)
    out = []
    for name, unit, c, r, floor in (
        ("momentum", "kg m/s", size_c, size_r, momentum_floor),
        ("kinetic energy", "J", e_c, e_r, energy_floor),
    ):
        last = (c[where[-1]], r[where[-1]]) if len(where) else (math.nan, r[-1])
        peak = (c[where].max(), r[where].max()) if len(where) else (math.nan, r.max())
        for when, (here, there) in (("terminal", last), ("peak", peak)):
            out.append(
                mechanics.Quantity(f"{when} {name}", body, unit, float(here), float(there), floor)
            )
    return out


def _flows(truth: Truth, estimate: Estimate) -> list[Measurement]:
    if estimate.flows is None:
        reason = estimate.missing.get("flows", "no flow")
        return _absent(_FLOWS, "picture", estimate.source, reason)
    out = []
    for name in _FLOWS:
        score: flow.FlowScore = METRICS[name].function(estimate.flows, truth.flows)
        if score.pairs and score.coverage < LEAST_COVERAGE:
            reason = (
                f"flow is known on {100 * score.coverage:.0f} % of the moving pixels, "
                f"needs {100 * LEAST_COVERAGE:.0f} %"
            )
            out += _absent((name,), "picture", estimate.source, reason, score.coverage)
            continue
        out.append(
            _number(
                name, "picture", estimate.source, score.value, n=score.pairs,
                coverage=score.coverage, empty_pairs=score.empty, pixels=score.pixels,
            )
        )  # fmt: skip
    return out


def _chain(truth: Truth, estimate: Estimate, tolerance: float | None) -> list[Measurement]:
    if estimate.events is None:
        reason = estimate.missing.get("events", "no events")
        return _absent(_CHAIN, "chain", estimate.source, reason)
    story = causality.Story.of
    end = float(truth.times[-1])
    reference = story(truth.events, truth.roles, until=end)
    # A stage that the reference completes after the last shared frame is not asked about.
    asked = causality.completed(truth.shape, story(truth.events, truth.roles), reference)
    answers = causality.answers(
        truth.shape,
        reference,
        story(estimate.events, truth.roles, until=end),
        tolerance=tolerance,
        asked=asked,
    )
    after = len(causality.SHAPE_CHAINS[truth.shape]) - len(asked)
    score = causality.walk(answers)
    # A list, so that the order of the stages outlives sorted keys.
    marks = [[a.stage, a.seen, a.caused] for a in answers]
    values = {
        "csr": 100.0 * score.success,
        "amcl": score.longest,
        "mcl": score.longest,
        "rf": score.restarts,
        "ws": score.weighted,
        "dua": score.descriptive,
        "icra": score.causal,
        "stage_delay": score.delay,
    }
    return [
        _number(
            name, "chain", estimate.source, value, n=score.stages, shape=truth.shape,
            stages_seen_caused=marks, weighted_full=score.weighted_full,
            stages_after_end=after,
        )
        for name, value in values.items()
    ]  # fmt: skip


def _recorded(truth: Truth, estimate: Estimate, dimension: str) -> list[Measurement]:
    subject, metrics = _RECORDED[dimension]
    own, out = series_of(truth.log), []
    for name, series in metrics.items():
        if series not in estimate.series or series not in own:
            reason = "only a record knows it" if estimate.source != "oracle" else "not recorded"
            out += _absent((name,), subject, estimate.source, reason)
            continue
        here, there = estimate.series[series], own[series]
        known = np.isfinite(here).all(axis=1) & np.isfinite(there).all(axis=1)
        out.append(
            _number(
                name, subject, estimate.source, METRICS[name].function(here, there),
                n=int(known.sum()), coverage=float(known.mean()),
            )
        )  # fmt: skip
    return out

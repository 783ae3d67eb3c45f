"""The one table of metrics: what each number means, whatever it is computed from.

The functions themselves are pure and live beside this module; `wmeval.eval.measure` calls them on
recovered quantities and labels what comes out with these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from wmeval.eval.metrics import causality, flow, fluid, lighting, mechanics, trajectory

Direction = Literal["lower", "higher", "none"]
Aggregate = Literal["mean", "max", "proportion"]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: key in results.
        title: as tables print it.
        dimension: evaluation dimension (eligibility is decided by it).
        unit: SI unit, "%" or "1".
        low, high: range of possible values.
        direction: which way is better.
        equation: the formula, in one line.
        source: where the formula stands; "ours" where the reading is ours.
        nan_rule: when there is no value.
        says: one sentence for a reader who meets it for the first time; ``{value}`` is filled in.
        function: the pure function.
        aggregate: how cases are summed up: their mean, maximum, or a proportion of successes.
    """

    name: str
    title: str
    dimension: str
    unit: str
    low: float
    high: float
    direction: Direction
    equation: str
    source: str
    nan_rule: str
    says: str
    function: Callable[..., Any]
    aggregate: Aggregate = "mean"

    @property
    def arrow(self) -> str:
        """The direction as a sign."""
        return {"lower": "↓", "higher": "↑", "none": ""}[self.direction]


_INF = float("inf")
_KINEMATICS = "WMEval, appendix Kinematics and Mechanics"
_FLOW = "WMEval, appendix Action Controllability"
_CHAIN = "WMEval, appendix Physical Causality"

METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric(
            "fde", "Final displacement", "kinematics", "m", 0, _INF, "lower",
            "|x^_T - x_T|, T the last frame measured in both", _KINEMATICS,
            "no frame is measured in both",
            "ends {value} from where it should",
            trajectory.final_displacement,
        ),
        Metric(
            "dtw", "DTW, mean step", "kinematics", "m", 0, _INF, "lower",
            "min over monotone paths of the sum of |x^_i - x_j|, divided by the path's length",
            _KINEMATICS, "a track holds no measured frame",
            "strays {value} from the path on average, timing apart",
            trajectory.warp,
        ),
        Metric(
            "dtw_sum", "DTW, sum", "kinematics", "m", 0, _INF, "lower",
            "min over monotone paths of the sum of |x^_i - x_j|", _KINEMATICS,
            "a track holds no measured frame",
            "adds up {value} of deviation along the best alignment",
            trajectory.warp,
        ),
        Metric(
            "rmse", "Position RMSE", "kinematics", "m", 0, _INF, "lower",
            "sqrt(mean_t |x^_t - x_t|^2)", "GAUGE eq. 1", "no frame is measured in both",
            "is {value} off at the same instant (RMS)",
            trajectory.rmse,
        ),
        Metric(
            "momentum_rmse", "Momentum RMSE", "mechanics", "kg m/s", 0, _INF, "lower",
            "sqrt(mean_t |p^_t - p_t|^2), p = m v; v as recorded, from pixels the median slope of "
            "0.4 s of the track (ours)",
            "ours, of WMEval's p", "no velocity in both",
            "carries a momentum {value} off (RMS)",
            mechanics.momentum,
        ),
        Metric(
            "energy_rmse", "Kinetic energy RMSE", "mechanics", "J", 0, _INF, "lower",
            "sqrt(mean_t (E^_t - E_t)^2), E = m |v|^2 / 2", "ours, of WMEval's E",
            "no velocity in both",
            "carries a kinetic energy {value} off (RMS)",
            mechanics.kinetic_energy,
        ),
        Metric(
            "exact_match", "ExactMatch", "mechanics", "%", 0, 100, "higher",
            "share of quantities equal after rounding to two significant digits", _KINEMATICS,
            "no quantity is measured",
            "matches {value} of the mechanical quantities to two digits",
            mechanics.exact_match,
        ),
        Metric(
            "error_rate", "ErrorRate", "mechanics", "%", 0, _INF, "lower",
            "mean over quantities of |q^ - q| / |q|; |q| below its floor is left out and counted",
            _KINEMATICS, "no quantity is measured and above its floor",
            "has its mechanical quantities wrong by {value} on average",
            mechanics.error_rate,
        ),
        Metric(
            "robust_error", "Robust error", "mechanics", "%", 0, _INF, "lower",
            "median over quantities of |q^ - q| / |q|", "ours, of WMEval's tables 4 and 16",
            "as ErrorRate",
            "has a typical mechanical quantity wrong by {value}",
            mechanics.robust_error,
        ),
        Metric(
            "rel_epe_dyn", "Relative flow error", "controllability", "1", 0, _INF, "lower",
            "mean_t mean_{M_t} |f_c - f_r| / (|f_r| + 1e-8)", _FLOW,
            "nothing moves in the reference (every M_t empty), or no flow in it is measured",
            "moves its picture with a relative error of {value} (a still picture: 1)",
            flow.relative_epe,
        ),
        Metric(
            "cos_sim_dyn", "Flow direction cosine", "controllability", "1", -1, 1, "higher",
            "mean_t mean_{M_t} f_c . f_r / (|f_c| |f_r| + 1e-8)", _FLOW,
            "as the relative flow error",
            "moves its picture in the reference's direction with cosine {value}",
            flow.cosine_similarity,
        ),
        Metric(
            "csr", "Chains preserved (CSR)", "causality", "%", 0, 100, "higher",
            "share of cases whose every causal condition holds, in sequence", _CHAIN,
            "the reference has no chain, or the candidate's events are not known",
            "preserves the whole causal chain in {value} of the cases",
            causality.walk, "proportion",
        ),
        Metric(
            "amcl", "Longest right sub-chain (AMCL)", "causality", "stages", 0, _INF, "higher",
            "mean over cases of the longest uninterrupted run of right stages", _CHAIN, "as CSR",
            "gets {value} in a row right on average",
            causality.walk,
        ),
        Metric(
            "mcl", "Best sub-chain (MCL)", "causality", "stages", 0, _INF, "higher",
            "maximum over cases of the longest uninterrupted run of right stages", _CHAIN,
            "as CSR",
            "gets {value} in a row right at best",
            causality.walk, "max",
        ),
        Metric(
            "rf", "Restarts (RF)", "causality", "1", 0, _INF, "lower",
            "wrong causal conditions per case; the walk goes on with the next stage", _CHAIN,
            "as CSR",
            "breaks the chain {value} times a case",
            causality.walk,
        ),
        Metric(
            "ws", "Weighted score (WS)", "causality", "points", 0, _INF, "higher",
            "sum of the weights of the right answers; stage k weighs k, both questions alike",
            "ours, of WMEval's appendix Physical Causality", "as CSR",
            "earns {value} weighted points a case",
            causality.walk,
        ),
        Metric(
            "dua", "Stages seen (DUA)", "causality", "%", 0, 100, "higher",
            "share of the descriptive conditions that hold", _CHAIN, "as CSR",
            "shows {value} of the stages",
            causality.walk,
        ),
        Metric(
            "icra", "Causes right (ICRA)", "causality", "%", 0, 100, "higher",
            "share of the causal conditions that hold, each by itself", _CHAIN, "as CSR",
            "has the right cause in {value} of the stages",
            causality.walk,
        ),
        Metric(
            "stage_delay", "Stage timing error", "causality", "s", 0, _INF, "lower",
            "mean over stages seen in both of |t^_k - t_k| of their onsets", "ours",
            "no stage after the first is seen in both",
            "reaches its stages {value} early or late",
            causality.walk,
        ),
        Metric(
            "surface_normal_error", "Surface orientation error", "fluid", "deg", 0, 180, "lower",
            "sqrt(mean_t angle(n^_t, n_t)^2), n the normal of the surface's least-squares plane",
            "ours, of the recorded modal state",
            "no frame has a recorded surface in both",
            "holds its surface {value} askew (RMS)",
            fluid.surface_angle,
        ),
        Metric(
            "modal_amplitude_rmse", "Wave amplitude RMSE", "fluid", "m", 0, _INF, "lower",
            "sqrt(mean_t |a^_t - a_t|^2), a the modes' rises at the wall along world x and y",
            "ours, of the recorded modal state",
            "no frame has recorded waves in both",
            "has its waves {value} off at the wall (RMS)",
            fluid.amplitude_rmse,
        ),
        Metric(
            "sun_direction_error", "Sun direction error", "lighting", "deg", 0, 180, "lower",
            "sqrt(mean_t angle(d^_t, d_t)^2), d the direction of sunlight",
            "ours, of the recorded light", "no frame has a recorded sun in both",
            "has its sun {value} away from where it stands (RMS)",
            lighting.direction_rmse,
        ),
        Metric(
            "sun_color_error", "Sunlight error", "lighting", "%", 0, _INF, "lower",
            "|c^ - c| / |c|, norms over all frames and channels of linear RGB times strength",
            "ours, of the recorded light",
            "no frame has recorded sunlight in both, or the reference's sun never shines",
            "has its sunlight wrong by {value}",
            lighting.relative_light_error,
        ),
        Metric(
            "sky_color_error", "Sky light error", "lighting", "%", 0, _INF, "lower",
            "|s^ - s| / |s|, norms over all frames, zenith, horizon, ground and channels",
            "ours, of the recorded light",
            "no frame has a recorded sky in both, or the reference's sky is black",
            "has its sky wrong by {value}",
            lighting.relative_light_error,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Weighted:
    """A metric that needs learned weights which are not there.

    Attributes:
        name, title, dimension, unit, direction: as in `Metric`.
        weights: what it needs.
    """

    name: str
    title: str
    dimension: str
    unit: str
    direction: Direction
    weights: str


_SHADOWS = "GroundingDINO and SAM 2"

NEEDS_WEIGHTS: dict[str, Weighted] = {
    "clpips": Weighted("clpips", "Causal LPIPS", "causal_lpips", "1", "lower", "LPIPS-Alex"),
    "rel_epe_raft": Weighted(
        "rel_epe_raft", "Relative flow error by RAFT", "controllability", "1", "lower",
        "raft_large_C_T_SKHT_V2",
    ),
    "depth_abs_rel": Weighted(
        "depth_abs_rel", "Depth AbsRel", "consistency", "%", "lower",
        "GroundingDINO, SAM 2 and a depth estimator",
    ),
    "pair_distance": Weighted(
        "pair_distance", "Pairwise distance error", "consistency", "%", "lower",
        "GroundingDINO, SAM 2 and a depth estimator",
    ),
    "character": Weighted(
        "character", "Character consistency", "consistency", "%", "higher",
        "GroundingDINO, SAM 2 and DINOv2",
    ),
    "liquid_flow": Weighted(
        "liquid_flow", "Liquid velocity cosine", "fluid", "1", "higher", "SAM 2 and RAFT",
    ),
    "liquid_jitter": Weighted(
        "liquid_jitter", "Volume jitter difference", "fluid", "1", "lower", "SAM 2",
    ),
    "liquid_drift": Weighted(
        "liquid_drift", "Volume drift difference", "fluid", "1/s", "lower", "SAM 2",
    ),
    "liquid_tilt": Weighted(
        "liquid_tilt", "Surface tilt difference", "fluid", "deg", "lower", "SAM 2",
    ),
    "liquid_spectrum": Weighted(
        "liquid_spectrum", "Slosh spectrum L1", "fluid", "1", "lower", "SAM 2",
    ),
    "scene_retention": Weighted(
        "scene_retention", "Scene retention", "lighting", "%", "higher", _SHADOWS,
    ),
    "shadow_detection": Weighted(
        "shadow_detection", "Shadow detection", "lighting", "%", "higher", _SHADOWS,
    ),
    "sun_disagreement": Weighted(
        "sun_disagreement", "Multi-object sun disagreement", "lighting", "deg", "lower", _SHADOWS,
    ),
    "shadow_jitter": Weighted(
        "shadow_jitter", "Shadow direction jitter", "lighting", "deg", "lower", _SHADOWS,
    ),
    "shadow_area": Weighted(
        "shadow_area", "Shadow area stability", "lighting", "%", "lower", _SHADOWS,
    ),
    "shadow_shape": Weighted(
        "shadow_shape", "Shadow shape drift", "lighting", "1", "lower", _SHADOWS,
    ),
    "prompt_score": Weighted(
        "prompt_score", "Prompt-scene consistency", "prompt_consistency", "1", "higher",
        "a vision-language judge",
    ),
}  # fmt: skip

"""GAUGE's metrics as rows: what each number means (functions in `wmeval.eval.metrics.gauge`)."""

from __future__ import annotations

from wmeval.eval.metrics import gauge, trajectory
from wmeval.eval.metrics.crossings import pd_crossings
from wmeval.eval.metrics.table import Metric

_INF = float("inf")

GAUGE_METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric(
            "rmse", "RMSE", "gauge", "mm, rad or mm^2", 0, _INF, "lower",
            "sqrt(mean_t |g_sim(t) - g_real(t)|^2)", "GAUGE eq. 2",
            "no frame is measured in both",
            "is {value} off at the same instant (RMS)", trajectory.rmse,
        ),
        Metric(
            "dtw", "DTW", "gauge", "mm, rad or mm^2", 0, _INF, "lower",
            "least sum of |g_sim(i) - g_real(j)| over monotone paths, over its path's length",
            "GAUGE eq. 2", "a track holds no measured frame",
            "strays {value} from the course, timing apart", trajectory.warp,
        ),
        Metric(
            "lsd", "Longest rest", "gauge", "s", 0, _INF, "none",
            "longest run of frames with max z - min z <= 0.5 mm and |v| <= 5 mm/s",
            "GAUGE eq. 15", "no frame is measured",
            "rests for {value} at the longest", gauge.longest_rest,
        ),
        Metric(
            "mte_first", "Momentum transfer, first impact", "gauge", "1", 0, _INF, "none",
            "sqrt(dH_out / dH_in) of the first impact", "GAUGE eq. 16",
            "the incoming ball is not raised",
            "passes on {value} of the momentum at its first impact", gauge.mte_first,
        ),
        Metric(
            "mte_mean", "Momentum transfer, mean", "gauge", "1", 0, _INF, "none",
            "mean over apex events of sqrt(h_R / h_L)", "GAUGE eqs. 38, 39",
            "the outgoing ball has no apex",
            "passes on {value} of the momentum on average", gauge.mte_mean,
        ),
        Metric(
            "pd_fourier", "Period, by the spectrum", "gauge", "s", 0, _INF, "none",
            "1 / the frequency of the spectrum's highest bin", "GAUGE B.1",
            "a frame is not measured, or nothing moves",
            "swings once in {value} by its spectrum", gauge.pd_fourier,
        ),
        Metric(
            "pd_crossings", "Period, by crossings", "gauge", "s", 0, _INF, "none",
            "slope of the times of passing the middle, up and down, by least squares",
            "ours: cubics through the frames about a crossing",
            "the middle is passed fewer than three times (two, if it is known)",
            "swings once in {value} by its crossings", pd_crossings,
        ),
        Metric(
            "pd_fit", "Period, by a damped sinusoid", "gauge", "s", 0, _INF, "none",
            "2 pi / w_d of the least-squares damped sinusoid", "GAUGE eqs. 43 to 45",
            "fewer than six frames are measured, or nothing moves",
            "swings once in {value} by the best damped sinusoid", gauge.pd_fit,
        ),
        Metric(
            "el", "Energy loss", "gauge", "1", -_INF, 1, "none",
            "(E_start - E_end) / E_start at the peaks; 0 conserves it", "GAUGE eq. 17",
            "fewer than two peaks, or frames before the first or after the last are not measured",
            "loses {value} of its energy", gauge.energy_loss,
        ),
    )
}  # fmt: skip

"""The report's section on real cube tosses: standings, sensitivity, errors over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH
from wmeval.datasets.mocap.contactnets import RATE as TOSS_RATE
from wmeval.eval.plots import png, style
from wmeval.eval.sweep.cells import CellResult
from wmeval.eval.sweep.toss_standing import Standing
from wmeval.eval.wording import number

F8 = NDArray[np.float64]
Arrays = Callable[[str], Mapping[str, NDArray[Any]]]

COLUMNS = (
    ("position_error", "position [mm]"),
    ("rotation_error", "rotation [deg]"),
    ("penetration", "depth [mm]"),
    ("first_position_error", "measured start [mm]"),
    ("draw_spread", "spread [mm]"),
    ("turn_spread", "spread [deg]"),
)
"""Numbers of a row, each with its interval over tosses."""
RESAMPLES = 400


@dataclass(frozen=True)
class Tosses:
    """Cube tosses under one configuration.

    Attributes:
        task, config: of its cells.
        standings: engines from the best, those that are tied sharing a rank.
        plot: errors over time, as a data URI; "" where there are none.
        notes: sentences below the table.
    """

    task: str
    config: str
    standings: tuple[Standing, ...]
    plot: str
    notes: tuple[str, ...]


def section(
    task: str, config: str, ranked: Sequence[Standing], arrays: Arrays, colours: Mapping[str, str]
) -> Tosses:
    """What the report says of the tosses under one configuration."""
    results = [s.result for s in ranked]
    return Tosses(task, config, tuple(ranked), toss_plot(results, arrays, colours), notes(results))


def notes(results: Sequence[CellResult]) -> tuple[str, ...]:
    """What must be known to read the table."""
    if not results:
        return ()
    facts = results[0].facts
    sigma = facts.get("sigma")
    drawn = f" with {_sigma(sigma)}" if isinstance(sigma, dict) else ""
    out = [
        "Errors of position and rotation: means over the tosses of the mean over each recording, "
        "simulated from its first instants; depth: the greatest of a corner in the board; 95 % "
        "bootstrap intervals over tosses.",
        f"Each toss is simulated from {facts.get('draws')} starts: the measured one, alone in the "
        f"column of that name, and others drawn about it{drawn}.",
        "Engines are tied whose errors differ by less than the spread of their starts, or by no "
        "more than resampled tosses do.",
        *dict.fromkeys(_friction(r) for r in results),
    ]
    ruler = facts.get("recording")
    if isinstance(ruler, dict):
        out.append(_ruler(ruler))
    departs = "; ".join(dict.fromkeys(r.departs for r in results if r.departs))
    return (*out, f"Departs: {departs}.") if departs else tuple(out)


def _sigma(sigma: Mapping[str, Any]) -> str:
    return (
        f"{1e3 * float(sigma['position_m']):g} mm, {float(sigma['rotation_rad']):g} rad, "
        f"{float(sigma['linear_mps']):g} m/s and {float(sigma['angular_radps']):g} rad/s an axis"
    )


def _friction(r: CellResult) -> str:
    facts = r.facts
    text = f"friction {number(_real(facts['friction']))}, e {number(_real(facts['restitution']))}"
    options = facts.get("fitted_options")
    for name, value in options.items() if isinstance(options, dict) else ():
        text += f", {name} {number(_real(value))}"
    own = "fitted_by" in facts
    return (
        f"{r.cell.engine.label if own else 'All engines'}: {text}, fitted {'on ' if own else '('}"
        f"{facts['fitted_on']}{'' if own else ')'}; scored on {facts['scored_on']}."
    )


def _ruler(ruler: Mapping[str, Any]) -> str:
    fall, rest = float(ruler["gravity_mps2"]), float(ruler["rest_height_mm"])
    return (
        f"In the recording itself cubes fall with {fall:.2f} m/s² of {GRAVITY} and rest "
        f"{rest:.1f} mm high of {1e3 * HALF_WIDTH:.1f}; its lowest corner is "
        f"{-float(ruler['lowest_mm']):.1f} mm under the board: what no engine can be blamed for."
    )


def _real(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def toss_plot(results: Sequence[CellResult], arrays: Arrays, colours: Mapping[str, str]) -> str:
    """Errors of position and of rotation over time: means over tosses, 95 % of resampled means."""
    from matplotlib import pyplot as plt

    found = [(r, arrays(r.key)) for r in results]
    found = [(r, a) for r, a in found if "toss_course" in a and "toss_turn" in a]
    if not found:
        return ""
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.3))
        for axis, name, scale, label in (
            (axes[0], "toss_course", 1e3, "off the real cube [mm]"),
            (axes[1], "toss_turn", 180 / np.pi, "turned off the real cube [deg]"),
        ):
            for r, own in found:
                times, low, mean, high = band(scale * np.asarray(own[name], np.float64))
                colour = colours.get(r.cell.engine.label)
                said = r.cell.engine.label + (f" [{r.cell.setting[2]}]" if r.cell.grid else "")
                axis.fill_between(times, low, high, color=colour, alpha=0.15, lw=0)
                axis.plot(times, mean, color=colour, lw=1.6, label=said)
            axis.set(xlabel="time [s]", ylabel=label)
            axis.set_ylim(bottom=0)
        axes[0].legend()
        return png(figure)


def band(course: F8) -> tuple[F8, F8, F8, F8]:
    """Times [s], and low, mean and high of resampled means over tosses (T, N), by frame.

    Frames count that half of the tosses or more have: beyond, a mean would be of others.
    """
    keep = np.isfinite(course).mean(axis=0) >= 0.5
    values = course[:, keep]
    random = np.random.Generator(np.random.PCG64(0))
    rows = random.integers(0, len(values), (RESAMPLES, len(values)))
    there = np.isfinite(values)
    sums, counts = np.where(there, values, 0.0)[rows].sum(axis=1), there[rows].sum(axis=1)
    low, high = np.percentile(sums / np.maximum(counts, 1), (2.5, 97.5), axis=0)
    return np.flatnonzero(keep) / TOSS_RATE, low, np.nanmean(values, axis=0), high

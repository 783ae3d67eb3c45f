"""The demonstration: BeamDomino's reference against candidates whose errors are known in advance.

The twin is the same world; three more twins get their actions 0.2, 0.4 and 0.8 s late; the last
candidate repeats the seed frame. What such an instrument must show of them is checked, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wmeval.eval.pair import run_pairs
from wmeval.eval.results import PairConfig, PairResults

ENV_ID = "WMEval/BeamDomino-v0"
PLAYER = "floor_ball"
# 15 frames a second: a control spans four actions of 1/60 s, and the plan's edges fall between two.
CLOCK = "fps=15"
# Whole frames, so that a delay shifts what is seen and nothing else: 3, 6 and 12.
DELAYS = ("0.2", "0.4", "0.8")
CANDIDATES = (
    f"twin:{CLOCK}",
    *(f"twin:delay={delay},{CLOCK}" for delay in DELAYS),
    f"frozen:{CLOCK}",
)


@dataclass(frozen=True)
class Claim:
    """Something that must be so.

    Attributes:
        text: in words, with the numbers.
        holds: whether it is so.
    """

    text: str
    holds: bool


@dataclass(frozen=True)
class Demo:
    """What the demonstration left.

    Attributes:
        results: one per candidate, in order.
        claims: what was checked.
        report: the page to open.
    """

    results: tuple[PairResults, ...]
    claims: tuple[Claim, ...]
    report: Path


def run_demo(
    out: str | Path,
    *,
    workers: int = 2,
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Demo:
    """Compare the five candidates on two scenes and check what must be so.

    Args:
        out: folder of the report; an interrupted run goes on.
        workers: processes over scene seeds.
        overwrite: forget what stands in ``out``.
        progress: called with one line per step.
    """
    configs = [
        PairConfig(
            env_id=ENV_ID,
            candidate=candidate,
            plan="canonical",
            scene_seeds=(0, 1),
            width=384,
            height=208,
        )
        for candidate in CANDIDATES
    ]
    results = run_pairs(configs, out, workers=workers, overwrite=overwrite, progress=progress)
    return Demo(results, claims_of(results), Path(out) / "report.html")


def claims_of(results: tuple[PairResults, ...]) -> tuple[Claim, ...]:
    """What an honest instrument says of candidates with known errors.

    Args:
        results: of `CANDIDATES`, in order.
    """
    twin, *late, frozen = results
    exact = [_value(r, "rmse", PLAYER, "oracle") for r in results]
    seen = [_value(r, "rmse", PLAYER, "classical") for r in late]
    row = late[0].row("rmse", PLAYER, "classical")
    floor = float("nan") if row.pixel_floor is None else row.pixel_floor
    chains = [_value(r, "csr", "chain", "oracle") for r in results]
    return (
        Claim(f"the twin is the reference: position error {exact[0]:.3g} m", exact[0] == 0),
        Claim(
            "the error rises with the delay, exactly: " + _rise(exact[1:-1]),
            exact[0] < exact[1] < exact[2] < exact[3],
        ),
        Claim(
            f"and in pixels, from above their floor of {floor:.3g} m: " + _rise(seen),
            floor < seen[0] < seen[1] < seen[2],
        ),
        Claim(
            f"delays keep the causal chain ({chains[1]:.0f} %), the frozen picture breaks it "
            f"({chains[-1]:.0f} %)",
            chains[:-1] == [100.0] * 4 and chains[-1] == 0.0,
        ),
        Claim(
            "all were compared with the same references",
            len({r.suite_sha256 for r in (twin, *late, frozen)}) == 1,
        ),
    )


def _value(results: PairResults, metric: str, subject: str, source: str) -> float:
    value = results.row(metric, subject, source).value
    return float("nan") if value is None else value


def _rise(values: list[float]) -> str:
    return " < ".join(f"{value:.3g}" for value in values) + " m"

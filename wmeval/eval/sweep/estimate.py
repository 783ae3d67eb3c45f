"""How long a sweep still takes: by what has ended, engine by engine and kind by kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import settings_of
from wmeval.errors import UserError
from wmeval.eval.conformance import CHECKS
from wmeval.eval.sweep.cells import Cell, fraction
from wmeval.eval.sweep.gates import Suite, kind_of
from wmeval.eval.sweep.toss import FAMILY
from wmeval.sim.engines import engine_info
from wmeval.sim.protocol import check_kinds

WEIGHTS: Mapping[str, float] = {"rigid": 1.0, "textile": 20.0, "volume": 30.0}
"""Cost of a substep of each kind of body over a rigid one's: what tells a suite's checks apart."""
SUITE_KIND = "suite"
_UNKNOWN = 1000.0

Part = tuple[str, str]
"""Engine label and kind of body: what shares a speed."""


def cost_of(unit: Cell | Suite) -> tuple[Part, float]:
    """A unit's kind, and how much it is, in substeps of rigid bodies."""
    if isinstance(unit, Suite):
        own = [c for c in unit.checks if _able(unit.engine.adapter, c)]
        steps = sum(CHECKS[c].seconds / float(unit.dt) * WEIGHTS[kind_of(c)] for c in own)
        return (unit.engine.label, SUITE_KIND), steps
    if unit.family == FAMILY:
        return (unit.engine.label, FAMILY), _UNKNOWN
    card = families()[unit.family]
    try:
        base = settings_of(card, unit.engine.adapter, unit.config)
    except UserError:  # it is not run
        return (unit.engine.label, card.rates), 0.0
    dt = fraction(unit.grid.get("dt", base.dt))
    frames = card.frames(unit.subtask, unit.material)
    steps = float(Fraction(frames, 30) / dt)
    return (unit.engine.label, card.rates), steps * WEIGHTS[card.rates]


@cache
def _able(engine: str, check: str) -> bool:
    """Whether an engine has the physics of a check; if not, it says so at once."""
    try:
        check_kinds(CHECKS[check].scene(), engine_info(engine))
    except UserError:
        return False
    return True


class Estimate:
    """Remaining time of units.

    Args:
        units: all that are to be run.
        workers: processes.
    """

    def __init__(self, units: Sequence[Cell | Suite], workers: int) -> None:
        self._workers = max(1, workers)
        self._open = {k: cost_of(u) for k, u in enumerate(units)}
        self._seen: dict[Part, tuple[float, float]] = {}
        self._builds: dict[str, float] = {}
        self._idle = math.inf

    def ended(self, number: int, seconds: float, build: float | None = None) -> None:
        """A unit is done after so much wall time [s], of which ``build`` beside its stepping.

        The first of an engine imports a library and compiles kernels, which the others need not:
        the least that an engine's cells took beside stepping is what each will take. Of a suite,
        or of a cell that did not come back, nobody knows it (None).
        """
        part, cost = self._open.pop(number, (("", ""), 0.0))
        if cost > 0:
            spent, done = self._seen.get(part, (0.0, 0.0))
            self._seen[part] = spent + max(0.0, seconds - (build or 0.0)), done + cost
            if build is not None:
                self._builds[part[0]] = min(build, self._builds.get(part[0], build))
        else:
            self._idle = min(seconds, self._idle)

    def left(self) -> float | None:
        """Seconds until all are done; None until something of each kind of body has ended."""
        kinds: dict[str, tuple[float, float]] = {}
        for (_, kind), (spent, done) in self._seen.items():
            known = kinds.get(kind, (0.0, 0.0))
            kinds[kind] = known[0] + spent, known[1] + done
        rest = 0.0
        for part, cost in self._open.values():
            if cost == 0:
                rest += self._idle if self._idle < math.inf else 0.0
                continue
            # An engine that has shown nothing yet is as fast as the others.
            found = self._seen.get(part) or kinds.get(part[1])
            if found is None:
                return None
            rest += found[0] / found[1] * cost
            if part[1] != SUITE_KIND:  # its checks' building is in their pace
                rest += self._builds.get(part[0], min(self._builds.values(), default=0.0))
        return rest / self._workers


def clock(seconds: float) -> str:
    """A length of time as people say it: ``40 s``, ``12 min``, ``1 h 20 min``; at least 1 s."""
    if seconds < 90:
        return f"{max(1.0, seconds):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"

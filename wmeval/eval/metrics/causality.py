"""The causal chain of BeamDomino, answered from events alone.

Source: WMEval, appendix "Physical Causality" and its pipeline details: the reference's trajectory
shape chooses a chain of stages; every stage asks one descriptive and one causal question; the chain
is walked with advance on failure. Here the questions are put to the candidate's *events* (contacts
and falls), so that the answer needs no judge; they are stated as conditions below (ours), in the
order of the paper's stages. A candidate without events is not scored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wmeval.records import Events
from wmeval.sim.events import SHAPE_STAGE_CHAINS

CONTACT, FALL = "contact", "fall"

SHAPE_CHAINS: Mapping[str, tuple[str, ...]] = {
    shape: chain for shape, chain in SHAPE_STAGE_CHAINS.items() if shape != "none"
}
"""Stages asked about, by the reference's shape; a reference in which nothing is struck has none."""


@dataclass(frozen=True)
class Story:
    """Contacts and falls of one run, by name.

    Attributes:
        contacts: (time [s], one body, other body), ascending.
        falls: body -> time of its first fall [s].
        roles: body -> role.
    """

    contacts: tuple[tuple[float, str, str], ...]
    falls: Mapping[str, float]
    roles: Mapping[str, str]

    @classmethod
    def of(cls, events: Events, roles: Mapping[str, str], *, until: float = math.inf) -> Story:
        """From the events up to a time [s]; kinds other than contacts and falls are left aside."""
        events = tuple(e for e in events if e.time <= until)
        contacts = sorted((e.time, e.body_a, e.body_b) for e in events if e.kind == CONTACT)
        falls: dict[str, float] = {}
        for e in events:
            if e.kind == FALL:
                falls[e.body_a] = min(e.time, falls.get(e.body_a, math.inf))
        return cls(tuple(contacts), falls, roles)

    def role(self, body: str) -> str:
        """Role of a body, a platform's pillars being its legs; empty when it has none."""
        role = self.roles.get(body, "")
        return "leg" if role == "pillar" else role

    def touches(self, first: str, second: str) -> list[tuple[float, str, str]]:
        """Contacts between two roles as (time, body of the first, body of the second)."""
        out = []
        for time, a, b in self.contacts:
            if (self.role(a), self.role(b)) == (first, second):
                out.append((time, a, b))
            elif (self.role(b), self.role(a)) == (first, second):
                out.append((time, b, a))
        return out

    @property
    def first_struck(self) -> tuple[float, str] | None:
        """What the driven ball runs into first, among legs and dominoes."""
        hits = self.touches("player", "leg") + self.touches("player", "domino")
        return min(((t, other) for t, _, other in hits), default=None)

    @property
    def fallen(self) -> tuple[str, ...]:
        """Dominoes in the order of their falls; equal times in the order of their names."""
        dominoes = [(t, n) for n, t in self.falls.items() if self.role(n) == "domino"]
        return tuple(n for _, n in sorted(dominoes))

    @property
    def slab_fall(self) -> float | None:
        """When the platform has tilted past the fall angle."""
        return min((t for n, t in self.falls.items() if self.role(n) == "slab"), default=None)

    def cause_of_first_fall(self) -> str:
        """Role of what touched the first fallen domino first; empty without a fall or a touch.

        Touches by other dominoes and after the fall do not count.
        """
        if not self.fallen:
            return ""
        first = self.fallen[0]
        touches = [
            (time, self.role(b if a == first else a))
            for time, a, b in self.contacts
            if first in (a, b) and time <= self.falls[first]
        ]
        return next((role for _, role in touches if role != "domino"), "")


@dataclass(frozen=True)
class Stage:
    """One stage's two questions, as conditions on (reference, candidate).

    Attributes:
        asks_what: the descriptive question.
        asks_why: the causal question.
        seen: the stage is there.
        caused: it came about as in the reference.
        onset: when it begins [s]; None when it does not.
    """

    asks_what: str
    asks_why: str
    seen: Callable[[Story, Story], bool]
    caused: Callable[[Story, Story], bool]
    onset: Callable[[Story], float | None]


def _role_of(story: Story, hit: tuple[float, str] | None) -> str:
    return "" if hit is None else story.role(hit[1])


def _first_hit(story: Story, role: str) -> float | None:
    return min((t for t, _, _ in story.touches("player", role)), default=None)


def _before(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and first <= second


def _first_fall(story: Story) -> float | None:
    return story.falls[story.fallen[0]] if story.fallen else None


def _same_order(reference: Story, candidate: Story) -> bool:
    return bool(candidate.fallen) and candidate.fallen == reference.fallen


def _handed_on(story: Story) -> bool:
    """Before it fell, every later domino was touched by one that had fallen before it."""
    done: list[str] = []
    for name in story.fallen:
        if done:
            touched = any(
                time <= story.falls[name] and name in (a, b) and (b if a == name else a) in done
                for time, a, b in story.contacts
            )
            if not touched:
                return False
        done.append(name)
    return True


def _toppled_by(role: str) -> Callable[[Story, Story], bool]:
    return lambda _, c: c.cause_of_first_fall() == role


STAGES: Mapping[str, Stage] = {
    "rolling": Stage(
        "does the driven ball run into a leg or a domino?",
        "is what it runs into first the body that the reference's ball runs into first?",
        lambda _, c: c.first_struck is not None,
        lambda r, c: (
            r.first_struck is not None
            and c.first_struck is not None
            and c.first_struck[1] == r.first_struck[1]
        ),
        lambda s: 0.0,
    ),
    "impact": Stage(
        "is a leg struck?",
        "does the platform tip over after the blow, and before any domino falls?",
        lambda _, c: _first_hit(c, "leg") is not None,
        lambda _, c: (
            _before(_first_hit(c, "leg"), c.slab_fall)
            and (not c.fallen or _before(c.slab_fall, _first_fall(c)))
        ),
        lambda s: _first_hit(s, "leg"),
    ),
    "topple": Stage(
        "does a domino fall?",
        "is the first domino to fall the reference's, struck by the released roof ball?",
        lambda _, c: bool(c.fallen),
        lambda r, c: (
            _toppled_by("roof_ball")(r, c) and bool(r.fallen) and c.fallen[0] == r.fallen[0]
        ),
        _first_fall,
    ),
    "cascade": Stage(
        "do as many dominoes fall?",
        "do the same dominoes fall in the same order, each struck by one that fell before it, "
        "after the roof ball began it?",
        lambda r, c: len(c.fallen) == len(r.fallen) > 0,
        lambda r, c: _same_order(r, c) and _handed_on(c) and _toppled_by("roof_ball")(r, c),
        lambda s: s.falls[s.fallen[1]] if len(s.fallen) > 1 else None,
    ),
    "glance": Stage(
        "is a leg struck?",
        "does the platform stay up until the ball itself strikes a domino?",
        lambda _, c: _first_hit(c, "leg") is not None,
        lambda _, c: (
            _before(_first_hit(c, "leg"), _first_hit(c, "domino"))
            and not _before(c.slab_fall, _first_hit(c, "domino"))
        ),
        lambda s: _first_hit(s, "leg"),
    ),
    "strike": Stage(
        "does the driven ball strike a domino?",
        "is the first domino to fall the reference's, struck by the driven ball?",
        lambda _, c: _first_hit(c, "domino") is not None,
        lambda r, c: _toppled_by("player")(r, c) and bool(r.fallen) and c.fallen[0] == r.fallen[0],
        lambda s: _first_hit(s, "domino"),
    ),
    "cascade_from_strike": Stage(
        "do as many dominoes fall?",
        "do the same dominoes fall in the same order, each struck by one that fell before it, "
        "after the driven ball began it?",
        lambda r, c: len(c.fallen) == len(r.fallen) > 0,
        lambda r, c: _same_order(r, c) and _handed_on(c) and _toppled_by("player")(r, c),
        lambda s: s.falls[s.fallen[1]] if len(s.fallen) > 1 else None,
    ),
}


@dataclass(frozen=True)
class Answer:
    """One stage answered.

    Attributes:
        stage: its name.
        seen: the descriptive condition holds.
        caused: the causal condition holds.
        reference_onset, candidate_onset: [s]; NaN where the stage does not begin.
    """

    stage: str
    seen: bool
    caused: bool
    reference_onset: float
    candidate_onset: float


def answers(
    shape: str,
    reference: Story,
    candidate: Story,
    *,
    tolerance: float | None = None,
    asked: Sequence[str] | None = None,
) -> tuple[Answer, ...]:
    """Answer the questions of a reference's chain from a candidate's events.

    Args:
        shape: the reference's trajectory shape; one without a chain gives no answers.
        reference: its story.
        candidate: the candidate's story.
        tolerance: windowing. None looks at the candidate's whole clip, as the paper does; a number
            [s] is the strict option: a stage whose onset is further off is neither seen nor caused.
        asked: stages to ask about; None: all of the chain.
    """
    out = []
    for name in SHAPE_CHAINS.get(shape, ()):
        if asked is not None and name not in asked:
            continue
        stage = STAGES[name]
        there, here = stage.onset(reference), stage.onset(candidate)
        seen, caused = stage.seen(reference, candidate), stage.caused(reference, candidate)
        if tolerance is not None:
            timely = there is not None and here is not None and abs(here - there) <= tolerance
            seen, caused = seen and timely, caused and timely
        out.append(
            Answer(
                name,
                seen,
                caused,
                math.nan if there is None else there,
                math.nan if here is None else here,
            )
        )
    return tuple(out)


def completed(shape: str, whole: Story, cut: Story) -> tuple[str, ...]:
    """Stages that a reference completes before its record is cut: the chain's right beginning.

    A clip that ends early is only asked about these.

    Args:
        shape: of the whole reference.
        whole: all of its story.
        cut: its story up to the last shared frame.
    """
    out: list[str] = []
    for answer in answers(shape, whole, cut):
        if not (answer.seen and answer.caused):
            break
        out.append(answer.stage)
    return tuple(out)


@dataclass(frozen=True)
class ChainScore:
    """One case's chain, walked.

    Attributes:
        stages: length of the chain; 0 when the reference has none (all else is NaN then).
        success: 1.0 when every causal answer is right in sequence, else 0.0 (CSR's summand).
        longest: longest uninterrupted run of right causal answers (AMCL, MCL) [stages].
        restarts: wrong causal answers (RF): the chain is cut there and goes on with the next.
        weighted: sum of the weights of right answers, descriptive and causal (WS) [points].
        weighted_full: what a perfect case earns [points].
        descriptive, causal: share of right answers alone (DUA, ICRA) [%].
        delay: mean |onset difference| of stages after the first seen in both [s]; NaN without one.
    """

    stages: int
    success: float
    longest: float
    restarts: float
    weighted: float
    weighted_full: float
    descriptive: float
    causal: float
    delay: float


def walk(chain: Sequence[Answer], *, weights: Sequence[float] | None = None) -> ChainScore:
    """Walk a chain with advance on failure.

    WMEval, appendix Physical Causality (CausalStep's metrics). A wrong causal answer ends the run
    and the walk goes on with the next stage; every wrong answer counts as a restart (ours).

    Args:
        chain: answers in the order of the stages.
        weights: difficulty of each stage, for its two answers alike; by default (ours) stage k,
            counted from 1, weighs k.
    """
    n = len(chain)
    if not n:
        return ChainScore(0, *([math.nan] * 8))
    w = tuple(float(k + 1) for k in range(n)) if weights is None else tuple(weights)
    if len(w) != n:
        raise ValueError(f"{n} stages but {len(w)} weights")
    longest = run = 0
    for answer in chain:
        run = run + 1 if answer.caused else 0
        longest = max(longest, run)
    right = sum(a.caused for a in chain)
    delays = [abs(a.candidate_onset - a.reference_onset) for a in chain[1:]]
    delays = [d for d in delays if math.isfinite(d)]
    return ChainScore(
        stages=n,
        success=float(right == n),
        longest=float(longest),
        restarts=float(n - right),
        weighted=sum(x * (a.seen + a.caused) for x, a in zip(w, chain, strict=True)),
        weighted_full=2 * sum(w),
        descriptive=100.0 * sum(a.seen for a in chain) / n,
        causal=100.0 * right / n,
        delay=sum(delays) / len(delays) if delays else math.nan,
    )

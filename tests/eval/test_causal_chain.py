"""The chain walk against hand-made stories."""

import itertools
import math

import pytest

from wmeval.eval.metrics.causality import SHAPE_CHAINS, Answer, Story, answers, walk
from wmeval.records import Event

ROLES = {
    "ball": "player", "roof": "roof_ball", "slab": "slab", "leg": "leg", "other_leg": "leg",
    "floor": "floor", **{f"d{i}": "domino" for i in range(5)},
}  # fmt: skip


def contact(time, a, b):
    return Event("contact", time, time, a, b)


def fall(time, body):
    return Event("fall", time, time, body)


def cascade(start, dominoes=5, gap=0.2):
    events = [fall(start + gap * i, f"d{i}") for i in range(dominoes)]
    return events + [
        contact(start + gap * i - 0.05, f"d{i - 1}", f"d{i}") for i in range(1, dominoes)
    ]


def canonical(shift=0.0, dominoes=5):
    return [
        contact(1.5 + shift, "ball", "leg"),
        fall(2.1 + shift, "slab"),
        contact(2.4 + shift, "roof", "slab"),
        contact(2.7 + shift, "roof", "d0"),
        *cascade(2.8 + shift, dominoes),
    ]


GLANCING = [contact(1.5, "ball", "leg"), contact(1.65, "d0", "ball"), *cascade(1.7)]
DIRECT = [contact(1.6, "ball", "d0"), *cascade(1.7)]
STORIES = {"canonical": canonical(), "glancing": GLANCING, "direct_strike": DIRECT}


def ask(shape, candidate, **options):
    reference = Story.of(tuple(STORIES[shape]), ROLES)
    return answers(shape, reference, Story.of(tuple(candidate), ROLES), **options)


@pytest.mark.parametrize("shape", STORIES)
def test_a_reference_answers_its_own_questions(shape):
    score = walk(ask(shape, STORIES[shape]))
    n = len(SHAPE_CHAINS[shape])
    assert (score.stages, score.success, score.longest, score.restarts) == (n, 1, n, 0)
    assert (score.descriptive, score.causal, score.delay) == (100, 100, 0)
    assert score.weighted == score.weighted_full == n * (n + 1)


@pytest.mark.parametrize(("shape", "other"), list(itertools.permutations(STORIES, 2)))
def test_another_shape_fails_the_chain(shape, other):
    assert walk(ask(shape, STORIES[other])).success == 0


@pytest.mark.parametrize("shape", STORIES)
def test_a_candidate_in_which_nothing_happens_answers_nothing(shape):
    score = walk(ask(shape, []))
    assert (score.success, score.longest, score.weighted) == (0, 0, 0)
    assert score.restarts == len(SHAPE_CHAINS[shape])
    assert (score.descriptive, score.causal) == (0, 0)
    assert math.isnan(score.delay)


def test_a_wrong_link_is_told_from_a_missing_one():
    # The dominoes fall, but the ball itself struck them: seen, not caused.
    usurped = [e for e in canonical() if e.body_a != "roof"] + [contact(2.7, "ball", "d0")]
    chain = {a.stage: a for a in ask("canonical", usurped)}
    assert chain["impact"].caused
    assert chain["topple"].seen
    assert not chain["topple"].caused
    assert not chain["cascade"].caused
    assert walk(tuple(chain.values())).longest == 2


def test_wrong_leg_breaks_the_first_stage_only():
    wrong = [contact(1.5, "ball", "other_leg"), *canonical()[1:]]
    chain = ask("canonical", wrong)
    assert [a.caused for a in chain] == [False, True, True, True]
    assert walk(chain).longest == 3
    assert walk(chain).restarts == 1


def test_a_cascade_that_stops_early_or_falls_by_itself_is_not_the_cascade():
    short = ask("canonical", canonical(dominoes=4))
    assert [a.caused for a in short] == [True, True, True, False]
    assert not short[-1].seen
    spontaneous = [e for e in canonical() if not (e.body_a.startswith("d") and e.kind == "contact")]
    chain = ask("canonical", spontaneous)
    assert chain[-1].seen
    assert not chain[-1].caused


def test_effects_before_their_cause_do_not_count():
    early = [e for e in canonical() if e.body_a != "slab"] + [fall(1.0, "slab")]
    assert not ask("canonical", early)[1].caused
    late_touch = [e for e in canonical() if e.body_b != "d0"] + [contact(3.5, "roof", "d0")]
    assert not ask("canonical", late_touch)[2].caused


def test_windowing_whole_clip_forgives_delay_and_strict_does_not():
    late = canonical(shift=0.6)
    whole = walk(ask("canonical", late))
    assert whole.success == 1
    assert whole.delay == pytest.approx(0.6)
    strict = walk(ask("canonical", late, tolerance=0.5))
    assert strict.success == 0
    assert walk(ask("canonical", canonical(shift=0.3), tolerance=0.5)).success == 1


@pytest.mark.parametrize("pattern", list(itertools.product([False, True], repeat=4)))
def test_walk_equals_brute_force(pattern):
    chain = [Answer(str(i), True, right, 0.0, 0.0) for i, right in enumerate(pattern)]
    score = walk(chain)
    text = "".join("x" if p else " " for p in pattern)
    assert score.longest == max(len(run) for run in text.split(" "))
    assert score.restarts == pattern.count(False)
    assert score.success == float(all(pattern))
    assert score.weighted == 10 + sum(k + 1 for k, p in enumerate(pattern) if p)


def test_weights_are_stated_and_checked():
    chain = [Answer("a", True, False, 0, 0), Answer("b", True, True, 0, 0)]
    assert walk(chain, weights=(5.0, 7.0)).weighted == 19
    with pytest.raises(ValueError, match="2 stages but 1"):
        walk(chain, weights=(1.0,))
    assert walk(()).stages == 0
    assert math.isnan(walk(()).success)

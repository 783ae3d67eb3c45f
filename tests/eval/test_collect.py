"""Rows sum up cases by scene: repeated draws of one scene are no independent evidence."""

import pytest

from wmeval.eval.collect import _row
from wmeval.eval.results import CaseRecord, Measurement

KEY = ("csr", "chain", "oracle")


def case(seed, generation, value):
    known = Measurement(metric="csr", subject="chain", source="oracle", value=100.0, n=4)
    return CaseRecord.model_construct(
        scene_seed=seed,
        generation=generation,
        measurements=(known.model_copy(update={"value": value}),),
        identity=(known,),
        pixel_floor=(),
        reduction_floor=(),
    )


def row(generations):
    """Five scenes; two of them are kept in every generation."""
    return _row(KEY, [case(s, g, 100.0 * (s < 2)) for s in range(5) for g in range(generations)])


def test_repeating_a_deterministic_candidate_adds_no_certainty():
    once, often = row(1), row(20)
    assert once.value == often.value == pytest.approx(40.0)
    assert once.p_reference == pytest.approx(often.p_reference)
    assert often.interval[0] <= 20 < 60 <= often.interval[1]
    assert once.interval[1] - once.interval[0] > 60

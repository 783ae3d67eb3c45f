"""Numbers and verdicts in words, and marks in tables."""

import math

import pytest

from wmeval.eval.latex import best_and_tied, separable
from wmeval.eval.results import Row
from wmeval.eval.wording import lines, number, tone


def row(value, *, metric="fde", floor=None, samples=None, status="measured", **more):
    return Row(
        metric=metric, subject="ball", source="classical", title="T", dimension="kinematics",
        unit="m", direction=more.pop("direction", "lower"), status=status, value=value, std=None,
        interval=None, scenes=1, generations=1, cases=1, coverage=1.0, identity=None,
        pixel_floor=floor, reduction_floor=None, samples=samples or {"0": (value,)}, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (math.nan, "–"), (0.0, "0"), (-0.0, "0"), (4.0, "4"), (100.0, "100"),
        (1.0003, "1.00"), (0.09999, "0.100"), (0.9999999, "1.00"), (0.0004567, "0.000457"),
        (12.345, "12.3"), (99.96, "100"), (123.4, "123"), (123456.7, "1.23e+05"), (3e-9, "< 1e-6"),
        (-2.345, "-2.35"),
    ],
)  # fmt: skip
def test_numbers_keep_three_significant_digits(value, text):
    assert number(value) == text
    assert number(1.5, unit="m") == "1.50 m"
    assert number(1.5, unit="1") == "1.50"


def test_a_value_is_judged_by_its_floors_alone():
    assert tone(row(0.101, floor=0.1)) == "good"
    assert tone(row(0.2, floor=0.1)) == "bad"
    assert tone(row(0.95, floor=0.98, direction="higher")) == "good"
    assert tone(row(0.5, floor=0.98, direction="higher")) == "bad"
    assert tone(row(0.2)) == "plain"
    assert tone(row(None, status="not_measured", samples={"0": (None,)})) == "plain"


def test_missing_rows_of_one_reason_share_a_line_after_the_measured():
    missing = [
        row(None, metric=m, status="not_measured", reason=why, samples={"0": (None,)})
        for m, why in (("fde", "lost"), ("dtw", "lost"), ("rmse", "unknown"))
    ]
    out = lines([missing[0], row(1.0, metric="dtw_sum"), *missing[1:]])
    assert [[r.metric for r in line.rows] for line in out] == [
        ["dtw_sum"],
        ["fde", "dtw"],
        ["rmse"],
    ]


def test_only_separable_values_lose_to_the_best():
    near = {"0": (1.0, 1.1, 0.9, 1.05, 0.95)}
    far = {"0": (2.0, 2.1, 1.9, 2.05, 1.95)}
    a, b, c = row(1.0, samples=near), row(1.01, samples=near), row(2.0, samples=far)
    best, tied = best_and_tied([c, a, None, b])
    assert best is a
    assert tied == {id(b)}
    assert best_and_tied([a, None]) == (None, set())
    high = [row(v, samples=s, direction="higher") for v, s in ((1.0, near), (2.0, far))]
    assert best_and_tied(high)[0] is high[1]


def test_proportions_are_told_apart_by_fishers_test():
    def chains(right):
        samples = {str(s): (100.0 if s < right else 0.0,) for s in range(15)}
        return row(100 * right / 15, metric="csr", samples=samples, direction="higher")

    assert separable(chains(3), chains(13))  # the published pair: p = 0.0007
    assert not separable(chains(9), chains(13))

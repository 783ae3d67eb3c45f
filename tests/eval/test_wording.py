"""Numbers and verdicts in words, and marks in tables."""

import math
from types import SimpleNamespace

import pytest

from wmeval.eval.latex import notes, separable, standing
from wmeval.eval.results import Row
from wmeval.eval.wording import lines, number, short_names, tone


def row(value, *, metric="fde", floor=None, samples=None, status="measured", **more):
    samples = samples or {"0": (value,)}
    return Row(
        metric=metric, subject="ball", source="classical", title="T", dimension="kinematics",
        unit="m", direction=more.pop("direction", "lower"), status=status, value=value, std=None,
        interval=None, scenes=len(samples), generations=sum(map(len, samples.values())), cases=1,
        coverage=1.0, identity=None, pixel_floor=floor, reduction_floor=None, samples=samples,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (math.nan, "–"), (0.0, "0"), (-0.0, "0"), (4.0, "4"), (100.0, "100"),
        (1.0003, "1.00"), (0.09999, "0.100"), (0.9999999, "1.00"), (0.0004567, "0.000457"),
        (12.345, "12.3"), (99.96, "100"), (123.4, "123"), (123456.7, "1.23e+05"), (3e-9, "< 1e-6"),
        (-4.1857e-5, "-4.19e-5"), (1.2e-4, "0.000120"), (-2.345, "-2.35"),
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
    stand = standing([c, a, None, b])
    assert (stand.best, stand.tied, stand.few) == ({id(a)}, {id(b)}, None)
    assert standing([a, None]).best == set()
    high = [row(v, samples=s, direction="higher") for v, s in ((1.0, near), (2.0, far))]
    assert standing(high).best == {id(high[1])}


def test_proportions_are_told_apart_by_fishers_test():
    def chains(right):
        samples = {str(s): (100.0 if s < right else 0.0,) for s in range(15)}
        return row(100 * right / 15, metric="csr", samples=samples, direction="higher")

    assert separable(chains(3), chains(13))  # the published pair: p = 0.0007
    assert not separable(chains(9), chains(13))


def test_equal_values_are_equally_good_and_carry_no_mark():
    near = {"0": (1.0, 1.1, 0.9, 1.05, 0.95)}
    far = {"0": (2.0, 2.1, 1.9, 2.05, 1.95)}
    a, b, c = row(1.0, samples=near), row(1.0, samples=near), row(2.0, samples=far)
    assert standing([a, c, b]).best == {id(a), id(b)}
    assert standing([a, c, b]).tied == set()
    assert standing([a, b]).best == set()  # nothing ranks where all are equal


@pytest.mark.parametrize(("scenes", "few"), [(1, 1), (2, 2), (3, 3), (4, None)])
def test_too_few_repetitions_are_one_footnote_not_a_mark_on_everything(scenes, few):
    rows = [
        row(v, samples={str(s): (v + 0.01 * s,) for s in range(scenes)}) for v in (1.0, 2.0, 3.0)
    ]
    stand = standing(rows)
    assert (stand.tied, stand.few) == (set(), few)
    results = [SimpleNamespace(cases=range(scenes))]
    said = notes(results, [stand, stand])
    assert len(said) == (few is not None)
    if few == 2:
        assert said == ["too few scenes to separate the candidates (2; it takes 4)"]


def test_names_in_tables_leave_out_what_all_share():
    names = ["twin:fps=15", "twin:delay=0.2,fps=15", "frozen:fps=15"]
    assert short_names(names) == (["twin", "twin:delay=0.2", "frozen"], " · all with fps=15")
    assert short_names(["twin:fps=15", "frozen:fps=24"])[0] == ["twin:fps=15", "frozen:fps=24"]
    assert short_names(["video:a,card=m.yaml", "video:b,card=m.yaml"])[0] == ["video:a", "video:b"]
    assert short_names(["twin:fps=15"]) == (["twin:fps=15"], "")

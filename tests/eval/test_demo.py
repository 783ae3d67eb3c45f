"""The demonstration's claims fail when what they claim is not so."""

from types import SimpleNamespace

import pytest

from wmeval.eval.demo import CANDIDATES, claims_of


def results(
    *,
    exact=(0, 1, 2, 3, 9),
    seen=(0.5, 1, 2, 3, 9),
    csr=(100, 100, 100, 100, 0),
    floor=0.5,
    suites=("a",) * 5,
):
    def one(i):
        values = {("rmse", "oracle"): exact[i], ("rmse", "classical"): seen[i],
                  ("csr", "oracle"): csr[i]}  # fmt: skip
        return SimpleNamespace(
            suite_sha256=suites[i],
            row=lambda metric, subject, source: SimpleNamespace(
                value=float(values[metric, source]), pixel_floor=floor
            ),
        )

    return tuple(one(i) for i in range(len(CANDIDATES)))


def test_all_hold_where_all_is_well():
    assert all(claim.holds for claim in claims_of(results()))


@pytest.mark.parametrize(
    ("change", "index"),
    [
        ({"exact": (0.1, 1, 2, 3, 9)}, 0),
        ({"exact": (0, 2, 1, 3, 9)}, 1),
        ({"floor": 1.5}, 2),
        ({"floor": None}, 2),
        ({"seen": (0, 1, 3, 2, 9)}, 2),
        ({"csr": (100, 100, 100, 100, 100)}, 3),
        ({"csr": (100, 0, 100, 100, 0)}, 3),
        ({"suites": ("a", "a", "b", "a", "a")}, 4),
    ],
)
def test_each_can_fail(change, index):
    holds = [claim.holds for claim in claims_of(results(**change))]
    assert not holds[index]

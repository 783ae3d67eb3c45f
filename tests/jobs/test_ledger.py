import json

import pytest

from wmeval.jobs.ledger import canonical, checksum, differences


def test_canonical_text_is_one_text():
    assert canonical({"b": 1, "a": [1.5, None]}) == '{"a":[1.5,null],"b":1}'
    assert json.loads(canonical({"ü": True})) == {"ü": True}
    assert checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1}) != checksum({"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


def test_what_differs_between_two_jobs_is_said():
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}) == (
        "b: 2 there, 3 asked, c: None there, 4 asked"
    )

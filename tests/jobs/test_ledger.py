import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wmeval.errors import UserError
from wmeval.jobs.ledger import Ledger, canonical

JOB = {"env": "X", "episodes": 3}


def test_done_units_are_remembered(tmp_path):
    path = tmp_path / "deep" / "ledger.jsonl"
    with Ledger(path, JOB) as ledger:
        ledger.add("a", {"sha256": "1"})
        ledger.add("b", {"path": "ä"})
        assert "a" in ledger
        assert len(ledger) == 2
    with Ledger(path, JOB) as ledger:
        assert ledger.done == {"a": {"sha256": "1"}, "b": {"path": "ä"}}
        assert ledger.damaged == 0


def test_another_job_is_refused_and_overwrite_forgets(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(path, JOB) as ledger:
        ledger.add("a", {})
    with pytest.raises(UserError, match="episodes: 3 there, 4 asked"):
        Ledger(path, {**JOB, "episodes": 4})
    with Ledger(path, {**JOB, "episodes": 4}, overwrite=True) as ledger:
        assert len(ledger) == 0


def test_two_writers_at_once_are_refused(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(path, JOB), pytest.raises(UserError, match="another run"):
        Ledger(path, JOB)
    with Ledger(path, JOB):
        pass


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "ledger.jsonl"
    path.write_text("hello\nworld\n")
    with pytest.raises(UserError, match="no ledger"):
        Ledger(path, JOB)
    assert path.read_text() == "hello\nworld\n"


@settings(max_examples=60, deadline=None)
@given(units=st.integers(0, 5), data=st.data())
def test_any_torn_end_keeps_every_whole_line(units, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.jsonl")
        ends = [0]
        with Ledger(path, JOB) as ledger:
            ends.append(path.stat().st_size)
            for i in range(units):
                ledger.add(str(i), {"n": i})
                ends.append(path.stat().st_size)
        cut = data.draw(st.integers(0, ends[-1]))
        path.write_bytes(path.read_bytes()[:cut])
        whole = max(sum(e <= cut for e in ends) - 2, 0)
        with Ledger(path, JOB) as ledger:
            assert sorted(ledger.done) == [str(i) for i in range(whole)]
            ledger.add("next", {})
        with Ledger(path, JOB) as ledger:
            assert len(ledger) == whole + 1
            assert ledger.damaged == 0


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_flipped_bit_never_makes_a_false_result(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.jsonl")
        with Ledger(path, JOB) as ledger:
            start = path.stat().st_size
            for i in range(3):
                ledger.add(str(i), {"n": i})
        content = bytearray(path.read_bytes())
        at = data.draw(st.integers(start, len(content) - 1))
        content[at] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(bytes(content))
        with Ledger(path, JOB) as ledger:
            assert all(ledger.done[k] == {"n": int(k)} for k in ledger.done)
            assert len(ledger) >= 1


def test_canonical_text_is_one_text():
    assert canonical({"b": 1, "a": [1.5, None]}) == '{"a":[1.5,null],"b":1}'
    assert json.loads(canonical({"ü": True})) == {"ü": True}
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))

"""Logs join, select and hash as they should."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmeval.records import FIELDS, CameraLog, Clip, Contacts, Event, LightLog, StateLog, WorldLog


def make_state(substeps, bodies=("a", "b"), dt=Fraction(1, 240)):
    n, b = len(substeps), len(bodies)
    rng = np.random.default_rng(n)
    return StateLog(
        bodies=bodies,
        dt=dt,
        substep=np.array(substeps, np.int64),
        position=rng.normal(size=(n, b, 3)),
        quaternion_wxyz=np.tile([1.0, 0, 0, 0], (n, b, 1)),
        linear_velocity=rng.normal(size=(n, b, 3)),
        angular_velocity=rng.normal(size=(n, b, 3)),
        active=np.ones((n, b), bool),
        motion=np.full((n, b), 2, np.uint8),
    )


def make_log(substeps, **extra):
    n = len(substeps)
    return WorldLog(
        make_state(substeps),
        CameraLog(("static",), np.full((n, 1), 0.8), np.tile(np.eye(4), (n, 1, 1, 1))),
        LightLog(np.tile([0, 0, -1.0], (n, 1)), np.ones((n, 3)), np.ones((n, 3, 3))),
        **extra,
    )


@given(st.integers(1, 30), st.data())
def test_parts_join_to_the_whole(n, data):
    whole = make_state(range(n))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    edges = [0, *cuts, n]
    parts = [whole.rows(slice(a, b)) for a, b in itertools.pairwise(edges)]
    assert StateLog.concatenate(parts).sha256() == whole.sha256()


def test_the_hash_sees_one_bit():
    log = make_state(range(5))
    position = log.position.copy()
    position[3, 1, 2] = np.nextafter(position[3, 1, 2], np.inf)
    changed = StateLog(**{**log.__dict__, "position": position})
    assert changed.sha256() != log.sha256()


def test_times_are_correctly_rounded():
    log = make_state(range(0, 2000, 7))
    assert log.times.tolist() == [float(Fraction(int(k), 240)) for k in log.substep]


def test_a_missing_state_or_body_is_named():
    log = make_state([0, 4, 8])
    assert log.row_of_substep(4) == 1
    with pytest.raises(KeyError, match="state 5"):
        log.row_of_substep(5)
    with pytest.raises(KeyError, match="no body 'c'"):
        log.body("c")


@given(st.lists(st.integers(0, 40), max_size=60))
def test_every_contact_belongs_to_the_state_it_led_to(substeps):
    rows = [(s, 0, 1, (0, 0, 0), (0, 0, 1), 1.0, (0, 0, 0), 0.0) for s in sorted(substeps)]
    contacts = Contacts.from_rows(rows)
    states = np.arange(0, 45, 3)
    splits = contacts.splits(states)
    assert len(splits) == len(states) + 1
    for i, k in enumerate(states):
        before = states[i - 1] if i else 0
        expected = [s for s in sorted(substeps) if before <= s < k]
        assert contacts.substep[splits[i] : splits[i + 1]].tolist() == expected


def test_no_contacts_have_the_table_s_types():
    empty = Contacts.empty()
    for name in ("substep", "body_a", "position", "tangential_impulse"):
        assert getattr(empty, name).dtype == np.dtype(FIELDS[f"contact/{name}"].dtype)
    assert empty.position.shape == (0, 3)
    assert len(Contacts.concatenate([empty, empty])) == 0


def test_world_logs_join_with_events():
    a = make_log([0, 1], events=(Event("contact", 0.1, 0.1, "a", "b", 2.0),))
    b = make_log([2], events=(Event("fall", 0.2, 0.3, "b"),))
    both = WorldLog.concatenate([a, b])
    assert len(both) == 3
    assert [e.kind for e in both.events] == ["contact", "fall"]
    assert both.rows([2]).state.substep.tolist() == [2]


def test_a_clip_refuses_wrong_pictures():
    times = (Fraction(0), Fraction(1, 24))
    good = np.zeros((2, 4, 6, 3), np.uint8)
    assert len(Clip(good, times)) == 2
    with pytest.raises(ValueError, match="uint8"):
        Clip(good.astype(np.float32), times)
    with pytest.raises(ValueError, match="1 times"):
        Clip(good, times[:1])
    with pytest.raises(ValueError, match="recorded states"):
        Clip(good, times, make_log([0]))
    joined = Clip.concatenate([Clip(good, times, make_log([0, 1])), Clip(good, times)])
    assert len(joined) == 4
    assert joined.record is None

"""Events: streaming equals offline, stages and shapes of the causal chain."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_scenes import BEAM_RULES, beam_domino, body, drive, floor, world_spec

from wmeval.records import Contacts, Event, StateLog, WorldLog
from wmeval.scene import Sphere
from wmeval.sim.events import EVENT_KINDS, EventDetector, classify_shape, detect, stages
from wmeval.sim.protocol import EventRules, Probe
from wmeval.sim.world import LocalWorld

STARTS = {"canonical": 0.1, "glancing": 0.52, "direct_strike": 1.05}


def record(x0: float, **options) -> tuple[object, WorldLog]:
    world = LocalWorld(beam_domino(x0, **options), events=True)
    log = WorldLog.concatenate(drive(world))
    world.close()
    return world.spec, log


@pytest.fixture(scope="module")
def runs():
    return {shape: record(x0) for shape, x0 in STARTS.items()}


def first(events, kind):
    return next((e for e in events if e.kind == kind), None)


def domino_falls(events):
    return [e for e in events if e.kind == "fall" and e.body_a.startswith("domino")]


def test_streaming_equals_offline(runs):
    for spec, log in runs.values():
        assert len(log.events) > 20
        assert detect(spec.scene, spec.rules, log) == log.events


@settings(max_examples=25, deadline=None)
@given(cuts=st.sets(st.integers(1, 1920), max_size=40), shape=st.sampled_from(sorted(STARTS)))
def test_events_do_not_depend_on_how_the_record_is_cut(runs, cuts, shape):
    spec, log = runs[shape]
    detector = EventDetector(spec.scene, spec.rules, spec.clock)
    found = list(detector.reset(log.rows(slice(0, 1))))
    edges = [1, *sorted(cuts), len(log)]
    for a, b in itertools.pairwise(edges):
        c = log.contacts
        inside = (c.substep >= a - 1) & (c.substep < b - 1)
        part = WorldLog(
            log.state.rows(slice(a, b)),
            log.cameras.rows(slice(a, b)),
            log.lights.rows(slice(a, b)),
            Contacts(*(getattr(c, name)[inside] for name in c.__dataclass_fields__)),
        )
        now = detector.feed(part)
        end = float(part.state.times[-1]) if len(part) else 0.0
        assert all(e.detected_at <= end for e in now)
        found += now
    assert tuple(found) == log.events


def test_the_three_shapes(runs):
    for shape, (_, log) in runs.items():
        assert classify_shape(log.events) == classify_shape(log) == shape
        assert len(domino_falls(log.events)) == 20


def test_events_are_known_no_earlier_than_they_happen(runs):
    for _, log in runs.values():
        assert all(e.time <= e.detected_at for e in log.events)
        known = [e.detected_at for e in log.events]
        assert known == sorted(known)
        assert {e.kind for e in log.events} <= set(EVENT_KINDS)


def test_canonical_chain_is_in_causal_order(runs):
    _, log = runs["canonical"]
    chain = stages(log.events, end=8.0)
    assert [s.name for s in chain] == ["rolling", "impact", "topple", "cascade"]
    assert [s.end for s in chain[:-1]] == [s.start for s in chain[1:]]
    assert chain[-1].end == 8.0
    impact, collapse = first(log.events, "impact"), first(log.events, "collapse")
    release, topple = first(log.events, "roof_release"), first(log.events, "topple")
    strike = next(e for e in log.events if e.kind == "contact" and e.body_a == "roof_ball")
    assert impact.body_b == "leg_0"
    assert 1.4 < impact.time < collapse.time < release.time < strike.time < topple.time < 3.0
    assert release.detected_at == pytest.approx(release.time + 0.5)
    assert topple.body_a == "domino_00"
    cascade = first(log.events, "cascade")
    assert cascade.time == domino_falls(log.events)[-1].time
    assert cascade.detected_at == pytest.approx(cascade.time + 0.5)
    assert cascade.value == 20
    assert first(log.events, "strike") is None


def test_release_is_the_last_touch_though_contact_flickers(runs):
    spec, log = runs["canonical"]
    a, b = log.state.body("roof_ball"), log.state.body("slab")
    c = log.contacts
    touch = ((c.body_a == a) & (c.body_b == b)) | ((c.body_a == b) & (c.body_b == a))
    times = np.unique(c.substep[touch] + 1) / 240
    release = first(log.events, "roof_release").time
    gaps = np.diff(times[times <= release + 1e-9])
    assert gaps.max() > 0.1  # it does flicker
    assert gaps.max() < spec.rules.plateau
    later = times[times > release + 1e-9]
    assert later.size == 0 or later[0] - release >= spec.rules.plateau


def test_glancing_and_direct_chains(runs):
    names = {shape: [s.name for s in stages(log.events)] for shape, (_, log) in runs.items()}
    assert names["glancing"] == ["rolling", "glance", "strike", "cascade_from_strike"]
    assert names["direct_strike"] == ["rolling", "strike", "cascade_from_strike"]
    glance = first(runs["glancing"][1].events, "glance")
    strike = first(runs["glancing"][1].events, "strike")
    assert glance.time < strike.time
    assert glance.detected_at == strike.time
    assert first(runs["direct_strike"][1].events, "glance") is None


def test_the_roof_ball_causes_the_canonical_cascade():
    for options in ({"without": ("roof_ball",)}, {"pinned": True}):
        _, log = record(0.1, **options)
        assert domino_falls(log.events) == []
        assert first(log.events, "cascade") is None
        shape = "glancing" if "pinned" in options else "canonical"
        assert classify_shape(log.events) == shape
        assert [s.name for s in stages(log.events)][:2] == [
            "rolling", "glance" if "pinned" in options else "impact",
        ]  # fmt: skip


def test_a_run_without_touch_is_none():
    world = LocalWorld(beam_domino(-5.0), events=True)
    log = WorldLog.concatenate(drive(world, seconds=1.0))
    assert classify_shape(log) == "none"
    assert [s.name for s in stages(log, end=1.0)] == ["rolling"]


def test_events_leave_physics_and_the_probe_alone():
    plain = drive(LocalWorld(beam_domino(0.1)), seconds=1.6, probe=Probe())
    told = drive(LocalWorld(beam_domino(0.1), events=True), seconds=1.6, probe=Probe())
    for a, b in zip(plain, told, strict=True):
        assert len(b) == 1
        assert a.state.sha256() == b.state.sha256()
        assert len(b.contacts) == 0
    assert [e.kind for log in told for e in log.events] == ["rolling", "contact", "impact"]


def test_events_need_few_contacts(runs):
    spec, log = runs["canonical"]
    world = LocalWorld(spec, events=True)
    assert len(world._detector.probe.contacts) == 3 + 20 + 20 + 1
    told = WorldLog.concatenate(drive(world, probe=Probe()))
    assert told.events == log.events
    # Asked for by pair, the contacts are those of the full list.
    floor_, ball = log.state.body("floor"), log.state.body("ball")
    pairs = ((ball, floor_), (log.state.body("domino_03"), log.state.body("domino_04")))
    part = WorldLog.concatenate(
        drive(LocalWorld(spec), seconds=3.8, probe=Probe("substeps", pairs))
    ).contacts
    c = log.contacts
    low, high = np.minimum(c.body_a, c.body_b), np.maximum(c.body_a, c.body_b)
    mine = np.zeros(len(c), bool)
    for pair in pairs:
        mine |= (low == min(pair)) & (high == max(pair))
    keep = mine & (c.substep < 912)
    for name in Contacts.__dataclass_fields__:
        assert np.array_equal(getattr(part, name), getattr(c, name)[keep])
    assert len(part) > 800
    assert len(np.unique(low[keep])) == 2


# --- made-up records ----------------------------------------------------------------------------


def made_up(spec, position, touching: dict[int, float]) -> WorldLog:
    """States at given positions (N, B, 3); bodies 0 and 1 touch in given substeps."""
    world = LocalWorld(spec)
    start = world.reset()
    n = len(position)
    state = start.state
    rows = np.zeros(n, int)
    state = StateLog(
        state.bodies,
        Fraction(1, 240),
        np.arange(n),
        np.asarray(position, float),
        state.quaternion_wxyz[rows],
        state.linear_velocity[rows],
        state.angular_velocity[rows],
        state.active[rows],
        state.motion[rows],
    )
    zero = (0.0, 0.0, 0.0)
    contacts = Contacts.from_rows(
        [(k, 1, 0, zero, (0, 0, 1.0), j / 2, zero, 0.0) for k, j in touching.items() for _ in "ab"]
    )
    return WorldLog(state, start.cameras.rows(rows), start.lights.rows(rows), contacts)


def two_balls(**rules):
    a = body("a", Sphere(radius=0.1), role="red")
    b = body("b", Sphere(radius=0.1), role="blue", position=(1, 0, 0))
    return world_spec(
        a, b, gravity=(0, 0, 0), rules=EventRules(contact_roles=(("red", "blue"),), **rules)
    )


def test_contact_is_new_only_after_a_gap():
    spec = two_balls(contact_gap=0.1)
    still = np.tile(spec_positions(spec), (121, 1, 1))
    # 24 substeps are 0.1 s: 10 -> 34 is not longer, 34 -> 59 is.
    log = made_up(spec, still, {10: 2.0, 11: 9.0, 34: 3.0, 59: 5.0})
    found = detect(spec.scene, spec.rules, log)
    # Substep n leads to state n + 1.
    assert found == (
        Event("contact", 11 / 240, 11 / 240, "a", "b", 2.0),
        Event("contact", 60 / 240, 60 / 240, "a", "b", 5.0),
    )


def test_an_impact_between_two_substeps_is_a_contact():
    """Impacts without duration, as an event-driven engine tells them: one substep each."""
    spec = two_balls(contact_gap=0.05)
    still = np.tile(spec_positions(spec), (100, 1, 1))
    log = made_up(spec, still, {0: 1.0, 30: 2.0, 31: 7.0, 98: 4.0})
    found = detect(spec.scene, spec.rules, log)
    assert [(e.time, e.value) for e in found] == [(1 / 240, 1.0), (31 / 240, 2.0), (99 / 240, 4.0)]
    # The same when the record comes in pieces that end at, before and after the impacts.
    for size in (1, 30, 31, 32):
        detector = EventDetector(spec.scene, spec.rules, spec.clock)
        streamed = list(detector.reset(log.rows(slice(0, 1))))
        for start in range(1, 100, size):
            part = log.rows(slice(start, start + size))
            c = log.contacts
            inside = (c.substep >= start - 1) & (c.substep < start - 1 + size)
            kept = Contacts(*(getattr(c, n)[inside] for n in Contacts.__dataclass_fields__))
            streamed += detector.feed(dataclasses.replace(part, contacts=kept))
        assert tuple(streamed) == found


def test_data_bodies_and_empty_slots_leave_no_world():
    spec = two_balls()
    leaf = body("leaf", (), motion="kinematic", position=(0, 0, -99.0))
    slot = body("slot", Sphere(radius=0.1), position=(0, 0, -99.0)).model_copy(
        update={"active": False}
    )
    scene = spec.scene.model_copy(update={"bodies": (*spec.scene.bodies, leaf, slot)})
    spec = dataclasses.replace(spec, scene=scene)
    path = np.tile(spec_positions(spec), (10, 1, 1))
    assert detect(spec.scene, spec.rules, made_up(spec, path, {})) == ()


def spec_positions(spec):
    return np.array([b.position for b in spec.scene.bodies])


@pytest.mark.parametrize("value", [-6.0, math.nan])
def test_leaving_the_world_is_told_once(value):
    spec = two_balls()
    path = np.tile(spec_positions(spec), (50, 1, 1))
    path[20:, 1, 2] = value
    found = detect(spec.scene, spec.rules, made_up(spec, path, {}))
    assert [(e.kind, e.time, e.body_a) for e in found] == [("left_world", 20 / 240, "b")]


def test_a_falling_ball_leaves_the_world():
    ball = body("ball", Sphere(radius=0.1), position=(60, 0, 1))
    world = LocalWorld(world_spec(ball, floor()), events=True)
    log = WorldLog.concatenate([world.reset(), world.advance((), 480, Probe())])
    fall = math.sqrt(2 * 6 / 9.81)
    assert [e.kind for e in log.events] == ["left_world"]
    assert log.events[0].time == pytest.approx(fall, abs=0.02)


def test_missing_states_are_refused(runs):
    spec, log = runs["canonical"]
    with pytest.raises(ValueError, match="every state"):
        detect(spec.scene, spec.rules, log.rows(slice(None, None, 4)))
    detector = EventDetector(spec.scene, BEAM_RULES, spec.clock)
    with pytest.raises(ValueError, match="reset"):
        detector.feed(log)
    with pytest.raises(ValueError, match="state 0"):
        detector.reset(log)

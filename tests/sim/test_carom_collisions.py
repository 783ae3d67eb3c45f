"""Impacts against the published formulas, conservation and symmetry."""

import math
from dataclasses import replace

import pytest
from carom_tables import M, R
from hypothesis import given
from hypothesis import strategies as st

from wmeval.sim.engines.carom_collisions import (
    Hit,
    PairFriction,
    alciatore_a14,
    approach,
    complementary,
    han_2005,
    pair_slip,
)
from wmeval.sim.engines.carom_motion import BallState
from wmeval.sim.engines.carom_spec import ball_mechanics

SPEED = st.floats(-6, 6)
SPIN = st.floats(-200, 200)
MU = PairFriction()


@st.composite
def ball_states(draw, x=0.0, y=0.0):
    return BallState(x, y, draw(SPEED), draw(SPEED), draw(SPIN), draw(SPIN), draw(SPIN))


def total_energy(states, masses):
    return sum(ball_mechanics(s, m, R).energy for s, m in zip(states, masses, strict=True))


def cut(speed, angle, e=1.0, wx=0.0, wy=0.0, wz=0.0, friction=1.0):
    """A ball moves along x at a ball at rest that it meets at a cut angle; the states after."""
    normal = (-math.cos(angle), -math.sin(angle))  # from the struck ball to the cue ball
    first = BallState(0, 0, speed, 0.0, wx, wy, wz)
    second = BallState(2 * R * math.cos(angle), 2 * R * math.sin(angle))
    hit = Hit(0, 1, normal, e, friction)
    return alciatore_a14([first, second], [hit], (M, M), R, MU)


# --- ball and ball ------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [5, 20, 30, 45, 60, 80])
@pytest.mark.parametrize("speed", [0.5, 2.0, 5.0])
@pytest.mark.parametrize(("roll", "side"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.3), (0.0, -0.6)])
def test_throw_is_alciatores(angle, speed, roll, side):
    """TP A.14, equation for the throw angle, with its friction curve, written out anew."""
    phi = math.radians(angle)
    wy, wz = roll * speed / R, -side * speed / R
    (_, struck), _ = cut(speed, phi, wy=wy, wz=wz)
    across = speed * math.sin(phi) - R * wz
    rel = math.hypot(across, R * wy * math.cos(phi))
    mu = 9.951e-3 + 0.108 * math.exp(-1.088 * rel)
    tangent = min(mu * speed * math.cos(phi) / rel, 1 / 7) * across / (speed * math.cos(phi))
    throw = math.atan2(struck.vy, struck.vx) - phi
    assert throw == pytest.approx(-math.atan(tangent), abs=1e-12)


def test_a_stun_shot_leaves_at_a_right_angle():
    for angle in (10, 30, 50, 70):
        (cue, struck), _ = cut(2.0, math.radians(angle), friction=0.0)
        assert abs(cue.vx * struck.vx + cue.vy * struck.vy) < 1e-15
        assert math.atan2(struck.vy, struck.vx) == pytest.approx(math.radians(angle))


@given(st.data(), st.floats(0, 2 * math.pi), st.floats(0, 1), st.floats(0.1, 0.4))
def test_an_impact_conserves_momentum_and_never_adds_energy(data, angle, e, mass):
    n = (math.cos(angle), math.sin(angle))
    a = data.draw(ball_states(2 * R * n[0], 2 * R * n[1]))
    b = data.draw(ball_states())
    if approach(a, b, n) >= 0:
        a, b = replace(a, vx=b.vx, vy=b.vy), replace(b, vx=a.vx, vy=a.vy)
    masses = (M, mass)
    before = approach(a, b, n)
    after, (impulse,) = alciatore_a14([a, b], [Hit(0, 1, n, e, 1.0)], masses, R, MU)
    for component in ("vx", "vy"):
        old = M * getattr(a, component) + mass * getattr(b, component)
        new = M * getattr(after[0], component) + mass * getattr(after[1], component)
        assert new == pytest.approx(old, abs=1e-14)
    assert approach(*after, n) == pytest.approx(-e * before, abs=1e-12)
    assert total_energy(after, masses) <= total_energy([a, b], masses) + 1e-12
    # Coulomb's cone, and friction that never turns the slip round.
    rubbed = math.hypot(*impulse.tangential)
    slip, left = pair_slip(a, b, n, R), pair_slip(*after, n, R)
    assert rubbed <= MU.coefficient(math.hypot(*slip)) * impulse.normal + 1e-15
    assert slip[0] * left[0] >= -1e-12


def test_friction_passes_spin_on_like_gears():
    """A cue ball that turns to the left throws the struck ball to its left and turns it right."""
    (cue, struck), _ = cut(2.0, 0.0, wz=40.0)
    assert struck.wz < 0
    assert cue.wz - 40.0 == pytest.approx(struck.wz)
    assert cue.vy < 0 < struck.vy


def test_angular_momentum_about_the_contact_is_conserved():
    (cue, struck), _ = cut(2.0, 0.5, wz=40.0, wx=3.0, wy=-7.0)
    x, y = 2 * R * math.cos(0.5), 2 * R * math.sin(0.5)
    inertia = 0.4 * M * R * R
    before = inertia * 40.0
    after = inertia * (cue.wz + struck.wz) + M * (x * struck.vy - y * struck.vx)
    assert after == pytest.approx(before, abs=1e-15)


# --- several at once ----------------------------------------------------------------------------


def wedge(e=1.0, friction=0.0, **spin):
    """A ball runs along x into two that touch each other, 30 degrees to each side."""
    c, s = math.cos(math.pi / 6), math.sin(math.pi / 6)
    states = [
        BallState(0, 0, 1.0, 0.0, **spin),
        BallState(2 * R * c, 2 * R * s),
        BallState(2 * R * c, -2 * R * s),
    ]
    hits = [Hit(0, 1, (-c, -s), e, friction), Hit(0, 2, (-c, s), e, friction)]
    return states, hits


def test_three_balls_meet_symmetrically():
    """The classical result for equal elastic balls: -1/5 and 2 sqrt(3)/5 of the speed."""
    states, hits = wedge()
    cue, one, two = alciatore_a14(states, hits, (M,) * 3, R, MU)[0]
    assert (cue.vx, cue.vy) == pytest.approx((-0.2, 0.0), abs=1e-15)
    assert math.hypot(one.vx, one.vy) == pytest.approx(2 * math.sqrt(3) / 5)
    assert (one.vx, one.vy) == (two.vx, -two.vy)


@given(st.floats(0, 1), st.floats(0, 3), SPIN, SPIN, SPIN)
def test_impacts_at_one_instant_never_add_energy(e, friction, wx, wy, wz):
    states, hits = wedge(e, friction, wx=wx, wy=wy, wz=wz)
    masses = (M,) * 3
    after, impulses = alciatore_a14(states, hits, masses, R, MU)
    assert total_energy(after, masses) <= total_energy(states, masses) + 1e-12
    assert sum(s.vx for s in after) == pytest.approx(1.0)
    assert sum(s.vy for s in after) == pytest.approx(0.0, abs=1e-14)
    for hit in hits:
        assert approach(after[hit.a], after[hit.b], hit.normal) >= -2.0
    assert all(i.normal >= 0 for i in impulses)


def test_order_of_hits_does_not_matter():
    states, hits = wedge(0.9, 1.0, wy=30.0)
    one = alciatore_a14(states, hits, (M,) * 3, R, MU)[0]
    two = alciatore_a14(states, hits[::-1], (M,) * 3, R, MU)[0]
    for a, b in zip(one, two, strict=True):
        assert (a.vx, a.vy, a.wx, a.wy, a.wz) == pytest.approx(
            (b.vx, b.vy, b.wx, b.wy, b.wz), abs=1e-13
        )


@given(st.lists(st.floats(-2, 2), min_size=12, max_size=12), st.integers(1, 4))
def test_complementarity(numbers, n):
    rows = [numbers[4 * (i % 3) : 4 * (i % 3) + n] for i in range(n)]
    matrix = [
        [sum(rows[k][i] * rows[k][j] for k in range(n)) + (i == j) for j in range(n)]
        for i in range(n)
    ]
    q = numbers[:n]
    p = complementary(matrix, q)
    w = [sum(matrix[i][k] * p[k] for k in range(n)) + q[i] for i in range(n)]
    assert all(x >= 0 for x in p)
    assert all(x >= -1e-12 for x in w)
    assert all(abs(x * y) < 1e-12 for x, y in zip(p, w, strict=True))


# --- ball and cushion ---------------------------------------------------------------------------

NOSE = (0.037 - R) / R


def cushion(state, e=0.85, mu=0.2, nose=NOSE):
    return han_2005(state, (0.0, -1.0), mass=M, radius=R, nose=nose, restitution=e, friction=mu)


def test_a_straight_rebound_loses_what_hans_angle_says():
    """Without friction: (1 + e) cos^2 theta - 1 of the speed comes back."""
    after = cushion(BallState(0, 0, 0.0, 2.0), mu=0.0)[0]
    assert -after.vy / 2.0 == pytest.approx((1 + 0.85) * (1 - NOSE**2) - 1)


@pytest.mark.parametrize("angle", [10, 40, 75])
def test_both_of_hans_cases(angle):
    """Han's equations 14 to 20 in their own frame: x into the cushion, y along it."""
    v, phi = 2.0, math.radians(angle)
    w = (11.0, -8.0, 35.0)  # about Han's x, y, z
    vx, vy = v * math.cos(phi), v * math.sin(phi)
    theta = math.asin(NOSE)
    sx = vx * math.sin(theta) + R * w[1]
    sy = -vy - R * w[2] * math.cos(theta) + R * w[0] * math.sin(theta)
    c = vx * math.cos(theta)
    for mu in (0.02, 0.2, 0.9):
        pz = (1 + 0.85) * c * M
        ps = math.hypot(sx, sy) / (3.5 / M)
        if ps <= mu * pz:
            px, py = -sx / (3.5 / M), -sy / (3.5 / M)
        else:
            k = mu * pz / math.hypot(sx, sy)
            px, py = -k * sx, -k * sy
        # (px, py) act along Han's slip axes: x' = sin theta x - cos theta z, y' = -y.
        dvx = (px * math.sin(theta) - pz * math.cos(theta)) / M
        dvy = -py / M
        # Here the cushion lies at +y: Han's x is our y, his y is our -x.
        after = cushion(BallState(0, 0, -vy, vx, -w[1], w[0], w[2]), mu=mu)[0]
        assert after.vy == pytest.approx(vx + dvx, abs=1e-13)
        assert after.vx == pytest.approx(-(vy + dvy), abs=1e-13)


@given(st.data(), st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.5))
def test_a_cushion_never_adds_energy(data, e, mu, nose):
    state = data.draw(ball_states())
    state = replace(state, vy=abs(state.vy))
    after = cushion(state, e, mu, nose)[0]
    old, new = (ball_mechanics(s, M, R).energy for s in (state, after))
    assert new <= old + 1e-12


def test_running_side_widens_and_reverse_side_narrows_the_rebound():
    after = [cushion(BallState(0, 0, 1.0, 1.0, -1 / R, 1 / R, wz))[0] for wz in (90, 0, -90)]
    # The nose lies ahead, at +y; a ball that turns to the left rolls to the right along it.
    running, plain, reverse = (math.atan2(s.vx, -s.vy) for s in after)
    assert reverse < plain - 0.03
    assert plain < running - 0.03

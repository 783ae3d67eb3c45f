"""Tables and shots that the tests of the carom engine share."""

import math

from wmeval.sim.engines.carom_collisions import PairFriction
from wmeval.sim.engines.carom_motion import BallState, Cloth
from wmeval.sim.engines.carom_spec import Cushion, TableSpec
from wmeval.sim.engines.carom_table import Table

R, M, G = 0.03075, 0.21, 9.81
SLIDE, ROLL = 0.2, 0.008
LENGTH, WIDTH = 1.42, 0.71
"""Half of the playing field [m]."""


def table_spec(
    balls=3, *, slide=SLIDE, roll=ROLL, spin=10.0, e=0.95, friction=1.0, cushion_e=0.85,
    cushion_friction=0.2, nose=0.037, half=(LENGTH, WIDTH), contact_time=1e-3,
):  # fmt: skip
    sine = (nose - R) / R
    reach = R * math.sqrt(1 - sine * sine)
    normals = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
    sides = (half[0], half[0], half[1], half[1])
    return TableSpec(
        R, (M,) * balls, (Cloth(R, slide * G, roll * G, spin),) * balls,
        tuple(Cushion(n, -h + reach, sine) for n, h in zip(normals, sides, strict=True)),
        ((e,) * balls,) * balls, ((friction,) * balls,) * balls, ((cushion_e,) * 4,) * balls,
        ((cushion_friction,) * 4,) * balls, PairFriction(), contact_time,
    )  # fmt: skip


def smooth(balls=3, **changes):
    """No friction and no loss anywhere; cushions at the height of the centre."""
    return table_spec(
        balls, **{"slide": 0.0, "roll": 0.0, "spin": 0.0, "e": 1.0, "friction": 0.0,
                  "cushion_e": 1.0, "cushion_friction": 0.0, "nose": R, **changes}
    )  # fmt: skip


def table(spec, *states):
    return Table(spec, states, [(1.0, 0.0, 0.0, 0.0)] * len(states))


def shot(x, y, speed, angle, side=0.0, follow=0.0):
    """A struck ball; tip offsets over the radius."""
    dx, dy, k = math.cos(angle), math.sin(angle), 2.5 * speed / R
    return BallState(x, y, speed * dx, speed * dy, -k * follow * dy, k * follow * dx, -k * side)


def rolling(x, y, speed, angle):
    return shot(x, y, speed, angle, follow=0.4)


def random_shot(rng):
    """Three balls anywhere, the first struck anyhow."""
    places = []
    while len(places) < 3:
        x, y = rng.uniform(-1.38, 1.38), rng.uniform(-0.67, 0.67)
        if all(math.hypot(x - a, y - b) > 2 * R for a, b in places):
            places.append((x, y))
    reach, turn = 0.5 * math.sqrt(rng.random()), rng.uniform(0, 2 * math.pi)
    first = shot(
        *places[0], rng.uniform(0.05, 6.5), rng.uniform(0, 2 * math.pi),
        side=reach * math.cos(turn), follow=reach * math.sin(turn),
    )  # fmt: skip
    return first, *(BallState(*p) for p in places[1:])


def energy(world, t=None):
    return sum(m.energy for m in world.mechanics(world.now if t is None else t))


def events(world, limit=100_000):
    """Times of all events, each happened when it is yielded."""
    for _ in range(limit):
        if world.next_event == math.inf:
            return
        t = world.next_event
        world.advance(t)
        yield t
        if world.at_rest:
            return
    raise AssertionError("no end")


def digest(world):
    """Every bit of all balls' states."""
    numbers = []
    for i in range(len(world)):
        s = world.state(i, world.now)
        numbers += [s.x, s.y, s.vx, s.vy, s.wx, s.wy, s.wz, *world.rotation(i)]
    return tuple(float(n).hex() for n in numbers)

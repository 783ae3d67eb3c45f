"""Birds that flock."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from wmeval.conventions import quaternion_multiply
from wmeval.errors import UserError
from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.drivers.turns import turned
from wmeval.sim.protocol import Driver, SubstepView

F8 = NDArray[np.float64]
GRAVITY = 9.81
MOST_BANK = 0.9
CAUTION = 4.5
"""From this far [m] off an obstacle birds steer away from it."""


class Boids(Driver):
    """A flock after Reynolds, "Flocks, Herds, and Schools" (SIGGRAPH 1987).

    Every ``tick`` each bird steers away from obstacle spheres first; what is left of its greatest
    acceleration goes to the sum of separation (from those nearer than ``separation``), alignment
    and cohesion (with those nearer than ``sight``) and the way back where it leaves the bounds. Its
    speed is bounded, too. Between ticks birds fly straight, so that a state at any time follows
    from the tick before. Wings, data bodies like the birds, flap by a sine of time; a turning bird
    banks.

    The flock's state is made by ticks alone: looking at it changes nothing.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            birds: names of data bodies that fly along their own +x.
            wings: left and right wing of each bird: data bodies that stretch along their own +y.
            hinge: left shoulder in the bird's frame [m]; the right one mirrors it.
            centre: of the bounds [m].
            half: half extents of the bounds [m].
            obstacles: spheres to keep out of: x, y, z, radius [m].
            tick: time from decision to decision [s].
            sight, separation: radii [m].
            weights: of separation, alignment, cohesion, obstacles, bounds.
            slowest, fastest: speeds [m/s].
            steering: largest acceleration [m/s2].
            flap_hz, flap_deg: beat of the wings and its amplitude.
            seed: of the first places and velocities and the beats' phases.
        """

        birds: tuple[str, ...] = Field(min_length=1)
        wings: tuple[tuple[str, str], ...] = ()
        hinge: Vec3 = (0.0, 0.03, 0.02)
        centre: Vec3
        half: Vec3
        obstacles: tuple[tuple[float, float, float, float], ...] = ()
        tick: float = Field(default=1 / 30, gt=0)
        sight: float = Field(default=5.0, gt=0)
        separation: float = Field(default=1.4, gt=0)
        weights: tuple[float, float, float, float, float] = (3.0, 1.0, 0.45, 18.0, 2.5)
        slowest: float = Field(default=4.0, gt=0)
        fastest: float = Field(default=8.0, gt=0)
        steering: float = Field(default=9.0, gt=0)
        flap_hz: float = Field(default=4.5, gt=0)
        flap_deg: float = Field(default=38.0, ge=0, le=80)
        seed: int = Field(default=0, ge=0)

        @model_validator(mode="after")
        def _check(self) -> Boids.Params:
            if self.wings and len(self.wings) != len(self.birds):
                raise ValueError(f"{len(self.birds)} birds but {len(self.wings)} pairs of wings")
            if self.slowest > self.fastest:
                raise ValueError(f"slowest {self.slowest} m/s is above fastest {self.fastest} m/s")
            return self

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0: a loose flock in the middle of the bounds, outside of obstacles.

        Raises:
            UserError: a tick that is no whole number of substeps.
        """
        p = self._params
        self._every = round(p.tick / view.dt)
        if self._every < 1 or abs(self._every * view.dt - p.tick) > 1e-9 * p.tick:
            raise UserError(
                f"boids: a tick of {p.tick:.6g} s is no whole number of substeps of {view.dt:.6g} "
                f"s: choose dt = {p.tick / max(self._every, 1):.6g} s, or a tick of "
                f"{max(self._every, 1) * view.dt:.6g} s"
            )
        self._tick = self._every * view.dt
        names = [*p.birds, *(n for n, _ in p.wings), *(n for _, n in p.wings)]
        self._bodies = np.array([body_index(scene, n, "boids") for n in names], np.intp)
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(p.seed)))
        n = len(p.birds)
        half = np.array(p.half)
        self._centre, self._half = np.array(p.centre), half
        self._place = self._centre + rng.uniform(-0.35, 0.35, (n, 3)) * half
        heading = rng.uniform(0, 2 * math.pi) + rng.normal(0, 0.3, n)
        speed = rng.uniform(p.slowest, p.fastest, n)
        flat = np.stack([np.cos(heading), np.sin(heading), rng.normal(0, 0.1, n)], axis=1)
        self._velocity = speed[:, None] * flat / np.linalg.norm(flat, axis=1, keepdims=True)
        self._beat = rng.uniform(0, 2 * math.pi, n)
        self._pace = 2 * math.pi * p.flap_hz * rng.uniform(0.9, 1.1, n)
        spheres = np.array(p.obstacles, np.float64).reshape(-1, 4)
        self._spheres, self._radii = spheres[:, :3], spheres[:, 3]
        for middle, radius in zip(self._spheres, self._radii, strict=True):
            out = self._place - middle
            away = np.linalg.norm(out, axis=1, keepdims=True)
            outside = middle + out / np.maximum(away, 1e-6) * (radius + 1.0)
            self._place = np.where(away < radius + 1.0, outside, self._place)
        self._steer()
        self.show(view)

    def after(self, view: SubstepView) -> None:
        """At a tick: fly to it, and decide anew."""
        if view.substep % self._every == 0:
            self._place = self._place + self._tick * self._velocity
            wanted = self._velocity + self._tick * self._pull
            speed = np.sqrt((wanted * wanted).sum(axis=1, keepdims=True))
            p = self._params
            limited = np.minimum(np.maximum(speed, p.slowest), p.fastest)
            self._velocity = wanted * (limited / speed)
            self._steer()

    def _steer(self) -> None:
        """Accelerations (N, 3) [m/s2] that the birds decide on."""
        p = self._params
        place, velocity = self._place, self._velocity
        apart = place[:, None] - place[None]
        distance = np.sqrt((apart * apart).sum(axis=2))
        np.fill_diagonal(distance, np.inf)
        near = (distance < p.sight).astype(np.float64)
        count = np.maximum(near.sum(axis=1, keepdims=True), 1.0)
        close = np.where(distance < p.separation, 1 / np.maximum(distance, 0.05) ** 2, 0.0)
        separate = (apart * close[:, :, None]).sum(axis=1)
        any_near = near.any(axis=1)[:, None]
        align = np.where(any_near, near @ velocity / count - velocity, 0.0)
        gather = np.where(any_near, near @ place / count - place, 0.0)
        avoid = np.zeros_like(place)
        if len(self._radii):
            out = place[:, None] - self._spheres[None]
            away = np.maximum(np.sqrt((out * out).sum(axis=2)), 1e-6)
            nearness = np.clip((self._radii + CAUTION - away) / CAUTION, 0.0, 1.0)
            # Only what one flies towards is in the way.
            inward = (out * velocity[:, None]).sum(axis=2) < 0
            push = np.where(inward, nearness, 0.25 * nearness) / away
            avoid = p.weights[3] * (out * push[:, :, None]).sum(axis=1)
        beyond = (place - self._centre) / self._half
        # From seven tenths of the way out on.
        back = -np.sign(beyond) * np.maximum(np.abs(beyond) - 0.7, 0.0) * 10.0
        w = p.weights
        wish = w[0] * separate + w[1] * align + w[2] * gather + w[4] * back
        # Reynolds' priorities: what avoidance leaves of the acceleration goes to the rest.
        avoid, used = _limited(avoid, p.steering)
        self._pull = avoid + _limited(wish, p.steering - used)[0]

    def show(self, view: SubstepView) -> None:
        """Birds and wings as they are now."""
        p = self._params
        n = len(p.birds)
        time = view.substep * view.dt
        since = (view.substep % self._every) * view.dt
        place, velocity = self._place + since * self._velocity, self._velocity
        speed = np.sqrt((velocity * velocity).sum(axis=1))
        # Contiguous: numpy takes another path to arctan2, with other last bits, where the columns
        # of a matrix seem to overlap the result, and so bits would depend on addresses.
        vx, vy, vz = velocity.T.copy()
        yaw = np.arctan2(vy, vx)
        climb = np.arctan2(vz, np.hypot(vx, vy))
        sideways = (vx * self._pull[:, 1] - vy * self._pull[:, 0]) / speed
        bank = np.clip(np.arctan(-sideways / GRAVITY), -MOST_BANK, MOST_BANK)
        attitude = quaternion_multiply(
            quaternion_multiply(_about(2, yaw), _about(1, -climb)),
            _about(0, bank),
        )
        out = np.zeros((len(self._bodies), 13))
        out[:n, 0:3], out[:n, 3:7], out[:n, 7:10] = place, attitude, velocity
        if p.wings:
            angle = math.radians(p.flap_deg) * np.sin(self._pace * time + self._beat)
            rate = math.radians(p.flap_deg) * self._pace * np.cos(self._pace * time + self._beat)
            x, y, z = p.hinge
            ahead = turned(attitude, np.tile([1.0, 0.0, 0.0], (n, 1)))
            for k, (side, turn) in enumerate(((1.0, angle), (-1.0, np.pi - angle))):
                rows = slice(n * (k + 1), n * (k + 2))
                shoulder = np.tile([x, side * y, z], (n, 1))
                out[rows, 0:3] = place + turned(attitude, shoulder)
                out[rows, 3:7] = quaternion_multiply(attitude, _about(0, turn))
                out[rows, 7:10] = velocity
                out[rows, 10:13] = (side * rate)[:, None] * ahead
        view.set_states(self._bodies, out)


def _limited(vector: F8, most: float | F8) -> tuple[F8, F8]:
    """Vectors (N, 3) shortened to at most ``most`` (N, 1), and their lengths (N, 1)."""
    size = np.sqrt((vector * vector).sum(axis=1, keepdims=True))
    shorter = np.minimum(size, most)
    return vector * (shorter / np.maximum(size, 1e-9)), shorter


def _about(axis: int, angle: F8) -> F8:
    """Quaternions (N, 4) of turns about a coordinate axis."""
    out = np.zeros((len(angle), 4))
    out[:, 0], out[:, 1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
    return out

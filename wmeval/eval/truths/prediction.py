"""What a closed form says about one set-up, and where it stops saying it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import Body, Drive, Family, Pose, rotation
from wmeval.assets.gauge_profiles import Measured, Motion, motion
from wmeval.errors import UserError
from wmeval.scene import Card

F8 = NDArray[np.float64]
_S = TypeVar("_S", bound=Card)


@dataclass(frozen=True)
class Number:
    """A predicted number: its value, SI unit (or "1", "deg") and meaning.

    ``ideal`` names what it takes for granted where the stated parameters have it not: such a number
    is shown, and nothing is ranked by it. ``accuracy`` is the relative error of this number where
    the closed form's own does not say it.
    """

    value: float
    unit: str
    says: str
    ideal: str = ""
    accuracy: float | None = None


@dataclass(frozen=True, eq=False)
class Prediction:
    """A closed form, worked out for one set-up.

    Attributes:
        truth: row of `TRUTHS`.
        family, subtask, material: the set-up.
        numbers: predicted numbers by name.
        body: whose trajectory is predicted; empty where none is.
        trajectory: the family's quantity at times (N,): positions (N, 3) [m], or the areas (N, F)
            [m^2] of our face list; None where only numbers are predicted.
        valid: first and last time at which the trajectory holds [s].
    """

    truth: str
    family: str
    subtask: str
    material: str
    numbers: Mapping[str, Number]
    body: str = ""
    trajectory: Callable[[F8], F8] | None = None
    valid: tuple[float, float] = (0.0, 0.0)

    def frames(self, rate: float = 30.0) -> int:
        """Recorded frames, from the first, in which the trajectory holds."""
        return int(np.floor(self.valid[1] * rate + 1e-9)) + 1 if self.trajectory else 0


@dataclass(frozen=True, eq=False)
class SetUp:
    """A family, subtask and material, with measured motions in place of the card's.

    Attributes:
        card, subtask, material: which.
        motions: measured motions by body; the card's profiles lead the others.
    """

    card: Family
    subtask: str
    material: str
    motions: Mapping[str, Measured] = field(default_factory=dict)

    def number(self, body: str, name: str) -> float:
        """A number of a body."""
        return self.card.body_properties(self.subtask, self.material, body).number(name)

    def pose(self, body: str) -> Pose:
        """Starting pose of a body."""
        return self.card.poses(self.subtask, self.material)[body]

    def position(self, body: str) -> F8:
        """Starting position of a body, (3,) [m]."""
        return np.asarray(self.pose(body).position, np.float64)

    def rotation(self, body: str) -> F8:
        """Starting orientation of a body, (3, 3)."""
        return rotation(self.pose(body).euler_deg)

    def body(self, name: str) -> Body:
        """A body of the family."""
        return self.card.bodies[name]

    def shape(self, name: str, kind: type[_S]) -> _S:
        """The shape of a body.

        Raises:
            UserError: it is of another kind: the closed form does not hold for it.
        """
        shape = self.card.bodies[name].shape
        if not isinstance(shape, kind):
            raise UserError(
                f"{self.card.id}: the closed form wants bodies.{name} of type "
                f"{kind.__name__.lower()}; the card gives {shape.type}"
            )
        return shape

    def rod(self, name: str) -> float:
        """Length of the rod that a body hangs from [m].

        Raises:
            UserError: it hangs from none.
        """
        rod = self.card.bodies[name].rod
        if rod is None:
            raise UserError(
                f"{self.card.id}: bodies.{name} hangs from no pivot: give hinge and rod"
            )
        return rod

    @property
    def ground(self) -> float:
        """Height of the ground [m].

        Raises:
            UserError: the set-up has none.
        """
        height = self.card.ground(self.subtask, self.material)
        if height is None:
            raise UserError(f"{self.card.id} has no ground in subtask {self.subtask}")
        return height

    @property
    def duration(self) -> float:
        """Time of the last recorded frame [s]."""
        return (self.card.frames(self.subtask, self.material) - 1) / 30

    def drive(self, body: str) -> Drive:
        """The card's drive of a body.

        Raises:
            UserError: nothing drives it, or a measured motion does.
        """
        if body in self.motions:
            raise UserError(
                f"{self.card.id}: the closed form takes numbers of a profile: no measured motion"
                f" of {body!r} can replace it"
            )
        for drive in self.card.drives(self.subtask, self.material):
            if drive.body == body:
                return drive
        raise UserError(f"{self.card.id}, subtask {self.subtask}: nothing drives {body!r}")

    def motion(self, body: str, times: F8) -> Motion:
        """The imposed motion of a body at times (N,)."""
        if body in self.motions:
            return self.motions[body].motion(times)
        return motion(self.drive(body), times)

    def turning(self, body: str, duration: float) -> Callable[[float], tuple[float, float, float]]:
        """Angle, rate and angular acceleration of a driven body, by cubics over each millisecond.

        Any profile will do, a measured one too.
        """
        count = max(2, round(duration * 1e3))
        step = duration / count
        grid = np.linspace(0.0, duration, count + 1)
        made = self.motion(body, grid)
        angles, rates = made.angle.tolist(), made.rate.tolist()
        changes = np.gradient(made.rate, grid).tolist()

        def at(t: float) -> tuple[float, float, float]:
            # Plain floats: this is the inner loop of the equations of motion.
            k = min(max(int(t / step), 0), count - 1)
            u = t / step - k
            angle = _hermite(u, angles[k], angles[k + 1], step * rates[k], step * rates[k + 1])
            a, b = rates[k], rates[k + 1]
            c, d = step * changes[k], step * changes[k + 1]
            slope = 6 * u * (1 - u) * (b - a) + (1 - u) * (1 - 3 * u) * c + u * (3 * u - 2) * d
            return angle, _hermite(u, a, b, c, d), slope / step

        return at


def _hermite(u: float, a: float, b: float, c: float, d: float) -> float:
    """Cubic through a and b with slopes c and d, u in [0, 1]."""
    v = 1 - u
    return v * v * ((1 + 2 * u) * a + u * c) + u * u * ((3 - 2 * u) * b - v * d)

"""Camera regimes of the consistency dimension: a camera that is turned, whatever else moves it.

The regimes are the paper's (Table 7 and Appendices "Prompt-Scene Consistency" and "Object
Consistency"): a perturbation goes 45 degrees out and comes back in, a sweep is one turn, the 10 s
turn of prompt consistency is one turn in place in first person and two orbits in third. The paces
of the perturbations are ours. `REGIMES` is the table; `yawed` is the closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from pydantic import model_validator

from wmeval.errors import UserError
from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index, camera_index
from wmeval.sim.protocol import Driver, SubstepView, Vec


class Leg(NamedTuple):
    """A stretch of a regime at an even pace.

    Attributes:
        name: "out" and "in" are paired by metrics; "turn" stands alone.
        start, end: exact times [s].
        from_deg, to_deg: yaw at its start and end, counter-clockwise from above [deg].
    """

    name: str
    start: Fraction
    end: Fraction
    from_deg: float
    to_deg: float


@dataclass(frozen=True)
class Regime:
    """One way in which a camera is turned.

    Attributes:
        name: value of the reset option ``camera_motion``.
        first: legs of a camera that turns in place.
        third: legs of a camera that goes round what it looks at.
        summary: one line for tables.
    """

    name: str
    first: tuple[Leg, ...]
    third: tuple[Leg, ...]
    summary: str

    def legs(self, in_place: bool) -> tuple[Leg, ...]:
        """The legs, in order, without gaps, from t = 0 on."""
        return self.first if in_place else self.third


def _legs(*stops: tuple[str, str, float]) -> tuple[Leg, ...]:
    """Legs from (name, end [s], yaw there [deg])."""
    ends = [(Fraction(0), 0.0), *((Fraction(end), yaw) for _, end, yaw in stops)]
    return tuple(
        Leg(name, start, end, from_deg, to_deg)
        for (name, _, _), ((start, from_deg), (end, to_deg)) in zip(
            stops, pairwise(ends), strict=True
        )
    )


def _both(name: str, summary: str, *stops: tuple[str, str, float]) -> Regime:
    return Regime(name, _legs(*stops), _legs(*stops), summary)


REGIMES: dict[str, Regime] = {
    r.name: r
    for r in (
        _both(
            "perturb_left",
            "45 degrees to the left in 2.5 s, and back in 2.5 s",
            ("out", "5/2", 45.0),
            ("in", "5", 0.0),
        ),
        _both(
            "perturb_right",
            "45 degrees to the right in 2.5 s, and back in 2.5 s",
            ("out", "5/2", -45.0),
            ("in", "5", 0.0),
        ),
        _both("sweep_left", "360 degrees to the left in 10 s", ("turn", "10", 360.0)),
        _both("sweep_right", "360 degrees to the right in 10 s", ("turn", "10", -360.0)),
        Regime(
            "turn",
            _legs(("turn", "10", 360.0)),
            _legs(("turn", "10", 720.0)),
            "10 s: one turn in place in first person, two orbits in third",
        ),
    )
}


def regime(name: str) -> Regime:
    """A regime by name.

    Raises:
        UserError: no such regime, naming the known ones.
    """
    if name not in REGIMES:
        raise UserError(f"no camera motion {name!r}: choose from {', '.join(REGIMES)}")
    return REGIMES[name]


def yaw_deg(legs: Sequence[Leg], time: float) -> float:
    """Yaw at a time [s], counter-clockwise from above [deg]; the last one holds."""
    for leg in legs:
        if time < leg.end:
            share = (time - float(leg.start)) / float(leg.end - leg.start)
            return leg.from_deg + (leg.to_deg - leg.from_deg) * share
    return legs[-1].to_deg


def yawed(pose: Sequence[float], deg: float, pivot: Vec | None) -> tuple[float, ...]:
    """A pose turned about the vertical through a point.

    Args:
        pose: ``T_world_camera``, sixteen numbers, row-major.
        deg: counter-clockwise from above [deg]; whole turns change nothing, exactly.
        pivot: point on the axis [m]; None is the camera itself.
    """
    deg = math.fmod(deg, 360.0)
    if deg == 0.0:
        return tuple(pose)
    c, s = math.cos(math.radians(deg)), math.sin(math.radians(deg))
    a, b = pose[0:3], pose[4:7]
    x, y = pose[3], pose[7]
    if pivot is not None:
        dx, dy = x - pivot[0], y - pivot[1]
        x, y = pivot[0] + c * dx - s * dy, pivot[1] + s * dx + c * dy
    first = (c * p - s * q for p, q in zip(a, b, strict=True))
    second = (s * p + c * q for p, q in zip(a, b, strict=True))
    return (*first, x, *second, y, *pose[8:16])


class CameraMotion(Driver):
    """Turns a camera by a regime, over whatever other drivers put: follow cameras keep following.

    A pure function of time and of the others' pose of the camera: ``yawed(pose, yaw_deg(legs, t),
    pivot)``. It stands after the drivers that move the camera.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            camera: name of the camera.
            regime: row of `REGIMES`.
            body: the axis goes through this body; or
            point: through this point [m]; neither: the camera turns in place.
        """

        camera: str
        regime: str
        body: str | None = None
        point: Vec3 | None = None

        @model_validator(mode="after")
        def _check(self) -> CameraMotion.Params:
            regime(self.regime)
            if self.body is not None and self.point is not None:
                raise ValueError("give body or point, not both")
            return self

        @property
        def in_place(self) -> bool:
            """Whether the camera turns where it stands."""
            return self.body is None and self.point is None

        @property
        def legs(self) -> tuple[Leg, ...]:
            """Legs of the regime for this camera."""
            return regime(self.regime).legs(self.in_place)

    def __init__(self, params: Params) -> None:
        self._params = params
        self._legs = params.legs

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        p = self._params
        self._camera = camera_index(scene, p.camera, "camera_motion")
        self._body = None if p.body is None else body_index(scene, p.body, "camera_motion")

    def show(self, view: SubstepView) -> None:
        """Turn the camera from where the others have put it."""
        pivot: Vec | None = self._params.point
        if self._body is not None:
            pivot = view.pose(self._body)[0]
        # Substeps are counted, so that the time has no history.
        deg = yaw_deg(self._legs, view.substep * view.dt)
        pose = view.camera(self._camera)
        view.set_camera_pose(self._camera, yawed(pose, deg, pivot))

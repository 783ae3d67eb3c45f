"""Drivers run beforehand: bodies that they name are checked as where physics runs."""

import pytest
from physics_scenes import DT, body, floor, world_spec

from wmeval.errors import UserError
from wmeval.scene import Box, Sphere
from wmeval.sim.drivers import make_driver
from wmeval.sim.engines.foreseen import Foreseer
from wmeval.sim.protocol import Driver, DriverSpec

UNTURNED, STILL = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


class Puts(Driver):
    """Puts a body, by one of its hooks."""

    def __init__(self, body: int, hook: str) -> None:
        self.body = body
        self._hook = hook

    def reset(self, scene, view):
        """Begin."""

    def after(self, view):
        """Put it."""
        if self._hook == "after":
            self._put(view)

    def show(self, view):
        """Put it."""
        if self._hook == "show":
            self._put(view)

    def _put(self, view):
        view.set_state(self.body, (0.0, 0.0, 1.0), UNTURNED, STILL, STILL)


def foreseen(*drivers):
    ball = body("ball", Sphere(radius=0.1), position=(0, 0, 2))
    plate = body("plate", Box(half_extents=(0.2, 0.2, 0.01)), motion="kinematic")
    leaf = body("leaf", (), motion="kinematic")
    spec = world_spec(ball, plate, leaf, floor())
    made = [make_driver(d) if isinstance(d, DriverSpec) else d for d in drivers]
    return Foreseer("isaac", spec.scene, {}, DT, made).foresee([((), 2)], [0, 1, 2])


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"velocities": {"bal": [1, 0, 0]}}, "driver 'kick': no body 'bal'; there are ball"),
        ({"velocities": {"ball": [1, 0, 0]}, "damped": ["bal"]}, "no body 'bal'"),
        ({"velocities": {"plate": [1, 0, 0]}}, "driver kick: body 'plate' is not dynamic"),
        ({"velocities": {"ball": [1, 0, 0]}, "damped": ["floor"]}, "'floor' is not dynamic"),
    ],
)
def test_a_kick_of_what_is_not_there_or_not_dynamic_is_refused(params, says):
    with pytest.raises(UserError, match=says):
        foreseen(DriverSpec(kind="kick", params=params))


def test_kicks_are_told_by_body():
    kick = {"velocities": {"ball": [1, 2, 3]}, "damped": ["ball"], "damping": 0.5}
    known = foreseen(DriverSpec(kind="kick", params=kick))
    assert known.velocities == {0: (1, 2, 3)}
    assert known.damped == (0,)
    assert known.keep ** (1 / float(DT)) == pytest.approx(0.5)


def test_show_puts_data_bodies_only():
    with pytest.raises(UserError, match=r"show\(\) cannot put body 'plate'"):
        foreseen(Puts(1, "show"))
    shown = foreseen(Puts(2, "show"))
    assert shown.log.state.position[:, 2].tolist() == [[0, 0, 1]] * 3


def test_only_what_is_led_is_put():
    assert foreseen(Puts(1, "after")).poses[:, 0, 2].tolist() == [0, 1, 1]
    with pytest.raises(UserError, match="puts the dynamic body 'ball'"):
        foreseen(Puts(0, "after"))
    # It would be shown elsewhere than where physics has it.
    with pytest.raises(UserError, match="puts the static body 'floor'"):
        foreseen(Puts(3, "after"))

"""A cue: places the balls of a billiard table, aims, strikes, and ends the game."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from wmeval.scene import Card, Modal, Scene
from wmeval.sim.drivers.cue_pose import Standpoint, eye_pose, stick_pose
from wmeval.sim.drivers.names import body_index, camera_index
from wmeval.sim.protocol import Driver, SubstepView, Vec

CHANNELS = (
    "ball_0_x", "ball_0_z", "ball_1_x", "ball_1_z", "ball_2_x", "ball_2_z",
    "angle", "force", "hit_x", "hit_y",
)  # fmt: skip
"""Continuous channels, in order."""
BRANCHES = ("execute", "force_end")
"""Branches; they are the last channels."""
_EXECUTE, _END = 10, 11

MODAL = (
    Modal(name="cue", size=4,
          doc="aim in force: angle [rad], force [N], hit right and up within the unit circle"),
    Modal(name="shot", size=6,
          doc="the newest shot: place x, y [m], angle [rad], force [N], time [s], shots so far"),
    Modal(name="game", size=5,
          doc="1 while something moves; 1 after a refused placement; 1 after a shot that came too "
          "early; 1 after the end; time since when nothing moves [s], -1 when placed"),
    Modal(name="touched", size=3,
          doc="since the newest shot the cue ball touched ball 1, ball 2, and so many cushions"),
)  # fmt: skip
"""What the driver keeps beside the balls; the scene declares it."""


class Cue(Driver):
    """The player of WMEval's BilliardGame (Appendix "Unity Scenes"): 10 channels, 2 branches.

    **Placing.** While nothing moves, balls 0 to 2 go to ``(x, z) * half``, at rest and turned as
    they are, whenever those six numbers are others than those that were tried last, and execute is
    0 or has just risen. They go all together: where they would overlap by more than 1 nm, a cushion
    included, none goes, "game" says so, and nothing else happens.

    **Aiming.** The angle goes from 0 to 2 pi over [-1, 1], counter-clockwise from above, from the
    world's +x (Unity's right) over +y (Unity's forward); 0 aims along -x. The force goes from 0 to
    ``newtons``.

    **Striking.** A rise of execute strikes ball 0 while nothing moves, after placing. It gives the
    impulse J = force * ``contact_s`` along the aim, with the cue level, so that the speed is J/m;
    struck off centre by (a, b) R, to the right and up as the player sees it, the ball turns with
    ``w = (5 J / 2 m R) (a z + b (z x aim))`` (Leckie and Greenspan, "Pool Physics Simulation by
    Event Prediction", 2006; Alciatore, technical proof A.30). ``(a, b) = miscue (hit_x, hit_y)``,
    where hit is first pulled into the unit circle: the tip slips off beyond about half the radius
    (Alciatore). Squirt (the ball leaves a degree or two off the aim) is left out. A rise while
    something moves strikes nothing, and "game" says so.

    **Ending.** force_end stops all balls where they are, for good.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            balls: names; the first is the cue ball.
            half: (x, y) of a placement at 1 [m].
            newtons: mean force of a full shot [N].
            contact_s: time that tip and ball touch [s].
            miscue: largest offset of the tip over the radius.
            stick: name of the data body that shows the cue, tip at its origin, pointing along +x.
            camera: name of the player's eye.
            cushion: height of the rails' top above the balls' centres that the cue must clear [m].
        """

        balls: tuple[str, str, str]
        half: tuple[float, float]
        newtons: float = Field(gt=0)
        contact_s: float = Field(default=1e-3, gt=0)
        miscue: float = Field(default=0.5, gt=0, lt=1)
        stick: str | None = None
        camera: str | None = None
        cushion: float = 0.015

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0 with the aim of a zero action."""
        p = self._params
        self._balls = [body_index(scene, n, "cue") for n in p.balls]
        self._cue_ball = self._balls[0]
        body = scene.bodies[self._cue_ball]
        self._mass, self._radius = body.mass, body.collision[0].shape.radius  # type: ignore[union-attr]
        self._stick = None if p.stick is None else body_index(scene, p.stick, "cue")
        self._camera = None if p.camera is None else camera_index(scene, p.camera, "cue")
        self._action: Sequence[float] | None = None
        self._pressed = self._over = False
        self._tried: tuple[float, ...] | None = None
        self._shots = 0
        self._moving = self._moves(view)
        self._refused = self._early = 0.0
        self._since = 0.0
        self._number = {body: i for i, body in enumerate(self._balls)}
        self._touched = [0.0, 0.0, 0.0]
        self._aim = aim((0.0,) * len(CHANNELS), p.newtons)
        view.set_modal("cue", self._aim)
        self._tell(view)

    # --- every substep --------------------------------------------------------------------------

    def before(self, view: SubstepView) -> None:
        """Act on a new action, or when the balls have come to rest."""
        if self._over:
            return
        action = view.action
        if self._moving and not self._moves(view):
            self._moving, self._since = False, view.substep * view.dt
            self._tell(view)
            if action is self._action:
                self._place(view, action)
        if action is not self._action:
            self._action = action
            self._act(view, action)

    def after(self, view: SubstepView) -> None:
        """Note what the cue ball touches."""
        if not self._moving:
            return
        for contact in view.contacts(self._cue_ball):
            number = self._number.get(contact.body_b, 0)
            if number:
                self._touched[number - 1] = 1.0
            else:
                self._touched[2] += 1.0
            view.set_modal("touched", self._touched)

    def _act(self, view: SubstepView, action: Sequence[float]) -> None:
        chosen = aim(action, self._params.newtons)
        if chosen != self._aim:
            self._aim = chosen
            view.set_modal("cue", chosen)
        if action[_END] > 0.5:
            self._stop(view)
            return
        pressed = action[_EXECUTE] > 0.5
        rise, self._pressed = pressed and not self._pressed, pressed
        if self._moving:
            if rise:
                self._early = 1.0
                self._tell(view)
            return
        if rise or not pressed:
            self._place(view, action, rise)
        if rise:
            self._shoot(view)

    def _place(self, view: SubstepView, action: Sequence[float], rise: bool = False) -> None:
        """Put the balls where the action wants them, all or none."""
        wanted = tuple(action[:6])
        if wanted == self._tried or (action[_EXECUTE] > 0.5 and not rise):
            return
        self._tried = wanted
        (hx, hy), z = self._params.half, view.pose(self._cue_ball)[0][2]
        places = [(wanted[2 * i] * hx, wanted[2 * i + 1] * hy, z) for i in range(3)]
        free = places_are_free(places, (hx, hy), self._radius)
        if free:
            zero = (0.0, 0.0, 0.0)
            for body, place in zip(self._balls, places, strict=True):
                view.set_state(body, place, view.pose(body)[1], zero, zero)
            self._since = -1.0
        self._refused = float(not free)
        self._tell(view)

    def _shoot(self, view: SubstepView) -> None:
        angle, force, right, up = self._aim
        (x, y, z), rotation = view.pose(self._cue_ball)
        impulse = force * self._params.contact_s
        linear, angular = struck(
            impulse, angle, self._params.miscue * right, self._params.miscue * up,
            mass=self._mass, radius=self._radius,
        )  # fmt: skip
        self._shots += 1
        self._early = 0.0
        self._touched = [0.0, 0.0, 0.0]
        view.set_modal("touched", self._touched)
        view.set_modal("shot", (x, y, angle, force, view.substep * view.dt, float(self._shots)))
        self._moving = impulse > 0
        if self._moving:
            view.set_state(self._cue_ball, (x, y, z), rotation, linear, angular)
        else:
            self._since = view.substep * view.dt
        self._tell(view)

    def _stop(self, view: SubstepView) -> None:
        zero = (0.0, 0.0, 0.0)
        for body in self._balls:
            position, rotation = view.pose(body)
            view.set_state(body, position, rotation, zero, zero)
        self._over = True
        if self._moving:
            self._moving, self._since = False, view.substep * view.dt
        self._tell(view)

    def _moves(self, view: SubstepView) -> bool:
        zero = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        return any(view.velocity(body) != zero for body in self._balls)

    def _tell(self, view: SubstepView) -> None:
        state = (float(self._moving), self._refused, self._early, float(self._over), self._since)
        view.set_modal("game", state)

    # --- when somebody looks --------------------------------------------------------------------

    def show(self, view: SubstepView) -> None:
        """The stick and the player's eye: functions of time, balls and modal state."""
        if self._stick is None and self._camera is None:
            return
        (x, y, z), _ = view.pose(self._cue_ball)
        angle, force, right, up = view.modal("cue")
        sx, sy, shot_angle, _, shot_time, shots = view.modal("shot")
        moving, _, _, _, since = view.modal("game")
        p = self._params
        stand = Standpoint(
            time=view.substep * view.dt,
            ball=(x, y, z),
            angle=angle,
            power=force / p.newtons,
            hit=(p.miscue * right, p.miscue * up),
            shot=None if shots == 0 else (sx, sy, shot_angle, shot_time),
            moving=moving > 0,
            since=since,
            radius=self._radius,
            half=p.half,
            cushion=p.cushion,
        )
        zero = (0.0, 0.0, 0.0)
        if self._stick is not None:
            view.set_state(self._stick, *stick_pose(stand), zero, zero)
        if self._camera is not None:
            view.set_camera(self._camera, *eye_pose(stand))


# --- mathematics --------------------------------------------------------------------------------


def aim(action: Sequence[float], newtons: float) -> tuple[float, float, float, float]:
    """Angle [rad] in [0, 2 pi], force [N], hit right and up within the unit circle, of an action.

    A perturbed gain may bring values outside [-1, 1]: the angle goes on, the force stays >= 0.
    """
    angle = math.pi * (action[6] + 1.0)
    force = max(0.5 * newtons * (action[7] + 1.0), 0.0)
    right, up = float(action[8]), float(action[9])
    length = math.hypot(right, up)
    if length > 1.0:
        right, up = right / length, up / length
    return angle, force, right, up


def struck(
    impulse: float, angle: float, right: float, up: float, *, mass: float, radius: float
) -> tuple[Vec, Vec]:
    """Velocities of a ball that rests and is struck by a level cue.

    Args:
        impulse: [N s].
        angle: of the aim from +x, counter-clockwise [rad].
        right: offset of the tip to the player's right over the radius.
        up: its offset upwards over the radius.
        mass: [kg].
        radius: [m].

    Returns:
        Linear [m/s] and angular [rad/s] velocity.
    """
    dx, dy = math.cos(angle), math.sin(angle)
    speed = impulse / mass
    k = 2.5 * speed / radius
    return (speed * dx, speed * dy, 0.0), (-k * up * dy, k * up * dx, k * right)


def places_are_free(
    places: Sequence[Vec], half: tuple[float, float], radius: float, tolerance: float = 1e-9
) -> bool:
    """Whether balls at places [m] overlap neither each other nor a cushion by more than a nm."""
    for i, (x, y, _) in enumerate(places):
        if abs(x) > half[0] + tolerance or abs(y) > half[1] + tolerance:
            return False
        for a, b, _ in places[:i]:
            if math.hypot(x - a, y - b) < 2.0 * radius - tolerance:
                return False
    return True

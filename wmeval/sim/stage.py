"""What all engines share: cameras, lights, modal state, data bodies, and showing when one looks.

A `Stage` is the part of a `SubstepView` that knows no physics. An engine inherits from it, says
which bodies it moves itself (`Stage.has_physics`), calls `_look` before it reads a row, and sets
``_in_hooks`` while drivers' `before` and `after` run.

`Driver.show` is lazy: it is called when a row is written or somebody outside reads what it puts,
once per state. Results cannot depend on how often that is, since `before` and `after` are not let
read what `show` puts: the first such read is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import MOTIONS, Scene
from wmeval.sim.protocol import Driver, Quat, SubstepView, Vec
from wmeval.sim.rows import Pose16, Rows

_Key = str | tuple[str, int] | tuple[str, str]


class Stage:
    """Cameras, lights, modal state and data bodies of a running world.

    Attributes:
        substep: substeps done so far.
        dt: substep [s].
        action: in force.
        set_camera: see `SubstepView`; bound to the rows, since drivers call it every substep.
    """

    def __init__(self) -> None:
        self.substep = 0
        self.dt = 0.0
        self.action: Sequence[float] = ()
        self.set_camera: Callable[..., None]

    def _set_stage(self, scene: Scene, dt: Fraction) -> None:
        """Begin at state 0, without drivers."""
        self._scene = scene
        self._dt = dt
        self.dt = float(dt)
        self.substep = 0
        self.action = ()
        self._motion = [MOTIONS.index(b.motion) for b in scene.bodies]
        self._data_bodies = np.array([not self.has_physics(i) for i in range(len(scene.bodies))])
        self._rows = Rows(scene, dt)
        self.set_camera = self._rows.set_camera
        self._before: list[Callable[[Any], None]] = []
        self._after: list[Callable[[Any], None]] = []
        self._shows: list[Callable[[SubstepView], None]] = []
        self._shown_at = -1
        self._showing = self._in_hooks = False
        self._put_before: dict[int, Pose16] = {}
        self._put_by_show: dict[int, Pose16] = {}
        self._shown: set[_Key] = set()
        self._kept_bodies = np.zeros(len(scene.bodies), bool)  # likewise
        self._kept: set[_Key] = set()  # put by the other hooks: read without a look
        self._shown_now: set[_Key] = set()
        self._shown_bodies = np.zeros(len(scene.bodies), bool)
        self._shown_bodies_now = np.zeros(len(scene.bodies), bool)

    def _enter(self, drivers: Sequence[Driver], view: SubstepView) -> None:
        """Reset the drivers; their hooks see ``view``, this very engine."""
        self._in_hooks = True
        for driver in drivers:
            driver.reset(self._scene, view)
        self._in_hooks = False
        # What a driver inherits does nothing.
        self._before = [d.before for d in drivers if type(d).before is not Driver.before]
        self._after = [d.after for d in drivers if type(d).after is not Driver.after]
        self._shows = [
            d.show for d in drivers if getattr(type(d), "show", Driver.show) is not Driver.show
        ]
        self._shown_at = -1 if self._shows else self.substep

    def has_physics(self, body: int) -> bool:
        """Whether the engine knows the body; the others are data."""
        return bool(self._scene.bodies[body].collision)

    # --- showing ----------------------------------------------------------------------------------

    def _look(self) -> None:
        """Bring what `show` puts up to the present state."""
        if not self._shows or self._shown_at == self.substep:
            return
        for camera, pose in self._put_by_show.items():
            # Every look begins with what the other hooks have put.
            if self._rows.camera(camera) is pose:
                self._rows.set_camera_pose(camera, self._put_before[camera])
        self._put_before = {}
        self._showing = True
        self.set_camera = self._show_camera
        self._shown_now = set()
        self._shown_bodies_now[:] = False
        try:
            for show in self._shows:
                show(self)  # type: ignore[arg-type]
        finally:
            self._showing = False
            self.set_camera = self._rows.set_camera
        self._put_by_show = {c: self._rows.camera(c) for c in self._put_before}
        self._shown |= self._shown_now
        self._shown_bodies |= self._shown_bodies_now
        self._shown_at = self.substep

    def _show_camera(
        self, camera: int, position: Vec, target: Vec, fov_y: float | None = None
    ) -> None:
        self._shows_camera(camera)
        self._rows.set_camera(camera, position, target, fov_y)

    def _shows_camera(self, camera: int) -> None:
        self._shown_now.add(("camera", camera))
        if camera not in self._put_before:
            self._put_before[camera] = self._rows.camera(camera)

    def set_camera_pose(self, camera: int, pose: Pose16) -> None:
        """Put a camera by its ``T_world_camera``, sixteen numbers, row-major."""
        if self._showing:
            self._shows_camera(camera)
        self._rows.set_camera_pose(camera, pose)

    def _reads(self, key: _Key) -> None:
        """Before anything but a body is read: look, or refuse what must not be known here."""
        if not self._shows:
            return
        if self._showing:
            if key in self._shown and key not in self._shown_now:
                raise self._hidden(str(key))
        elif self._in_hooks:
            if key in self._shown:
                raise self._hidden(str(key))
        elif key not in self._kept or key in self._shown:
            self._look()

    def _reads_body(self, body: int) -> None:
        """The same before the state of a body is read: only data bodies are shown."""
        if not self._data_bodies[body]:
            return
        if self._showing:
            if self._shown_bodies[body] and not self._shown_bodies_now[body]:
                raise self._hidden(f"body {self._scene.bodies[body].name!r}")
        elif self._in_hooks:
            if self._shown_bodies[body]:
                raise self._hidden(f"body {self._scene.bodies[body].name!r}")
        elif not self._kept_bodies[body] or self._shown_bodies[body]:
            self._look()

    def _hidden(self, what: str) -> UserError:
        return UserError(
            f"{what} is put by a driver's show(): before() and after() cannot read it, nor can the "
            "show() of an earlier driver, since it is only computed when somebody looks; compute "
            "it from time, physical and modal state"
        )

    def _puts(self, key: _Key) -> None:
        (self._shown_now if self._showing else self._kept).add(key)

    # --- data bodies ------------------------------------------------------------------------------

    def _data(self, body: int, verb: str) -> None:
        if not self._data_bodies[body]:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} has collision geometry: {verb} takes "
                "data bodies (collision=())"
            )

    def _still_pose(self, body: int) -> tuple[Vec, Quat]:
        """Pose of a body that the engine does not move."""
        if self._shows:
            self._reads_body(body)
        px, py, pz, x, y, z, w = self._rows.last(body)[:7]
        return (px, py, pz), (w, x, y, z)

    def _still_velocity(self, body: int) -> tuple[Vec, Vec]:
        """Velocity of a body that the engine does not move."""
        if self._shows:
            self._reads_body(body)
        vx, vy, vz, wx, wy, wz = self._rows.last(body)[7:]
        return (vx, vy, vz), (wx, wy, wz)

    def _set_data_state(
        self, body: int, position: Vec, quaternion: Quat, linear: Vec, angular: Vec
    ) -> None:
        (self._shown_bodies_now if self._showing else self._kept_bodies)[body] = True
        w, x, y, z = quaternion
        self._rows.put(body, (*position, x, y, z, w, *linear, *angular))

    def _check_ahead(self, until: int) -> None:
        """Whether a state is still to come.

        Raises:
            UserError: not so.
        """
        if until <= self.substep:
            raise UserError(f"advance to state {until}: the world is already at {self.substep}")

    def _puts_data(
        self, body: int, position: Vec, quaternion: Quat, linear: Vec, angular: Vec
    ) -> bool:
        """Put a data body; False where it is the engine's to put.

        Raises:
            UserError: `show` puts a body that collides.
        """
        if self._data_bodies[body]:
            self._set_data_state(body, position, quaternion, linear, angular)
            return True
        if self._showing:
            raise UserError(
                f"show() cannot put body {self._scene.bodies[body].name!r}: it has collision "
                "geometry; put it in before() or after()"
            )
        return False

    def set_states(self, bodies: NDArray[np.intp], numbers: NDArray[np.float64]) -> None:
        """Put the states of many data bodies (n,) at once: (n, 13), quaternions ``wxyz``.

        Raises:
            UserError: one of them has collision geometry, or the numbers have another shape.
        """
        if not self._data_bodies[bodies].all():
            wrong = int(bodies[int(np.argmin(self._data_bodies[bodies]))])
            self._data(wrong, "set_states")
        if numbers.shape != (len(bodies), 13):
            raise UserError(
                f"set_states: {len(bodies)} bodies need numbers ({len(bodies)}, 13), got "
                f"{numbers.shape}"
            )
        (self._shown_bodies_now if self._showing else self._kept_bodies)[bodies] = True
        self._rows.put_many(bodies, numbers)

    def set_active(self, body: int, on: bool) -> None:
        """Let a data body's slot appear or vanish.

        Raises:
            UserError: it has collision geometry.
        """
        self._data(body, "set_active")
        if self._showing:
            self._shown_bodies_now[body] = True
        self._rows.set_active(body, bool(on))

    def active(self, body: int) -> bool:
        """Whether the body's slot is in the world."""
        if self._shows:
            self._reads_body(body)
        return self._rows.active(body)

    def motion(self, body: int) -> int:
        """STATIC, KINEMATIC or DYNAMIC."""
        return self._motion[body]

    def vertices(self, name: str) -> NDArray[np.float64]:
        """Vertices (V, 3) [m] of a deformable now, world frame.

        Raises:
            UserError: the scene has none of that name.
        """
        return self._rows.vertices(name)

    # --- cameras, lights, modal state -------------------------------------------------------------

    def camera(self, camera: int) -> Pose16:
        """``T_world_camera`` now, sixteen numbers, row-major."""
        if not self._showing:
            self._reads(("camera", camera))
        return self._rows.camera(camera)

    def fov_y(self, camera: int) -> float:
        """Vertical field of view now [rad]."""
        self._reads(("camera", camera))
        return self._rows.fov_y(camera)

    def sun(self) -> tuple[Vec, Vec]:
        """Direction along which sunlight travels (unit), and linear RGB times strength."""
        self._reads("the sun")
        return self._rows.sun()

    def set_sun(self, direction: Vec, color: Vec) -> None:
        """Put the sun: direction along which its light travels, linear RGB times strength.

        Raises:
            UserError: the direction has no length.
        """
        self._puts("the sun")
        self._rows.set_sun(direction, color)

    def sky(self) -> tuple[Vec, Vec, Vec]:
        """Zenith, horizon and ground, each linear RGB times strength."""
        self._reads("the sky")
        return self._rows.sky()

    def set_sky(self, zenith: Vec, horizon: Vec, ground: Vec) -> None:
        """Put the sky's colours, linear RGB times strength each."""
        self._puts("the sky")
        self._rows.set_sky(zenith, horizon, ground)

    def modal(self, name: str) -> tuple[float, ...]:
        """Named extra state.

        Raises:
            UserError: the scene declares no such state.
        """
        self._reads(("modal", name))
        return self._rows.modal(name)

    def set_modal(self, name: str, values: Sequence[float]) -> None:
        """Put a named extra state.

        Raises:
            UserError: the scene declares no such state, or one of another size.
        """
        self._puts(("modal", name))
        self._rows.set_modal(name, values)

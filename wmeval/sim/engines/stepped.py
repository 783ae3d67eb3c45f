"""What engines share that are stepped one substep at a time: hooks, rows, contacts, put bodies.

An engine inherits from `SteppedEngine` and says how its library makes a scene, steps, reads and is
pushed; everything that `wmeval.sim.protocol.Engine` and `SubstepView` ask for follows. The library
is imported when a scene is made, not before, so that what an engine is can be told where its
library is not installed: there, `wmeval.sim.world.open_world` runs the whole world, drivers and
all, in a worker under the interpreter that has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import NotFiniteError, UserError
from wmeval.jobs import installed
from wmeval.records import CameraLog, Contacts, LightLog, StateLog
from wmeval.scene import DYNAMIC, Meshes, Scene
from wmeval.sim.protocol import (
    ContactPoint,
    Driver,
    EngineConfig,
    EngineInfo,
    Probe,
    Quat,
    RayHit,
    StateView,
    Vec,
)
from wmeval.sim.stage import Stage
from wmeval.vectors import negative

Numbers = list[float]
"""Of one body: position 3, quaternion xyzw 4, linear 3 and angular velocity 3."""
Point = tuple[int, int, Vec, Vec, float, Vec, float]
"""Of one contact: bodies a, b, position, normal, normal and tangential impulse on a, distance."""
Put = tuple[Vec, Quat, Vec, Vec]
"""Of one body that a driver put: position, wxyz quaternion, linear and angular velocity."""

_NO_CONTACTS = Contacts.empty()


class SteppedEngine(Stage):
    """An engine by a few verbs of its library; also the `SubstepView` of its drivers."""

    info: EngineInfo

    # --- of the library: every engine says these --------------------------------------------------

    def _make(self, scene: Scene, meshes: Meshes, config: EngineConfig) -> None:
        """Make the scene at state 0; ``self.dt`` is known.

        Raises:
            UserError: an unknown option, or what the engine has no physics for.
        """
        raise NotImplementedError

    def _step(self) -> None:
        """One substep: what was pushed and carried acts in it."""
        raise NotImplementedError

    def _read(self) -> list[Numbers]:
        """Numbers of ``self._bodies``, in order."""
        raise NotImplementedError

    def _read_vertices(self) -> dict[str, NDArray[np.float64]]:
        """New arrays (V, 3) of all deformables."""
        return {}

    def _points(self) -> list[Point]:
        """Contacts of the substep just done."""
        return []

    def _put(self, body: int, put: Put) -> None:
        """Put a body that collides."""
        raise self._lacks("puts bodies that collide")

    def _push(self, body: int, force: Vec, at: Vec | None, torque: Vec) -> None:
        """Force at a point (None: the centre of mass) and torque in the next substep."""
        raise self._lacks("pushes bodies")

    def _hold(self, body: int, motion: int) -> None:
        """Make a body STATIC, KINEMATIC or DYNAMIC, at rest."""
        raise self._lacks("holds or releases bodies")

    def _ray(self, origin: Vec, end: Vec, ignore: tuple[int, ...]) -> RayHit | None:
        """The nearest body on a ray."""
        raise self._lacks("casts rays")

    def close(self) -> None:
        """Free everything; idempotent."""

    # --- building ---------------------------------------------------------------------------------

    def build(
        self,
        scene: Scene,
        meshes: Meshes,
        config: EngineConfig,
        dt: Fraction,
        drivers: Sequence[Driver],
    ) -> None:
        """Make the scene at state 0 and reset the drivers.

        Raises:
            UserError: an unknown option, or what this engine has no physics for.
        """
        self.close()
        self._set_stage(scene, dt)
        for body in scene.bodies:
            if body.motion == "dynamic" and body.active and not body.collision:
                raise UserError(
                    f"body {body.name!r} is dynamic but has no collision shape: add one"
                )
        self._bodies = self._dynamic()
        self._carried: dict[int, Put] = {}
        self._undone: set[int] = set()
        try:
            self._make(scene, meshes, config)
        except ModuleNotFoundError as error:
            name = self.info.name
            raise UserError(
                f"engine {name} needs {error.name!r}, which this interpreter lacks: "
                f"{installed.mend(name)}, and open its world with wmeval.sim.world.open_world"
            ) from error
        self._stale = True
        self._vertices_stale = bool(scene.deformables)
        self._refresh()
        self._refresh_vertices()
        self._enter(drivers, self)

    def _dynamic(self) -> tuple[int, ...]:
        """Bodies that the solver moves."""
        return tuple(
            i
            for i, body in enumerate(self._scene.bodies)
            if body.collision and body.active and self._motion[i] == DYNAMIC
        )

    def _refresh(self) -> None:
        """Bring the known numbers up to the present."""
        if self._stale:
            self._now: list[Numbers] = self._read()
            self._at = {body: row for row, body in enumerate(self._bodies)}
            self._stale = False

    def _refresh_vertices(self) -> None:
        if self._vertices_stale:
            for name, vertices in self._read_vertices().items():
                self._rows.put_vertices(name, vertices)
            self._vertices_stale = False

    # --- SubstepView ------------------------------------------------------------------------------

    def pose(self, body: int) -> tuple[Vec, Quat]:
        """Position [m] and ``wxyz`` quaternion now."""
        self._refresh()
        row = self._at.get(body)
        if row is None:
            return self._still_pose(body)
        px, py, pz, x, y, z, w = self._now[row][:7]
        return (px, py, pz), (w, x, y, z)

    def velocity(self, body: int) -> tuple[Vec, Vec]:
        """Linear [m/s] and angular [rad/s] velocity now, world frame."""
        self._refresh()
        row = self._at.get(body)
        if row is None:
            return self._still_velocity(body)
        vx, vy, vz, wx, wy, wz = self._now[row][7:]
        return (vx, vy, vz), (wx, wy, wz)

    def vertices(self, name: str) -> NDArray[np.float64]:
        """Vertices (V, 3) [m] of a deformable now, world frame.

        Raises:
            UserError: the scene has none of that name.
        """
        self._refresh_vertices()
        return self._rows.vertices(name)

    def contacts(self, body: int, other: int | None = None) -> list[ContactPoint]:
        """Contacts with positive impulse of a body (with another) in the substep just done.

        Raises:
            UserError: the engine tells no contacts.
        """
        if not self.info.contact_impulses:
            raise self._lacks("reads contacts")
        found = []
        for a, b, place, normal, impulse, tangential, gap in self._points():
            if a == body and other in (None, b):
                found.append(ContactPoint(a, b, place, normal, impulse, tangential, gap))
            elif b == body and other in (None, a):
                turned = negative(normal), impulse, negative(tangential), gap
                found.append(ContactPoint(b, a, place, *turned))
        return found

    def apply_force(self, body: int, force: Vec, at: Vec | None = None) -> None:
        """Force [N] during the next substep, world frame, at a point [m] or the centre of mass."""
        self._push(self._moved(body), force, at, (0.0, 0.0, 0.0))

    def apply_torque(self, body: int, torque: Vec) -> None:
        """Torque [N m] during the next substep, world frame."""
        self._push(self._moved(body), (0.0, 0.0, 0.0), None, torque)

    def _moved(self, body: int) -> int:
        if self._data_bodies[body] or self._motion[body] != DYNAMIC:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} is not dynamic: a driver cannot push it"
            )
        return body

    def set_motion(self, body: int, motion: int) -> None:
        """Make a body STATIC, KINEMATIC or DYNAMIC (with the scene's mass, at rest).

        Raises:
            UserError: a body without physics or mass, or the engine cannot.
        """
        self._data_less(body, "hold or release")
        if motion == DYNAMIC and self._scene.bodies[body].mass <= 0:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} cannot be released: it has no mass"
            )
        position, quaternion = self.pose(body)
        self._hold(body, motion)
        self._carried.pop(body, None)
        self._motion[body] = motion
        self._bodies = self._dynamic()
        self._stale = True
        w, x, y, z = quaternion
        self._rows.put(body, [*position, x, y, z, w, *(0.0,) * 6])
        self._rows.set_motion(body, motion)
        self._begin()

    def set_state(
        self, body: int, position: Vec, quaternion: Quat, linear: Vec, angular: Vec
    ) -> None:
        """Put a body's state: dynamic, kinematic or data.

        Raises:
            UserError: `Driver.show` puts a body that collides, or the engine cannot.
        """
        if self._puts_data(body, position, quaternion, linear, angular):
            return
        put = (position, quaternion, linear, angular)
        self._put(body, put)
        self._stale = True
        if self._motion[body] == DYNAMIC:
            self._undone.add(body)
        else:
            if any(linear) or any(angular):
                self._carried[body] = put
            else:
                self._carried.pop(body, None)
            w, x, y, z = quaternion
            self._rows.put(body, [*position, x, y, z, w, *linear, *angular])

    def raycast(self, origin: Vec, end: Vec, ignore: tuple[int, ...] = ()) -> RayHit | None:
        """The nearest body with collision geometry on a ray, but for those in ``ignore``.

        Raises:
            UserError: the engine casts no rays.
        """
        return self._ray(origin, end, ignore)

    def _data_less(self, body: int, verb: str) -> None:
        if self._data_bodies[body]:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} has no physics (no collision shape): a "
                f"driver cannot {verb} it"
            )

    def _lacks(self, what: str) -> UserError:
        return UserError(
            f"scene {self._scene.name!r} has a driver that {what}, which engine {self.info.name} "
            "cannot serve: run it with bullet"
        )

    # --- running ----------------------------------------------------------------------------------

    def _begin(self, probe: Probe | None = None) -> None:
        if probe is not None:
            self._wanted = None if probe.bodies is None else frozenset(probe.bodies)
        wanted = getattr(self, "_wanted", None)
        reading = tuple(b for b in self._bodies if wanted is None or b in wanted)
        self._reading = [self._bodies.index(b) for b in reading]
        self._rows.begin(reading)

    def _write(self, *, look: bool) -> None:
        if look:
            self._look()
        self._refresh()
        self._refresh_vertices()
        self._rows.add(self.substep, [x for row in self._reading for x in self._now[row]])

    def log(self, probe: Probe) -> tuple[StateLog, CameraLog, LightLog]:
        """The present state as one row."""
        self._begin(probe)
        self._write(look=True)
        return self._rows.take()

    def advance(
        self, action: Sequence[float], until: int, probe: Probe
    ) -> tuple[StateLog, CameraLog, LightLog, Contacts]:
        """Run substeps up to state ``until`` under one action; rows as the probe asks.

        Raises:
            UserError: ``until`` is not after the present state, or a state is no longer finite.
        """
        every = probe.states == "substeps"
        found: list[tuple[Any, ...]] = []
        self._begin(probe)
        self._check_ahead(until)
        self.action = tuple(action)  # a caller may reuse its array
        self._steps(
            until,
            (lambda: self._write(look=probe.shown or self.substep == until)) if every else None,
            found if probe.contacts and self.info.contact_impulses else None,
        )
        if not every:
            self._write(look=True)
        if not isinstance(probe.contacts, bool):
            pairs = {*probe.contacts, *((b, a) for a, b in probe.contacts)}
            found = [row for row in found if (row[1], row[2]) in pairs]
        return (*self._rows.take(), Contacts.from_rows(found) if found else _NO_CONTACTS)

    def run(self, action: Sequence[float], until: int) -> StateView:
        """Run substeps as `advance` does, and keep nothing.

        Returns:
            The present state: this engine.

        Raises:
            UserError: as `advance`.
        """
        self._check_ahead(until)
        self.action = tuple(action)
        self._steps(until, None, None)
        return self

    def _steps(
        self, until: int, write: Callable[[], None] | None, found: list[tuple[Any, ...]] | None
    ) -> None:
        try:
            while self.substep < until:
                self._in_hooks = True
                for prepare in self._before:
                    prepare(self)
                self._step()
                self.substep += 1
                self._stale = True
                self._vertices_stale = bool(self._scene.deformables)
                self._undone.clear()
                rows = [] if found is None else self._points()
                for call in self._after:
                    call(self)
                self._in_hooks = False
                if found is not None:
                    # What a driver undid by putting a body is no contact.
                    undone, n = self._undone, self.substep - 1
                    found += [(n, *p) for p in rows if p[0] not in undone and p[1] not in undone]
                if write is not None:
                    write()
        finally:
            self._in_hooks = False
        self._check_finite()

    def _check_finite(self) -> None:
        self._refresh()
        for body, numbers in zip(self._bodies, self._now, strict=True):
            if not math.isfinite(sum(numbers)):
                raise self._lost(f"body {self._scene.bodies[body].name!r}")
        if self._scene.deformables:
            self._refresh_vertices()
            for item in self._scene.deformables:
                if not np.isfinite(self._rows.vertices(item.name)).all():
                    raise self._lost(f"{item.kind} {item.name!r}")

    def _lost(self, what: str) -> NotFiniteError:
        return NotFiniteError(
            f"{what} left the finite world before t = {float(self.substep * self._dt):.4g} s: use "
            "a smaller dt or weaker actions"
        )

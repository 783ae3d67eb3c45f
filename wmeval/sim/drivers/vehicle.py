"""A car on raycast wheels: springs, slipping tyres, engine, brakes and steering on one rigid body.

Four rays a substep find the road under the wheels; spring and damper push along the contact normal
at the point of contact, the tyre (`wmeval.sim.drivers.tyres`) pushes along the road. Every wheel's
spin is a state of its own, with the reaction of its angular momentum on the body. The update is
semi-implicit: the tread's deflection first, by its exact solution, then the force it makes, then
wheel and body. All that the future depends on is declared modal state: `modal_state`.
"""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from wmeval.errors import UserError
from wmeval.scene import Card, Modal, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.drivers.tyres import (
    Tyre,
    deflected,
    engine_torque,
    grip,
    spring_force,
    spun,
)
from wmeval.sim.protocol import Driver, SubstepView, Vec
from wmeval.vectors import axes, product

WHEELS = ("front_left", "front_right", "rear_left", "rear_right")


def modal_state() -> tuple[Modal, ...]:
    """The modal state of one vehicle, for ``Scene.modal``; wheels in the order of `WHEELS`."""
    return (
        Modal(name="controls", size=3, unit="1", doc="steering, throttle and brake in force"),
        Modal(
            name="steer",
            size=1,
            unit="rad",
            doc="steering angle (of the bicycle model), positive right",
        ),
        Modal(name="wheel_angle", size=4, unit="rad", doc="turned so far, positive forward"),
        Modal(name="wheel_speed", size=4, unit="rad/s", doc="spin, positive forward"),
        Modal(name="compression", size=4, unit="m", doc="of the suspension from its free length"),
        Modal(name="load", size=4, unit="N", doc="normal force; 0 in the air"),
        Modal(name="slip_x", size=4, unit="1", doc="forward slip of the last substep"),
        Modal(name="slip_y", size=4, unit="1", doc="the same to the right"),
        Modal(name="tread_x", size=4, unit="m", doc="forward deflection of the tread"),
        Modal(name="tread_y", size=4, unit="m", doc="the same to the right"),
    )


class Axle(Card):
    """Two equal wheels and their suspension.

    Attributes:
        forward: of the centre of mass [m]; negative is behind.
        half_track: of the wheels' middles from the car's middle [m].
        mount: height of the struts' upper ends over the centre of mass [m].
        free: length of the unloaded strut down to the hub [m].
        stiffness: of one spring [N/m].
        damping: of one damper [N s/m].
        anti_roll: of the bar between the two wheels [N/m of difference].
        steered: turns with the steering.
        driven: share of the engine's torque on this axle.
        tyre_stiffness: factor B of the Magic Formula.
    """

    forward: float
    half_track: float = Field(gt=0)
    mount: float
    free: float = Field(gt=0)
    stiffness: float = Field(gt=0)
    damping: float = Field(ge=0)
    anti_roll: float = Field(default=0.0, ge=0)
    steered: bool = False
    driven: float = Field(default=0.0, ge=0, le=1)
    tyre_stiffness: float = Field(default=10.0, gt=0)


class Vehicle(Driver):
    """Drives a rigid body as a car: action channels steering, throttle, brake.

    The body's frame: origin at the centre of mass, x right, y forward, z up.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            body: name of the chassis.
            wheels: names of the bodies shown as wheels (no collision), in the order of `WHEELS`;
                None shows none.
            actions: index of the channels steering, throttle and brake; brake is on above 0.5.
            front, rear: the axles.
            radius: of the wheels [m].
            wheel_inertia: of one wheel about its axle [kg m2].
            travel: compression [m] at which the bump stops are met.
            friction: peak force over load, (longitudinal, lateral): the ellipse's half axes.
            relaxation: of the tyres [m].
            rolling: coefficient of rolling resistance.
            max_steer_deg: steering angle at 1 [deg]: that of the bicycle in the car's middle; its
                two wheels follow Ackermann's rule.
            steer_rate_deg: how fast the front wheels turn [deg/s].
            torque: of the engine at the driven wheels in all [N m].
            power: of the engine [W].
            top_speed: of the engine's limiter [m/s].
            brake_torque: at each of the four wheels [N m].
            drag: force per squared speed [N s2/m2].
        """

        body: str
        wheels: tuple[str, str, str, str] | None = None
        actions: tuple[int, int, int] = (0, 1, 2)
        front: Axle
        rear: Axle
        radius: float = Field(gt=0)
        wheel_inertia: float = Field(gt=0)
        travel: float = Field(gt=0)
        friction: tuple[float, float] = (1.0, 1.0)
        relaxation: float = Field(default=0.35, gt=0)
        rolling: float = Field(default=0.012, ge=0)
        max_steer_deg: float = Field(default=30.0, gt=0, lt=90)
        steer_rate_deg: float = Field(default=120.0, gt=0)
        torque: float = Field(ge=0)
        power: float = Field(gt=0)
        top_speed: float = Field(gt=0)
        brake_torque: float = Field(default=3000.0, ge=0)
        drag: float = Field(default=0.0, ge=0)

        @model_validator(mode="after")
        def _check(self) -> Vehicle.Params:
            if min(self.friction) <= 0:
                raise ValueError(f"friction {self.friction} must be > 0")
            if abs(self.front.driven + self.rear.driven - 1) > 1e-9:
                raise ValueError("the axles' driven shares must add up to 1")
            return self

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0: wheels at the speed of the road, treads relaxed, wheels straight."""
        p = self._params
        self._body = body_index(scene, p.body, "vehicle")
        names = p.wheels or ()
        self._shown = tuple(body_index(scene, name, "vehicle") for name in names)
        known = {m.name for m in scene.modal}
        missing = [m.name for m in modal_state() if m.name not in known]
        if missing:
            raise UserError(f"driver 'vehicle': the scene declares no modal state {missing[0]!r}")
        self._ignore = (self._body, *self._shown)
        axles = (p.front, p.front, p.rear, p.rear)
        self._axles = axles
        self._mounts = tuple(
            (a.half_track * side, a.forward, a.mount)
            for a, side in zip(axles, (-1.0, 1.0, -1.0, 1.0), strict=True)
        )
        mx, my = p.friction
        self._tyres = tuple(Tyre(mx, my, a.tyre_stiffness, relaxation=p.relaxation) for a in axles)
        self._friction = [b.friction for b in scene.bodies]
        self._rubber = [self._friction[i] for i in self._shown] or [1.0] * 4
        self._steer = 0.0
        self._angles = [0.0] * 4
        (vx, vy, vz), _ = view.velocity(self._body)
        _, fy, _ = axes(view.pose(self._body)[1])
        along = vx * fy[0] + vy * fy[1] + vz * fy[2]
        self._spins = [along / p.radius] * 4
        self._tread = [(0.0, 0.0)] * 4
        self._slips = [(0.0, 0.0)] * 4
        self._loads = [0.0] * 4
        self._find_road(view)
        self._write(view, (0.0, 0.0, 0.0))

    # --- one substep ----------------------------------------------------------------------------

    def before(self, view: SubstepView) -> None:
        """Sum up what road, air and engine do to the body, and apply it."""
        p, dt, body = self._params, view.dt, self._body
        steering, throttle, brake = (view.action[i] for i in p.actions)
        self._controls = (float(steering), float(throttle), 1.0 if brake > 0.5 else 0.0)
        target = math.radians(p.max_steer_deg) * steering
        most = math.radians(p.steer_rate_deg) * dt
        self._steer += min(max(target - self._steer, -most), most)
        braking = p.brake_torque if brake > 0.5 else 0.0
        (px, py, pz), quaternion = view.pose(body)
        (vx, vy, vz), (wx, wy, wz) = view.velocity(body)
        right, ahead, up = axes(quaternion)
        turns = self._turns(self._steer)
        speed = math.sqrt(vx * vx + vy * vy + vz * vz)
        drag = -p.drag * speed
        force = [drag * vx, drag * vy, drag * vz]
        torque = [0.0, 0.0, 0.0]
        squeezed = self._compressions
        for i in range(4):
            axle, spin = self._axles[i], self._spins[i]
            engine = (
                0.5
                * axle.driven
                * engine_torque(throttle, spin, p.torque, p.power, p.top_speed / p.radius)
            )
            hit = self._hits[i]
            if hit is None:
                self._tread[i], self._slips[i], self._loads[i] = (0.0, 0.0), (0.0, 0.0), 0.0
                now = spun(spin, engine, braking, p.wheel_inertia, dt)
                axis, rate = right, p.wheel_inertia * (now - spin) / dt
                torque = [t + a * rate for t, a in zip(torque, axis, strict=True)]
            else:
                (qx, qy, qz), (nx, ny, nz), grit = hit
                rx, ry, rz = qx - px, qy - py, qz - pz
                # Velocity of the body's point at the road.
                ux, uy, uz = vx + wy * rz - wz * ry, vy + wz * rx - wx * rz, vz + wx * ry - wy * rx
                lean = up[0] * nx + up[1] * ny + up[2] * nz
                closing = -(ux * nx + uy * ny + uz * nz) / lean
                load = spring_force(squeezed[i], closing, axle.stiffness, axle.damping, p.travel)
                # The bar takes from the wheel that hangs what it gives to the other.
                load = max(load + axle.anti_roll * (squeezed[i] - squeezed[i ^ 1]), 0.0)
                if axle.steered:
                    sine, cosine = math.sin(turns[i]), math.cos(turns[i])
                    fx = cosine * ahead[0] + sine * right[0]
                    fy = cosine * ahead[1] + sine * right[1]
                    fz = cosine * ahead[2] + sine * right[2]
                else:
                    fx, fy, fz = ahead
                # Along the road: forward, and right = forward x normal.
                off = fx * nx + fy * ny + fz * nz
                fx, fy, fz = fx - off * nx, fy - off * ny, fz - off * nz
                length = math.sqrt(fx * fx + fy * fy + fz * fz)
                fx, fy, fz = fx / length, fy / length, fz / length
                sx, sy, sz = fy * nz - fz * ny, fz * nx - fx * nz, fx * ny - fy * nx
                along = ux * fx + uy * fy + uz * fz
                across = ux * sx + uy * sy + uz * sz
                rim = spin * p.radius
                fast = max(math.sqrt(along * along + across * across), abs(rim))
                slip = rim - along
                a, b = self._tread[i]
                tyre = self._tyres[i]
                a, b = deflected(tyre, a, b, slip, -across, fast, dt)
                # The pair friction is the product: a wet road, or the meadow, gives less.
                drive, side = grip(tyre, load * grit, a, b, slip, -across, fast)
                self._slips[i] = (slip / fast, -across / fast) if fast > 1e-3 else (0.0, 0.0)
                self._tread[i], self._loads[i] = (a, b), load
                still = braking + p.rolling * load * p.radius
                now = spun(spin, engine - drive * p.radius, still, p.wheel_inertia, dt)
                gx = load * nx + drive * fx + side * sx
                gy = load * ny + drive * fy + side * sy
                gz = load * nz + drive * fz + side * sz
                force[0] += gx
                force[1] += gy
                force[2] += gz
                # Moment of the road's force, and what the wheel's own spin takes of it.
                rate = p.wheel_inertia * (now - spin) / dt
                torque[0] += ry * gz - rz * gy + rate * sx
                torque[1] += rz * gx - rx * gz + rate * sy
                torque[2] += rx * gy - ry * gx + rate * sz
            self._spins[i] = now
            self._angles[i] += now * dt
        view.apply_force(body, (force[0], force[1], force[2]))
        view.apply_torque(body, (torque[0], torque[1], torque[2]))

    def _turns(self, steer: float) -> list[float]:
        """Angles [rad] of the four wheels: all stand across lines to one turning centre."""
        p, turn = self._params, math.tan(steer)
        base = p.front.forward - p.rear.forward
        return [
            math.atan(turn / (1.0 - mount[0] * turn / base)) if axle.steered else 0.0
            for axle, mount in zip(self._axles, self._mounts, strict=True)
        ]

    def after(self, view: SubstepView) -> None:
        """Find the road under the new place, and write the state down."""
        self._find_road(view)
        self._write(view, self._controls)

    def _find_road(self, view: SubstepView) -> None:
        p = self._params
        (px, py, pz), quaternion = view.pose(self._body)
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = axes(quaternion)
        self._hits: list[tuple[Vec, Vec, float] | None] = [None] * 4
        self._compressions = [0.0] * 4
        for i in range(4):
            x, y, z = self._mounts[i]
            mx, my, mz = (
                px + ax * x + bx * y + cx * z,
                py + ay * x + by * y + cy * z,
                pz + az * x + bz * y + cz * z,
            )
            reach = self._axles[i].free + p.radius
            end = (mx - cx * reach, my - cy * reach, mz - cz * reach)
            hit = view.raycast((mx, my, mz), end, self._ignore)
            # A wall beside the wheel is none to stand on.
            if hit is None:
                continue
            n = hit.normal
            if n[0] * cx + n[1] * cy + n[2] * cz < 0.2:
                continue
            self._hits[i] = (hit.position, n, self._rubber[i] * self._friction[hit.body])
            self._compressions[i] = reach * (1.0 - hit.fraction)

    def _write(self, view: SubstepView, controls: Vec3) -> None:
        put = view.set_modal
        put("controls", controls)
        put("steer", (self._steer,))
        put("wheel_angle", tuple(self._angles))
        put("wheel_speed", tuple(self._spins))
        put("compression", tuple(self._compressions))
        put("load", tuple(self._loads))
        put("slip_x", tuple([s for s, _ in self._slips]))
        put("slip_y", tuple([s for _, s in self._slips]))
        put("tread_x", tuple([u for u, _ in self._tread]))
        put("tread_y", tuple([u for _, u in self._tread]))

    # --- looks ----------------------------------------------------------------------------------

    def show(self, view: SubstepView) -> None:
        """Put the wheels where strut, steering and spin have them."""
        if not self._shown:
            return
        (px, py, pz), q = view.pose(self._body)
        (vx, vy, vz), (wx, wy, wz) = view.velocity(self._body)
        right, ahead, up = axes(q)
        angles, speeds = view.modal("wheel_angle"), view.modal("wheel_speed")
        squeezed, turns = view.modal("compression"), self._turns(view.modal("steer")[0])
        for i, body in enumerate(self._shown):
            axle, (x, y, z) = self._axles[i], self._mounts[i]
            z -= axle.free - squeezed[i]
            rx, ry, rz = (right[k] * x + ahead[k] * y + up[k] * z for k in range(3))
            turn = 0.5 * turns[i]
            # Right is clockwise from above; rolling forward turns about -x.
            about_z = (math.cos(turn), 0.0, 0.0, -math.sin(turn))
            half = 0.5 * math.fmod(angles[i], 4 * math.pi)
            pose = product(product(q, about_z), (math.cos(half), -math.sin(half), 0.0, 0.0))
            axis = axes(product(q, about_z))[0]
            s = -speeds[i]
            view.set_state(
                body,
                (px + rx, py + ry, pz + rz),
                pose,
                (vx + wy * rz - wz * ry, vy + wz * rx - wx * rz, vz + wx * ry - wy * rx),
                (wx + s * axis[0], wy + s * axis[1], wz + s * axis[2]),
            )

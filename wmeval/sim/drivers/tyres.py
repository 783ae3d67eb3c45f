"""Tyres, springs and engine of a car: pure functions of plain numbers.

The steady tyre is the Magic Formula of Pacejka (*Tire and Vehicle Dynamics*, 2nd ed., 2006, eq.
4.49) on the combined slip: the vector of slip velocity over the faster of the wheel's two speeds V
(over ground and at its rim). Its length s gives the share f(s) of the friction limit, its direction
the direction of the force; longitudinal and lateral limits are the half axes of the friction
ellipse.

The force comes from the deflection u of the tread, as in the LuGre tyre of Canudas de Wit et al.
(*Vehicle System Dynamics* 39(3), 2003), with the Magic Formula as its steady state:

    F = mu N (B C / L) u,    du/dt = v_slip - (V / L) (B C s / f(s)) u.

At a small slip it is a first-order lag with the relaxation length L (Pacejka, ch. 7); a tyre that
slides bends no further than its friction can hold; at V = 0 the tread is a spring that holds a
standing car, with no creep and no jitter.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tyre:
    """One tyre; the defaults of B, C and E are Pacejka's for dry tarmac.

    Attributes:
        friction_x: longitudinal force at the peak over load.
        friction_y: lateral force at the peak over load.
        stiffness: B.
        shape: C.
        curvature: E.
        relaxation: L [m].
        damping: of the tread's deflection near standstill [N s/m].
        slow: speed [m/s] above which that damping is gone.
    """

    friction_x: float = 1.0
    friction_y: float = 1.0
    stiffness: float = 10.0
    shape: float = 1.9
    curvature: float = 0.97
    relaxation: float = 0.35
    damping: float = 3000.0
    slow: float = 2.0


def magic(slip: float, stiffness: float, shape: float, curvature: float) -> float:
    """Share in [0, 1] of the friction limit at a slip >= 0: sin(C atan(Bs - E (Bs - atan Bs))).

    From a slip of 1 on (the locked wheel, or one that only slides sideways) it stays what it is
    there.
    """
    x = stiffness * (slip if slip < 1.0 else 1.0)
    return math.sin(shape * math.atan(x - curvature * (x - math.atan(x))))


def deflected(
    tyre: Tyre, ux: float, uy: float, slip_x: float, slip_y: float, speed: float, dt: float
) -> tuple[float, float]:
    """Deflection (forward, right) [m] after ``dt``: exact at constant slip velocity and speed.

    Args:
        tyre: the tyre.
        ux: forward deflection of the tread [m].
        uy: deflection to the right [m].
        slip_x: forward slip velocity of the tread, rim minus road [m/s].
        slip_y: the same to the right [m/s].
        speed: the faster of the wheel's speeds over ground and at the rim [m/s].
        dt: [s].
    """
    rate = speed / tyre.relaxation
    if rate * dt < 1e-9:
        return ux + slip_x * dt, uy + slip_y * dt
    slip = math.sqrt(slip_x * slip_x + slip_y * slip_y) / speed
    if slip > 1e-6:
        share = magic(slip, tyre.stiffness, tyre.shape, tyre.curvature)
        rate *= tyre.stiffness * tyre.shape * slip / share
    keep = math.exp(-rate * dt)
    gain = -math.expm1(-rate * dt) / rate
    return ux * keep + slip_x * gain, uy * keep + slip_y * gain


def grip(
    tyre: Tyre, load: float, ux: float, uy: float, slip_x: float, slip_y: float, speed: float
) -> tuple[float, float]:
    """Force (forward, right) [N] of the road on a tyre; arguments as for `deflected`.

    Args:
        tyre: the tyre.
        load: normal force times the friction of the road [N].
        ux: forward deflection of the tread [m].
        uy: deflection to the right [m].
        slip_x: forward slip velocity of the tread, rim minus road [m/s].
        slip_y: the same to the right [m/s].
        speed: the faster of the wheel's speeds over ground and at the rim [m/s].

    Returns:
        A force within the ellipse of half axes ``friction_x load`` and ``friction_y load``.
    """
    k = tyre.stiffness * tyre.shape / tyre.relaxation
    ax, ay = k * ux, k * uy
    if speed < tyre.slow and load > 0.0:
        c = tyre.damping * (1.0 - speed / tyre.slow) / load
        ax, ay = ax + c * slip_x, ay + c * slip_y
    share = math.sqrt(ax * ax + ay * ay)
    if share > 1.0:
        ax, ay = ax / share, ay / share
    return tyre.friction_x * load * ax, tyre.friction_y * load * ay


def spun(spin: float, torque: float, brake: float, inertia: float, dt: float) -> float:
    """Wheel speed [rad/s] after ``dt`` under a torque and a dry friction that may hold it still.

    Args:
        spin: wheel speed now [rad/s].
        torque: of engine and road [N m].
        brake: greatest torque of brake and rolling resistance [N m], >= 0; it never turns a wheel.
        inertia: of the wheel [kg m2].
        dt: [s].
    """
    free = spin + torque * dt / inertia
    most = brake * dt / inertia
    if free > most:
        return free - most
    return free + most if free < -most else 0.0


def engine_torque(throttle: float, spin: float, torque: float, power: float, top: float) -> float:
    """Torque [N m] of the engine at a wheel: constant, then constant power, nothing beyond ``top``.

    Args:
        throttle: in [-1, 1]; negative drives backwards.
        spin: wheel speed [rad/s].
        torque: at full throttle from standstill [N m].
        power: the most that the engine gives [W].
        top: wheel speed of the limiter [rad/s]; it takes the torque back over the last twentieth.
    """
    along = spin if throttle >= 0 else -spin
    most = torque if along * torque <= power else power / along
    left = (top - along) / (0.05 * top)
    if left < 1.0:
        most *= max(left, 0.0)
    return throttle * most


def spring_force(
    compression: float, rate: float, stiffness: float, damping: float, travel: float
) -> float:
    """Force [N] of a suspension along the normal: it pushes and never pulls.

    Args:
        compression: from the free length [m].
        rate: of the compression [m/s].
        stiffness: [N/m]; twenty times as much beyond ``travel`` (the bump stop).
        damping: [N s/m].
        travel: compression at which the bump stop is met [m].
    """
    if compression <= 0.0:
        return 0.0
    force = stiffness * compression + damping * rate
    if compression > travel:
        force += 20.0 * stiffness * (compression - travel)
    return force if force > 0.0 else 0.0


def turning_radius(wheelbase: float, steer: float) -> float:
    """Radius [m] of the rear axle's middle by the kinematic bicycle: R = L / tan(delta)."""
    return wheelbase / math.tan(steer)

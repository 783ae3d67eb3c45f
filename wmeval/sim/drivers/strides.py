"""How a walking, running, standing and jumping figure holds its limbs: pure functions.

The figure is `wmeval.assets.mannequin`. Its feet are planned first and its legs follow by two-link
inverse kinematics, so that a foot on the ground stays where it is:

- A stride has length lambda, a foot is on the ground for the share beta of it. During stance the
  foot rolls over heel, flat sole and ball (the three rockers of Perry, *Gait Analysis*, 1992): it
  turns about a point that rests on the ground, and that point moves back under the body by exactly
  the distance travelled.
- Walking: the stride length follows a power 0.43 of relative speed v / stature (the form of Grieve
  & Gear 1966), with 0.926 statures at one stature per second: 113 steps a minute at 1.4 m/s, within
  Winter's (1991) natural cadence of 105-115. Foot on the ground for 62 % of the stride at 1.4 m/s.
- Running: 85 strides a minute at 3 m/s (Lieberman et al. 2015), a little faster above; ground
  contact of 0.25 s at 3 m/s and 0.20 s at 5 m/s.
- Walking turns into running around a Froude number v^2 / (g leg) of 0.5 (Alexander & Jayes 1983;
  Kram, Domingo & Ferris 1997): blended over 0.45-0.80.
- The pelvis is highest over the stance leg when walking and lowest there when running. It turns and
  lists; chest and arms swing against it. Amplitudes (pelvis 5 and 4 degrees, shoulder 24 back and 8
  forward, elbow 20-40) are near Murray et al.'s (1964, 1967) for walking; those of running, the
  jump and the landing are ours.

Angles in radians, lengths in metres, the frame of the mannequin: x right, y forward, z up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wmeval.assets import mannequin as man
from wmeval.vectors import Vec, cross, dot, length, minus, plus, scaled, unit

Matrix = tuple[Vec, Vec, Vec]
"""Columns: where a frame's x, y and z axes point."""

_DEG = math.pi / 180
FROUDE_WALK, FROUDE_RUN = 0.45, 0.80
UPRIGHT: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class GaitState:
    """What a pose depends on.

    Attributes:
        phase: of the stride, 0 at the right foot's strike, 1 a stride later.
        speed: forward speed [m/s], smoothed.
        move: 0 standing to 1 under way.
        run: 0 walking to 1 running.
        air: 0 on the ground to 1 in flight.
        rise: vertical speed over take-off speed, 1 at take-off to -1 at landing.
        crouch: how far the pelvis has sunk after a landing [m].
        lean: forward and to the right [rad].
        breath: phase of breathing.
    """

    phase: float = 0.0
    speed: float = 0.0
    move: float = 0.0
    run: float = 0.0
    air: float = 0.0
    rise: float = 0.0
    crouch: float = 0.0
    lean: tuple[float, float] = (0.0, 0.0)
    breath: float = 0.0


def smoothstep(low: float, high: float, x: float) -> float:
    """Hermite step from 0 at ``low`` to 1 at ``high``."""
    t = min(max((x - low) / (high - low), 0.0), 1.0)
    return t * t * (3 - 2 * t)


def _mix(a: float, b: float, t: float) -> float:
    return a + (b - a) * t


def run_share(speed: float, stature: float, gravity: float) -> float:
    """0 walking to 1 running, by the Froude number of a speed [m/s]."""
    return smoothstep(FROUDE_WALK, FROUDE_RUN, speed * speed / (gravity * man.HIP * stature))


def stride_length(speed: float, run: float, stature: float) -> float:
    """Distance [m] between two strikes of one foot.

    Figures of other statures move dynamically alike: at the speed of equal Froude number.
    """
    k = stature / man.STATURE_M
    v = max(speed / math.sqrt(k), 0.05)
    walking = 0.926 * man.STATURE_M * (v / man.STATURE_M) ** 0.43
    running = v / (1.41 + 0.045 * (v - 3.0))
    return k * _mix(walking, running, run)


def duty(speed: float, run: float, stature: float) -> float:
    """Share of a stride that a foot is on the ground."""
    v = speed / math.sqrt(stature / man.STATURE_M)
    walking = min(max(0.70 - 0.057 * v, 0.55), 0.68)
    running = min(max(0.425 - 0.025 * v, 0.25), 0.40)
    return _mix(walking, running, run)


# --- feet ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Foot:
    """A foot in the plane of motion: ankle (y, z), pitch (toes up is positive), bend of toes."""

    y: float
    z: float
    pitch: float
    toes: float


class Stride:
    """The feet's way through one stride at a speed: built once per pose.

    Args:
        speed: [m/s].
        run: 0 walking to 1 running.
        stature: [m].
    """

    def __init__(self, speed: float, run: float, stature: float) -> None:
        s = stature
        self.length = stride_length(speed, run, stature)
        self.duty = duty(speed, run, stature)
        pace = speed / math.sqrt(s / man.STATURE_M)
        contact = self.length * self.duty
        self._first = contact * _mix(0.402, 0.36, run)
        # Slow steps are short: their feet are put down and lifted flatter.
        vigour = smoothstep(0.0, 0.55 * s, contact)
        self._strike = _mix(20, 7, run) * _DEG * vigour
        self._push = _mix(60, 70, run) * _DEG * vigour
        self._flat, self._heel_off = _mix(0.18, 0.14, run), _mix(0.60, 0.40, run)
        self._power = _mix(2.0, 1.4, run)
        self._heel, self._ball = man.HEEL_BACK * s, man.BALL_AHEAD * s
        self._ankle, self._joint = man.ANKLE * s, 0.0115 * s
        self._lift = (_mix(0.022, 0.15, run) + 0.010 * run * max(pace - 3, 0)) * s * vigour
        self._lift += 0.012 * s * (1 - vigour)
        self._early = _mix(0.60, 0.80, run)
        self._kick = 38 * _DEG * run
        start, end = self.stance(self.duty), self.stance(0.0)
        before, after = self.stance(self.duty - 1e-4), self.stance(1e-4)
        swing = 1 - self.duty
        self._from, self._to = start, end
        self._leave = (
            0.45 * swing * (start.y - before.y) * 1e4,
            0.45 * swing * (start.z - before.z) * 1e4,
        )
        self._arrive = 0.75 * swing * (after.y - end.y) * 1e4
        self._heights = self._pelvis_heights(run, s)

    def stance(self, phase: float) -> Foot:
        """The foot on the ground at a phase in [0, duty]."""
        flat = self._first - phase * self.length
        p = phase / self.duty
        if p < self._flat:
            pitch = self._strike * (1 - p / self._flat) ** 2
        elif p > self._heel_off:
            pitch = -self._push * ((p - self._heel_off) / (1 - self._heel_off)) ** self._power
        else:
            pitch = 0.0
        c, s = math.cos(pitch), math.sin(pitch)
        if pitch >= 0:
            h, a = self._heel, self._ankle
            return Foot(flat - h + h * c - a * s, h * s + a * c, pitch, 0.0)
        b, a = self._ball, self._ankle - self._joint
        return Foot(flat + b - b * c - a * s, self._joint - b * s + a * c, pitch, -pitch)

    def foot(self, phase: float) -> Foot:
        """The foot at any phase of its own, 0 at its strike."""
        phase %= 1.0
        if phase <= self.duty:
            return self.stance(phase)
        u = (phase - self.duty) / (1 - self.duty)
        u2, u3 = u * u, u * u * u
        h0, h1 = 2 * u3 - 3 * u2 + 1, 3 * u2 - 2 * u3
        g0, g1 = u3 - 2 * u2 + u, u3 - u2
        a, b = self._from, self._to
        y = h0 * a.y + h1 * b.y + g0 * self._leave[0] + g1 * self._arrive
        z = h0 * a.z + h1 * b.z + g0 * self._leave[1]
        z += self._lift * math.sin(math.pi * u**self._early) ** 2
        # The foot comes level with the shank and lifts its toes towards the strike.
        level = smoothstep(0.0, 0.86, u)
        pitch = a.pitch * (1 - level) + b.pitch * smoothstep(0.45, 1.0, u)
        pitch -= self._kick * math.sin(math.pi * min(u / 0.8, 1.0)) ** 2
        return Foot(y, z, pitch, a.toes * (1 - smoothstep(0.0, 0.3, u)))

    def _pelvis_heights(self, run: float, s: float) -> tuple[float, float, float]:
        """Lowest height, its rise and the phase of the lowest, of two waves a stride."""
        leg = (man.HIP - man.ANKLE) * s
        strike = self._to
        reach = _mix(0.997, 0.980, run) * leg
        at_strike = math.sqrt(max(reach**2 - strike.y**2, 0.25 * reach**2)) + strike.z
        low_walk, lowest_walk = at_strike, 0.035
        # Over the stance leg the knee is nearly straight; behind it the leg must still reach.
        late = self.stance(min(0.39, 0.7 * self.duty))
        reachable = math.sqrt(max((0.996 * leg) ** 2 - late.y**2, 0.0)) + late.z - at_strike
        share = 0.5 - 0.5 * math.cos(4 * math.pi * (min(0.39, 0.7 * self.duty) - lowest_walk))
        rise_walk = max(min(0.980 * leg + self._ankle - at_strike, reachable / share), 0.0)
        low_run = at_strike - 0.020 * s
        rise_run = 0.040 * s / (1 - math.cos(2 * math.pi * self.duty))
        return (
            _mix(low_walk, low_run, run),
            _mix(rise_walk, rise_run, run),
            _mix(lowest_walk, 0.5 * self.duty, run),
        )

    def pelvis(self, phase: float) -> float:
        """Height of the hip joints' middle above the ground [m]."""
        low, rise, lowest = self._heights
        return low + rise * (0.5 - 0.5 * math.cos(4 * math.pi * (phase - lowest)))


# --- poses --------------------------------------------------------------------------------------


def _turned(about_x: float, about_y: float, about_z: float) -> Matrix:
    """Rotation about x, then y, then z of the parent's frame."""
    cx, sx = math.cos(about_x), math.sin(about_x)
    cy, sy = math.cos(about_y), math.sin(about_y)
    cz, sz = math.cos(about_z), math.sin(about_z)
    return (
        (cz * cy, sz * cy, -sy),
        (cz * sy * sx - sz * cx, sz * sy * sx + cz * cx, cy * sx),
        (cz * sy * cx + sz * sx, sz * sy * cx - cz * sx, cy * cx),
    )


def apply(m: Matrix, v: Vec) -> Vec:
    """A vector of a frame in the outer frame."""
    (a, b, c), (d, e, f), (g, h, i) = m
    x, y, z = v
    return (a * x + d * y + g * z, b * x + e * y + h * z, c * x + f * y + i * z)


def product(m: Matrix, n: Matrix) -> Matrix:
    """Frame n of frame m in the outer frame."""
    return (apply(m, n[0]), apply(m, n[1]), apply(m, n[2]))


def _hanging(upper: Vec, lower: Vec, forward: Vec) -> Matrix:
    """Frame of a bone that hangs from one joint to the next, facing forward."""
    z = unit(minus(upper, lower))
    x = unit(cross(forward, z))
    return (x, cross(z, x), z)


def bend(hip: Vec, ankle: Vec, upper: float, lower: float, forward: Vec) -> Vec:
    """The knee of a leg that bends forward; out of reach the leg is straight."""
    d = minus(ankle, hip)
    r = length(d)
    n = (d[0] / r, d[1] / r, d[2] / r)
    r = min(max(r, abs(upper - lower) + 1e-6), (upper + lower) * 0.99999)
    c = (upper * upper + r * r - lower * lower) / (2 * upper * r)
    s = math.sqrt(max(1 - c * c, 0.0))
    along = dot(forward, n)
    p = unit((forward[0] - along * n[0], forward[1] - along * n[1], forward[2] - along * n[2]))
    return (
        hip[0] + upper * (c * n[0] + s * p[0]),
        hip[1] + upper * (c * n[1] + s * p[1]),
        hip[2] + upper * (c * n[2] + s * p[2]),
    )


def _in_flight(state: GaitState, side: float, hip: float, s: float) -> Foot:
    """The foot of a jumping figure: pushes off, is drawn up, reaches for the ground."""
    rise = min(max(state.rise, -1.0), 1.0)
    drawn = 1 - rise * rise
    split = (0.05 + 0.10 * state.run) * s * side * (0.4 + 0.6 * drawn)
    y = 0.02 * s + split + 0.06 * s * max(-rise, 0.0)
    z = man.ANKLE * s + drawn * (0.135 + 0.035 * side) * s + 0.02 * s * (1 - drawn)
    pitch = (-38 * max(rise, 0.0) - 22 * drawn) * _DEG
    return Foot(y, min(z, hip), pitch, 0.25 * max(rise, 0.0))


def _sole(foot: Foot, s: float) -> float:
    """Height of the lowest point of the sole above the ground, for a foot [m]."""
    c, si = math.cos(foot.pitch), math.sin(foot.pitch)
    low = -man.ANKLE * s
    heel = foot.z + c * low - si * man.HEEL_BACK * s
    ball = foot.z + c * low + si * man.BALL_AHEAD * s
    # Of the toes, the tip: they turn about the joint at the ball.
    up = 0.0115 * s
    joint = foot.z + c * (low + up) + si * man.BALL_AHEAD * s
    turn = foot.pitch + foot.toes
    tip = joint - up * math.cos(turn) + 0.037 * s * math.sin(turn)
    return min(heel, ball, tip)


_NAMES = tuple(b.name for b in man.SKELETON)
_BONES = {b.name: b for b in man.SKELETON}


def pose(state: GaitState, stature: float) -> list[tuple[Vec, Matrix]]:
    """Joint and frame of each bone of `mannequin.SKELETON`, in its order.

    Args:
        state: what the figure does.
        stature: [m].

    Returns:
        Places [m] from the ground below the figure and frames, in the figure's heading frame.
    """
    s, m, run = stature, state.move, state.run
    stride = Stride(state.speed, run, s)
    turn = 2 * math.pi * state.phase
    breath = math.sin(2 * math.pi * state.breath)
    ground = 1 - state.air
    # --- pelvis and spine
    standing = 0.994 * (man.HIP - man.ANKLE) * s + man.ANKLE * s
    height = _mix(standing + 0.0008 * s * breath, stride.pelvis(state.phase), m)
    height = _mix(height, 0.996 * standing, state.air)
    height -= state.crouch
    stir = m * ground
    sway = _mix(0.011, 0.006, run) * s * math.sin(turn) * stir
    # A crouching figure, and one that pushes off or lands, bends forward at the hips.
    stoop = min(state.crouch / (0.10 * s), 1.5)
    lean, aside = state.lean
    pitch = -(_mix(1.5, 6.0, run) * _DEG * m + lean + 10 * _DEG * stoop)
    rotate = _mix(5, 7, run) * _DEG * math.cos(turn) * stir
    roll = -_mix(3.5, 4, run) * _DEG * math.sin(turn) * stir + aside
    pelvis = _turned(pitch, roll, rotate)
    root = (sway, -0.25 * state.crouch, height)
    frames: dict[str, tuple[Vec, Matrix]] = {"pelvis": (root, pelvis)}
    counter = -_mix(9, 14, run) * _DEG * math.cos(turn) * stir
    bob = 1.2 * _DEG * math.cos(2 * turn + 0.6) * stir
    waist = _turned(-2 * _DEG * stoop, -0.5 * roll, counter / 2)
    upper = _turned(
        -2.5 * _DEG * run * m - 4 * _DEG * stoop + bob + 0.45 * _DEG * breath,
        -0.5 * roll,
        counter / 2,
    )
    _child(frames, "waist", waist, s)
    _child(frames, "chest", upper, s)
    # The head stays level and looks ahead.
    chest = frames["chest"][1]
    ahead = math.atan2(-chest[1][0], chest[1][1])
    level = math.asin(min(max(chest[1][2], -1.0), 1.0))
    _child(frames, "head", _turned(-0.85 * level - 3 * _DEG * stoop, 0.0, -ahead), s)
    # --- legs
    thigh, shank = (man.HIP - man.KNEE) * s, (man.KNEE - man.ANKLE) * s
    for name, side in (("right", 1.0), ("left", -1.0)):
        own = state.phase if side > 0 else state.phase + 0.5
        foot = stride.foot(own)
        rest = Foot(-0.004 * s + 0.008 * s * side, man.ANKLE * s, 0.0, 0.0)
        foot = _between(rest, foot, m)
        if state.air > 0:
            foot = _between(foot, _in_flight(state, side, height, s), state.air)
        under = _sole(foot, s)
        if under < 0:
            foot = Foot(foot.y, foot.z - under, foot.pitch, foot.toes)
        hip = plus(root, apply(pelvis, scaled(_BONES[f"thigh_{name}"].joint, s)))
        wide = _mix(_mix(0.050, 0.026, m), 0.012, run * m)
        ankle = (side * wide * s + (0.3 * sway), foot.y, foot.z)
        out = -side * _mix(7, 3, m) * _DEG
        forward = (-math.sin(out), math.cos(out), 0.0)
        knee = bend(hip, ankle, thigh, shank, forward)
        lower = _hanging(knee, ankle, forward)
        frames[f"thigh_{name}"] = (hip, _hanging(hip, knee, forward))
        frames[f"shank_{name}"] = (knee, lower)
        end = plus(knee, apply(lower, (0.0, 0.0, -shank)))
        sole = _turned(foot.pitch, 0.0, out)
        frames[f"foot_{name}"] = (end, sole)
        _child(frames, f"toes_{name}", _turned(foot.toes, 0.0, 0.0), s)
        _arm(frames, name, side, own, state, breath, s)
    return [frames[n] for n in _NAMES]


def _between(a: Foot, b: Foot, t: float) -> Foot:
    if t <= 0 or t >= 1:
        return a if t <= 0 else b
    return Foot(
        _mix(a.y, b.y, t), _mix(a.z, b.z, t), _mix(a.pitch, b.pitch, t), _mix(a.toes, b.toes, t)
    )


def _child(frames: dict[str, tuple[Vec, Matrix]], name: str, turn: Matrix, s: float) -> None:
    bone = _BONES[name]
    at, frame = frames[bone.parent or ""]
    frames[name] = (plus(at, apply(frame, scaled(bone.joint, s))), product(frame, turn))


def _arm(frames: dict[str, tuple[Vec, Matrix]], name: str, side: float, own: float,
         state: GaitState, breath: float, s: float) -> None:  # fmt: skip
    """One arm: it swings with the other side's leg; the elbow bends on the way forward."""
    turn = 2 * math.pi * own
    m, run, air = state.move, state.run, state.air
    vigour = min(0.35 + 0.5 * state.speed, 1.25)
    swing = -math.cos(turn - 0.25)  # back at its own side's strike
    shoulder = _mix((-7 + 17 * swing) * vigour, -12 + 32 * swing, run)
    elbow = _mix(24 + 11 * vigour * swing, 84 + 14 * swing + 8 * math.cos(2 * turn), run)
    spread, twist = _mix(7, 9, run), _mix(4, 22 + 8 * swing, run)
    shoulder, elbow = _mix(1 + 0.5 * breath, shoulder, m), _mix(12, elbow, m)
    spread, twist = _mix(6.5 + 0.5 * breath, spread, m), _mix(3, twist, m)
    if air > 0:
        rise = min(max(state.rise, -1.0), 1.0)
        up = 0.5 + 0.5 * rise
        shoulder = _mix(shoulder, 18 + 42 * up + 6 * side * (1 - abs(rise)), air)
        spread = _mix(spread, 34 - 12 * up, air)
        elbow = _mix(elbow, 42 + 16 * (1 - up), air)
    stoop = min(state.crouch / (0.10 * s), 1.5)
    shoulder, elbow, spread = shoulder - 10 * stoop, elbow + 14 * stoop, spread + 8 * stoop
    _child(frames, f"upper_arm_{name}",
           _turned(shoulder * _DEG, -side * spread * _DEG, side * twist * _DEG), s)  # fmt: skip
    _child(
        frames, f"forearm_{name}", _turned(elbow * _DEG, side * 3 * _DEG, side * twist * _DEG), s
    )
    _child(frames, f"hand_{name}", _turned(_mix(4, 8, run) * _DEG, side * 3 * _DEG, 0.0), s)

"""What GAUGE's families are solved with, by configuration and engine: tables of settings.

`wmeval.envs.gauge.configurations` says what the configurations are and looks rows up.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from wmeval.sim.protocol import EngineConfig

PUBLISHED, TUNED = "published-settings", "tuned"


@dataclass(frozen=True)
class Row:
    """Settings of one engine for families of one rate.

    Attributes:
        hz: steps per second.
        config: iterations, threshold, options.
        solver: as results name it.
        departs: where it is not what the name of the configuration says, and why.
    """

    hz: int
    config: EngineConfig
    solver: str
    departs: str = ""


def _row(hz: int, solver: str, iterations: int, threshold: float = 0.2, departs: str = "", /,
         **options: JsonValue) -> Row:  # fmt: skip
    config = EngineConfig(
        iterations=iterations, restitution_threshold=threshold, options=dict(options)
    )
    return Row(hz, config, solver, departs)


_ROUND = "vbd: this adapter fills blocks with the published particles, and the stick is round"
_FREE_CUBES = "vbd: the cubes between are free to move, and the published particles pull on none"
_WAVES = "each step in as many parts as waves need to cross a cell: undivided ones fly apart"
HELD = "fem: what holds the foam is free to move, and the published particles pull on nothing"
_CAPSULES = "a rope's capsules are held by springs, which need more than 5,700 steps a second"
_SPLIT = {"hull_margin": 1e-5, "maximal_coordinates": 1, "split_impulse": 1}
"""Bullet where a free body meets what stands still: its rigid bodies with split impulses have the
restitution that they are given there; what is led or jointed needs the other kind."""
_RIGID_SPLIT, _MULTIBODY = "rigid bodies, split impulses", "generalised coordinates"
_NEAR = {"contact_offset": 1e-3, "velocity_iterations": 4}
_DAMPED = "mujoco, contacts by restitution"
_HULLS = "mujoco, hulls in up to four points"
_WARM = "vbd, begun with the last substep's share of gravity"
ROWS: dict[tuple[str, str, str], Row] = {
    # (configuration, engine, rates)
    (PUBLISHED, "bullet", "rigid"): _row(180, "generalised coordinates", 50),
    (PUBLISHED, "bullet", "textile"): _row(7200, "capsules and springs", 50, 0.2, _CAPSULES),
    (PUBLISHED, "physx", "rigid"): _row(180, "tgs", 10, 2.0, contact_offset=0.01),
    (PUBLISHED, "physx", "textile"): _row(7200, "tgs, capsules and springs", 10, 2.0, _CAPSULES,
                                          contact_offset=1e-4),
    (PUBLISHED, "newton", "rigid"): _row(180, "mujoco", 100, solver="mujoco"),
    (PUBLISHED, "newton", "textile"): _row(180, "vbd", 10, solver="vbd"),
    (PUBLISHED, "newton", "volume"): _row(900, "implicit mpm", 250, solver="mpm"),
    (PUBLISHED, "genesis", "rigid"): _row(180, "rigid", 50, default_armature=0.1),
    (PUBLISHED, "genesis", "textile"): _row(180, "pbd", 50),
    (PUBLISHED, "genesis", "volume"): _row(900, "mpm", 50, 0.2, _WAVES, volume="mpm"),
    # PhysX' defaults in Isaac Sim: TGS, 16 position iterations. No row of it is tuned here: that
    # would take convergence measured on it.
    (PUBLISHED, "isaac", "rigid"): _row(180, "omni physx, tgs", 16),
    (PUBLISHED, "isaac", "textile"): _row(180, "omni physx, surface fem", 16),
    (PUBLISHED, "isaac", "volume"): _row(900, "omni physx, fem", 16),
    (TUNED, "bullet", "rigid"): _row(1800, "generalised coordinates", 200, 0.01, hull_margin=1e-5),
    (TUNED, "bullet", "textile"): _row(7200, "capsules and springs", 50, 0.01),
    (TUNED, "physx", "rigid"): _row(1800, "tgs", 50, 0.01, contact_offset=1e-3,
                                    velocity_iterations=4),
    (TUNED, "physx", "textile"): _row(7200, "tgs, capsules and springs", 10, 0.01,
                                      contact_offset=1e-4),
    (TUNED, "newton", "rigid"): _row(1800, "mujoco, contacts by restitution", 100, solver="mujoco",
                                     contact="restitution"),
    (TUNED, "newton", "textile"): _row(900, _WARM, 5, solver="vbd", warm_start=1),
    (TUNED, "newton", "volume"): _row(1800, _WARM, 10, solver="vbd", warm_start=1),
    (TUNED, "genesis", "rigid"): _row(1800, "rigid, contacts by restitution", 100,
                                      contact="restitution"),
    (TUNED, "genesis", "textile"): _row(360, "pbd, springs of the card's stiffness", 50,
                                        textile="network", stretch_iterations=8,
                                        stretch_relaxation=0.5),
    (TUNED, "genesis", "volume"): _row(900, "fem, linear corotated", 50, contact_softness=5e-4),
}  # fmt: skip
OF_FAMILY: dict[tuple[str, str, str], Row] = {
    # (configuration, engine, family), before `ROWS`
    (PUBLISHED, "newton", "stick_stack"): _row(900, "vbd", 10, 0.2, _ROUND, solver="vbd"),
    (PUBLISHED, "newton", "cantilever_beam"): _row(900, "vbd", 10, 0.2, _FREE_CUBES, solver="vbd"),
    # Below: the cheapest setting whose number holds, or changes by less than 2 % when the rate is
    # doubled and iterations are four times as many. `python -m benchmarks.tuning ENGINE FAMILY`
    # prints what stands in the comments.
    # e 0.5761 of 0.5767 in 8 ms; at 720 Hz 0.573.
    (TUNED, "bullet", "bouncing_ball"): _row(1800, _RIGID_SPLIT, 50, 0.01, **_SPLIT),
    # Acceleration 6.991 of 6.976 m/s^2, 1 um deep; at 1800 Hz 7.026, 42 um.
    (TUNED, "bullet", "slope_contact"): _row(3600, _RIGID_SPLIT, 50, 0.01, **_SPLIT),
    # Paths move by 0.4 to 2.8 mm from 1800 Hz, and by nothing from 10 iterations on.
    (TUNED, "bullet", "nonsmooth_contact"): _row(3600, _RIGID_SPLIT, 50, 0.01, **_SPLIT),
    # 2.583 of 2.580 m/s^2; as the board tilts 0.17 mm off at 1800 Hz, 5.8 mm at 360.
    (TUNED, "bullet", "slope_slider"): _row(1800, _MULTIBODY, 50, 0.01, hull_margin=1e-5),
    # Creep 0.23 mm in 3 s (0.66 at 1800 Hz); 0.6 CPU-s.
    (TUNED, "bullet", "turntable"): _row(7200, _MULTIBODY, 50, 0.01, hull_margin=1e-5),
    # Period and energy as at 1800 Hz: 1.2563 s, 7e-6 of the energy.
    (TUNED, "bullet", "pendulum"): _row(720, _MULTIBODY, 50, 0.01),
    # Transfer 0.292; 0.290 at 3600 Hz, 0.301 at 720; as with 200 and 1000 iterations.
    (TUNED, "bullet", "newtons_cradle"): _row(1800, _MULTIBODY, 50, 0.01),
    # The ball's path is 2.7 mm from that at 720 Hz, at a third of the cost.
    (TUNED, "bullet", "wall_breaking"): _row(360, _MULTIBODY, 200, 0.01, hull_margin=1e-5),
    # 2.587 of 2.580 m/s^2; as the board tilts 0.12 mm off, 0.06 at 1800 Hz.
    (TUNED, "physx", "slope_slider"): _row(720, "tgs", 50, 0.01, **_NEAR),
    # Acceleration 5.839 of 5.810 m/s^2; 7.01 of 6.98.
    (TUNED, "physx", "slope_contact"): _row(1800, "tgs", 16, 0.01, **_NEAR),
    # Radius at the end 0.1008 of 0.0912 m (transition, metal), 0.1046 at 1800 Hz.
    (TUNED, "physx", "turntable"): _row(3600, "tgs", 16, 0.01, **_NEAR),
    (TUNED, "physx", "pendulum"): _row(720, "tgs", 50, 0.01, **_NEAR),
    # Transfer 0.2398 from 720 Hz on (0.2396 at 7200).
    (TUNED, "physx", "newtons_cradle"): _row(720, "tgs", 50, 0.01, **_NEAR),
    # Paths 1.1 mm from those at 360 Hz, 2.7 from those at 1800; 1.5 CPU-s a second.
    (TUNED, "physx", "wall_breaking"): _row(720, "tgs", 50, 0.01, **_NEAR),
    # e 0.5758 of 0.5767; springs that damp, in MuJoCo, make it 0.60.
    (TUNED, "newton", "bouncing_ball"): _row(1800, "xpbd", 8, solver="xpbd"),
    # Creep 1.3 mm; 55 mm by MuJoCo's springs, whose friction gives way.
    (TUNED, "newton", "turntable"): _row(900, "xpbd", 8, solver="xpbd"),
    # 5.836 of 5.810 m/s^2, 0.02 mm deep; with one point between two hulls 6.34, 8.6 mm.
    (TUNED, "newton", "slope_contact"): _row(
        1800, _HULLS, 100, solver="mujoco", contact="restitution", multiccd=1
    ),
    # Nothing in anything (0.4 um); by MuJoCo's springs 3.6 mm.
    (TUNED, "newton", "nonsmooth_contact"): _row(1800, "xpbd", 8, solver="xpbd"),
    # 2.581 of 2.580 m/s^2; creep 0.03 mm where it should stick.
    (TUNED, "newton", "slope_slider"): _row(
        1800, _DAMPED, 100, solver="mujoco", contact="restitution"
    ),
    # Contacts are looked for no farther than a vertex is thick, and damp a fifth of critically:
    # the engine's own 55 N s/m throw over what stands on the cloth.
    (TUNED, "newton", "tablecloth_pulling"): _row(
        3600,
        _WARM,
        5,
        solver="vbd",
        warm_start=1,
        contact_gap=1e-5,
        particle_contact_stiffness=5e4,
        particle_contact_damping=0.5,
    ),
    # The board is 70 times as stiff as the stick along itself: by default it takes up a sixth of
    # the press.
    (TUNED, "newton", "stick_stack"): _row(
        1800, _WARM, 10, solver="vbd", warm_start=1, particle_contact_stiffness=5e4
    ),
    # Energy to 7e-7, period 1.2563 s.
    (TUNED, "newton", "pendulum"): _row(720, "mujoco", 100, solver="mujoco"),
    (TUNED, "newton", "wall_breaking"): _row(
        360, _DAMPED, 100, solver="mujoco", contact="restitution"
    ),
    (TUNED, "genesis", "wall_breaking"): _row(
        360, "rigid, contacts by restitution", 100, contact="restitution"
    ),
}

"""The five RigidBench tasks as environments; each class docstring is its page."""

from __future__ import annotations

from wmeval.envs.rigidbench.task_env import RigidBenchTask

__all__ = ["BallChain", "Bounce", "DropIntoCluster", "FreeFall", "RampCollision"]


class FreeFall(RigidBenchTask):
    """An object drops on to a support.

    ## Description

    One of the 24 everyday objects hangs 0.5 to 0.7 m above a table, counter or floor of one of
    twelve settings, and drops (RigidBench, section 3.2: free flight).

    ## Action space

    `Box(-1, 1, (0,), float32)`: there is nothing to do. Every step passes one frame, 1/24 s.

    ## Observation space

    `Box((13,), float32)` in the world's frame: SI, right-handed, z up, quaternions `wxyz`.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | `falling` position (centre of mass) | m | +-100 |
    | 3-6 | `falling` quaternion `wxyz` | 1 | +-1 |
    | 7-9 | `falling` linear velocity | m/s | +-100 |
    | 10-12 | `falling` angular velocity | rad/s | +-2000 |

    ## Rewards

    0.0; there is no task reward.

    ## Starting state

    Everything is at rest. Setting, support, objects and dimensions are drawn from the seed, or from
    the seed of a manifest's row (`row`), which fixes the sample in any process; `reset` tells them
    in `info["sample"]`, with what a video model is told in `info["prompt"]`.

    ## Episode end

    Never terminated; truncated after 48 steps: 49 frames, 2 s.

    ## Arguments

    `physics`: `bullet` (default: restitution as the coefficients say), `bullet-faithful` (the
    solver's own defaults, as in the published clips) or `blender` (Blender's own rigid bodies,
    which need bpy and tell no contacts); `assets`: a folder of your own cards. See `WorldEnv` for
    the rest. dt 1/720 s, control period 1/24 s.

    ## Reset options

    `row`, or `setting`, `surface`, `objects`, `split`; `placements`, `turn_deg`, `azimuth_deg`: see
    `OPTIONS`. `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `main`
    (the clip's: 35 mm, 10 degrees above, its azimuth chosen so that at least half of every actor is
    seen), `static` (higher and wider), `top`.

    ## Physical parameters

    Masses, friction and restitution of the objects follow the published cards; a pair's value is
    the product. Supports and ramps: friction 0.4, restitution 0.3. Active bodies lose 10 % of their
    velocity and 50 % of their spin a second; 20 solver iterations (RigidBench, Tables 4 and 7).
    Sizes of objects are ours, of the real things.

    ## Version history

    * v0: initial version.
    """

    ID = "RigidBench/FreeFall-v0"
    TASK = "free_fall"
    SLOTS = ("falling",)


class Bounce(RigidBenchTask):
    """A ball that bounces drops on to a support.

    ## Description

    A baseball, bouncy ball, tennis ball or cricket ball hangs 0.5 to 0.7 m above a support, drops
    and bounces (RigidBench, section 3.2: restitution).

    ## Action space

    `Box(-1, 1, (0,), float32)`: there is nothing to do. Every step passes one frame, 1/24 s.

    ## Observation space

    `Box((13,), float32)` in the world's frame: SI, right-handed, z up, quaternions `wxyz`.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | `bouncing` position (centre of mass) | m | +-100 |
    | 3-6 | `bouncing` quaternion `wxyz` | 1 | +-1 |
    | 7-9 | `bouncing` linear velocity | m/s | +-100 |
    | 10-12 | `bouncing` angular velocity | rad/s | +-2000 |

    ## Rewards

    0.0; there is no task reward.

    ## Starting state

    Everything is at rest. Setting, support, objects and dimensions are drawn from the seed, or from
    the seed of a manifest's row (`row`), which fixes the sample in any process; `reset` tells them
    in `info["sample"]`, with what a video model is told in `info["prompt"]`.

    ## Episode end

    Never terminated; truncated after 48 steps: 49 frames, 2 s.

    ## Arguments

    `physics`: `bullet` (default: restitution as the coefficients say), `bullet-faithful` (the
    solver's own defaults, as in the published clips) or `blender` (Blender's own rigid bodies,
    which need bpy and tell no contacts); `assets`: a folder of your own cards. See `WorldEnv` for
    the rest. dt 1/720 s, control period 1/24 s.

    ## Reset options

    `row`, or `setting`, `surface`, `objects`, `split`; `placements`, `turn_deg`, `azimuth_deg`: see
    `OPTIONS`. `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `main`
    (the clip's: 35 mm, 10 degrees above, its azimuth chosen so that at least half of every actor is
    seen), `static` (higher and wider), `top`.

    ## Physical parameters

    Masses, friction and restitution of the objects follow the published cards; a pair's value is
    the product. Supports and ramps: friction 0.4, restitution 0.3; here the support has friction
    0.3 and restitution 0.6. Active bodies lose 10 % of their velocity and 50 % of their spin a
    second; 20 solver iterations (RigidBench, Tables 4 and 7). Sizes of objects are ours, of the
    real things.

    ## Version history

    * v0: initial version.
    """

    ID = "RigidBench/Bounce-v0"
    TASK = "bounce"
    SLOTS = ("bouncing",)


class RampCollision(RigidBenchTask):
    """Two objects roll down facing ramps and collide.

    ## Description

    Two ramps face each other, 0.10 to 0.15 m apart; an object that rolls lies on each, a quarter
    of the way down (RigidBench, section 3.2: rolling collision).

    ## Action space

    `Box(-1, 1, (0,), float32)`: there is nothing to do. Every step passes one frame, 1/24 s.

    ## Observation space

    `Box((52,), float32)` in the world's frame: SI, right-handed, z up, quaternions `wxyz`.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | `ramp_left` position (centre of mass) | m | +-100 |
    | 3-6 | `ramp_left` quaternion `wxyz` | 1 | +-1 |
    | 7-9 | `ramp_left` linear velocity | m/s | +-100 |
    | 10-12 | `ramp_left` angular velocity | rad/s | +-2000 |
    | 13-15 | `ramp_right` position (centre of mass) | m | +-100 |
    | 16-19 | `ramp_right` quaternion `wxyz` | 1 | +-1 |
    | 20-22 | `ramp_right` linear velocity | m/s | +-100 |
    | 23-25 | `ramp_right` angular velocity | rad/s | +-2000 |
    | 26-28 | `rolling_left` position (centre of mass) | m | +-100 |
    | 29-32 | `rolling_left` quaternion `wxyz` | 1 | +-1 |
    | 33-35 | `rolling_left` linear velocity | m/s | +-100 |
    | 36-38 | `rolling_left` angular velocity | rad/s | +-2000 |
    | 39-41 | `rolling_right` position (centre of mass) | m | +-100 |
    | 42-45 | `rolling_right` quaternion `wxyz` | 1 | +-1 |
    | 46-48 | `rolling_right` linear velocity | m/s | +-100 |
    | 49-51 | `rolling_right` angular velocity | rad/s | +-2000 |

    ## Rewards

    0.0; there is no task reward.

    ## Starting state

    Everything is at rest. Setting, support, objects and dimensions are drawn from the seed, or from
    the seed of a manifest's row (`row`), which fixes the sample in any process; `reset` tells them
    in `info["sample"]`, with what a video model is told in `info["prompt"]`.

    ## Episode end

    Never terminated; truncated after 48 steps: 49 frames, 2 s.

    ## Arguments

    `physics`: `bullet` (default: restitution as the coefficients say), `bullet-faithful` (the
    solver's own defaults, as in the published clips) or `blender` (Blender's own rigid bodies,
    which need bpy and tell no contacts); `assets`: a folder of your own cards. See `WorldEnv` for
    the rest. dt 1/720 s, control period 1/24 s.

    ## Reset options

    `row`, or `setting`, `surface`, `objects`, `split`; `placements`, `ramp_material`, `turn_deg`,
    `azimuth_deg`: see `OPTIONS`. `view`, `camera`, `camera_motion`, `seed_space`: see
    `WorldEnv.reset`. Views: `main` (the clip's: 35 mm, 10 degrees above, its azimuth chosen so that
    at least half of every actor is seen), `static` (higher and wider), `top`.

    ## Physical parameters

    A ramp is a static mesh; its material is its look alone. Masses, friction and restitution of the
    objects follow the published cards; a pair's value is the product. Supports and ramps: friction
    0.4, restitution 0.3. Active bodies lose 10 % of their velocity and 50 % of their spin a second;
    20 solver iterations (RigidBench, Tables 4 and 7). Sizes of objects are ours, of the real
    things.

    ## Version history

    * v0: initial version.
    """

    ID = "RigidBench/RampCollision-v0"
    TASK = "ramp_collision"
    SLOTS = ("ramp_left", "ramp_right", "rolling_left", "rolling_right")


class BallChain(RigidBenchTask):
    """An object rolls down a ramp into a row of three.

    ## Description

    An object that rolls lies on a ramp, a quarter of the way down; three objects stand in a row
    beyond its foot (RigidBench, section 3.2: contact chain).

    ## Action space

    `Box(-1, 1, (0,), float32)`: there is nothing to do. Every step passes one frame, 1/24 s.

    ## Observation space

    `Box((65,), float32)` in the world's frame: SI, right-handed, z up, quaternions `wxyz`.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | `ramp` position (centre of mass) | m | +-100 |
    | 3-6 | `ramp` quaternion `wxyz` | 1 | +-1 |
    | 7-9 | `ramp` linear velocity | m/s | +-100 |
    | 10-12 | `ramp` angular velocity | rad/s | +-2000 |
    | 13-15 | `rolling` position (centre of mass) | m | +-100 |
    | 16-19 | `rolling` quaternion `wxyz` | 1 | +-1 |
    | 20-22 | `rolling` linear velocity | m/s | +-100 |
    | 23-25 | `rolling` angular velocity | rad/s | +-2000 |
    | 26-28 | `chain_0` position (centre of mass) | m | +-100 |
    | 29-32 | `chain_0` quaternion `wxyz` | 1 | +-1 |
    | 33-35 | `chain_0` linear velocity | m/s | +-100 |
    | 36-38 | `chain_0` angular velocity | rad/s | +-2000 |
    | 39-41 | `chain_1` position (centre of mass) | m | +-100 |
    | 42-45 | `chain_1` quaternion `wxyz` | 1 | +-1 |
    | 46-48 | `chain_1` linear velocity | m/s | +-100 |
    | 49-51 | `chain_1` angular velocity | rad/s | +-2000 |
    | 52-54 | `chain_2` position (centre of mass) | m | +-100 |
    | 55-58 | `chain_2` quaternion `wxyz` | 1 | +-1 |
    | 59-61 | `chain_2` linear velocity | m/s | +-100 |
    | 62-64 | `chain_2` angular velocity | rad/s | +-2000 |

    ## Rewards

    0.0; there is no task reward.

    ## Starting state

    Everything is at rest. Setting, support, objects and dimensions are drawn from the seed, or from
    the seed of a manifest's row (`row`), which fixes the sample in any process; `reset` tells them
    in `info["sample"]`, with what a video model is told in `info["prompt"]`.

    ## Episode end

    Never terminated; truncated after 48 steps: 49 frames, 2 s.

    ## Arguments

    `physics`: `bullet` (default: restitution as the coefficients say), `bullet-faithful` (the
    solver's own defaults, as in the published clips) or `blender` (Blender's own rigid bodies,
    which need bpy and tell no contacts); `assets`: a folder of your own cards. See `WorldEnv` for
    the rest. dt 1/720 s, control period 1/24 s.

    ## Reset options

    `row`, or `setting`, `surface`, `objects`, `split`; `placements`, `ramp_material`, `turn_deg`,
    `azimuth_deg`: see `OPTIONS`. `view`, `camera`, `camera_motion`, `seed_space`: see
    `WorldEnv.reset`. Views: `main` (the clip's: 35 mm, 10 degrees above, its azimuth chosen so that
    at least half of every actor is seen), `static` (higher and wider), `top`.

    ## Physical parameters

    A ramp is a static mesh; its material is its look alone. Masses, friction and restitution of the
    objects follow the published cards; a pair's value is the product. Supports and ramps: friction
    0.4, restitution 0.3. Active bodies lose 10 % of their velocity and 50 % of their spin a second;
    20 solver iterations (RigidBench, Tables 4 and 7). Sizes of objects are ours, of the real
    things.

    ## Version history

    * v0: initial version.
    """

    ID = "RigidBench/BallChain-v0"
    TASK = "ball_chain"
    SLOTS = ("ramp", "rolling", "chain_0", "chain_1", "chain_2")


class DropIntoCluster(RigidBenchTask):
    """An object drops on to a cluster of three.

    ## Description

    Three objects stand in a ring, 3 to 8 mm apart; a fourth hangs 0.5 to 0.7 m above the middle
    of the support, and drops (RigidBench, section 3.2: multi-body impact).

    ## Action space

    `Box(-1, 1, (0,), float32)`: there is nothing to do. Every step passes one frame, 1/24 s.

    ## Observation space

    `Box((52,), float32)` in the world's frame: SI, right-handed, z up, quaternions `wxyz`.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | `cluster_0` position (centre of mass) | m | +-100 |
    | 3-6 | `cluster_0` quaternion `wxyz` | 1 | +-1 |
    | 7-9 | `cluster_0` linear velocity | m/s | +-100 |
    | 10-12 | `cluster_0` angular velocity | rad/s | +-2000 |
    | 13-15 | `cluster_1` position (centre of mass) | m | +-100 |
    | 16-19 | `cluster_1` quaternion `wxyz` | 1 | +-1 |
    | 20-22 | `cluster_1` linear velocity | m/s | +-100 |
    | 23-25 | `cluster_1` angular velocity | rad/s | +-2000 |
    | 26-28 | `cluster_2` position (centre of mass) | m | +-100 |
    | 29-32 | `cluster_2` quaternion `wxyz` | 1 | +-1 |
    | 33-35 | `cluster_2` linear velocity | m/s | +-100 |
    | 36-38 | `cluster_2` angular velocity | rad/s | +-2000 |
    | 39-41 | `faller` position (centre of mass) | m | +-100 |
    | 42-45 | `faller` quaternion `wxyz` | 1 | +-1 |
    | 46-48 | `faller` linear velocity | m/s | +-100 |
    | 49-51 | `faller` angular velocity | rad/s | +-2000 |

    ## Rewards

    0.0; there is no task reward.

    ## Starting state

    Everything is at rest. Setting, support, objects and dimensions are drawn from the seed, or from
    the seed of a manifest's row (`row`), which fixes the sample in any process; `reset` tells them
    in `info["sample"]`, with what a video model is told in `info["prompt"]`.

    ## Episode end

    Never terminated; truncated after 48 steps: 49 frames, 2 s.

    ## Arguments

    `physics`: `bullet` (default: restitution as the coefficients say), `bullet-faithful` (the
    solver's own defaults, as in the published clips) or `blender` (Blender's own rigid bodies,
    which need bpy and tell no contacts); `assets`: a folder of your own cards. See `WorldEnv` for
    the rest. dt 1/720 s, control period 1/24 s.

    ## Reset options

    `row`, or `setting`, `surface`, `objects`, `split`; `placements`, `turn_deg`, `azimuth_deg`: see
    `OPTIONS`. `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `main`
    (the clip's: 35 mm, 10 degrees above, its azimuth chosen so that at least half of every actor is
    seen), `static` (higher and wider), `top`.

    ## Physical parameters

    Masses, friction and restitution of the objects follow the published cards; a pair's value is
    the product. Supports and ramps: friction 0.4, restitution 0.3. Active bodies lose 10 % of their
    velocity and 50 % of their spin a second; 20 solver iterations (RigidBench, Tables 4 and 7).
    Sizes of objects are ours, of the real things.

    ## Version history

    * v0: initial version.
    """

    ID = "RigidBench/DropIntoCluster-v0"
    TASK = "drop_into_cluster"
    SLOTS = ("cluster_0", "cluster_1", "cluster_2", "faller")

"""The five RigidBench tasks as environments.

A class says what is its own: the rest of its page is `wmeval.envs.rigidbench.page`'s.
"""

from __future__ import annotations

from wmeval.envs.rigidbench.page import complete
from wmeval.envs.rigidbench.task_env import RigidBenchTask

__all__ = ["BallChain", "Bounce", "DropIntoCluster", "FreeFall", "RampCollision"]


@complete()
class FreeFall(RigidBenchTask):
    """An object drops on to a support.

    The middle of one of the 24 everyday objects hangs 0.5 to 0.7 m above a table, counter or floor
    of one of twelve settings; the object drops (RigidBench, section 3.2: free flight).
    """

    ID = "RigidBench/FreeFall-v0"
    TASK = "free_fall"
    SLOTS = ("falling",)


@complete(physics="Here the support has friction 0.3 and restitution 0.6.")
class Bounce(RigidBenchTask):
    """A ball that bounces drops on to a support.

    The middle of a baseball, bouncy ball, tennis ball or cricket ball hangs 0.5 to 0.7 m above a
    support; the ball drops and bounces (RigidBench, section 3.2: restitution).
    """

    ID = "RigidBench/Bounce-v0"
    TASK = "bounce"
    SLOTS = ("bouncing",)


@complete()
class RampCollision(RigidBenchTask):
    """Two objects roll down facing ramps and collide.

    Two ramps face each other, 0.10 to 0.15 m apart; an object that rolls lies on each, a quarter
    of the way down (RigidBench, section 3.2: rolling collision).
    """

    ID = "RigidBench/RampCollision-v0"
    TASK = "ramp_collision"
    SLOTS = ("ramp_left", "ramp_right", "rolling_left", "rolling_right")


@complete()
class BallChain(RigidBenchTask):
    """An object rolls down a ramp into a row of three.

    An object that rolls lies on a ramp, a quarter of the way down; three objects stand in a row
    beyond its foot (RigidBench, section 3.2: contact chain).
    """

    ID = "RigidBench/BallChain-v0"
    TASK = "ball_chain"
    SLOTS = ("ramp", "rolling", "chain_0", "chain_1", "chain_2")


@complete()
class DropIntoCluster(RigidBenchTask):
    """An object drops on to a cluster of three.

    Three objects stand in a ring, 3 to 8 mm apart; the middle of a fourth hangs 0.5 to 0.7 m above
    the middle of the support; it drops (RigidBench, section 3.2: multi-body impact).
    """

    ID = "RigidBench/DropIntoCluster-v0"
    TASK = "drop_into_cluster"
    SLOTS = ("cluster_0", "cluster_1", "cluster_2", "faller")

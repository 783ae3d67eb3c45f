"""Newton's vertex block descent, begun where the last substep suggests.

Newton's `SolverVBD` begins every substep where inertia and gravity alone would take the vertices,
and sweeps from there. Unless it sweeps until nothing moves, gravity is resisted in part only: what
hangs at rest is let fall and caught anew in every substep, and seems softer than it is. The paper
of the method begins with the share of gravity that acted in the substep before (Chen et al., Vertex
Block Descent, 2024, 3.7). That changes where sweeps begin and leaves alone what they converge to;
what hangs at rest is then a fixed point of however few of them.
"""

from __future__ import annotations

from typing import Any

import warp as wp
from newton.solvers import SolverVBD


def _begin(
    dt: float,
    gravity: wp.array[wp.vec3],
    flags: wp.array[wp.int32],
    speed: wp.array[wp.vec3],
    before: wp.array[wp.vec3],
    moved: wp.array[wp.vec3],
) -> None:
    i = wp.tid()
    if flags[i] & 1:
        pull = gravity[0]
        taken = wp.dot(speed[i] - before[i], pull)
        share = wp.clamp(taken / wp.max(wp.length_sq(pull) * dt, 1e-12), 0.0, 1.0)
        moved[i] = (speed[i] + pull * (share * dt)) * dt
    before[i] = speed[i]


_kernel = wp.kernel(_begin)


class WarmVBD(SolverVBD):  # type: ignore[misc]
    """`SolverVBD`, begun as its paper says."""

    def __init__(self, model: Any, *, dt: float, **fields: Any) -> None:
        """As `SolverVBD`.

        Args:
            model: Newton's.
            dt: of every substep [s].
            **fields: of `SolverVBD`.
        """
        super().__init__(model, **fields)
        # As if all had fallen for a substep: what is let go at first falls at once.
        falling = model.particle_qd.numpy() - dt * model.gravity.numpy()[:1]
        self._before = wp.array(falling, dtype=wp.vec3)

    def _initialize_particles(self, state_in: Any, state_out: Any, contacts: Any, dt: Any) -> None:
        super()._initialize_particles(state_in, state_out, contacts, dt)
        if self.model.particle_count:
            wp.launch(
                _kernel, self.model.particle_count,
                inputs=[dt, self.model.gravity, self.model.particle_flags, state_in.particle_qd,
                        self._before],
                outputs=[self.particle_displacements],
            )  # fmt: skip
            self._penetration_free_truncation(state_in, contacts)


__all__ = ["WarmVBD"]

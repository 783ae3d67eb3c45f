"""Springs and masses that stand for a cloth, and how corrections of positions act as springs.

See `wmeval.sim.engines.genesis_cloth` for what they are used for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wmeval.deformables import RestShape, edge_lengths, edges_of
from wmeval.errors import UserError
from wmeval.scene import Cloth, Sheet
from wmeval.sim.engines.genesis_bending import F8, I8


@dataclass(frozen=True, eq=False)
class Network:
    """Springs and masses that stand for a cloth.

    Attributes:
        edges: (E, 2) vertices.
        springs: (E,) [N/m].
        masses: (V,) [kg].
    """

    edges: I8
    springs: F8
    masses: F8

    def longest_substep(self, iterations: int, relaxation: float) -> float:
        """Longest substep [s] in which no edge needs more than its relaxation.

        But for those at the sheet's corners, which are so light that they would say it for all:
        they are as stiff as they can be then.
        """
        light = self.masses < 0.4 * np.median(self.masses)
        told = ~light[self.edges].any(axis=1)
        if not told.any():
            told[:] = True
        both = (1.0 / self.masses)[self.edges].sum(axis=1)
        steepest = float((self.springs * both)[told].max())
        return math.sqrt(iterations * relaxation / steepest)


def network(item: Cloth, rest: RestShape) -> Network:
    """A lattice with a cloth's stretch and shear stiffness.

    Along the cells' sides a strip that is free to narrow and to shear has the springs' stiffness
    alone, K_s; the diagonal has what shear at constant sides takes: K_sh l^2 / (h_x h_y).

    Raises:
        UserError: the cloth is no `Sheet`.
    """
    if not isinstance(item.surface, Sheet):
        raise UserError(
            f"cloth {item.name!r} is a mesh: engine genesis' textile network takes sheets; leave "
            "textile out"
        )
    (nx, ny), (sx, sy) = item.surface.cells, item.surface.size
    hx, hy = sx / nx, sy / ny
    edges, count = edges_of(rest)
    diagonal = edge_lengths(rest.vertices, edges) > max(hx, hy) * (1 + 1e-6)
    by_number = edges[:, 1] - edges[:, 0] == 1
    springs = np.where(by_number, item.stretch * hy / hx, item.stretch * hx / hy)
    springs = np.where(count == 1, springs / 2, springs)
    springs = np.where(diagonal, item.shear * (hx * hx + hy * hy) / (hx * hy), springs)
    corners = rest.vertices[rest.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    thirds = item.areal_density * np.linalg.norm(normals, axis=1) / 6.0
    masses = np.asarray(
        np.bincount(rest.triangles.ravel(), np.repeat(thirds, 3), len(rest.vertices)), np.float64
    )
    return Network(edges, springs, masses)


def effective_spring(
    compliance: float, inverse_masses: float, substep: float, iterations: int, relaxation: float
) -> float:
    """Stiffness [N/m] that an edge acts with.

    Args:
        compliance: [m/N].
        inverse_masses: of both ends [1/kg].
        substep: [s].
        iterations: in a substep.
        relaxation: of a correction.
    """
    return iterations * relaxation / (compliance + inverse_masses * substep**2)


def hinge_steepness(points: F8, hinges: I8, inverse: F8) -> F8:
    """Of flat hinges (H, 4), edge first: sum of w |dC/dx|^2 of the angle C [1/(kg m^2)], (H,)."""
    one, two, three, four = (points[hinges[:, k]] for k in range(4))
    edge = two - one
    length = np.linalg.norm(edge, axis=1)

    def height(tip: F8) -> tuple[F8, F8]:
        """How far a tip is from the edge, and where along it."""
        out = tip - one
        share = np.einsum("ij,ij->i", out, edge) / length**2
        return np.linalg.norm(out - share[:, None] * edge, axis=1), share

    h3, s3 = height(three)
    h4, s4 = height(four)
    # A flat sheet lifts by the tips' 1 / height and by what balances them along the edge.
    slopes = [-(1 - s3) / h3 - (1 - s4) / h4, -s3 / h3 - s4 / h4, 1 / h3, 1 / h4]
    weights = inverse[hinges]
    return np.asarray(sum(weights[:, k] * slope**2 for k, slope in enumerate(slopes)))

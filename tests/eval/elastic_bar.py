"""A square bar of foam whose ends are held and one is turned, by finite elements of our own.

Bricks with eight nodes, quasi-static, Newton's method; laws that agree at small strains.
"""

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

CORNERS = np.array(
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
)
ONE = np.eye(3)


def neo_hookean(f, mu, lam):
    """Stress P and its derivative at deformations (E, 3, 3): mu (F - F^-T) + lam ln J F^-T."""
    inverse = np.swapaxes(np.linalg.inv(f), 1, 2)
    log = np.log(np.linalg.det(f))[:, None, None]
    stress = mu * (f - inverse) + lam * log * inverse
    change = mu * np.einsum("ik,jl->ijkl", ONE, ONE) + (mu - lam * log[..., None, None]) * (
        np.einsum("eil,ekj->eijkl", inverse, inverse)
    )
    return stress, change + lam * np.einsum("eij,ekl->eijkl", inverse, inverse)


def corotated(f, mu, lam):
    """The same of 2 mu (F - R) + lam tr(R^T F - 1) R, with F = R S; derived by differences."""

    def stress(f):
        u, _, v = np.linalg.svd(f)
        turn = u @ v
        return 2 * mu * (f - turn) + lam * (
            np.einsum("eij,eij->e", f - turn, turn)[:, None, None] * turn
        )

    now, change = stress(f), np.empty((len(f), 3, 3, 3, 3))
    for k in range(3):
        for m in range(3):
            step = np.zeros((3, 3))
            step[k, m] = 1e-6
            change[:, :, :, k, m] = (stress(f + step) - now) / 1e-6
    return now, change


def twisted_bar(law, young, poisson, side, length, turn, cells, steps=3):
    """Where (N, 3) nodes at rest come to: (rest, after); the bar stands on z = 0 about the axis."""
    lam = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    mu, size = young / (2 * (1 + poisson)), side / cells
    count = np.array([cells, cells, round(length / size)])
    grid = np.stack(np.meshgrid(*(np.arange(n + 1) for n in count), indexing="ij"), -1)
    grid = grid.reshape(-1, 3)
    rest = grid * size - [side / 2, side / 2, 0]
    first = grid[(grid < count).all(axis=1)]
    nodes = np.stack([index(first + c, count) for c in CORNERS], axis=1)
    signs, slopes = 2 * CORNERS - 1, []
    for point in signs / np.sqrt(3):
        a = 1 + signs * point
        slopes.append(
            signs * np.stack([a[:, 1] * a[:, 2], a[:, 0] * a[:, 2], a[:, 0] * a[:, 1]], 1)
        )
    slopes = np.array(slopes) / (4 * size)
    free = np.repeat((grid[:, 2] > 0) & (grid[:, 2] < count[2]), 3)
    own = (3 * nodes[:, :, None] + np.arange(3)).reshape(len(nodes), 24)
    rows, columns = np.repeat(own, 24, 1).ravel(), np.tile(own, (1, 24)).ravel()
    x = rest.copy()
    for _ in range(steps):
        # Each section turns on; then what is free finds its balance.
        angle = turn / steps * rest[:, 2] / length
        c, s = np.cos(angle), np.sin(angle)
        x = np.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1], x[:, 2]], 1)
        for _ in range(20):
            force, stiff = np.zeros((len(nodes), 8, 3)), np.zeros((len(nodes), 8, 3, 8, 3))
            for slope in slopes:
                stress, change = law(np.einsum("eai,aj->eij", x[nodes], slope), mu, lam)
                force += np.einsum("eij,aj->eai", stress, slope)
                stiff += np.einsum("eijkl,aj,bl->eaibk", change, slope, slope, optimize=True)
            whole = csc_matrix((stiff.ravel(), (rows, columns)), shape=(len(free),) * 2)
            left = np.bincount(own.ravel(), force.ravel(), len(free))[free]
            if np.abs(left).max() < 1e-6 * np.abs(force).max():
                break
            solver = splu(
                whole[free][:, free], permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}
            )
            x.reshape(-1)[free] -= solver.solve(left)
        else:
            raise AssertionError("no balance found")
    return rest, x


def index(place, count):
    """Of nodes at (..., 3) places of a grid."""
    return (place[..., 0] * (count[1] + 1) + place[..., 1]) * (count[2] + 1) + place[..., 2]


def follow(points, x, side, length, cells):
    """Where (M, 3) points of the bar come to with its nodes."""
    size = side / cells
    count = np.array([cells, cells, round(length / size)])
    u = np.clip((points + np.array([side / 2, side / 2, 0])) / size, 0, count)
    low = np.minimum(u.astype(int), count - 1)
    share = [np.prod(np.where(c, u - low, 1 - u + low), axis=1)[:, None] for c in CORNERS]
    return sum(w * x[index(low + c, count)] for w, c in zip(share, CORNERS, strict=True))

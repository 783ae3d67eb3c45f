"""What stands around a terrace: fence, shrubs in pots, trees as one thing each.

Every function gives the parts of one thing in its own frame: the origin on the ground at its
middle, z upwards.
"""

from __future__ import annotations

import numpy as np

from wmeval.assets.foliage import leaf_cluster, placed
from wmeval.assets.meshes import merge, revolve
from wmeval.assets.solids import Part, Parts, moved, plate_of, slab, tube, turned
from wmeval.assets.trees import cluster_mesh, grow


def picket_fence(length: float, height: float = 0.95, *, pitch: float = 0.135) -> Parts:
    """A fence of pointed pales along x [m], with posts and two rails. Material: ``fence``."""
    count = int(length / pitch)
    half, thick, tip, middle = 0.045, 0.018, 0.06, height / 2
    outline = [(half, 0.0), (half, height - tip), (0.0, height), (-half, height - tip),
               (-half, 0.0)]  # fmt: skip
    flat = plate_of([(x, y - middle) for x, y in outline], thick)
    pale = moved(turned(flat, (1, 0, 0), 90), 0, 0, middle + 0.06)
    pales = [moved(pale, (k - (count - 1) / 2) * pitch, 0, 0) for k in range(count)]
    rails = [
        slab((length / 2, 0.018, 0.035), 0.004, at=(0, 0.03, z), steps=1)
        for z in (0.28, height - 0.2)
    ]
    end = length / 2 - 0.05
    posts = [
        slab((0.045, 0.045, middle + 0.03), 0.01, at=(float(x), 0.075, middle + 0.03), steps=1)
        for x in np.linspace(-end, end, max(2, round(length / 2)))
    ]
    return (Part(merge([*pales, *rails, *posts]), "fence"),)


def potted_shrub(size: float, seed: int) -> Parts:
    """A round shrub in a pot, ``size`` [m] high.

    Materials: ``terracotta``, ``soil`` and ``foliage``.
    """
    s = size
    pot = revolve(
        [(0.0, 0.0), (0.17 * s, 0.0), (0.23 * s, 0.34 * s), (0.25 * s, 0.345 * s),
         (0.25 * s, 0.41 * s), (0.215 * s, 0.41 * s), (0.2 * s, 0.35 * s), (0.0, 0.35 * s)],
        48,
    )  # fmt: skip
    soil = revolve(
        [(0.0, 0.34 * s), (0.205 * s, 0.34 * s), (0.2 * s, 0.37 * s), (0.0, 0.38 * s)], 32
    )
    stem = tube([(0, 0, 0.36 * s), (0, 0, 0.6 * s)], 0.022 * s, 10)
    leaves = leaf_cluster(
        seed, (0.27 * s, 0.27 * s, 0.29 * s), sprays=170, spray=0.13 * s, level=2, metres=0.6
    )
    return (
        Part(pot, "terracotta"),
        Part(merge([soil, stem]), "soil"),
        Part(moved(leaves, 0, 0, 0.69 * s), "foliage"),
    )


def tree(species: str, seed: int) -> Parts:
    """A tree as one thing; ``species`` is a row of `wmeval.assets.trees.SPECIES`.

    Materials: ``bark`` and ``foliage``.

    Raises:
        KeyError: no such species.
    """
    grown = grow(species, seed)
    leaves = []
    for cluster in grown.clusters:
        x, y, z = (a + b for a, b in zip(cluster.joint, cluster.offset, strict=True))
        mesh = cluster_mesh(species, cluster.variant)
        leaves.append(placed(mesh, (x, y, z), cluster.yaw, cluster.scale))
    return Part(grown.wood, "bark"), Part(merge(leaves), "foliage")

"""What stands around a terrace: fence, shrubs in pots, trees as one thing each.

Every function gives the parts of one thing in its own frame: the origin on the ground at its
middle, z upwards.
"""

from __future__ import annotations

import numpy as np

from wmeval.assets.foliage import leaf_cluster, placed
from wmeval.assets.meshes import box, merge, revolve
from wmeval.assets.solids import Part, Parts, moved, plate_of, slab, tube, turned
from wmeval.assets.trees import cluster_mesh, grow
from wmeval.scene import MeshData


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


def deck_boards(half: float, thickness: float, seed: int, *, width: float = 0.148) -> Parts:
    """A square deck of staggered boards along x, their tops at z = 0.

    Args:
        half: half a side [m].
        thickness: of the boards [m].
        seed: where they are cut, and which timber each is of.
        width: of a board with its gap [m].

    Materials: ``deck_0``, ``deck_1`` and ``deck_2``, three tones of one timber.
    """
    rng = np.random.default_rng(seed)
    gap = 0.006
    rows = round(2 * half / width)
    boards: list[list[MeshData]] = [[], [], []]
    for row in range(rows):
        y = -half + (row + 0.5) * 2 * half / rows
        x = -half
        while x < half - 1e-6:
            length = float(rng.uniform(2.2, 4.4)) if x > -half else float(rng.uniform(0.8, 4.0))
            end = min(x + length, half)
            if half - end < 0.7:
                end = half
            size = ((end - x - gap) / 2, (2 * half / rows - gap) / 2, thickness / 2)
            board = moved(box(size), (x + end) / 2, y, -thickness / 2)
            # Every board is cut from another place of the timber: 1.6 m a period.
            uv = board.vertices[:, :2] / 1.6 + rng.uniform(0, 1, 2)
            tone = int(rng.choice(3, p=(0.5, 0.3, 0.2)))
            boards[tone].append(
                MeshData(board.vertices, board.triangles, board.normals, uv.astype(np.float32))
            )
            x = end
    return tuple(Part(merge(found), f"deck_{i}") for i, found in enumerate(boards))


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

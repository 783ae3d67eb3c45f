"""Trees: a trunk that branches, and leaf clusters at the ends of its branches. Data only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.foliage import leaf_cluster, placed, tube
from wmeval.assets.meshes import merge
from wmeval.scene import MeshData

Array = NDArray[np.float64]
Vec = tuple[float, float, float]


@dataclass(frozen=True)
class Species:
    """How a kind of tree grows.

    Attributes:
        height: of the whole tree [m].
        trunk: radius of the trunk at breast height [m].
        fork: height of the lowest limb, as a share of the height.
        limbs: main limbs.
        reach: horizontal length of the longest limb [m].
        rise: climb of a limb per metre outwards.
        twigs: clusters on each limb.
        lean: sideways displacement of the trunk's upper end [m].
        cluster: radii of a leaf cluster [m].
        spray: length of a leaf spray [m].
        sprays: leaf sprays on a cluster.
        droop: how far sprays hang.
        crown: shape of the crown: "broad" (longest limbs below), "round", "spire".
    """

    height: float
    trunk: float
    fork: float
    limbs: int
    reach: float
    rise: float
    twigs: int
    lean: float
    cluster: Vec
    spray: float
    sprays: int = 70
    droop: float = 0.15
    crown: str = "round"


SPECIES: dict[str, Species] = {
    "oak": Species(
        height=9.0, trunk=0.48, fork=0.24, limbs=8, reach=4.6, rise=0.62, twigs=3, lean=0.9,
        cluster=(1.25, 1.25, 0.85), spray=0.44, sprays=68, crown="broad",
    ),
    "maple": Species(
        height=5.2, trunk=0.16, fork=0.3, limbs=6, reach=1.9, rise=0.9, twigs=2, lean=0.35,
        cluster=(0.85, 0.85, 0.55), spray=0.31, sprays=40,
    ),
    "birch": Species(
        height=8.5, trunk=0.14, fork=0.3, limbs=9, reach=1.6, rise=1.1, twigs=1, lean=0.3,
        cluster=(0.78, 0.78, 0.95), spray=0.36, sprays=46, droop=0.8,
    ),
    "cypress": Species(
        height=7.6, trunk=0.14, fork=0.06, limbs=0, reach=0.75, rise=0.0, twigs=0, lean=0.0,
        cluster=(0.9, 0.9, 1.3), spray=0.38, sprays=36, droop=-0.9, crown="spire",
    ),
    "plum": Species(
        height=4.4, trunk=0.13, fork=0.34, limbs=6, reach=1.7, rise=0.75, twigs=2, lean=0.4,
        cluster=(0.8, 0.8, 0.55), spray=0.28, sprays=40,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """Where leaves grow.

    Attributes:
        joint: where the cluster hangs on its branch [m], the tree's frame.
        offset: its centre from there [m].
        outer: how far out it grows: 0 at the trunk, 1 at the crown's edge.
        scale: of the species' cluster.
        yaw: turn about the vertical [rad].
        variant: which of the species' cluster meshes.
        limb: the limb that carries it; those of one limb move together. -1 moves with the trunk.
    """

    joint: Vec
    offset: Vec
    outer: float
    scale: float
    yaw: float
    variant: int
    limb: int


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree; its foot is the origin, z up.

    Attributes:
        wood: trunk and branches; u around, v along.
        clusters: of leaves.
    """

    wood: MeshData
    clusters: tuple[Cluster, ...]


VARIANTS = 3


@lru_cache(maxsize=64)
def cluster_mesh(species: str, variant: int) -> MeshData:
    """Mesh of a leaf cluster of a species about its own centre."""
    kind = SPECIES[species]
    seed = 1000 * sorted(SPECIES).index(species) + variant
    return leaf_cluster(
        seed, kind.cluster, sprays=kind.sprays, spray=kind.spray, droop=kind.droop,
        metres=1.1 if species == "oak" else 0.8,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Bough:
    """Leaves that move as one.

    Attributes:
        joint: the point that they swing about [m], the tree's frame.
        leaves: their mesh about the joint.
        outer: how far out they grow, 0 to 1.
    """

    joint: Vec
    leaves: MeshData
    outer: float


def boughs(species: str, seed: int) -> tuple[MeshData, tuple[Bough, ...]]:
    """The crown of `grow(species, seed)`: the leaves that stay with the trunk, and the others.

    Returns:
        Mesh of the still leaves in the tree's frame, and one bough per limb.
    """
    tree = grow(species, seed)
    limbs = sorted({c.limb for c in tree.clusters})
    still = _joined(species, [c for c in tree.clusters if c.limb < 0], (0.0, 0.0, 0.0))
    out = []
    for limb in limbs:
        if limb < 0:
            continue
        group = [c for c in tree.clusters if c.limb == limb]
        joint = group[0].joint
        out.append(Bough(joint, _joined(species, group, joint), max(c.outer for c in group)))
    return still, tuple(out)


def _joined(species: str, clusters: list[Cluster], origin: Vec) -> MeshData:
    parts = []
    for c in clusters:
        x, y, z = (j + o - p for j, o, p in zip(c.joint, c.offset, origin, strict=True))
        parts.append(placed(cluster_mesh(species, c.variant), (x, y, z), c.yaw, c.scale))
    return merge(parts)


def _bend(start: Array, end: Array, sag: Array, joints: int) -> Array:
    t = np.linspace(0, 1, joints)[:, None]
    return np.asarray(start + (end - start) * t + 4 * t * (1 - t) * sag)


def _vec(v: Array) -> Vec:
    return (float(v[0]), float(v[1]), float(v[2]))


@lru_cache(maxsize=64)
def grow(species: str, seed: int) -> Tree:
    """A tree of a species; the same for the same seed.

    Raises:
        KeyError: no such species.
    """
    kind = SPECIES[species]
    rng = np.random.Generator(np.random.PCG64(seed))
    if kind.crown == "spire":
        return _spire(kind, rng)
    heading = rng.uniform(0, 2 * math.pi)
    lean = kind.lean * np.array([math.cos(heading), math.sin(heading), 0])
    top = np.array([0, 0, 0.86 * kind.height]) + lean
    sag = (
        0.09
        * kind.height
        * np.array([-math.sin(heading), math.cos(heading), 0])
        * rng.uniform(0.3, 0.7)
    )
    joints = 9
    trunk = _bend(np.array([0, 0, -0.15]), top, sag, joints)
    t = np.linspace(0, 1, joints)
    radii = kind.trunk * (1.0 - 0.78 * t) + 0.75 * kind.trunk * np.exp(-t * kind.height / 0.42)
    lobes = 0.26 * np.exp(-t * kind.height / 0.55) + 0.035
    wood = [
        tube(trunk, radii, sides=14 if kind.trunk > 0.3 else 8, around=4 if kind.trunk > 0.3 else 2,
             metres=1.6, lobes=lobes)
    ]  # fmt: skip
    clusters: list[Cluster] = []

    def leaf(joint: Array, centre: Array, outer: float, scale: float, limb: int) -> None:
        clusters.append(
            Cluster(
                _vec(joint), _vec(centre - joint), outer, scale, float(rng.uniform(0, 2 * math.pi)),
                int(rng.integers(VARIANTS)), limb,
            )
        )  # fmt: skip

    for i in range(kind.limbs):
        share = i / max(kind.limbs - 1, 1)
        at = kind.fork + (0.78 - kind.fork) * share**0.85
        start = np.array([np.interp(at, t, trunk[:, k]) for k in range(3)])
        angle = heading + 2.39996 * i + rng.normal(0, 0.2)
        if kind.crown == "broad":
            length = kind.reach * (1.0 - 0.5 * share) * rng.uniform(0.9, 1.05)
        else:
            length = kind.reach * (0.7 + 0.3 * math.sin(math.pi * min(share + 0.25, 1.0)))
            length *= rng.uniform(0.85, 1.1) * (1 - 0.35 * share)
        out = np.array([math.cos(angle), math.sin(angle), 0])
        end = start + length * out + np.array([0, 0, kind.rise * length * rng.uniform(0.8, 1.15)])
        limb = _bend(
            start, end, np.array([0, 0, -0.07 * length]) + 0.06 * length * rng.normal(0, 1, 3), 6
        )
        thick = kind.trunk * (0.52 - 0.22 * share)
        wood.append(
            tube(limb, thick * np.linspace(1, 0.3, 6) ** 0.8, sides=7, around=2, metres=1.4)
        )
        leaf(limb[-2], end + 0.25 * kind.cluster[2] * out, 1.0, rng.uniform(0.95, 1.12), i)
        for k in range(1, kind.twigs):
            from_point = limb[2 + (k % 2)]
            side = angle + (1 if k % 2 else -1) * rng.uniform(0.7, 1.15)
            twig = length * rng.uniform(0.34, 0.5)
            tip = from_point + twig * np.array(
                [math.cos(side), math.sin(side), rng.uniform(0.55, 1.0)]
            )
            wood.append(
                tube(_bend(from_point, tip, np.array([0, 0, -0.05 * twig]), 4),
                     thick * 0.45 * np.linspace(1, 0.35, 4), sides=5, around=1, metres=1.2)
            )  # fmt: skip
            leaf(from_point + 0.75 * (tip - from_point), tip, 0.75, rng.uniform(0.8, 1.0), i)
    leaf(trunk[-2], top + np.array([0, 0, 0.25 * kind.cluster[2]]), 0.8, 1.1, kind.limbs)
    # The heart of the crown, so that one does not see through it everywhere.
    heart = np.array([np.interp(0.72, t, trunk[:, k]) for k in range(3)])
    for i in range(3):
        angle = heading + 2.1 * i
        spread = 0.3 * kind.reach * np.array([math.cos(angle), math.sin(angle), 0.25 * i])
        leaf(heart, heart + spread, 0.2, 1.15, -1)
    return Tree(merge(wood), tuple(clusters))


def _spire(kind: Species, rng: np.random.Generator) -> Tree:
    trunk = tube(
        [(0, 0, -0.1), (0, 0, 0.5), (0, 0, kind.height - 0.6)],
        [kind.trunk, kind.trunk * 0.8, 0.03],
        sides=7,
        metres=1.2,
    )
    clusters = []
    count = 6
    for i in range(count):
        share = i / (count - 1)
        scale = 1.0 - 0.62 * share**1.6
        z = 0.95 + (kind.height - 1.75) * share
        centre = np.array([0.03 * rng.normal(), 0.03 * rng.normal(), z])
        clusters.append(
            Cluster(
                _vec(centre - [0, 0, 0.8 * kind.cluster[2] * scale]),
                (0.0, 0.0, 0.8 * kind.cluster[2] * scale),
                share,
                scale,
                float(rng.uniform(0, 2 * math.pi)),
                int(rng.integers(VARIANTS)),
                0 if i >= count - 2 else -1,
            )
        )
    return Tree(trunk, tuple(clusters))

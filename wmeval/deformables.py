"""Where the vertices of deformables are at t = 0, and what they span: for engines and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Block, Cloth, Deformable, Meshes, Rope, Scene, Sheet, Soft

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
I8 = NDArray[np.int64]

# A cube's corners (x + 2 y + 4 z) as five tetrahedra of positive volume, and mirrored in x.
_FIVE = ((0, 5, 3, 6), (0, 1, 3, 5), (0, 3, 2, 6), (0, 5, 6, 4), (3, 6, 5, 7))
_MIRRORED = tuple((a ^ 1, b ^ 1, d ^ 1, c ^ 1) for a, b, c, d in _FIVE)


@dataclass(frozen=True, eq=False)
class RestShape:
    """A deformable at t = 0.

    Attributes:
        vertices: (V, 3) [m], world frame.
        triangles: (F, 3) of a cloth, or the outside of a solid, counter-clockwise; (0, 3) of ropes.
        tetrahedra: (E, 4) of a solid; (0, 4) of others.
    """

    vertices: F8
    triangles: I4
    tetrahedra: I4


def rest_shape(item: Deformable, meshes: Meshes) -> RestShape:
    """Vertices and elements of a deformable at t = 0.

    Raises:
        UserError: its mesh is not among the meshes.
    """
    local, triangles, tetrahedra = _local(item, meshes)
    turn = quaternion_to_matrix(np.array(item.quaternion_wxyz))
    return RestShape(local @ turn.T + np.array(item.position), triangles, tetrahedra)


def vertex_count(item: Deformable, meshes: Meshes) -> int:
    """How many vertices a deformable has.

    Raises:
        UserError: as `rest_shape`.
    """
    return len(_local(item, meshes)[0])


def check_deformables(scene: Scene, meshes: Meshes) -> None:
    """Are all meshes there and all pinned vertices among the vertices?

    Raises:
        UserError: not so.
    """
    for item in scene.deformables:
        count = vertex_count(item, meshes)
        for pin in item.pins:
            if max(pin.vertices) >= count:
                raise UserError(
                    f"deformable {item.name!r} pins vertex {max(pin.vertices)} of {count}: name "
                    f"0 to {count - 1}"
                )


def _local(item: Deformable, meshes: Meshes) -> tuple[F8, I4, I4]:
    no_triangles, no_tetrahedra = np.zeros((0, 3), np.int32), np.zeros((0, 4), np.int32)
    if isinstance(item, Rope):
        return np.array(item.points), no_triangles, no_tetrahedra
    if isinstance(item, Cloth):
        if isinstance(item.surface, Sheet):
            return (*_sheet(item.surface), no_tetrahedra)
        key = item.surface.sha256
        if key not in meshes:
            raise UserError(f"cloth {item.name!r}: mesh {key[:12]}... is not among the meshes")
        mesh = meshes[key]
        return mesh.vertices.astype(np.float64), mesh.triangles.astype(np.int32), no_tetrahedra
    return _solid(item)


@lru_cache(maxsize=32)
def _sheet(sheet: Sheet) -> tuple[F8, I4]:
    (nx, ny), (sx, sy) = sheet.cells, sheet.size
    x, y = (np.arange(nx + 1) / nx - 0.5) * sx, (np.arange(ny + 1) / ny - 0.5) * sy
    grid = np.stack([*np.meshgrid(x, y), np.zeros((ny + 1, nx + 1))], axis=-1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(nx), np.arange(ny))
    a = (j * (nx + 1) + i).ravel()
    b, c, d = a + 1, a + nx + 2, a + nx + 1
    faces = np.stack([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)], axis=1)
    return grid, faces.reshape(-1, 3).astype(np.int32)


def _solid(item: Soft) -> tuple[F8, I4, I4]:
    if isinstance(item.volume, Block):
        return _block(item.volume)
    points = np.array(item.volume.vertices)
    elements = np.array(item.volume.elements, np.int32)
    volumes = tetrahedron_volumes(points, elements)
    if float(volumes.min()) <= 0:
        worst = int(np.argmin(volumes))
        raise UserError(
            f"soft {item.name!r}: element {worst} has the volume {volumes[worst]:.3g} m^3; order "
            "its vertices so that it is positive"
        )
    return points, outer_triangles(elements), elements


@lru_cache(maxsize=32)
def _block(block: Block) -> tuple[F8, I4, I4]:
    (nx, ny, nz), size = block.cells, np.array(block.size)
    k, j, i = np.indices((nz + 1, ny + 1, nx + 1)).reshape(3, -1)
    points = (np.stack([i / nx, j / ny, k / nz], axis=1) - 0.5) * size
    k, j, i = np.indices((nz, ny, nx)).reshape(3, -1)
    first = (k * (ny + 1) + j) * (nx + 1) + i
    steps = np.array(
        [x + (nx + 1) * (y + (ny + 1) * z) for z in (0, 1) for y in (0, 1) for x in (0, 1)]
    )
    corners = first[:, None] + steps
    odd = (i + j + k) % 2 == 1
    elements = np.where(
        odd[:, None, None], corners[:, np.array(_MIRRORED)], corners[:, np.array(_FIVE)]
    )
    tetrahedra = elements.reshape(-1, 4).astype(np.int32)
    return points, outer_triangles(tetrahedra), tetrahedra


def tetrahedron_volumes(vertices: F8, tetrahedra: I4) -> F8:
    """Signed volumes (E,) [m^3]."""
    a, b, c, d = (vertices[tetrahedra[:, k]] for k in range(4))
    return np.asarray(np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) / 6.0)


def outer_triangles(tetrahedra: I4) -> I4:
    """Faces (F, 3) that belong to one tetrahedron alone, counter-clockwise from outside."""
    faces = tetrahedra[:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]].reshape(-1, 3)
    _, index, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True
    )
    return np.asarray(faces[np.sort(index[count == 1])])


def edges_of(rest: RestShape) -> tuple[I8, I8]:
    """Edges (E, 2) of the triangles, lower vertex first, and how many triangles each has (E,)."""
    pairs = np.sort(rest.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    edges, count = np.unique(pairs.astype(np.int64), axis=0, return_counts=True)
    return edges, count.astype(np.int64)


def edge_lengths(vertices: F8, edges: I8) -> F8:
    """Lengths (..., E) [m] of edges (E, 2) between vertices (..., V, 3)."""
    along = vertices[..., edges[:, 1], :] - vertices[..., edges[:, 0], :]
    return np.asarray(np.linalg.norm(along, axis=-1))


def mean_edge(rest: RestShape) -> float:
    """Mean length of the triangles' edges, each counted once [m]."""
    return float(edge_lengths(rest.vertices, edges_of(rest)[0]).mean())


def sheet_edge(sheet: Sheet, side: str) -> tuple[int, ...]:
    """Vertices of an edge of a sheet: side "x-", "x+", "y-" or "y+", in ascending order."""
    (nx, ny) = sheet.cells
    numbers = np.arange((nx + 1) * (ny + 1)).reshape(ny + 1, nx + 1)
    chosen = {
        "x-": numbers[:, 0],
        "x+": numbers[:, -1],
        "y-": numbers[0],
        "y+": numbers[-1],
    }
    return tuple(chosen[side].tolist())


def block_face(block: Block, side: str) -> tuple[int, ...]:
    """Vertices of a face of a block: side "x-" to "z+", in ascending order."""
    nx, ny, nz = block.cells
    numbers = np.arange((nx + 1) * (ny + 1) * (nz + 1)).reshape(nz + 1, ny + 1, nx + 1)
    axis = 2 - "xyz".index(side[0])
    return tuple(np.take(numbers, -1 if side[1] == "+" else 0, axis=axis).ravel().tolist())

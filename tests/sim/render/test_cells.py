"""Masks of cells: never too small, and cut into rectangles without loss or overlap."""

import numpy as np
import pytest
from raster_scene import MESHES, cast, make_scene, moved

from wmeval.sim.render import dirty
from wmeval.sim.render.cells import Grid, Ground, outside
from wmeval.sim.render.pieces import SunRegion, camera_view, compile_pieces, shaded_by_others

SCENE = make_scene()
PIECES = compile_pieces(SCENE, MESHES)
SIZE = (320, 180)


def laid_out(k, camera=0):
    state = moved(SCENE, k, camera=camera)
    view = camera_view(state, *SIZE)
    rotation, centre = PIECES.world(state)
    return state, view, rotation, centre


def pixels(mask, grid):
    big = np.kron(mask, np.ones((grid.size, grid.size), bool))
    return big[: grid.height, : grid.width]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (12, 20)])
def test_rectangles_hold_the_marked_cells_once(shape):
    rng = np.random.default_rng(2)
    grid = Grid(shape[1] * 16 - 6, shape[0] * 16 - 2, 16)
    assert grid.shape == shape
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        mask = rng.random(shape) < share
        count = np.zeros((grid.height, grid.width), int)
        for x0, y0, x1, y1 in grid.rects(mask):
            count[y0:y1, x0:x1] += 1
        assert (count == pixels(mask, grid)).all()
        assert (grid.fill(grid.rects(mask)) == mask).all()
        blocks = np.zeros((grid.height, grid.width), int)
        for x0, y0, x1, y1 in grid.blocks(mask, 500):
            blocks[y0:y1, x0:x1] += 1
        assert blocks.max() <= 1
        assert (blocks >= count).all()
        assert (grid.joined(mask) >= mask).all()


def test_touching_cells_is_counted_right():
    rng = np.random.default_rng(3)
    grid = Grid(320, 180, 16)
    mask = rng.random(grid.shape) < 0.1
    low = rng.uniform(-50, 300, (200, 2))
    bounds = np.concatenate([low, low + rng.uniform(0, 60, (200, 2))], axis=1)
    found = grid.touched(mask, bounds)
    for box, touched in zip(bounds, found, strict=True):
        assert touched == (grid.mark(box[None]) & mask).any()


def test_outside_of_a_rectangle():
    a, b = (2, 3, 20, 30), (10, 0, 40, 12)
    count = np.zeros((40, 40), int)
    for x0, y0, x1, y1 in outside(a, b):
        count[y0:y1, x0:x1] += 1
    expected = np.zeros_like(count)
    expected[3:30, 2:20] = 1
    expected[0:12, 10:40] = 0
    assert (count == expected).all()
    assert outside(a, None) == [a]


@pytest.mark.parametrize("camera", [0, 1])
def test_hulls_cover_every_pixel_of_a_body(camera):
    for k in (0, 3, 6):
        state, view, rotation, centre = laid_out(k, camera)
        grid = Grid.of(*SIZE)
        _, body, _ = cast(SCENE, state)
        for piece in range(1, len(PIECES)):
            seen = body == PIECES.body[piece]
            hulls = dirty.piece_hulls(PIECES, rotation, centre, np.array([piece]), 0.0, view)
            cells = grid.cover(view, hulls)
            assert pixels(cells, grid)[seen].all()
            # And not everything: at most a cell and a half around.
            assert cells.sum() * grid.size**2 < 4 * seen.sum() + 60 * grid.size**2


@pytest.mark.parametrize("camera", [0, 1])
def test_the_floor_is_split_by_what_rays_hit(camera):
    state, view, rotation, centre = laid_out(0, camera)
    ground = Ground.of(PIECES)
    assert ground is not None
    assert ground.half == (40.0, 40.0)
    assert not ground.disc
    grid = Grid.of(*SIZE)
    covered, above = ground.split(grid, view, rotation[0], centre[0])
    everyone = tuple(b.name for b in SCENE.bodies if b.name != "floor")
    _, body, _ = cast(SCENE, state, skip=everyone)
    assert (body[pixels(covered, grid)] == 0).all()
    assert (body[pixels(above, grid)] == -1).all()
    assert covered.mean() > 0.5
    assert not (covered & above).any()


def test_shadows_on_others_are_never_missed():
    """Brute force: rays from points of each ball to the sun, against every other ball."""
    rng = np.random.default_rng(5)
    for k in range(6):
        state, view, rotation, centre = laid_out(k)
        centre = centre.copy()
        centre[1:, :2] += rng.normal(0, 0.3, (len(PIECES) - 1, 2))
        centre[1:, 2] += rng.uniform(0, 1, len(PIECES) - 1)
        drawn = state.active[PIECES.body]
        sun = SunRegion.of(SCENE, PIECES).view(state.sun_direction, view, 1024)
        found = shaded_by_others(PIECES, rotation, centre, drawn, sun, drawn)
        balls = np.flatnonzero(PIECES.ball & drawn & (PIECES.kind != 2))
        for i in balls:
            n = rng.normal(size=(4000, 3))
            n /= np.linalg.norm(n, axis=1, keepdims=True)
            points = centre[i] + PIECES.radius[i] * n[n @ sun.to_sun > 0]
            for j in balls[balls != i]:
                to = centre[j] - points
                along = to @ sun.to_sun
                miss = np.linalg.norm(to - along[:, None] * sun.to_sun, axis=1)
                if ((miss < PIECES.radius[j]) & (along > 0)).any():
                    assert found[i]


def test_boxes_mark_every_cell_they_reach_into():
    rng = np.random.default_rng(6)
    grid = Grid.of(640, 352)
    rows, columns = grid.shape
    for count in (0, 1, 7, 60):
        low = rng.uniform(-60, 700, (count, 2))
        bounds = np.concatenate([low, low + rng.uniform(0, 90, (count, 2))], axis=1)
        if count > 2:
            bounds[1] = (np.inf, np.inf, -np.inf, -np.inf)  # behind the camera
        found = grid.mark(bounds)
        s = grid.size
        for y in range(rows):
            for x in range(columns):
                reached = (
                    (bounds[:, 0] - 2 < (x + 1) * s)
                    & (bounds[:, 2] + 2 > x * s)
                    & (bounds[:, 1] - 2 < (y + 1) * s)
                    & (bounds[:, 3] + 2 > y * s)
                ).any()
                assert found[y, x] == reached

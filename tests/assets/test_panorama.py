"""A panorama fits together at its sides, hides the sky below the horizon and shows it above."""

import numpy as np
import pytest

from wmeval.assets.panorama import HEIGHT, HIGH_DEG, LOW_DEG, PANORAMAS, WIDTH, bake_panorama
from wmeval.errors import UserError
from wmeval.scene import Texture

COLORS = ((0.05, 0.16, 0.22), (0.62, 0.50, 0.34), (0.36, 0.29, 0.22), (0.16, 0.22, 0.08))


TOP_DEG = {"coast": 8.0, "park": 8.0, "city": 9.0}
"""Nothing rises higher."""


@pytest.fixture(scope="module", params=sorted(PANORAMAS))
def builder(request):
    return request.param


@pytest.fixture(scope="module")
def picture(builder):
    return bake_panorama(Texture(builder=builder, colors=COLORS, seed=3)).astype(float)


def row(elevation):
    return int((HIGH_DEG - elevation) / (HIGH_DEG - LOW_DEG) * HEIGHT)


def test_it_hides_the_sky_from_the_horizon_down(picture, builder):
    assert picture.shape == (HEIGHT, WIDTH, 4)
    cover = picture[..., 3]
    assert (cover[row(-0.3) :] == 255).all()
    assert (cover[: row(TOP_DEG[builder])] == 0).all()
    above = cover[row(0.5)] > 128
    assert above.mean() > 0.02
    if builder == "coast":  # land rises over the sea here and there
        assert above.mean() < 0.8


def test_its_sides_fit_together(picture):
    across = np.abs(np.diff(picture, axis=1)).mean(axis=(0, 2))
    seam = np.abs(picture[:, 0] - picture[:, -1]).mean()
    assert seam < np.quantile(across, 0.999) + 1.0


def test_no_part_is_flat(picture):
    for elevation in (-0.8, -2.0, -6.0, -15.0):
        band = picture[row(elevation) : row(elevation) + 6, :, :3]
        assert band.std(axis=(0, 1)).max() > 2


def test_seeds_differ_and_unknown_builders_are_named():
    one, two = (bake_panorama(Texture(builder="coast", colors=COLORS, seed=s)) for s in (1, 2))
    assert not np.array_equal(one, two)
    with pytest.raises(UserError, match="coast"):
        bake_panorama(Texture(builder="moon", colors=COLORS))

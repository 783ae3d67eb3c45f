"""Panoramas close on themselves, leave the sky free above and hide it below the horizon."""

import numpy as np
import pytest

from wmeval.assets.panorama import HEIGHT, HIGH_DEG, LOW_DEG, PANORAMAS, WIDTH, bake_panorama
from wmeval.assets.settings.light import CITY, COAST, PARK
from wmeval.errors import UserError
from wmeval.scene import Texture

TEXTURES = {t.builder: t for t in (CITY, COAST, PARK)}


def test_every_builder_is_used():
    assert set(TEXTURES) == set(PANORAMAS)


@pytest.mark.parametrize("name", TEXTURES)
def test_it_goes_around_and_ends_at_the_sky(name):
    picture = bake_panorama(TEXTURES[name])
    assert picture.shape == (HEIGHT, WIDTH, 4)
    horizon = round(HEIGHT * HIGH_DEG / (HIGH_DEG - LOW_DEG))
    assert (picture[horizon + 4 :, :, 3] == 255).all()
    assert (picture[:4, :, 3] == 0).all()
    seen = picture[horizon + 4 :, :, :3].astype(float)
    seam = np.abs(seen[:, 0] - seen[:, -1]).mean()
    steps = np.abs(np.diff(seen, axis=1)).mean(axis=(0, 2))
    assert seam <= 1.5 * steps.max()
    again = bake_panorama.__wrapped__(TEXTURES[name])
    assert (again == picture).all()


def test_an_unknown_builder_names_the_known_ones():
    with pytest.raises(UserError, match="coast, park, city"):
        bake_panorama(Texture(builder="moon", colors=((0.1, 0.1, 0.1),)))

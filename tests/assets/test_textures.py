"""Textures are seamless, rich at several scales, repeatable, and follow their colours."""

import numpy as np
import pytest

from wmeval.assets import textures
from wmeval.assets.object_textures import OBJECT_TEXTURES
from wmeval.assets.patterns import periodic_field
from wmeval.assets.textures import TEXTURES, bake, decode_srgb, encode_srgb
from wmeval.errors import UserError
from wmeval.scene import Texture

NAMES = (
    "checker", "tiles", "planks", "noise", "speckle", "stripes", "marble", "concrete", "brushed",
    "ball_panels", "grid", "grass", "asphalt",
)  # fmt: skip
COLOR = (0.35, 0.25, 0.15)


def baked(name, size=256, colors=(COLOR,), seed=0):
    return bake(Texture(builder=name, colors=colors, seed=seed), size)


def test_the_table_holds_the_promised_builders():
    assert set(NAMES) <= set(TEXTURES)


@pytest.mark.parametrize("name", TEXTURES)
def test_shape_and_repeatability(name):
    picture = baked(name)
    assert picture.shape == (256, 256, 3)
    assert picture.dtype == np.uint8
    assert not picture.flags.writeable
    assert baked(name) is picture  # cached
    textures._baked.clear()
    assert (baked(name) == picture).all()
    assert (baked(name, seed=1) != picture).any()


@pytest.mark.parametrize("name", [n for n in TEXTURES if n != "ball_panels"])
def test_opposite_edges_fit(name):
    picture = baked(name).astype(float).mean(-1)
    if name in ("cube_stickers", "dice_faces"):
        return  # atlases
    # Maps over a thing fit together around it alone.
    for axis in (1,) if name in OBJECT_TEXTURES and name != "plain" else (0, 1):
        across = np.abs(np.diff(picture, axis=axis)).mean(axis=1 - axis)
        first, last = np.take(picture, 0, axis), np.take(picture, -1, axis)
        # The step over the seam is no larger than the largest step within (a joint, a stripe).
        assert np.abs(first - last).mean() <= across.max() * 1.05 + 0.5


def test_a_ball_has_no_seam_and_no_pinch():
    picture = baked("ball_panels").astype(float)
    # Around: the first and the last column are neighbours on the ball.
    assert np.abs(picture[:, 0] - picture[:, -1]).mean() < 12
    # A pole is one point: its row hardly varies.
    inner = picture[100:150].std(axis=1).mean()
    assert picture[0].std(axis=0).mean() < 0.35 * inner
    assert picture[-1].std(axis=0).mean() < 0.35 * inner


@pytest.mark.parametrize("name", TEXTURES)
def test_contrast_at_several_scales(name):
    """Flow estimators fail on flat colour: every octave of every texture has some contrast."""
    picture = baked(name, 512).astype(float).mean(-1)
    for factor in (1, 4, 16):
        coarse = picture.reshape(512 // factor, factor, 512 // factor, factor).mean((1, 3))
        step = np.abs(np.diff(coarse, axis=1))
        assert step.mean() > 0.25
    # No patch of 16 texels is flat.
    patches = picture.reshape(32, 16, 32, 16).std(axis=(1, 3))
    assert patches.min() > 0.5


@pytest.mark.parametrize("name", TEXTURES)
def test_colours_come_from_the_texture(name):
    red = baked(name, colors=((0.6, 0.05, 0.05), (0.4, 0.02, 0.02), (0.5, 0.1, 0.1)))
    mean = decode_srgb(red).mean(axis=(0, 1))
    assert mean[0] > 3 * mean[1]
    assert mean[0] > 3 * mean[2]


def test_every_turn_of_a_ball_shows():
    """No rotation of the cover by a multiple of 15 degrees about z leaves it as it was."""
    picture = baked("ball_panels").astype(float)
    for step in range(1, 24):
        turned = np.roll(picture, round(256 * step / 24), axis=1)
        assert np.abs(turned - picture).mean() > 4


def test_srgb_round_trip():
    codes = np.arange(256, dtype=np.uint8)
    assert (encode_srgb(decode_srgb(codes)) == codes).all()
    assert decode_srgb(np.array([188], np.uint8))[0] == pytest.approx(0.5029, abs=1e-3)


def test_an_unknown_builder_names_the_known_ones():
    with pytest.raises(UserError, match="planks"):
        bake(Texture(builder="velvet", colors=(COLOR,)), 64)


def test_grain_finer_than_the_texels_is_none_not_nan():
    coarse = periodic_field(8, np.random.default_rng(0), low=40.0)
    assert (coarse == 0).all()
    fine = periodic_field(128, np.random.default_rng(0), low=40.0)
    assert fine.std() == pytest.approx(1, rel=1e-5)

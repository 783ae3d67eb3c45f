"""Flow metrics against closed forms on synthetic fields."""

import math
from fractions import Fraction

import numpy as np
import pytest

from wmeval.eval.metrics.flow import (
    compose,
    compose_all,
    cosine_similarity,
    dynamic_mask,
    relative_epe,
    sampled_frames,
)


def moving_patch(dx=4.0, dy=3.0, size=(40, 60)):
    """A still picture in which a quarter moves."""
    flow = np.zeros((*size, 2), np.float32)
    flow[10:30, 15:45] = (dx, dy)
    return flow


def test_frames_are_sampled_at_four_hertz_and_no_more_than_32():
    times = tuple(Fraction(j, 24) for j in range(24 * 10 + 1))
    frames = sampled_frames(times)
    assert frames[:3] == (0, 6, 12)
    assert len(frames) == 32
    assert sampled_frames(times[:13]) == (0, 6, 12)
    # 25 fps has no frame at 1/4 s: the tie at 6.25 goes to the nearest frame.
    assert sampled_frames(tuple(Fraction(j, 25) for j in range(26))) == (0, 6, 12, 19, 25)
    assert sampled_frames(tuple(Fraction(j, 2) for j in range(4))) == (0, 1, 2, 3)
    assert sampled_frames(()) == ()


def test_composition_of_affine_maps_is_exact_inside():
    y, x = np.mgrid[0:50, 0:70].astype(float)
    # p -> A p + t; bilinear sampling of an affine field is exact.
    first = np.stack([0.02 * x + 1.0, -0.01 * y + 0.5], axis=-1)
    second = np.stack([0.03 * y - 1.5, 0.01 * x], axis=-1)
    both = compose(first, second)
    x1, y1 = x + first[..., 0], y + first[..., 1]
    expected = np.stack([x1 + 0.03 * y1 - 1.5 - x, y1 + 0.01 * x1 - y], axis=-1)
    inside = (x1 >= 0) & (y1 >= 0) & (x1 <= 69) & (y1 <= 49)
    assert np.abs(both - expected)[inside].max() < 1e-12
    assert np.isnan(both[~inside]).all()
    assert inside.mean() > 0.9


def test_composition_does_not_pass_over_unmeasured_pixels():
    second = np.ones((5, 5, 2))
    second[2, 2] = np.nan
    first = np.zeros((5, 5, 2))
    out = compose(first, second)
    assert np.isnan(out[2, 2]).all()
    assert np.isfinite(out).all(axis=-1).sum() == 24  # a neighbour of weight 0 spreads no NaN
    assert np.allclose(compose_all([first, first, first]), 0)
    with pytest.raises(ValueError, match="no flow"):
        compose_all([])


def test_the_mask_holds_what_moves_not_the_still_background():
    mask = dynamic_mask(moving_patch())
    assert mask.sum() == 20 * 30
    assert not dynamic_mask(np.zeros((8, 8, 2))).any()
    assert not dynamic_mask(np.full((8, 8, 2), 0.2)).any()  # below 0.5 px
    assert not dynamic_mask(np.full((8, 8, 2), np.nan)).any()
    ramp = np.zeros((1, 100, 2))
    ramp[0, :, 0] = np.arange(100.0)
    assert dynamic_mask(ramp).sum() == 25  # the top quarter


def test_closed_forms():
    reference = [moving_patch()]
    assert relative_epe(reference, reference).value == 0
    assert cosine_similarity(reference, reference).value == pytest.approx(1)
    still = [np.zeros_like(reference[0])]
    assert relative_epe(still, reference).value == pytest.approx(1)
    assert cosine_similarity(still, reference).value == 0
    assert cosine_similarity([-reference[0]], reference).value == pytest.approx(-1)
    assert relative_epe([1.5 * reference[0]], reference).value == pytest.approx(0.5)
    turned = [reference[0][..., ::-1] * np.array([-1, 1])]
    assert cosine_similarity(turned, reference).value == pytest.approx(0, abs=1e-6)
    assert relative_epe(turned, reference).value == pytest.approx(math.sqrt(2))


def test_speed_errors_are_silent_in_the_cosine_and_graded_in_the_error():
    reference = [moving_patch()]
    doses = [relative_epe([k * reference[0]], reference).value for k in (1, 1.1, 1.3, 1.6)]
    assert doses == pytest.approx([0, 0.1, 0.3, 0.6], abs=1e-6)
    for k in (1.1, 1.6):
        assert cosine_similarity([k * reference[0]], reference).value == pytest.approx(1)


def test_empty_masks_and_unmeasured_pixels_are_counted():
    still = np.zeros((40, 60, 2))
    candidate = moving_patch()
    candidate[10:20] = np.nan
    score = relative_epe([candidate, still], [moving_patch(), still])
    assert (score.pairs, score.empty) == (1, 1)
    assert score.coverage == pytest.approx(0.5)
    assert score.value == 0
    nothing = relative_epe([still], [still])
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.coverage)

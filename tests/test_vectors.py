"""Plain-number vectors say what the arrays' conventions say."""

import math

import numpy as np
import pytest

from wmeval import conventions, vectors


@pytest.fixture
def quaternions():
    drawn = np.random.default_rng(4).normal(size=(20, 2, 4))
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def test_product_and_axes_are_those_of_arrays(quaternions):
    for a, b in quaternions:
        both = vectors.product(tuple(a.tolist()), tuple(b.tolist()))
        assert both == tuple(conventions.quaternion_multiply(a, b).tolist())
        columns = np.array(vectors.axes(tuple(a.tolist()))).T
        np.testing.assert_allclose(columns, conventions.quaternion_to_matrix(a), atol=1e-15)


def test_vectors_are_those_of_arrays():
    a, b = (0.3, -1.2, 2.0), (1.7, 0.1, -0.4)
    assert vectors.plus(a, b) == tuple(np.add(a, b).tolist())
    assert vectors.minus(a, b) == tuple(np.subtract(a, b).tolist())
    assert vectors.negative(a) == (-0.3, 1.2, -2.0)
    assert vectors.scaled(a, 0.5) == (0.15, -0.6, 1.0)
    assert vectors.cross(a, b) == pytest.approx(np.cross(a, b).tolist())
    assert vectors.dot(a, vectors.cross(a, b)) == pytest.approx(0)
    assert math.hypot(*a) == pytest.approx(vectors.length(a))
    assert vectors.unit(a) == pytest.approx(np.array(a) / np.linalg.norm(a))

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rollout_maker import layer_frames, make_rollout

from wmeval.datasets import codecs
from wmeval.datasets.hdf5 import _cost as gzip_cost
from wmeval.datasets.zarr_store import _cost as zstd_cost


@settings(max_examples=80, deadline=None)
@given(
    data=st.data(),
    dtype=st.sampled_from(["float32", "uint16", "uint8", "float64"]),
    shape=hnp.array_shapes(min_dims=3, max_dims=4, max_side=5),
)
def test_packing_is_exact_for_every_bit_pattern(data, dtype, shape):
    raw = data.draw(hnp.arrays(codecs.bits_dtype(dtype), shape)).view(dtype)
    plate = data.draw(hnp.arrays(codecs.bits_dtype(dtype), shape[1:]))
    packing = codecs.Packing("bits_xor", plate, {})
    back = packing.unpack(packing.pack(raw), np.dtype(dtype))
    assert back.dtype == raw.dtype
    assert back.tobytes() == raw.tobytes()


@pytest.mark.parametrize("cost", [gzip_cost, zstd_cost])
def test_xor_is_chosen_when_the_picture_stands_still(cost):
    rng = np.random.default_rng(0)
    background = rng.normal(10, 3, (24, 32)).astype(np.float32)
    layer = np.repeat(background[None], 12, axis=0)
    for i in range(12):
        layer[i, 5:9, i : i + 4] = 2.0
    packing = codecs.choose(layer, still=True, cost=cost)
    assert packing.codec == "bits_xor"
    assert packing.plate is not None
    # The plate is the background where most frames see it.
    assert (packing.plate.view(np.float32) == background).mean() > 0.97
    assert packing.trial["bits_xor"] < packing.trial["bytes"] / 4


def test_xor_is_not_chosen_when_it_does_not_pay_or_the_camera_moves():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 2**16, (9, 24, 32)).astype(np.uint16)
    assert codecs.choose(noise, still=True, cost=zstd_cost).codec == "bytes"
    still = layer_frames("depth", 9, 24, 32, rng)
    assert codecs.choose(still, still=False, cost=zstd_cost).codec == "bytes"
    assert codecs.choose(still[:1], still=True, cost=zstd_cost).codec == "bytes"


def test_a_still_camera_is_one_whose_every_bit_stays():
    still = make_rollout(frames=4, layers=("ids",))
    moving = make_rollout(frames=4, layers=("ids",), moving_camera=True)
    assert codecs.is_still(still.frames, still.log.cameras)
    assert not codecs.is_still(moving.frames, moving.log.cameras)

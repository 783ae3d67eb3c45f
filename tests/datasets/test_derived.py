"""Flow that is derived on reading equals reprojection of a sliding wall, and costs no bytes."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from rollout_maker import make_rollout

from wmeval.conventions import intrinsics, project, unproject
from wmeval.datasets.derived import flow_layer
from wmeval.datasets.rollout import Frames, read, write_hdf5
from wmeval.errors import UserError

WIDTH, HEIGHT = 80, 60


@pytest.fixture
def sliding_wall():
    """Body 0 fills the view at 4 m depth and slides 0.02 m a state, without turning."""
    rollout = make_rollout(steps=2, bodies=1, contacts=0)
    count = len(rollout.log)
    state = dataclasses.replace(
        rollout.log.state,
        position=np.array([[[0.02 * k, 0.0, 0.01 * k]] for k in range(count)]),
        quaternion_wxyz=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1, 1)),
        active=np.ones((count, 1), bool),
    )
    K = intrinsics(float(rollout.log.cameras.fov_y[0, 1]), WIDTH, HEIGHT)
    frames = Frames(
        "static",
        np.array([0, 4, 8]),
        (Fraction(0), Fraction(1, 60), Fraction(1, 30)),
        np.tile(K, (3, 1, 1)),
        {
            "depth": np.full((3, HEIGHT, WIDTH), 4.0, np.float32),
            "ids": np.ones((3, HEIGHT, WIDTH), np.uint16),
        },
    )
    log = dataclasses.replace(rollout.log, state=state)
    return dataclasses.replace(rollout, log=log, frames=frames)


def test_flow_is_derived_on_reading_and_equals_reprojection(sliding_wall, tmp_path):
    rollout = read(write_hdf5(sliding_wall, tmp_path / "a.h5"))
    flow = rollout.frames.layers["flow"]
    assert flow.shape == (3, HEIGHT, WIDTH, 2)
    K, pose = rollout.frames.K[0], rollout.log.cameras.T_world_camera[0, 1]
    pixel = np.array([31.5, 20.5])
    point = unproject(pixel, np.float64(4.0), K, pose)
    moved, _ = project(point + np.array([0.08, 0.0, 0.04]), K, pose)
    assert np.abs(flow[0, 20, 31] - (moved - pixel)).max() < 1e-3
    assert np.abs(moved - pixel).max() > 0.5
    assert np.isnan(flow[2]).all()


def test_derived_layers_take_no_space(sliding_wall, tmp_path):
    first = write_hdf5(sliding_wall, tmp_path / "a.h5")
    second = write_hdf5(read(first), tmp_path / "b.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    asked = read(write_hdf5(read(second), tmp_path / "c.h5", layers=("flow", "ids", "depth")))
    assert not getattr(asked.frames.layers["flow"], "derived", False)
    expected = read(first).frames.layers["flow"]
    assert asked.frames.layers["flow"][:].tobytes() == expected[:].tobytes()


def test_without_depth_or_ids_there_is_no_flow(tmp_path):
    rollout = make_rollout(frames=2, layers=("depth",))
    assert "flow" not in read(write_hdf5(rollout, tmp_path / "a.h5")).frames.layers
    with pytest.raises(UserError, match="'ids'"):
        flow_layer(rollout)

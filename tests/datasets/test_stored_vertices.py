"""Vertices of deformables in rollouts: in memory, HDF5 and Zarr."""

import dataclasses
import json

import h5py
import numpy as np
import pytest
import zarr
from rollout_maker import make_rollout

from wmeval.datasets.hdf5 import read_hdf5, write_hdf5
from wmeval.datasets.zarr_store import read_zarr, write_zarr
from wmeval.scene import Cloth, Joint, Rope, Scene, Sheet
from wmeval.sim import wire
from wmeval.sim.protocol import render_state

CLOTH = Cloth(
    name="flag",
    surface=Sheet(size=(0.4, 0.2), cells=(2, 1)),
    areal_density=0.1,
    stretch=100.0,
    shear=40.0,
    bending=1e-5,
)
ROPE = Rope(name="cord", points=((0, 0, 0), (1, 0, 0)), radius=0.01, density=1e3, stretch=10.0)
JOINT = Joint(name="pivot", kind="hinge", body="body 0", pivot=(0, 0, 1))


def with_vertices(rollout, **changed):
    """The rollout of a scene with a cloth and a rope."""
    rng = np.random.default_rng(1)
    states = len(rollout.log.state)
    vertices = {"flag": rng.normal(size=(states, 6, 3)), "cord": rng.normal(size=(states, 2, 3))}
    vertices |= changed
    scene = Scene.model_validate(
        {**rollout.scene.model_dump(), "deformables": (CLOTH, ROPE), "joints": (JOINT,)}
    )
    state = dataclasses.replace(
        rollout.log.state, vertices={k: v for k, v in vertices.items() if v is not None}
    )
    log = dataclasses.replace(rollout.log, state=state)
    return dataclasses.replace(rollout, scene=scene, log=log)


@pytest.fixture(scope="module")
def rollout():
    return with_vertices(make_rollout(frames=2, layers=("depth",), modal=("slosh",)))


def test_files_and_stores_keep_every_bit_and_say_what_they_are(rollout, tmp_path):
    path = write_hdf5(rollout, tmp_path / "a.h5")
    store = write_zarr(rollout, tmp_path / "a.zarr")
    for again in (read_hdf5(path), read_zarr(store)):
        assert again.scene == rollout.scene
        assert again.log.state.sha256() == rollout.log.state.sha256()
        assert sorted(again.log.state.vertices) == ["cord", "flag"]
    with h5py.File(path) as file:
        kept = file["vertices/flag"].attrs
        assert (kept["unit"], json.loads(kept["dims"])) == ("m", ["state", "vertex", "3"])
    assert zarr.open_group(str(store), mode="r")["vertices/cord"].attrs["unit"] == "m"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cord": None}, "vertices/cord is missing: the scene declares it"),
        ({"flag": np.zeros((25, 5, 3))}, r"vertices/flag is float64 .*; it needs float64 \(25, 6"),
        ({"flag": np.full((25, 6, 3), np.nan)}, "vertices/flag is not finite"),
        ({"sail": np.zeros((25, 1, 3))}, "vertices/sail is not declared by the scene"),
    ],
)
def test_vertices_that_are_not_the_scene_s_are_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        with_vertices(make_rollout(), **changed)


def test_logs_with_vertices_are_cut_joined_sent_and_looked_at(rollout):
    log = rollout.log
    both = type(log).concatenate([log.rows(slice(0, 3)), log.rows(slice(3, None))])
    assert both.state.sha256() == log.state.sha256()
    header, arrays = wire.pack_log(log)
    sent = wire.unpack_log(json.loads(json.dumps(header)), arrays)
    assert sent.state.sha256() == log.state.sha256()
    seen = render_state(log, 2, rollout.scene, 0)
    assert (seen.vertices["flag"] == log.state.vertices["flag"][2]).all()
    moved = {**log.state.vertices, "cord": log.state.vertices["cord"] + 1e-12}
    assert dataclasses.replace(log.state, vertices=moved).sha256() != log.state.sha256()

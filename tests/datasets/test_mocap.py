"""Motion capture: round trips, units and axes, resampling, one clear error."""

import json

import numpy as np
import pytest

from wmeval.datasets.mocap import (
    FORMAT,
    Header,
    Mocap,
    Signal,
    Uncertainty,
    Units,
    make_trial,
    read_mocap,
    write_mocap,
)
from wmeval.errors import UserError

RNG = np.random.default_rng(2)


def quaternions(*shape):
    q = RNG.normal(size=(*shape, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def header(**changes):
    fields = {
        "format": FORMAT, "title": "two cubes and a sheet", "bodies": ("a", "b"),
        "markers": ("m1", "m2", "m3"), "signals": (Signal(name="torque", unit="N m"),),
        "faces": ((0, 1, 2),), "rate": 180.0, "family": "slope_slider", "subtask": "2",
        "material": "wood", "metadata": {"mass_kg": 0.09},
        "uncertainty": Uncertainty(position=0.4, rotation=1.0, signals={"torque": 0.01}),
    }  # fmt: skip
    return Header(**{**fields, **changes})


def arrays(n=7, bodies=2, markers=3):
    out = {
        "positions": RNG.normal(size=(n, bodies, 3)),
        "quaternions_wxyz": quaternions(n, bodies),
        "angular_velocities": RNG.normal(size=(n, bodies, 3)),
        "markers": RNG.normal(size=(n, markers, 3)),
        "signals": RNG.normal(size=(n, 1)),
    }
    out["markers"][2, 1] = np.nan
    return out


def recording(**changes):
    head = header(**changes)
    trials = tuple(
        make_trial(head, f"t{k}", np.arange(7 + k) / 180, arrays(7 + k), metadata={"run": k})
        for k in range(3)
    )
    return Mocap(head, trials)


def equal(a, b):
    for x, y in zip(a.trials, b.trials, strict=True):
        assert (x.name, dict(x.metadata)) == (y.name, dict(y.metadata))
        for name in ("times", "positions", "quaternions_wxyz", "markers", "signals",
                     "angular_velocities"):  # fmt: skip
            assert getattr(y, name) == pytest.approx(getattr(x, name), nan_ok=True), name
        assert y.linear_velocities is None


@pytest.mark.parametrize("ending", ["json", "h5"])
def test_a_recording_survives_its_file(tmp_path, ending):
    made = recording()
    path = write_mocap(made, tmp_path / f"a.{ending}")
    back = read_mocap(path)
    equal(made, back)
    assert back.header == made.header
    again = tmp_path / f"b.{ending}"
    write_mocap(made, again)
    assert again.read_bytes() == (tmp_path / f"a.{ending}").read_bytes()


def test_millimetres_degrees_and_y_up_become_si(tmp_path):
    head = header(units=Units(length="mm", angle="deg"), up="y", faces=())
    given = arrays()
    made = make_trial(head, "t", np.arange(7) / 180, given)
    up = given["positions"][..., 1]
    assert made.positions[..., 2] == pytest.approx(up / 1e3)
    assert made.positions[..., 1] == pytest.approx(-given["positions"][..., 2] / 1e3)
    assert made.angular_velocities[..., 2] == pytest.approx(
        np.radians(given["angular_velocities"][..., 1])
    )
    # A body's own x axis points the same way before and after.
    q, r = given["quaternions_wxyz"], made.quaternions_wxyz

    def x_axis(w, x, y, z):
        return np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])

    before, after = x_axis(*np.moveaxis(q, -1, 0)), x_axis(*np.moveaxis(r, -1, 0))
    assert after == pytest.approx(np.stack([before[0], -before[2], before[1]]))
    # Uncertainties go with them into the file.
    path = write_mocap(Mocap(head, (made,)), tmp_path / "a.h5")
    back = read_mocap(path)
    assert back.header.units == Units()
    assert back.header.uncertainty.position == pytest.approx(0.4e-3)
    assert back.header.uncertainty.rotation == pytest.approx(np.radians(1))
    assert back.trials[0].positions == pytest.approx(made.positions)


def test_resampling_is_exact_on_lines_and_great_circles():
    head = Header(format=FORMAT, title="a line", bodies=("a",))
    t = np.sort(np.concatenate([[0, 1], RNG.uniform(0, 1, 40)]))
    angle = 2.0 * t
    q = np.stack([np.cos(angle / 2), 0 * t, 0 * t, np.sin(angle / 2)], axis=1)
    q[::3] *= -1  # the sign of a quaternion means nothing
    made = make_trial(
        head, "t", t, {"positions": np.stack([t, 2 * t, 0 * t], axis=1)[:, None],
                       "quaternions_wxyz": q[:, None]},
    ).resampled(30)  # fmt: skip
    assert made.times == pytest.approx(np.arange(31) / 30)
    assert made.positions[:, 0, 1] == pytest.approx(2 * made.times)
    turned = 2 * np.arctan2(made.quaternions_wxyz[:, 0, 3], made.quaternions_wxyz[:, 0, 0])
    assert np.cos(turned) == pytest.approx(np.cos(2 * made.times))
    assert np.linalg.norm(made.quaternions_wxyz, axis=-1) == pytest.approx(1)


def test_a_gap_stays_a_gap():
    head = Header(format=FORMAT, title="a gap", markers=("m",))
    x = np.arange(7.0)[:, None, None] * np.ones(3)
    x[3] = np.nan
    made = make_trial(head, "t", np.arange(7) / 180, {"markers": x}).resampled(60)
    assert np.isnan(made.markers[1]).all()  # frame 3 itself
    assert made.markers[2, 0] == pytest.approx(6)
    assert np.isfinite(
        make_trial(head, "t", np.arange(7) / 180, {"markers": x}).resampled(90).markers[1]
    ).all()


@pytest.mark.parametrize("ending", ["json", "h5"])
def test_a_body_without_orientation_needs_none(tmp_path, ending):
    """A ball with one marker: no array, one of null and one of NaN are the same."""
    head = header(bodies=("ball",), markers=(), signals=(), faces=(), uncertainty=Uncertainty())
    times, x = np.arange(7) / 180, RNG.normal(size=(7, 1, 3))
    unknown = np.full((7, 1, 4), np.nan)
    given = ({}, {"quaternions_wxyz": unknown}, {"quaternions_wxyz": [[[None] * 4]] * 7})
    trials = [make_trial(head, "t", times, {"positions": x, **more}) for more in given]
    written = []
    for number, trial in enumerate(trials):
        assert np.isnan(trial.quaternions_wxyz).all()
        assert trial.quaternions_wxyz.shape == (7, 1, 4)
        assert np.isfinite(trial.resampled(90).positions).all()
        path = tmp_path / f"{number}.{ending}"
        write_mocap(Mocap(head, (trial,)), path)
        written.append(path.read_bytes())
        (back,) = read_mocap(path).trials
        assert np.isnan(back.quaternions_wxyz).all()
        assert back.positions == pytest.approx(x)
    assert written[0] == written[1] == written[2]
    assert b"quaternions" not in written[0]


def test_trials_are_cut_to_one_length():
    made = recording().aligned(90)
    assert {len(t) for t in made} == {4}
    assert {t.positions.shape for t in made} == {(4, 2, 3)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format="mocap/2"), "format"),
        (lambda d: d.update(colour="red"), "colour"),
        (lambda d: d.update(bodies=["a", "a"]), "'a' stands twice"),
        (lambda d: d.update(faces=[[0, 1, 3]]), r"faces: \(0, 1, 3\)"),
        (lambda d: d.update(trials={}), "trials must be a list"),
        (lambda d: d.update(trials=[]), "holds no trial"),
        (lambda d: d["trials"][1].update(name="t0"), "'t0' stands twice"),
        (lambda d: d["trials"][0].pop("times"), "times are missing"),
        (lambda d: d["trials"][0].pop("positions"), r"positions of a, b are missing"),
        (lambda d: d["trials"][0]["times"].reverse(), "ascend strictly"),
        (lambda d: d["trials"][0]["markers"].pop(), r"markers are \(6, 3, 3\); \(7, 3, 3\)"),
        (lambda d: d["trials"][0]["markers"][0].pop(), "not a table of numbers"),
        (lambda d: d["trials"][0]["signals"][0].__setitem__(0, "x"), "not a table of numbers"),
        (lambda d: d["trials"][0]["signals"][0].__setitem__(0, 1e999), "infinite"),
        (lambda d: d["trials"][0]["quaternions_wxyz"][5][1].__setitem__(0, 9), "frame 5"),
        (lambda d: d["trials"][0].update(weights=[1]), "no array 'weights'"),
        (lambda d: d.update(uncertainty={"signals": {"force": 1}}), "no signal 'force'"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, change, message):
    path = tmp_path / "a.json"
    write_mocap(recording(), path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=message) as caught:
        read_mocap(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_other_files_are_refused(tmp_path):
    import h5py

    with pytest.raises(UserError, match=r"\.json or \.h5"):
        read_mocap(tmp_path / "a.csv")
    with pytest.raises(UserError, match="no such file"):
        read_mocap(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match="no JSON"):
        read_mocap(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[" * 100000)
    with pytest.raises(UserError, match="no JSON"):
        read_mocap(tmp_path / "a.json")
    (tmp_path / "a.h5").write_bytes(b"none")
    with pytest.raises(UserError, match="no readable HDF5"):
        read_mocap(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(UserError, match="no motion capture"):
        read_mocap(tmp_path / "b.h5")


def test_nothing_measured_is_no_recording():
    with pytest.raises(ValueError, match="name what is measured"):
        Header(format=FORMAT, title="none")


def test_a_rate_that_the_times_contradict_is_refused(tmp_path):
    def made(rate, step, count=9):
        header = Header(format="wmeval-mocap/1", title="made up", rate=rate, markers=("m",))
        times = np.arange(count) * step
        trial = make_trial(header, "a", times, {"markers": np.zeros((count, 1, 3))})
        path = tmp_path / f"{rate}-{step}.json"
        return read_mocap(write_mocap(Mocap(header, (trial,)), path))

    assert made(180.0, 1 / 180)
    assert made(180.0, 1 / 100)
    assert made(None, 7.0)
    assert made(180.0, 1, count=1)
    for rate, step, said in ((180.0, 1000 / 180, "0.18"), (30.0, 1 / 180, "180")):
        with pytest.raises(UserError, match=f"its times are {said} frames a second, the header"):
            made(rate, step)

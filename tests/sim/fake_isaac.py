"""A stand-in for Isaac Sim's program: a launcher that ignores the script it is given.

What it runs instead knows free fall, led bodies and nothing else, in closed form, and speaks the
file formats as the documentation has them, by code of its own. ``FAKE_ISAAC`` says how it is to
fail.
"""

import hashlib
import json
import os
import signal
import sys
import time
from fractions import Fraction

import numpy as np

LAUNCHER = """#!/bin/sh
# As python.sh: another Python for what follows.
case "$1" in
  -I) exec {python} "$@" ;;
esac
shift
exec {python} -I {fake} "$@"
"""


def write_launcher(folder):
    """A python.sh, with its VERSION beside it."""
    path = folder / "python.sh"
    path.write_text(LAUNCHER.format(python=sys.executable, fake=os.path.abspath(__file__)))
    path.chmod(0o755)
    (folder / "VERSION").write_text("6.0.0-rc.59+fake.1234\n")
    return str(path)


def digest(header, arrays):
    made = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        a = np.ascontiguousarray(arrays[name])
        made.update(f"{name}|{a.dtype.str}|{a.shape}".encode())
        made.update(a.tobytes())
    return made.hexdigest()


def solve(job, arrays):
    """Free fall from the start, or from the kick; led bodies where they are led."""
    states, dt, settle = arrays["states"], float(Fraction(job["dt"])), job["settle"]
    bodies, g = job["bodies"], np.array(job["gravity"])
    shape = (len(states), len(bodies))
    out = {"states": np.array(states, np.int64), "position": np.zeros((*shape, 3))}
    out["quaternion_wxyz"] = np.zeros((*shape, 4))
    out["linear_velocity"], out["angular_velocity"] = np.zeros((2, *shape, 3))
    times = np.array(states)[:, None] * dt
    for i, body in enumerate(bodies):
        out["position"][:, i], out["quaternion_wxyz"][:, i] = (
            body["position"],
            body["quaternion_wxyz"],
        )
        if body["motion"] == "dynamic":
            v = np.array(job["kick"]["velocities"].get(str(i), body["linear_velocity"]), float)
            out["position"][:, i] += v * times + g * times**2 / 2
            out["linear_velocity"][:, i] = v + g * times
        if i in job["led"]:
            poses = arrays["led"][np.array(states) + settle, job["led"].index(i)]
            out["position"][:, i], out["quaternion_wxyz"][:, i] = poses[:, :3], poses[:, 3:]
    for item in job["deformables"]:
        rest = arrays[f"rest/{item['name']}/vertices"]
        out[f"vertices/{item['name']}"] = rest + (g * times**2 / 2)[:, None, :]
    return out


def main(job_path, states_path):
    how = os.environ.get("FAKE_ISAAC", "")
    with np.load(job_path, allow_pickle=False) as found:
        arrays = {n: found[n] for n in found.files}
    job = json.loads(bytes(arrays.pop("header").tobytes()))
    if os.environ.get("FAKE_ISAAC_KEEP"):
        with open(os.environ["FAKE_ISAAC_KEEP"], "wb") as file, open(job_path, "rb") as given:
            file.write(given.read())
    if how != "silent":
        print("[kit] loading a great many extensions", flush=True)
    if how == "raise":
        print("wmeval: JobError: no GPU is there", file=sys.stderr)
        print("[kit] closing", flush=True)
        sys.exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "silent":
        sys.stdout.flush()
        os._exit(1)
    if how == "hang":
        if os.environ.get("FAKE_ISAAC_PID"):
            with open(os.environ["FAKE_ISAAC_PID"], "w") as file:
                file.write(str(os.getpid()))
        time.sleep(600)
    if how == "hovers":
        job["gravity"] = [0.0, 0.0, 0.0]
    made = solve(job, arrays)
    units = {"length": "m", "mass": "kg", "time": "s", "angle": "rad"}
    name = "Isaac Sim"
    if how == "nan":
        moved = [b["motion"] for b in job["bodies"]].index("dynamic")
        made["position"][2:, moved] = np.nan
    elif how == "last nan":
        made["position"][:] = made["position"][0]
        made["position"][-1, 0, 0] = np.nan
    elif how == "shape":
        made["position"] = made["position"][:, :1]
    elif how == "lacks":
        made.pop("angular_velocity")
    elif how == "extra":
        made["temperature"] = np.zeros(3)
    elif how == "text":
        made["position"] = made["position"].astype("U8")
    elif how == "centimetres":
        made["position"] *= 100
    elif how == "units":
        units["length"] = "cm"
    elif how == "xyzw":
        made["quaternion_wxyz"] = made["quaternion_wxyz"][:, :, [1, 2, 3, 0]]
    elif how == "long quaternions":
        made["quaternion_wxyz"] *= 2
    elif how == "times":
        made["states"] = made["states"] + 1
    elif how == "not led":
        made["position"][-1, job["led"][0]] += 0.1
    elif how == "other simulator":
        name = "SAPIEN"
    header = {
        "format": "wmeval-states/1", "job": job["sha256"], "units": units,
        "simulator": {"name": name, "version": "6.0.0"}, "seconds": {"build": 2.0, "run": 0.5},
        "about": {"gpu": True},
    }  # fmt: skip
    if how == "another job":
        header["job"] = "0" * 64
    if how == "seconds":
        header["seconds"] = {"build": "soon"}
    text = {**header, "sha256": digest(header, made)}
    if how == "altered":
        made["position"][0, 0, 0] += 1e-6
    packed = np.frombuffer(json.dumps(text).encode(), np.uint8)
    with open(states_path, "wb") as file:
        np.savez(file, header=packed, **made)
    if how == "half":
        with open(states_path, "r+b") as file:
            file.truncate(os.path.getsize(states_path) // 2)
    if how == "dies when done":
        os.kill(os.getpid(), signal.SIGSEGV)


if __name__ == "__main__":
    main(*sys.argv[1:3])

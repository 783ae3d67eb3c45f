"""Script for Isaac Sim's own Python: does one whole job, answers with one file.

    python.sh isaac_worker.py JOB.npz STATES.npz

It stands alone: the standard library, NumPy, Isaac Sim's modules, and `isaac_stage.py` beside it;
nothing of the package that wrote the job (formats: the page "Jobs of other simulators"). Written
against the documented interfaces of Isaac Sim 6.0 (Omni Physics 110, whose deformable schemas are
standard) and 5.1 (Omni Physics 107.3, where they are a beta that is switched on at the start):
`isaacsim.SimulationApp`, `omni.physx` (IPhysxSimulation) and `omni.physics.tensors`.

In every substep kinematic bodies get the pose of the next state (as their target; on the GPU the
pose itself), then physics runs once; no frame is drawn, no time code passes, and nothing is written
back to the stage. An Isaac Lab installation does as well: its Python has the same modules.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
import time
import traceback
from fractions import Fraction
from typing import Any

# Beside this script lie files named as simulators are: none of them must be imported.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != HERE]

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

JOB, STATES = "wmeval-job/1", "wmeval-states/1"
UNITS = {"length": "m", "mass": "kg", "time": "s", "angle": "rad"}
BETA = "--/persistent/physics/enableDeformableBeta=true"
XYZW, WXYZ = [4, 5, 6, 3], [6, 3, 4, 5]
"""Columns 3 to 6 of a pose in the other order of its quaternion."""
WARM_UP = 1e-6
"""First step of physics on the GPU [s]: so short that nothing moves."""
Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]


class JobError(Exception):
    """The job, or the simulator, is not what this script knows."""


def read_job(path: str) -> tuple[Header, Arrays]:
    """Header and arrays of a job file."""
    with np.load(path, allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    header: Header = json.loads(bytes(arrays.pop("header").tobytes()))
    if header.get("format") != JOB or header.get("units") != UNITS:
        raise JobError(f"a job of format {header.get('format')!r}, units {header.get('units')!r}")
    return header, arrays


def digest(header: Header, arrays: Arrays) -> str:
    """Sha256 over a header and all arrays: names, types, shapes, bytes."""
    made = hashlib.sha256(json.dumps(dict(header), sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        made.update(f"{name}|{array.dtype.str}|{array.shape}".encode())
        made.update(array.tobytes())
    return made.hexdigest()


def write_states(
    path: str, job: Header, arrays: Arrays, version: str, build: float, run: float, about: Header
) -> None:
    """Write the states file under another name and rename it: whole or not at all."""
    header: Header = {
        "format": STATES,
        "job": job["sha256"],
        "units": UNITS,
        "simulator": {"name": job["simulator"], "version": version},
        "seconds": {"build": build, "run": run},
        "about": about,
    }
    text = json.dumps({**header, "sha256": digest(header, arrays)}).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    with open(path + ".part", "wb") as file:
        np.savez(file, **members)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def beside(name: str) -> Any:
    """A module beside this script, by its path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- the run --------------------------------------------------------------------------------------


class Physics:
    """Isaac Sim's physics of one stage: poses and velocities by arrays.

    Omni PhysX tells the vertices of deformables by its views of the GPU alone, which it makes where
    results are not read back (the setting suppressReadback, when the stage is attached) and which
    hold something once physics has run. Those views take no kinematic targets: there, led bodies
    are set where they are to be. Rigid scenes stay on the CPU, where they are repeatable.
    """

    def __init__(self, stage: Any, job: Header, world: str) -> None:
        import carb
        import omni.physics.tensors
        import omni.physx
        import warp
        from pxr import UsdUtils

        self._warp = warp
        settings = carb.settings.get_settings()
        for name in ("updateToUsd", "updateVelocitiesToUsd"):
            settings.set_bool(f"/physics/{name}", False)
        self._direct = bool(job["deformables"])
        settings.set_bool("/physics/suppressReadback", self._direct)
        cache = UsdUtils.StageCache.Get()
        number = cache.GetId(stage)
        key = (number if number.IsValid() else cache.Insert(stage)).ToLongInt()
        self._simulation = omni.physx.get_physx_simulation_interface()
        if self._simulation.get_attached_stage() != key:
            self._simulation.attach_stage(key)
        if self._direct:
            self.step(WARM_UP, 0.0)
        view = omni.physics.tensors.create_simulation_view("warp", stage_id=key)
        if view is None:
            raise JobError("Isaac Sim gives no view of its physics: is the stage's scene valid?")
        view.set_subspace_roots("/")
        self._view = view
        self.rigid = self._bodies(f"{world}/dynamic_*", job, "dynamic")
        self.led = self._bodies(f"{world}/led_*", job, "led")
        self.soft = []
        for k, item in enumerate(job["deformables"]):
            kind = "surface" if item["kind"] == "cloth" else "volume"
            make = getattr(view, f"create_{kind}_deformable_body_view")
            made = make(f"{world}/soft_{k}")
            if made is None or made.count != 1:
                raise JobError(
                    f"Isaac Sim made no {kind} deformable of {item['name']!r}: it needs an NVIDIA "
                    "GPU; its log says what was wrong with the mesh"
                )
            self.soft.append(made)

    def _bodies(self, pattern: str, job: Header, motion: str) -> tuple[Any, list[int]]:
        """A view of bodies, and their numbers in its own order."""
        wanted = [i for i, b in enumerate(job["bodies"]) if b["motion"] == motion]
        if not wanted:
            return None, []
        view = self._view.create_rigid_body_view(pattern)
        found = [] if view is None else [int(p.rpartition("_")[2]) for p in view.prim_paths]
        if sorted(found) != wanted:
            raise JobError(f"Isaac Sim made {len(found)} of {len(wanted)} {motion} bodies")
        return view, found

    def step(self, dt: float, now: float) -> None:
        """One substep."""
        self._simulation.simulate(dt, now)
        self._simulation.fetch_results()

    def _all(self, like: Any, count: int) -> Any:
        numbers = np.arange(count, dtype=np.int32)
        return self._warp.array(numbers, dtype=self._warp.int32, device=like.device)

    def _array(self, values: NDArray[Any], like: Any) -> Any:
        numbers = np.ascontiguousarray(values, np.float32)
        return self._warp.array(numbers, dtype=self._warp.float32, device=like.device)

    def lead(self, poses: NDArray[np.float64], order: list[int]) -> None:
        """Poses (L, 7) that led bodies are to have, in the job's order ``order``."""
        view, found = self.led
        if view is None:
            return
        rows = poses[[order.index(i) for i in found]]
        turned = np.concatenate([rows[:, :3], rows[:, XYZW]], axis=1)
        like = view.get_transforms()
        put = view.set_transforms if self._direct else view.set_kinematic_targets
        put(self._array(turned, like), self._all(like, len(found)))

    def velocities(self) -> NDArray[np.float64]:
        """Of dynamic bodies (D, 6), in the view's order."""
        view, found = self.rigid
        if view is None:
            return np.zeros((0, 6))
        return np.asarray(view.get_velocities().numpy(), np.float64).reshape(len(found), 6)

    def push(self, velocities: NDArray[np.float64]) -> None:
        """Set them."""
        view, found = self.rigid
        if view is not None:
            like = view.get_velocities()
            view.set_velocities(self._array(velocities, like), self._all(like, len(found)))

    def read(self, arrays: Arrays, row: int) -> None:
        """Write the present into a row."""
        for view, found in (self.rigid, self.led):
            if view is None:
                continue
            poses = np.asarray(view.get_transforms().numpy(), np.float64).reshape(-1, 7)
            speeds = np.asarray(view.get_velocities().numpy(), np.float64).reshape(-1, 6)
            arrays["position"][row, found] = poses[:, :3]
            arrays["quaternion_wxyz"][row, found] = poses[:, WXYZ]
            arrays["linear_velocity"][row, found] = speeds[:, :3]
            arrays["angular_velocity"][row, found] = speeds[:, 3:]

    def read_soft(self, arrays: Arrays, row: int, job: Header) -> None:
        """Write the vertices of deformables into a row."""
        for view, item in zip(self.soft, job["deformables"], strict=True):
            out = arrays[f"vertices/{item['name']}"]
            nodes = np.asarray(view.get_simulation_nodal_positions().numpy(), np.float64)
            out[row] = nodes.reshape(-1, 3)[: out.shape[1]]

    def push_soft(self, job: Header) -> None:
        """Set the initial velocities of deformables."""
        for view, item in zip(self.soft, job["deformables"], strict=True):
            like = view.get_simulation_nodal_velocities()
            count = like.numpy().size // 3
            rows = np.tile(np.array(item["linear_velocity"], float), (count, 1))
            shaped = rows.reshape(like.shape if like.ndim == 3 else (1, count, 3))
            view.set_simulation_nodal_velocities(self._array(shaped, like), self._all(like, 1))


def start_arrays(job: Header, arrays: Arrays) -> Arrays:
    """Room for the answer; every row as the scene begins."""
    wanted = arrays["states"]
    n, bodies = len(wanted), job["bodies"]
    out: Arrays = {"states": np.array(wanted, np.int64)}
    for name in ("position", "quaternion_wxyz", "linear_velocity", "angular_velocity"):
        out[name] = np.tile(np.array([b[name] for b in bodies], np.float64), (n, 1, 1))
    for item in job["deformables"]:
        rest = arrays[f"rest/{item['name']}/vertices"]
        out[f"vertices/{item['name']}"] = np.tile(rest, (n, 1, 1))
    return out


def kicked(job: Header, found: list[int], velocities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Velocities after the kick that sets bodies off at state 0."""
    out = velocities.copy()
    for body, velocity in job["kick"]["velocities"].items():
        out[found.index(int(body))] = (*velocity, 0.0, 0.0, 0.0)
    return out


def play(job: Header, arrays: Arrays, physics: Physics) -> Arrays:
    """Run all substeps; rows of the wanted states."""
    dt = float(Fraction(job["dt"]))
    settle, found = int(job["settle"]), physics.rigid[1]
    rows = {int(state): row for row, state in enumerate(arrays["states"])}
    out = start_arrays(job, arrays)
    first = [[*job["bodies"][i][k]] for i in found for k in ("linear_velocity", "angular_velocity")]
    if found:
        physics.push(np.array(first, np.float64).reshape(len(found), 6))
    physics.push_soft(job)
    if settle == 0:
        physics.read(out, rows[0])
        if found:
            physics.push(kicked(job, found, physics.velocities()))
    damped = [found.index(i) for i in job["kick"]["damped"]]
    for n in range(settle + int(job["last"])):
        state = n + 1 - settle
        if n < settle and damped:
            now = physics.velocities()
            now[damped] *= job["kick"]["keep"]
            physics.push(now)
        physics.lead(arrays["led"][n + 1], job["led"])
        physics.step(dt, n * dt)
        if state == 0:
            physics.push(kicked(job, found, physics.velocities()))
        if state in rows:
            physics.read(out, rows[state])
            physics.read_soft(out, rows[state], job)
    return out


def version_of() -> str:
    """Of Isaac Sim, as its own module says it."""
    try:
        from isaacsim.core.version import get_version

        return str(get_version()[0])
    except Exception:  # another release keeps it elsewhere
        import omni.kit.app

        return str(omni.kit.app.get_app().get_app_version())


def main(job_path: str, states_path: str) -> int:
    """Do a job; 0 when the answer is written."""
    app = None
    try:
        began = time.perf_counter()
        job, arrays = read_job(job_path)
        # Before any other import of Isaac's: it makes them importable.
        from isaacsim import SimulationApp

        app = SimulationApp({"headless": True, "extra_args": [BETA]})
        import omni.usd

        omni.usd.get_context().new_stage()
        stage = omni.usd.get_context().get_stage()
        writer = beside("isaac_stage")
        writer.StageWriter(stage, job, arrays).write()
        physics = Physics(stage, job, writer.WORLD)
        build, started = time.perf_counter() - began, time.perf_counter()
        out = play(job, arrays, physics)
        about = {"gpu": bool(job["deformables"]), "python": sys.version.split()[0]}
        run = time.perf_counter() - started
        write_states(states_path, job, out, version_of(), build, run, about)
        code = 0
    except Exception as error:
        traceback.print_exc()
        print(f"wmeval: {type(error).__name__}: {error}", file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    if app is not None:
        app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

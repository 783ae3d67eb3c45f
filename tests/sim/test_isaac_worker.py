"""The script that Isaac Sim's Python runs: its loop, and how it asks Omni Physics.

Isaac Sim is not here. Its modules are stood in for by what is published of them: quaternions with
the real part last; views of the CPU that tell nothing of deformables; views of the GPU that are
made where results are not read back, hold nothing before physics has run, and take no kinematic
targets.
"""

import dataclasses
import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from engine_worlds import at_rate
from physics_scenes import body, world_spec

from wmeval.scene import Sphere
from wmeval.sim.engines.isaac import WORKER
from wmeval.sim.protocol import DriverSpec, Probe
from wmeval.sim.world import open_world

TURNED = (0.5, 0.1, -0.7, 0.5)
"""wxyz, all four different in place or sign."""


@pytest.fixture(scope="module")
def worker():
    spec = importlib.util.spec_from_file_location("isaac_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def job_of(*bodies, settle=0, last=2, deformables=(), **kick):
    named = [
        {
            "motion": motion, "position": [0, 0, k], "quaternion_wxyz": [1, 0, 0, 0],
            "linear_velocity": [0, 0, 0], "angular_velocity": [0, 0, 7.0 * (motion == "dynamic")],
        }
        for k, motion in enumerate(bodies)
    ]  # fmt: skip
    return {
        "dt": "1/10", "settle": settle, "last": last, "bodies": named,
        "led": [i for i, m in enumerate(bodies) if m == "led"], "deformables": list(deformables),
        "kick": {"velocities": {}, "damped": [], "keep": 1.0, **kick},
    }  # fmt: skip


class Gliding:
    """Physics of one body that goes where it is going, and of one that is led."""

    rigid, led, soft = (object(), [0]), (object(), [1]), ()

    def __init__(self):
        self.place, self.speed, self.at, self.next = np.zeros(3), np.zeros((1, 6)), None, None
        self.times = []

    def velocities(self):
        return self.speed.copy()

    def push(self, velocities):
        self.speed = velocities.copy()

    def push_soft(self, job):
        pass

    def read_soft(self, arrays, row, job):
        pass

    def lead(self, poses, order):
        assert order == [1]
        self.next = poses[0]

    def step(self, dt, now):
        self.times.append(now)
        self.place = self.place + self.speed[0, :3] * dt
        self.at = self.next

    def read(self, arrays, row):
        arrays["position"][row, 0] = self.place
        arrays["linear_velocity"][row, 0] = self.speed[0, :3]
        arrays["angular_velocity"][row, 0] = self.speed[0, 3:]
        if self.at is not None:
            arrays["position"][row, 1] = self.at[:3]


@pytest.mark.parametrize("settle", [0, 3])
def test_the_kick_comes_when_a_stepped_engine_s_does(worker, settle):
    job = job_of("dynamic", "led", settle=settle, velocities={"0": [0, 2.0, 0]})
    physics = Gliding()
    led = np.zeros((settle + 3, 1, 7))
    out = worker.play(job, {"states": np.array([0, 1, 2]), "led": led}, physics)
    ball = body("ball", Sphere(radius=0.1), mass=1.0, angular_velocity=(0, 0, 7.0))
    kick = DriverSpec(
        kind="kick", params={"velocities": {"ball": [0, 2.0, 0]}, "damped": ["ball"], "damping": 0}
    )
    spec = at_rate(world_spec(ball, gravity=(0, 0, 0)), 180, "bullet")
    world = open_world(dataclasses.replace(spec, drivers=(kick,), settle=settle))
    rows = [world.reset(), world.advance((), 2, Probe("substeps"))]
    world.close()
    for name in ("linear_velocity", "angular_velocity"):
        stepped = np.concatenate([getattr(r.state, name)[:, 0] for r in rows])
        assert out[name][:, 0] == pytest.approx(stepped)
    # From state 0 on it goes at 2 m/s.
    assert out["position"][:, 0, 1] == pytest.approx([0, 0.2, 0.4])
    assert physics.times == pytest.approx(0.1 * np.arange(settle + 2))


@pytest.mark.parametrize("settle", [0, 3])
def test_led_bodies_are_at_each_state_where_that_state_has_them(worker, settle):
    led = np.zeros((settle + 3, 1, 7))
    led[:, 0, 0] = np.arange(settle + 3)
    job = job_of("dynamic", "led", settle=settle)
    out = worker.play(job, {"states": np.array([0, 1, 2]), "led": led}, Gliding())
    assert out["position"][:, 1, 0].tolist() == [settle, settle + 1, settle + 2]


def test_what_settles_loses_its_share_of_speed_in_every_substep_before_state_0_only(worker):
    job = job_of("dynamic", "led", settle=3, damped=[0], keep=0.5)
    out = worker.play(
        job, {"states": np.array([0, 1, 2]), "led": np.zeros((6, 1, 7))}, Gliding()
    )  # fmt: skip
    assert out["angular_velocity"][:, 0, 2].tolist() == [7 / 8] * 3


# --- what is asked of Omni Physics ----------------------------------------------------------------


class Warped(np.ndarray):
    """An array as Warp has it."""

    device = "cuda:0"

    def numpy(self):
        return np.asarray(self)


def warped(values, dtype=None, device=None):
    return np.array(values, dtype or np.float32).view(Warped)


class RigidView:
    """Bodies of one pattern, in an order of its own; quaternions xyzw."""

    def __init__(self, omni, paths):
        self.omni, self.prim_paths = omni, paths
        self.poses = np.tile([0, 0, 0, 0, 0, 0, 1.0], (len(paths), 1))
        self.targets = []

    def get_transforms(self):
        return warped(self.poses)

    def get_velocities(self):
        return warped(np.arange(6.0 * len(self.prim_paths)).reshape(-1, 6))

    def set_kinematic_targets(self, poses, numbers):
        assert not self.omni.direct, "GPU Rigid Body View kinematic target setting not implemented."
        self.targets.append((np.asarray(poses), numbers.tolist()))

    def set_transforms(self, poses, numbers):
        self.targets.append((np.asarray(poses), numbers.tolist()))


class SoftView:
    """One deformable of four vertices, the last of which is none of the job's."""

    count = 1

    def __init__(self, omni):
        self.omni, self.pushed = omni, []

    def _told(self, values):
        assert self.omni.direct, "CpuSimulationView::... is not implemented yet"
        assert self.omni.steps, "the direct GPU API has not been initialized yet"
        return warped(values)

    def get_simulation_nodal_positions(self):
        return self._told(np.arange(12.0).reshape(1, 4, 3))

    def get_simulation_nodal_velocities(self):
        return self._told(np.full((1, 4, 3), 1e-5))

    def set_simulation_nodal_velocities(self, values, numbers):
        self.pushed.append((np.asarray(values), numbers.tolist()))


class Omni:
    """Settings, simulation and views in one; what a view can do is decided at `attach_stage`."""

    def __init__(self):
        self.settings, self.steps, self.views = {}, [], {}
        self.attached = None
        self.direct = False

    def set_bool(self, name, value):
        self.settings[name] = value

    def get_attached_stage(self):
        return self.attached

    def attach_stage(self, key):
        self.attached, self.direct = key, self.settings.get("/physics/suppressReadback", False)

    def simulate(self, dt, now):
        self.steps.append((dt, now))

    def fetch_results(self):
        pass

    def set_subspace_roots(self, root):
        pass

    def create_rigid_body_view(self, pattern):
        kind = "led" if "led" in pattern else "dynamic"
        paths = {"led": ["/w/led_2", "/w/led_1"], "dynamic": ["/w/dynamic_0"]}[kind]
        return self.views.setdefault(kind, RigidView(self, paths))

    def create_surface_deformable_body_view(self, path):
        return self.views.setdefault(path, SoftView(self))

    create_volume_deformable_body_view = create_surface_deformable_body_view


@pytest.fixture
def omni(monkeypatch):
    made = Omni()

    def module(name, **names):
        found = ModuleType(name)
        vars(found).update(names)
        monkeypatch.setitem(sys.modules, name, found)
        return found

    key = SimpleNamespace(IsValid=lambda: True, ToLongInt=lambda: 9)
    cache = SimpleNamespace(Get=lambda: SimpleNamespace(GetId=lambda stage: key))
    module("carb", settings=SimpleNamespace(get_settings=lambda: made))
    tensors = module("omni.physics.tensors", create_simulation_view=lambda *a, **k: made)
    physx = module("omni.physx", get_physx_simulation_interface=lambda: made)
    physics = module("omni.physics", tensors=tensors)
    module("omni", physics=physics, physx=physx)
    module("warp", array=warped, int32=np.int32, float32=np.float32)
    module("pxr", UsdUtils=SimpleNamespace(StageCache=cache))
    return made


CLOTH = {"name": "sheet", "kind": "cloth", "linear_velocity": [0.0, 3.0, 0.0]}
FOAM = {"name": "block", "kind": "soft", "linear_velocity": [0.0, 0.0, 0.0]}


@pytest.mark.parametrize("soft", [(), (CLOTH, FOAM)])
def test_poses_and_quaternions_are_told_in_omni_physics_order_and_back(worker, omni, soft):
    job = job_of("dynamic", "led", "led", deformables=soft)
    physics = worker.Physics(object(), job, "/w")
    poses = np.array([(1, 2, 3, *TURNED), (4, 5, 6, 1, 0, 0, 0)], float)
    physics.lead(poses, [1, 2])
    ((told, numbers),) = omni.views["led"].targets
    # The view has body 2 first.
    assert told[0] == pytest.approx([4, 5, 6, 0, 0, 0, 1])
    assert told[1] == pytest.approx([1, 2, 3, 0.1, -0.7, 0.5, 0.5])
    assert numbers == [0, 1]
    omni.views["led"].poses = told
    arrays = worker.start_arrays({**job, "deformables": []}, {"states": np.array([0, 1])})
    physics.read(arrays, 1)
    assert arrays["position"][1, 1:] == pytest.approx(poses[:, :3])
    assert arrays["quaternion_wxyz"][1, 1:] == pytest.approx(poses[:, 3:])
    assert arrays["linear_velocity"][1, 1].tolist() == [6, 7, 8]
    assert arrays["angular_velocity"][1, 1].tolist() == [9, 10, 11]


def test_rigid_scenes_are_read_back_from_the_cpu_and_begin_at_their_first_step(worker, omni):
    worker.Physics(object(), job_of("dynamic", "led", "led"), "/w")
    assert not omni.direct
    assert omni.steps == []


def test_what_bends_is_read_from_the_gpu_once_physics_has_run(worker, omni):
    job = job_of("dynamic", "led", "led", deformables=(CLOTH, FOAM))
    physics = worker.Physics(object(), job, "/w")
    assert omni.direct
    # The step that wakes the GPU's buffers moves nothing that a float of 1 m could tell.
    assert [dt < 1e-5 for dt, _ in omni.steps] == [True]
    physics.push_soft(job)
    for k, y in enumerate((3.0, 0.0)):
        ((told, numbers),) = omni.views[f"/w/soft_{k}"].pushed
        assert told.tolist() == [[[0, y, 0]] * 4]
        assert numbers == [0]
    arrays = {f"vertices/{d['name']}": np.zeros((2, 3, 3)) for d in (CLOTH, FOAM)}
    physics.read_soft(arrays, 1, job)
    assert arrays["vertices/block"][1].tolist() == np.arange(9.0).reshape(3, 3).tolist()
    assert not arrays["vertices/sheet"][0].any()

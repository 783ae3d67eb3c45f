"""How specifications and logs cross a process boundary: JSON and arrays, exactly."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import astuple, fields
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from wmeval.clock import SceneClock
from wmeval.jobs.worker import Buffers, Header
from wmeval.records import CameraLog, Contacts, Event, LightLog, StateLog, WorldLog
from wmeval.scene import MeshData, Meshes, Scene
from wmeval.sim.protocol import (
    BodyMechanics,
    DriverSpec,
    EngineConfig,
    EventRules,
    Probe,
    WorldSpec,
)

_MESH_ARRAYS = ("vertices", "triangles", "normals", "uv")


def pack_spec(spec: WorldSpec) -> tuple[Header, Buffers]:
    """A specification as JSON and mesh arrays; `unpack_spec` gives it back exactly."""
    header = {
        "scene": spec.scene.model_dump(mode="json"),
        "drivers": [d.model_dump(mode="json") for d in spec.drivers],
        "dt": str(spec.clock.dt),
        "control_period": str(spec.clock.control_period),
        "rules": spec.rules.model_dump(mode="json"),
        "engine": spec.engine,
        "config": spec.config.model_dump(mode="json"),
        "settle": spec.settle,
    }
    arrays = {
        f"{key}/{name}": getattr(mesh, name)
        for key, mesh in spec.meshes.items()
        for name in _MESH_ARRAYS
    }
    return header, arrays


def unpack_spec(header: Header, buffers: Mapping[str, NDArray[Any]]) -> WorldSpec:
    """Inverse of `pack_spec`."""
    keys = {name.partition("/")[0] for name in buffers}
    meshes: Meshes = {
        key: MeshData(*(buffers[f"{key}/{name}"] for name in _MESH_ARRAYS)) for key in sorted(keys)
    }
    return WorldSpec(
        Scene.model_validate(header["scene"]),
        meshes,
        tuple(DriverSpec.model_validate(d) for d in header["drivers"]),
        SceneClock(Fraction(header["dt"]), Fraction(header["control_period"])),
        EventRules.model_validate(header["rules"]),
        header["engine"],
        EngineConfig.model_validate(header["config"]),
        header["settle"],
    )


def pack_log(log: WorldLog) -> tuple[Header, Buffers]:
    """A log as JSON and arrays; `unpack_log` gives it back exactly."""
    state = log.state
    header = {
        "bodies": state.bodies,
        "dt": str(state.dt),
        "cameras": log.cameras.names,
        "events": [
            # NaN, "no number", is null: JSON has no NaN.
            [None if isinstance(x, float) and math.isnan(x) else x for x in astuple(e)]
            for e in log.events
        ],
    }
    arrays: Buffers = {f"state/{n}": getattr(state, n) for n in StateLog.ARRAYS}
    arrays |= {f"modal/{k}": v for k, v in state.modal.items()}
    arrays |= {f"vertices/{k}": v for k, v in state.vertices.items()}
    arrays["fov_y"], arrays["T_world_camera"] = log.cameras.fov_y, log.cameras.T_world_camera
    arrays |= {f.name: getattr(log.lights, f.name) for f in fields(LightLog)}
    if len(log.contacts):
        arrays |= {f"contact/{f.name}": getattr(log.contacts, f.name) for f in fields(Contacts)}
    return header, arrays


def unpack_log(header: Header, buffers: Mapping[str, NDArray[Any]]) -> WorldLog:
    """Inverse of `pack_log`."""
    modal, vertices = (
        {n.removeprefix(group): a for n, a in buffers.items() if n.startswith(group)}
        for group in ("modal/", "vertices/")
    )
    arrays: dict[str, Any] = {n: buffers[f"state/{n}"] for n in StateLog.ARRAYS}
    state = StateLog(
        tuple(header["bodies"]), Fraction(header["dt"]), **arrays, modal=modal, vertices=vertices
    )
    contacts = Contacts.empty()
    if "contact/substep" in buffers:
        contacts = Contacts(*(buffers[f"contact/{f.name}"] for f in fields(Contacts)))
    return WorldLog(
        state,
        CameraLog(tuple(header["cameras"]), buffers["fov_y"], buffers["T_world_camera"]),
        LightLog(*(buffers[f.name] for f in fields(LightLog))),
        contacts,
        tuple(_event(*row) for row in header["events"]),
    )


def _event(
    kind: str, time: float, detected_at: float, body_a: str, body_b: str, value: float | None
) -> Event:
    return Event(kind, time, detected_at, body_a, body_b, math.nan if value is None else value)


def pack_mechanics(found: Mapping[str, BodyMechanics]) -> Header:
    """Mechanics by name as JSON."""
    return {name: astuple(m) for name, m in found.items()}


def unpack_mechanics(header: Header) -> dict[str, BodyMechanics]:
    """Inverse of `pack_mechanics`."""
    return {
        name: BodyMechanics(tuple(momentum), tuple(angular), *energies)
        for name, (momentum, angular, *energies) in header.items()
    }


def pack_probe(probe: Probe) -> Header:
    """A probe as JSON."""
    return dataclasses.asdict(probe)


def unpack_probe(header: Header) -> Probe:
    """Inverse of `pack_probe`."""
    bodies = None if header["bodies"] is None else tuple(header["bodies"])
    contacts = header["contacts"]
    return Probe(
        header["states"],
        contacts if isinstance(contacts, bool) else tuple((a, b) for a, b in contacts),
        bodies,
        header["shown"],
    )

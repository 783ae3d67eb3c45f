"""A whole world in a worker: its verbs."""

from __future__ import annotations

import numpy as np

from wmeval.jobs.worker import Buffers, Handler, Header
from wmeval.records import WorldLog
from wmeval.sim.wire import pack_log, pack_mechanics, unpack_probe, unpack_spec
from wmeval.sim.world import LocalWorld


def handlers() -> dict[str, Handler]:
    """Verbs of a worker that holds one world: those of `wmeval.sim.world.WorkerWorld`."""
    held: dict[str, LocalWorld] = {}
    faults: list[Exception] = []

    def build(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        faults.clear()
        if "world" in held:
            held.pop("world").close()
        held["world"] = LocalWorld(unpack_spec(header["spec"], buffers), events=header["events"])
        return {}, {}

    def reset(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        faults.clear()
        return pack_log(held["world"].reset())

    def advance(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        probe = unpack_probe(header["probe"])
        return pack_log(held["world"].advance(header["action"], header["until"], probe))

    def advance_each(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """Several advances; what went before a fault is told first, the fault when asked on."""
        if faults:
            raise faults.pop()
        probe = unpack_probe(header["probe"])
        rows: list[WorldLog] = []
        for until in header["untils"]:
            try:
                rows.append(held["world"].advance(header["action"], until, probe))
            except Exception as error:
                if not rows:
                    raise
                faults.append(error)
                break
        return pack_log(WorldLog.concatenate(rows))

    def raycast(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        bodies, points = held["world"].raycast(buffers["origins"], buffers["ends"])
        return {}, {"bodies": np.asarray(bodies), "points": points}

    def mechanics(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        return pack_mechanics(held["world"].mechanics(header["time"])), {}

    return {
        "build": build,
        "reset": reset,
        "advance": advance,
        "advance_each": advance_each,
        "raycast": raycast,
        "mechanics": mechanics,
    }

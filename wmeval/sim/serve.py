"""A whole world in a worker: its verbs."""

from __future__ import annotations

import numpy as np

from wmeval.jobs.worker import Buffers, Handler, Header
from wmeval.sim.wire import pack_log, pack_mechanics, unpack_probe, unpack_spec
from wmeval.sim.world import LocalWorld


def handlers() -> dict[str, Handler]:
    """Verbs of a worker that holds one world: build, reset, advance, raycast, mechanics."""
    held: dict[str, LocalWorld] = {}

    def build(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        if "world" in held:
            held.pop("world").close()
        held["world"] = LocalWorld(unpack_spec(header["spec"], buffers), events=header["events"])
        return {}, {}

    def reset(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        return pack_log(held["world"].reset())

    def advance(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        probe = unpack_probe(header["probe"])
        return pack_log(held["world"].advance(header["action"], header["until"], probe))

    def raycast(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        bodies, points = held["world"].raycast(buffers["origins"], buffers["ends"])
        return {}, {"bodies": np.asarray(bodies), "points": points}

    def mechanics(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        return pack_mechanics(held["world"].mechanics(header["time"])), {}

    return {
        "build": build,
        "reset": reset,
        "advance": advance,
        "raycast": raycast,
        "mechanics": mechanics,
    }

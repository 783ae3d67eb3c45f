"""Round trip of the HTTP candidate against the guide's example server, on the loopback.

Beside it the same bytes through ``urllib`` and nothing else: what the client's checks cost.
"""

from __future__ import annotations

import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from wmeval.envs.candidates.http import HttpModel, Options

GUIDE = Path(__file__).parents[1] / "docs" / "guide" / "candidates.md"
WIDTH, HEIGHT, STRIDE, REPEATS = 640, 352, 4, 40


def example_server() -> str:
    """Text of the guide's server, at the size that is measured."""
    text = GUIDE.read_text(encoding="utf-8")
    found = re.search(r'```python title="server\.py"\n(.*?)```', text, re.S)
    assert found
    return found[1].replace('"width": 320, "height": 176', f'"width": {WIDTH}, "height": {HEIGHT}')


def median_ms(call: Any) -> float:
    """Median wall milliseconds of a call, after three to warm up."""
    times = []
    for _ in range(REPEATS + 3):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times[3:])


def bare(url: str, session: str) -> int:
    """One step by hand."""
    item = {"session": session, "first": 1, "controls": [[0.0, 0.0]]}
    header = {"id": str(time.perf_counter_ns()), "items": [item], "arrays": []}
    request = urllib.request.Request(f"{url}/v1/step", json.dumps(header).encode() + b"\n")
    with urllib.request.urlopen(request, timeout=30) as reply:
        return len(reply.read())


def measure() -> dict[str, Any]:
    """Milliseconds of one block of 4 frames 640 x 352, and the ratio to the bare request."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "server.py")
        path.write_text(example_server(), encoding="utf-8")
        server = subprocess.Popen([sys.executable, str(path), str(port)], stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            model = HttpModel(Options(url=url, retries=8))
            frame = np.zeros((1, HEIGHT, WIDTH, 3), np.uint8)
            model.reset(frame, "", "", 0, np.eye(3))
            control = [np.zeros(2)]
            client = median_ms(lambda: model.step(control))
            alone = median_ms(lambda: bare(url, model._session))
        finally:
            server.terminate()
            server.wait(10)
    return {
        "block": f"{STRIDE} frames of {WIDTH}x{HEIGHT}",
        "megabytes": round(STRIDE * WIDTH * HEIGHT * 3 / 1e6, 2),
        "client_ms": round(client, 2),
        "bare_request_ms": round(alone, 2),
        "client_over_bare": round(client / alone, 2),
    }

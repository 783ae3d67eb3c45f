"""A server of object storage on this machine, as ``s3://`` finds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest


@contextmanager
def object_store(bucket: str) -> Iterator[Any]:
    """Serve one empty bucket; yields its file system."""
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"key": "k", "secret": "s", "endpoint_url": f"http://{host}:{port}"}
        fsspec.config.conf["s3"] = options
        system = fsspec.filesystem("s3", **options)
        system.mkdir(bucket)
        yield system
    finally:
        fsspec.config.conf.pop("s3", None)
        server.stop()

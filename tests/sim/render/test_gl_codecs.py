"""A driver in the process changes nothing that is written."""

import subprocess
import sys

import pytest

ENCODE = """
import hashlib, numpy as np
{before}
from numcodecs import Blosc
values = np.random.default_rng(0).normal(size=(10_000, 3))
packed = Blosc(cname="zstd", clevel=3, shuffle=1).encode(values)
print(len(packed), hashlib.sha256(packed).hexdigest())
"""
CONTEXT = "from wmeval.sim.render import gl\nwith gl.current_device(): pass"


@pytest.mark.gl
def test_a_store_has_the_same_bytes_with_and_without_a_driver():
    said = {
        subprocess.run(
            [sys.executable, "-c", ENCODE.format(before=before)],
            capture_output=True, text=True, check=True,
        ).stdout
        for before in ("", CONTEXT)
    }  # fmt: skip
    assert len(said) == 1

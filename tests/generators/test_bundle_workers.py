"""Bundles made by processes of their own are bundles."""

import pytest

from wmeval.datasets.bundle import read_bundle
from wmeval.datasets.validate import validate
from wmeval.generators.rigidbench import generate_rigidbench


@pytest.mark.gl
@pytest.mark.accept
def test_workers_make_bundles(tmp_path):
    made = generate_rigidbench(
        "train", tmp_path / "set", tasks=("free_fall",), limit=2, format="bundle", width=64,
        height=36, workers=2,
    )  # fmt: skip
    assert made.complete
    assert made.made == (0, 1)
    assert validate(tmp_path / "set") == []
    names = sorted(p.name for p in (tmp_path / "set" / "bundles").iterdir())
    assert [len(read_bundle(tmp_path / "set" / "bundles" / name)) for name in names] == [49, 49]

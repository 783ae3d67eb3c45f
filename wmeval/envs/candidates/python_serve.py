"""The worker of a `python` candidate: imports the user's class and answers for its objects.

It runs under the model's own interpreter, which needs numpy, pydantic and PyYAML beside what the
model itself imports.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import io
import os
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from wmeval.envs.adapters import control_from_json
from wmeval.envs.model import ModelSpec, called, checked_clip, checked_spec
from wmeval.errors import UserError
from wmeval.jobs.worker import Buffers, Handler, Header
from wmeval.records import WorldLog


class _Models:
    """Objects of one class."""

    def __init__(self) -> None:
        self._models: dict[int, tuple[Any, ModelSpec]] = {}

    def load(self, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """Import the class: what it takes, and digests of the source files that this loaded."""
        where, _, self._name = header["target"].rpartition(":")
        module = _module(where)
        kind: Any = getattr(module, self._name, None)
        if not callable(kind):
            raise UserError(f"candidate python: {where} has no class {self._name!r}")
        self._kind, self._takes_case = kind, _takes_case(kind)
        folder = Path(where).parent if where.endswith(".py") else None
        return {"takes_case": self._takes_case, "sources": _sources(module, folder)}, {}

    def create(self, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """Make an object and keep it under a number."""
        arguments = {}
        if self._takes_case:
            from wmeval.envs.case import Case

            arguments["case"] = Case.model_validate(header["case"])
        model = called(f"candidate python: {self._name}()", partial(self._kind, **arguments))
        spec = checked_spec(model)
        self._models[header["model"]] = model, spec
        return {"spec": spec.model_dump(mode="json")}, {}

    def reset(self, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """``reset``; answers with the state behind the seed frame if the model knows it."""
        model, spec = self._models[header["model"]]
        texts, seed = (header["prompt"], header["negative_prompt"]), header["seed"]
        frames, K = buffers["context_frames"], buffers["intrinsics"]
        called(f"model {spec.name!r}: reset", model.reset, frames, *texts, seed, K)
        return _packed(getattr(model, "seed_record", None))

    def frames(self, verb: str, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """``step`` or ``generate``, checked; a simulator's record comes along."""
        model, spec = self._models[header["model"]]
        controls = tuple(control_from_json(c) for c in header["controls"])
        result = called(f"model {spec.name!r}: {verb}", getattr(model, verb), controls)
        count = len(controls) * spec.frames_per_action
        clip = checked_clip(result, spec, first=header["first"], count=count, verb=verb)
        record, arrays = _packed(clip.record)
        return record, {"frames": clip.frames, **arrays}

    def close_model(self, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """``close``, and forget the object."""
        model, spec = self._models.pop(header["model"])
        called(f"model {spec.name!r}: close", model.close)
        return {}, {}


def handlers() -> dict[str, Handler]:
    """Verbs: load, create; of a model by number: reset, step, generate, close_model."""
    models = _Models()
    # A pipe is no terminal: without this, what a model prints is seen late, or never if it dies.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    return {
        "load": models.load,
        "create": models.create,
        "reset": models.reset,
        "step": partial(models.frames, "step"),
        "generate": partial(models.frames, "generate"),
        "close_model": models.close_model,
    }


def _packed(record: object) -> tuple[Header, Buffers]:
    if not isinstance(record, WorldLog):
        return {}, {}
    from wmeval.sim.wire import pack_log

    header, arrays = pack_log(record)
    return {"record": header}, arrays


def _module(where: str) -> ModuleType:
    """The user's module, imported as a script's neighbour would be."""
    sys.path[:0] = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    who = f"candidate python: import of {where}"
    if not where.endswith(".py"):
        module: ModuleType = called(who, importlib.import_module, where)
        return module
    path = Path(where)
    sys.path.insert(0, str(path.parent))
    # Its own name, so that what it pickled elsewhere is found; unless that is another module's.
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names
    name = f"wmeval_user_{path.stem}" if taken else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    called(who, spec.loader.exec_module, module)
    return module


def _takes_case(kind: Any) -> bool:
    try:
        return "case" in inspect.signature(kind).parameters
    except ValueError:  # some built-in types have no signature
        return False


def _sources(module: ModuleType, folder: Path | None) -> dict[str, str]:
    """SHA-256 of the module's file and of those it imported from its own package or folder."""
    top = module.__name__.partition(".")[0]
    found = {}
    for name, other in list(sys.modules.items()):
        file = getattr(other, "__dict__", {}).get("__file__")
        if not isinstance(file, str) or name == "__main__" or name.startswith("wmeval."):
            continue
        near = folder is not None and Path(file).is_relative_to(folder)
        if name.partition(".")[0] == top or (near and "site-packages" not in Path(file).parts):
            found[name] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return dict(sorted(found.items()))

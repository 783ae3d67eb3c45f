"""Your own model: a class in a file or in an installed module, run in this process.

The class is called with no arguments, or with ``case`` if its constructor takes that. It cannot be
interrupted when it hangs; serve it over HTTP if that matters.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from pydantic import Field

from wmeval.envs.case import Case
from wmeval.envs.model import ModelError, WorldModel, checked_spec
from wmeval.errors import UserError
from wmeval.scene import Card


class Options(Card):
    """Where the class is.

    Attributes:
        target: "path/to/file.py:Class" or "package.module:Class".
    """

    target: str = Field(pattern=r".+:[A-Za-z_]\w*$")


def _module(where: str) -> ModuleType:
    if not where.endswith(".py"):
        try:
            return importlib.import_module(where)
        except ImportError as error:
            raise UserError(f"candidate python: cannot import {where!r}: {error}") from error
    path = Path(where)
    if not path.is_file():
        raise UserError(f"candidate python: no file {where}")
    name = f"wmeval_user_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(f"candidate python: {where} raised {error!r} when imported") from error
    return module


def _takes_case(kind: Callable[..., WorldModel]) -> bool:
    try:
        return "case" in inspect.signature(kind).parameters
    except ValueError:  # some built-in types have no signature
        return False


def make(options: Options, case: Case, generation: int) -> WorldModel:
    """An object of the class.

    Raises:
        UserError: no such file, module or class.
        ModelError: the class cannot be made, or lacks a card or a method.
    """
    where, _, name = options.target.rpartition(":")
    kind = getattr(_module(where), name, None)
    if not callable(kind):
        raise UserError(f"candidate python: {where} has no class {name!r}")
    try:
        model: WorldModel = kind(case=case) if _takes_case(kind) else kind()
    except Exception as error:
        raise ModelError(f"candidate python: {name}() raised {error!r}") from error
    checked_spec(model)
    return model

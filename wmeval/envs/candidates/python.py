"""Your own model: a class in a file or in an installed module, run in a process of its own.

The process runs under the model's own interpreter (``python=...``), so its environment may be
another than this package's. It is started once and serves every case and generation of one command:
the class is called anew for each, with no arguments or with ``case`` if its constructor takes that;
what shall be loaded once, weights, belongs into the module. Controls and frames cross as raw
arrays. A model that hangs, dies, exits or raises, in whatever method, is one `ModelError`.

What it prints goes to this process's standard error.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from wmeval.envs.adapters import Control, control_json
from wmeval.envs.case import Case
from wmeval.envs.model import ModelError, ModelSpec
from wmeval.errors import UserError, one_line
from wmeval.jobs.worker import Buffers, Header, WorkerClient, WorkerError
from wmeval.records import Clip, WorldLog
from wmeval.scene import Card

_START = 60.0
"""Time [s] that an interpreter may take to start, at least."""
_MAX_BYTES = 1 << 36


class Options(Card):
    """Where the class is, and how it is run.

    Attributes:
        target: "path/to/file.py:Class" or "package.module:Class".
        timeout: time [s] that one call may take: importing, making, ``reset``, ``step``, ...
        python: interpreter of the model's environment; "" for this one's. It needs numpy, pydantic
            and PyYAML.
    """

    target: str = Field(pattern=r".+:[A-Za-z_]\w*$")
    timeout: float = Field(default=600.0, gt=0, le=86_400)
    python: str = ""


@dataclass(eq=False)
class _Host:
    """A process that has imported a class."""

    client: WorkerClient
    source: str
    takes_case: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    cards: dict[str, Header] = field(default_factory=dict)
    made: int = 0

    def card_key(self, case: Case) -> str:
        """Cases of one key have one card: all of them if the class takes no case."""
        return case.model_dump_json() if self.takes_case else ""


_hosts: dict[tuple[int, Options], _Host] = {}
"""By process, since a fork shares no socket, and options."""


def _host(options: Options) -> _Host:
    """The process of a class, started when there is none or its file has changed."""
    where, _, name = options.target.rpartition(":")
    source = ""
    if where.endswith(".py"):
        path = Path(where).absolute()
        where = str(path)
        try:
            source = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise UserError(f"candidate python: no file {path}: {error.strerror}") from error
    key = os.getpid(), options
    held = _hosts.get(key)
    if held is not None and held.source == source:
        return held
    python = options.python or sys.executable
    try:
        client = WorkerClient(
            "wmeval.envs.candidates.python_serve:handlers",
            name=f"candidate python:{options.target}",
            python=python,
            timeout=options.timeout,
            start_timeout=max(_START, options.timeout),
            max_bytes=_MAX_BYTES,
            one_thread=False,
            echo=True,
        )
    except WorkerError as error:
        raise ModelError(
            f"candidate python: {python} did not start{_last_words(error)}; the model's "
            "environment needs numpy, pydantic and PyYAML beside its own packages"
        ) from error
    host = _Host(client, source)
    loaded, _ = _call(host, "load", {"target": f"{where}:{name}"})
    host.takes_case, host.sources = loaded["takes_case"], loaded["sources"]
    _hosts[key] = host
    return host


def _call(
    host: _Host, verb: str, header: Header, buffers: Buffers | None = None
) -> tuple[Header, Buffers]:
    try:
        return host.client.call(verb, header, buffers)
    except UserError as error:  # the model raised, or broke its contract: the text says all
        raise ModelError(str(error)) from error
    except WorkerError as error:
        _forget(host)
        hint = "; is it hanging? (timeout=... allows more)" if error.kind == "timeout" else ""
        raise ModelError(f"{one_line(error.what, 400)}{_last_words(error)}{hint}") from error
    except BaseException:
        # Interrupted in the middle of an answer: nothing that comes after can be trusted.
        host.client.kill()
        _forget(host)
        raise


def _forget(host: _Host) -> None:
    for key in [k for k, other in _hosts.items() if other is host]:
        del _hosts[key]


def _last_words(error: WorkerError) -> str:
    last = one_line(error.printed.rpartition("\n")[2], 200)
    return f"; it printed last: {last}" if last else ""


class PythonModel:
    """An object of the user's class, in its process.

    Attributes:
        spec: its card.
        seed_record: the state behind the seed frame, if the model knows it; read after ``reset``.
    """

    seed_record: WorldLog | None = None

    def __init__(self, options: Options, case: Case) -> None:
        self._host = _host(options)
        self._host.made += 1
        self._header = {"model": self._host.made}
        made, _ = self._call("create", {"case": case.model_dump(mode="json")})
        self._host.cards[self._host.card_key(case)] = made["spec"]
        self.spec = ModelSpec.model_validate(made["spec"])
        self._frame, self._open, self._failed = 0, True, False

    def _call(
        self, verb: str, header: Header, buffers: Buffers | None = None
    ) -> tuple[Header, Buffers]:
        try:
            return _call(self._host, verb, {**self._header, **header}, buffers)
        except BaseException:
            self._failed = True
            raise

    def reset(
        self,
        context_frames: NDArray[np.uint8],
        prompt: str,
        negative_prompt: str,
        seed: int,
        intrinsics: NDArray[np.float64],
    ) -> None:
        """Begin a generation."""
        texts = {"prompt": prompt, "negative_prompt": negative_prompt, "seed": int(seed)}
        arrays: Buffers = {"context_frames": context_frames, "intrinsics": intrinsics}
        self._frame = 0
        self.seed_record = _record(*self._call("reset", texts, arrays))

    def step(self, controls: Sequence[Control]) -> Clip:
        """Frames of the next blocks."""
        return self._frames("step", controls)

    def generate(self, controls: Sequence[Control]) -> Clip:
        """Frames of all blocks."""
        return self._frames("generate", controls)

    def _frames(self, verb: str, controls: Sequence[Control]) -> Clip:
        first = self._frame + 1
        header = {"first": first, "controls": [control_json(c) for c in controls]}
        answer, arrays = self._call(verb, header)
        frames = arrays.pop("frames")
        self._frame += len(frames)
        return Clip(frames, self.spec.times(first, len(frames)), _record(answer, arrays))

    def close(self) -> None:
        """End the object; its process stays for the next. Silent once the model has failed."""
        if self._open:
            self._open = False
            with suppress(*([ModelError] if self._failed else [])):
                self._call("close_model", {})


def _record(header: Header, arrays: Buffers) -> WorldLog | None:
    if "record" not in header:
        return None
    from wmeval.sim.wire import unpack_log

    return unpack_log(header["record"], arrays)


def make(options: Options, case: Case, generation: int) -> PythonModel:
    """An object of the class.

    Raises:
        UserError: no such file or interpreter.
        ModelError: the module or the class fails, hangs, or lacks a card or a method.
    """
    return PythonModel(options, case)


def identity(options: Options, case: Case, generation: int) -> Any:
    """The class, its card, and every source file that it imports from its own folder or package."""
    host = _host(options)
    key = host.card_key(case)
    if key not in host.cards:
        make(options, case, generation).close()
    return [options.target.rpartition(":")[2], host.cards[key], host.sources]

"""A model served by another process or machine.

Wire format ``wmeval-http/1``, one message per request and per reply: one line of JSON (the header),
a newline, then the raw bytes of the arrays that ``header["arrays"]`` lists, in order: row-major,
each ``{"dtype": "uint8", "shape": [T, H, W, 3]}``. ``"encoding": "zlib"`` in a reply's header says
that the bytes after the newline are one zlib stream; requests are never compressed.

- ``GET /v1/spec``: replies ``{"protocol": "wmeval-http/1", "card": {...}, "max_batch": 1,
  "version": "..."}``; the version (optional) shall change whenever the model does.
- ``POST /v1/reset``: header ``id``, ``items`` (session, seed, prompt, negative_prompt, intrinsics);
  arrays: the context frames, one per item. Replies ``{}``.
- ``POST /v1/step``, for a clip model ``/v1/generate``: header ``id``, ``items`` (session, first,
  controls). Replies the frames, one array per item.
- ``POST /v1/close``: header ``id``, ``items`` (session). Replies ``{}``.

``controls`` holds one control per block: a list of numbers, ``{"held": [...], "pressed": [...]}``,
a 4x4 pose, or text. ``first`` is the index of the first frame wanted. A request that may have been
lost is sent again with the same ``id``; the server answers it from its memory and does not advance
twice. A failure is any status from 400 on, with ``{"error": "..."}``.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import math
import os
import re
import socket
import ssl
import threading
import time
import uuid
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from wmeval.envs.adapters import control_json
from wmeval.envs.case import Case
from wmeval.envs.model import ModelError, ModelSpec, validated
from wmeval.errors import UserError, one_line
from wmeval.scene import Card

PROTOCOL = "wmeval-http/1"
_HEADER_BYTES = 1 << 20
_RETRY_STATUS = (502, 503, 504)


class Options(Card):
    """How to reach the server.

    Attributes:
        url: "http://127.0.0.1:8000" or with a path; loopback only, unless there is a token.
        timeout: time [s] that one request may take, all in all.
        retries: how often a request is sent again when the connection fails or the server says
            502, 503 or 504. A time-out is not retried.
        token_env: name of the environment variable that holds the bearer token.
    """

    url: str
    timeout: float = Field(default=120.0, gt=0, le=86_400)
    retries: int = Field(default=2, ge=0, le=10)
    token_env: str | None = None

    @field_validator("url")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{value!r} is not an address like http://127.0.0.1:8000")
        if parts.username or parts.query or parts.fragment:
            raise ValueError("an address holds no user, query or fragment: use token_env")
        try:
            _ = parts.port
        except ValueError as error:
            raise ValueError(f"{value!r}: {error}") from error
        return value.rstrip("/")


def is_loopback(host: str) -> bool:
    """True for this machine's own addresses."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _RetryError(Exception):
    """A request that may be sent again."""


class Client:
    """Sends messages, with a deadline, a size limit and retries.

    Args:
        options: address and limits.

    Raises:
        UserError: not this machine and no token, or an empty token.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        parts = urlsplit(options.url)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._path = parts.path
        token = ""
        if options.token_env:
            token = os.environ.get(options.token_env, "")
            if not token:
                raise UserError(
                    f"candidate http: environment variable {options.token_env} is empty"
                )
        elif not is_loopback(self._host or ""):
            raise UserError(
                f"candidate http: {self._host} is not this machine; give token_env=NAME of a "
                "variable that holds the server's bearer token"
            )
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, *, limit: int = _HEADER_BYTES) -> dict[str, Any]:
        """A JSON document."""
        header, _ = _split(self._send("GET", path, b"", limit), self._where(path))
        return header

    def post(
        self,
        path: str,
        items: Sequence[dict[str, Any]],
        arrays: Sequence[NDArray[np.uint8]] = (),
        *,
        limit: int = 0,
    ) -> list[NDArray[np.uint8]]:
        """One message; returns the reply's arrays.

        Args:
            path: "/v1/step" and the like.
            items: one per session.
            arrays: that go with them.
            limit: bytes of arrays that the reply may hold.

        Raises:
            ModelError: no reply in time, a dead server, an error reply, or a reply that is too
                large or no message.
        """
        header = {
            "id": uuid.uuid4().hex,
            "items": list(items),
            "arrays": [{"dtype": "uint8", "shape": list(a.shape)} for a in arrays],
        }
        line = json.dumps(header, allow_nan=False).encode() + b"\n"
        body = b"".join([line, *(np.ascontiguousarray(a).tobytes() for a in arrays)])
        reply, rest = _split(
            self._send("POST", path, body, limit + _HEADER_BYTES), self._where(path)
        )
        return _arrays(reply, rest, limit, self._where(path))

    def _where(self, path: str) -> str:
        return f"{self.options.url}{path}"

    def _send(self, method: str, path: str, body: bytes, limit: int) -> bytes:
        deadline = time.monotonic() + self.options.timeout
        attempts = self.options.retries + 1
        for attempt in range(attempts):
            try:
                return self._attempt(method, path, body, limit, deadline)
            except _RetryError as failure:
                pause = 0.1 * 2**attempt
                if attempt + 1 == attempts or time.monotonic() + pause > deadline:
                    raise ModelError(
                        f"candidate http: {self._where(path)}: {failure} "
                        f"({attempt + 1} attempts); is the server running there?"
                    ) from failure
                time.sleep(pause)
        raise AssertionError  # the loop returns or raises

    def _attempt(self, method: str, path: str, body: bytes, limit: int, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        assert self._host is not None
        connection: http.client.HTTPConnection
        if self._secure:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=max(left, 0.001), context=context
            )
        else:
            connection = http.client.HTTPConnection(
                self._host, self._port, timeout=max(left, 0.001)
            )
        late = threading.Event()
        sockets: list[socket.socket] = []

        def cut() -> None:
            # A socket's own time-out restarts with every byte; a slow drip must end too.
            late.set()
            for open_socket in sockets:
                with suppress(OSError):
                    open_socket.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(max(left, 0.001), cut)
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
            # The connection forgets its socket once the reply begins; `cut` needs it to the end.
            sockets.append(connection.sock)
            kind = {"Content-Type": "application/x-wmeval"} if body else {}
            connection.request(method, self._path + path, body or None, {**self._headers, **kind})
            response = connection.getresponse()
            stated = response.getheader("Content-Length")
            if response.status == 200 and stated is not None and int(stated) > limit:
                raise ModelError(
                    f"candidate http: {self._where(path)}: a reply of {int(stated)} bytes is above "
                    f"the {limit} that the model's card allows"
                )
            data = response.read(limit + 1)
            if late.is_set():
                raise TimeoutError
            if response.status in _RETRY_STATUS:
                raise _RetryError(f"status {response.status}")
            if response.status != 200:
                raise ModelError(
                    f"candidate http: {self._where(path)}: {_error_text(response.status, data)}"
                )
            if len(data) > limit:
                raise ModelError(
                    f"candidate http: {self._where(path)}: the reply is above the {limit} bytes "
                    "that the model's card allows"
                )
            if stated is not None and len(data) != int(stated):
                raise _RetryError(f"the reply ended after {len(data)} of {stated} bytes")
            return data
        except (OSError, http.client.HTTPException, ValueError) as error:
            if late.is_set() or isinstance(error, TimeoutError):
                raise ModelError(
                    f"candidate http: {self._where(path)}: no whole reply within "
                    f"{self.options.timeout:g} s; is the server hanging? (timeout=... allows more)"
                ) from error
            if isinstance(error, UserError):
                raise
            raise _RetryError(f"{type(error).__name__}: {one_line(error, 200)}") from error
        finally:
            timer.cancel()
            connection.close()


_MENDS = {
    401: "; does the server want a token? (token_env=NAME)",
    403: "; does the server want another token? (token_env=NAME)",
    404: f"; is this a {PROTOCOL} server?",
}


def _error_text(status: int, data: bytes) -> str:
    try:
        text = str(json.loads(data)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        page = data[:65536].decode("utf-8", "replace")
        title = re.search(r"<title[^>]*>(.*?)</title>", page, re.I | re.S)
        text = re.sub(r"<[^>]*>", " ", title[1] if title else page)
    return f"status {status}: {one_line(text, 200) or 'no message'}{_MENDS.get(status, '')}"


def _split(data: bytes, where: str) -> tuple[dict[str, Any], memoryview]:
    end = data.find(b"\n")
    end = len(data) if end < 0 else end
    line, rest = data[:end], memoryview(data)[end + 1 :]  # the pictures are not copied
    try:
        header = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"candidate http: {where}: the reply does not begin with a line of JSON; is this a "
            f"{PROTOCOL} server?"
        ) from error
    if not isinstance(header, dict):
        raise ModelError(f"candidate http: {where}: the reply's header is not a JSON object")
    return header, rest


def _shape(row: Any) -> list[int] | None:
    """Shape of a listed array; None when it is not described rightly."""
    if not isinstance(row, dict) or row.get("dtype") != "uint8":
        return None
    shape = row.get("shape")
    if not isinstance(shape, list) or len(shape) > 8:
        return None
    # bool is an int; JSON's true is no length.
    return shape if all(type(n) is int and n >= 0 for n in shape) else None


def _arrays(
    header: dict[str, Any], data: bytes | memoryview, limit: int, where: str
) -> list[NDArray[np.uint8]]:
    if header.get("encoding", "raw") == "zlib":
        inflate = zlib.decompressobj()
        try:
            data = inflate.decompress(data, limit + 1)
        except zlib.error as error:
            raise ModelError(f"candidate http: {where}: broken zlib stream: {error}") from error
        if not inflate.eof:
            raise ModelError(
                f"candidate http: {where}: the zlib stream is cut off or above {limit} bytes"
            )
    elif header.get("encoding", "raw") != "raw":
        raise ModelError(
            f"candidate http: {where}: encoding {str(header['encoding'])[:80]!r}; raw or zlib"
        )
    out: list[NDArray[np.uint8]] = []
    at = 0
    listed = header.get("arrays", [])
    for row in listed if isinstance(listed, list) else [None]:
        shape = _shape(row)
        if shape is None:
            raise ModelError(
                f"candidate http: {where}: array {len(out)} is described by {str(row)[:200]}; "
                'expected {"dtype": "uint8", "shape": [T, H, W, 3]}'
            )
        size = math.prod(shape)
        if at + size > len(data):
            raise ModelError(
                f"candidate http: {where}: array {len(out)} needs {size} bytes, "
                f"{len(data) - at} are there"
            )
        out.append(np.frombuffer(data, np.uint8, size, at).reshape(shape))
        at += size
    if at != len(data):
        raise ModelError(f"candidate http: {where}: {len(data) - at} bytes belong to no array")
    return out


class HttpModel:
    """A served model: one session on its server.

    Raises:
        UserError: the address needs a token.
        ModelError: no server there, or not one of this protocol.
    """

    def __init__(self, options: Options) -> None:
        self.client = Client(options)
        reply = self.client.get("/v1/spec")
        if reply.get("protocol") != PROTOCOL:
            raise ModelError(
                f"candidate http: {options.url} speaks {str(reply.get('protocol'))[:80]!r}, not "
                f"{PROTOCOL!r}"
            )
        self.spec = validated(ModelSpec, reply.get("card"), where=f"card of {options.url}")
        self.version = reply.get("version")
        batch = reply.get("max_batch", 1)
        self.max_batch = batch if isinstance(batch, int) and batch >= 1 else 1
        self._session = uuid.uuid4().hex
        self._frame = 0
        self._open = False

    def reset(
        self,
        context_frames: NDArray[np.uint8],
        prompt: str,
        negative_prompt: str,
        seed: int,
        intrinsics: NDArray[np.float64],
    ) -> None:
        """Begin a generation on the server."""
        self.reset_together([self], [(context_frames, prompt, negative_prompt, seed, intrinsics)])

    def step(self, controls: Sequence[Any]) -> NDArray[np.uint8]:
        """Frames of the next blocks."""
        return self.call_together([self], [controls], verb="step")[0]

    def generate(self, controls: Sequence[Any]) -> NDArray[np.uint8]:
        """Frames of all blocks."""
        return self.call_together([self], [controls], verb="generate")[0]

    @staticmethod
    def reset_together(models: Sequence[HttpModel], contexts: Sequence[tuple[Any, ...]]) -> None:
        """Begin several generations of one server with as few requests as it allows."""
        size = models[0].max_batch
        for k in range(0, len(models), size):
            group, part = models[k : k + size], contexts[k : k + size]
            items = [
                {
                    "session": m._session,
                    "seed": int(seed),
                    "prompt": prompt,
                    "negative_prompt": negative,
                    "intrinsics": np.asarray(K).tolist(),
                }
                for m, (_, prompt, negative, seed, K) in zip(group, part, strict=True)
            ]
            models[0].client.post("/v1/reset", items, [c[0] for c in part])
        for m in models:
            m._frame, m._open = 0, True

    @staticmethod
    def call_together(
        models: Sequence[HttpModel], controls: Sequence[Sequence[Any]], *, verb: str
    ) -> list[NDArray[np.uint8]]:
        """Go on in several sessions of one server with as few requests as it allows.

        Raises:
            ModelError: as `Client.post`, or not one array per session.
        """
        first, size = models[0], models[0].max_batch
        spec = first.spec
        out: list[NDArray[np.uint8]] = []
        for k in range(0, len(models), size):
            group, part = models[k : k + size], controls[k : k + size]
            items = [
                {
                    "session": m._session,
                    "first": m._frame + 1,
                    "controls": [control_json(c) for c in own],
                }
                for m, own in zip(group, part, strict=True)
            ]
            count = sum(len(own) for own in part) * spec.frames_per_action
            # Twice what is due: a reply of the wrong shape shall be named, a flood be cut.
            limit = 2 * count * spec.width * spec.height * 3
            arrays = first.client.post(f"/v1/{verb}", items, limit=limit)
            if len(arrays) != len(group):
                raise ModelError(
                    f"model {spec.name!r}: {verb} of {len(group)} sessions returned "
                    f"{len(arrays)} arrays"
                )
            out.extend(arrays)
        for m, own in zip(models, controls, strict=True):
            m._frame += len(own) * spec.frames_per_action
        return out

    def close(self) -> None:
        """End the session; a server that is gone is no error here."""
        if self._open:
            self._open = False
            with suppress(ModelError):
                self.client.post("/v1/close", [{"session": self._session}])


def make(options: Options, case: Case, generation: int) -> HttpModel:
    """A session on the server."""
    return HttpModel(options)


def identity(options: Options, case: Case, generation: int) -> Any:
    """The server's card, and its version if it states one; not where it is."""
    model = HttpModel(options)
    return [model.spec.model_dump(mode="json"), model.version]

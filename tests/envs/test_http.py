"""The HTTP candidate against servers that are well, slow, dead, lying or flooding."""

import json
import threading
import time
import zlib
from contextlib import suppress
from fractions import Fraction as F
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmeval.envs.adapters import Channels, make_adapter
from wmeval.envs.candidates import parse_candidate
from wmeval.envs.candidates.http import HttpModel, Options, _arrays, _split, is_loopback
from wmeval.envs.case import Case
from wmeval.envs.model import Context, ModelError, ModelSpec
from wmeval.envs.plans import load_plan
from wmeval.envs.wrapper import drive, drive_together
from wmeval.errors import UserError

TA = F(1, 60)
CARD = {"name": "served", "fps": 30, "frames_per_action": 2, "width": 16, "height": 16}
FRAME = 16 * 16 * 3
CASE = Case(env_id="BeamDomino", plan=load_plan("BeamDomino", "canonical"))


class Server:
    """A real server on a thread; ``script`` may take a request over before it is answered well."""

    def __init__(self, card=None, max_batch=1):
        self.card, self.max_batch = {**CARD, **(card or {})}, max_batch
        self.protocol, self.version = "wmeval-http/1", None
        self.requests, self.replies, self.executed, self.tokens = [], {}, [], []
        self.script = []
        self.done = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args): ...

            def do_GET(self):
                outer.tokens.append(self.headers.get("Authorization"))
                spec = {
                    "protocol": outer.protocol,
                    "card": outer.card,
                    "max_batch": outer.max_batch,
                    "version": outer.version,
                }
                self.send(json.dumps(spec).encode())

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                line, _, data = body.partition(b"\n")
                header = json.loads(line)
                verb = self.path.rsplit("/", 1)[-1]
                outer.requests.append((verb, header, data))
                act = outer.script.pop(0) if outer.script and verb == "step" else None
                if act is not None and act(self, header) is not None:
                    return
                self.send(outer.answer(verb, header))

            def send(self, body, status=200, length=None):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.end_headers()
                self.wfile.write(body)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def answer(self, verb, header):
        if header["id"] not in self.replies:
            self.executed.append(verb)
            self.replies[header["id"]] = self.make(verb, header)
        return self.replies[header["id"]]

    def make(self, verb, header):
        if verb not in ("step", "generate"):
            return b"{}\n"
        frames = []
        for item in header["items"]:
            n = len(item["controls"]) * self.card["frames_per_action"]
            index = item["first"] + np.arange(n)
            frames.append(
                np.broadcast_to(index[:, None, None, None], (n, 16, 16, 3)).astype(np.uint8)
            )
        return message(*frames)

    def close(self):
        self.done.set()
        self.http.shutdown()
        self.http.server_close()


def message(*arrays, **header):
    rows = [{"dtype": "uint8", "shape": list(a.shape)} for a in arrays]
    line = json.dumps({"arrays": rows, **header}).encode()
    return line + b"\n" + b"".join(a.tobytes() for a in arrays)


@pytest.fixture
def server():
    s = Server()
    yield s
    s.close()


def run(server, n=24, **options):
    model = HttpModel(Options(url=server.url, **options))
    adapter = make_adapter(model.spec, Channels(("a", "b")), control_period=TA)
    context = Context(
        np.full((model.spec.context_length, 16, 16, 3), 9, np.uint8), "p", "n", np.eye(3), TA
    )
    actions = np.tile([0.5, -0.25], (n, 1))
    try:
        return drive(model, adapter, actions, context, seed=3)
    finally:
        model.close()


# --- a server that is well ----------------------------------------------------------------------


def test_what_is_sent_and_what_comes_back(server):
    clip = run(server)
    assert clip.frames[1:, 0, 0, 0].tolist() == list(range(1, 13))
    assert clip.times == tuple(F(j, 30) for j in range(13))
    verbs = [v for v, _, _ in server.requests]
    assert verbs == ["reset"] + ["step"] * 6 + ["close"]
    _, header, data = server.requests[0]
    item = header["items"][0]
    assert (item["seed"], item["prompt"], item["negative_prompt"]) == (3, "p", "n")
    assert item["intrinsics"] == np.eye(3).tolist()
    assert header["arrays"] == [{"dtype": "uint8", "shape": [1, 16, 16, 3]}]
    assert data == bytes([9]) * FRAME
    assert server.requests[2][1]["items"][0]["controls"] == [[0.5, -0.25]]
    assert server.requests[2][1]["items"][0]["first"] == 3


def test_chunks_travel_together(server):
    server.card["chunk"] = 3
    clip = run(server)
    assert len(clip) == 13
    steps = [h["items"][0] for v, h, _ in server.requests if v == "step"]
    assert [(len(i["controls"]), i["first"]) for i in steps] == [(3, 1), (3, 7)]


def test_a_clip_model_is_asked_once(server):
    server.card["mode"] = "clip"
    assert len(run(server)) == 13
    assert [v for v, _, _ in server.requests] == ["reset", "generate", "close"]


@pytest.mark.parametrize(("max_batch", "steps"), [(1, 6 * 5), (2, 6 * 3), (8, 6)])
def test_generations_travel_together(max_batch, steps):
    server = Server(max_batch=max_batch)
    try:
        models = [HttpModel(Options(url=server.url)) for _ in range(5)]
        spec = models[0].spec
        adapter = make_adapter(spec, Channels(("a", "b")), control_period=TA)
        context = Context(np.zeros((1, 16, 16, 3), np.uint8), "", "", np.eye(3), TA)
        clips = drive_together(models, adapter, np.zeros((24, 2)), context, seeds=range(5))
        assert [c.frames[1:, 0, 0, 0].tolist() for c in clips] == [list(range(1, 13))] * 5
        assert sum(v == "step" for v, _, _ in server.requests) == steps
        seeds = [i["seed"] for v, h, _ in server.requests if v == "reset" for i in h["items"]]
        assert seeds == list(range(5))
    finally:
        server.close()


def test_a_compressed_reply(server):
    server.script = [lambda h, header: h.send(packed(server, header)) or True] * 6
    assert run(server).frames[1:, 0, 0, 0].tolist() == list(range(1, 13))


def packed(server, header):
    line, _, data = server.make("step", header).partition(b"\n")
    return (
        json.dumps({**json.loads(line), "encoding": "zlib"}).encode() + b"\n" + zlib.compress(data)
    )


# --- a connection that fails --------------------------------------------------------------------


def test_a_lost_reply_is_asked_for_again_and_nothing_advances_twice(server):
    def lose(handler, header):
        server.answer("step", header)
        handler.connection.shutdown(2)
        return True

    server.script = [None, lose]
    clip = run(server)
    assert clip.frames[1:, 0, 0, 0].tolist() == list(range(1, 13))
    sent = [h["id"] for v, h, _ in server.requests if v == "step"]
    assert len(sent) == 7
    assert len(set(sent)) == 6
    assert server.executed.count("step") == 6


def test_a_busy_server_is_tried_again(server):
    busy = lambda h, header: h.send(b'{"error": "loading"}', 503) or True  # noqa: E731
    server.script = [busy, busy]
    assert len(run(server)) == 13
    server.script = [busy] * 3
    with pytest.raises(ModelError, match=r"status 503 \(3 attempts\)"):
        run(server)


def test_no_server(server):
    server.close()
    with pytest.raises(ModelError, match=r"(?s)Refused.*\(2 attempts\); is the server running"):
        HttpModel(Options(url=server.url, retries=1))


def test_a_server_that_dies_in_a_reply(server):
    server.script = [lambda h, header: h.send(b'{"arrays": []}\n123', length=5000) or True] * 3
    with pytest.raises(ModelError, match="attempts"):
        run(server)


# --- a server that hangs ------------------------------------------------------------------------


def test_a_hanging_server_ends_at_the_time_out(server):
    server.script = [lambda h, header: server.done.wait(200)]
    start = time.monotonic()
    with pytest.raises(ModelError, match=r"/v1/step: no whole reply within 2 s; is the server h"):
        run(server, timeout=2)
    assert time.monotonic() - start < 100


def test_a_slow_drip_ends_at_the_time_out_too(server):
    def drip(handler, header):
        handler.send(b"", length=5000)
        while not server.done.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()
        return True

    server.script = [drip]
    with pytest.raises(ModelError, match=r"/v1/step: no whole reply within 2 s"):
        run(server, timeout=2)


def test_dripping_headers_end_at_the_time_out(server):
    def drip(handler, header):
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n")
        while not server.done.wait(0.05):
            handler.wfile.write(b"X: y\r\n")
            handler.wfile.flush()
        return True

    server.script = [drip]
    with pytest.raises(ModelError, match=r"/v1/step: no whole reply within 2 s"):
        run(server, timeout=2)


# --- a server that lies -------------------------------------------------------------------------

GOOD = np.zeros((2, 16, 16, 3), np.uint8)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (message(GOOD[:1]), r"step returned the wrong number of frames, \(1, 16, 16, 3\)"),
        (message(GOOD[:, :8]), r"the wrong shape, \(2, 8, 16, 3\)"),
        (message(GOOD[..., 0]), r"the wrong shape, \(2, 16, 16\)"),
        (message(), "step of 1 sessions returned 0 arrays"),
        (message(GOOD, GOOD), "step of 1 sessions returned 2 arrays"),
        (message(GOOD)[:-1], r"array 0 needs 1536 bytes, 1535 are there"),
        (message(GOOD) + b"x", "1 bytes belong to no array"),
        (b"<html>not found</html>", "does not begin with a line of JSON"),
        (b"\xff\xfe\n", "does not begin with a line of JSON"),
        (b"[1]\n", "header is not a JSON object"),
        (b"[" * 100_000 + b"\n", "does not begin with a line of JSON"),
        (b'{"arrays": 3}\n', "described by"),
        (b'{"arrays": [{"dtype": "float64", "shape": [1]}]}\n', "described by"),
        (b'{"arrays": [{"dtype": "uint8", "shape": [-1]}]}\n', "described by"),
        (b'{"arrays": [{"dtype": "uint8", "shape": [true]}]}\n', "described by"),
        (b'{"arrays": [{"dtype": "uint8", "shape": [4611686018427387904, 4]}]}\n', "needs"),
        (b'{"encoding": "gzip"}\n', "'gzip'; raw or zlib"),
        (b'{"encoding": "zlib"}\nxyz', "broken zlib stream"),
        (b'{"encoding": "zlib"}\n' + zlib.compress(bytes(1 << 24)), "cut off or above 3072 bytes"),
        (b'{"encoding": "zlib"}\n' + zlib.compress(bytes(99))[:-6], "cut off or above"),
    ],
)
def test_a_reply_that_is_wrong_is_one_clear_error(server, body, error):
    server.script = [lambda h, header: h.send(body) or True]
    with pytest.raises(ModelError, match=error):
        run(server)


def test_a_flood_is_cut(server):
    server.script = [lambda h, header: h.send(bytes(1 << 22)) or True]
    with pytest.raises(ModelError, match="a reply of 4194304 bytes is above the"):
        run(server)

    def unstated(handler, header):
        handler.send_response(200)
        handler.end_headers()
        try:
            while not server.done.is_set():
                handler.wfile.write(bytes(1 << 16))
        except OSError:
            pass
        return True

    server.script = [unstated]
    with pytest.raises(ModelError, match="the reply is above the"):
        run(server)


PAGE = (
    b"<!DOCTYPE html><html><head><title>404\n Not Found</title><style>b {}</style>" + b"<p>x" * 9999
)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (500, b'{"error": "out of memory"}', r"/v1/step: status 500: out of memory$"),
        (500, b'{"error": "a\\nb"}', r"status 500: a b$"),
        (500, json.dumps({"error": "x" * 9999}).encode(), r"status 500: x{196} \.\.\.$"),
        (404, PAGE, r"status 404: 404 Not Found; is this a wmeval-http/1 server\?$"),
        (400, b"<b>Bad</b>\r\n<i>request</i>", r"status 400: Bad request$"),
        (401, b"", r"status 401: no message; does the server want a token\? \(token_env=NAME\)$"),
        (418, b"\xff" * 9999, r"status 418: \S{196} \.\.\.$"),
    ],
)
def test_the_servers_own_error_is_one_line(server, status, body, message):
    server.script = [lambda h, header: h.send(body, status) or True]
    with pytest.raises(ModelError, match=message):
        run(server)


@pytest.mark.parametrize("raw", [b"<html>\n" * 9999, b"\0" * 70_000, b"HTTP/1.1 abc\r\n\r\n", b""])
def test_what_is_no_http_is_one_line(server, raw):
    def send(handler, header):
        with suppress(OSError):
            handler.wfile.write(raw)
        handler.close_connection = True
        return True

    server.script = [send]
    with pytest.raises(ModelError, match=r"is the server running there\?$") as caught:
        run(server, retries=0)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "other/2"}, "speaks 'other/2', not 'wmeval-http/1'"),
        ({"card": {"name": "x", "fps": -1}}, "card of http.*must be > 0"),
        ({"card": "none"}, "card of http.*expected a mapping"),
    ],
)
def test_a_server_of_something_else(server, change, message):
    for key, value in change.items():
        setattr(server, key, value)
    with pytest.raises(UserError, match=f"(?s){message}"):
        run(server)


@given(st.binary(max_size=200))
def test_garbage_is_a_model_error_or_arrays(data):
    try:
        header, rest = _split(data, "x")
        arrays = _arrays(header, rest, 1000, "x")
    except ModelError:
        return
    assert sum(a.nbytes for a in arrays) == len(rest) or header.get("encoding") == "zlib"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda x: (
        st.lists(x, max_size=4) | st.dictionaries(st.sampled_from(["dtype", "shape", "a"]), x)
    ),
    max_leaves=8,
)


@given(JSON, st.binary(max_size=50))
def test_any_header_is_a_model_error_or_arrays(rows, data):
    try:
        found = _arrays({"arrays": rows}, data, 1000, "x")
    except ModelError as error:
        found = str(error)
    if isinstance(found, str):
        assert len(found.splitlines()) == 1
    else:
        assert b"".join(a.tobytes() for a in found) == data


# --- who may be reached -------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.5.5.5", "::1"])
def test_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "example.org", "localhost.example.org", "0.0.0.0", "::2"]
)
def test_not_loopback(host):
    assert not is_loopback(host)


def test_elsewhere_needs_a_token(monkeypatch):
    with pytest.raises(UserError, match=r"10.0.0.1 is not this machine; give token_env=NAME"):
        HttpModel(Options(url="http://10.0.0.1:1"))
    monkeypatch.delenv("WMEVAL_TEST_TOKEN", raising=False)
    with pytest.raises(UserError, match="environment variable WMEVAL_TEST_TOKEN is empty"):
        HttpModel(Options(url="http://10.0.0.1:1", token_env="WMEVAL_TEST_TOKEN"))


def test_the_token_is_sent(server, monkeypatch):
    monkeypatch.setenv("WMEVAL_TEST_TOKEN", "s3cret")
    HttpModel(Options(url=server.url, token_env="WMEVAL_TEST_TOKEN"))
    HttpModel(Options(url=server.url))
    assert server.tokens == ["Bearer s3cret", None]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1",
        "127.0.0.1:80",
        "http://",
        "http://a:b@127.0.0.1",
        "http://127.0.0.1?x=1",
        "http://127.0.0.1:99999",
        "http://[::1",
    ],
)
def test_a_bad_address_is_refused(url):
    with pytest.raises(ValueError, match="url"):
        Options(url=url)


def test_the_fingerprint_is_of_card_and_stated_version(server):
    candidate = parse_candidate(server.url)
    digests = []
    for version, name in (("1", "m"), ("2", "m"), (None, "m"), ("1", "n"), ("1", "m")):
        server.version, server.card["name"] = version, name
        digests.append(candidate.fingerprint(CASE))
    assert len(set(digests)) == 4
    assert digests[0] == digests[4]
    other = Server()
    other.version, other.card["name"] = "1", "m"
    assert parse_candidate(other.url).fingerprint(CASE) == digests[0]  # not of the address
    other.close()


def test_the_card_is_the_servers(server):
    assert HttpModel(Options(url=server.url)).spec == ModelSpec(**CARD)

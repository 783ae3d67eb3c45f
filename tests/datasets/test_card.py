"""Card and page of a set of clips: true to its rows, the same bytes, safe, never in the way."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from rollout_maker import make_rollout

import wmeval
from wmeval.cli import main
from wmeval.datasets import browse, card, set_runs, sets
from wmeval.datasets.bundle_sets import write_bundle_of
from wmeval.datasets.card import describe_set
from wmeval.datasets.clip import ClipActor, ClipFacts, with_facts
from wmeval.datasets.clips import write_clip
from wmeval.datasets.croissant import Publication
from wmeval.datasets.location import locate
from wmeval.datasets.sets import BUNDLES, CLIPS, ROLLOUTS
from wmeval.datasets.validate import validate
from wmeval.errors import UserError

DOCS = (card.README, card.INDEX, card.CROISSANT)
ROOT = Path(__file__).parents[2]
SPLITS = ("train", "ood-scene", "train")
HOSTILE = "<!--<script></script><img src=x onerror=alert(1)>\u2028 a\"b'c & d ]]>"
JOB = {
    "maker": "rigidbench",
    "manifest": "train",
    "seed": 3,
    "manifest_sha256": "0" * 64,
    "cards_sha256": "1" * 64,
    "tasks": ["free_fall", "bounce"],
    "quality": "draft",
    "renderer": "raster",
    "renderer_options": {"a": 1},
    "physics": "bullet",
    "width": 24,
    "height": 16,
    "layers": ["depth", "ids"],
}
MADE = {"engine": "bullet", "engine_version": "3.2.7", "renderer": "raster",
        "renderer_version": "1", "wmeval": "9.9", "env_kwargs": {"assets": None}}  # fmt: skip


def clip_of(seed, prompt=None, assets=None):
    rollout = make_rollout(seed=seed, frames=5, layers=("rgb", "depth", "ids"), size=(24, 16))
    rollout = card_metadata(rollout, assets)
    facts = ClipFacts(
        sample_id=f"{seed:05d}",
        task_type="bounce" if seed % 2 else "free_fall",
        scene_id="hall" if seed else "loft",
        surface_name="floor",
        seed=seed,
        split=SPLITS[seed % 3],
        objects=("apple", "pear"),
        actors=(
            ClipActor(name="body 0", role="active", object="apple", instance=1),
            ClipActor(name="body 2", role="passive", object="pear" if seed else None, instance=3),
        ),
        prompt=prompt or f"Thing {seed} falls.",
    )
    return with_facts(rollout, facts)


def card_metadata(rollout, assets):
    import dataclasses

    made = {**MADE, "env_kwargs": {"assets": assets}}
    return dataclasses.replace(rollout, metadata={**rollout.metadata, **made})


@pytest.fixture(scope="module")
def clips():
    return [clip_of(i) for i in range(3)]


def make_set(url, clips, *, only=None, job=JOB, kind=CLIPS, write=write_clip):
    place = locate(url)
    set_runs.begin(place, {**job, kind.samples: len(clips)}, kind=kind)
    for number, clip in enumerate(clips):
        if only is None or number in only:
            write(url, number, clip)
    return place


@pytest.fixture(scope="module")
def url(tmp_path_factory, clips):
    folder = tmp_path_factory.mktemp("sets") / "set"
    set_runs.complete(make_set(folder, clips), CLIPS)
    return folder


def content(place):
    return {key: place.get(key, limit=None) for key in place.objects()}


def head_of(text):
    _, head, _ = text.split("---\n", 2)
    return yaml.safe_load(head)


# --- beside the set -----------------------------------------------------------------------------


def test_a_completed_set_has_them_and_is_whole(url, clips):
    names = {path.name for path in url.iterdir()}
    assert {*DOCS, "thumbs", "set.json", "manifest.json"} <= names
    assert validate(url) == []
    row = json.loads((url / "rows" / "000001.json").read_bytes())
    thumb = (url / "thumbs" / "000001.jpg").read_bytes()
    assert row["objects"]["thumbs/000001.jpg"] == sets.object_entry(thumb)
    picture = cv2.imdecode(np.frombuffer(thumb, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    film = wmeval.open(url)[1].rgb[0]
    assert picture.shape == film.shape == (16, 24, 3)
    assert np.abs(picture.astype(int).mean((0, 1)) - film.mean((0, 1))).max() < 12
    (url / "thumbs" / "000001.jpg").write_bytes(thumb[:-1])
    assert any("thumbs/000001.jpg" in problem for problem in validate(url))
    (url / "thumbs" / "000001.jpg").write_bytes(thumb)


def test_the_same_set_gives_the_same_bytes_anywhere(url, clips):
    there = make_set("memory://cards/set", list(clips), only=(2, 0, 1))
    set_runs.complete(there, CLIPS)
    assert content(there) == content(locate(url))
    before = {name: (url / name).stat().st_mtime_ns for name in DOCS}
    set_runs.complete(locate(url), CLIPS)
    assert describe_set(url) == card.Described(str(url), 3, ())
    assert {name: (url / name).stat().st_mtime_ns for name in DOCS} == before
    there.clear(first="manifest.json")


def test_what_was_changed_by_hand_stays(tmp_path, clips):
    place = make_set(tmp_path / "set", clips[:1])
    set_runs.complete(place, CLIPS)
    readme = tmp_path / "set" / card.README
    written = readme.read_text()
    readme.write_text(written.replace("# wmeval", "# My own words: wmeval"))
    set_runs.complete(place, CLIPS)
    assert describe_set(place.url).kept == (card.README,)
    assert "My own words" in readme.read_text()
    make_set(place.url, clips[:2], only=(1,))  # the set grows
    assert "My own words" in readme.read_text()
    assert not (tmp_path / "set" / card.INDEX).exists()
    assert describe_set(place.url, overwrite=True).kept == ()
    assert "My own words" not in readme.read_text()


def test_a_growing_set_is_described_as_it_is(tmp_path, clips):
    place = make_set(tmp_path / "set", clips, only=(0, 2))
    assert describe_set(place.url).clips == 2
    assert "2 of 3 clips so far" in (tmp_path / "set" / card.README).read_text()
    assert "2 of 3 clips so far" in " ".join((tmp_path / "set" / card.INDEX).read_text().split())
    assert validate(place.url) == []
    write_clip(place.url, 1, clips[1])
    set_runs.complete(place, CLIPS)
    assert "3 clips, 1 s" in (tmp_path / "set" / card.README).read_text()
    assert validate(place.url) == []


def test_shards_are_merged_with_their_thumbnails(tmp_path, clips, url):
    for part in range(3):
        make_set(tmp_path / f"part{part}", clips, only=(part,))
        describe_set(tmp_path / f"part{part}")
    out = set_runs.merge_set(tmp_path / "set", [tmp_path / f"part{i}" for i in range(3)])
    assert content(locate(out)) == content(locate(url))


def test_overwriting_forgets_them(tmp_path, clips):
    place = make_set(tmp_path / "set", clips[:2])
    set_runs.complete(place, CLIPS)
    set_runs.begin(place, {**JOB, "clips": 1, "seed": 4}, kind=CLIPS, overwrite=True)
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == ["set.json"]


def test_sets_of_before_get_theirs(tmp_path, clips):
    place = make_set(tmp_path / "set", clips[:2])
    for number in range(2):
        key = sets.row_key(number)
        row = sets.unsealed(place, key, CLIPS)
        row["objects"].pop(browse.thumb_key(number))
        place.put(
            key, sets.sealed({k: v for k, v in row.items() if k not in ("made_with", "layers")})
        )
    shutil.rmtree(tmp_path / "set" / "thumbs")
    (tmp_path / "set" / "clips" / "000001.mp4").write_bytes(b"no film")
    set_runs.complete(place, CLIPS)
    assert [p.name for p in (tmp_path / "set" / "thumbs").iterdir()] == ["000000.jpg"]
    text = (tmp_path / "set" / card.README).read_text()
    assert "| depth | float32 | m |" in text  # of the job, where rows do not say
    # Nobody knows whose cards they show.
    assert head_of(text)["license"] == "other"
    assert "the rows of this set do not say" in text
    data = data_of((tmp_path / "set" / card.INDEX).read_text())
    assert [c[11] for c in data["clips"]] == ["thumbs/000000.jpg", ""]


def test_other_places_have_no_card(tmp_path):
    with pytest.raises(UserError, match="no set of clips here"):
        describe_set(tmp_path)
    set_runs.begin(locate(tmp_path / "r"), {"episodes": 1}, kind=ROLLOUTS)
    with pytest.raises(UserError, match="a set of rollouts, not of clips"):
        describe_set(tmp_path / "r")


# --- README.md ----------------------------------------------------------------------------------


def test_the_card_says_what_the_rows_say(url):
    text = (url / card.README).read_text()
    head = head_of(text)
    assert head["license"] == "apache-2.0"
    assert head["size_categories"] == ["n<1K"]
    assert head["pretty_name"] in text.split("---\n", 2)[2]
    for line in (
        "| bounce | 1 |", "| free\\_fall | 2 |", "| hall | 2 |", "| loft | 1 |",
        "| ood-scene | 1 |", "| train | 2 |", "| apple | 3 |", "| pear | 2 |",
        "| bullet 3.2.7, raster 1, wmeval 9.9 | 3 |", "3 of 24×16 px, 5 frames at 24/s each.",
        '| renderer\\_options | \\{"a":1\\} |', "| ids | uint16 | 1 |", "| rgb | uint8 | 1 |",
    ):  # fmt: skip
        assert line in text, line
    assert "third-party asset" in text
    hub = pytest.importorskip("huggingface_hub")
    told = hub.DatasetCard(text).data
    assert (told.license, told.pretty_name) == ("apache-2.0", head["pretty_name"])
    # Tables are whole.
    for block in re.findall(r"(?:^\|.*\|$\n)+", text, flags=re.M):
        cells = {len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(cells) == 1, block


def test_its_python_line_runs(url, monkeypatch):
    monkeypatch.chdir(url)
    names = {}
    exec(re.search(r"```python\n(.*?)```", (url / card.README).read_text(), re.S)[1], names)
    assert names["clip"].prompt == "Thing 0 falls."


def test_its_command_asks_for_the_same_job(monkeypatch):
    from wmeval.generators import rigidbench

    asked = []
    monkeypatch.setattr(rigidbench, "make_set", lambda place, job, *a, **k: asked.append(job))
    monkeypatch.setattr("wmeval.cli.generate._report_set", lambda *a: None)
    for format, kind in (("store", CLIPS), ("bundle", BUNDLES)):
        rigidbench.generate_rigidbench(
            "train", "clips", seed=5, limit=7, tasks=("bounce", "free_fall"), quality="preview",
            width=320, height=176, format=format, physics="bullet-faithful",
            materialize=("flow", "boxes"),
        )  # fmt: skip
        command = card.MAKERS["rigidbench"].command(asked[-1], kind)
        with pytest.raises(SystemExit) as stop:
            main(command.split()[1:])
        assert stop.value.code == 0
        assert asked[-1] == asked[-2]


def test_a_users_cards_are_told(tmp_path, clips):
    place = make_set(tmp_path / "set", [clips[0], clip_of(1, assets="my/cards")])
    set_runs.complete(place, CLIPS)
    text = (tmp_path / "set" / card.README).read_text()
    assert head_of(text)["license"] == "other"
    assert "1 of these clips were made with a user's own cards" in text
    assert "third-party" not in text
    assert "my/cards" not in text  # a path of the maker's machine


def test_an_unknown_maker_is_described_without_guesses(tmp_path, clips):
    place = make_set(tmp_path / "set", clips[:1], job={"seed": 1})
    set_runs.complete(place, CLIPS)
    text = (tmp_path / "set" / card.README).read_text()
    assert head_of(text)["license"] == "other"
    assert "wmeval generate" not in text
    assert "RigidBench" not in text


def test_names_are_no_markup():
    assert card._cell("a|b <i>\n*c*_d_ `e` [f](g)") == (r"a\|b \<i\> \*c\*\_d\_ \`e\` \[f\](g)")


def test_its_conventions_are_those_of_the_reference():
    told = (ROOT / "docs" / "reference" / "conventions.md").read_text()
    for what, rule in card.CONVENTIONS:
        assert f"| {what} | {rule} |" in told


# --- croissant.json -----------------------------------------------------------------------------


@pytest.mark.parametrize("only", [None, (0, 2)])
def test_the_reference_library_reads_the_metadata(tmp_path, clips, only):
    import mlcroissant

    place = make_set(tmp_path / "set", clips, only=only)
    if only is None:
        set_runs.complete(place, CLIPS)
    told = Publication(url="https://example.org/set", creator="Us", date="2026-01-31")
    describe_set(place.url, publication=told)
    dataset = mlcroissant.Dataset(jsonld=tmp_path / "set" / card.CROISSANT)
    assert list(dataset.metadata.issues.errors) == []
    assert list(dataset.metadata.issues.warnings) == []
    assert str(dataset.metadata.url) == "https://example.org/set"
    rows = sets.read_rows(place, CLIPS)[1]
    records = sorted(dataset.records("clips"), key=lambda r: r["clips/clip"])
    assert len(records) == len(rows) == len(only or clips)
    for record, row in zip(records, rows, strict=True):
        assert record["clips/clip"] == row["clip"]
        assert record["clips/seed"] == row["facts"]["seed"]
        assert record["clips/frames"] == 5
        assert record["clips/prompt"].decode() == row["facts"]["prompt"]
        assert record["clips/task"].decode() == row["facts"]["task_type"]
        assert record["clips/video"].decode() == row["video"]
        assert [x.decode() for x in record["clips/objects"]] == ["apple", "pear"]


def test_the_metadata_seal_the_manifest(url):
    document = json.loads((url / card.CROISSANT).read_text())
    (manifest,) = [d for d in document["distribution"] if d["@type"] == "cr:FileObject"]
    content = (url / "manifest.json").read_bytes()
    assert manifest["sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["contentSize"] == f"{len(content)} B"


def test_wrong_publications_are_refused():
    with pytest.raises(UserError, match="give a web address"):
        Publication(url="javascript:alert(1)")
    with pytest.raises(UserError, match="write YYYY-MM-DD"):
        Publication(date="31.1.2026")


# --- index.html ---------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Elements of a page, and the texts of its scripts."""

    def __init__(self):
        super().__init__()
        self.elements, self.open, self.scripts = [], [], []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "input", "img", "br"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def data_of(page):
    tags = Tags()
    tags.feed(page)
    return json.loads(tags.scripts[0])


def test_the_page_is_whole_and_needs_nothing_else(url):
    text = (url / card.INDEX).read_text()
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "http:" not in text
    assert "https:" not in text
    (policy,) = [a["content"] for t, a in tags.elements if a.get("http-equiv")]
    digest = base64.b64encode(hashlib.sha256(tags.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    for tag, attributes in tags.elements:
        if tag == "a":
            assert (url / attributes["href"]).is_file()
    data = json.loads(tags.scripts[0])
    assert len(data["clips"]) == 3
    for number, clip in enumerate(data["clips"]):
        assert (url / clip[10]).is_file()
        assert (url / clip[11]).is_file()
        assert clip[:2] == [number, f"{number:05d}"]


def test_what_a_card_says_stays_text(tmp_path):
    place = make_set(tmp_path / "set", [clip_of(0, HOSTILE)])
    set_runs.complete(place, CLIPS)
    tags = Tags()
    tags.feed((tmp_path / "set" / card.INDEX).read_text())
    assert tags.open == []
    assert [tag for tag, _ in tags.elements].count("script") == 2
    assert "img" not in [tag for tag, _ in tags.elements]
    assert not any(name.startswith("on") for _, a in tags.elements for name in a)
    assert json.loads(tags.scripts[0])["tables"]["prompt"] == [HOSTILE]
    script = tags.scripts[1]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)


def test_a_large_set_stays_a_small_page(url):
    row = sets.read_rows(locate(url), CLIPS)[1][1]
    rows = [
        {**row, "clip": i, "facts": {**row["facts"], "sample_id": f"{i:05d}", "seed": 10**9 + i}}
        for i in range(5000)
    ]
    made = card.Card(CLIPS, {**JOB, "clips": 5000}, rows)
    assert len(card.index(made, frozenset(range(5000)))) < 1_000_000
    assert "1K<n<10K" in card.readme(made)


LOGIC = """
const page = require(process.argv[1]);
const data = JSON.parse(require("fs").readFileSync(process.argv[2]));
const clips = page.readClips(data);
const ids = (wanted) => clips.filter((c) => page.matches(c, wanted)).map((c) => c.id);
console.log(JSON.stringify({
  all: ids({}), task: ids({task: "free_fall"}), object: ids({object: "pear"}),
  both: ids({task: "free_fall", split: "train"}), words: ids({q: "  PEAR thing 2"}),
  seed: ids({q: "seed"}), counts: page.counts(clips, {task: "free_fall"}, "task"),
  left: page.counts(clips, {task: "bounce"}, "scene"),
  back: page.readHash(page.writeHash({task: "a b", q: "x&y=#z", clip: "", other: "no"})),
  none: page.writeHash({}),
  addresses: ["clips/a b.mp4", "javascript:alert(1)", "../x", "//evil", "a?b#c"].map(page.address),
}));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_filters_counts_and_links(url, tmp_path):
    (tmp_path / "page.cjs").write_text(browse._script())
    (tmp_path / "data.json").write_text(json.dumps(data_of((url / card.INDEX).read_text())))
    argv = ["node", "-e", LOGIC, str(tmp_path / "page.cjs"), str(tmp_path / "data.json")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert found == {
        "all": ["00000", "00001", "00002"],
        "task": ["00000", "00002"],
        "object": ["00001", "00002"],
        "both": ["00000", "00002"],
        "words": ["00002"],
        "seed": [],
        "counts": [["bounce", 1], ["free_fall", 2]],
        "left": [["hall", 1], ["loft", 0]],
        "back": {"task": "a b", "q": "x&y=#z"},
        "none": "#",
        "addresses": [
            "./clips/a%20b.mp4", "./javascript%3Aalert(1)", "./%2E%2E/x", ".///evil", "./a%3Fb%23c",
        ],
    }  # fmt: skip


# --- bundles, and the command -------------------------------------------------------------------


def test_bundles_have_a_card_too(tmp_path, clips, monkeypatch):
    import mlcroissant

    place = make_set(tmp_path / "set", clips[:2], kind=BUNDLES, write=write_bundle_of)
    set_runs.complete(place, BUNDLES)
    assert validate(place.url) == []
    text = (tmp_path / "set" / card.README).read_text()
    assert "| masks.npz | bool (T, N, H, W) |" in text
    bundle = tmp_path / "set" / "bundles" / "00000"
    files = {p.relative_to(bundle).as_posix() for p in bundle.rglob("*") if p.is_file()}
    told = {name.removesuffix(", ...") for name, *_ in card._BUNDLE_FILES}
    assert told <= files
    assert {name for name in files if not name.startswith("frames/")} <= told
    assert "--format bundle" in text
    monkeypatch.chdir(place.url)
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], names)
    assert names["clip"].prompt == "Thing 0 falls."
    for clip in data_of((tmp_path / "set" / card.INDEX).read_text())["clips"]:
        assert (tmp_path / "set" / clip[10]).is_file()
        assert (tmp_path / "set" / clip[11]).is_file()
    dataset = mlcroissant.Dataset(jsonld=tmp_path / "set" / card.CROISSANT)
    assert [r["clips/video"] for r in dataset.records("clips")] == [
        b"bundles/00000/video.mp4", b"bundles/00001/video.mp4",
    ]  # fmt: skip


def test_the_command_describes(tmp_path, clips, capsys):
    place = make_set(tmp_path / "set", clips[:2], only=(0,))
    with pytest.raises(SystemExit) as stop:
        main(["describe", place.url, "--url", "https://example.org/clips"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"{place.url}: 1 clip described\n"
    assert json.loads((tmp_path / "set" / card.CROISSANT).read_text())["url"] == (
        "https://example.org/clips"
    )
    (tmp_path / "set" / card.README).write_text("mine")
    with pytest.raises(SystemExit):
        main(["describe", place.url, "--creator", "Us"])
    assert "README.md: changed by hand" in capsys.readouterr().out
    # What was said of the publication stays when the set is completed.
    write_clip(place.url, 1, clips[1])
    set_runs.complete(place, CLIPS)
    told = json.loads((tmp_path / "set" / card.CROISSANT).read_text())
    assert (told["url"], told["creator"]["name"]) == ("https://example.org/clips", "Us")
    with pytest.raises(SystemExit):
        main(["describe", place.url, "--overwrite"])
    assert "url" not in json.loads((tmp_path / "set" / card.CROISSANT).read_text())


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.accept
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_browser_shows_what_the_address_asks_for(tmp_path, clips):
    place = make_set(tmp_path / "set", [*clips, clip_of(3, HOSTILE)])
    set_runs.complete(place, CLIPS)
    argv = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000",
            f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]  # fmt: skip
    address = f"file://{tmp_path}/set/index.html#object=pear&clip=00003"
    done = subprocess.run([*argv, address], capture_output=True, text=True, timeout=120, check=True)
    shown = re.sub(r"<script.*?</script>", "", done.stdout, flags=re.S)
    assert ">3 of 4 clips</output>" in shown
    assert shown.count('class="clip"') == 3
    assert shown.count("./thumbs/00000") >= 3
    assert "<video" in shown.split("<dialog")[1]
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert not re.search(r"<img[^>]*onerror", shown)

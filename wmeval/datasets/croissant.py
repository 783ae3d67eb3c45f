"""Croissant 1.0 metadata of a set of clips: JSON-LD that data-set searches and loaders read.

Of each clip it describes what its row states, by name and type, and where in the set's manifest
(before the set is complete: in its rows) that stands. What only the publisher knows, where the set
lies, who publishes it and when, is given (`Publication`) or left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from wmeval.datasets.browse import THUMBS
from wmeval.datasets.sets import MANIFEST, ROWS, SetKind
from wmeval.errors import UserError

CROISSANT = "croissant.json"
CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
RECORDS = "clips"
_SEAL = re.compile(rb'"identifier": "sha256:([0-9a-f]{64})"')


@dataclass(frozen=True)
class Publication:
    """What a set cannot know of itself.

    Attributes:
        url: where it can be had.
        creator: person or organization that publishes it.
        date: of publication, YYYY-MM-DD.

    Raises:
        UserError: no web address or no date.
    """

    url: str = ""
    creator: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("https://", "http://")):
            raise UserError(f"url {self.url!r}: give a web address, https://...")
        if self.date:
            try:
                date.fromisoformat(self.date)
            except ValueError as error:
                raise UserError(f"date {self.date!r}: write YYYY-MM-DD") from error


def published(document: bytes | None) -> Publication:
    """What a Croissant document says of its publication; nothing where it cannot be read."""
    try:
        found = json.loads(document or b"{}")
        creator = found.get("creator", {}).get("name", "")
        told = [found.get("url", ""), creator, found.get("datePublished", "")]
        return Publication(*map(str, told))
    except (ValueError, AttributeError, RecursionError):
        return Publication()


@dataclass(frozen=True)
class Column:
    """A field of a clip's record.

    Attributes:
        name: of the field.
        path: where its value stands in a row.
        type: its Croissant data type.
        doc: one line.
        repeated: the value is a list.
    """

    name: str
    path: str
    type: str
    doc: str
    repeated: bool = False


COLUMNS: tuple[Column, ...] = (
    Column("clip", "clip", "sc:Integer", "number of the clip in the set; files are named by it"),
    Column("sample_id", "facts.sample_id", "sc:Text", "name of the clip in its manifest"),
    Column("task", "facts.task_type", "sc:Text", "what happens, by its task's id"),
    Column("scene", "facts.scene_id", "sc:Text", "room or outdoor place, by its card's id"),
    Column("surface", "facts.surface_name", "sc:Text", "what things stand on"),
    Column("split", "facts.split", "sc:Text", "partition"),
    Column("seed", "facts.seed", "sc:Integer", "of everything drawn in the clip"),
    Column("objects", "facts.objects", "sc:Text", "ids that the clip's task may draw from", True),
    Column("prompt", "facts.prompt", "sc:Text", "what happens, in one sentence"),
    Column("full_prompt", "facts.full_prompt", "sc:Text", "what a video model is told"),
    Column("negative_prompt", "facts.negative_prompt", "sc:Text", "what shall not be seen"),
    Column("physics", "facts.physics", "sc:Text", "mode of the simulation"),
    Column("frames", "frames", "sc:Integer", "number of frames"),
    Column("fps", "fps", "sc:Text", "frames per second, an exact fraction"),
    Column("width", "width", "sc:Integer", "of the pictures, px"),
    Column("height", "height", "sc:Integer", "of the pictures, px"),
    Column("path", "path", "sc:Text", "store or folder of the clip, relative to the set"),
    Column("video", "video", "sc:Text", "mp4 file of the clip, relative to the set"),
)

_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that the specification prescribes, word by word."""


def croissant(
    name: str,
    *,
    description: str,
    license: str,
    citation: str,
    keywords: Sequence[str],
    kind: SetKind,
    rows: Sequence[Mapping[str, Any]],
    manifest: tuple[int, str] | None,
    publication: Publication | None = None,
) -> str:
    """The metadata as JSON text; the same arguments give the same text.

    Its identifier is the sha256 of the text that has 64 zeros there (`sealed_for`).

    Args:
        name: of the data set, without blanks.
        description: what it is.
        license: its licence's web address, or a sentence.
        citation: BibTeX.
        keywords: for searches.
        kind: of the set.
        rows: of its clips.
        manifest: bytes and sha256 of the set's manifest; None before the set is complete.
        publication: what the set cannot know of itself.
    """
    told = publication or Publication()
    optional = {
        "url": told.url,
        "datePublished": told.date,
        "creator": {"@type": "Organization", "name": told.creator} if told.creator else "",
        "citeAs": citation,
    }
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": name,
        "description": description,
        "license": license,
        "version": "1.0.0",
        "identifier": f"sha256:{'0' * 64}",
        "keywords": list(keywords),
        "inLanguage": "en",
        **{key: value for key, value in optional.items() if value},
        "distribution": _distribution(kind, manifest),
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": RECORDS,
                "name": RECORDS,
                "description": "One record per clip.",
                "key": {"@id": f"{RECORDS}/clip"},
                "field": [
                    _field(column, complete=manifest is not None)
                    for column in COLUMNS
                    if all(_holds(row, column.path) for row in rows)
                ],
            }
        ],
    }
    text = json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    empty = f'"identifier": "sha256:{"0" * 64}"'
    return text.replace(empty, empty.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest()))


def sealed_for(document: bytes, manifest: str | None) -> str:
    """What is wrong with a document that `croissant` wrote, in words; "" when it is whole.

    Args:
        document: the file.
        manifest: sha256 of the manifest that it must tell of; None: any or none.
    """
    match = _SEAL.search(document)
    if match is None:
        return "is not as wmeval writes it"
    start, end = match.span(1)
    text = document[:start] + b"0" * 64 + document[end:]
    if hashlib.sha256(text).hexdigest().encode() != match[1]:
        return "damaged: its checksum does not match"
    if manifest is not None and manifest.encode() not in document[end:]:
        return "tells of another state of the set"
    return ""


def _distribution(kind: SetKind, manifest: tuple[int, str] | None) -> list[dict[str, Any]]:
    films = f"{kind.samples}/*.mp4" if kind.samples == "clips" else f"{kind.samples}/*/video.mp4"
    rows: dict[str, Any] = _files("rows", f"{ROWS}/*.json", "application/json", "one row a clip")
    if manifest is not None:
        rows = {
            "@type": "cr:FileObject",
            "@id": "manifest",
            "name": "manifest",
            "description": "all rows; each lists its clip's files with length and sha256",
            "contentUrl": MANIFEST,
            "encodingFormat": "application/json",
            "contentSize": f"{manifest[0]} B",
            "sha256": manifest[1],
        }
    return [
        rows,
        _files("videos", films, "video/mp4", "one H.264 video a clip"),
        _files("thumbnails", f"{THUMBS}/*.jpg", "image/jpeg", "first frames, small"),
    ]


def _files(name: str, pattern: str, media: str, doc: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": name,
        "name": name,
        "description": doc,
        "encodingFormat": media,
        "includes": pattern,
    }


def _field(column: Column, *, complete: bool) -> dict[str, Any]:
    source = {"fileObject": {"@id": "manifest"}} if complete else {"fileSet": {"@id": "rows"}}
    where = f"$.rows[*].{column.path}" if complete else f"$.{column.path}"
    return {
        "@type": "cr:Field",
        "@id": f"{RECORDS}/{column.name}",
        "name": column.name,
        "description": column.doc,
        "dataType": column.type,
        **({"repeated": True} if column.repeated else {}),
        "source": {**source, "extract": {"jsonPath": where}},
    }


def _holds(row: Mapping[str, Any], path: str) -> bool:
    value: Any = row
    for part in path.split("."):
        if part not in value:
            return False
        value = value[part]
    return True

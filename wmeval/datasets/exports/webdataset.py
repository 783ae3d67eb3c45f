"""WebDataset: tar shards of a split, each clip as files of one key.

``train-000000.tar`` holds ``00000.mp4``, ``.json`` (facts, rate, size), ``.first.png`` (the frame
that a model is given), ``.state.npz`` (every substep, SI), ``.depth.npz`` and ``.masks.npz``.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wmeval.datasets.clip import ClipRecord
from wmeval.datasets.clips import ClipSet
from wmeval.datasets.exports.samples import Step, film_of_clip, plain_state
from wmeval.datasets.png import png_bytes
from wmeval.errors import UserError

PER_SHARD = 100
"""Clips of a shard."""


def write(clips: ClipSet, folder: Path, step: Step) -> int:
    """Fill a folder with shards; the same clips give the same bytes.

    Raises:
        UserError: two clips of one name, a clip without depth or ids, or a damaged one.
    """
    by_split: dict[str, list[int]] = {}
    for i in range(len(clips)):
        by_split.setdefault(clips.facts(i).split, []).append(i)
    done = 0
    for split, members in sorted(by_split.items()):
        keys = [key_of(clips.facts(i).sample_id) for i in members]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise UserError(f"{clips.url}: two clips of split {split!r} are named {twice[0]!r}")
        for start in range(0, len(members), PER_SHARD):
            path = folder / f"{split}-{start // PER_SHARD:06d}.tar"
            with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
                for i in members[start : start + PER_SHARD]:
                    film = film_of_clip(clips, i).content()
                    for name, content in _files(clips[i], film):
                        entry = tarfile.TarInfo(name)
                        entry.size, entry.mode = len(content), 0o644
                        tar.addfile(entry, io.BytesIO(content))
                    done += 1
                    step(done, len(clips))
    return done


def key_of(sample_id: str) -> str:
    """Name of a sample within a shard: what comes before the first dot is the key."""
    return sample_id.replace(".", "_")


def _files(clip: ClipRecord, film: bytes) -> Iterator[tuple[str, bytes]]:
    key = key_of(clip.facts.sample_id)
    width, height = clip.size
    facts = {
        **clip.facts.model_dump(mode="json"),
        "frames": len(clip),
        "fps": float(clip.fps),
        "width": width,
        "height": height,
        "bodies": [body.name for body in clip.rollout.scene.bodies],
    }
    names = np.array([actor.name for actor in clip.actors])
    yield f"{key}.mp4", film
    yield f"{key}.json", json.dumps(facts, ensure_ascii=False).encode()
    yield f"{key}.first.png", png_bytes(clip.rgb[0])
    yield f"{key}.state.npz", _npz(**plain_state(clip.rollout))
    yield f"{key}.depth.npz", _npz(depth=clip.depth[:])
    masks = np.stack([clip.masks(i) for i in range(len(clip))])
    yield f"{key}.masks.npz", _npz(masks=masks, actor_names=names)


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()

"""mp4 files: H.264 with exact frame times, the same bytes on every run.

Frame j of a file is at j / fps; frame 0 is the seed frame. Colour is BT.709, 4:2:0, limited range,
so a file is a lossy copy: at crf 18 the error of natural frames is about 1-2 grey levels. H.264 in
4:2:0 needs even sizes: an odd picture gets its last row or column twice, and the true size goes
into the file's comment, by which `read_mp4` cuts it again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.clock import exact
from wmeval.errors import UserError
from wmeval.jobs.atomic import atomic_file

Frames = NDArray[np.uint8]

MAX_SIDE = 8192
MAX_BYTES = 8 << 30
_BT709 = 1
_LIMITED = 1
_SIZE = re.compile(r"wmeval size=(\d{1,5})x(\d{1,5})")


@dataclass(frozen=True)
class VideoInfo:
    """What a video file says of itself.

    Attributes:
        frames: number of frames.
        fps: frames per second.
        width, height: [px], as written.
        codec: name of its codec.
    """

    frames: int
    fps: Fraction
    width: int
    height: int
    codec: str

    @property
    def duration(self) -> Fraction:
        """Frames by rate [s]."""
        return self.frames / self.fps


def write_mp4(
    path: str | Path,
    frames: Iterable[NDArray[Any]],
    fps: Fraction | int | str,
    *,
    crf: int = 18,
) -> int:
    """Write a video, whole or not at all.

    One encoder thread, no time stamps, no processor-dependent code: the same frames give the same
    bytes in any process.

    Args:
        path: the file; one that is there is replaced.
        frames: (H, W, 3) uint8 sRGB each, all of one size.
        fps: frames per second.
        crf: quality, 0 (lossless luma) to 51.

    Returns:
        Number of frames.

    Raises:
        UserError: no frames, frames of another shape or dtype, a rate that is not positive, disk
            full.
    """
    import av

    path = Path(path)
    rate = exact(fps)
    if rate <= 0 or not 0 <= crf <= 51:
        raise UserError(f"{path}: needs fps > 0 and crf in 0..51; got {fps} and {crf}.")
    if rate.numerator > 1_000_000 or rate.denominator > 1_000_000:
        raise UserError(f"{path}: {rate} frames/s is too fine a fraction for an mp4 file.")
    count = 0
    iterator = iter(frames)
    first = next(iterator, None)
    if first is None:
        raise UserError(f"{path}: no frames to write.")
    shape = _checked(path, first, None, 0).shape
    height, width = shape[:2]
    with atomic_file(path) as temporary, _codec_errors(path):
        container = av.open(
            str(temporary),
            "w",
            format="mp4",
            options={"fflags": "+bitexact", "video_track_timescale": str(_timescale(rate))},
        )
        with container:
            if width % 2 or height % 2:
                container.metadata["comment"] = f"wmeval size={width}x{height}"
            stream: Any = container.add_stream("libx264", rate=rate)
            stream.width, stream.height = width + width % 2, height + height % 2
            stream.pix_fmt = "yuv420p"
            stream.thread_count = 1
            # Without cpu-independent the look-ahead (AVX-512) reads memory that nobody set: the
            # same frames gave 29 different files in 120 runs. It costs no measurable time.
            stream.options = {
                "crf": str(crf),
                "preset": "medium",
                "threads": "1",
                "x264-params": "cpu-independent=1",
            }
            context = stream.codec_context
            context.time_base = 1 / rate
            context.thread_count = 1
            context.colorspace = context.color_primaries = context.color_trc = _BT709
            context.color_range = _LIMITED
            while first is not None:
                picture = _even(_checked(path, first, shape, count))
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(
                    format="yuv420p",
                    src_color_range="JPEG",
                    dst_color_range="MPEG",
                    dst_colorspace="ITU709",
                )
                frame.pts, frame.time_base = count, 1 / rate
                container.mux(stream.encode(frame))
                count += 1
                first = next(iterator, None)
            container.mux(stream.encode(None))
    return count


def _timescale(rate: Fraction) -> int:
    # A multiple of the numerator makes every frame time exact; at least 10000 as players like it.
    return rate.numerator * max(1, -(-10_000 // rate.numerator))


def _even(frame: Frames) -> Frames:
    height, width = frame.shape[:2]
    if height % 2 or width % 2:
        frame = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return np.ascontiguousarray(frame)


def _checked(path: Path, frame: Any, shape: tuple[int, ...] | None, count: int) -> Frames:
    array = np.asarray(frame)
    good = array.ndim == 3 and array.shape[-1] == 3 and array.dtype == np.uint8
    if not good or (shape is not None and array.shape != shape):
        expected = f"{shape}" if shape is not None else "(H, W, 3)"
        raise UserError(
            f"{path}: frame {count} is {array.dtype} {array.shape}; expected uint8 {expected}."
        )
    if not (0 < array.shape[0] <= MAX_SIDE and 0 < array.shape[1] <= MAX_SIDE):
        raise UserError(f"{path}: frame size {array.shape[:2]} is outside 1..{MAX_SIDE} px.")
    return array


@contextmanager
def _codec_errors(path: Path) -> Iterator[None]:
    import av

    try:
        yield
    except av.FFmpegError as error:
        if isinstance(error, OSError) and error.errno in range(1, 200):
            raise OSError(error.errno, str(error)) from error  # The disk's, for `atomic_file`.
        raise UserError(f"{path}: cannot be encoded: {error}.") from error


# --- reading --------------------------------------------------------------------------------------


@contextmanager
def _video(path: Path) -> Iterator[tuple[Any, Any]]:
    import av

    if not path.is_file():
        raise UserError(f"{path}: there is no such video file.")
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise UserError(f"{path}: holds no video; expected an mp4 file with one.")
            stream = container.streams.video[0]
            stream.thread_count = 1
            rate = stream.average_rate
            if not rate or rate <= 0 or not stream.codec_context.width:
                raise UserError(f"{path}: states no frame rate or size; write it again.")
            if max(stream.codec_context.width, stream.codec_context.height) > MAX_SIDE:
                raise UserError(
                    f"{path}: {stream.codec_context.width}x{stream.codec_context.height} px is "
                    f"over {MAX_SIDE} px a side; scale it down."
                )
            yield container, stream
    except (av.FFmpegError, EOFError) as error:
        raise UserError(
            f"{path}: cut off, damaged or no video ({error}); write it again."
        ) from error


def _size(container: Any, stream: Any) -> tuple[int, int]:
    coded = (int(stream.codec_context.width), int(stream.codec_context.height))
    match = _SIZE.fullmatch(container.metadata.get("comment", ""))
    if match:
        true = (int(match[1]), int(match[2]))
        if all(0 <= c - t <= 1 for c, t in zip(coded, true, strict=True)):
            return true
    return coded


def _rate(stream: Any) -> Fraction:
    return Fraction(stream.average_rate)


def probe_mp4(path: str | Path) -> VideoInfo:
    """Length, rate and size of a video, without decoding it.

    Raises:
        UserError: no such file, or no whole video.
    """
    path = Path(path)
    with _video(path) as (container, stream):
        count = sum(1 for packet in container.demux(stream) if packet.size)
        _whole(path, stream, count)
        width, height = _size(container, stream)
        return VideoInfo(count, _rate(stream), width, height, str(stream.codec_context.name))


def _whole(path: Path, stream: Any, count: int) -> None:
    stated = int(stream.frames or 0)
    if count == 0 or (stated and stated != count):
        raise UserError(
            f"{path}: cut off: its index states {stated or 'no'} frames, {count} can be read; "
            "write it again."
        )


def _decoded(path: Path, container: Any, stream: Any) -> Iterator[Any]:
    """Frames as they were encoded: what a decoder would patch up is an error here.

    Damage that happens to decode without a fault cannot be seen; checksums beside the file see it.
    """
    # The decoder tells of faults in its data, and marks what it filled in from other frames.
    stream.codec_context.options = {"err_detect": "explode"}
    for number, frame in enumerate(container.decode(stream)):
        if frame.is_corrupt:
            raise UserError(f"{path}: frame {number} is damaged; write it again.")
        yield frame


def read_mp4(
    path: str | Path,
    *,
    frames: int | None = None,
    size: tuple[int, int] | None = None,
    fps: Fraction | int | str | None = None,
) -> tuple[Frames, tuple[Fraction, ...]]:
    """Read a whole video.

    Args:
        path: the file.
        frames: expected number of frames.
        size: expected width and height [px].
        fps: expected rate.

    Returns:
        (T, H, W, 3) uint8 sRGB, and the exact time [s] of each frame: its presentation time less
        that of the first, so frame 0 is at 0.

    Raises:
        UserError: no such file, a cut or damaged one, or another length, size or rate than
            expected; the message says what was expected, what was found, and the mend.
    """
    path = Path(path)
    with _video(path) as (container, stream):
        found = _rate(stream)
        wanted = None if fps is None else exact(fps)
        if wanted is not None and found != wanted:
            raise UserError(
                f"{path}: {found} frames/s, expected {wanted}; write it at that rate "
                f"(ffmpeg -r {wanted})."
            )
        width, height = _size(container, stream)
        if size is not None and (width, height) != tuple(size):
            raise UserError(
                f"{path}: {width}x{height} px, expected {size[0]}x{size[1]}; write it at that size."
            )
        limit = MAX_BYTES // (width * height * 3) if frames is None else frames
        pictures: list[Frames] = []
        times: list[Fraction] = []
        for frame in _decoded(path, container, stream):
            if len(pictures) > limit:
                break
            picture = _rgb(frame)
            if picture.shape[0] < height or picture.shape[1] < width:
                raise UserError(
                    f"{path}: its size changes at frame {len(pictures)}; write it again."
                )
            pictures.append(picture[:height, :width])
            if frame.pts is None or frame.time_base is None:
                raise UserError(f"{path}: frame {len(pictures) - 1} has no time; write it again.")
            times.append(frame.pts * Fraction(frame.time_base))
        if frames is not None and len(pictures) != frames:
            more = "more than " if len(pictures) > frames else ""
            shown = min(len(pictures), frames)
            raise UserError(
                f"{path}: {more}{shown} frames, expected {frames}; write exactly that many."
            )
        if len(pictures) > limit:
            raise UserError(f"{path}: decodes to over {MAX_BYTES} bytes; cut it into clips.")
        _whole(path, stream, len(pictures))
    if any(b <= a for a, b in itertools.pairwise(times)):
        raise UserError(f"{path}: its frame times do not ascend; write it again.")
    return np.stack(pictures), tuple(t - times[0] for t in times)


def _rgb(frame: Any) -> Frames:
    # Untagged files are BT.601 by the convention of the tools that write them.
    tagged = int(frame.colorspace) == _BT709
    picture = frame.reformat(
        format="rgb24",
        src_colorspace="ITU709" if tagged else "ITU601",
        src_color_range="JPEG" if int(frame.color_range) == 2 else "MPEG",
        dst_color_range="JPEG",
    )
    return np.asarray(picture.to_ndarray(), np.uint8)


def iter_mp4(path: str | Path) -> Iterator[Frames]:
    """Frames of a video one after the other, (H, W, 3) uint8 sRGB each.

    Raises:
        UserError: no such file, or a cut or damaged one, when its turn comes.
    """
    return (picture() for picture in iter_pictures(path))


def iter_pictures(path: str | Path) -> Iterator[Callable[[], Frames]]:
    """The same frames, each as a call that gives it: one passed over is no picture.

    A call is good until the next frame is asked for. Raises as `iter_mp4`.
    """
    path = Path(path)
    with _video(path) as (container, stream):
        size = _size(container, stream)
        for frame in _decoded(path, container, stream):
            yield partial(_cut, path, frame, size)


def _cut(path: Path, frame: Any, size: tuple[int, int]) -> Frames:
    picture = _rgb(frame)
    width, height = size
    if picture.shape[0] < height or picture.shape[1] < width:
        raise UserError(f"{path}: its size changes; write it again.")
    return picture[:height, :width]


def check_mp4(path: str | Path) -> VideoInfo:
    """Decode a whole video and keep nothing.

    Raises:
        UserError: no such file, or it does not decode to the number of frames that it states.
    """
    path = Path(path)
    with _video(path) as (container, stream):
        count = sum(1 for _ in _decoded(path, container, stream))
        _whole(path, stream, count)
    return probe_mp4(path)

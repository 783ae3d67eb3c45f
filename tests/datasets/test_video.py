import resource
import tempfile
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wmeval.datasets import video
from wmeval.datasets.film import film_layer
from wmeval.datasets.video import check_mp4, probe_mp4, read_mp4, write_mp4
from wmeval.errors import UserError


def moving_picture(count, height=64, width=96, seed=0):
    """Smooth coloured waves that move: what rendered frames are like to an encoder."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    phase = rng.uniform(0, 6, 3)
    return [
        np.stack(
            [
                127 + 90 * np.sin((x + 2 * j) / 19 + phase[0]),
                127 + 90 * np.cos((y - j) / 13 + phase[1]),
                127 + 60 * np.sin((x + y) / 23 + j / 9 + phase[2]),
            ],
            axis=-1,
        ).astype(np.uint8)
        for j in range(count)
    ]


def psnr(a, b):
    error = np.mean((np.asarray(a, float) - np.asarray(b, float)) ** 2)
    return 10 * np.log10(255**2 / error)


@settings(max_examples=15, deadline=None)
@given(
    count=st.integers(1, 12),
    height=st.integers(16, 70),
    width=st.integers(16, 70),
    fps=st.sampled_from(
        [
            Fraction(24),
            Fraction(16),
            Fraction(25),
            Fraction(60),
            Fraction(30000, 1001),
            Fraction(1, 2),
        ]
    ),
)
def test_a_video_comes_back_with_its_length_size_and_exact_times(count, height, width, fps):
    frames = moving_picture(count, height, width)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.mp4")
        assert write_mp4(path, iter(frames), fps) == count
        back, times = read_mp4(path, frames=count, size=(width, height), fps=fps)
        info = probe_mp4(path)
    assert times == tuple(Fraction(j) / fps for j in range(count))
    assert back.shape == (count, height, width, 3)
    assert back.dtype == np.uint8
    assert (info.frames, info.fps, info.width, info.height) == (count, fps, width, height)
    assert info.duration == count / fps
    assert psnr(back, frames) > 32


def test_colours_come_back_without_a_cast(tmp_path):
    colours = [(255, 255, 255), (0, 0, 0), (200, 40, 40), (40, 200, 40), (40, 40, 200), (128,) * 3]
    frames = [np.full((32, 32, 3), c, np.uint8) for c in colours]
    write_mp4(tmp_path / "a.mp4", frames, 24)
    back, _ = read_mp4(tmp_path / "a.mp4")
    assert np.abs(back.astype(int) - np.stack(frames)).max() <= 3


def test_quality_is_within_its_bound_and_follows_crf(tmp_path):
    frames = moving_picture(24, 180, 320)
    quality = {}
    for crf in (10, 18, 30):
        write_mp4(tmp_path / "a.mp4", frames, 24, crf=crf)
        quality[crf] = psnr(read_mp4(tmp_path / "a.mp4")[0], frames)
    assert quality[10] > quality[18] > quality[30]
    assert quality[18] > 37


def test_the_same_frames_give_the_same_bytes(tmp_path):
    """Whatever the memory that the encoder gets held before."""
    frames = moving_picture(30, 90, 160)
    rng = np.random.default_rng(0)
    contents, litter = set(), []
    for i in range(30):
        litter = [*litter[i % 3 :: 2], rng.bytes(int(rng.integers(1000, 200_000)))]
        write_mp4(tmp_path / "a.mp4", frames, Fraction(24))
        contents.add((tmp_path / "a.mp4").read_bytes())
    assert len(contents) == 1


def test_what_differs_from_the_expected_is_said_with_both(tmp_path):
    path = tmp_path / "a.mp4"
    write_mp4(path, moving_picture(10), 24)
    for expected, message in (
        ({"frames": 12}, r"a\.mp4: 10 frames, expected 12"),
        ({"frames": 9}, r"a\.mp4: more than 9 frames, expected 9"),
        ({"size": (64, 64)}, r"a\.mp4: 96x64 px, expected 64x64"),
        ({"fps": 25}, r"a\.mp4: 24 frames/s, expected 25"),
    ):
        with pytest.raises(UserError, match=message):
            read_mp4(path, **expected)


@pytest.mark.parametrize("faststart", [False, True])
def test_any_cut_of_a_video_is_found(tmp_path, faststart):
    path = tmp_path / "a.mp4"
    if faststart:  # The index comes first: a cut file opens, and lacks frames.
        options = {"movflags": "faststart"}
        with av.open(str(path), "w", options=options) as container:
            stream = container.add_stream("libx264", rate=24)
            stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
            for frame in moving_picture(20):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(stream.encode(None))
    else:
        write_mp4(path, moving_picture(20), 24)
    content = path.read_bytes()
    assert check_mp4(path).frames == 20
    rng = np.random.default_rng(0)
    for cut in [0, 1, *rng.integers(2, len(content) - 32, 25).tolist()]:
        bad = tmp_path / "bad.mp4"
        bad.write_bytes(content[:cut])
        for reader in (read_mp4, check_mp4):
            with pytest.raises(UserError, match=r"bad\.mp4"):
                reader(bad)


def mdat(content):
    at = content.index(b"mdat")
    return at + 4, at - 4 + int.from_bytes(content[at - 4 : at], "big")


def test_damage_that_a_player_would_patch_up_is_found(tmp_path):
    """The decoder fills what it cannot read from its neighbours, and a player shows that."""
    path, bad = tmp_path / "a.mp4", tmp_path / "bad.mp4"
    write_mp4(path, moving_picture(40, 180, 320), 24)
    content = path.read_bytes()
    start, end = mdat(content)
    rng = np.random.default_rng(0)
    patched_up = 0
    for size in (1000, 2000) * 6:
        damaged = bytearray(content)
        at = int(rng.integers(start + 700, end - size))
        damaged[at : at + size] = rng.bytes(size)
        bad.write_bytes(damaged)
        try:
            with av.open(str(bad)) as container:
                patched_up += sum(1 for _ in container.decode(video=0)) == 40
        except av.FFmpegError:
            pass
        for reader in (read_mp4, check_mp4):
            with pytest.raises(
                UserError, match=r"bad\.mp4: (cut off, damaged|frame \d+ is damaged)"
            ):
                reader(bad)
    assert patched_up > 0


def test_no_frame_that_was_patched_up_is_returned(tmp_path):
    """Short damage may decode to another picture without any fault; what was filled in never is."""
    path, bad = tmp_path / "a.mp4", tmp_path / "bad.mp4"
    write_mp4(path, moving_picture(40, 180, 320), 24)
    content = path.read_bytes()
    start, end = mdat(content)
    rng = np.random.default_rng(0)
    concealed = 0
    for _ in range(20):
        damaged = bytearray(content)
        damaged[int(rng.integers(start + 700, end))] ^= 1 << int(rng.integers(8))
        bad.write_bytes(damaged)
        try:
            with av.open(str(bad)) as container:
                container.streams.video[0].thread_count = 1
                container.streams.video[0].codec_context.options = {"err_detect": "explode"}
                marked = [frame.is_corrupt for frame in container.decode(video=0)]
        except av.FFmpegError:
            marked = []
        concealed += any(marked)
        if any(marked):
            for reader in (read_mp4, check_mp4):
                with pytest.raises(UserError, match=r"bad\.mp4: frame \d+ is damaged"):
                    reader(bad)
    assert concealed > 0


@pytest.mark.parametrize(
    ("codec", "options"),
    [
        ("libx264", {"x264-params": "open-gop=1:keyint=8:bframes=3"}),
        ("libx264", {"x264-params": "intra-refresh=1"}),
        ("libx265", {"x265-params": "log-level=error"}),
        ("mpeg4", {}),
    ],
)
def test_whole_videos_of_other_encoders_are_taken(tmp_path, codec, options):
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream(codec, rate=24, options=options)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for frame in moving_picture(30):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
    assert len(read_mp4(tmp_path / "a.mp4")[0]) == check_mp4(tmp_path / "a.mp4").frames == 30


def test_foreign_and_missing_files_are_named(tmp_path):
    (tmp_path / "text.mp4").write_text("no video at all " * 100)
    with pytest.raises(UserError, match=r"text\.mp4: cut off, damaged or no video"):
        read_mp4(tmp_path / "text.mp4")
    with pytest.raises(UserError, match="no such video"):
        probe_mp4(tmp_path / "nothing.mp4")


def test_frames_that_cannot_be_written_leave_nothing(tmp_path):
    path = tmp_path / "a.mp4"
    good = moving_picture(3)
    for frames, message in (
        ([], "no frames"),
        ([good[0].astype(np.float32)], "frame 0 is float32"),
        ([*good, good[0][:-2]], r"frame 3 is uint8 \(62, 96, 3\); expected uint8 \(64, 96, 3\)"),
        ([good[0][..., 0]], r"frame 0 is uint8 \(64, 96\)"),
    ):
        with pytest.raises(UserError, match=message):
            write_mp4(path, frames, 24)
    for fps in (0, -1):
        with pytest.raises(UserError, match="fps > 0"):
            write_mp4(path, good, fps)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path):
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 255, (20, 64, 96, 3)).astype(np.uint8)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(UserError, match="disk full"):
            write_mp4(tmp_path / "a.mp4", frames, 24)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_frames_in_any_order_are_right_and_no_other_is_converted(tmp_path, monkeypatch):
    frames = moving_picture(12)
    path = tmp_path / "a.mp4"
    write_mp4(path, frames, 24)
    want, _ = read_mp4(path)
    converted = []
    convert = video._rgb
    monkeypatch.setattr(video, "_rgb", lambda frame: (converted.append(1), convert(frame))[1])
    layer = film_layer(path, 12, (96, 64))
    order = (11, 3, 3, 4, 9, 0, -1)
    for i in order:
        np.testing.assert_array_equal(layer[i], want[i])
    assert len(converted) == len(order) - 1  # Frame 3 is asked for twice in a row.
    short = film_layer(path, 20, (96, 64))
    for _ in range(2):
        with pytest.raises(UserError, match="it ends before frame 15"):
            short[15]
    np.testing.assert_array_equal(short[2], want[2])

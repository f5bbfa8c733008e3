"""Page images: every form comes out as upright RGB, every bad file as a DataError, every page with its own id."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import pickle
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import warnings
import zipfile
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from inktraj import Page
from inktraj.errors import DataError, MissingDependency
from inktraj.io import decoding
from inktraj.io.images import MAX_PIXELS, MAX_SIDE, digest, find_sources, load, read_image

H, W = 30, 40


def gradient() -> np.ndarray:
    """An RGB picture whose corners all differ, so that no rotation or channel order passes for another."""
    y, x = np.mgrid[:H, :W]
    return np.stack([x * 255 // (W - 1), y * 255 // (H - 1), (x + y) * 2], axis=-1).astype(np.uint8)


def save(path: Path, pixels: np.ndarray | None = None, **options: object) -> Path:
    Image.fromarray(gradient() if pixels is None else pixels).save(path, **options)
    return path


# Forms


@pytest.mark.parametrize("suffix", ["png", "tif", "bmp", "webp", "gif"])
def test_lossless_forms(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"a.{suffix}", **({"lossless": True} if suffix == "webp" else {}))
    image = read_image(path)
    assert image.pixels.dtype == np.uint8
    tolerance = 40 if suffix == "gif" else 0  # a GIF has 256 colours
    assert np.abs(image.pixels.astype(int) - gradient()).max() <= tolerance
    assert image.id == "a"
    assert image.source == str(path)


def test_jpeg_and_its_digest(tmp_path: Path) -> None:
    path = save(tmp_path / "a.JPG", quality=95)
    image = read_image(path)
    assert np.abs(image.pixels.astype(int) - gradient()).mean() < 4
    assert image.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest(find_sources(path)[0]) == image.sha256


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "webp", "tif", "jpg"])
def test_exif_orientation_as_pillow_applies_it(tmp_path: Path, orientation: int, suffix: str) -> None:
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if suffix == "webp" else {}
    path = save(tmp_path / f"a.{suffix}", exif=exif, **options)
    with Image.open(path) as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    got = read_image(path).pixels
    assert got.shape == ((W, H, 3) if orientation > 4 else (H, W, 3))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [
        ("1", 1, (255, 255, 255)),
        ("L", 100, (100, 100, 100)),
        ("LA", (0, 51), (204, 204, 204)),
        ("RGBA", (255, 0, 0, 51), (255, 204, 204)),
        ("RGBA", (9, 9, 9, 0), (255, 255, 255)),
        ("CMYK", (0, 255, 255, 0), (255, 0, 0)),
    ],
)
def test_modes_in_tiff(tmp_path: Path, mode: str, value: object, expected: tuple[int, ...]) -> None:
    path = tmp_path / "a.tif"
    Image.new(mode, (5, 4), value).save(path)
    pixels = read_image(path).pixels
    assert pixels.shape == (4, 5, 3)
    assert np.abs(pixels.astype(int) - expected).max() <= 1


def test_ink_written_as_alpha_is_seen(tmp_path: Path) -> None:
    """Scanner apps write black everywhere and the ink as alpha."""
    pixels = np.zeros((H, W, 4), np.uint8)
    pixels[10:12, :, 3] = 255
    got = read_image(save(tmp_path / "a.png", pixels)).pixels
    assert (got[10:12] == 0).all()
    assert (got[12:] == 255).all()


def test_palette_with_transparency(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([0, 0, 0, 10, 20, 30])
    image.putpixel((1, 1), 1)
    image.save(tmp_path / "a.png", transparency=0)
    got = read_image(tmp_path / "a.png").pixels
    assert tuple(got[1, 1]) == (10, 20, 30)
    assert tuple(got[0, 0]) == (255, 255, 255)


@pytest.mark.parametrize("transparent", [True, False])
def test_grey_png_with_a_transparent_level(tmp_path: Path, transparent: bool) -> None:
    Image.new("L", (4, 4), 7).save(tmp_path / "a.png", **({"transparency": 7} if transparent else {}))
    assert (read_image(tmp_path / "a.png").pixels == (255 if transparent else 7)).all()


def test_cmyk_jpeg_is_not_inverted(tmp_path: Path) -> None:
    """Photoshop (Adobe marker) stores CMYK inverted; Pillow writes such files, white must stay white."""
    Image.new("CMYK", (16, 16), (0, 0, 0, 0)).save(tmp_path / "a.jpg")
    assert read_image(tmp_path / "a.jpg").pixels.min() > 250


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_16_bit_grey_is_scaled_not_clipped(tmp_path: Path, suffix: str) -> None:
    levels = np.linspace(0, 65535, H * W).astype(np.uint16).reshape(H, W)
    cv2.imwrite(str(tmp_path / f"a.{suffix}"), levels)
    got = read_image(tmp_path / f"a.{suffix}").pixels
    np.testing.assert_array_equal(got[..., 1], np.rint(levels / 257).astype(np.uint8))


@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize("channels", [3, 4])
def test_16_bit_colour_is_scaled_not_clipped(tmp_path: Path, suffix: str, channels: int) -> None:
    levels = (gradient().astype(np.uint32) * 257).astype(np.uint16)
    levels[0, 0] = (300, 300, 300)
    if channels == 4:
        levels = np.dstack([levels, np.full((H, W), 65535, np.uint16)])
    code = cv2.COLOR_RGBA2BGRA if channels == 4 else cv2.COLOR_RGB2BGR
    assert cv2.imwrite(str(tmp_path / f"a.{suffix}"), cv2.cvtColor(levels, code))
    got = read_image(tmp_path / f"a.{suffix}").pixels.astype(int)
    assert np.abs(got - levels[..., :3] / 257).max() <= 1


def tiff(pixels: bytes, bits: int, photometric: int, width: int = 4, height: int = 4, sample: int = 1) -> bytes:
    """A minimal little-endian grey TIFF (TIFF 6.0, section 2)."""
    entries = [
        (256, 3, width),
        (257, 3, height),
        (258, 3, bits),
        (259, 3, 1),
        (262, 3, photometric),
        (273, 4, 8),
        (277, 3, 1),
        (278, 4, height),
        (279, 4, len(pixels)),
        (339, 3, sample),
    ]
    head = b"II*\x00" + struct.pack("<I", 8 + len(pixels)) + pixels
    directory = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return head + struct.pack("<H", len(entries)) + directory + b"\0\0\0\0"


@pytest.mark.parametrize(
    ("levels", "bits", "photometric", "expected"),
    [
        (np.full(16, 65535, "<u2"), 16, 1, 255),
        (np.full(16, 65535, "<u2"), 16, 0, 0),
        (np.zeros(16, "<u2"), 16, 0, 255),
        (np.full(16, 250, "u1"), 8, 0, 5),
    ],
)
def test_tiff_in_which_white_is_zero(levels: np.ndarray, bits: int, photometric: int, expected: int) -> None:
    got = read_image(io.BytesIO(tiff(levels.tobytes(), bits, photometric))).pixels
    assert (got == expected).all()


def test_12_bit_tiff_uses_its_own_white() -> None:
    row = b"\xff\xff\xff" * 2  # four levels of 4095
    got = read_image(io.BytesIO(tiff(row * 4, 12, 1))).pixels
    assert (got == 255).all()


@pytest.mark.parametrize(("value", "expected"), [(0.5, 128), (200.0, 200)])
def test_float_tiff(value: float, expected: int) -> None:
    data = tiff(np.full(16, value, "<f4").tobytes(), 32, 1, sample=3)
    assert (read_image(io.BytesIO(data)).pixels == expected).all()


@pytest.mark.parametrize("value", [np.nan, -1.0, 1e6])
def test_float_tiff_out_of_range(value: float) -> None:
    data = tiff(np.full(16, value, "<f4").tobytes(), 32, 1, sample=3)
    with pytest.raises(DataError, match="float image"):
        read_image(io.BytesIO(data))


def test_32_bit_integers_are_refused() -> None:
    with pytest.raises(DataError, match="32-bit integers"):
        read_image(io.BytesIO(tiff(np.zeros(16, "<u4").tobytes(), 32, 1)))


def multipage(path: Path, count: int = 3) -> Path:
    pages = [Image.new("L", (10, 10 + i), 50 * i) for i in range(count)]
    pages[0].save(path, save_all=True, append_images=pages[1:])
    return path


@pytest.mark.parametrize("suffix", ["tif", "pdf"])
def test_pages_of_one_file(tmp_path: Path, suffix: str) -> None:
    multipage(tmp_path / f"a.{suffix}")
    sources = find_sources(tmp_path)
    assert [s.id for s in sources] == ["a", "a-p2", "a-p3"]
    images = [load(s) for s in sources]
    for i, image in enumerate(images):
        assert abs(int(np.median(image.pixels)) - 50 * i) <= 1
        assert image.source.endswith(f"#page={i + 1}") == (i > 0)
    shapes = [image.pixels.shape[:2] for image in images]
    assert len(set(shapes)) == 3
    with pytest.raises(DataError, match="page 4 was asked for"):
        read_image(tmp_path / f"a.{suffix}", index=3)


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("RGB", {"compression": "jpeg", "quality": 95}),
        ("RGB", {"compression": "tiff_lzw", "big_tiff": True}),
        ("1", {"compression": "group4"}),
    ],
)
def test_tiff_as_scanners_write_it(tmp_path: Path, mode: str, options: dict[str, object]) -> None:
    y, x = np.mgrid[:64, :64]
    soft = Image.fromarray(np.stack([x * 4, y * 4, 255 - x * 2], axis=-1).astype(np.uint8)).convert(mode)
    soft.save(tmp_path / "a.tif", save_all=True, append_images=[soft.rotate(180)], **options)
    first, second = (load(s).pixels.astype(int) for s in find_sources(tmp_path))
    assert np.abs(first - np.asarray(soft.convert("RGB"))).mean() < 3
    assert np.abs(first - second[::-1, ::-1]).mean() < 3


def test_page_of_a_one_page_form(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="one page"):
        read_image(save(tmp_path / "a.png"), index=1)
    with pytest.raises(DataError, match="index -1"):
        read_image(tmp_path / "a.png", index=-1)


def test_gif_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), c) for c in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert tuple(read_image(tmp_path / "a.gif").pixels[4, 4]) == (255, 0, 0)


def test_pdf_is_drawn_at_its_image_resolution(tmp_path: Path) -> None:
    """A 300 dpi scan comes back pixel for pixel in size; a page without images at 200 dpi."""
    import pypdfium2

    Image.new("L", (600, 900), 90).save(tmp_path / "scan.pdf", resolution=300)
    assert read_image(tmp_path / "scan.pdf").pixels.shape == (900, 600, 3)
    document = pypdfium2.PdfDocument.new()
    document.new_page(72, 144)
    document.save(tmp_path / "empty.pdf")
    document.close()
    got = read_image(tmp_path / "empty.pdf").pixels
    assert got.shape == (400, 200, 3)
    assert (got == 255).all()


def test_pdf_of_absurd_size_is_bounded_or_refused(tmp_path: Path) -> None:
    import pypdfium2

    for side in (4000, 14000):
        document = pypdfium2.PdfDocument.new()
        document.new_page(side, side)
        document.save(tmp_path / f"{side}.pdf")
        document.close()
    height, width, _ = read_image(tmp_path / "4000.pdf").pixels.shape
    assert 0.95 * MAX_PIXELS < height * width <= MAX_PIXELS
    with pytest.raises(DataError, match="inches"):
        read_image(tmp_path / "14000.pdf")


def test_pdf_without_pypdfium2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    multipage(tmp_path / "a.pdf")
    monkeypatch.setitem(__import__("sys").modules, "pypdfium2", None)
    sources = find_sources(tmp_path)
    assert len(sources) == 1
    with pytest.raises(MissingDependency, match=r"inktraj\[pdf\]"):
        load(sources[0])


def test_file_objects(tmp_path: Path) -> None:
    data = save(tmp_path / "a.png").read_bytes()
    assert read_image(io.BytesIO(data)).id == "page"

    class Pipe(io.RawIOBase):
        """As standard input: can be read once, cannot seek."""

        inner = io.BytesIO(data)

        def read(self, size: int = -1) -> bytes:
            return self.inner.read(size)

    np.testing.assert_array_equal(read_image(Pipe()).pixels, gradient())
    with (tmp_path / "a.png").open("rb") as file:
        assert read_image(file).id == "a"
    Pipe.name, Pipe.inner = "<stdin>", io.BytesIO(data)  # type: ignore[attr-defined]
    assert (read_image(Pipe()).id, Pipe.inner.read()) == ("page", b"")
    with pytest.raises(DataError, match="binary mode"):
        read_image(io.StringIO("text"))


def test_page_open(tmp_path: Path) -> None:
    page = Page.open(save(tmp_path / "a.png"))
    assert (page.width, page.height, page.id) == (W, H, "a")


# Bad files


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_header(width: int, height: int) -> bytes:
    """A PNG whose header promises a size and whose data are missing."""
    ihdr = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", ihdr) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty.jpg", b"", "empty"),
        ("text.jpg", b"Dear sir, this is not a picture but a letter.", "not an image but text"),
        ("note.jpg", b"\xef\xbb\xbfAnm\xc3\xa4rkning", "not an image but text"),
        ("page.png", b"<!DOCTYPE html><html>404</html>", "HTML"),
        ("photo.jpg", b"\x00\x00\x00\x18ftypheic" + b"\0" * 80, "HEIC"),
        ("zero.jpg", b"\0" * 5000, "zero bytes"),
        ("noise.png", bytes(range(256)), "unknown data"),
        ("lfs.png", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        ("pages.tif", b"PK\x03\x04" + b"\0" * 50, "ZIP archive"),
        ("head.jpg", b"\xff\xd8\xff\xe0", "damaged"),
        ("head.png", b"\x89PNG\r\n\x1a\n", "damaged"),
        ("head.tif", b"II*\x00", "damaged"),
        ("head.bmp", b"BM", "damaged"),
        ("head.gif", b"GIF89a", "damaged"),
        ("head.webp", b"RIFF\x00\x00\x00\x00WEBP", "damaged"),
        ("head.pdf", b"%PDF-1.7\n", "damaged"),
        ("wide.png", png_header(40_000, 100), "40,000×100 px"),
        ("bomb.png", png_header(29_000, 29_000), "too large"),
        ("flat.gif", b"GIF89a" + struct.pack("<HH", 0, 5) + b"\0" * 20, "size of 0×5"),
        ("bomb.gif", b"GIF89a" + struct.pack("<HH", 60_000, 5) + b"\0" * 20, "too large"),
        ("hollow.png", png_header(20, 20), "cut short"),
    ],
)
def test_bad_files_are_refused_with_the_reason(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    (source,) = find_sources(tmp_path)
    with pytest.raises(DataError, match=message) as error:
        load(source)
    assert name in str(error.value)


@pytest.mark.parametrize("suffix", ["jpg", "png", "tif", "webp", "bmp", "gif"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_files_are_refused(tmp_path: Path, suffix: str, share: float) -> None:
    noise = np.random.default_rng(5).integers(0, 255, (64, 64, 3)).astype(np.uint8)
    data = save(tmp_path / f"a.{suffix}", noise).read_bytes()
    (tmp_path / f"a.{suffix}").write_bytes(data[: int(len(data) * share)])
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as outside of tests: a warning must not be what saves us
        with pytest.raises(DataError, match="damaged or cut short"):
            read_image(tmp_path / f"a.{suffix}")


@pytest.mark.parametrize("suffix", ["jpg", "png", "tif", "webp", "bmp", "gif", "pdf"])
def test_flipped_bytes_never_escape_as_other_errors(tmp_path: Path, rng: np.random.Generator, suffix: str) -> None:
    path = multipage(tmp_path / f"a.{suffix}") if suffix in ("tif", "pdf") else save(tmp_path / f"a.{suffix}")
    data = np.frombuffer(path.read_bytes(), np.uint8)
    for _ in range(60):
        damaged = data.copy()
        where = rng.integers(0, len(data), 4)
        damaged[where] = rng.integers(0, 256, 4)
        try:
            pixels = read_image(io.BytesIO(damaged.tobytes())).pixels
        except DataError:
            continue
        assert pixels.ndim == 3  # damage in the pixels themselves cannot be seen


def test_missing_file() -> None:
    with pytest.raises(DataError, match="No such file"):
        read_image("nowhere.png")
    with pytest.raises(DataError, match="cannot be opened"):
        read_image("/")


def test_limits_are_met_exactly() -> None:
    decoding.check_size(MAX_SIDE, MAX_PIXELS // MAX_SIDE, "x")
    with pytest.raises(DataError, match="too large"):
        decoding.check_size(MAX_SIDE + 1, 1, "x")
    with pytest.raises(DataError, match="too large"):
        decoding.check_size(MAX_SIDE, MAX_PIXELS // MAX_SIDE + 1, "x")


def test_tiff_with_an_absurd_tile() -> None:
    """The page is small, but the one tile that holds it would take 10 GB."""
    data = tiff(b"\0" * 16, 8, 1).replace(struct.pack("<HHII", 278, 4, 1, 4), struct.pack("<HHII", 322, 4, 1, 100_000))
    data = data.replace(struct.pack("<HHII", 277, 3, 1, 1), struct.pack("<HHII", 323, 4, 1, 100_000))
    with pytest.raises(DataError, match="a tile: 100,000×100,000 px"):
        read_image(io.BytesIO(data))


def test_pillow_is_left_as_it_was(tmp_path: Path) -> None:
    from PIL import ImageFile

    before = Image.MAX_IMAGE_PIXELS
    read_image(save(tmp_path / "a.png"))
    assert before == Image.MAX_IMAGE_PIXELS
    assert not ImageFile.LOAD_TRUNCATED_IMAGES


def test_largest_page_takes_a_few_hundred_megabytes(tmp_path: Path) -> None:
    """In a process of its own, as peak memory is one number for a whole process."""
    resource = pytest.importorskip("resource", reason="peak memory is read by a POSIX module")
    assert resource
    Image.new("RGBA", (7700, 7700), (1, 2, 3, 99)).save(tmp_path / "a.png", compress_level=1)
    code = (
        "import resource, sys; from inktraj.io.images import read_image; import PIL.PngImagePlugin;"
        "a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; p = read_image(sys.argv[1]).pixels;"
        "print(p.shape[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - a)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.png"], capture_output=True, text=True, check=True)
    side, grown = map(int, done.stdout.split())
    assert side == 7700
    assert grown / (1024 if sys.platform != "darwin" else 1024**2) < 460


def test_threads_read_alike(tmp_path: Path) -> None:
    multipage(tmp_path / "a.pdf")
    save(tmp_path / "b.png")
    sources = find_sources(tmp_path)
    expected = [load(s).pixels.tobytes() for s in sources]
    wrong: list[str] = []

    def read() -> None:
        for _ in range(5):
            wrong.extend(s.id for s, e in zip(sources, expected, strict=True) if load(s).pixels.tobytes() != e)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Finding


def test_folder_is_searched_in_order_and_tells_what_it_passed_over(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/10.png", "a.jpg", "b.png", ".hidden.png", ".cache/x.png", "notes.txt", "old.zip"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"?")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    sources = find_sources(tmp_path)
    assert [s.id for s in sources] == ["a", "b", "b__10", "b__2"]
    reasons = {Path(s.path).name: s.reason for s in sources.skipped}
    assert set(reasons) == {".hidden.png", ".cache", "notes.txt", "old.zip", "link"}
    assert "archive" in reasons["old.zip"]
    assert pickle.loads(pickle.dumps(sources[0])) == sources[0]


def test_ids_are_unique_and_safe(tmp_path: Path) -> None:
    names = ["x.jpg", "x.png", "A.png", "a.jpg", "p q.png", "p-q.png", "u/v.png", "u__v.png", "é.png", "m-p2.png"]
    for name in [*names, "w" * 240 + ".png"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"?")
    multipage(tmp_path / "m.tif")
    sources = find_sources(tmp_path)
    ids = [s.id for s in sources]
    assert len({i.casefold() for i in ids}) == len(ids) == len(names) + 4
    assert all(len(i.encode()) < 200 and not set(i) & set('/\\:*?"<>| ') and not i.startswith(".") for i in ids)
    assert {"x.jpg", "x.png", "é", "m.tif", "m.tif-p2", "m-p2.png"} <= set(ids)
    assert ids == [s.id for s in find_sources(str(tmp_path))]


def test_ids_do_not_depend_on_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    save(tmp_path / "in" / "a.png")
    monkeypatch.chdir(tmp_path)
    assert [find_sources(w)[0].id for w in ("in", "in/", tmp_path / "in", "in/*.png", "in/a.png")] == ["a"] * 5


def test_glob(tmp_path: Path) -> None:
    for name in ("a/1.png", "a/b/2.png", "a/3.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"?")
    assert [s.id for s in find_sources(f"{tmp_path}/**/*.png")] == ["a__1", "a__b__2"]
    found = find_sources(f"{tmp_path}/a/*")
    assert [s.id for s in found] == ["1"]
    assert len(found.skipped) == 2


def test_name_with_brackets_is_a_file_before_it_is_a_pattern(tmp_path: Path) -> None:
    save(tmp_path / "scan[1].png")
    assert [s.id for s in find_sources(tmp_path / "scan[1].png")] == ["scan-1-"]


@pytest.mark.parametrize("where", ["", "nowhere", "nowhere/*.png", "empty", "texts", "texts/*"])
def test_nothing_found_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a")
    with pytest.raises(DataError, match=r"no page found|no such file|no file matches|is empty"):
        find_sources(where)


def test_damaged_file_is_still_a_source(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.tif", "c.pdf"):
        (tmp_path / name).write_bytes(b"II*\x00\xff\xff\xff\x7f" if name == "b.tif" else b"%PDF-1.4 broken")
    (tmp_path / "d.png").symlink_to(tmp_path / "gone.png")
    sources = find_sources(tmp_path)
    assert [s.id for s in sources] == ["a", "b", "c", "d"]
    for source in sources:
        with pytest.raises(DataError):
            load(source)


def test_tiff_whose_chain_breaks_keeps_its_good_pages(tmp_path: Path) -> None:
    """The last page's place in the chain leads behind the file: two pages load, the third says why not."""
    path = multipage(tmp_path / "a.tif")
    data = bytearray(path.read_bytes())
    offset = int.from_bytes(data[4:8], "little")
    for _ in range(2):
        count = int.from_bytes(data[offset : offset + 2], "little")
        link = offset + 2 + 12 * count
        offset = int.from_bytes(data[link : link + 4], "little")
    data[link : link + 4] = (len(data) + 1000).to_bytes(4, "little")
    path.write_bytes(data)
    sources = find_sources(path)
    assert len(sources) == 3
    assert [load(s).pixels[5, 5, 0] for s in sources[:2]] == [0, 50]
    with pytest.raises(DataError):
        load(sources[2])


@pytest.mark.parametrize("big", [False, True])
def test_reduced_copies_in_a_tiff_are_no_pages(tmp_path: Path, big: bool) -> None:
    """Three images, the second of which is marked as a preview (NewSubfileType 1)."""
    images = [Image.new("L", (10, 10), 50 * i) for i in range(3)]
    path = tmp_path / "a.tif"
    images[0].save(path, save_all=True, append_images=images[1:], tiffinfo={254: 0}, big_tiff=big)
    data = bytearray(path.read_bytes())
    entry = struct.pack("<HHQ", 254, 4, 1) if big else struct.pack("<HHI", 254, 4, 1)
    first = data.index(entry)
    data[data.index(entry, first + 1) + len(entry)] = 1
    path.write_bytes(data)
    sources = find_sources(path)
    assert [s.index for s in sources] == [0, 2]
    assert [int(load(s).pixels[5, 5, 0]) for s in sources] == [0, 100]


def test_tiff_whose_chain_is_a_loop(tmp_path: Path) -> None:
    path = multipage(tmp_path / "a.tif", 1)
    data = bytearray(path.read_bytes())
    first = int.from_bytes(data[4:8], "little")
    link = first + 2 + 12 * int.from_bytes(data[first : first + 2], "little")
    data[link : link + 4] = first.to_bytes(4, "little")
    path.write_bytes(data)
    assert len(find_sources(path)) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_pipes_sockets_and_devices_are_not_opened(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    os.mkfifo(tmp_path / "fifo.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    (tmp_path / "dangling.png").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tmp_path)  # a socket's path may have about 100 bytes
        try:
            server.bind("socket.png")
        finally:
            os.chdir(here)
        for where in (tmp_path, tmp_path / "*.png"):
            sources = find_sources(where)
            assert [s.id for s in sources] == ["a", "dangling"]
            assert {Path(s.path).name for s in sources.skipped} == {"fifo.png", "zero.png", "socket.png"}
            assert all("not a regular file" in s.reason for s in sources.skipped)
            with pytest.raises(DataError, match="No such file"):
                load(sources[1])
    for name in ("fifo.png", "zero.png"):
        with pytest.raises(DataError, match=r"not a regular file.*use - "):
            find_sources(tmp_path / name)


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="open files have no names here")
def test_a_pipe_by_its_name_is_read_once_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = save(tmp_path / "a.png").read_bytes()
    for limit in (len(data), len(data) - 1):
        monkeypatch.setattr("inktraj.io.images.MAX_FILE_BYTES", limit)
        out, into = os.pipe()
        os.write(into, data)
        os.close(into)
        try:
            if limit == len(data):
                image = read_image(f"/dev/fd/{out}")
                np.testing.assert_array_equal(image.pixels, gradient())
                assert image.sha256 == hashlib.sha256(data).hexdigest()
            else:
                with pytest.raises(DataError, match="more than"):
                    read_image(f"/dev/fd/{out}")
        finally:
            os.close(out)


# Archives


def archive(path: Path, members: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, data in members.items():
                zipped.writestr(name, data)
    else:
        mode = {"gz": "w:gz", "bz2": "w:bz2", "xz": "w:xz"}.get(path.suffix[1:], "w")
        with tarfile.open(path, mode) as tar:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["p.zip", "p.tar", "p.tar.gz", "p.tar.bz2", "p.tar.xz"])
def test_archives(tmp_path: Path, name: str) -> None:
    png = save(tmp_path / "a.png").read_bytes()
    tif = multipage(tmp_path / "m.tif").read_bytes()
    members = {
        "z/b.png": png,
        "a.png": png,
        "m.tif": tif,
        "../../evil.png": png,
        "/abs.png": png,
        "broken.jpg": b"text here instead of a picture",
        "__MACOSX/._a.png": b"x",
        "readme.txt": b"hello",
    }
    path = archive(tmp_path / name, members)
    before = sorted(tmp_path.iterdir())
    sources = find_sources(path)
    assert [s.id for s in sources] == ["a", "abs", "broken", "evil", "m", "m-p2", "m-p3", "z__b"]
    assert len(sources.skipped) == 2
    for source in sources:
        if source.id == "broken":
            with pytest.raises(DataError, match=r"!broken\.jpg.*not an image"):
                load(source)
        else:
            assert load(source).pixels.size
    assert digest(sources[-1]) == hashlib.sha256(png).hexdigest()
    assert load(sources[-1]).source == f"{path}!z/b.png"
    assert sorted(tmp_path.iterdir()) == before


def test_archive_with_a_bomb_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inktraj.io.images.MAX_FILE_BYTES", 1_000_000)
    for name in ("p.zip", "p.tar.gz"):
        path = archive(tmp_path / name, {"bomb.png": bytes(5_000_000), "bomb.tif": b"II*\0" + bytes(5_000_000)})
        sources = find_sources(path)
        assert len(sources) == 2
        for source in sources:
            for read in (load, digest):
                with pytest.raises(DataError, match="more than"):
                    read(source)


@pytest.mark.parametrize("name", ["p.zip", "p.tar", "p.tgz"])
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04broken", b"\x1f\x8bbroken", b"text"])
def test_damaged_archives(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=r"archive cannot be read|no page found"):
        find_sources(tmp_path / name)


def pictures(folder: Path, count: int, suffix: str) -> tuple[Path, dict[str, bytes]]:
    """An archive of `count` grey pictures, each of its own grey."""
    members = {}
    for i in range(count):
        members[f"{i}.png"] = save(folder / "x.png", np.full((8, 8, 3), i, np.uint8)).read_bytes()
    (folder / "x.png").unlink()
    return archive(folder / f"p{suffix}", members), members


def damaged(data: bytes, damage: str, header: int, end: int) -> bytes:
    """Damage a tar at its last header, or where its members end."""
    flipped = data[: header + 5] + bytes([data[header + 5] ^ 1]) + data[header + 6 :]
    return {
        "a flipped bit": flipped,
        "cut in a header": data[: header + 200],
        "cut between members": data[:header],
        "no end": data[:end],
        "a hole": data[:header] + bytes(512) + data[header + 512 :],
        "two tars in one": data + data,
    }[damage]


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.bz2", ".tar.xz"])
@pytest.mark.parametrize(
    ("damage", "count"),
    [
        ("a flipped bit", 2),
        ("cut in a header", 2),
        ("cut between members", 2),
        ("no end", 3),
        ("a hole", 2),
        ("two tars in one", 3),
    ],
)
def test_a_tar_that_ends_too_soon_is_refused_whole(tmp_path: Path, suffix: str, damage: str, count: int) -> None:
    path, _ = pictures(tmp_path, 3, ".tar")
    with tarfile.open(path) as tar:
        last = tar.getmembers()[-1]
        end = last.offset_data + (last.size + 511) // 512 * 512
    packed = {".tar": bytes, ".tar.gz": gzip.compress, ".tar.bz2": bz2.compress, ".tar.xz": lzma.compress}[suffix]
    path = tmp_path / f"q{suffix}"
    path.write_bytes(packed(damaged((tmp_path / "p.tar").read_bytes(), damage, last.offset, end)))
    with pytest.raises(DataError, match=rf"q{suffix}: the tar is damaged or cut short: {count} members can be read"):
        find_sources(path)


def test_a_tar_may_end_with_one_block_of_zeros(tmp_path: Path) -> None:
    path, _ = pictures(tmp_path, 2, ".tar")
    path.write_bytes(path.read_bytes().rstrip(b"\0") + bytes(512 + 511))  # the last picture's padding, and one block
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 512 * 512])
    assert len(find_sources(path)) == 2


def test_a_compressed_tar_is_read_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 30
    noise = np.random.default_rng(0).integers(0, 256, (count, 80, 80, 3), dtype=np.uint8)
    members = {f"{i:02}.png": save(tmp_path / "x.png", picture).read_bytes() for i, picture in enumerate(noise)}
    sources = find_sources(archive(tmp_path / "p.tar.gz", members))
    back: list[int] = []
    seek = gzip.GzipFile.seek

    def counting(file: gzip.GzipFile, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_SET and offset < seek(file, 0, io.SEEK_CUR):
            back.append(offset)
        return seek(file, offset, whence)

    monkeypatch.setattr(gzip.GzipFile, "seek", counting)
    for source, expected in zip(sources, noise, strict=True):
        np.testing.assert_array_equal(load(source).pixels, expected)
        assert digest(source) == hashlib.sha256(members[f"{source.id}.png"]).hexdigest()
    assert len(back) == 1  # from the end of the list of members
    np.testing.assert_array_equal(load(sources[3]).pixels, noise[3])
    assert len(back) == 2


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz"])
def test_an_archive_that_changes_is_opened_anew(tmp_path: Path, suffix: str) -> None:
    path, _ = pictures(tmp_path, 2, suffix)
    sources = find_sources(path)
    assert load(sources[1]).pixels.max() == 1
    other = save(tmp_path / "x.png", np.full((9, 9, 3), 77, np.uint8)).read_bytes()
    archive(path, {"1.png": other})
    assert load(sources[1]).pixels.max() == 77
    with pytest.raises(DataError, match="no such member"):
        load(sources[0])
    path.unlink()
    with pytest.raises(DataError, match="archive cannot be read"):
        load(sources[1])


def test_archive_with_a_damaged_member(tmp_path: Path) -> None:
    png = save(tmp_path / "a.png").read_bytes()
    path = tmp_path / "p.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("a.png", png)
        zipped.writestr("b.png", png)
    data = bytearray(path.read_bytes())
    at = data.index(b"IDAT") + 20
    data[at] ^= 0xFF
    path.write_bytes(data)
    first, second = find_sources(path)
    with pytest.raises(DataError, match="CRC"):
        load(first)
    np.testing.assert_array_equal(load(second).pixels, gradient())


def test_tar_links_are_not_followed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p.tar", "w") as tar:
        info = tarfile.TarInfo("secret.png")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(DataError, match="a link or a device"):
        find_sources(tmp_path / "p.tar")


def test_an_image_named_as_an_archive_is_read(tmp_path: Path) -> None:
    save(tmp_path / "a.png").rename(tmp_path / "a.zip")
    assert load(find_sources(tmp_path / "a.zip")[0]).pixels.shape == (H, W, 3)

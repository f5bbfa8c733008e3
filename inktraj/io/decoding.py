"""Image bytes → upright RGB pixels; every way in which a file can be wrong ends in a `DataError` that says so.

Limits
------
`MAX_PIXELS` and `MAX_SIDE` are compared with the size in the file's header, before anything is decoded.
"""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError, MissingDependency

if TYPE_CHECKING:
    from PIL import Image, ImageFile

U8 = NDArray[np.uint8]

MAX_PIXELS = 60_000_000
"""Largest page in pixels: an A4 page at 750 dpi. Decoding such a page takes at most about 0.45 GB."""

MAX_SIDE = 30_000
"""Largest width or height of a page in pixels."""

PDF_DPI = 200
"""Resolution at which a PDF page is drawn, unless an image on it is finer."""

PDF_MAX_DPI = 600
"""Finest resolution at which a PDF page is drawn for the sake of an image on it."""

FORMS = "JPEG, PNG, TIFF, WebP, BMP, GIF or PDF"
"""The forms that are read, in words."""

IMAGE_KINDS = frozenset({"JPEG", "PNG", "TIFF", "WebP", "BMP", "GIF", "PDF"})
"""The answers of `sniff` that `decode` can read."""

_MAGIC = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"II+\x00", "TIFF"),
    (b"MM\x00+", "TIFF"),
    (b"BM", "BMP"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x00\x00\x00\x0cjP  ", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"version https://git-lfs", "Git LFS pointer (the file itself was not fetched)"),
)
_STRIP = 256  # rows converted at once, so that no second whole copy of a page is ever held

# pdfium may not be entered by two threads at once.
_PDFIUM = threading.Lock()


def sniff(head: bytes) -> str:
    """Name what a file is by its first bytes (64 or more of them, 1,024 to find a PDF's shifted header)."""
    if not head:
        return "empty file"
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    if b"%PDF-" in head[:1024]:  # readers allow junk before it (ISO 32000-1, annex H)
        return "PDF"
    if head[4:8] == b"ftyp":
        return "HEIC, AVIF or video container"
    if head[257:262] == b"ustar":
        return "tar archive"
    if not head.strip(b"\x00"):
        return "file of zero bytes"
    text = _as_text(head)
    if text.startswith(("<!doctype html", "<html")):
        return "HTML text"
    if text.startswith("<"):
        return "XML text"
    return "text" if text else "unknown data"


def _as_text(head: bytes) -> str:
    """Return UTF-8 text in lower case, "" where the bytes are none; the last character may be cut through."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        if err.start < len(head) - 3:
            return ""
        text = head[: err.start].decode("utf-8-sig")
    return text.lstrip().lower() if all(c.isprintable() or c in "\r\n\t\f" for c in text) else ""


def check_size(width: int, height: int, name: str) -> None:
    """Raise DataError where a page's size in pixels is absurd; nothing needs to be decoded for it."""
    if width < 1 or height < 1:
        raise DataError(f"{name}: the header states a size of {width}×{height} px, expected at least 1×1")
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise DataError(
            f"{name}: {width:,}×{height:,} px = {width * height / 1e6:,.1f} MP is too large, expected at most "
            f"{MAX_SIDE:,} px a side and {MAX_PIXELS / 1e6:g} MP; shrink it or cut it into pages"
        )


def decode(file: BinaryIO, *, index: int = 0, name: str) -> U8:
    """Decode one page.

    Parameters
    ----------
    file
        Seekable binary file.
    index
        Which page of a multi-page TIFF or PDF, from 0; other forms have page 0 only.
    name
        How errors call the file.

    Returns
    -------
    array
        ``(h, w, 3)`` uint8 RGB: EXIF rotation applied, alpha composited on white, 16 bits scaled to 8.

    Raises
    ------
    DataError
        Not an image, damaged, cut short, of an absurd size, or without such a page.
    MissingDependency
        A PDF, and pypdfium2 is not installed.
    """
    if index < 0:
        raise DataError(f"{name}: page index {index}, expected 0 or more")
    file.seek(0)
    head = file.read(1024)
    kind = sniff(head)
    file.seek(0)
    if kind == "PDF":
        return _decode_pdf(file, index, name)
    if kind not in IMAGE_KINDS:
        raise DataError(_not_an_image(head, kind, name))
    if kind != "TIFF" and index > 0:
        raise DataError(f"{name}: page {index + 1} was asked for, but a {kind} file has one page")
    if kind == "GIF" and len(head) >= 10:  # Pillow lays out a GIF's canvas while opening it
        check_size(int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little"), name)
    try:
        with _plugin(kind)(file) as image:
            if kind == "TIFF":
                _seek_tiff(image, index, name)
                check_size(image.tag_v2.get(322, 1), image.tag_v2.get(323, 1), f"{name}, a tile")
            check_size(image.width, image.height, name)
            image.load()
            return _upright(_to_rgb(image, name), _orientation(image, kind))
    except (DataError, MemoryError):
        raise
    except Exception as err:  # Pillow's decoders raise nearly every built-in error on damaged data
        size = file.seek(0, io.SEEK_END)
        raise DataError(
            f"{name}: starts as a {kind} of {size:,} bytes, but cannot be decoded ({err}); "
            "the file is probably damaged or cut short, so copy or download it again"
        ) from err


def _plugin(kind: str) -> Any:
    """Return Pillow's reader of one form; called directly, so that no other reader and no global limit is met."""
    from PIL import BmpImagePlugin, GifImagePlugin, JpegImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin

    return {
        "JPEG": JpegImagePlugin.JpegImageFile,
        "PNG": PngImagePlugin.PngImageFile,
        "TIFF": TiffImagePlugin.TiffImageFile,
        "WebP": WebPImagePlugin.WebPImageFile,
        "BMP": BmpImagePlugin.BmpImageFile,
        "GIF": GifImagePlugin.GifImageFile,
    }[kind]


def _not_an_image(head: bytes, kind: str, name: str) -> str:
    if kind == "empty file":
        return f"{name}: the file is empty (0 bytes), expected {FORMS}; was it copied in full?"
    hint = {
        "text": "a text file with an image's name?",
        "HTML text": "a saved error or login page instead of the image?",
        "JPEG 2000": "convert it to PNG or TIFF first",
        "HEIC, AVIF or video container": "convert it to JPEG or PNG first",
        "ZIP archive": "give the archive itself as the source to read the pages in it",
    }.get(kind, "damaged, or a form that is not read?")
    return f"{name}: not an image but {kind} (starts with {head[:12]!r}), expected {FORMS}; {hint}"


def _seek_tiff(image: ImageFile.ImageFile, index: int, name: str) -> None:
    try:
        image.seek(index)
    except EOFError as err:
        raise DataError(f"{name}: page {index + 1} was asked for, but the TIFF file has fewer pages") from err


def _orientation(image: ImageFile.ImageFile, kind: str) -> int:
    """Return the EXIF orientation 1–8; a damaged EXIF block counts as 1. Pillow turns TIFF itself."""
    if kind == "TIFF":
        return 1
    try:
        value = image.getexif().get(0x0112, 1)
    except Exception:  # the pixels are fine, and a damaged EXIF block may raise anything
        return 1
    return value if value in range(1, 9) else 1


def _upright(pixels: U8, orientation: int) -> U8:
    """Apply an EXIF orientation (EXIF 2.32, tag 0x0112)."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def _to_rgb(image: Image.Image, name: str) -> U8:
    """Return ``(h, w, 3)`` uint8 RGB of a loaded image of any mode, alpha composited on white."""
    out = np.empty((image.height, image.width, 3), dtype=np.uint8)
    if image.mode in ("I;16", "I;16B", "I;16L", "I;16N"):
        top = _white_level(image)
        key = image.info.get("transparency")
        for rows, strip in _strips(image):
            levels = np.asarray(strip).astype(np.uint32)
            grey = ((levels * 255 + top // 2) // top).clip(max=255)
            if isinstance(key, int):
                grey[levels == key] = 255
            out[rows] = (255 - grey if _white_is_zero(image) else grey)[..., None]
    elif image.mode == "F":
        out[:] = _float_levels(np.asarray(image), name)[..., None]
    elif image.mode in ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr"):
        for rows, strip in _strips(image):
            out[rows] = np.asarray(_strip_to_rgb(strip))
    else:
        raise DataError(
            f"{name}: its pixels are of the kind {image.mode!r} (32-bit integers or a rare colour space), "
            "expected 1, 8 or 16 bits of grey, RGB, CMYK or palette; convert it to 8-bit RGB first"
        )
    return out


def _strips(image: Image.Image) -> Iterator[tuple[slice, Image.Image]]:
    for top in range(0, image.height, _STRIP):
        bottom = min(top + _STRIP, image.height)
        strip = image.crop((0, top, image.width, bottom))
        strip.info = {k: v for k, v in image.info.items() if k == "transparency"}
        yield slice(top, bottom), strip


def _strip_to_rgb(strip: Image.Image) -> Image.Image:
    from PIL import Image

    if strip.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in strip.info:
        if strip.mode == "La":
            strip = strip.convert("LA")
        strip = strip.convert("RGBA")
        white = Image.new("RGBA", strip.size, "white")
        return Image.alpha_composite(white, strip).convert("RGB")
    return strip.convert("RGB")


def _white_level(image: Image.Image) -> int:
    """Return the highest level of a grey image kept in 16 bits: 12-bit scanners use 4095."""
    bits = getattr(image, "tag_v2", {}).get(258, (16,))
    depth = bits[0] if isinstance(bits, tuple) else bits
    return (1 << int(depth)) - 1 if 8 < int(depth) <= 16 else 65535


def _white_is_zero(image: Image.Image) -> bool:
    return getattr(image, "tag_v2", {}).get(262) == 0


def _float_levels(values: NDArray[np.float32], name: str) -> U8:
    if not np.isfinite(values).all():
        raise DataError(f"{name}: a float image with NaN or infinity, expected numbers in 0–1 or 0–255")
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 255:
        raise DataError(
            f"{name}: a float image with values from {low:g} to {high:g}, expected 0–1 or 0–255; scale it first"
        )
    out: U8 = np.rint(values * (255.0 if high <= 1 else 1.0)).astype(np.uint8)
    return out


def _decode_pdf(file: BinaryIO, index: int, name: str) -> U8:
    try:
        import pypdfium2
    except ImportError as err:
        raise MissingDependency("pypdfium2", "pdf", f"reading PDF ({name})") from err
    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(file)
        except pypdfium2.PdfiumError as err:
            raise DataError(
                f"{name}: starts as a PDF, but cannot be opened ({err}); it is damaged, cut short or needs a password"
            ) from err
        try:
            if not 0 <= index < len(document):
                raise DataError(
                    f"{name}: page {index + 1} was asked for, but the PDF has {len(document)} readable pages"
                )
            page = document[index]
            scale = _pdf_scale(page, name)
            pixels = page.render(scale=scale, rev_byteorder=True).to_numpy()
            return np.array(pixels[..., :3], dtype=np.uint8, order="C")
        except pypdfium2.PdfiumError as err:
            raise DataError(
                f"{name}: PDF page {index + 1} cannot be drawn ({err}); the file is probably damaged"
            ) from err
        finally:
            document.close()


def _pdf_scale(page: Any, name: str) -> float:
    """Return pixels per PDF point: 200 dpi, or that of the finest image that covers a tenth of the page."""
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    width, height = map(float, page.get_size())
    if not (width > 0 and height > 0):
        raise DataError(f"{name}: the PDF page has a size of {width:g}×{height:g} pt, expected positive numbers")
    dpi = float(PDF_DPI)
    for image in page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE], max_depth=4):
        if (measured := _pdf_image(image)) is None:
            continue  # pdfium draws nothing for it
        pixels_x, pixels_y, area = measured
        check_size(pixels_x, pixels_y, f"{name}, an image on the PDF page")
        if area > 0.1 * width * height:
            dpi = max(dpi, min(72 * math.sqrt(pixels_x * pixels_y / area), PDF_MAX_DPI))
    most = min(math.sqrt(MAX_PIXELS / (width * height)), MAX_SIDE / max(width, height)) * 0.999
    if most < 1:
        raise DataError(
            f"{name}: the PDF page measures {width / 72:,.0f}×{height / 72:,.0f} inches, expected a sheet of paper; "
            "a poster, or a wrong unit?"
        )
    # A hair less, as pdfium rounds sizes up: 300 dpi of a 900 px scan must not become 901 px.
    return min(dpi / 72, most) * (1 - 1e-6)


def _pdf_image(image: Any) -> tuple[int, int, float] | None:
    """Return an image's width and height in pixels and its area on the page in square points, if it has any.

    pdfium's own functions, as pypdfium2 4 and 5 call theirs differently.
    """
    from ctypes import c_float, c_uint

    from pypdfium2 import raw

    size, edges = (c_uint(), c_uint()), (c_float(), c_float(), c_float(), c_float())
    if not (raw.FPDFImageObj_GetImagePixelSize(image.raw, *size) and raw.FPDFPageObj_GetBounds(image.raw, *edges)):
        return None
    left, bottom, right, top = (edge.value for edge in edges)
    return size[0].value, size[1].value, (right - left) * (top - bottom)


def find_pages(file: BinaryIO) -> list[int]:
    """Return the indices of a file's pages, without decoding any.

    A damaged or unknown file has page 0, and a TIFF whose chain of pages breaks off has the missing one too:
    loading it then says what is wrong. So has a PDF where pypdfium2 is not installed. A TIFF's copies of its
    pages in a lower resolution, as previews or pyramids, are no pages.
    """
    file.seek(0)
    kind = sniff(file.read(1024))
    if kind == "TIFF":
        return _tiff_pages(file)
    return list(range(_count_pdf(file))) if kind == "PDF" else [0]


def _tiff_pages(file: BinaryIO) -> list[int]:
    """Walk the chain of image file directories (TIFF 6.0, section 2; BigTIFF has 8-byte offsets)."""
    file.seek(0)
    head = file.read(16)
    order: Any = "little" if head[:2] == b"II" else "big"
    big = int.from_bytes(head[2:4], order) == 43
    size_count, size_entry, size_offset = (8, 20, 8) if big else (2, 12, 4)
    offset = int.from_bytes(head[8:16] if big else head[4:8], order)
    pages, seen = [], set[int]()
    while offset and offset not in seen:
        index = len(seen)
        seen.add(offset)
        file.seek(offset)
        count = int.from_bytes(file.read(size_count), order)
        entries = file.read(min(count, 65535) * size_entry)
        following = file.read(size_offset)
        whole = count > 0 and len(following) == size_offset
        if not (whole and _is_reduced(entries, size_entry, order)):
            pages.append(index)
        offset = int.from_bytes(following, order) if whole else 0
    return pages or [0]


def _is_reduced(entries: bytes, size: int, order: Any) -> bool:
    """Tell whether a TIFF directory's NewSubfileType (tag 254) marks a copy in a lower resolution."""
    for at in range(0, len(entries), size):
        if int.from_bytes(entries[at : at + 2], order) == 254:
            value = entries[at + size - (8 if size == 20 else 4) :][:4]
            return bool(int.from_bytes(value, order) & 1)
    return False


def _count_pdf(file: BinaryIO) -> int:
    try:
        import pypdfium2
    except ImportError:
        return 1
    file.seek(0)
    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(file)
        except pypdfium2.PdfiumError:
            return 1
        try:
            return max(len(document), 1)
        finally:
            document.close()

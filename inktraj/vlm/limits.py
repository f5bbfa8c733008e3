"""The size at which a model sees an image, so that what is sent is what is seen.

Hosted models shrink images that are too large for them and then answer in pixels of an image that the caller never had.
`fit` gives the size to which the model itself would shrink, `make_picture` brings an image to it. A model's rule is
named in the table of models (`inktraj/vlm/models.toml`).

Sizes are (width, height) in pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from inktraj.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from inktraj.vlm.protocol import Picture

Rule = Literal["none", "box", "patches", "tiles", "smart-resize", "canvas"]

_NEEDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "box": ("long_edge",),
    "patches": ("long_edge", "patch", "tokens"),
    "tiles": ("long_edge", "short_edge"),
    "smart-resize": ("factor", "min_pixels", "max_pixels"),
    "canvas": ("patch", "margin", "tokens"),
}
_FURTHEST_ASPECT = 200
_JPEG_QUALITY = 95


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """How a model shrinks images.

    Parameters
    ----------
    rule
        ``"none"``: as they are. ``"box"``: into a square of `long_edge`. ``"patches"``: no edge, padded to whole
        patches, over `long_edge`, and at most `tokens` patches (Anthropic). ``"tiles"``: into a square of `long_edge`,
        then the shorter edge to at most `short_edge` (OpenAI's tile models). ``"smart-resize"``: both edges to
        multiples of `factor` with `min_pixels` … `max_pixels` in all, which may change the aspect a little and
        enlarge (Qwen). ``"canvas"``: no edge over that of the canvas of at most `tokens` patches, and `margin` around
        them, to which the model stretches it, which changes the aspect (Molmo 2).
    long_edge, short_edge, patch, factor, margin
        In pixels; `margin` on both sides together.
    tokens
        Patches.
    min_pixels, max_pixels
        Width × height.
    max_bytes
        Of the image file, before base64; None where no limit is known.
    """

    rule: Rule = "none"
    long_edge: int | None = None
    short_edge: int | None = None
    patch: int | None = None
    tokens: int | None = None
    factor: int | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    max_bytes: int | None = None
    margin: int | None = None

    def __post_init__(self) -> None:
        if self.rule not in _NEEDS:
            raise DataError(f"the rule of image limits is one of {get_args(Rule)}, not {self.rule!r}")
        for name in (field for field in self.__dataclass_fields__ if field != "rule"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise DataError(f"image limits: {name} is a whole number of at least 1, not {value!r}")
            if name != "max_bytes" and (value is not None) != (name in _NEEDS[self.rule]):
                needed = ", ".join(_NEEDS[self.rule]) or "nothing else"
                raise DataError(f'image limits by the rule "{self.rule}" take {needed}; {name} is {value}')
        if self.rule == "patches" and (self.long_edge or 0) < (self.patch or 0):
            raise DataError(f"image limits: an edge of {self.long_edge} px holds no patch of {self.patch} px")
        if self.rule == "smart-resize" and (self.min_pixels or 0) > (self.max_pixels or 0):
            raise DataError("image limits: min_pixels is more than max_pixels")


def fit(width: int, height: int, limits: ImageLimits) -> tuple[int, int]:
    """Return the size at which a model sees an image; a size that it returned stays as it is.

    Parameters
    ----------
    width, height
        Of the image at hand, in pixels.
    limits
        The model's.

    Raises
    ------
    DataError
        A size below 1 px, or an image that is over 200 times as long as wide for a model that refuses those.
    """
    if width < 1 or height < 1:
        raise DataError(f"an image has a width and height of at least 1 px, not {width}×{height}")
    match limits.rule:
        case "box":
            return _scaled(width, height, _known(limits.long_edge) / max(width, height))
        case "patches":
            if height > width:
                high, wide = _fit_patches(height, width, limits)
                return wide, high
            return _fit_patches(width, height, limits)
        case "tiles":
            wide, high = _scaled(width, height, _known(limits.long_edge) / max(width, height))
            return _scaled(wide, high, _known(limits.short_edge) / min(wide, high))
        case "smart-resize":
            return _smart_resize(width, height, limits)
        case "canvas":
            return _fit_canvas(width, height, limits)
    return width, height


def make_picture(
    image: NDArray[np.uint8],
    limits: ImageLimits | None = None,
    *,
    size: tuple[int, int] | None = None,
) -> Picture:
    """Bring an image to the size at which a model sees it.

    Areas are averaged where it shrinks, so that hairlines get paler and do not break; it is interpolated (cubic) where
    it grows. Both keep the image's outer edges: of an image of width w, the pixel centre x comes to
    ``(x + 0.5) · sent / w − 0.5``.

    Parameters
    ----------
    image
        ``(h, w)`` grey or ``(h, w, 3)`` RGB, uint8.
    limits
        The model's; None for none.
    size
        (width, height) to send instead of what `fit` says, to enlarge a crop for instance; it is fitted too.

    Returns
    -------
    Picture
        A PNG; a JPEG of quality 95 where the PNG has more bytes than the limits allow.

    Raises
    ------
    DataError
        Another type or shape; an image which has too many bytes even as JPEG.
    """
    import cv2
    import numpy as np

    from inktraj.vlm.protocol import Picture

    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        seen = getattr(image, "dtype", type(image).__name__)
        raise DataError(f"an image to send is an array of uint8, not {seen}")
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)) or not image.size:
        raise DataError(f"an image to send has shape (h, w) or (h, w, 3) with h, w ≥ 1, not {image.shape}")
    limits = limits or ImageLimits()
    height, width = image.shape[:2]
    sent = fit(*size, limits) if size is not None else fit(width, height, limits)
    if sent != (width, height):
        shrinks = sent[0] <= width and sent[1] <= height
        resized = cv2.resize(image, sent, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
    else:
        resized = image
    pixels = cv2.cvtColor(resized, cv2.COLOR_RGB2BGR) if resized.ndim == 3 else resized
    data = cv2.imencode(".png", pixels)[1].tobytes()
    if limits.max_bytes is None or len(data) <= limits.max_bytes:
        return Picture(data, *sent)
    smaller = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1].tobytes()
    if len(smaller) > limits.max_bytes:
        raise DataError(
            f"an image of {sent[0]}×{sent[1]} px has {len(smaller)} bytes as JPEG, and the model takes at most "
            f"{limits.max_bytes}; send a crop or a smaller size"
        )
    return Picture(smaller, *sent, media_type="image/jpeg")


def _known(value: int | None) -> int:
    assert value is not None  # `ImageLimits` has checked what its rule needs
    return value


def _scaled(width: int, height: int, scale: float) -> tuple[int, int]:
    if scale >= 1:
        return width, height
    return max(1, round(width * scale)), max(1, round(height * scale))


def _fit_patches(width: int, height: int, limits: ImageLimits) -> tuple[int, int]:
    """Return the largest size of this aspect that is allowed; width ≥ height.

    By the provider's description ("Coordinates and bounding boxes", platform.claude.com): the longer edge is sought by
    bisection, the shorter is rounded.
    """
    edge, patch, tokens = _known(limits.long_edge), _known(limits.patch), _known(limits.tokens)

    def allowed(wide: int, high: int) -> bool:
        columns, rows = math.ceil(wide / patch), math.ceil(high / patch)
        return max(columns, rows) * patch <= edge and columns * rows <= tokens

    if allowed(width, height):
        return width, height
    best, above = 1, width
    while best + 1 < above:
        middle = (best + above) // 2
        if allowed(middle, max(round(middle * height / width), 1)):
            best = middle
        else:
            above = middle
    return best, max(round(best * height / width), 1)


def _smart_resize(width: int, height: int, limits: ImageLimits) -> tuple[int, int]:
    """Return what `smart_resize` of the Qwen-VL image processors (transformers) returns."""
    factor = _known(limits.factor)
    least, most = _known(limits.min_pixels), _known(limits.max_pixels)
    if max(width, height) > _FURTHEST_ASPECT * min(width, height):
        raise DataError(
            f"an image of {width}×{height} px is over {_FURTHEST_ASPECT} times as long as wide; the model refuses those"
        )
    wide, high = round(width / factor) * factor, round(height / factor) * factor
    if wide * high > most:
        shrink = math.sqrt(width * height / most)
        wide = max(factor, math.floor(width / shrink / factor) * factor)
        high = max(factor, math.floor(height / shrink / factor) * factor)
    elif wide * high < least:
        grow = math.sqrt(least / (width * height))
        wide = math.ceil(width * grow / factor) * factor
        high = math.ceil(height * grow / factor) * factor
    return wide, high


def _fit_canvas(width: int, height: int, limits: ImageLimits) -> tuple[int, int]:
    """Return the size with no edge over the canvas that Molmo 2's image processor (transformers) chooses.

    It stretches the image to the canvas without smoothing, in which thin lines break where it shrinks; an image of this
    size is brought to the same canvas, and shrinks no further.
    """
    patch, margin, most = _known(limits.patch), _known(limits.margin), _known(limits.tokens)
    best, canvas, covered = -math.inf, (width, height), False
    for count, rows in sorted((r * c, r) for r in range(1, most + 1) for c in range(1, most // r + 1)):
        columns = count // rows
        scales = [
            n * patch / (edge - margin) if edge != margin else math.inf
            for n, edge in ((columns, width), (rows, height))
        ]
        covered = covered or min(scales) >= 1
        if min(scales) > best:
            best, canvas = min(scales), (columns * patch + margin, rows * patch + margin)
    return (width, height) if covered else (min(width, canvas[0]), min(height, canvas[1]))

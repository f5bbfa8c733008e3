"""Pixels with a place: what a page and a word crop hold, refuse and show."""

from __future__ import annotations

import base64
import re

import cv2
import numpy as np
import pytest

from inktraj.errors import DataError
from inktraj.ink import Frame
from inktraj.page import Page, WordCrop, png_uri

PIXELS = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]])


def crop(image=None, mask=None):
    image = np.full((4, 6), 255, np.uint8) if image is None else image
    return WordCrop(image, np.zeros((4, 6), bool) if mask is None else mask, np.eye(2, 3), SQUARE)


def decoded(uri: str) -> np.ndarray:
    head, data = uri.split(",")
    assert head == "data:image/png;base64"
    return cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_UNCHANGED)


def test_a_page_knows_its_size():
    page = Page(PIXELS)
    assert (page.width, page.height, page.frame) == (6, 4, Frame(6, 4))


@pytest.mark.parametrize(
    ("pixels", "seen"),
    [
        (PIXELS[..., 0], r"\(4, 6\) of uint8"),
        (PIXELS.astype(float), r"\(4, 6, 3\) of float64"),
        (np.zeros((4, 6, 4), np.uint8), r"\(4, 6, 4\)"),
        (np.zeros((0, 6, 3), np.uint8), r"\(0, 6, 3\)"),
        ([[0]], "None of list"),
    ],
)
def test_what_is_no_page_says_why(pixels, seen):
    with pytest.raises(DataError, match=rf"a page needs \(h, w, 3\) uint8 RGB pixels, not {seen}"):
        Page(pixels)


def test_open_keeps_where_the_page_is_from(tmp_path):
    path = tmp_path / "letter.png"
    cv2.imwrite(str(path), PIXELS[..., ::-1])
    page = Page.open(path)
    np.testing.assert_array_equal(page.pixels, PIXELS)
    assert (page.id, page.source, len(page.sha256)) == ("letter", str(path), 64)
    with pytest.raises(DataError, match="page 2 was asked for"):
        Page.open(path, index=1)


def test_what_is_no_crop_says_why():
    for image in (PIXELS, np.zeros((4, 6)), np.zeros((0, 6), np.uint8)):
        with pytest.raises(DataError, match=r"a crop's image is \(h, w\) uint8"):
            crop(image=image)
    for mask in (np.zeros((4, 6), np.uint8), np.zeros((6, 4), bool)):
        with pytest.raises(DataError, match=r"a crop's mask is bool of shape \(4, 6\)"):
            crop(mask=mask)


def test_a_crop_knows_its_outline():
    assert crop().frame == Frame(6, 4)
    assert crop().shapely().area == 2


def test_pictures_for_notebooks():
    np.testing.assert_array_equal(decoded(png_uri(PIXELS))[..., ::-1], PIXELS)
    np.testing.assert_array_equal(decoded(png_uri(PIXELS[..., 0])), PIXELS[..., 0])
    assert decoded(png_uri(PIXELS, longest=3)).shape == (2, 3, 3)
    for shown in (Page(PIXELS, id="letter"), crop()):
        html = shown._repr_html_()
        assert re.search(r'src="data:image/png;base64,[\w+/=]+"', html)
        assert "6×4 px" in html

"""The embedded detector and what the reader tells of spaces; `test_ocr.py` holds the reading of text."""

import cv2
import numpy as np
import pytest

from inktraj import ppocr
from inktraj.errors import DataError


def typed(*lines, scale=1.4, size=(900, 400)):
    """A page of type, and the box x0, y0, x1, y1 of each line's ink."""
    page = np.full((size[1], size[0], 3), 255, np.uint8)
    boxes = []
    for i, text in enumerate(lines):
        one = np.full(page.shape[:2], 255, np.uint8)
        cv2.putText(one, text, (60, 90 + 110 * i), cv2.FONT_HERSHEY_SIMPLEX, scale, 0, 3, cv2.LINE_AA)
        x, y, w, h = cv2.boundingRect((one < 128).astype(np.uint8))
        boxes.append((x, y, x + w, y + h))
        page = np.minimum(page, one[..., None])
    return page, np.array(boxes, float)


def strip(text, gap=26):
    """A typed line, and where along it, 0–1, the middles of its spaces lie."""
    image, x, places = np.full((60, 1500), 255, np.uint8), 6, []
    for word in text.split():
        (width, _), _ = cv2.getTextSize(word, cv2.FONT_HERSHEY_SIMPLEX, 1.4, 3)
        cv2.putText(image, word, (x, 44), cv2.FONT_HERSHEY_SIMPLEX, 1.4, 0, 3, cv2.LINE_AA)
        x += width + gap
        places.append(x - gap / 2)
    x -= gap - 6
    return np.ascontiguousarray(image[:, :x]), np.array(places[:-1]) / x


def test_lines_are_found_where_they_are():
    page, boxes = typed("first line of words", "second", "the third line")
    quads, scores = ppocr.detect_lines(page)
    assert quads.shape == (3, 4, 2)
    assert quads.dtype == np.float64
    assert scores.shape == (3,)
    assert ((scores > 0.5) & (scores <= 1)).all()
    for quad, (x0, y0, x1, y1) in zip(quads[np.argsort(quads[:, 0, 1])], boxes, strict=True):
        expected = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
        np.testing.assert_allclose(quad, expected, atol=22)


def test_grey_is_detected_like_rgb():
    page, _ = typed("words on a page")
    for a, b in zip(ppocr.detect_lines(page), ppocr.detect_lines(page[..., 0]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("factor", [0.5, 3])
def test_quads_are_in_the_pages_own_pixels(factor):
    page, boxes = typed("words on a page", "and more of them")
    quads, _ = ppocr.detect_lines(cv2.resize(page, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA))
    quads = quads[np.argsort(quads[:, 0, 1])] / factor
    np.testing.assert_allclose(quads[:, 0], boxes[:, :2], atol=25)
    np.testing.assert_allclose(quads[:, 2], boxes[:, 2:], atol=25)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (1, 500), (500, 1), (200, 300), (40, 3000)], ids=str)
def test_blank_pages_have_no_lines(shape):
    quads, scores = ppocr.detect_lines(np.full(shape, 255, np.uint8))
    assert quads.shape == (0, 4, 2)
    assert scores.shape == (0,)


@pytest.mark.parametrize("bad", [np.zeros((9, 9)), np.zeros((9, 9, 4), np.uint8), np.zeros((0, 9), np.uint8)])
def test_an_image_of_another_form_is_refused(bad):
    for call in (ppocr.detect_lines, lambda image: ppocr.space_probabilities([image])):
        with pytest.raises(DataError, match="uint8"):
            call(bad)


@pytest.mark.parametrize("text", ["two words", "the quick brown fox", "a line of many short words"])
def test_spaces_are_seen_where_they_are(text):
    image, places = strip(text)
    (p,) = ppocr.space_probabilities([image])
    assert len(places) == text.count(" ")
    assert ((p >= 0) & (p <= 1)).all()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], p > 0.3, [0]]).astype(int)))
    seen = (edges[::2] + edges[1::2]) / 2 / len(p)
    assert len(seen) == len(places)
    np.testing.assert_allclose(seen, places, atol=2.5 / len(p))


def test_no_space_within_one_word():
    (p,) = ppocr.space_probabilities([strip("handwriting")[0]])
    assert p.max() < 0.3


def test_each_image_has_its_own_columns_in_the_order_given():
    texts = ["two words", "word", "a line of many short words", "the quick brown fox", "one more", "and another one"]
    images = [strip(text)[0] for text in texts]
    together = ppocr.space_probabilities(images)
    assert len(together) == len(images)
    for text, image, p in zip(texts, images, together, strict=True):
        assert len(p) == pytest.approx(image.shape[1] / image.shape[0] * 48 / 8, abs=2)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], p > 0.3, [0]]).astype(int)))
        assert len(edges) // 2 == text.count(" ")


def test_nothing_asked_nothing_told():
    assert ppocr.space_probabilities([]) == []


@pytest.mark.parametrize("shape", [(1, 1), (48, 1), (2, 300), (300, 2)], ids=str)
def test_odd_shapes_have_at_least_one_column(shape):
    (p,) = ppocr.space_probabilities([np.full(shape, 255, np.uint8)])
    assert len(p) >= 1
    assert np.isfinite(p).all()


def test_the_engine_runs_on_one_thread():
    for model in (ppocr._engine()._load_det_model(), ppocr._engine()._load_rec_model()):
        session = model.session.session.get_session_options()
        assert (session.intra_op_num_threads, session.inter_op_num_threads) == (1, 1)

"""The embedded reader, on drawn type and on real handwriting where it is at hand."""

import cv2
import numpy as np
import pytest

from inktraj import ppocr
from inktraj.errors import DataError
from inktraj.ocr import Reading, Recognizer
from inktraj.ocr.ppocr import PPOCR


def typed(text, height=60, scale=1.4):
    (width, _), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, scale, 2)
    image = np.full((height, width + 30), 255, np.uint8)
    return cv2.putText(image, text, (15, height - 18), cv2.FONT_HERSHEY_SIMPLEX, scale, 0, 2, cv2.LINE_AA)


@pytest.fixture(scope="module")
def reader():
    return PPOCR()


def test_is_a_recognizer_that_names_itself(reader):
    assert isinstance(reader, Recognizer)
    assert reader.name == "ppocr"
    assert reader.version == ppocr.model_version()
    assert "PP-OCRv6" in reader.version
    assert "onnxruntime" in reader.version


def test_reads_lines_in_order(reader):
    readings = reader([typed("second words"), typed("first"), typed("a third line of words")])
    assert [r.text for r in readings] == ["second words", "first", "a third line of words"]
    assert all(isinstance(r, Reading) and 0.8 < r.confidence <= 1 for r in readings)


def test_nothing_asked_nothing_read(reader):
    assert reader([]) == []


def test_blank_paper_reads_as_nothing(reader):
    assert reader([np.full((50, 200), 255, np.uint8)]) == [Reading("", 0.0)]


def test_a_reading_does_not_depend_on_its_neighbours(reader):
    one, wide = typed("quick"), typed("the quick brown fox jumps over")
    assert reader([one]) == reader([wide, one, wide])[1:2]


def test_grey_and_rgb_read_alike(reader):
    image = typed("quick")
    assert reader([image]) == reader([np.repeat(image[..., None], 3, axis=2)])


def test_rgb_is_not_taken_for_bgr():
    red = np.zeros((48, 48, 3), np.uint8)
    red[..., 0] = 255
    tensor = ppocr._reader_input(ppocr._bgr(red))
    assert tensor.shape == (1, 3, 48, 48)
    assert tensor[0, :, 0, 0].tolist() == [-1, -1, 1]  # the model was trained on blue, green, red


@pytest.mark.parametrize("shape", [(1, 1), (300, 2), (2, 3000), (48, 5)])
def test_odd_shapes_are_read_without_failing(reader, shape):
    (reading,) = reader([np.full(shape, 255, np.uint8)])
    assert isinstance(reading.text, str)


def test_width_is_whole_time_steps_and_bounded():
    assert ppocr._reader_input(np.zeros((96, 500, 3), np.uint8)).shape == (1, 3, 48, 256)
    assert ppocr._reader_input(np.zeros((2, 3000, 3), np.uint8)).shape == (1, 3, 48, 48 * 60)
    assert ppocr._reader_input(np.zeros((96, 10, 3), np.uint8)).shape == (1, 3, 48, 48)


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((10, 10), np.float32),
        np.zeros((10, 10, 4), np.uint8),
        np.zeros((0, 10), np.uint8),
        np.zeros(10, np.uint8),
    ],
    ids=["float", "rgba", "empty", "one-dimensional"],
)
def test_an_image_of_another_form_is_refused(reader, bad):
    with pytest.raises(DataError, match="an image to read is uint8"):
        reader([bad])


def test_reads_handwriting(reader, shared_data):
    image = cv2.imread(str(shared_data / "pages/inksight/page.jpg"))[..., ::-1]
    (reading,) = reader([np.ascontiguousarray(image[70:210])])
    assert reading.text.rstrip(" .") == "The quick brown fox jumps over the lazy dog"

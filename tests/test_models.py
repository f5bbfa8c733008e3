"""The shipped models: each folder has its card, its report, and weights that are what the card says."""

import hashlib
import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

import inktraj
from inktraj.recovery.scribe import Scribe
from inktraj.recovery.weights import load_weights, models_folder
from inktraj.style import StyleNetwork

MODELS = Path(__file__).resolve().parents[1] / "models"
FOLDERS = sorted(path for path in MODELS.iterdir() if path.is_dir())
MOST_BYTES = 15_000_000  # of all weights together, in the wheel


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_card_tells_the_weights_checksum_and_size(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    (weights,) = (path.read_bytes() for path in folder.iterdir() if path.suffix in (".npz", ".onnx"))
    assert hashlib.sha256(weights).hexdigest() in card
    (size,) = re.findall(r"\| size \| ([\d,]+) bytes \|", card)
    assert int(size.replace(",", "")) == len(weights)
    assert "@@" not in card


def test_all_weights_together_are_small():
    assert sum(path.stat().st_size for path in MODELS.rglob("*") if path.is_file()) < MOST_BYTES


def test_the_report_tells_of_the_recipe_and_of_held_out_words():
    report = json.loads((MODELS / "scribe" / "training.json").read_text(encoding="utf-8"))
    assert report["words"] == "all"
    assert 0 < report["held_out"]["dtw_median"] < 0.02
    assert report["held_out"]["calibration_error"] < 0.1


def test_the_default_recoverer_uses_the_shipped_weights():
    shipped = (models_folder() / "scribe" / "weights.npz").read_bytes()
    assert load_weights().checksum == hashlib.sha256(shipped).hexdigest()
    assert load_weights().checksum[:8] in Scribe().version


def test_a_plain_hook_is_written_from_its_top_in_one_stroke():
    image = np.full((120, 100), 235, np.uint8)
    path = np.array([(30, 15), (30, 80), (40, 100), (60, 100), (75, 85)], np.int32)
    cv2.polylines(image, [path], False, 40, 4, cv2.LINE_AA)
    (stroke,) = inktraj.recover(image).strokes
    np.testing.assert_allclose(stroke[[0, -1]], path[[0, -1]], atol=2)


def test_the_style_networks_report_is_of_the_shipped_file():
    report = json.loads((MODELS / "style" / "training.json").read_text(encoding="utf-8"))
    shipped = StyleNetwork.load()
    assert report["figures"]["network_sha256"] == shipped.hash
    assert 0 < report["figures"]["train_minutes"] < 20
    assert 0.8 < report["figures"]["accuracy_1_word"] <= report["figures"]["accuracy_10_words"] <= 1

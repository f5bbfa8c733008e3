"""Models in local folders: tiny ones with random weights, of the real classes and with their real processors."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import tiny_vlms

from inktraj.errors import DataError, MissingDependency
from inktraj.vlm import VLM, ImageLimits, ModelClosed, ProviderError, Request, Text, fit, load_model, make_picture
from inktraj.vlm.table import UNKNOWN_FRAME, load_table
from inktraj.vlm.transformers import _thought

pytestmark = pytest.mark.filterwarnings("default")  # of transformers' own

FRAMES = {"qwen3_vl": "norm1000", "qwen2_5_vl": "sent-px", "internvl": "norm1000", "molmo2": "norm1000"}
SIZES = [(248, 351), (1240, 1754), (300, 40), (17, 900), (33, 33)]


@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("torch", reason="torch is not installed")
    return pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="module")
def made(transformers, tmp_path_factory):
    """Make a folder with a model of a kind, once; copies of it may be spoilt."""
    folders = {}

    def make(kind, **more):
        if kind != "llava":
            if not hasattr(transformers, {"molmo2": "Molmo2Config"}.get(kind, "Qwen3VLConfig")):
                pytest.skip(f"transformers {transformers.__version__} has no {kind}")
            try:  # the processors of all these want it for videos
                import torchvision.transforms.v2.functional  # noqa: F401
            except (ImportError, RuntimeError) as err:
                pytest.skip(f"torchvision cannot be imported: {err}")
        key = (kind, *sorted(more.items()))
        if key not in folders:
            folders[key] = getattr(tiny_vlms, f"make_{kind}")(tmp_path_factory.mktemp(kind), **more)
        return folders[key]

    return make


@pytest.fixture
def spoilt(made, tmp_path):
    """Give a copy of the smallest model, with another config where one is given."""

    def copy(**config):
        folder = shutil.copytree(made("llava"), tmp_path / "spoilt")
        settings = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(settings | config))
        return folder

    return copy


def picture(limits, width=248, height=351, seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return make_picture(pixels, limits)


def question(model, pictures=1, **settings):
    shown = [picture(model.limits, seed=seed) for seed in range(pictures)]
    parts = [part for one in shown for part in (one, Text("and where is it here?"))]
    return replace(Request("You look for words.", tuple(parts), 12), **settings)


def load(folder, **more):
    return load_model(f"transformers:{folder}", device="cpu", **more)


# Each kind of model


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", FRAMES)
def test_a_kind_of_model_answers(made, kind, dtype):
    folder = made(kind, dtype=dtype)
    model = load(folder)
    assert isinstance(model, VLM)
    assert (model.model_id, model.frame, model.prices) == (folder.name, FRAMES[kind], ())
    assert model.describe()["dtype"] == dtype
    one, two = question(model), question(model, 2)
    replies = [model.ask(request) for request in (one, one, two)]
    assert replies[0].text == replies[1].text
    assert replies[2].input_tokens > replies[0].input_tokens + len("and where is it here?")
    for reply in replies:
        assert (reply.stop_reason, reply.raw_stop) in [("length", "max_new_tokens"), ("end", "eos")]
        assert (reply.output_tokens == 12) or reply.stop_reason == "end"
        assert (reply.model, reply.thinking_tokens) == (folder.name, 0)
    drawn = [model.ask(replace(one, temperature=1.5, seed=seed)).text for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("kind", FRAMES)
def test_what_stands_in_a_request_reaches_the_model(made, kind, monkeypatch):
    model = load(made(kind))
    seen = inputs_of(model, question(model, 2, system="You look for words."), monkeypatch)
    read = model._processor.decode(seen["input_ids"][0])
    assert read.count("You look for words.") == 1
    assert read.index("You look for words.") < read.index("and where is it here?")
    assert read.count("and where is it here?") == 2
    assert read.rstrip().endswith("<|im_start|>assistant")
    # Molmo 2's template has no place for a system prompt, and says so by an error.
    assert ("<|im_start|>system" in read) == (kind != "molmo2")
    without = inputs_of(model, question(model, 2, system=""), monkeypatch)
    assert "<|im_start|>system" not in model._processor.decode(without["input_ids"][0])


@pytest.mark.parametrize("kind", ["qwen3_vl", "qwen2_5_vl"])
@pytest.mark.parametrize("size", SIZES)
def test_an_image_is_seen_at_the_size_at_which_it_is_sent(made, kind, size, monkeypatch):
    model = load(made(kind))
    sent = picture(model.limits, *size)
    seen = inputs_of(model, Request("", (sent, Text("?")), 1), monkeypatch)
    patch = model._processor.image_processor.patch_size
    assert [[1, sent.height // patch, sent.width // patch]] == seen["image_grid_thw"].tolist()
    assert (sent.width % patch, sent.height % patch) == (0, 0)
    # One pixel sent is one pixel seen: patches of it hold the very values.
    values = np.unique(np.round((seen["pixel_values"].numpy() * 0.5 + 0.5) * 255, 3) % 1)
    assert set(values) <= {0.0, 0.999}


@pytest.mark.parametrize("size", [*SIZES, (2480, 3508), (3508, 2480), (2000, 200), (2000, 80), (112, 112), (900, 900)])
def test_molmo_2_does_not_shrink_what_it_is_sent(made, size):
    model = load(made("molmo2"))
    from transformers.models.molmo2.image_processing_molmo2 import compute_crop_geometry

    assert model.limits == load_table().limits["molmo2"]
    geometry = {"max_crops": 8, "overlap_margins": [4, 4], "crop_size": 378, "patch_size": 14}
    rows, columns, high, wide = compute_crop_geometry(size[1], size[0], **geometry)
    sent = fit(*size, model.limits)
    assert sent == (min(size[0], wide), min(size[1], high))
    assert compute_crop_geometry(sent[1], sent[0], **geometry) == (rows, columns, high, wide)
    seen = model._processor.image_processor(images=[np.zeros((sent[1], sent[0], 3), np.uint8)], return_tensors="pt")
    assert seen["image_grids"][0, 2:].tolist() == [-(-high // 28), -(-wide // 28)]


def test_limits_are_those_of_the_folder(made):
    model = load(made("qwen2_5_vl", max_pixels=200_704))
    assert model.limits == ImageLimits("smart-resize", factor=28, min_pixels=3136, max_pixels=200_704)
    assert fit(2480, 3508, model.limits) == (364, 532)
    assert load(made("qwen2_5_vl")).limits.max_pixels == 12_845_056
    assert load(made("qwen3_vl")).limits == ImageLimits(
        "smart-resize", factor=32, min_pixels=65_536, max_pixels=16_777_216
    )
    own = ImageLimits("box", long_edge=500)
    assert load(made("qwen3_vl"), limits=own).limits == own


def test_limits_of_a_processor_saved_by_transformers_itself(made, transformers, tmp_path):
    folder = shutil.copytree(made("qwen2_5_vl", max_pixels=200_704), tmp_path / "saved")
    processor = transformers.AutoProcessor.from_pretrained(folder)
    for file in folder.glob("*preprocessor_config.json"):
        file.unlink()
    processor.save_pretrained(folder)
    assert load(folder).limits.max_pixels == 200_704


def inputs_of(model, request, monkeypatch):
    """What a request becomes when it comes to the weights."""
    seen = {}
    with monkeypatch.context() as patch:
        generate = model._model.generate
        patch.setattr(model._model, "generate", lambda **given: seen.update(given) or generate(**given))
        model.ask(request)
    return seen


# What holds for all kinds


def test_a_local_model(made):
    model = load(made("llava"), frame="norm1000")
    assert isinstance(model, VLM)
    assert (model.model_id, model.frame, model.prices) == (made("llava").name, "norm1000", ())
    asked = question(model)
    replies = [model.ask(asked) for _ in range(2)]
    assert replies[0].text == replies[1].text
    assert (replies[0].stop_reason, replies[0].output_tokens) == ("length", 12)
    assert replies[0].input_tokens > len("You look for words. and where is it here?")
    assert model.ask(Request("", (Text("other"),), 12)).text != replies[0].text
    drawn = [model.ask(replace(asked, temperature=1.5, seed=seed)).text for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert model.ask(replace(asked, temperature=0.0)).text == replies[0].text
    assert len(json.loads(json.dumps(model.describe()))["sha256"]) == 64
    model.close()
    with pytest.raises(ModelClosed):
        model.ask(asked)


def test_closing_ends_a_request_under_way(made):
    model = load(made("llava"))
    model._model.generation_config.eos_token_id = None
    ended = []

    def ask():
        try:
            model.ask(Request("", (Text("?"),), 1_000_000))
        except ModelClosed:
            ended.append(time.monotonic())

    asking = threading.Thread(target=ask)
    asking.start()
    while not model._lock.locked():
        time.sleep(0.01)
    time.sleep(0.2)
    model.close()
    asking.join(10)
    assert len(ended) == 1


def test_the_frame_of_a_kind_of_which_nothing_is_known(spoilt, tmp_path):
    folder = spoilt()
    assert load(folder).frame == UNKNOWN_FRAME
    own = tmp_path / "own.toml"
    own.write_text('as_of = 2026-12-05\n[[families]]\nmatch = ["spoilt*"]\nframe = "norm1"\n')
    assert load(folder, models=own).frame == "norm1"
    own.write_text('as_of = 2026-12-05\n[[families]]\nmatch = ["llava"]\nframe = "percent"\n')
    assert load(folder, models=own).frame == "percent"


def test_weights_that_were_trained_on_are_another_model(spoilt):
    folder = spoilt()
    before = load(folder).describe()
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert load(folder).describe()["sha256"] != before["sha256"]


def test_thinking_is_no_part_of_an_answer():
    begin, end = 7, 8
    assert _thought([1, 2], [3, 4], begin, end) == 0
    assert _thought([1, 2], [begin, 3, end, 4, 5], begin, end) == 3
    assert _thought([1, begin], [3, end, 4], begin, end) == 2
    assert _thought([1, begin], [3, 4], begin, end) == 2
    assert _thought([1], [begin, 3, 4], begin, end) == 3
    assert _thought([1, begin, end], [3, 4], begin, end) == 0
    assert _thought([1, begin], [3, 4], None, None) == 0


# Folders and requests that cannot be used


def test_a_folder_that_is_no_model(tmp_path):
    with pytest.raises(DataError, match=r"not a folder with a config\.json"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(DataError, match="object is expected"):
        load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_vl"}')
    with pytest.raises(DataError, match="holds no weights"):
        load(tmp_path)
    weights = tmp_path / "model-00001-of-00002.safetensors"
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4000000000\n")
    with pytest.raises(DataError, match=r"00001-of-00002.*git lfs pull"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "advice"), [("internvl_chat", "-HF"), ("molmo", "Molmo 2"), ("something_new", "a newer transformers")]
)
def test_code_in_a_folder_is_not_run(tmp_path, transformers, kind, advice):
    bait = tmp_path / "was-run"
    mapped = {"AutoConfig": "own.Config", "AutoModelForImageTextToText": "own.Model", "AutoProcessor": "own.Own"}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "auto_map": mapped}))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"auto_map": mapped}))
    (tmp_path / "own.py").write_text(f"open({str(bait)!r}, 'w')\n")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match=rf"code that comes with it.*not run.*{advice}.*local/ID"):
        load(tmp_path)
    assert not bait.exists()


def test_a_folder_without_processor(spoilt):
    folder = spoilt()
    for file in folder.glob("*processor_config.json"):
        file.unlink()
    with pytest.raises(DataError, match=r"the processor of .*spoilt \(llava\) cannot be loaded"):
        load(folder)


def test_a_tokenizer_is_no_processor(made, monkeypatch, transformers):
    # What `AutoProcessor` gives for folders whose processor it does not know; it would leave out the images.
    folder = made("llava")
    monkeypatch.setattr(transformers.AutoProcessor, "from_pretrained", transformers.AutoTokenizer.from_pretrained)
    with pytest.raises(DataError, match="has no processor of images and text"):
        load(folder)


def test_a_folder_without_tokenizer(spoilt):
    folder = spoilt()
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(DataError, match=r"spoilt.*cannot be loaded"):
        load(folder)


def test_a_folder_without_chat_template(spoilt):
    folder = spoilt()
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(DataError, match="no chat template"):
        load(folder)


def test_a_text_only_model(transformers, tmp_path, made):
    folder = shutil.copytree(made("llava"), tmp_path / "text")
    config = transformers.LlamaConfig(
        vocab_size=300, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    with pytest.raises(DataError, match="llama, which is no model of images and text"):
        load(folder)


def test_weights_that_are_cut_off(spoilt):
    folder = spoilt()
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(DataError, match="cannot be loaded"):
        load(folder)


def test_weights_of_which_some_are_missing(spoilt):
    from safetensors.torch import load_file, save_file

    folder = spoilt()
    weights = load_file(folder / "model.safetensors")
    lost = next(name for name in weights if "mlp" in name)
    save_file({n: w for n, w in weights.items() if n != lost}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(DataError, match=r"lacks 1 of its model's weights"):
        load(folder)


def test_no_such_device(made):
    with pytest.raises(DataError, match="does not go onto the device 'cuda:99'"):
        load_model(f"transformers:{made('llava')}", device="cuda:99")


def test_without_torchvision(made, monkeypatch, transformers):
    def refuse(*_, **__):
        raise ImportError("Qwen3VLVideoProcessor requires the Torchvision library but it was not found")

    folder = made("llava")
    monkeypatch.setattr(transformers.AutoProcessor, "from_pretrained", refuse)
    with pytest.raises(MissingDependency, match=r"torchvision.*inktraj\[transformers\]"):
        load(folder)


def test_out_of_memory_is_an_error_and_no_answer(made, monkeypatch):
    import torch

    model = load(made("llava"))

    def full(**_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\n\nSee the documentation")

    monkeypatch.setattr(model._model, "generate", full)
    with pytest.raises(ProviderError, match=r"out of memory.*--input crop") as caught:
        model.ask(question(model))
    assert "documentation" not in str(caught.value)


def test_what_a_model_cannot_do_is_an_error_and_no_answer(made, monkeypatch):
    model = load(made("llava"))

    def half(**_):
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Half'")

    monkeypatch.setattr(model._model, "generate", half)
    with pytest.raises(ProviderError, match="not implemented for 'Half'"):
        model.ask(question(model))


# As a user would


def evaluate(folder, out, *more):
    from typer.testing import CliRunner

    from inktraj.cli import app

    options = ["--limit", "2", "--max-tokens", "16", "--out", str(out), *more]
    return CliRunner().invoke(app, ["eval", "--model", f"transformers:{folder}", *options])


@pytest.mark.parametrize("kind", FRAMES)
def test_an_evaluation(made, kind, tmp_path):
    done = evaluate(made(kind), tmp_path / "run")
    assert done.exit_code == 0, done.output
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    records = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text().splitlines()]
    assert len(records) == 2
    assert {record["frame"] for record in records} == {FRAMES[kind]}
    (row,) = run["rows"]
    assert row["native"]
    # What random weights say is no ink; it is counted, and no error.
    assert sum(row["kinds"].values()) == 2
    assert row["kinds"]["ok"] == row["kinds"]["error"] == 0


def test_an_evaluation_of_a_model_of_whose_kind_nothing_is_known(made, tmp_path):
    done = evaluate(made("llava"), tmp_path / "run")
    assert isinstance(done.exception, DataError)
    assert "--frame norm1000" in str(done.exception)
    assert not (tmp_path / "run").exists()
    done = evaluate(made("llava"), tmp_path / "run", "--frame", "norm1000")
    assert done.exit_code == 0, done.output

"""Models behind one protocol: image sizes, the table, keys, retries, and the real SDKs against a misbehaving server."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from fake_provider import CACHED_TOKENS, INPUT_TOKENS, THINKING_TOKENS, TRANSPORT, FakeProvider
from hypothesis import given
from hypothesis import strategies as st

from inktraj.errors import DataError, MissingDependency, ParseError, RunError
from inktraj.vlm import (
    VLM,
    Budget,
    ImageLimits,
    ModelClosed,
    Picture,
    Price,
    ProviderError,
    Reply,
    Request,
    Retry,
    RetryPolicy,
    Text,
    cost_of,
    fit,
    load_model,
    load_table,
    make_picture,
)
from inktraj.vlm.batch import collect_batch, submit_batch
from inktraj.vlm.cost import price_on
from inktraj.vlm.keys import find_key, is_loopback, redact
from inktraj.vlm.replay import Replay
from inktraj.vlm.retry import Gate, Retrier, may_pass, retry_after

TABLE = load_table()
KEY = "sk-planted-0123456789abcdef"
GOOD = "[(10, 20, 1), (30, 40, 0)]"
QUICK = RetryPolicy(attempts=4, first=0.01, total=20, seed=1)

WIRES = {
    "anthropic": ("claude", "anthropic", "ANTHROPIC_API_KEY"),
    "google": ("gemini", "google.genai", "GEMINI_API_KEY"),
    "openai": ("gpt", "openai", "OPENAI_API_KEY"),
}


def missing(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is None
    except ModuleNotFoundError:
        return True


@pytest.fixture(
    params=[
        pytest.param(wire, marks=pytest.mark.skipif(missing(package), reason=f"{package} is not installed"))
        for wire, (_, package, _) in WIRES.items()
    ]
)
def wire(request):
    return request.param


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    """No key or address of the machine's own gets into a test, and none out."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_", "MOONSHOT_", "VLLM_", "INKTRAJ_")):
            monkeypatch.delenv(name)


def connect(fake: FakeProvider, wire: str, **options) -> VLM:
    options = {"policy": QUICK, "timeout": 5.0} | options
    return load_model(WIRES[wire][0], base_url=fake.url(wire), **options)


def page(width: int = 40, height: int = 30) -> Picture:
    return make_picture(np.full((height, width), 255, np.uint8))


def question(text: str = "where is it?", **options) -> Request:
    return Request("system prompt", (Text("before"), page(), Text(text)), options.pop("max_tokens", 500), **options)


# Requests and replies


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Request("", (), 10), "at least one part"),
        (lambda: Request("", ("text",), 10), "Text or a Picture"),
        (lambda: Request("", (Text("a"),), 0), "at least 1"),
        (lambda: Picture(b"", 0, 3), "at least 1 px"),
        (lambda: Picture(b"", 3, 3, "image/gif"), "image/png"),
        (lambda: Reply("", "stop", 1, 1, "m"), "one of"),
    ],
)
def test_what_is_not_a_request_or_reply(make, told):
    with pytest.raises(DataError, match=told):
        make()


def test_the_digest_is_of_all_that_a_model_sees():
    base = Request("s", (Text("ab"), page()), 10)
    same = [replace(base, key="k"), replace(base, sample="w")]
    other = [
        replace(base, system=""),
        replace(base, parts=(Text("a"), Text("b"), page())),
        replace(base, parts=(page(), Text("ab"))),
        replace(base, parts=(Text("ab"), page(41))),
        replace(base, max_tokens=11),
        replace(base, temperature=0.0),
        replace(base, seed=0),
    ]
    assert {r.digest() for r in same} == {base.digest()}
    assert len({base.digest(), *(r.digest() for r in other)}) == 1 + len(other)


def test_a_picture_shows_no_bytes():
    assert repr(page()).endswith("40×30, image/png)")
    assert len(repr(question())) < 300


# Sizes


@pytest.mark.parametrize(
    ("limits", "size", "seen"),
    [
        # The checks of the provider's page on coordinates.
        ("claude-standard", (1075, 1520), (924, 1307)),
        ("claude-standard", (1920, 1080), (1456, 819)),
        # A page of 300 dpi.
        ("claude-standard", (2480, 3508), (924, 1307)),
        ("claude", (2480, 3508), (1623, 2296)),
        ("claude", (200, 60), (200, 60)),
        ("openai-tiles", (2480, 3508), (768, 1086)),
        ("openai-tiles", (4096, 1024), (2048, 512)),
        ("openai-tiles", (1024, 1024), (768, 768)),
        ("openai-tiles", (600, 400), (600, 400)),
        ("qwen2-vl", (2480, 3508), (840, 1176)),
        ("qwen2-vl", (100, 100), (112, 112)),
        ("qwen2-vl", (20, 20), (56, 56)),
        ("gemini", (2480, 3508), (2172, 3072)),
        ("none", (9999, 3), (9999, 3)),
    ],
)
def test_sizes_as_seen(limits, size, seen):
    assert fit(*size, TABLE.limits[limits]) == seen


SIDES = st.integers(1, 9000)


@given(SIDES, SIDES, st.sampled_from(sorted(set(TABLE.limits) - {"qwen2-vl", "qwen3-vl"})))
def test_a_fitted_size_stays_and_keeps_the_aspect(width, height, name):
    limits = TABLE.limits[name]
    wide, high = fit(width, height, limits)
    assert fit(wide, high, limits) == (wide, high)
    assert 1 <= wide <= width
    assert 1 <= high <= height
    # Rounding to whole pixels is all that changes the aspect.
    assert abs(wide * height / width - high) <= 1 or abs(high * width / height - wide) <= 1


@given(
    st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([(28, 1568, 1568), (32, 640, 200), (28, 2576, 4784)])
)
def test_no_larger_size_is_allowed(width, height, rule):
    patch, edge, tokens = rule
    limits = ImageLimits("patches", long_edge=edge, patch=patch, tokens=tokens)

    def allowed(long: int) -> bool:
        short = max(1, round(long * min(width, height) / max(width, height)))
        columns, rows = -(-long // patch), -(-short // patch)
        return columns * patch <= edge and columns * rows <= tokens

    # Slow and obvious: every longer edge from the image's own down.
    expected = next(long for long in range(max(width, height), 0, -1) if allowed(long))
    assert max(fit(width, height, limits)) == expected


@given(st.integers(1, 6000), st.integers(1, 6000), st.sampled_from(["qwen2-vl", "qwen3-vl"]))
def test_smart_resize(width, height, name):
    limits = TABLE.limits[name]
    if max(width, height) > 200 * min(width, height):
        with pytest.raises(DataError, match="200 times"):
            fit(width, height, limits)
        return
    wide, high = fit(width, height, limits)
    assert wide % limits.factor == high % limits.factor == 0
    assert wide * high <= max(limits.max_pixels, limits.factor * max(wide, high))
    assert wide * high >= limits.min_pixels
    assert fit(wide, high, limits) == (wide, high) or min(wide, high) == limits.factor


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "crop"},
        {"rule": "box"},
        {"rule": "box", "long_edge": 0},
        {"rule": "box", "long_edge": True},
        {"rule": "none", "long_edge": 100},
        {"rule": "patches", "long_edge": 20, "patch": 28, "tokens": 5},
        {"rule": "smart-resize", "factor": 28, "min_pixels": 9000, "max_pixels": 8000},
        {"max_bytes": -1},
    ],
)
def test_limits_that_say_nothing_clear(wrong):
    with pytest.raises(DataError):
        ImageLimits(**wrong)


def test_no_size():
    with pytest.raises(DataError, match="at least 1 px"):
        fit(0, 10, TABLE.limits["claude"])


# Pictures


def test_a_picture_has_the_size_it_says(rng):
    image = rng.integers(0, 255, (1520, 1075, 3), dtype=np.uint8)
    picture = make_picture(image, TABLE.limits["claude-standard"])
    decoded = cv2.imdecode(np.frombuffer(picture.data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert (picture.width, picture.height) == (924, 1307) == decoded.shape[1::-1]
    small = make_picture(image[:9, :11])
    decoded = cv2.imdecode(np.frombuffer(small.data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert np.array_equal(decoded[..., ::-1], image[:9, :11])  # as it is, and RGB


@pytest.mark.parametrize("size", [(50, 40), (400, 320)])
def test_points_keep_their_place(size):
    image = np.full((160, 200), 255, np.uint8)
    image[100:104, 60:68] = 0
    picture = make_picture(image, size=size)
    sent = 255.0 - cv2.imdecode(np.frombuffer(picture.data, np.uint8), cv2.IMREAD_UNCHANGED)
    ys, xs = np.mgrid[: size[1], : size[0]]
    centre = np.array([(sent * xs).sum(), (sent * ys).sum()]) / sent.sum()
    assert centre == pytest.approx((np.array([63.5, 101.5]) + 0.5) * size[0] / 200 - 0.5, abs=0.05)


def test_a_picture_of_too_many_bytes_becomes_a_jpeg(rng):
    image = rng.integers(0, 255, (300, 300, 3), dtype=np.uint8)
    picture = make_picture(image, ImageLimits(max_bytes=200_000))
    assert picture.media_type == "image/jpeg"
    assert len(picture.data) <= 200_000
    with pytest.raises(DataError, match="at most 1000"):
        make_picture(image, ImageLimits(max_bytes=1000))


@pytest.mark.parametrize(
    "image",
    [np.zeros((3, 4)), np.zeros((3, 4, 4), np.uint8), np.zeros((0, 4), np.uint8), np.zeros(3, np.uint8), [[1, 2]]],
)
def test_no_pictures(image):
    with pytest.raises(DataError, match="an image to send"):
        make_picture(image)


# The table of models


def test_every_model_of_the_shipped_table_is_whole():
    assert TABLE.as_of == date(2026, 11, 29)
    assert {"claude", "gemini", "kimi", "gpt", "qwen", "internvl", "molmo"} <= TABLE.models.keys()
    for name, entry in TABLE.models.items():
        family = TABLE.family(entry.id)
        assert family.match != ("*",), f"{name} ({entry.id}) is of no family"
        assert entry.source
        assert TABLE.providers[entry.provider].keys
        for price in entry.prices:
            assert 0 < price.input <= price.output
            assert price.cached is None or 0 < price.cached < price.input
    assert all(family.source for family in TABLE.families)


def test_every_family_can_be_reached():
    for family in TABLE.families:
        example = family.match[0].replace("[0-6]", "5").replace("*", "-x")
        assert TABLE.family(example) is family, example


@pytest.mark.parametrize(
    ("model_id", "frame", "limits"),
    [
        ("claude-opus-5-5", "sent-px", "claude"),
        ("claude-opus-4-8", "sent-px", "claude"),
        ("claude-opus-4-6", "sent-px", "claude-standard"),
        ("claude-sonnet-4-5-20250929", "sent-px", "claude-standard"),
        ("gemini-4-argon", "norm1000-yx", "gemini"),
        ("Qwen/Qwen2-VL-7B-Instruct", "norm1000", "qwen2-vl"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "sent-px", "qwen2-vl"),
        ("qwen2_5_vl", "sent-px", "qwen2-vl"),
        ("Qwen/Qwen3-VL-8B-Instruct/", "norm1000", "qwen3-vl"),
        ("OpenGVLab/InternVL3_5-8B", "norm1000", "none"),
        ("allenai/Molmo-7B-D-0924", "percent", "none"),
        ("allenai/Molmo2-8B", "norm1000", "none"),
        ("kimi-k3", "norm1", "none"),
        ("gpt-4.1-mini", "sent-px", "openai-tiles"),
        ("gpt-5-2025-08-07", "sent-px", "openai-tiles"),
        ("gpt-5.4", "sent-px", "openai-patches"),
        ("gpt-6.1-sol", "sent-px", "openai-patches"),
        ("something-else", "sent-px", "none"),
    ],
)
def test_families(model_id, frame, limits):
    family = TABLE.family(model_id)
    assert (family.frame, family.limits) == (frame, limits)


OWN = """
as_of = 2027-01-02
[limits.small]
rule = "box"
long_edge = 100
[[families]]
match = ["claude*"]
frame = "norm1000"
limits = "small"
[models.claude]
provider = "anthropic"
id = "claude-next"
prices = [{ input = 1, output = 2.5 }]
"""


def test_a_users_table_adds_and_overrides(tmp_path, monkeypatch):
    path = tmp_path / "models.toml"
    path.write_text(OWN)
    monkeypatch.setenv("INKTRAJ_MODELS", str(path))
    table = load_table()
    assert table == load_table(path)
    assert table.as_of == date(2027, 1, 2)
    assert table.models["claude"].id == "claude-next"
    assert table.models["gpt"] == TABLE.models["gpt"]
    assert table.family("claude-opus-4-1").frame == "norm1000"
    assert table.prices("anthropic", "claude-next") == (Price(1, 2.5, batch=0.5),)
    assert table.prices("anthropic", "claude-unheard-of") == ()


MODEL = '[models.m]\nprovider = "openai"\nid = "x"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("as_of = ", "not TOML"),
        ("", "as_of"),
        ('as_of = "2026"', "as_of"),
        ("as_of = 2026-01-01T00:00:00", "as_of"),
        ("as_of = 2026-01-01\nmodel = 1", "unknown: model"),
        ("as_of = 2026-01-01\nmodels = 1", "models holds"),
        ("as_of = 2026-01-01\nfamilies = 1", "families is a list"),
        ("as_of = 2026-01-01\n[models]\nx = 1", "a table is expected"),
        (f"as_of = 2026-01-01\n{MODEL}", "prices"),
        (f"as_of = 2026-01-01\n{MODEL}prices = []", "prices"),
        (f"as_of = 2026-01-01\n{MODEL}prices = 0", "prices"),
        (f"as_of = 2026-01-01\n{MODEL}prices = [{{ input = 1 }}]", "input and output"),
        (f"as_of = 2026-01-01\n{MODEL}prices = [{{ input = -1, output = 1 }}]", "dollars"),
        (f'as_of = 2026-01-01\n{MODEL}prices = [{{ input = "1", output = 1 }}]', "a number"),
        (f"as_of = 2026-01-01\n{MODEL}prices = [{{ input = nan, output = 1 }}]", "dollars"),
        (f"as_of = 2026-01-01\n{MODEL}prices = [{{ input = 1, output = 1, most_input = 0 }}]", "most_input"),
        (f"as_of = 2026-01-01\n{MODEL}prices = [{{ input = 1, output = 1, since = 3 }}]", "since"),
        (f"as_of = 2026-01-01\n{MODEL}prices = [{{ input = 1, output = 1 }}, {{ input = 1, output = 1 }}]", "order"),
        (f'as_of = 2026-01-01\n{MODEL}prices = "unknown"\nframe = "pixels"', "frame is one of"),
        (f'as_of = 2026-01-01\n{MODEL}prices = "unknown"\nlimits = "nowhere"', "no limits"),
        ('as_of = 2026-01-01\n[models.m]\nprovider = "no"\nid = "x"\nprices = "unknown"', "provider is one of"),
        ('as_of = 2026-01-01\n[models.m]\nprovider = "openai"\nprices = "unknown"', "id is"),
        ('as_of = 2026-01-01\n[models."a/b"]\nprovider = "openai"\nid = "x"\nprices = "unknown"', "no slash"),
        ('as_of = 2026-01-01\n[limits.l]\nrule = "box"', "long_edge"),
        ('as_of = 2026-01-01\n[[families]]\nmatch = []\nframe = "norm1"', "match is a list"),
        ('as_of = 2026-01-01\n[[families]]\nmatch = ["a"]\nframe = "norm1"\nlimits = "l"', "no limits"),
        ('as_of = 2026-01-01\n[providers.p]\nwire = "soap"\nkeys = ["K"]', "wire is one of"),
        ('as_of = 2026-01-01\n[providers.p]\nwire = "openai"\nkeys = ["K"]\nbase_url = "p.com"', "http"),
    ],
)
def test_tables_that_are_refused(text, told, tmp_path):
    path = tmp_path / "models.toml"
    path.write_text(text)
    with pytest.raises(ParseError, match=told) as caught:
        load_table(path)
    assert str(path) in str(caught.value)


def test_a_table_that_is_not_there(monkeypatch):
    monkeypatch.setenv("INKTRAJ_MODELS", "/nowhere/models.toml")
    with pytest.raises(DataError, match=r"/nowhere/models.toml \(named by INKTRAJ_MODELS\)"):
        load_table()


# Cost


def reply_of(paid: int | None = 1_000_000, got: int | None = 500_000, cached: int | None = None) -> Reply:
    return Reply("", "end", paid, got, "m", cached_tokens=cached)


def priced(*prices: Price) -> SimpleNamespace:
    return SimpleNamespace(name="m", model_id="m", prices=prices)


def test_cost():
    model = priced(Price(2.0, 10.0, cached=0.2, batch=0.5))
    assert cost_of(reply_of(), model) == pytest.approx(7.0)
    assert cost_of(reply_of(cached=400_000), model) == pytest.approx(0.6 * 2 + 0.4 * 0.2 + 5)
    assert cost_of(reply_of(cached=400_000), priced(Price(2.0, 10.0))) == pytest.approx(7.0)
    assert cost_of(reply_of(), model, batch=True) == pytest.approx(3.5)


def test_what_is_not_known_costs_not_nothing():
    assert cost_of(reply_of(), priced()) is None
    assert cost_of(reply_of(None), priced(Price(1, 1))) is None
    assert cost_of(reply_of(got=None), priced(Price(1, 1))) is None
    assert cost_of(reply_of(), priced(Price(1, 1)), batch=True) is None
    assert cost_of(reply_of(100_001), priced(Price(1, 1, most_input=100_000))) is None
    assert cost_of(reply_of(100_000), priced(Price(1, 1, most_input=100_000))) == pytest.approx(0.6)
    assert cost_of(reply_of(), priced(Price(1, 1, since=date(2030, 1, 1))), day=date(2029, 12, 31)) is None


def test_prices_change_on_a_day():
    prices = TABLE.models["gemini"].prices
    assert price_on(prices, date(2026, 11, 30)).input == 2.0
    assert price_on(prices, date(2026, 12, 1)).input == 4.0


def test_a_budget():
    budget = Budget(1.0, priced(Price(1, 1)))
    budget.add(0.6)
    assert not budget.used_up
    budget.add(0.4)
    assert budget.used_up
    assert budget.spent == pytest.approx(1.0)
    unlimited = Budget(None, priced())
    unlimited.add(None)
    assert (unlimited.spent, unlimited.unknown, unlimited.used_up) == (0.0, 1, False)
    unclear = Budget(5.0, priced(Price(1, 1)))
    unclear.add(None)
    assert unclear.used_up
    with pytest.raises(RunError, match="not known"):
        Budget(1.0, priced())
    with pytest.raises(DataError):
        Budget(0.0, priced(Price(1, 1)))


# Keys


def test_keys_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("SECOND_KEY", f" {KEY}\n")
    assert find_key(["FIRST_KEY", "SECOND_KEY"], None, "m") == KEY
    assert find_key(["FIRST_KEY"], "http://127.0.0.1:8000/v1", "m") == "none-needed"
    with pytest.raises(ProviderError, match="set FIRST_KEY or THIRD_KEY"):
        find_key(["FIRST_KEY", "THIRD_KEY"], "http://example.com", "m")


@pytest.mark.parametrize("key", ["sk bad", "sk\nbad", "sk-…"])
def test_a_key_that_cannot_be_one_is_not_quoted(key, monkeypatch):
    monkeypatch.setenv("SOME_KEY", key)
    with pytest.raises(ProviderError, match="the key in SOME_KEY") as caught:
        find_key(["SOME_KEY"], None, "m")
    assert key not in str(caught.value)


def test_loopback():
    near = ["http://localhost:8000", "http://127.8.0.1", "http://[::1]:80/v1", "http://a.localhost"]
    far = ["http://10.0.0.1", "http://localhost.com", "http://127.0.0.1.example.com", "https://api.openai.com"]
    assert all(map(is_loopback, near))
    assert not any(map(is_loopback, far))


def test_redaction():
    assert redact(f"a {KEY} b https://me:pw@proxy:80/x", [KEY, ""]) == "a [key] b https://proxy:80/x"


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a", "http://", "http://me:pw@a/v1", "http://a/v1?key=1"])
def test_addresses_that_are_refused(url):
    with pytest.raises(DataError, match="base URL") as caught:
        load_model("gpt", base_url=url)
    assert "pw" not in str(caught.value)


def test_a_missing_key_shows_at_once(wire):
    spec, _, name = WIRES[wire]
    with pytest.raises(ProviderError, match=name):
        load_model(spec)


# Names of models


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("cluade", "did you mean 'claude'"),
        ("nobody/model", "no model is called"),
        ("openai/", "no model is called"),
        ("", "no model is called"),
        ("replay:", "followed by a path"),
        ("replay:/nowhere.jsonl", "nowhere"),
        ("transformers:/nowhere", "config.json"),
    ],
)
def test_models_that_are_not_known(spec, told):
    with pytest.raises(DataError, match=told):
        load_model(spec)


def test_options_that_do_not_fit(tmp_path):
    with pytest.raises(DataError, match="no server, so base_url"):
        load_model("inktraj", base_url="http://127.0.0.1")
    with pytest.raises(DataError, match="coordinate frame"):
        load_model("claude", frame="pixels")
    with pytest.raises(DataError, match="timeout"):
        load_model("claude", timeout=0)
    with pytest.raises(DataError, match="JSON"):
        load_model("claude", extra={"a": object()})
    with pytest.raises(DataError, match="attempt"):
        RetryPolicy(attempts=0)


def test_our_own_recoverer_is_not_asked():
    own = load_model("inktraj")
    assert isinstance(own, VLM)
    assert (own.name, own.frame) == ("inktraj", "original-px")
    with pytest.raises(ProviderError, match=r"inktraj\.recover"):
        own.ask(question())
    json.dumps(own.describe())
    own.close()


def test_a_missing_package_says_how_to_install_it(wire, monkeypatch):
    package = WIRES[wire][1]
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"inktraj\[{wire}\]"):
        load_model(WIRES[wire][0], base_url="http://127.0.0.1:9")


def test_importing_loads_no_package_of_a_provider():
    code = "import inktraj.vlm, inktraj.vlm.batch, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not {"anthropic", "openai", "google", "torch", "transformers", "cv2", "numpy"} & set(loaded.split())


ROOT = Path(__file__).parent.parent

# Retries


NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
IN_7_S = format_datetime(NOW + timedelta(seconds=7), usegmt=True)
AT_NOW = format_datetime(NOW, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, None, None),
        ({"Retry-After": "3"}, None, 3.0),
        ({"retry-after": " 0.5 "}, None, 0.5),
        ({"retry-after": "0"}, None, 0.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, None, 0.25),
        ({"retry-after": IN_7_S, "date": AT_NOW}, None, 7.0),
        ({"retry-after": AT_NOW, "date": IN_7_S}, None, 0.0),
        ({"retry-after": "-1"}, None, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "inf"}, None, None),
        ({"retry-after": "soon"}, None, None),
        ({"retry-after": "Mon, 99 Foo"}, None, None),
        ({}, {"error": {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}}, 34.5),
        ({"retry-after": "2"}, {"error": {"details": [{"retryDelay": "34s"}]}}, 2.0),
        ({}, {"error": {"details": [{"retryDelay": "later"}]}}, None),
        ({}, {"error": "no"}, None),
        ({}, {"error": {"details": 4}}, None),
        ({}, [1], None),
    ],
)
def test_what_a_server_asks_to_wait_for(headers, body, seconds):
    assert retry_after(headers, body) == seconds


def test_a_date_without_the_servers_own_is_against_our_clock():
    told = retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)})
    assert told == pytest.approx(90, abs=3)


def test_which_statuses_may_pass():
    passing = [s for s in range(400, 600) if may_pass(s, {})]
    assert [s for s in passing if s < 500] == [408, 409, 425, 429]
    assert {500, 502, 503, 504, 529} <= set(passing)
    assert may_pass(400, {"X-Should-Retry": "true"})
    assert not may_pass(503, {"x-should-retry": "false"})


def failing(times: int, error: ProviderError):
    calls = []

    def ask() -> str:
        calls.append(time.monotonic())
        if len(calls) <= times:
            raise error
        return "done"

    return ask, calls


def test_waits_grow_are_drawn_and_can_be_repeated():
    def waits(seed: int) -> list[float]:
        heard: list[Retry] = []
        retrier = Retrier(RetryPolicy(attempts=6, first=0.001, longest=0.003, seed=seed), "m", heard.append)
        ask, calls = failing(5, ProviderError("no", retryable=True))
        assert retrier.call(ask, "word")[:2] == ("done", 6)
        assert [retry.attempt for retry in heard] == [1, 2, 3, 4, 5]
        assert {(retry.model, retry.sample) for retry in heard} == {("m", "word")}
        gaps = np.diff(calls)
        assert all(gap >= retry.wait for gap, retry in zip(gaps, heard, strict=True))
        return [retry.wait for retry in heard]

    first = waits(3)
    assert first == waits(3) != waits(4)
    assert all(0 <= wait <= most for wait, most in zip(first, [0.001, 0.002, 0.003, 0.003, 0.003], strict=True))
    spread = [Retrier(RetryPolicy(seed=s), "m")._wait(ProviderError("", retryable=True), 3) for s in range(300)]
    assert np.percentile(spread, [1, 50, 99]) == pytest.approx([0, 2, 4], abs=0.3)


def test_an_end_to_attempts():
    retrier = Retrier(RetryPolicy(attempts=3, first=0.001), "m")
    ask, calls = failing(9, ProviderError("busy", retryable=True, status=503))
    with pytest.raises(ProviderError, match=r"busy \(after 3 calls\)") as caught:
        retrier.call(ask)
    assert len(calls) == 3
    assert (caught.value.retryable, caught.value.status) == (True, 503)


def test_what_cannot_pass_is_not_tried_again():
    ask, calls = failing(9, ProviderError("wrong", status=400))
    with pytest.raises(ProviderError, match=r"^wrong$"):
        Retrier(QUICK, "m").call(ask)
    assert len(calls) == 1


def test_no_wait_goes_beyond_the_total():
    heard: list[Retry] = []
    retrier = Retrier(RetryPolicy(total=5), "m", heard.append)
    ask, calls = failing(9, ProviderError("busy", retryable=True, retry_after=3600))
    begun = time.monotonic()
    with pytest.raises(ProviderError, match="later than the limit of 5 s") as caught:
        retrier.call(ask)
    assert caught.value.retry_after == 3600
    with pytest.raises(ProviderError, match="asked to wait for another 3600 s"):
        retrier.call(ask)
    assert (len(calls), heard) == (1, [])
    assert time.monotonic() - begun < 1


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError):
        Retrier(QUICK, "m").call(lambda: 1 // 0)


def test_a_closed_gate_ends_all_waits():
    gate = Gate()
    gate.hold(60)
    with ThreadPoolExecutor(4) as pool:
        waits = [pool.submit(gate.pass_through) for _ in range(3)] + [pool.submit(gate.sleep, 60)]
        time.sleep(0.05)
        assert not any(wait.done() for wait in waits)
        gate.close()
        assert all(isinstance(wait.exception(timeout=2), ModelClosed) for wait in waits)
    with pytest.raises(ModelClosed):
        gate.pass_through()


def test_a_shorter_hold_does_not_shorten_a_longer_one():
    gate = Gate()
    gate.hold(60)
    gate.hold(1)
    assert 59 < gate.remaining() <= 60


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are sent to a thread")
def test_ctrl_c_ends_a_wait():
    retrier = Retrier(RetryPolicy(), "m")
    ask, _ = failing(9, ProviderError("busy", retryable=True, retry_after=30))
    main = threading.main_thread().ident
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        retrier.call(ask)
    assert time.monotonic() - begun < 5
    timer.join()


# The real SDKs against the fake server


def test_a_reply_and_what_was_sent(wire):
    with FakeProvider(reported_model="resolved-2026") as fake:
        model = connect(fake, wire)
        assert isinstance(model, VLM)
        reply = model.ask(question())
        model.close()
    assert (reply.text, reply.stop_reason, reply.model, reply.attempts) == (GOOD, "end", "resolved-2026", 1)
    assert (reply.input_tokens, reply.output_tokens) == (INPUT_TOKENS, len(GOOD) + THINKING_TOKENS)
    assert (reply.cached_tokens, reply.thinking_tokens) == (CACHED_TOKENS, THINKING_TOKENS)
    assert 0 < reply.seconds < 5
    (asked,) = fake.requests
    assert asked.provider == wire
    assert asked.model == model.model_id == TABLE.models[WIRES[wire][0]].id
    assert asked.system == "system prompt"
    assert asked.order == ("text", "image", "text")
    assert asked.text == "before\nwhere is it?"
    assert asked.images == ((40, 30),)
    sent = {
        "anthropic": {"max_tokens": 500},
        "openai": {"max_completion_tokens": 500},
        "google": {"generationConfig": {"maxOutputTokens": 500}},
    }
    assert asked.params == sent[wire]  # and no temperature


def test_temperature_and_seed_only_when_asked_for(wire):
    with FakeProvider() as fake:
        model = connect(fake, wire, extra={"top_k": 3} if wire != "google" else {"generationConfig": {"topK": 3}})
        model.ask(question(temperature=0.25, seed=7))
        model.close()
    (asked,) = fake.requests
    sent = {
        "anthropic": {"max_tokens": 500, "temperature": 0.25, "top_k": 3},
        "openai": {"max_completion_tokens": 500, "temperature": 0.25, "seed": 7, "top_k": 3},
        "google": {"generationConfig": {"maxOutputTokens": 500, "temperature": 0.25, "seed": 7, "topK": 3}},
    }
    assert asked.params == sent[wire]
    assert json.loads(json.dumps(model.describe()))["model"] == model.model_id


def test_no_system_prompt_is_sent_where_there_is_none(wire):
    with FakeProvider() as fake:
        model = connect(fake, wire)
        model.ask(Request("", (Text("hello"),), 10))
        model.close()
    assert fake.requests[0].system == ""
    assert fake.requests[0].order == ("text",)


@pytest.mark.parametrize("fault", [f for f in TRANSPORT if f not in ("hang", "429-date")] + ["408", "409", "429-ms"])
def test_faults_that_pass_are_tried_again(wire, fault):
    heard: list[Retry] = []
    with FakeProvider(faults={"*": [fault, fault]}, retry_after=0.1) as fake:
        model = connect(fake, wire, on_retry=heard.append)
        reply = model.ask(question(sample="word-7"))
        model.close()
    assert (reply.text, reply.attempts) == (GOOD, 3)
    assert len(fake.requests) == 3  # the SDK has not retried by itself
    assert [(retry.attempt, retry.sample) for retry in heard] == [(1, "word-7"), (2, "word-7")]
    if fault in ("429", "429-ms"):
        assert all(retry.error.retry_after == pytest.approx(0.1) for retry in heard)
        gaps = np.diff([asked.time for asked in fake.requests])
        assert (gaps >= 0.1).all()
    else:
        assert all(retry.error.retry_after is None for retry in heard)


def test_a_date_is_waited_for(wire):
    with FakeProvider(faults={"*": ["429-date"]}, retry_after=0.2) as fake:
        heard: list[Retry] = []
        model = connect(fake, wire, on_retry=heard.append)
        model.ask(question())
        model.close()
    assert heard[0].error.retry_after in (1.0, 2.0)  # dates have whole seconds
    assert np.diff([asked.time for asked in fake.requests])[0] >= heard[0].error.retry_after


def test_google_names_the_wait_in_the_body():
    if missing("google.genai"):
        pytest.skip("google.genai is not installed")
    with FakeProvider(faults={"*": ["429-info"]}, retry_after=0.3) as fake:
        model = connect(fake, "google")
        model.ask(question())
        model.close()
    assert np.diff([asked.time for asked in fake.requests])[0] >= 0.3


def test_a_hanging_server(wire):
    with FakeProvider(faults={"*": ["hang"]}, hang=30) as fake:
        model = connect(fake, wire, timeout=0.3)
        begun = time.monotonic()
        assert model.ask(question()).attempts == 2
        assert 0.3 <= time.monotonic() - begun < 5
        model.close()


@pytest.mark.parametrize("status", ["400", "401", "403", "404", "413", "422"])
def test_faults_that_do_not_pass_are_not_tried_again(wire, status):
    with FakeProvider(faults={"*": [status] * 9}) as fake:
        model = connect(fake, wire)
        with pytest.raises(ProviderError) as caught:
            model.ask(question())
        model.close()
    assert (caught.value.status, caught.value.retryable) == (int(status), False)
    assert len(fake.requests) == 1
    if status == "401":
        assert WIRES[wire][2] in str(caught.value)


def test_an_empty_account_is_not_waited_for():
    if missing("openai"):
        pytest.skip("openai is not installed")
    with FakeProvider(faults={"*": ["429-spent"] * 9}) as fake:
        model = connect(fake, "openai")
        with pytest.raises(ProviderError, match="429"):
            model.ask(question())
        model.close()
    assert len(fake.requests) == 1


@pytest.mark.parametrize("fault", ["malformed", "html", "wrong", "503"])
def test_what_never_passes_is_an_error_and_no_answer(wire, fault):
    with FakeProvider(faults={"*": [fault] * 9}) as fake:
        model = connect(fake, wire)
        with pytest.raises(ProviderError, match="after 4 calls") as caught:
            model.ask(question())
        model.close()
    assert caught.value.retryable
    assert len(fake.requests) == QUICK.attempts


def test_nobody_there(wire):
    with FakeProvider() as fake:
        url = fake.url(wire)
    model = load_model(WIRES[wire][0], base_url=url, policy=QUICK)
    with pytest.raises(ProviderError, match=r"no answer from http://127\.0\.0\.1.* \(after 4 calls\)"):
        model.ask(question())
    model.close()


@pytest.mark.parametrize(
    ("fault", "stop", "text"),
    [
        ("empty", "end", ""),
        ("length", "length", GOOD[:-4]),
        ("refusal", "refusal", "I cannot help with that."),
        ("blocked", "refusal", ""),
    ],
)
def test_answers_that_are_no_errors(wire, fault, stop, text):
    with FakeProvider(faults={"*": [fault]}) as fake:
        model = connect(fake, wire)
        reply = model.ask(question())
        model.close()
    assert (reply.text, reply.stop_reason, reply.attempts) == (text, stop, 1)
    assert reply.raw_stop
    assert reply.input_tokens == INPUT_TOKENS


def test_keys_stay_in_the_environment(wire, monkeypatch):
    name = WIRES[wire][2]
    monkeypatch.setenv(name, KEY)
    told: list[str] = []
    with FakeProvider(faults={"*": ["500", "429", "malformed", "cut"]}, retry_after=0.01) as fake:
        model = connect(fake, wire, on_retry=lambda retry: told.append(f"{retry!r} {retry.error!s}"))
        with pytest.raises(ProviderError) as caught:
            model.ask(question())
        told += [repr(model), repr(caught.value), str(caught.value), json.dumps(model.describe())]
        with_401 = FakeProvider(faults={"*": ["401"]})
        with with_401, pytest.raises(ProviderError) as refused:
            connect(with_401, wire).ask(question())
        model.close()
    assert any(KEY in value for value in fake.requests[0].headers.values())  # it was sent, and quoted by the server
    assert "[key]" in str(refused.value)
    chain = [caught.value, refused.value]
    while chain:
        err = chain.pop()
        chain += [e for e in (err.__cause__, err.__context__) if e is not None]
        told += [str(err), repr(err), repr(err.__dict__)]
    assert not any(KEY in text for text in told)
    assert any("status 500" in text for text in told)


def test_no_key_is_invented_for_a_server_elsewhere(wire):
    with pytest.raises(ProviderError, match=r"http://192\.0\.2\.1"):
        load_model(WIRES[wire][0], base_url="http://192.0.2.1/v1")


def test_many_threads_and_many_faults(wire):
    words = [f"w{i}" for i in range(60)]
    policy = RetryPolicy(attempts=6, first=0.01, seed=2)
    kinds = ("429", "500", "529", "cut", "malformed", "html", "reset", "wrong")

    def answer(asked):
        return f"({asked.text.split()[-1][1:]}, 0, 1)"

    with FakeProvider(answer, rate=0.25, kinds=kinds, seed=5, retry_after=0.05) as fake:
        model = connect(fake, wire, policy=policy)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda word: model.ask(question(word, sample=word)), words))
        model.close()
    assert [reply.text for reply in replies] == [f"({i}, 0, 1)" for i in range(60)]
    assert len(fake.served()) == 60
    assert len(fake.requests) == sum(reply.attempts for reply in replies) > 65
    assert max(asked.attempt for asked in fake.requests) <= 4
    assert fake.peak <= 8


def test_one_429_holds_all_threads(wire):
    with FakeProvider(identify=lambda _, text: text.split()[-1], faults={"w9": ["429"]}, retry_after=0.6) as fake:
        fake.pause = 0.01
        model = connect(fake, wire)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: model.ask(question(f"w{i}")), range(40)))
        model.close()
    (refused,) = fake.served("429")
    late = [asked.time - refused.time for asked in fake.requests if asked.time > refused.time + 0.08]
    assert len(late) >= 25
    assert min(late) >= 0.55


def test_closing_ends_waits(wire):
    with FakeProvider(faults={"*": ["429"] * 9}, retry_after=60) as fake:
        model = connect(fake, wire, policy=RetryPolicy())
        with ThreadPoolExecutor(3) as pool:
            asks = [pool.submit(model.ask, question(f"w{i}")) for i in range(3)]
            while not fake.requests:
                time.sleep(0.01)
            time.sleep(0.1)
            model.close()
            assert all(isinstance(ask.exception(timeout=5), ModelClosed) for ask in asks)
        with pytest.raises(ModelClosed):
            model.ask(question())


def test_compatible_servers(monkeypatch):
    if missing("openai"):
        pytest.skip("openai is not installed")
    monkeypatch.setenv("MOONSHOT_API_KEY", KEY)
    with FakeProvider() as fake:
        for spec, options in [
            ("kimi", {}),
            ("openai/Qwen/Qwen2.5-VL-7B-Instruct", {"max_tokens_param": "max_tokens"}),
            ("local/my-model", {"frame": "norm1", "image_detail": "low", "key_env": "MOONSHOT_API_KEY"}),
        ]:
            model = load_model(spec, base_url=fake.url("openai"), policy=QUICK, **options)
            model.ask(question())
            model.close()
            assert fake.requests[-1].params == {"max_tokens": 500}
            assert fake.requests[-1].headers["authorization"].startswith("Bearer ")
    kimi, qwen, local = fake.requests
    assert KEY in kimi.headers["authorization"]
    assert KEY not in qwen.headers["authorization"]
    assert KEY in local.headers["authorization"]
    assert qwen.model == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert (model.frame, model.limits.rule, model.prices) == ("norm1", "none", ())


def test_a_refused_parameter_gets_a_hint():
    if missing("openai"):
        pytest.skip("openai is not installed")
    from inktraj.vlm.hosted import _HINTS

    with FakeProvider(faults={"*": ["400"]}) as fake:
        model = connect(fake, "openai")
        error = SimpleNamespace(status_code=400, body={"error": {"message": "unknown max_completion_tokens"}})
        assert _HINTS["max_completion_tokens"] in str(model._told(error))
        model.close()


# Batches


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_batches(name):
    if missing(name):
        pytest.skip(f"{name} is not installed")
    requests = {f"id-{i}": question(f"w{i}") for i in range(4)}

    def answer(asked):
        return f"({asked.text[-1]}, 0, 1)"

    with FakeProvider(answer, identify=lambda _, text: text.split()[-1], faults={"w2": ["500"]}) as fake:
        model = connect(fake, name)
        batch_id = submit_batch(model, requests)
        assert collect_batch(model, batch_id).ended is False
        batch = collect_batch(model, batch_id, [*requests, "id-lost"])
        assert batch.ended
        assert batch.replies.keys() == {*requests, "id-lost"}
        for i in (0, 1, 3):
            reply = batch.replies[f"id-{i}"]
            assert (reply.text, reply.stop_reason, reply.input_tokens) == (f"({i}, 0, 1)", "end", INPUT_TOKENS)
        failed = batch.replies["id-2"]
        assert isinstance(failed, ProviderError)
        assert failed.retryable
        assert "overloaded" in str(failed)
        assert "no answer" in str(batch.replies["id-lost"])
        with pytest.raises(ProviderError, match="404"):
            collect_batch(model, "batch_99")
        model.close()


def test_what_is_no_batch():
    with pytest.raises(DataError, match="at least one"):
        submit_batch(load_model("inktraj"), {})
    with pytest.raises(DataError, match="1 to 64"):
        submit_batch(load_model("inktraj"), {"a b": question()})
    with pytest.raises(DataError, match="no batches"):
        submit_batch(load_model("inktraj"), {"a": question()})


def test_a_batch_is_not_started_twice(wire):
    with FakeProvider() as fake:
        model = connect(fake, wire)
        calls = []

        def lost() -> None:
            calls.append(1)
            raise ConnectionResetError("gone")

        with pytest.raises(ProviderError, match="may have been carried out"):
            model.retried(lost, unanswered=False)
        assert len(calls) == 1
        with pytest.raises(ProviderError, match="after 4 calls"):
            model.retried(lost)
        model.close()


# Recorded replies


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_replay(tmp_path):
    asked = Request("s", (Text("a"),), 10)
    path = write(
        tmp_path / "replies.jsonl",
        {"sample": "w1", "text": "one", "stop_reason": "length", "model": "claude-opus-5-5", "output_tokens": 3},
        {"key": "k2", "sample": "w2", "text": "two", "score": 0.3},
        {"key": "k3", "sample": "w2", "text": "three"},
        {"id": asked.digest(), "text": "by content"},
        {"key": "k4", "error": "timed out"},
    )
    with path.open("a") as file:
        file.write('{"sample": "w5", "te')
    model = load_model(f"replay:{path}")
    assert isinstance(model, VLM)
    assert (model.model_id, model.frame, model.limits) == ("claude-opus-5-5", "sent-px", TABLE.limits["claude"])
    reply = model.ask(replace(asked, sample="w1"))
    assert reply == Reply("one", "length", None, 3, "claude-opus-5-5")
    assert model.ask(replace(asked, key="k2", sample="w2")).text == "two"
    assert model.ask(replace(asked, key="k3", sample="w2")).text == "three"
    assert model.ask(asked).text == "by content"
    with pytest.raises(ProviderError, match="several replies"):
        model.ask(replace(asked, sample="w2"))
    for name in ("k4", "w5", "w9"):
        with pytest.raises(ProviderError, match=f"no reply to '{name}'"):
            model.ask(replace(asked, sample=name, max_tokens=11))
    assert model.describe()["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_model(f"replay:{path}", frame="norm1").frame == "norm1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no replies"),
        ('{"sample": "a", "error": "x"}\n', "no replies"),
        ("{nonsense}\n{}\n", "line 1: not JSON"),
        ('{"sample": "a", "te', "line 1: not JSON"),
        ("[1]\n", "object is expected"),
        ('{"text": "a"}\n', "without a name"),
        ('{"sample": 3, "text": "a"}\n', "without a name"),
        ('{"sample": "a"}\n', "text is None"),
        ('{"sample": "a", "text": null}\n', "text is None"),
        ('{"sample": "a", "text": "t", "stop_reason": "stop"}\n', "stop reason"),
        ('{"sample": "a", "text": "t", "input_tokens": 1.5}\n', "input_tokens"),
        ('{"sample": "a", "text": "t", "seconds": "1"}\n', "seconds"),
        ('{"key": "a", "text": "t"}\n{"key": "a", "text": "u"}\n', "not the same"),
    ],
)
def test_recordings_that_are_refused(text, told, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=told):
        Replay(path)


def test_a_large_recording_is_read_quickly(tmp_path):
    path = write(tmp_path / "r.jsonl", *({"sample": f"w{i}", "text": "(1, 2, 0)" * 50} for i in range(19_000)))
    begun = time.perf_counter()
    model = Replay(path)
    asked = question()
    assert all(model.ask(replace(asked, sample=f"w{i}")).text for i in range(19_000))
    assert time.perf_counter() - begun < 5


# Local models


def test_a_folder_that_is_no_model(tmp_path):
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(DataError, match="object is expected"):
        load_model(f"transformers:{tmp_path}")
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_vl"}')
    if missing("transformers"):
        with pytest.raises((DataError, MissingDependency), match="transformers"):
            load_model(f"transformers:{tmp_path}")
    else:
        with pytest.raises(DataError, match="cannot be loaded"):
            load_model(f"transformers:{tmp_path}")

"""What is known about models: the size at which they see an image, the table of models, and what they cost."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import get_args

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inktraj.errors import DataError, ParseError, RunError
from inktraj.parse import FRAME_NAMES
from inktraj.vlm import Budget, ImageLimits, Price, Reply, cost_of, fit, load_table, make_picture
from inktraj.vlm.cost import price_on
from inktraj.vlm.table import Frame

with pytest.MonkeyPatch.context() as patch:
    patch.delenv("INKTRAJ_MODELS", raising=False)  # the shipped one is tested, not the machine's own
    TABLE = load_table()

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
        ("molmo2", (2480, 3508), (644, 910)),
        ("molmo2", (2000, 200), (2000, 200)),
        ("molmo2", (5000, 200), (2240, 200)),
        ("molmo2", (2000, 80), (378, 80)),
        ("none", (9999, 3), (9999, 3)),
    ],
)
def test_sizes_as_seen(limits, size, seen):
    assert fit(*size, TABLE.limits[limits]) == seen


SIDES = st.integers(1, 9000)


@given(SIDES, SIDES, st.sampled_from(sorted(set(TABLE.limits) - {"qwen2-vl", "qwen3-vl", "molmo2"})))
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


@given(SIDES, SIDES)
def test_a_size_fitted_to_a_canvas_stays(width, height):
    limits = TABLE.limits["molmo2"]
    wide, high = fit(width, height, limits)
    assert fit(wide, high, limits) == (wide, high)
    assert wide <= width
    assert high <= height


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
    assert min(wide, high) == limits.factor or fit(wide, high, limits) == (wide, high)


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
        ("allenai/Molmo2-8B", "norm1000", "molmo2"),
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


def test_a_model_may_have_any_frame_that_answers_are_read_in():
    assert set(get_args(Frame)) == set(FRAME_NAMES)


@pytest.mark.parametrize("broken", [{"content": {"a": 1}}, {"content": 7}, {"finish_reason": ["stop"]}])
def test_a_completion_of_other_types_is_malformed(broken):
    from inktraj.vlm.hosted import Malformed
    from inktraj.vlm.openai import read_completion

    message = SimpleNamespace(content=broken.get("content", "(1,2,1)"), refusal=None)
    choice = SimpleNamespace(message=message, finish_reason=broken.get("finish_reason", "stop"))
    with pytest.raises(Malformed, match="expected text"):
        read_completion(SimpleNamespace(choices=[choice], model="m", usage=None))

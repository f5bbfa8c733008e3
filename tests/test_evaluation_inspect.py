"""The task and scorer for inspect_ai, run with its mock model; nothing is asked of a network."""

import gc
import importlib.metadata
import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: pip install inktraj[inspect]")

from inspect_ai import eval as inspect_eval
from inspect_ai import score as inspect_score
from inspect_ai.log import read_eval_log
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, get_model, modelapi
from typer.testing import CliRunner

from inktraj.cli import app
from inktraj.datasets import load_dataset
from inktraj.evaluation import Plan, Prompt, evaluate_model
from inktraj.evaluation.inspect_task import COUNTED, FIGURES, trajectory, trajectory_scorer
from inktraj.evaluation.prompts import SYSTEM
from inktraj.vlm import Picture, Reply

pytestmark = pytest.mark.filterwarnings("ignore")  # inspect_ai's own


@pytest.fixture(autouse=True)
def _streams_are_let_go():
    """Let go what inspect_ai leaves open now, where its warnings are its own, and not within another module's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="module")
def demo():
    return load_dataset("demo")


def replies(demo):
    """Answers of several kinds by the word that is asked for; ink that is off by some pixels for most."""
    rng = np.random.default_rng(0)
    out = {}
    for k, sample in enumerate(demo):
        points = rng.integers(0, 400, (12, 2)).tolist()
        out[sample.text] = [
            "[" + ", ".join(f"({x}, {y}, {int(i % 6 == 0)})" for i, (x, y) in enumerate(points)) + "]",
            "",
            "I'm sorry, but I can't help with that.",
            "The word is on the page.",
            "[(1, 2, 1), (3,",
        ][k % 7 if k % 7 < 5 else 0]
    return out


class Recorded:
    """The same replies for `inktraj eval`, as a model."""

    name = model_id = "mock"
    frame = "sent-px"
    prices = ()

    def __init__(self, written):
        from inktraj.vlm import ImageLimits

        self.written, self.limits, self.requests = written, ImageLimits(), {}

    def describe(self):
        return {"provider": "mock", "model": "mock"}

    def ask(self, request):
        self.requests[request.sample] = request
        text = self.written[word_of(request.parts[-1].text)]
        return Reply(text, "length" if text.endswith(",") else "end", 1, 1, "mock")

    def close(self):
        pass


def word_of(text):
    return json.loads(text[text.index('"') : text.index('"', text.index('"') + 1) + 1])


@modelapi(name="writing")
class Writing(ModelAPI):
    """A model of inspect's that gives those replies; its mock model gives them in the order of requests only."""

    def __init__(self, model_name, base_url=None, api_key=None, config=None, *, written):
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        self.written, self.seen = written, []

    async def generate(self, input, tools, tool_choice, config):
        self.seen.append((input, config))
        text = self.written[word_of(input[-1].content[-1].text)]
        return output_of(text, "max_tokens" if text.endswith(",") else "stop")


def writing(written):
    return get_model("writing/mock", memoize=False, written=written)


def output_of(text, stop):
    output = ModelOutput.from_content("mock", text, stop_reason=stop)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else newer versions fetch a tokenizer
    return output


def run(task, model, tmp_path, **options):
    (log,) = inspect_eval(task, model=model, log_dir=str(tmp_path), display="none", **options)
    assert log.status == "success", log.error
    return log


def figures(log):
    return {
        score.name: {m.name.split("/")[-1]: m.value for m in score.metrics.values()} for score in log.results.scores
    }


@pytest.fixture(scope="module")
def both(demo, tmp_path_factory):
    """The same replies through inspect and through `inktraj eval`."""
    written = replies(demo)
    asked = writing(written)
    folder = tmp_path_factory.mktemp("both")
    log = run(trajectory(input="crop", limit=40, seed=3), asked, folder / "logs")
    model = Recorded(written)
    plan = Plan(prompt=Prompt(input="crop"), limit=40, seed=3, placed=False)
    return log, evaluate_model(model, demo, folder / "run", plan).rows[0], asked.api.seen, model


def test_the_figures_are_those_of_eval(both):
    log, row, _, _ = both
    found = figures(log)
    assert {sample.id for sample in log.samples} == {outcome.id for outcome in row.outcomes}
    for kind in COUNTED:
        assert found[kind]["mean"] == pytest.approx(row.kinds[kind] / 40)
    assert len([kind for kind in COUNTED if row.kinds[kind]]) == 5
    for name in FIGURES:
        figure = row.scores.figures[name]
        assert found[name]["mean"] == pytest.approx(figure.all.mean)
        assert found[f"{name}_ok"]["mean"] == pytest.approx(figure.valid.mean)
        assert found[name]["page_stderr"] > 0 or found[name]["mean"] == 0
    assert found["out_of_range"]["mean"] == pytest.approx(row.out_of_range)


def test_the_requests_are_those_of_eval(both):
    log, _, seen, model = both
    asked = {sample.id: sample for sample in log.samples}
    by_text = {m[-1].content[-1].text: m for m, _ in seen}
    for id, request in model.requests.items():
        system, user = by_text[request.parts[-1].text]
        assert system.text == SYSTEM
        for part, content in zip(request.parts, user.content, strict=True):
            if isinstance(part, Picture):
                assert content.image.startswith("data:image/png;base64,")
            else:
                assert content.text == part.text
        assert asked[id].target in request.parts[-1].text
    assert {config.max_tokens for _, config in seen} == {8192}


def test_what_a_score_tells(both):
    log, row, _, _ = both
    kinds = {outcome.id: outcome for outcome in row.outcomes}
    for sample in log.samples:
        score = sample.scores["trajectory"]
        outcome = kinds[sample.id]
        assert score.explanation.startswith(outcome.kind)
        assert score.value[outcome.kind] == 1.0
        assert math.isnan(score.value["dtw_ok"]) == (outcome.kind != "ok")
        assert math.isfinite(score.value["dtw"])


def test_a_log_can_be_scored_again(both):
    log, _, _, _ = both
    again = inspect_score(read_eval_log(log.location), trajectory_scorer(), action="overwrite")
    old, new = figures(log), figures(again)
    for name in FIGURES:
        assert new[name]["mean"] == pytest.approx(old[name]["mean"])


def test_no_answer_of_use_is_no_perfect_one(demo, tmp_path):
    written = dict.fromkeys([sample.text for sample in demo], "no")
    found = figures(run(trajectory(input="crop"), writing(written), tmp_path, limit=2))
    assert found["invalid"]["mean"] == 1.0
    assert found["dtw"]["mean"] > 0.3
    assert math.isnan(found["dtw_ok"]["mean"])


def test_a_filtered_answer_is_a_refusal(demo, tmp_path):
    output = output_of("(1, 2", "content_filter")
    model = get_model("mockllm/model", custom_outputs=[output], memoize=False)
    found = figures(run(trajectory(input="crop"), model, tmp_path, limit=1))
    assert found["refused"]["mean"] == 1.0


def test_frames_are_those_of_the_table():
    from inktraj.evaluation.inspect_task import _Elsewhere

    for name, frame in (
        ("google/gemini-3.8-flash", "norm1000-yx"),
        ("openrouter/anthropic/claude-opus-5-5", "sent-px"),
        ("vllm/Qwen/Qwen3-VL-8B-Instruct", "norm1000"),
        ("mockllm/model", "sent-px"),
    ):
        assert _Elsewhere(name).frame == frame
    assert _Elsewhere("anthropic/claude-opus-5-5").limits.long_edge == 2576


def test_inspect_finds_the_task_by_its_name(tmp_path):
    points = importlib.metadata.entry_points(group="inspect_ai")
    if "inktraj" not in {point.name for point in points}:
        pytest.skip("this copy of inktraj is not installed, so it has no entry point")
    code = (
        "from inspect_ai._util.registry import registry_lookup as find\n"
        "assert all(find(kind, 'inktraj/trajectory') for kind in ('task', 'scorer'))"
    )
    # Elsewhere: in a checkout, Python would take its folder for the package, which inspect does not know as installed.
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, cwd=tmp_path)


def test_the_command_does_without():
    assert CliRunner().invoke(app, ["eval", "--help"]).exit_code == 0
    code = (
        "import inktraj.cli, inktraj.evaluation, sys; assert not any(m.startswith('inspect_ai') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

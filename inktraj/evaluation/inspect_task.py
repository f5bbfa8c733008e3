"""The same task and scores for inspect_ai, which finds this module through its entry point.

    inspect eval inktraj/trajectory --model anthropic/claude-opus-5-5 -T data=demo -T input=crop

Prompts, images, coordinate frames, reading of answers and figures are those of `inktraj eval`; asking, retrying,
logging and summing up are inspect's. See docs/inspect.md. Nothing of the package imports this module.
"""

from __future__ import annotations

import base64
import math
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import anyio.to_thread
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from inktraj.datasets import Sample, load_dataset
from inktraj.errors import DataError
from inktraj.evaluation.examples import Examples
from inktraj.evaluation.journal import Answer
from inktraj.evaluation.outcomes import outcomes_of
from inktraj.evaluation.prompts import VERSION, Form, Input, Prompt, task_text
from inktraj.evaluation.results import Kind, Outcome
from inktraj.evaluation.run import MAX_TOKENS, Plan, choose_samples
from inktraj.evaluation.tasks import Asking
from inktraj.evaluation.tasks import Task as Question
from inktraj.evaluation.views import Place
from inktraj.metrics import Evaluation
from inktraj.parse import CoordinateFrame
from inktraj.vlm import Part, Price, ProviderError, Reply, Request, StopReason, Text, load_table

FIGURES = (
    "dtw",
    "chamfer",
    "tolerant_dtw",
    "order_agreement",
    "direction_agreement",
    "start_accuracy",
    "ink_f1",
)
"""Of `inktraj.metrics.TrajectoryScores`; a score's value holds them twice, see `trajectory_scorer`."""

COUNTED: tuple[Kind, ...] = ("ok", "invalid", "refused", "empty", "truncated")
"""What can become of an answer to a request for one word; a score's value holds 1 for that which did."""

ASKED = "inktraj_asked"
"""Where a sample's metadata keep what is needed to read its answer, also when a log is scored again."""

_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
}
_EVALUATION = Evaluation(pen_net=False)


@task(name="trajectory")
def trajectory(
    data: str = "demo",
    split: str | None = None,
    input: Input = "page",
    form: Form = "tuples",
    frame: str = "native",
    example: bool = True,
    limit: int | None = None,
    seed: int = 0,
) -> Task:
    """Find a word on a page and write the points along which the pen moved.

    Parameters
    ----------
    data, split
        A data set's name or folder, and which part of it.
    input
        ``"page"``: the whole page is shown; ``"crop"``: the word, cut out and enlarged.
    form
        How points are to be written: ``"tuples"`` or ``"tokens"``.
    frame
        The coordinate frame that is asked for: ``"native"`` (the one that the table of models names), ``"shared"``, or
        a frame's name.
    example
        Whether an example is shown.
    limit
        Samples at most, those that `inktraj eval` chooses; inspect's own limit takes the first.
    seed
        Of the choice of samples and of the example.

    Raises
    ------
    DataError
        The data set or an option cannot be used.
    """
    plan = Plan(prompt=Prompt(input, "word", form, example), frames=(frame,), limit=limit, seed=seed)
    samples = [
        InspectSample(
            id=sample.id,
            input=task_text(plan.prompt, [(sample.text, sample.occurrence, sample.occurrences)]),
            target=sample.text,
            metadata={"page": sample.page_id, "writer": sample.writer, "occurrence": sample.occurrence},
        )
        for sample in choose_samples(load_dataset(data, split=split), plan)
    ]
    return Task(
        dataset=MemoryDataset(samples, name=data),
        solver=ask_for_strokes(data, split, input, form, frame, example, seed),
        scorer=trajectory_scorer(data, split),
        config=GenerateConfig(max_tokens=MAX_TOKENS),
        version=VERSION,
        metadata=dict(plan.prompt.fields()),
    )


@solver
def ask_for_strokes(
    data: str = "demo",
    split: str | None = None,
    input: Input = "page",
    form: Form = "tuples",
    frame: str = "native",
    example: bool = True,
    seed: int = 0,
) -> Solver:
    """Show the example and the sample's image, as the model sees it, and ask; parameters as for `trajectory`."""
    prompt = Prompt(input, "word", form, example)
    examples = Examples.choose(load_dataset(data, split=split), seed) if example else None
    asked_by: dict[str, Asking] = {}
    lock = threading.Lock()

    def ask(name: str, id: str) -> tuple[Request, dict[str, Any]]:
        with lock:
            if name not in asked_by:
                asked_by[name] = Asking(_Elsewhere(name), prompt, examples, MAX_TOKENS)
        asking = asked_by[name]
        named = {"native": asking.model.frame, "shared": "sent-px"}.get(frame, frame)
        question = Question((_samples(data, split)[id],), CoordinateFrame(named))  # type: ignore[arg-type]
        asked = asking(question)
        place = asked.place
        return asked.request, {
            "place": [place.sent, place.original, place.corner],
            "frame": question.frame.name,
            "echo": asking.echo(question),
        }

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        request, asked = await anyio.to_thread.run_sync(ask, str(state.model), str(state.sample_id))
        state.metadata[ASKED] = asked
        state.messages = [
            ChatMessageSystem(content=request.system),
            ChatMessageUser(content=[_content(part) for part in request.parts]),
        ]
        return await generate(state)

    return solve


@metric
def mean() -> Metric:
    """Mean of those with a value; NaN where there are none, as 0 would be a perfect distance."""

    def compute(scores: list[SampleScore]) -> float:
        known = _valued(scores)
        return math.fsum(score.score.as_float() for score in known) / len(known) if known else math.nan

    return compute


@metric
def page_stderr() -> Metric:
    """Standard error of the mean, clustered by page; NaN for fewer than two pages."""
    clustered: Any = stderr(cluster="page")

    def compute(scores: list[SampleScore]) -> float:
        known = _valued(scores)
        pages = {(score.sample_metadata or {}).get("page") for score in known}
        return float(clustered(known)) if len(pages) > 1 else math.nan

    return compute


def _valued(scores: list[SampleScore]) -> list[SampleScore]:
    """Newer versions of inspect leave out scores without value themselves."""
    return [score for score in scores if not math.isnan(score.score.as_float())]


def _metrics(names: Sequence[str]) -> dict[str, list[Metric]]:
    return {name: [mean(), page_stderr()] for name in names}


@scorer(metrics=_metrics([*FIGURES, *(f"{name}_ok" for name in FIGURES), *COUNTED, "out_of_range"]), name="trajectory")
def trajectory_scorer(data: str = "demo", split: str | None = None) -> Scorer:
    """Score answers by the paper's rule, and apart from it those from which ink could be read.

    An answer from which no ink can be read has the declared worst, but in figures whose names end in ``_ok`` and in
    ``out_of_range`` it has no value, and is in no mean. Parameters as for `trajectory`.
    """

    async def score(state: TaskState, target: Target) -> Score:
        return await anyio.to_thread.run_sync(judge, state)

    def judge(state: TaskState) -> Score:
        sample = _samples(data, split)[str(state.sample_id)]
        outcome = _outcome(state, sample)
        try:
            found = _EVALUATION.score(outcome.ink, sample.ink, "valid" if outcome.kind == "ok" else "invalid")
        except DataError as err:  # of the reference: such a word is in no mean, as with `inktraj eval`
            return Score(value=math.nan, explanation=f"this word cannot be scored: {err}")
        # Ink that is absurdly large is found out by its scoring.
        ok = found.status == "valid"
        kind: Kind = outcome.kind if ok or outcome.kind != "ok" else "invalid"
        value = {name: _number(getattr(found, name)) for name in FIGURES}
        value |= {f"{name}_ok": _number(getattr(found, name) if ok else None) for name in FIGURES}
        value |= {name: float(kind == name) for name in COUNTED}
        value["out_of_range"] = _number(outcome.out_of_range if ok else None)
        return Score(
            value=value,
            answer=f"{found.pred_strokes} strokes; the reference has {found.ref_strokes}",
            explanation=": ".join(filter(None, [kind, outcome.reason or found.reason])),
            metadata={"dialect": outcome.dialect, "frame": outcome.frame, "starts_known": outcome.starts_known},
        )

    return score


def _number(value: float | None) -> float:
    """NaN, which is in no mean, for a figure without value."""
    return math.nan if value is None else float(value)


def _outcome(state: TaskState, sample: Sample) -> Outcome:
    asked = state.metadata.get(ASKED)
    if asked is None:
        raise DataError(
            f"the sample {sample.id} was not asked by inktraj's solver ask_for_strokes, so it cannot be read"
        )
    sent, original, corner = ((int(a), int(b)) for a, b in asked["place"])
    output = state.output
    usage = output.usage
    reply = Reply(
        output.completion,
        _STOPS.get(output.stop_reason, "other") if output.choices else "other",
        usage.input_tokens if usage else None,
        usage.output_tokens if usage else None,
        output.model,
        raw_stop=str(output.stop_reason) if output.choices else "",
    )
    answer = Answer(
        "", (sample.id,), asked["frame"], Place(sent, original, corner), reply, datetime.now(UTC).isoformat()
    )
    (outcome,) = outcomes_of(answer, [sample], Prompt(), CoordinateFrame(asked["frame"]), asked["echo"])
    return outcome


def _content(part: Part) -> Content:
    if isinstance(part, Text):
        return ContentText(text=part.text)
    return ContentImage(image=f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}")


@lru_cache(maxsize=4)
def _samples(data: str, split: str | None) -> dict[str, Sample]:
    return {sample.id: sample for sample in load_dataset(data, split=split)}


class _Elsewhere:
    """A model that inspect asks: what must be known of it to make a request.

    Parameters
    ----------
    name
        As inspect calls it: provider and id.
    """

    prices: tuple[Price, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.model_id = name.rpartition("/")[2]
        table = load_table()
        family = table.family(self.model_id)
        entry = next((entry for entry in table.models.values() if entry.id == self.model_id), None)
        self.frame: str = (entry and entry.frame) or family.frame
        self.limits = table.limits[(entry and entry.limits) or family.limits]

    def describe(self) -> dict[str, str]:
        return {"provider": "inspect", "model": self.name}

    def ask(self, request: Request) -> Reply:
        raise ProviderError("inspect asks this model")

    def close(self) -> None:
        """Do nothing."""

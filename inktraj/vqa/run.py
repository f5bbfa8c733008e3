"""Model × benchmark → a run folder: replies, scores, tables and report.

A run folder holds

* ``settings.json``: what decides the answers; a folder is never used for others;
* ``samples.jsonl``: every reply as it came; ``errors.jsonl``: what could not be asked in the last run;
  ``batches.jsonl``: the provider's batches, where they are used;
* what `inktraj.vqa.results.write_outcome` writes, made anew at the end of every run from all replies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inktraj.errors import DataError, RunError
from inktraj.evaluation.asking import Tally
from inktraj.evaluation.folder import SETTINGS, RunFolder
from inktraj.evaluation.journal import Answer, Journal, read_answers, read_errors
from inktraj.evaluation.plan import AskingPlan, ask, called, check_least, costs_of, drawn, opened
from inktraj.vlm import VLM, Reply
from inktraj.vlm.batch import batch_limits
from inktraj.vqa.asking import Asking, Prompt, Shots, Task
from inktraj.vqa.benchmark import Benchmark, Question, Questions, Result, Scored, Status
from inktraj.vqa.registry import load_benchmark
from inktraj.vqa.results import FORMAT, Outcome, data_digest, write_outcome

Progress = Callable[[Tally, int], None]
"""Is told how far asking is, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(AskingPlan):
    """How a model is asked; `AskingPlan` has more parameters, such as `limit`.

    Parameters
    ----------
    prompt
        One of the benchmark's; "" for its default.
    split
        Part of the data; None for the benchmark's default.
    shots
        Examples from the train split, of the question's own group, chosen by the seed.
    """

    prompt: str = ""
    split: str | None = None
    shots: int = 0

    def __post_init__(self) -> None:
        AskingPlan.__post_init__(self)  # a class with slots is made anew, so that super() would not find itself
        check_least(self, shots=0)


def run_benchmark(
    model: str | VLM,
    benchmark: str | Benchmark,
    data: str | Path,
    out: str | Path,
    plan: Plan | None = None,
    *,
    progress: Progress | None = None,
) -> Outcome:
    """Ask a model all questions of a benchmark, score the answers, and write everything into a folder.

    Parameters
    ----------
    model
        What `inktraj.vlm.load_model` takes, or a model.
    benchmark
        What `inktraj.vqa.load_benchmark` takes.
    data
        Folder of the local copy.
    out
        The run folder; a run that was stopped goes on.
    plan
        How it is asked.
    progress
        Is told how far it is.

    Raises
    ------
    RunError
        The folder is used by another run or holds other results, cannot be written, or the model refuses everything.
    DataError
        The data or an option cannot be used.
    """
    plan, folder, bench = plan or Plan(), Path(out), load_benchmark(benchmark)
    prompt = _prompt(bench, plan.prompt)
    questions = bench.load(Path(data), plan.split or bench.default_split)
    wanted = drawn(questions.items, plan.limit, plan.seed)
    shots = None
    if plan.shots:
        try:
            shots = Shots.choose(bench, bench.load(Path(data), "train").items, wanted, plan.shots, plan.seed)
        except DataError as err:
            raise DataError(f"examples are of the train split, and cannot be had: {err}") from err
    with opened(model) as vlm:
        if vlm.describe()["provider"] == "inktraj":
            raise DataError("inktraj, this package's own recoverer, answers no questions; name a vision-language model")
        if plan.batch:
            batch_limits(vlm)  # before anything is written: not all models have batches
        settings = _settings(vlm, bench, prompt, questions, plan)
        with RunFolder(folder, settings):
            started = time.monotonic()
            asking = Asking(vlm, bench, shots, plan.max_tokens, plan.temperature, plan.seed if plan.send_seed else None)
            tasks = [Task((question,), Prompt(prompt)) for question in wanted]
            results, replies, tally, answers = _ask(asking, tasks, folder, plan, progress)
            costs = costs_of(tally, answers, vlm) | {"seconds": round(time.monotonic() - started, 1)}
            outcome = Outcome(
                bench,
                prompt,
                called(vlm),
                questions,
                tuple(results),
                settings | {"server": getattr(vlm, "base_url", None)},
                costs,
                len(questions.items) - len(wanted),
                tally.stopped,
                warnings_of(questions, results),
                replies,
            )
            write_outcome(outcome, folder)
    return outcome


def run_prompts(
    model: str | VLM,
    benchmark: str | Benchmark,
    data: str | Path,
    out: str | Path,
    prompts: Sequence[str],
    plan: Plan | None = None,
    *,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Ask by several prompts one after the other, each into a folder of its name below `out`; see `run_benchmark`.

    The plan's `max_cost` is for all together: what it does not reach for is not begun.
    """
    plan, bench = plan or Plan(), load_benchmark(benchmark)
    names = list(dict.fromkeys(_prompt(bench, prompt) for prompt in prompts))
    if (Path(out) / SETTINGS).exists():
        raise RunError(f"{out} is the folder of one run; runs of several prompts need a folder of their own with --out")
    outcomes: list[Outcome] = []
    left = plan.max_cost
    with opened(model) as vlm:
        for name in names:
            mine = replace(plan, prompt=name, max_cost=left)
            outcomes.append(run_benchmark(vlm, bench, data, Path(out) / name, mine, progress=progress))
            if outcomes[-1].stopped:
                break
            left = None if left is None else left - outcomes[-1].costs["dollars_of_this_run"]
    return outcomes


def _prompt(benchmark: Benchmark, name: str) -> str:
    if name and name not in benchmark.prompts:
        raise DataError(f"{benchmark.name} has no prompt {name!r}; its prompts are {', '.join(benchmark.prompts)}")
    return name or next(iter(benchmark.prompts))


def _settings(model: VLM, benchmark: Benchmark, prompt: str, questions: Questions, plan: Plan) -> dict[str, Any]:
    """What decides the answers; how many are asked for does not."""
    return {
        "format": FORMAT,
        "model": dict(model.describe()),
        "benchmark": {"name": benchmark.name, "version": benchmark.version, "prompt": prompt},
        "data": {
            "split": plan.split or benchmark.default_split,
            "questions": len(questions.items),
            "sha256": data_digest(questions),
        },
        "shots": plan.shots,
        "max_tokens": plan.max_tokens,
        "temperature": plan.temperature,
        "seed": plan.seed,
        "send_seed": plan.send_seed,
    }


def _ask(
    asking: Asking, tasks: Sequence[Task], folder: Path, plan: Plan, progress: Progress | None
) -> tuple[list[Result], dict[str, Reply], Tally, list[Answer]]:
    journal = Journal(folder)

    def tell(tally: Tally) -> None:
        if progress is not None:
            progress(tally, len(tasks))

    done = ask(tasks, asking, journal, folder, plan, tell)
    asked = set(done.keys.values())
    answers = {answer.key: answer for answer in read_answers(folder) if answer.key in asked}
    errors = {id: error["error"] for error in read_errors(folder) for id in error["ids"]}
    came: list[tuple[Question, str | None, Status, str]] = []
    replies: dict[str, Reply] = {}
    for task in tasks:
        (question,) = task.samples
        answer = answers.get(done.keys.get((task.frame.name, task.name), ""))
        if answer is None:
            why = errors.get(question.id) or f"not asked: {done.tally.stopped or 'the run was stopped'}"
            came.append((question, None, "error", why))
        else:
            replies[question.id] = reply = answer.reply
            came.append((question, *read_answer(reply.text, reply.stop_reason, reply.raw_stop)))
    return score_answers(asking.benchmark, came), replies, done.tally, list(answers.values())


def read_answer(text: str | None, stop_reason: str, raw_stop: str = "") -> tuple[str | None, Status, str]:
    """Return the prediction, what became of it, and why; parameters are those of `inktraj.vlm.Reply`."""
    cut = "cut at the limit of tokens" if stop_reason == "length" else ""
    if stop_reason == "refusal":
        return None, "refused", f"refused ({raw_stop or 'by the model'})"
    if text is None or not text.strip():
        return None, "empty", "the answer is empty" + (f"; it was {cut}" if cut else "")
    return text, "truncated" if cut else "ok", f"the answer was {cut}" if cut else ""


_WHY: dict[Status, str] = {
    "empty": "nothing is left of the answer",
    "refused": "the answer refuses",
    "unparsable": "the answer says nothing that can be read",
}


def score_answers(benchmark: Benchmark, came: Iterable[tuple[Question, str | None, Status, str]]) -> list[Result]:
    """Score answers, each with its question, what became of it, and why; errors are not scored."""
    every = list(came)
    scored = iter(
        benchmark.score_all([(answer, question) for question, answer, status, _ in every if status != "error"])
    )
    out = []
    for question, answer, status, reason in every:
        if status == "error":
            out.append(Result(question, answer, status, Scored({}), reason))
            continue
        found = next(scored)
        if found.status != "ok" and status in ("ok", "truncated"):
            status = found.status
            reason = _WHY[status] + (f"; {reason}" if reason else "")
        out.append(Result(question, answer, status, found, reason))
    return out


def warnings_of(questions: Questions, results: Sequence[Result]) -> list[str]:
    """Return what must be known to read the figures."""
    out = list(questions.notes)
    if questions.skipped:
        out.append(
            f"{len(questions.skipped):,} records of the data are no questions, see skipped.csv; the first: "
            f"{questions.skipped[0]}"
        )
    errors = [result for result in results if result.status == "error"]
    if errors:
        out.append(
            f"{len(errors)} questions could not be asked and are in no figure; the first: {errors[0].question.id}: "
            f"{errors[0].reason}"
        )
    return out

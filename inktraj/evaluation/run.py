"""Model × data set → a run folder: replies, scores, table and report.

A run folder holds

* ``settings.json``: what decides the answers; a folder is never used for others;
* ``samples.jsonl``: every reply as it came; ``errors.jsonl``: what could not be asked in the last run;
  ``batches.jsonl``: the provider's batches, where they are used;
* ``prompt.txt``: the first request as text;
* ``run.json``, ``scores.parquet`` and ``predictions.jsonl`` (``scores-FRAME.parquet`` … where several frames were asked
  for), ``summary.md`` and ``report.html``: made anew at the end of every run from all replies.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inktraj.datasets import Dataset, Sample, load_dataset
from inktraj.errors import DataError
from inktraj.evaluation.asking import Tally
from inktraj.evaluation.examples import Examples
from inktraj.evaluation.folder import RunFolder, stored_settings
from inktraj.evaluation.journal import Answer, Journal, Replies, read_errors
from inktraj.evaluation.outcomes import outcomes_of
from inktraj.evaluation.placement import best_placement
from inktraj.evaluation.plan import AskingPlan, ask, called, check_least, costs_of, drawn, opened
from inktraj.evaluation.prompts import Prompt
from inktraj.evaluation.results import RUN, RUN_FORMAT, EvaluationRun, Outcome, Row
from inktraj.evaluation.tasks import Asking, Task, tasks_of
from inktraj.io import InkRecord, write_ink
from inktraj.io.files import write_bytes, write_text
from inktraj.metrics import Evaluation
from inktraj.metrics.signature import Signature
from inktraj.metrics.trajectory import for_each
from inktraj.parse import FRAME_NAMES, CoordinateFrame
from inktraj.scoring import Drawing, score_pairs
from inktraj.scoring.matching import Pair, Status
from inktraj.scoring.run import references_digest
from inktraj.scoring.scores import Grouping, ScoredWord, labels
from inktraj.scoring.sources import Word
from inktraj.vlm import VLM, Reply, Request, Text
from inktraj.vlm.batch import batch_limits
from inktraj.vlm.table import UNKNOWN_FRAME

if TYPE_CHECKING:
    from inktraj.style import StyleModel

MAX_TOKENS = 8192
"""Tokens of an answer at most: 430 points, as an inkGround word has, are some 4,000."""

FAR_OUT = 0.2
"""Share of points outside of the image above which the coordinate frame is in doubt."""

_STATUS: dict[str, Status] = {"ok": "valid", "incomplete": "missing", "error": "error"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(AskingPlan):
    """How a model is asked, and what is computed; `AskingPlan` has more parameters, such as `limit`.

    Parameters
    ----------
    prompt
        How the model is asked.
    frames
        ``"native"`` (that which the model writes best), ``"shared"`` (pixels of the image as sent, which all models are
        asked for alike), or names of coordinate frames; one row of the table for each.
    read_as
        ``"asked"``: answers are read in the frame that was asked for; ``"auto"``: in the one that their numbers speak
        for, which every outcome then names.
    evaluation, recognizer, style, drawing, by
        As for `inktraj.score`.
    placed
        Also DTW after the best translation and scale.
    any_occurrence
        Score a word that stands several times on its page against that of its occurrences which the answer fits best.
    threads
        For scoring.
    """

    prompt: Prompt = field(default_factory=Prompt)
    frames: tuple[str, ...] = ("native",)
    read_as: str = "asked"
    max_tokens: int = MAX_TOKENS
    evaluation: Evaluation = field(default_factory=Evaluation)
    recognizer: str | None = None
    style: StyleModel | str | Path | None = None
    drawing: Drawing = field(default_factory=Drawing)
    by: tuple[Grouping, ...] = ()
    placed: bool = True
    any_occurrence: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        AskingPlan.__post_init__(self)  # a class with slots is made anew, so that super() would not find itself
        check_least(self, threads=0)
        for name in self.frames:
            if name not in ("native", "shared", *FRAME_NAMES):
                raise DataError(f"no coordinate frame is named {name!r}; native, shared, {', '.join(FRAME_NAMES)} are")
        if not self.frames:
            raise DataError("no coordinate frame to ask for")
        if self.read_as not in ("asked", "auto"):
            raise DataError(f"answers are read as 'asked' or 'auto', not as {self.read_as!r}")
        if isinstance(self.recognizer, str) and self.recognizer != "ppocr":
            raise DataError(f"there is no recogniser {self.recognizer!r}; give 'ppocr', or none")


class Watcher:
    """What a run tells of its progress; does nothing unless overridden."""

    def asking(self, tally: Tally, total: int) -> None:
        """Replies that came, of so many requests."""

    def scoring(self, stage: str, done: int, total: int) -> None:
        """Words scored so far."""


def evaluate_model(
    model: VLM | str,
    dataset: Dataset | str | Path,
    out: str | Path,
    plan: Plan | None = None,
    *,
    split: str | None = None,
    images: str | Path | None = None,
    watcher: Watcher | None = None,
) -> EvaluationRun:
    """Ask a model for the strokes of a data set's words, score them and write a run folder.

    A run that was stopped goes on when the same is called again: replies that are there are not asked for anew.

    Parameters
    ----------
    model
        A model, or what `inktraj.vlm.load_model` takes: ``"claude"``, ``"replay:FILE"``, ``"inktraj"``.
    dataset
        A data set, or what `inktraj.datasets.load_dataset` takes: ``"demo"``, a folder.
    out
        The run folder.
    plan
        What is asked and computed.
    split
        Only this part of the data set, where it is named by `dataset`.
    images
        Folder in which a pseudo-label run's page images are now, where they have moved.
    watcher
        Is told of the progress.

    Raises
    ------
    RunError
        The folder is used by another run or holds other results, cannot be written, or the model refuses everything.
    DataError
        The data set or an option cannot be used.
    """
    data = dataset if isinstance(dataset, Dataset) else load_dataset(dataset, split=split, images=images)
    with opened(model) as vlm:
        return _evaluate(vlm, data, Path(out), plan or Plan(), watcher or Watcher())


def _evaluate(vlm: VLM, data: Dataset, folder: Path, plan: Plan, watcher: Watcher) -> EvaluationRun:
    wanted = choose_samples(data, plan)
    # Before anything is written, asked or paid: not all models have batches, and what scores must be there.
    if plan.batch:
        batch_limits(vlm)
    plan = replace(plan, style=_style(plan, wanted))
    for grouping in plan.by:
        _check_grouping(grouping, wanted)
    own = vlm.describe()["provider"] == "inktraj"
    for name in () if own else plan.frames:
        _frame(name, vlm)
    examples = None
    if plan.prompt.example and not own:
        examples = Examples.choose(data, plan.seed, kept=stored_settings(folder).get("examples"))
    settings = _settings(vlm, data, plan, examples)
    with RunFolder(folder, settings):
        started = time.monotonic()
        if own:
            rows, costs, stopped = _own_rows(data, wanted, plan, watcher), dict[str, Any](), ""
        else:
            rows, costs, stopped = _asked_rows(vlm, data, wanted, plan, examples, folder, watcher)
        run = EvaluationRun(
            folder,
            data,
            tuple(rows),
            settings
            | {"server": getattr(vlm, "base_url", None)}
            | {"read_as": plan.read_as, "any_occurrence": plan.any_occurrence}
            | {"signatures": [str(s) for s in rows[0].scores.signatures]},
            costs | {"seconds": round(time.monotonic() - started, 1)},
            len(data) - len(wanted),
            stopped,
            _warnings(data, rows),
        )
        _write(run)
    return run


def choose_samples(data: Dataset, plan: Plan) -> list[Sample]:
    """The samples to be asked for, in the data set's order; they are read once, page by page."""
    return drawn(data, plan.limit, plan.seed)


def _style(plan: Plan, wanted: Sequence[Sample]) -> StyleModel | None:
    """Load the model of style; raises DataError where it cannot be used."""
    from inktraj.style import StyleModel

    if plan.style is None:
        return None
    nameless = next((sample.id for sample in wanted if not sample.writer), "")
    if nameless:
        raise DataError(f"style needs the writer of every sample, and the data set does not name that of {nameless}")
    return StyleModel.load(plan.style) if isinstance(plan.style, str | Path) else plan.style


def _check_grouping(grouping: Grouping, wanted: Sequence[Sample]) -> None:
    """Raise DataError where samples cannot be told by a grouping."""
    words = [
        ScoredWord(s.id, s.page_id, s.writer, "data set", s.text, len(s.text) or None, "valid", "") for s in wanted
    ]
    labels(words, grouping)


def _settings(model: VLM, data: Dataset, plan: Plan, examples: Examples | None) -> dict[str, Any]:
    """What decides the answers; how many are asked for does not."""
    return {
        "format": RUN_FORMAT,
        "model": dict(model.describe()),
        "dataset": {"name": data.name, "version": data.version, "split": data.split, "samples": len(data)},
        "prompt": plan.prompt.fields(),
        "examples": None if examples is None else [sample.id for sample in examples.samples],
        "max_tokens": plan.max_tokens,
        "temperature": plan.temperature,
        "seed": plan.seed,
        "send_seed": plan.send_seed,
    }


def _asked_rows(
    model: VLM,
    data: Dataset,
    wanted: Sequence[Sample],
    plan: Plan,
    examples: Examples | None,
    folder: Path,
    watcher: Watcher,
) -> tuple[list[Row], dict[str, Any], str]:
    """Ask, and read the replies."""
    frames = list(dict.fromkeys(_frame(name, model) for name in plan.frames))
    asking = Asking(
        model, plan.prompt, examples, plan.max_tokens, plan.temperature, plan.seed if plan.send_seed else None
    )
    journal = Journal(folder)
    for task in tasks_of(wanted, plan.prompt, frames):
        try:
            write_text(folder / "prompt.txt", _shown(asking(task).request))
        except DataError:
            continue  # a page that cannot be opened is an error of its samples, told where they are asked for
        break
    per_frame = len({sample.page_id for sample in wanted}) if plan.prompt.per == "page" else len(wanted)
    total = per_frame * len(frames)
    tasks = tasks_of(wanted, plan.prompt, frames)

    def progress(tally: Tally) -> None:
        watcher.asking(tally, total)

    done = ask(tasks, asking, journal, folder, plan, progress)
    replies = Replies(folder, set(done.keys.values()))
    errors = {(error["frame"], id): error["error"] for error in read_errors(folder) for id in error["ids"]}
    rows = []
    for frame in frames:
        outcomes: list[Outcome] = []
        watcher.scoring("replies", 0, len(wanted))
        resolved: set[str] = set()
        for task in tasks_of(wanted, plan.prompt, [frame]):
            key = done.keys.get((frame.name, task.name), "")
            if key in replies:
                answer = replies[key]
                resolved.add(answer.reply.model)
                outcomes += _read(answer, task, asking, plan, partial(replies.reply, key))
            else:
                outcomes += _unasked(task, errors, done.tally)
            watcher.scoring("replies", len(outcomes), len(wanted))
        rows.append(
            _row(
                called(model),
                frame.name,
                frame.name == model.frame,
                tuple(sorted(resolved)),
                outcomes,
                data,
                wanted,
                plan,
                watcher,
            )
        )
    return rows, costs_of(done.tally, replies.values(), model), done.tally.stopped


def _shown(request: Request) -> str:
    """The first request as text: what a model is asked, pictures as their sizes."""
    parts = [p.text if isinstance(p, Text) else f"[image of {p.width} × {p.height} px]" for p in request.parts]
    return "\n\n".join([f"[system]\n{request.system}", "[user]", *parts]) + "\n"


def _frame(name: str, model: VLM) -> CoordinateFrame:
    named = {"native": model.frame, "shared": "sent-px"}.get(name, name)
    if named == UNKNOWN_FRAME:
        raise DataError(
            f"nothing is known of the coordinates that {model.name} writes best; name a frame, such as "
            "--frame norm1000, or give its kind one in a table of your own (--models)"
        )
    return CoordinateFrame(named)  # type: ignore[arg-type]  # checked there


def _read(answer: Answer, task: Task, asking: Asking, plan: Plan, recall: Callable[[], Reply]) -> Iterator[Outcome]:
    """An outcome for each sample of a task that was answered."""
    frame = "auto" if plan.read_as == "auto" else task.frame
    for outcome in outcomes_of(answer, task.samples, plan.prompt, frame, asking.echo(task)):
        yield replace(outcome, recall=recall)


def _unasked(task: Task, errors: Mapping[tuple[str, str], str], tally: Tally) -> Iterator[Outcome]:
    """An outcome for each sample of a task that was not answered."""
    for sample in task.samples:
        why = errors.get((task.frame.name, sample.id)) or f"not asked: {tally.stopped or 'the run was stopped'}"
        yield Outcome(sample.id, "error", why)


def _own_rows(data: Dataset, wanted: Sequence[Sample], plan: Plan, watcher: Watcher) -> list[Row]:
    from inktraj.evaluation.own import recover_samples

    outcomes = []
    tally = Tally()
    for outcome in recover_samples(wanted, plan.prompt):
        outcomes.append(outcome)
        tally.total = tally.answered = len(outcomes)
        watcher.asking(tally, len(wanted))
    return [_row("inktraj", "", True, (), outcomes, data, wanted, plan, watcher)]


def _row(
    model: str,
    frame: str,
    native: bool,
    resolved: tuple[str, ...],
    outcomes: Sequence[Outcome],
    data: Dataset,
    wanted: Sequence[Sample],
    plan: Plan,
    watcher: Watcher,
) -> Row:
    others = _occurrences(data, wanted) if plan.any_occurrence else {}
    pairs, outcomes = [], list(outcomes)
    for place, sample in enumerate(wanted):
        outcome = outcomes[place]
        assert sample.id == outcome.id
        if outcome.ink is not None and sample.id in others:
            best = _nearest(outcome, sample, others[sample.id], plan.evaluation)
            if best.id != sample.id:
                sample, outcomes[place] = best, replace(outcome, scored_as=best.id)
        word = _word(sample, data, outcome.id)
        status = _STATUS.get(outcome.kind, "invalid")
        pairs.append(Pair(word, outcome.ink if status == "valid" else None, status, outcome.reason))
    scores = score_pairs(
        pairs,
        evaluation=plan.evaluation,
        recognizer=plan.recognizer,
        references_filtered_by=data.filtered_by,
        style=plan.style,
        drawing=plan.drawing,
        by=plan.by,
        threads=plan.threads,
        progress=watcher.scoring,
    )
    if plan.any_occurrence:
        # The same references may be met for other words, so that such scores are compared with their like only.
        asked = references_digest([_word(sample, data) for sample in wanted], plan.evaluation)
        signatures = *scores.signatures, Signature.of("occurrence", scored="best")
        scores = replace(scores, references=asked, signatures=signatures)
    outcomes = [_unscored(o, word) for o, word in zip(outcomes, scores.words, strict=True)]
    more: dict[str, Any] = {"out_of_range": _column(pairs, [o.out_of_range for o in outcomes])}
    if plan.placed:
        more["dtw_placed"] = _placed(pairs, plan, watcher)
    scores = replace(scores, columns={**scores.columns, **more})
    return Row(model, frame, native, tuple(outcomes), scores, resolved, plan.read_as if frame else "asked")


def _word(sample: Sample, data: Dataset, name: str = "") -> Word:
    return Word(name or sample.id, sample.page_id, sample.ink, sample.text, sample.writer, data.name)


def _unscored(outcome: Outcome, word: ScoredWord) -> Outcome:
    """An ink that came and could not be scored, for no fault of its own, is an error."""
    if outcome.kind == "ok" and word.status == "error":
        return replace(outcome, kind="error", reason=word.reason)
    return outcome


def _column(pairs: Sequence[Pair], values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([v if pair.status == "valid" else np.nan for pair, v in zip(pairs, values, strict=True)])


def _placed(pairs: Sequence[Pair], plan: Plan, watcher: Watcher) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    out = np.full(len(pairs), np.nan)

    def part(numbers: Sequence[int]) -> None:
        for k in numbers:
            pair = pairs[k]
            if pair.pred is None or pair.ref.ink is None:
                continue
            try:
                out[k] = best_placement(pair.pred, pair.ref.ink, plan.evaluation.normalization).dtw
            except DataError:
                continue  # the same pair has told why among the scores
        done.append(len(numbers))
        watcher.scoring("placement", sum(done), len(pairs))

    done: list[int] = []
    watcher.scoring("placement", 0, len(pairs))
    for_each(part, [range(k, min(k + 64, len(pairs))) for k in range(0, len(pairs), 64)], plan.threads)
    return out


def _occurrences(data: Dataset, wanted: Sequence[Sample]) -> dict[str, list[Sample]]:
    """The samples of the same text on the same page, of those that stand there several times."""
    repeated = [sample for sample in wanted if sample.occurrences > 1]
    needed = {sample.page_id for sample in repeated}
    there = {page.id: page.samples for page in data.pages if page.id in needed}
    return {s.id: [other for other in there[s.page_id] if other.text == s.text] for s in repeated}


def _nearest(outcome: Outcome, sample: Sample, others: Sequence[Sample], evaluation: Evaluation) -> Sample:
    """The occurrence that an ink fits best by DTW; the one that was asked for where none is better."""
    assert outcome.ink is not None
    simple = replace(evaluation, pen_net=False)
    best, least = sample, math.inf
    for other in [sample, *(other for other in others if other.id != sample.id)]:
        try:
            value = simple.score(outcome.ink, other.ink).dtw
        except DataError:
            continue  # a reference that can be no unit; where it is the sample's own, its score says so
        if value is not None and value < least:
            best, least = other, value
    return best


def _warnings(data: Dataset, rows: Sequence[Row]) -> list[str]:
    out = list(dict.fromkeys(warning for row in rows for warning in row.scores.warnings))
    if data.skipped:
        out.append(f"{len(data.skipped)} words or pages of the data set are no samples; the first: {data.skipped[0]}")
    for row in rows:
        guessed = sum(not outcome.starts_known for outcome in row.outcomes if outcome.ink is not None)
        if guessed:
            out.append(
                f"{row.name}: {guessed} answers do not say where strokes begin; each was taken as one stroke, and what "
                "counts strokes says nothing of them"
            )
        if row.out_of_range is not None and row.out_of_range > FAR_OUT:
            out.append(
                f"{row.name}: {row.out_of_range:.0%} of the points lie outside of the image; if the model writes other "
                "coordinates, ask for them (--frame), or read answers by their numbers (--read-as auto)"
            )
        in_part = [outcome for outcome in row.outcomes if outcome.ink is not None and outcome.dropped]
        if in_part:
            out.append(
                f"{row.name}: {len(in_part)} answers are ok in part, or leave doubt of what they mean; the first, "
                f"{in_part[0].id}: {in_part[0].reason}"
            )
    return out


def _write(run: EvaluationRun) -> None:
    from inktraj.evaluation.report import write_report
    from inktraj.evaluation.summary import summary_markdown, tell

    rows = []
    for row in run.rows:
        name = "scores.parquet" if len(run.rows) == 1 else f"scores-{row.frame}.parquet"
        row.scores.to_parquet(run.folder / name)
        inks = "predictions.jsonl" if len(run.rows) == 1 else f"predictions-{row.frame}.jsonl"
        pages = {word.name: word.page for word in row.scores.words}
        found = (InkRecord(o.id, o.ink, extra={"page": pages[o.id]}) for o in row.outcomes if o.ink is not None)
        write_ink(run.folder / inks, found)
        rows.append(
            {
                "model": row.model,
                "frame": row.frame,
                "native": row.native,
                "read_as": row.read_as,
                "scores": name,
                "predictions": inks,
                "kinds": row.kinds,
                "out_of_range": row.out_of_range,
                "resolved": list(row.resolved),
                **{name: figures for name, figures in row.scores.to_json().items() if name in ("figures", "by")},
            }
        )
    record = {
        "format": RUN_FORMAT,
        "dataset": {
            "name": run.dataset.name,
            "version": run.dataset.version,
            "references": run.dataset.references,
            "samples": len(run.rows[0].outcomes),
            "left_out": run.limited,
        },
        "settings": dict(run.settings),
        "rows": rows,
        "costs": dict(run.costs),
        "stopped": run.stopped,
        "warnings": list(run.warnings),
    }
    write_bytes(run.folder / RUN, json.dumps(record, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace"))
    named = {str(row[kind]) for row in rows for kind in ("scores", "predictions")}
    for earlier in (*run.folder.glob("scores*.parquet"), *run.folder.glob("predictions*.jsonl")):
        if earlier.name not in named:
            earlier.unlink(missing_ok=True)  # of other frames, which the record no longer names
    told = tell(run)
    write_bytes(run.folder / "summary.md", summary_markdown(run, told).encode("utf-8", "backslashreplace"))
    write_report(run, told)

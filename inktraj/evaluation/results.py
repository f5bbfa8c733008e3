"""What an evaluation found: an outcome for each sample, and a row for each model and coordinate frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from inktraj.datasets import Dataset
from inktraj.ink import Ink
from inktraj.scoring import Scores
from inktraj.vlm import Reply

RUN = "run.json"
"""The file of a run folder that tells of the run."""

RUN_FORMAT = "inktraj evaluation 1"
"""How the files of a run folder name their form."""

Kind = Literal["ok", "incomplete", "invalid", "refused", "empty", "truncated", "error"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What can become of a sample: an ink came; the answer covers other words and not this one; no ink could be read from
the answer; the model refused; it said nothing; it was cut by the token limit; or it could not be asked, which is never
a wrong answer. By inkGround's rule all but ``ok`` and ``error`` score the declared worst."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of one sample.

    Parameters
    ----------
    id
        The sample's.
    kind, reason
        See `KINDS`; why, where it is not ``ok``.
    ink
        What was predicted, in the page's frame; None unless ``ok``.
    recall
        Reads the model's reply from the run folder; None where there is none. See `reply`.
    dialect, frame
        How the points were written, and in which coordinate frame they were read; "" where none were.
    starts_known
        False where the answer does not say where strokes begin, and one stroke was made of it.
    out_of_range
        Share of the points that lie outside the image that was sent.
    dropped
        Pieces of the answer that could not be used.
    sent
        Width and height of the image as sent; None where none was.
    scored_as
        Id of the other occurrence of the word that it is scored against, because it fits that better; "" for its own.
    """

    id: str
    kind: Kind
    reason: str = ""
    ink: Ink | None = None
    recall: Callable[[], Reply] | None = None
    dialect: str = ""
    frame: str = ""
    starts_known: bool = True
    out_of_range: float = 0.0
    dropped: int = 0
    sent: tuple[int, int] | None = None
    scored_as: str = ""

    @property
    def reply(self) -> Reply | None:
        """What the model said; None where it was not asked, and for this package's own recoverer."""
        return None if self.recall is None else self.recall()


def row_name(model: str, frame: str, read_as: str) -> str:
    """Return what tables call a row: model and frame, and whether answers were read in another."""
    return ", ".join(filter(None, [model, frame, "read as auto" if read_as == "auto" else ""]))


@dataclass(frozen=True, eq=False, repr=False)
class Row:
    """One line of the table: a model asked in one coordinate frame.

    Parameters
    ----------
    model
        What it is called in tables.
    frame
        Name of the coordinate frame that was asked for; "" for this package's own recoverer.
    native
        Whether that is the frame which the model writes best.
    outcomes
        One for each sample, in the data set's order.
    scores
        The same, scored: kinds other than ``ok`` as missing (``incomplete``), invalid, or error.
    resolved
        Ids of the models that answered, as the provider gave them.
    read_as
        ``"auto"`` where answers were read in the frame that their numbers speak for, whatever was asked for.
    """

    model: str
    frame: str
    native: bool
    outcomes: tuple[Outcome, ...]
    scores: Scores
    resolved: tuple[str, ...] = ()
    read_as: str = "asked"

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items() if count)
        return f"<Row {self.name}: {told}>"

    @cached_property
    def kinds(self) -> dict[Kind, int]:
        """How many samples have each outcome."""
        found = Counter(outcome.kind for outcome in self.outcomes)
        return {kind: found[kind] for kind in KINDS}

    @property
    def name(self) -> str:
        """Model and frame."""
        return row_name(self.model, self.frame, self.read_as)

    @cached_property
    def out_of_range(self) -> float | None:
        """Mean share of points outside the image, over samples with an ink; None where there are none."""
        shares = [outcome.out_of_range for outcome in self.outcomes if outcome.ink is not None]
        return sum(shares) / len(shares) if shares else None


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationRun:
    """All that `report.html`, `summary.md` and `run.json` tell.

    Parameters
    ----------
    folder
        Where it is written.
    dataset
        What was evaluated on; not all of it where `limited`.
    rows
        One for each coordinate frame.
    settings
        What decided the answers: model, prompt, seed, limits, as plain JSON.
    costs
        Tokens, dollars (None where not known), seconds and retries, of this run and of all answers.
    limited
        How many of the data set's samples were left out by ``--limit``.
    stopped
        Why not all samples were asked for; "" where all were.
    warnings
        What must be known to read the figures.
    """

    folder: Path
    dataset: Dataset
    rows: tuple[Row, ...]
    settings: Mapping[str, Any]
    costs: Mapping[str, Any] = field(default_factory=dict)
    limited: int = 0
    stopped: str = ""
    warnings: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"<EvaluationRun on {self.dataset.name} in {self.folder}: {', '.join(map(repr, self.rows))}>"

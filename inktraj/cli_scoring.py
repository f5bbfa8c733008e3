"""Options of scoring, which ``inktraj score`` and ``inktraj eval`` share, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from inktraj.errors import DataError

if TYPE_CHECKING:
    from inktraj.metrics import Evaluation

SpaceOption = Annotated[str, typer.Option(help="Unit: reference-box, height, page or none.")]
StepOption = Annotated[
    str, typer.Option(help="Distance between points in units, or none to leave them; else the space's own.")
]
BridgeOption = Annotated[bool, typer.Option("--bridge", help="Put points along pen-up jumps, too.")]
ToleranceOption = Annotated[float | None, typer.Option(help="Units within which ink counts as found.")]
WorstOption = Annotated[str, typer.Option(help="DTW and distances of unusable words: far-corner, or units.")]
ByOption = Annotated[list[str] | None, typer.Option(help="Also by writer, page, length or dataset; may be repeated.")]
ClustersOption = Annotated[str, typer.Option(help="Drawn whole for intervals: page, writer or word.")]
ResamplesOption = Annotated[int, typer.Option(help="Draws for intervals.")]


def evaluation_of(space: str, step: str, bridge: bool, tolerance: float | None, worst: str) -> Evaluation:
    """Return what the options ask for; raises DataError where one cannot be used."""
    from inktraj.metrics import Evaluation, Normalization

    limits: dict[str, Any] = {} if tolerance is None else {"tolerance": tolerance}
    return Evaluation(
        Normalization(cast(Any, space), _number(step, "--step", {"none": None, "default": "default"}), bridge),
        worst=_number(worst, "--worst", {"far-corner": "far-corner"}),
        **limits,
    )


def _number(text: str, option: str, words: Mapping[str, Any]) -> Any:
    """Return what one of the words stands for, or a number."""
    if text in words:
        return words[text]
    try:
        return float(text)
    except ValueError as err:
        raise DataError(f"{option} is {text!r}, expected a number or {' or '.join(words)}") from err

"""Tables of texts, in Markdown and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inktraj.io.terminal import harmless, printable
from inktraj.metrics.statistics import Summary

_SAFE = {"&": "&amp;", "<": "&lt;", "|": "&#124;", "[": "&#91;", "`": "&#96;", "\n": "<br>"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Parameters
    ----------
    title
        What it is.
    head
        Names of the columns; the first is that of the rows' names.
    rows
        Cells, each a text. What stands behind a line break is of second rank: a narrow terminal leaves it out.
    spare
        Columns that a narrow terminal leaves out where that is not enough, first those to be left out first.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    spare: Sequence[int] = ()

    def markdown(self) -> Iterator[str]:
        """Return its lines in Markdown; no cell can break out of its place, whatever it holds."""
        for cells in (self.head, ["---", *["---:"] * (len(self.head) - 1)], *self.rows):
            yield "| " + " | ".join(map(escaped, cells)) + " |"

    def print(self, console: Any) -> None:
        """Print it with as much of it as the console (rich's) has room for."""
        unbounded = console.options.update(max_width=10_000)
        for drawn in self._ever_narrower():
            if console.measure(drawn, options=unbounded).maximum <= console.width:
                break
        console.print(drawn)

    def _ever_narrower(self) -> Iterator[Any]:
        every = list(range(len(self.head)))
        yield self._drawn(every, None)
        yield self._drawn(every, 1)
        for count in range(1, len(self.spare) + 1):
            yield self._drawn([i for i in every if i not in self.spare[:count]], 1)

    def _drawn(self, columns: Sequence[int], lines: int | None) -> Any:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(title=self.title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for i in columns:
            drawn.add_column(Text(self.head[i]), justify="right" if i else "left", overflow="fold")
        for row in self.rows:
            drawn.add_row(*(Text("\n".join(map(printable, row[i].split("\n")[:lines]))) for i in columns))
        return drawn


def escaped(text: str) -> str:
    """Return text that Markdown and HTML show as it is, within a table too."""
    return "".join(_SAFE.get(char, char) for char in harmless(text.replace("\r", "")))


def short(value: float | None) -> str:
    """Write a number with about four digits, or – for none."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def interval(low: float | None, high: float | None) -> str:
    """Write an interval; "" for none."""
    return "" if low is None or high is None else f"{short(low)} … {short(high)}"


def percent(share: float | None) -> str:
    """Write a share in percent, or – for none."""
    return "–" if share is None else f"{share:.1%}"


def cell(summary: Summary | None) -> str:
    """Write a mean with its interval below; "" where there is no figure."""
    if summary is None:
        return ""
    return f"{short(summary.mean)}\n{interval(summary.low, summary.high)}".rstrip()


def flat(values: Mapping[str, Any], none: str, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and text of all values of nested tables, such as costs and settings; `none` stands for None."""
    for name, value in values.items():
        label = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from flat(value, none, f"{label}: ")
        elif isinstance(value, list | tuple):
            yield label, ", ".join(map(str, value)) or "none"
        else:
            yield label, none if value is None else _told(label, value)


def _told(label: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"${value:,.4f}" if "dollars" in label else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def say(console: Any, line: str) -> None:
    """Print a line on a console (rich's) as it is, but for characters that would steer the terminal."""
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

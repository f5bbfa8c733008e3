"""A run or a scoring in tables: for the terminal, and as ``summary.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inktraj.evaluation.tables import Table, escaped, flat, say
from inktraj.metrics.statistics import Summary
from inktraj.vqa.benchmark import Extra, Figure, Quoted
from inktraj.vqa.results import STATUSES, Outcome

NOTE = (
    "Answers that are empty, refused, unreadable or missing count as incorrect. Errors, questions that could not be "
    "asked, are in no figure."
)


def title(outcome: Outcome) -> str:
    """Name the run."""
    return f"{outcome.system} on {outcome.benchmark.title}"


def facts(outcome: Outcome) -> Iterator[str]:
    """Say what was asked."""
    total = len(outcome.results) + outcome.left_out
    of = f" of {total:,}; {outcome.left_out:,} were left out" if outcome.left_out else ""
    version = outcome.questions.version or "of no named version"
    yield f"{outcome.benchmark.name}, data {version}: {len(outcome.results):,} answers{of}"
    if outcome.prompt:
        yield f"prompt {outcome.prompt}: {outcome.benchmark.prompts[outcome.prompt]}"
    resolved = sorted({reply.model for reply in outcome.replies.values()})
    if resolved:
        yield f"answered by {', '.join(resolved)}"


def warnings(outcome: Outcome) -> list[str]:
    """Return everything that must be known to read the figures."""
    return [*([f"not all were asked: {outcome.stopped}"] if outcome.stopped else []), *outcome.warnings]


def shown(figure: Figure, value: float | None) -> str:
    """Write a value; shares in percent, with two decimals as papers do."""
    if value is None:
        return "–"
    return f"{100 * value:.2f}" if figure.share else f"{value:.4f}"


def cell(figure: Figure, summary: Summary | None) -> str:
    """Write a mean with its interval below."""
    if summary is None or summary.mean is None:
        return "–"
    if summary.low is None or summary.high is None:
        return shown(figure, summary.mean)
    return f"{shown(figure, summary.mean)}\n{shown(figure, summary.low)} … {shown(figure, summary.high)}"


def label(figure: Figure) -> str:
    """Name a figure with its unit."""
    return figure.label + (" %" if figure.share else "")


def figures_table(outcome: Outcome) -> Table:
    """Return all figures: averaged as published ones are, and both averages."""
    rows = [
        [
            label(f.figure),
            cell(f.figure, f.published_way),
            f.figure.average + (f" over {f.figure.over}" if f.figure.average == "macro" else ""),
            cell(f.figure, f.micro),
            cell(f.figure, f.macro),
            f"{f.micro.count:,}",
        ]
        for f in outcome.figures
    ]
    head = ["figure", "measured", "averaged", "micro", "macro", "answers"]
    return Table("Figures", head, rows, spare=(4, 3))


def status_table(outcome: Outcome) -> Table:
    """Return how many answers have each status, and how often each flag was raised."""
    counts = outcome.counts
    rows = [[status, f"{counts[status]:,}"] for status in STATUSES if counts[status]]
    rows += [[f"flag: {name}", f"{count:,}"] for name, count in outcome.flags.items()]
    return Table("What became of the questions", ["", "answers"], rows)


def breakdown_tables(outcome: Outcome) -> Iterator[Table]:
    """Return a table for each breakdown: its groups' means, micro within each."""
    named = {f.figure.name: f.figure for f in outcome.figures if f.micro.count}
    for breakdown in outcome.benchmark.breakdowns:
        groups = outcome.groups.get(breakdown)
        if not groups:
            continue
        rows = []
        for group, summaries in groups.items():
            one = next(iter(summaries.values()))
            row = [group, f"{one.count + one.left_out:,}"]
            rows.append(row + [cell(figure, summaries[name]) for name, figure in named.items()])
        spare = range(len(named) + 1, 2, -1)  # of many figures the first ones stay on a narrow terminal
        yield Table(f"By {breakdown}", [breakdown, "answers", *map(label, named.values())], rows, tuple(spare))


def extra_table(extra: Extra) -> Table:
    """Return a benchmark's own table."""
    return Table(extra.title, extra.head, [[_text(value) for value in row] for row in extra.rows])


def tables(outcome: Outcome) -> Iterator[Table]:
    """Return all measured tables."""
    yield figures_table(outcome)
    yield status_table(outcome)
    yield from breakdown_tables(outcome)
    for extra in outcome.extras:
        yield extra_table(extra)


def method(outcome: Outcome) -> Iterator[str]:
    """Say what the figures are, and give their signatures."""
    for f in outcome.figures:
        yield f"{f.figure.label}: {f.figure.about}"
    yield "intervals: 95 % bootstrap, whole images drawn"
    yield from map(str, outcome.benchmark.signatures())


def quoted_tables(outcome: Outcome) -> Iterator[tuple[Table, str]]:
    """Return tables that others published, each with its note."""
    return map(quoted_table, outcome.benchmark.quoted)


def quoted_table(quoted: Quoted) -> tuple[Table, str]:
    """Return one of them."""
    return Table(f"{quoted.title} ({quoted.source})", quoted.head, quoted.rows), quoted.note


def accounts(outcome: Outcome) -> dict[str, list[tuple[str, str]]]:
    """Return name and text of all costs and settings, under a heading each; what is empty is left out."""
    told = {
        "Costs": list(flat(outcome.costs, "not known")),
        "Settings": list(flat(outcome.settings, "none")),
    }
    return {heading: values for heading, values in told.items() if values}


def summary_markdown(outcome: Outcome) -> str:
    """Return ``summary.md``."""
    parts = [f"# {escaped(title(outcome))}", "", *_items(facts(outcome)), ""]
    if told := warnings(outcome):
        parts += ["## Warnings", "", *_items(told), ""]
    for table in tables(outcome):
        parts += [f"## {escaped(table.title)}", "", *table.markdown(), ""]
    parts += [NOTE, "", "## How it was measured", ""]
    parts += [f"- `{line}`" if "|" in line else f"- {escaped(line)}" for line in method(outcome)]
    for heading, values in accounts(outcome).items():
        parts += ["", f"## {heading}", "", *_items(f"{name}: {text}" for name, text in values)]
    for table, note in quoted_tables(outcome):
        parts += ["", f"## {escaped(table.title)}", "", escaped(note), "", *table.markdown()]
    return "\n".join([*parts, ""])


def print_tables(outcome: Outcome, console: Any) -> None:
    """Print the tables, and what must be known to read them, on a ``rich.console.Console``."""
    for line in (title(outcome), *facts(outcome)):
        say(console, line)
    for table in tables(outcome):
        table.print(console)
    for signature in outcome.benchmark.signatures():
        say(console, str(signature))
    for name, text in accounts(outcome).get("Costs", ()):
        say(console, f"{name}: {text}")
    for warning in warnings(outcome):
        say(console, f"warning: {warning}")
    say(console, NOTE)


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _items(lines: Any) -> Iterator[str]:
    return (f"- {escaped(line)}" for line in lines)

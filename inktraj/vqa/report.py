"""A run or a scoring → one self-contained HTML file: tables, and every answer to look at.

The page's look and behaviour are in ``report_template.html``; its data are put in here, escaped. It loads nothing, and
its policy lets only its own script and style run, so that a model's reply stays text whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from inktraj.evaluation.plan import drawn
from inktraj.evaluation.tables import Table
from inktraj.io.html import content_policy, script_json
from inktraj.vqa.benchmark import Result, group_of
from inktraj.vqa.results import STATUSES, Outcome
from inktraj.vqa.summary import (
    NOTE,
    accounts,
    facts,
    label,
    method,
    quoted_tables,
    tables,
    title,
    warnings,
)

LISTED = 25_000
"""Answers in the list at most, drawn by chance where there are more; ``scores.parquet`` has all."""

REPLY = 4_000
"""Characters of a reply that are shown; ``samples.jsonl`` has all."""

TEXT_CHARS = 20_000_000
"""Of all replies together; those behind it are shown shorter, so that browsers open the file."""

SHORT = 200

SEED = 0


def report_html(outcome: Outcome) -> str:
    """Return the report."""
    template = files("inktraj.vqa").joinpath("report_template.html").read_text(encoding="utf-8")
    told = warnings(outcome)
    listed = drawn(outcome.results, LISTED, SEED)
    parts = {
        "policy": content_policy(template),
        "title": escape(title(outcome)),
        "facts": _list([*facts(outcome), NOTE]),
        "warnings": f'<section class="warnings"><h2>Warnings</h2>{_list(told)}</section>' if told else "",
        "tables": "".join(f"<section>{_table(table)}</section>" for table in tables(outcome)),
        "quoted": "".join(
            f'<section class="quoted">{_table(table)}<p>{escape(note)}</p></section>'
            for table, note in quoted_tables(outcome)
        ),
        "method": _method(outcome),
        "listed": ""
        if len(listed) == len(outcome.results)
        else f"{len(listed):,} of {len(outcome.results):,} answers, drawn by chance (seed {SEED}); all are in "
        "scores.parquet.",
        "data": script_json(_data(outcome, listed)),
    }
    pieces = re.split(r"<!-- (\w+) -->", template)
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in table.rows)
    return (
        f'<h2>{escape(table.title)}</h2><div class="scroll" role="region" tabindex="0" aria-label="'
        f'{escape(table.title)}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(text: str) -> str:
    first, _, second = text.partition("\n")
    return f"<td>{escape(first)}{f'<small>{escape(second)}</small>' if second else ''}</td>"


def _method(outcome: Outcome) -> str:
    parts = [_list(list(method(outcome)))]
    for heading, values in accounts(outcome).items():
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in values)
        parts.append(f"<h3>{heading}</h3><dl>{rows}</dl>")
    return "".join(parts)


def _data(outcome: Outcome, listed: Sequence[Result]) -> dict[str, Any]:
    """Return what the list needs, as columns; texts that many answers share stand once."""
    breakdowns = outcome.benchmark.breakdowns
    groups: dict[str, dict[str, int]] = {name: {} for name in breakdowns}
    figures = [f.figure for f in outcome.figures]
    room, rows = TEXT_CHARS, []
    for result in listed:
        question = result.question
        reply = outcome.replies.get(question.id)
        text = reply.text if reply is not None else result.prediction or ""
        cut = text[: REPLY if room > 0 else SHORT]
        room -= len(cut)
        rows.append(
            [
                question.id,
                STATUSES.index(result.status),
                question.text,
                " | ".join(question.golds),
                cut,
                len(text) - len(cut),
                result.scored.normalized if result.scored.normalized != cut else "",
                [groups[name].setdefault(group_of(result, name), len(groups[name])) for name in breakdowns],
                [_number(result.scored.values.get(figure.name)) for figure in figures],
                result.reason,
                list(result.scored.flags),
                None if reply is None else [reply.model, reply.raw_stop or reply.stop_reason, reply.output_tokens],
            ]
        )
    return {
        "statuses": STATUSES,
        "breakdowns": [[name, list(groups[name])] for name in breakdowns],
        "figures": [[label(figure).removesuffix(" %"), figure.share] for figure in figures],
        "flags": sorted({flag for result in listed for flag in result.scored.flags}),
        "rows": rows,
    }


def _number(value: float | None) -> float | None:
    return None if value is None or value != value else float(f"{value:.5g}")

"""IndoTabVQA (Gautam et al., arXiv 2604.11970): tables in Indonesian documents, asked in four languages.

Figures
-------
* ``in_match``, the paper's: the gold is a substring of the prediction; both in lower case, without ``.`` and ``,``, and
  with one space for white space. So "1" is found in "10", "no" in "north", and "25" in "2.5".
* ``in_match_tokens``, stricter: the same, and where the gold begins or ends with a letter, digit or combining mark none
  of these stands beside it; before a number no minus sign does either, unless it joins, as in "3-5". It is never right
  where ``in_match`` is wrong. Since dots and commas are gone, "2.5" still is "25" to both. Arabic writes its article
  and some prepositions together with the word, so that an answer with them is found by ``in_match`` only.
* ``sts``: the cosine of the two texts' embeddings, as they are; only where an encoder is given.

A prediction in another language is told of by its script (`other_script`): Indonesian and English are both Latin and
cannot be told apart so.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Self

from inktraj.vqa.benchmark import Benchmark, Extra, Figure, Question, Questions, Result, Scored, Skipped, status_of
from inktraj.vqa.manifest import Layout, read_layout
from inktraj.vqa.pairs import Pair, read_pairs
from inktraj.vqa.records import text_of
from inktraj.vqa.similarity import ENCODERS, MINILM, Encoder, load_encoder, similarities

LANGUAGES = {"id": "Bahasa Indonesia", "en": "English", "hi": "Hindi", "ar": "Arabic"}
"""The languages of the questions."""

_CODES = {
    **{"indonesian": "id", "bahasa indonesia": "id", "bahasa": "id", "indonesia": "id", "ind": "id", "in": "id"},
    **{"english": "en", "eng": "en", "hindi": "hi", "hin": "hi", "arabic": "ar", "ara": "ar", "arab": "ar"},
}
_SCRIPTS = {"id": "Latin", "en": "Latin", "hi": "Devanagari", "ar": "Arabic"}

_ASKED = "Answer from the document in the image, in the language of the question, with the answer only."


# Text to one form


@lru_cache(maxsize=65536)
def normalize(text: str) -> str:
    """Return text as the published recipe does: lower case, no ``.`` and ``,``, one space for white space."""
    return " ".join(text.lower().replace(".", "").replace(",", "").split())


def in_match(prediction: str, gold: str) -> bool:
    """Say whether the gold is a substring of the prediction, both normalised; never of a gold that is then empty."""
    sought = normalize(gold)
    return bool(sought) and sought in normalize(prediction)


def in_match_tokens(prediction: str, gold: str) -> bool:
    """Say whether the gold stands in the prediction as `in_match` finds it, and between token borders."""
    sought, text = normalize(gold), normalize(prediction)
    start = text.find(sought) if sought else -1
    while start >= 0:
        if _is_token(text, start, start + len(sought)):
            return True
        start = text.find(sought, start + 1)
    return False


def _is_token(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    if (_in_word(before) and _in_word(text[start])) or (_in_word(after) and _in_word(text[end - 1])):
        return False
    is_sign = before != "" and before in _MINUS and not (start > 1 and _ends(text[start - 2]))
    return not (is_sign and text[start].isdecimal())


_MINUS = "-−–"


def _ends(char: str) -> bool:
    """Say whether something ends with this character, so that a hyphen behind it joins ("3-5", "10%-20%")."""
    return _in_word(char) or char in "%‰°" + _MINUS or unicodedata.category(char) in ("Pe", "Pf")


@lru_cache(maxsize=4096)
def _in_word(char: str) -> bool:
    return char.isalnum() or (char != "" and unicodedata.category(char)[0] == "M")


def in_match_unicode(prediction: str, gold: str) -> bool:
    """Say whether the gold would be found if both had one Unicode form (NFKC) and their digits were those of ASCII."""
    return in_match(_one_form(prediction), _one_form(gold))


def _one_form(text: str) -> str:
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in unicodedata.normalize("NFKC", text))


# Scripts

_OF_SCRIPT = {
    "Latin": re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]"),
    "Devanagari": re.compile(r"[\u0904-\u0939\u0958-\u0961\u0971-\u097f]"),
    "Arabic": re.compile(r"[\u0620-\u064a\u066e-\u06d3\u06fa-\u06fc\u0750-\u077f\ufb50-\ufdfb\ufe70-\ufefc]"),
}


@lru_cache(maxsize=65536)
def script_of(text: str) -> str:
    """Return the script of most of a text's letters: Latin, Devanagari or Arabic; "" where it has none of these."""
    counts = {script: len(letter.findall(text)) for script, letter in _OF_SCRIPT.items()}
    most = max(counts, key=lambda script: counts[script])
    return most if counts[most] else ""


def other_script(prediction: str, gold: str, language: str) -> bool | None:
    """Say whether a prediction is in another script than was to be expected; None where that cannot be told.

    Expected is the gold's script, since answers copied from Indonesian tables are Latin whatever the question's is; the
    question's language's where the gold has no letters. A prediction without letters is not judged.
    """
    expected, said = script_of(gold) or _SCRIPTS.get(language, ""), script_of(prediction)
    return said != expected if expected and said else None


# The benchmark

_NORM = {"norm": "lower-nodot-nocomma", "empty": "incorrect"}
_STS = Figure("sts", "STS", "Cosine of the embeddings of prediction and gold; 0 of no prediction.", over="language")


class IndoTabVQA(Benchmark):
    """Questions to tables; the answer is found in what is said."""

    name = "indotabvqa"
    title = "IndoTabVQA: tables in Indonesian documents, asked in Indonesian, English, Hindi and Arabic"
    prompts = MappingProxyType(
        {
            "instructed": "asks for the answer only, in the language of the question",
            "bare": "the question alone",
        }
    )
    figures: tuple[Figure, ...] = (
        Figure(
            "in_match",
            "In-Match",
            "The gold is a substring of the prediction, both normalised.",
            over="language",
            rules=_NORM,
        ),
        Figure(
            "in_match_tokens",
            "In-Match, tokens",
            "The same, with the gold between token borders.",
            over="language",
            rules={**_NORM, "borders": "token"},
        ),
        Figure(
            "other_script",
            "Other script",
            "Of answers with letters: most are of another script than the gold's, or the question's where it has none.",
            over="language",
        ),
    )
    breakdowns = ("language", "answer")
    options = MappingProxyType(
        {
            "sts_model": f"folder of a local copy of {MINILM}: adds the STS score",
            "sts_encoder": "sentence encoder of the STS score: " + "; ".join(f"{k} ({v})" for k, v in ENCODERS.items()),
        }
    )

    def __init__(self, encoder: Encoder | None = None) -> None:
        self.encoder = encoder
        if encoder is not None:
            self.figures = (*self.figures, replace(_STS, rules={"encoder": encoder.label}))

    def configured(self, **options: str) -> Self:
        """Return the benchmark with an encoder, where ``sts_model`` or ``sts_encoder`` is given.

        Raises
        ------
        DataError
            The encoder is unknown or cannot be loaded; there is no such option.
        MissingDependency
            Its package is not installed.
        """
        super().configured(**options)
        name, folder = options.get("sts_encoder"), options.get("sts_model")
        if not name and not folder:
            return self
        return type(self)(load_encoder(name or MINILM, Path(folder) if folder else None))

    def load(self, folder: Path, split: str | None) -> Questions:
        """Read JSON or JSON Lines with one record for each question; images beside it."""
        layout = read_layout(self.name, folder)
        pairs = read_pairs(layout, folder)
        items: list[Question] = []
        skipped = list(pairs.skipped)
        for pair in pairs.of(split, folder):
            question = _question(pair, layout)
            if question.golds:
                items.append(question)
            else:
                reason = f"of its answer {pair.answer!r} nothing is left to look for"
                skipped.append(Skipped(pair.where, f"{reason}; a substring match would find it in anything"))
        unknown = Counter(q.language or "(none)" for q in items if q.language not in LANGUAGES)
        notes = [f"language {name!r}, which is none of {', '.join(LANGUAGES)}: {n}" for name, n in unknown.items()]
        return Questions(tuple(items), tuple(skipped), (*pairs.notes, *notes), layout.version)

    def wording(self, question: Question, prompt: str) -> str:
        """Return the question, with the instruction or without."""
        return question.text if prompt == "bare" else f"{question.text}\n\n{_ASKED}"

    def score(self, prediction: str | None, question: Question) -> Scored:
        """Look for the golds, any of which is right."""
        return self.score_all([(prediction, question)])[0]

    def score_all(self, pairs: Sequence[tuple[str | None, Question]]) -> Sequence[Scored]:
        """Score predictions; their embeddings are computed together."""
        scored = [_score(prediction or "", question) for prediction, question in pairs]
        if self.encoder is None:
            return scored
        flat = [(prediction or "", gold) for prediction, question in pairs for gold in question.golds]
        cosines = iter(similarities(self.encoder, flat).tolist())
        best = [max((next(cosines) for _ in question.golds), default=0.0) for _, question in pairs]
        return [replace(s, values={**s.values, "sts": value}) for s, value in zip(scored, best, strict=True)]

    def extras(self, results: Sequence[Result]) -> Iterable[Extra]:
        """Return how often the scorers disagree, by language."""
        groups: dict[str, list[Result]] = {"all": list(results)}
        for result in sorted(results, key=lambda result: result.question.language):
            groups.setdefault(result.question.language or "(none)", []).append(result)
        rows: list[tuple[str | int, ...]] = [(name, *_disagreements(group)) for name, group in groups.items()]
        head = ("Language", "Questions", "In-Match", "of these not at token borders", "other script", "lost to Unicode")
        yield Extra("Where the scorers disagree", head, tuple(rows), "disagreements.csv")


def _question(pair: Pair, layout: Layout) -> Question:
    written = (text_of(layout.value(pair.record, "language")) or "").strip().lower()
    answers = (pair.answer,) if isinstance(pair.answer, str) else pair.answer
    golds = tuple(gold for gold in answers if normalize(gold))
    return Question(
        id=pair.id,
        image=pair.image,
        text=pair.question,
        golds=golds,
        language=_CODES.get(written, written),
        groups={"answer": "text" if any(c.isalpha() for gold in golds for c in gold) else "number"},
        split=pair.split,
        reference=pair.answer if isinstance(pair.answer, str) else list(pair.answer),
        image_name=pair.image_name,
    )


def _score(prediction: str, question: Question) -> Scored:
    found = any(in_match(prediction, gold) for gold in question.golds)
    tokens = found and any(in_match_tokens(prediction, gold) for gold in question.golds)
    scripts = [other_script(prediction, gold, question.language) for gold in question.golds]
    other = None if None in scripts or not scripts else all(scripts)
    flags = ["within-a-token"] * (found and not tokens) + ["other-script"] * bool(other)
    if not found and any(in_match_unicode(prediction, gold) for gold in question.golds):
        flags.append("unicode-form")
    values = {
        "in_match": float(found),
        "in_match_tokens": float(tokens),
        "other_script": None if other is None else float(other),
    }
    compared = normalize(prediction)
    return Scored(values, compared, status_of(prediction, compared, right=found), tuple(flags))


def _disagreements(results: Sequence[Result]) -> tuple[int, ...]:
    flags = Counter(flag for result in results for flag in result.scored.flags)
    found = sum(result.scored.values["in_match"] == 1 for result in results)
    return len(results), found, flags["within-a-token"], flags["other-script"], flags["unicode-form"]

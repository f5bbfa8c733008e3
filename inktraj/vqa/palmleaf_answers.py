"""PalmLeaf-VQA's answers: brought to canonical form, and compared as sets.

Conventions
-----------
* An answer is a set of canonical labels. A single label, a yes or no and a count are sets of one, so that one formula
  serves all; order and repetition do not count, but repeated labels are told of.
* The rules are those which the paper names (arXiv 2609.31651, sections 4.3, A.7 and C.1): case, white space,
  punctuation, aliases of script and collection names, yes and no, integers as numerals or words, unordered sets. Its
  own code was not to be had; where the paper leaves a case open, the rule here stands at the function that decides it.
* No meaning is guessed: a sentence around a label ("the script is Khmer") stays a sentence, and is wrong. What a count
  or a yes is can be told within a sentence, so there it is read.
* Where nothing can be read the set is empty and the status says why: ``empty``, ``refused`` or ``unparsable``. Such an
  answer scores 0 everywhere; it is never left out. An answer that begins as a refusal is one; a refusal further on, in
  any of the languages that `inktraj.parse` knows, is one where the answer says nothing else that can be read.
* Precision, recall, F1 and Jaccard of two empty sets are 1, of an empty and another set 0.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from inktraj.io.files import read_text
from inktraj.parse.refusals import is_refusal

Kind = Literal["labels", "binary", "count"]
"""What an answer is made of."""

Status = Literal["answered", "empty", "refused", "unparsable"]
"""What became of an answer; all but the first have no labels."""

NO_LABELS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in canonical form.

    Parameters
    ----------
    labels
        The canonical labels; ``"yes"`` or ``"no"``, or a decimal numeral, for binary questions and counts.
    status
        What became of it; labels are empty for all but ``"answered"``.
    repeated
        How many labels were named again.
    """

    labels: frozenset[str]
    status: Status = "answered"
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class SetScores:
    """One answer against its reference, as sets; all in 0–1."""

    exact: float
    precision: float
    recall: float
    f1: float
    jaccard: float


def score_sets(predicted: frozenset[str], reference: frozenset[str]) -> SetScores:
    """Compare two sets of labels: complete equality, precision, recall, F1 and Jaccard."""
    if predicted == reference:
        return _ALL_RIGHT
    common = len(predicted & reference)
    if not common:
        return _ALL_WRONG
    both = len(predicted) + len(reference)
    return SetScores(0.0, common / len(predicted), common / len(reference), 2 * common / both, common / (both - common))


_ALL_RIGHT, _ALL_WRONG = SetScores(1, 1, 1, 1, 1), SetScores(0, 0, 0, 0, 0)


# Text to one form


class _Plain(dict[int, str]):
    """A table for `str.translate`: apostrophes and invisible characters vanish, other punctuation becomes space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)
        if char in _DROPPED:
            out = ""
        elif char == "&":
            out = " and "
        else:
            out = " " if kind[0] in "PSZC" else char
        self[code] = out
        return out


_DROPPED = frozenset("'’‘ʼ`´\u00ad\u034f\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f")
_PLAIN = _Plain()


@lru_cache(maxsize=65536)
def plain(text: str) -> str:
    """Return text without case, punctuation and surplus white space; NFKC; ``&`` is ``and``.

    Combining marks stay, since Tamil, Khmer and others write vowels with them. Doing it again changes nothing.
    """
    if text.isascii():
        return " ".join(text.lower().translate(_PLAIN).split())
    while True:  # where a character goes, a mark may meet its letter: seldom more than one round
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        folded = " ".join(unicodedata.normalize("NFKC", folded.translate(_PLAIN)).split())
        if folded == text:
            return folded
        text = folded


def _bare(text: str) -> str:
    """Return a plain text without diacritics: names are written with and without."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFD", text) if not "\u0300" <= c <= "\u036f")


# Names


def read_names() -> dict[str, tuple[str, ...]]:
    """Return the canonical names of scripts and collections with their other spellings."""
    table = tomllib.loads(read_text(Path(__file__).with_name("palmleaf_names.toml")))
    return {name: tuple(others) for name, others in table.items()}


@lru_cache(maxsize=1)
def _spellings() -> Mapping[str, str]:
    return {spelling: name for name, others in read_names().items() for spelling in (name, *others)}


_AROUND = frozenset(
    [
        "the",
        "aksara",
        "palm",
        "leaf",
        "script",
        "scripts",
        "manuscript",
        "manuscripts",
        "collection",
        "language",
        "text",
    ]
)

_MOST_WORDS = 8


def _name(label: str) -> str | None:
    """Return the script or collection which a plain label names, with or without words such as "script"; else None."""
    spellings, words = _spellings(), _bare(label).split()
    start, end = 0, len(words)
    if end > _MOST_WORDS:
        return None
    while start < end:
        if (found := spellings.get(" ".join(words[start:end]))) is not None:
            return found
        if words[end - 1] in _AROUND:
            end -= 1
        elif words[start] in _AROUND:
            start += 1
        else:
            return None
    return None


# Numbers

_VALUES = {
    **{"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9},
    **{"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16},
    **{"seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50},
    **{"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90},
}
_NUMERALS = {word: str(value) for word, value in _VALUES.items()}
_WORD = "|".join([*_VALUES, "hundred"])
_NUMBER = re.compile(
    rf"(?P<numeral>(?<![\w.,])[-−]?\d+(?:[.,]\d+)*(?!\w))|(?P<words>\b(?:{_WORD})(?:(?:\s+and\s+|[\s-]+)(?:{_WORD}))*\b)"
)
_LONGEST_NUMERAL = 18  # characters; nothing in an image is so many
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+|\d+(?:\.0{1,2})?")
_MULTIPLE = re.compile(
    rf"(?:\b(?:{_WORD})|\d)[\s-]+(?:thousand|million|billion|dozen|score|lakh|crore|half|third|quarter|first|second|"
    r"fourth|fifth|sixth|seventh|eighth|ninth)s?\b|\band a (?:half|third|quarter)\b|\bdozens?\b"
)
"""What makes another number of the one beside it, or none that is whole."""
_RAISED = ("<super>", "<sub>", "<fraction>")
_BOUND = re.compile(
    r"(?:(?:more|less|fewer|greater) than|at least|at most|over|under|above|below|up to|[<>≤≥])\s*(?:\d|(?:"
    + _WORD
    + r")\b)|\d\s*\+|\bor (?:more|fewer|less)\b"
)
_NOTHING = frozenset(["none", "nil", "nothing", "no lines", "no visible lines", "no text lines", "there are no lines"])


def parse_count(text: str) -> int | None:
    """Return the whole number which a text names, in numerals of any script or in English words; else None.

    All numbers in the text must be the same one: "5 (five) lines" is 5, while "4-5" and "5 lines on 2 sides" are none.
    Neither are bounds ("more than 5", "5+"), fractions, negative numbers, "two dozen", ordinals, and "1.000", which is
    a thousand to some.
    """
    if not text.isascii() and any(unicodedata.decomposition(char).startswith(_RAISED) for char in text):
        return None  # 5² is not 52, nor 5½ 51⁄2
    text = unicodedata.normalize("NFKC", text).casefold()
    if _BOUND.search(text) or _MULTIPLE.search(text):
        return None
    found = {_value(match) for match in _NUMBER.finditer(text)}
    if not found:
        return 0 if plain(text) in _NOTHING else None
    return found.pop() if len(found) == 1 else None


def _value(match: re.Match[str]) -> int | None:
    if match["words"] is not None:
        return _spelled(re.split(r"[\s-]+", match["words"]))
    numeral = match["numeral"]
    if len(numeral) > _LONGEST_NUMERAL or not _GROUPED.fullmatch(numeral):
        return None
    return int(numeral.partition(".")[0].replace(",", ""))


def _spelled(words: Iterable[str]) -> int | None:
    """Return the value of English number words below 1,000; None where they are no single number ("four five")."""
    total = below = 0  # hundreds, and what follows them
    room = 100  # what comes next is smaller than this
    for word in words:
        if word == "and":
            continue
        if word == "hundred":
            if total or not 0 < below < 10:
                return None
            total, below, room = below * 100, 0, 100
            continue
        value = _VALUES[word]
        if value >= room:
            return None
        below, room = below + value, 10 if value >= 20 else 0
    return total + below


# Yes and no

_YES_NO = {
    **dict.fromkeys(["yes", "y", "true", "yeah", "yep", "correct", "present", "visible"], "yes"),
    **dict.fromkeys(["no", "n", "false", "nope", "incorrect", "absent", "not present", "not visible", "none"], "no"),
}


def parse_yes_no(text: str) -> str | None:
    """Return ``"yes"`` or ``"no"``; None where the text says neither, or both.

    One of the known words alone, or a text that begins with yes or no, such as "No holes are visible".
    """
    text = plain(text)
    if (known := _YES_NO.get(text)) is not None:
        return known
    words = text.split()
    if not words or words[0] not in ("yes", "no") or {"yes", "no"} <= set(words):
        return None
    if words[0] == "no" and words[1:2] and words[1] in _NO_ANSWER:
        return None
    return words[0]


_NO_ANSWER = frozenset(["idea", "answer", "comment", "information", "clue"])

# Sets of labels

_WRAPPED = re.compile(
    r"```\w*\s(.*)```|\\(?:boxed|text|mathrm|textbf)\s*\{(.*)\}|<answer>(.*)</answer>", re.IGNORECASE | re.DOTALL
)
_ANSWER_NAME = re.compile(r"(?:final[ _]?)?(?:answers?|labels?|prediction|response)", re.IGNORECASE)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.IGNORECASE | re.DOTALL)
_PREFIX = re.compile(r"[*_#>]*\s*(?:final\s+)?answer[*_]*\s*[:：][*_]*\s*", re.IGNORECASE)
_SEPARATOR = re.compile(r"[,;|/+&\n\r、•·]+|\band\b")
_BULLET = re.compile(r"\A\s*(?:[-*–]\s+|\d{1,2}[.)]\s+)")
_NOT_APPLICABLE = re.compile(r"\bn\s?/\s?a\b")
_NA = "n a"
"""What is left of "N/A" as a label of a list of references."""


def split_labels(text: str, known: frozenset[str] = NO_LABELS) -> list[str]:
    """Return the labels that a text lists, in canonical form and in their order, repetitions included.

    Parameters
    ----------
    text
        Labels between commas, semicolons, bars, slashes, line breaks, "and", "&" or "+"; as a bullet list, or JSON's.
    known
        Canonical labels. One that holds a separator itself ("black and white", "wood/bamboo") is not taken apart; but
        where each of its parts is a label too, only "and" binds them.
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    if _NA not in known:
        text = _NOT_APPLICABLE.sub("na", text)
    if (whole := canonical(text)) in known and not _listed(text, known):
        return [whole]
    text = text.strip("[](){} \t\r\n")
    ends = [*(match.span() for match in _SEPARATOR.finditer(text)), (len(text), len(text))]
    starts = [0, *(end for _, end in ends)]
    most = _most_parts(known)
    out: list[str] = []
    first = 0
    while first < len(ends):
        last = min(len(ends), first + most) - 1
        while last > first:
            piece = text[starts[first] : ends[last][0]]
            if canonical(piece) in known and not _listed(piece, known):
                break
            last -= 1
        piece = text[starts[first] : ends[last][0]]
        label = canonical(piece)
        out.append(label if label in known else canonical(_BULLET.sub("", piece)))
        first = last + 1
    return [label for label in out if label]


def _listed(text: str, known: frozenset[str]) -> bool:
    """Whether a text is a list of known labels, between something else than "and"."""
    between = _SEPARATOR.findall(text)
    if not any(each.strip() not in ("and", "&") for each in between):
        return False
    return all((label := canonical(part)) in known or not label for part in _SEPARATOR.split(text))


@lru_cache(maxsize=256)
def _most_parts(known: frozenset[str]) -> int:
    """Return how many parts the longest of the labels can have, at least 1: its words."""
    return max((len(label.split()) for label in known), default=1)


@lru_cache(maxsize=65536)
def canonical(label: str) -> str:
    """Return one label in canonical form: plain, a script or collection by its own name, numbers in numerals."""
    label = plain(label)
    if (name := _name(label)) is not None:
        return name
    return " ".join(_NUMERALS.get(word, word) for word in label.split())


# Answers

_REFUSAL = re.compile(
    r"(?:i am |im )?(?:sorry|unable to|not able to|unsure|not sure)\b|as an ai\b"
    r"|(?:i |it |this |we )?(?:cannot|cant|can not|could not|couldnt) (?:be|tell|determine|see|identify|answer|say|"
    r"view|read|count|confirm|provide|help|assist|make)\b"
    r"|(?:i |we )(?:do not|dont|will not|wont|am not able|am unable)\b"
    r"|it is (?:not possible|impossible)\b|(?:there is )?not enough information\b|insufficient information\b"
    r"|(?:unknown|unclear|indeterminate|undetermined|undeterminable|unidentifiable)$"
)


def _unwrapped(text: str) -> str:
    """Return what stands within a code fence, JSON with one answer, ``\\boxed``, ``\\text`` or ``<answer>``."""
    if match := _WRAPPED.fullmatch(text):
        return str(match[match.lastindex or 0]).strip()
    if text.startswith("{"):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return text
        answers = [value for name, value in record.items() if _ANSWER_NAME.fullmatch(name)]
        if len(answers) == 1:
            value = answers[0]
            return "; ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text


@lru_cache(maxsize=65536)
def normalize_answer(text: str, kind: Kind = "labels", known: frozenset[str] = NO_LABELS) -> Answer:
    """Bring an answer to canonical form.

    Parameters
    ----------
    text
        What was answered. What is wrapped around it goes: a code fence, JSON's ``{"answer": …}``, ``\\boxed{…}``,
        ``<answer>…</answer>``, and "Answer:" before it.
    kind
        What the question asks for.
    known
        Canonical labels, for `split_labels`. A label among them is no refusal ("unclear" may be one).
    """
    text = _THOUGHT.sub("", text, count=1).strip()
    for _ in range(3):  # JSON in a fence, \\text in \\boxed
        if text.startswith(("`", "\\", "{", "<")):
            text = _unwrapped(text)
    text = text[match.end() :] if (match := _PREFIX.match(text)) else text
    said = plain(text)
    if not said:
        return Answer(NO_LABELS, "empty")
    if canonical(said) not in known and _REFUSAL.match(said):
        return Answer(NO_LABELS, "refused")
    if kind == "labels":
        labels = split_labels(text, known)
        unique = frozenset(labels)
        if unique and (unique & known or not is_refusal(text)):
            return Answer(unique, repeated=len(labels) - len(unique))
    else:
        value = parse_yes_no(text) if kind == "binary" else parse_count(text)
        if value is not None:
            return Answer(frozenset([str(value)]))
    return Answer(NO_LABELS, "refused" if is_refusal(text) else "unparsable")


def normalize_reference(value: str | Iterable[str], kind: Kind = "labels") -> Answer:
    """Bring a reference to canonical form: a text as an answer is, each entry of a list as one label.

    A reference is never a refusal. An empty list is ``{"none"}``: that there is nothing is an answer too.
    """
    if not isinstance(value, str):
        labels = [label for each in value if (label := canonical(each))] or ["none"]
    elif kind == "labels":
        labels = split_labels(value)
    else:
        number = parse_yes_no(value) if kind == "binary" else parse_count(value)
        labels = [] if number is None else [str(number)]
    unique = frozenset(labels)
    if kind != "labels" and len(unique) > 1:
        return Answer(NO_LABELS, "unparsable")  # two counts, of which nobody knows which is meant
    return Answer(unique, "answered" if unique else "unparsable", len(labels) - len(unique))

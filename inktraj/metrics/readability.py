"""Whether a trajectory can be read: the text that a recogniser reads in its drawing, against what it should say.

Conventions
-----------
* The prediction (`reading`) comes first, the reference (`target`) second. N counts the target's units.
* Both texts are first brought to one form by `TextRules`, which stands in the signature.
* S, D and I are the substitutions, deletions and insertions which turn the target into the reading: a deletion is a
  unit of the target that was not read, an insertion one that was read and is not there. H, the hits, are the others:
  N = H + S + D.
* CR = (N − S − D)/N, AR = (N − S − D − I)/N (inkGround; long used in recognition of handwritten Chinese, Wang et al.
  2012). CER and WER = (S + D + I)/N over characters and words. AR = 1 − CER, so that it may be negative; nothing is
  clipped.
* The fewest edits do not fix S, D and I: "ab" read as "b·" costs two, either as two substitutions or as a deletion, a
  hit and an insertion. Among the alignments with the fewest edits those with the **most hits** are meant. All of them
  have the same S, D and I, so CR is defined, whatever an implementation's order of ties. (AR, CER and WER need no such
  rule.)
* The headline is micro: sums of counts over all samples. Macro, the mean over samples, has its own name.
* N = 0 (nothing was to be read): the sample has no value, and is left out of macro means; its insertions still count
  in the sums.
* An invalid output (reading None) has AR = CR = 0 and CER = WER = 1: all of its target is deleted.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rapidfuzz.distance import Levenshtein

from inktraj.errors import DataError
from inktraj.metrics.signature import Signature
from inktraj.metrics.statistics import mean

Unit = Literal["codepoint", "combining"]
UnicodeForm = Literal["nfc", "nfkc", "none"]
Case = Literal["keep", "fold"]
Punctuation = Literal["keep", "drop"]
Space = Literal["collapse", "keep"]


@dataclass(frozen=True, slots=True)
class TextRules:
    """How texts are brought to one form before they are compared.

    Parameters
    ----------
    unit
        What a character is: a ``"codepoint"``, as in other tools, or a ``"combining"`` character sequence (The Unicode
        Standard, D56): a base with all combining marks and joiners behind it. The second is for scripts whose vowel
        signs have code points of their own, such as Devanagari, Thai and Tamil.
    unicode
        Normalisation form: ``"nfc"``, ``"nfkc"`` (ligatures, full-width letters and superscripts become plain), or
        ``"none"``.
    case
        ``"keep"``, or ``"fold"`` (Unicode case folding: ß and ss are the same).
    punctuation
        ``"keep"``, or ``"drop"``: characters of Unicode's general category P vanish.
    space
        ``"collapse"``: runs of white space become one space, those at the ends vanish; or ``"keep"``.

    Raises
    ------
    DataError
        A rule has another value.
    """

    unit: Unit = "codepoint"
    unicode: UnicodeForm = "nfc"
    case: Case = "keep"
    punctuation: Punctuation = "keep"
    space: Space = "collapse"

    def __post_init__(self) -> None:
        for name, known in _RULES.items():
            if getattr(self, name) not in known:
                raise DataError(f"{name} is {getattr(self, name)!r}, expected {' or '.join(map(repr, known))}")

    def apply(self, text: str) -> str:
        """Bring a text to the form in which it is compared."""
        text = self._normalized(text)
        if self.case == "fold":
            text = self._normalized(text.casefold())
        if self.punctuation == "drop":
            # Once more: where a character goes, a mark may meet its letter.
            text = self._normalized("".join(c for c in text if unicodedata.category(c)[0] != "P"))
        return " ".join(text.split()) if self.space == "collapse" else text

    def characters(self, text: str) -> Sequence[str]:
        """Split a text that `apply` returned into its units."""
        return text if self.unit == "codepoint" else _combining_sequences(text)

    def fields(self) -> dict[str, str]:
        """Return the rules as a signature's fields, in its order."""
        return {name: getattr(self, name) for name in _RULES}

    def _normalized(self, text: str) -> str:
        return text if self.unicode == "none" else unicodedata.normalize(_FORMS[self.unicode], text)


_RULES: dict[str, tuple[str, ...]] = {
    "unit": get_args(Unit),
    "unicode": get_args(UnicodeForm),
    "case": get_args(Case),
    "punctuation": get_args(Punctuation),
    "space": get_args(Space),
}
_FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}
_JOINERS = "\u200c\u200d"


def _combining_sequences(text: str) -> list[str]:
    """Split text into combining character sequences; those that start the text have no base."""
    out: list[str] = []
    for c in text:
        if out and (c in _JOINERS or unicodedata.category(c)[0] == "M"):
            out[-1] += c
        else:
            out.append(c)
    return out


@dataclass(frozen=True, slots=True)
class EditCounts:
    """Edits which turn a target into a reading, and the shares made of them; counts of several samples add up."""

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    def __add__(self, other: EditCounts) -> EditCounts:
        return EditCounts(
            self.hits + other.hits,
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
        )

    @property
    def n(self) -> int:
        """N, the units of the target."""
        return self.hits + self.substitutions + self.deletions

    @property
    def distance(self) -> int:
        """S + D + I, the Levenshtein distance."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def correct_rate(self) -> float | None:
        """(N − S − D)/N, in 0–1; None where N = 0."""
        return self.hits / self.n if self.n else None

    @property
    def accurate_rate(self) -> float | None:
        """(N − S − D − I)/N, at most 1; None where N = 0."""
        return (self.hits - self.insertions) / self.n if self.n else None

    @property
    def error_rate(self) -> float | None:
        """(S + D + I)/N, at least 0; None where N = 0."""
        return self.distance / self.n if self.n else None


def count_edits(reading: Sequence[Hashable], target: Sequence[Hashable]) -> EditCounts:
    """Count the fewest edits which turn the target into the reading, with the most hits among the ways to do so.

    Parameters
    ----------
    reading, target
        Sequences of units: a string of characters, or a list of words.
    """
    codes: dict[Hashable, int] = {}
    a, b = ([codes.setdefault(unit, len(codes)) for unit in units] for units in (target, reading))
    # For a given distance the hits are most where the substitutions are fewest, for 2H = N + M − S − distance. With one
    # edit as `unit` and a substitution dearer by 1, which can never add up to another edit, both are found at once.
    unit = min(len(a), len(b)) + 1
    distance, substitutions = divmod(Levenshtein.distance(a, b, weights=(unit, unit, unit + 1)), unit)
    hits = (len(a) + len(b) - substitutions - distance) // 2
    return EditCounts(hits, substitutions, len(a) - substitutions - hits, len(b) - substitutions - hits)


@dataclass(frozen=True, slots=True)
class Rates:
    """Edits over characters and over words, and the rates made of them; each is None where the target is empty."""

    characters: EditCounts
    words: EditCounts

    @property
    def ar(self) -> float | None:
        """Accurate rate over characters; at most 1 and maybe negative."""
        return self.characters.accurate_rate

    @property
    def cr(self) -> float | None:
        """Correct rate over characters, in 0–1."""
        return self.characters.correct_rate

    @property
    def cer(self) -> float | None:
        """Character error rate."""
        return self.characters.error_rate

    @property
    def wer(self) -> float | None:
        """Word error rate."""
        return self.words.error_rate


@dataclass(frozen=True, slots=True)
class Readability(Rates):
    """How readable one sample is.

    Parameters
    ----------
    characters, words
        The edits, over characters and over words.
    valid
        False where there was no usable output.
    """

    valid: bool = True


_DEFAULT_RULES = TextRules()


def score_text(reading: str | None, target: str, rules: TextRules = _DEFAULT_RULES) -> Readability:
    """Compare what was read with what should be read, for one sample.

    Parameters
    ----------
    reading
        What the recogniser read in the rendered prediction, "" for nothing; None where the prediction was missing or
        invalid.
    target
        What it should say.
    rules
        How the texts are brought to one form. Words are what white space separates.

    Raises
    ------
    DataError
        A text is no string.
    """
    for name, text in (("reading", reading), ("target", target)):
        if not isinstance(text, str) and (name == "target" or text is not None):
            raise DataError(f"the {name} is {type(text).__name__}, expected text; is it a Reading? give its .text")
    target = rules.apply(target)
    if reading is None:
        deleted = len(rules.characters(target)), len(target.split())
        return Readability(EditCounts(deletions=deleted[0]), EditCounts(deletions=deleted[1]), valid=False)
    reading = rules.apply(reading)
    return Readability(
        count_edits(rules.characters(reading), rules.characters(target)), count_edits(reading.split(), target.split())
    )


@dataclass(frozen=True, slots=True)
class ReadabilitySummary(Rates):
    """How readable many samples are together.

    Parameters
    ----------
    characters, words
        Sums of the edits, of which `ar`, `cr`, `cer` and `wer` are made (micro).
    macro_ar, macro_cr, macro_cer, macro_wer
        Means over the samples; None where there is none with a value.
    samples
        Number of samples.
    empty_targets
        Those of them without a target, which have no value of their own.
    """

    macro_ar: float | None
    macro_cr: float | None
    macro_cer: float | None
    macro_wer: float | None
    samples: int
    empty_targets: int

    @classmethod
    def of(cls, samples: Iterable[Readability]) -> ReadabilitySummary:
        """Sum up samples."""
        known = list(samples)
        return cls(
            characters=sum((s.characters for s in known), EditCounts()),
            words=sum((s.words for s in known), EditCounts()),
            macro_ar=mean([s.ar for s in known]),
            macro_cr=mean([s.cr for s in known]),
            macro_cer=mean([s.cer for s in known]),
            macro_wer=mean([s.wer for s in known]),
            samples=len(known),
            empty_targets=sum(s.characters.n == 0 for s in known),
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers and names."""
        out: dict[str, Any] = {name: getattr(self, name) for name in ("ar", "cr", "cer", "wer")}
        for name in ("macro_ar", "macro_cr", "macro_cer", "macro_wer", "samples", "empty_targets"):
            out[name] = getattr(self, name)
        for name in ("characters", "words"):
            counts: EditCounts = getattr(self, name)
            out[name] = {key: getattr(counts, key) for key in ("n", *EditCounts.__slots__)}
        return out


@dataclass(frozen=True, slots=True)
class CorpusReadability:
    """Readability of a corpus.

    Parameters
    ----------
    all
        Over all samples, those without usable output with AR = CR = 0.
    valid
        Over those with usable output.
    coverage
        Share of these; None where there are no samples.
    samples
        One by one, in order.
    signature
        What was compared, how, and by whom it was read.
    warning
        Why these figures must be read with care; "" where nothing is known against them.
    """

    all: ReadabilitySummary
    valid: ReadabilitySummary
    coverage: float | None
    samples: tuple[Readability, ...]
    signature: Signature
    warning: str = ""


def score_texts(
    readings: Sequence[str | None],
    targets: Sequence[str],
    *,
    recognizer: str,
    rules: TextRules = _DEFAULT_RULES,
    references_filtered_by: str | None = None,
) -> CorpusReadability:
    """Compare what was read with what should be read, for many samples.

    Parameters
    ----------
    readings
        What the recogniser read in each rendered prediction; None where that was missing or invalid.
    targets
        What each should say.
    recognizer
        Name and version of the recogniser, as ``f"{recognizer.name} {recognizer.version}"``.
    rules
        How the texts are brought to one form.
    references_filtered_by
        Name and version of the recogniser by which the references were kept or dropped, where one was. Where it is the
        same, `CorpusReadability.warning` asks for an independent one.

    Raises
    ------
    DataError
        There are not as many readings as targets, or the recogniser has no name.
    """
    if len(readings) != len(targets):
        raise DataError(f"{len(readings)} readings for {len(targets)} targets; give one for each, None for no output")
    signature = readability_signature(recognizer, rules)
    samples = tuple(score_text(a, b, rules) for a, b in zip(readings, targets, strict=True))
    usable = [s for s in samples if s.valid]
    return CorpusReadability(
        ReadabilitySummary.of(samples),
        ReadabilitySummary.of(usable),
        len(usable) / len(samples) if samples else None,
        samples,
        signature,
        independence_warning(recognizer, references_filtered_by),
    )


def readability_signature(recognizer: str, rules: TextRules = _DEFAULT_RULES) -> Signature:
    """Return the signature of AR, CR, CER and WER; DataError where the recogniser has no name."""
    if not isinstance(recognizer, str) or not recognizer.strip():
        raise DataError(f"the recogniser is {recognizer!r}, expected its name and version, such as 'ppocr 1.0'")
    return Signature.of("readability", **rules.fields(), split="most-hits", recognizer=recognizer.strip())


def independence_warning(recognizer: str, references_filtered_by: str | None) -> str:
    """Say why readings by the recogniser that chose the references are no evidence; "" where it is another one."""
    if not references_filtered_by:
        return ""
    own, other = recognizer.split(), references_filtered_by.split()
    if [name.casefold() for name in own[:1]] != [name.casefold() for name in other[:1]]:
        return ""
    who = "the same recogniser" if own == other else f"another version of it, {' '.join(other)},"
    return (
        f"the predictions are read by {' '.join(own)}, and by {who} the references were kept or dropped: they favour "
        "what it can read, so that these figures are too good; read with an independent recogniser"
    )

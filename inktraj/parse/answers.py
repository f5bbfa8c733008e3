"""Which points of a reply are its answer: not those of the prompt's example, of thoughts, of earlier attempts.

Points between which only brackets, separators and a few words stand form a *block*. A block ends too where the form
changes (from a point in prose to a list, from two numbers to three) behind a word or a sentence, and where the same
shape begins again under another heading. The answer is the last complete block; a block of few points (numbers
mentioned in prose) does not displace one that is five times as long.

Where the last block does not say that it takes the place of the one before (``wait``, ``final``, ``corrected`` …), or
where the reply offers a choice (``alternatively``, ``option``, ``or``), the answer is in doubt: `Chosen.doubt`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.dialects import formed
from inktraj.parse.lexer import (
    AHEAD,
    ANEW,
    BLANK,
    DOWN,
    FENCE,
    HERE,
    LETTERS,
    NEWLINE,
    OTHER,
    PARTED,
    SENTENCE,
    STOP,
    STROKE,
    UP,
    Lexed,
)
from inktraj.parse.reading import CUT, GOOD, Reading
from inktraj.parse.vocabulary import among, labels

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_PROSE = 3  # so many words that mean nothing between points part two blocks
_FEW = 0.2  # share of the longest block's points below which a block does not displace it
_POINTING = ("x145y122", "objects", "molmo", "molmo-coords")
FEW = 2
"""So many points that stand in no list and have no s are a box or a place rather than ink, if words stand around."""
_ECHOES = 20  # so many repetitions of the example are looked for
_MENTIONED = 4  # so many points without list and s may be a mention in prose

_CLOSING = re.compile(
    r"</(?:think|thinking|reasoning|thought|scratchpad)\s*+>|◁/think▷|<\|end_of_thought\|>", re.IGNORECASE
)
_OPENING = re.compile(
    r"<(?:think|thinking|reasoning|thought|scratchpad)\s*+>|◁think▷|<\|begin_of_thought\|>", re.IGNORECASE
)
_REPLACES = re.compile(
    r"\b(?:wait|actually|correct|final|answer|revis|refin|instead|sorry|oops|apolog|mistake|wrong|not right|misread"
    r"|try\b|let me (?:re|fix)|attempt|retry|redo|draft|updat|adjust|improv|rough|output|solution|combined|together"
    r"|pixel|convert|scaled|(?:full|complete|whole|entire) (?:path|traj|list|ink|word|set))",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:alternativ|option|version|variant|or\b|otherwise|either|another|if you prefer"
    r"|(?:answer|solution|candidate|guess|hypothesis)\W{1,3}(?:[a-d]|\d)\b"
    r"|(?:first|second|other) (?:guess|answer|candidate|possib|interpret)"
    r"|möglichkeit|opci[oó]n|opzione|opç|variante|ou bien|oder\b)"
    r"|方案|选项|選項|版本|或者|вариант|विकल्प|خيار|بديل",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r"\balternativ", re.IGNORECASE)
_OFFERED = "the reply offers a choice; the last answer was taken"
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_WORD = re.compile(r"[^\W\d_]{3,}")
_SHAPE = 3  # so many points have a shape
_BOX = re.compile(
    r"\b(?:box|bbox|bounds|corners?|size|spans|extent|region|area|image|page|cent(?:er|re)|middle|start|end)\b",
    re.IGNORECASE,
)
_HEAD = 80  # characters before the first point that say what it is
_ORDINALS = labels(
    *("stroke", "strokes", "no", "nr", "number", "part", "segment", "line"),
    *("trazo", "trait", "strich", "traço", "tratto", "streek", "strek"),
)
_PLACED = re.compile(r"\b(?:at|near|around|bei|à|en)\s*\Z", re.IGNORECASE)
_FEWEST_PLACES = 2
_CODE = 12  # so many words of code may stand between calls of one function
_MOST_TIMES = 4  # so often an answer may be given in whole; more is a loop
_PAIRS = 20  # so many pairs of lists are compared
_ANSWER = re.compile(r"<answer\s*+>|<\|begin_of_box\|>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Zone:
    """A stretch of the reply that holds no answer: kind (``thinking``, ``echo``), start, end."""

    kind: str
    start: int
    end: int

    @property
    def text(self) -> str:
        """What is told of it."""
        where = "the reply thinks here" if self.kind == "thinking" else "the prompt's example is repeated here"
        return f"{where}: no points are taken"


def without_zones(text: str, excluded: list[Zone]) -> str:
    """Return a text of the same length in which zones are blank, but for a word that parts answers."""
    for zone in excluded:
        blank = "answer".ljust(zone.end - zone.start)[: zone.end - zone.start]
        text = text[: zone.start] + blank + text[zone.end :]
    return text


def zones(text: str, echo: str) -> list[Zone]:
    """Return where a reply thinks, and where it repeats the prompt's example.

    Parameters
    ----------
    text, echo
        The reply and the example as `characters.plain` returns them; "" where there is no example.
    """
    found: list[Zone] = []
    begin = 0
    if "<" not in text and "◁" not in text:
        return [Zone("echo", a, b) for a, b in _echoes(text, echo)]
    closing = [m.end() for m in _CLOSING.finditer(text)]
    if closing:
        begin = closing[-1]
    opening = next((m.start() for m in _OPENING.finditer(text, begin)), -1)
    if opening >= 0:
        found.append(Zone("thinking", opening, len(text)))
    answer = [m.end() for m in _ANSWER.finditer(text, begin, opening if opening >= 0 else len(text))]
    begin = answer[-1] if answer else begin
    if begin:
        found.append(Zone("thinking", 0, begin))
    return found + [Zone("echo", a, b) for a, b in _echoes(text, echo)]


def _echoes(text: str, echo: str) -> list[tuple[int, int]]:
    """Return where the example stands in a reply; white space does not count."""
    wanted = "".join(echo.split())
    if len(wanted) < 8:
        return []
    solid = np.flatnonzero([not c.isspace() for c in text]) if len(text) < 1 << 17 else None
    if solid is None:  # a long reply: as it is written, or not at all
        at = text.find(echo.strip())
        return [(at, at + len(echo.strip()))] if at >= 0 else []
    squeezed = "".join(text.split())
    if len(squeezed) != len(solid):
        return []
    found: list[tuple[int, int]] = []
    at = squeezed.find(wanted)
    while at >= 0 and len(found) < _ECHOES:
        found.append((int(solid[at]), int(solid[at + len(wanted) - 1]) + 1))
        at = squeezed.find(wanted, at + len(wanted))
    return found


@dataclass(frozen=True, slots=True)
class Block:
    """Points lo … hi − 1 of a reading, and whether what holds them is closed."""

    reading: Reading
    lo: int
    hi: int
    complete: bool


def between(lexed: Lexed, reading: Reading) -> tuple[IntArray, IntArray]:
    """Return what stands before each point since the point before: bits of the lexer, and words of prose."""
    first = reading.ends[:, 0]
    since = np.append(first[:1], np.maximum(reading.ends[:-1, 1], reading.ends[:-1, 0]) + 1)
    since = np.minimum(since, first)
    bits = np.append(lexed.gap, 0)
    # Behind another number, say that of a stroke, nothing is said of the point before it.
    later = first[since < first]
    bits[later] = (bits[later] & ~(HERE | UP | DOWN)) | np.where(bits[later] & HERE, AHEAD, 0)
    words = np.append(0, np.cumsum(np.append(lexed.words, 0)))
    ranges = np.stack([since, first + 1], axis=1).ravel()
    return np.bitwise_or.reduceat(bits, np.minimum(ranges, len(bits) - 1))[::2], words[first + 1] - words[since]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The answer, how many points that can be used stand elsewhere, and why it may be another one ("": it may not)."""

    block: Block
    others: int
    doubt: str


# Columns of a table of blocks.
_LISTED = 2  # a block in a list; 1: with s or names, 0: bare
_WHICH, _LO, _HI, _GOOD, _COMPLETE, _START, _FORMED, _END = range(8)


def choose(lexed: Lexed, readings: list[Reading]) -> Chosen | None:
    """Return the block that is the answer, or None where there is none.

    Of the blocks that are not short beside the longest, it is the last complete one, or the last if none is complete.
    """
    made = [_blocks(lexed, reading) for reading in readings]
    rows = np.concatenate([np.column_stack([np.full(len(b), i), b]) for i, b in enumerate(made)]) if made else None
    if rows is None or not len(rows):
        return None
    good, complete, start, is_formed = rows[:, _GOOD], rows[:, _COMPLETE], rows[:, _START], rows[:, _FORMED]
    wanted = good >= max(_FEW * good.max(), 1)
    if (wanted & (is_formed > 0)).any():  # "The bar begins at (170, 120)" is a mention of a point, no answer
        wanted &= (is_formed > 0) | (good > _MENTIONED)
    wanted &= (good > FEW) | (is_formed == _LISTED) | (2 * good > good.max())
    if (wanted & (is_formed == _LISTED)).any():  # "(145, 122, 1) means that a stroke starts" explains a list
        wanted &= (is_formed == _LISTED) | (good > FEW)
    candidates = np.flatnonzero(wanted)
    if not len(candidates):
        return None
    whole = candidates[complete[candidates] == 1]
    pool = whole if len(whole) else candidates
    best = rows[pool[np.argmax(start[pool])]]
    which, lo, hi = best[:_GOOD].tolist()
    lo = _once(lexed, readings[which], lo, hi)
    chosen = Block(readings[which], lo, hi, bool(len(whole)))
    others = int(good.sum() - (readings[which].state[lo:hi] == GOOD).sum())
    before = candidates[start[candidates] < best[_START]]
    # One point or two in no list are an example, or a box.
    before = before[(is_formed[before] == _LISTED) | (good[before] > FEW) | (2 * good[before] > best[_GOOD])]
    heading = lexed.text[max(int(best[_START]) - _HEAD, 0) : int(best[_START])]
    doubt = _OFFERED if _ALTERNATIVE.search(heading) else ""
    if len(before):
        rival = rows[before[np.argmax(start[before])]]
        doubt = doubt or _doubt(lexed.text, readings, rival, best)
    return Chosen(chosen, others, doubt)


def _doubt(text: str, readings: list[Reading], rival: IntArray, best: IntArray) -> str:
    """Tell why the block before the answer may be the answer, or a part of it."""
    between = text[max(int(rival[_END]), 0) : int(best[_START])]
    heading = text[max(int(rival[_START]) - 60, 0) : int(rival[_START])].rpartition("\n\n")[2]
    if _CHOICE.search(between):
        return _OFFERED
    if _REPLACES.search(between) or _REPLACES.search(heading):
        return ""
    first, last = (readings[int(b[_WHICH])].xy[int(b[_LO]) : int(b[_HI])] for b in (rival, best))
    if first.shape == last.shape and np.array_equal(first, last, equal_nan=True):
        return ""
    return "several lists of points stand in the reply, and nothing says that the last takes the others' place"


def _blocks(lexed: Lexed, reading: Reading) -> IntArray:
    """Return columns _LO … _END of the table of blocks."""
    bits, words = between(lexed, reading)
    place, root = reading.span[:, 0], reading.root
    closed = lexed.closed[root] >= 0 if len(lexed.closed) else np.zeros(len(root), dtype=bool)
    one_list = np.append(False, (root[1:] == root[:-1]) & (root[1:] >= 0)) & closed
    # "Stroke 2: …" goes on; "Stroke 1: …" after other points begins anew, if words stand before it.
    last = np.maximum(reading.ends[:, 0] - 1, 0)
    between_numbers = np.append(False, reading.ends[1:, 0] - reading.ends[:-1, 1] > 1)
    foreign = between_numbers & (lexed.label[last] != 0) & ~among(lexed.label[last], _ORDINALS)
    ordinal = between_numbers & ~foreign & (lexed.value[last] != 1)
    stroke = (bits & STROKE) != 0
    goes_on = stroke & ordinal
    prose = ((bits & PARTED) != 0) & (~stroke | ((bits & ANEW) != 0))
    prose |= (words >= _PROSE) & ~goes_on
    # A point mentioned in prose has another form than those of the answer.
    listed, flagged = root >= 0, np.isfinite(reading.flag)
    usable = reading.state == GOOD
    said = (words > 0) | ((bits & (SENTENCE | LETTERS)) != 0)
    blank = (bits & (BLANK | FENCE)) != 0
    other = np.append(False, (flagged[1:] != flagged[:-1]) & usable[1:] & usable[:-1]) & (said | blank)
    other |= np.append(False, listed[1:] != listed[:-1]) & (said | blank | ((bits & OTHER) != 0))
    apart = blank & (((bits & STOP) != 0) | foreign)
    if goes_on.any():  # strokes have numbers: what stands apart and has none is no stroke
        apart |= blank & (((bits & LETTERS) != 0) | stroke)
    lists = np.append(False, (root[1:] != root[:-1]) & (root[1:] >= 0) & (root[:-1] >= 0))
    apart |= lists & ((bits & STOP) != 0) & ((bits & LETTERS) != 0)
    prose |= (other | apart | _remarks(lexed, reading, bits)) & ~goes_on
    prose |= _repeats(lexed, reading, stroke)
    prose &= ~_same_call(lexed, root, bits, words)
    lead = int(np.argmax(usable))  # numbers that make no point, on lines before the first that does
    prose[lead] |= bool(bits[lead] & (BLANK | NEWLINE))
    k = _box_before(lexed, reading, bits)
    prose[k : k + 1] = k > 0
    first = np.flatnonzero((prose & ~one_list) | (np.arange(len(reading)) == 0))
    after = np.append(first[1:], len(reading))
    good = np.add.reduceat(usable.astype(np.int64), first)
    cut = np.add.reduceat((reading.state == CUT).astype(np.int64), first) > 0
    whole = np.where(root[after - 1] >= 0, closed[after - 1], (after < len(reading)) | (not reading.broken))
    is_formed = np.maximum.reduceat(formed(reading), first).astype(np.int64)
    if reading.dialect not in ("tuples", "rows"):
        is_formed |= (good > 1) | (reading.dialect != "x145y122")
    is_formed[(root[first] >= 0) & (is_formed > 0)] = _LISTED
    end = np.maximum.reduceat(reading.span[:, 1], first)
    return np.stack([first, after, good, whole & ~cut, place[first], is_formed, end], axis=1)


def _remarks(lexed: Lexed, reading: Reading, bits: IntArray) -> BoolArray:
    """Whether words enough for a sentence stand before a point that is in no list, behind an empty line."""
    out = np.zeros(len(bits), dtype=bool)
    loose = (reading.root < 0) & ((bits & LETTERS) != 0) & ((bits & (BLANK | FENCE)) != 0)
    loose[:1] = False
    for k in np.flatnonzero(loose)[-_PAIRS:].tolist():
        gap = lexed.text[int(reading.span[k - 1, 1]) : int(reading.span[k, 0])]
        out[k] = (len(_LETTERS.findall(gap)) >= _PROSE and not bits[k] & STROKE) or bool(_BOX.search(gap))
    return out


def _box_before(lexed: Lexed, reading: Reading, bits: IntArray) -> int:
    """Return at which point the answer begins behind a line that mentions a place or two in no list; 0: at once."""
    if reading.root[0] >= 0 or bits[0] & STROKE or len(reading) <= FEW + 1:
        return 0
    line = bits[1 : FEW + 1] & NEWLINE
    if not line.any():
        return 0
    k = 1 + int(np.argmax(line != 0))
    head = lexed.text[max(int(reading.span[0, 0]) - _HEAD, 0) : int(reading.span[0, 0])].rpartition("\n")[2]
    told = _BOX.search(head) or (bits[k] & BLANK and len(_WORD.findall(head)) >= _PROSE)
    return k if told else 0


def _repeats(lexed: Lexed, reading: Reading, stroke: BoolArray) -> BoolArray:
    """Whether a list begins that has the ends or the shape of the one before, under a heading that is no stroke's."""
    root = reading.root
    out = np.zeros(len(root), dtype=bool)
    first = np.flatnonzero(np.append(True, root[1:] != root[:-1]))
    after = np.append(first[1:], len(root))
    listed = np.append(False, (root[first][1:] >= 0) & (root[first][:-1] >= 0)) & ~stroke[first]
    for k in np.flatnonzero(listed)[:_PAIRS].tolist():
        here, before = reading.xy[first[k] : after[k]], reading.xy[first[k - 1] : after[k - 1]]
        gap = lexed.text[int(reading.span[first[k] - 1, 1]) : int(reading.span[first[k], 0])]
        # Without a heading only lists that hold several strokes each are answers by themselves.
        whole = bool(_LETTERS.search(gap)) or all(
            _strokes_in(reading, a, b) > 1 for a, b in ((first[k - 1], first[k]), (first[k], after[k]))
        )
        out[first[k]] = whole and _are_alike(before, here)
    return out


def _same_call(lexed: Lexed, root: IntArray, bits: IntArray, words: IntArray) -> BoolArray:
    """Whether a point stands in the next call of the function that the point before was given to: a line of code."""
    if not (lexed.call >= 256).any():
        return np.zeros(len(root), dtype=bool)
    call = np.where(root >= 0, lexed.call[root], np.uint64(0))
    same = np.append(False, (call[1:] == call[:-1]) & (call[1:] >= 256) & (root[1:] != root[:-1]))
    return np.asarray(same & (words <= _CODE) & ((bits & (PARTED | ANEW | FENCE | STOP)) == 0))


def _strokes_in(reading: Reading, lo: int, hi: int) -> int:
    """Return how many strokes s or the lists say that points lo … hi − 1 are."""
    stroke = reading.stroke[lo:hi]
    return max(int((reading.flag[lo:hi] == 1).sum()), 1 + int((stroke[1:] != stroke[:-1]).sum()))


def _once(lexed: Lexed, reading: Reading, lo: int, hi: int) -> int:
    """Return where an answer that is given several times in whole, point for point, begins for the last time."""
    n = hi - lo
    for times in (_MOST_TIMES, *range(2, _MOST_TIMES)):
        period = n // times
        if n % times or not np.array_equal(reading.xy[lo : hi - period], reading.xy[lo + period : hi]):
            continue
        part = reading.take(slice(lo, hi))
        bits, _ = between(lexed, part)
        anew = np.arange(period, n, period)
        root = part.root
        apart = np.where(root[anew] >= 0, root[anew] != root[anew - 1], (bits[anew] & (BLANK | FENCE)) != 0)
        last = part.ends[anew, 0] - 1  # "Stroke 2: …" is another stroke, if with the same points
        numbered = ((bits[anew] & STROKE) != 0) & (last > part.ends[anew - 1, 1]) & (lexed.value[last] != 1)
        if apart.all() and not numbered.any():
            return int(hi - period)
    return lo


def _are_alike(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    """Whether points have the same ends, or are as many and the same but for scale and place."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    near = 0.02 * float(np.ptp(a, axis=0).max())
    if len(a) > 1 and len(b) > 1 and (np.abs(a[[0, -1]] - b[[0, -1]]) <= near).all():
        return True
    if len(a) != len(b) or len(a) < _SHAPE:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        norm = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
        return bool(((a * b).sum(axis=0) > 0.98 * norm).all() and (norm > 0).all())


def mentioned(lexed: Lexed, reading: Reading) -> bool:
    """Whether an answer's points are rather mentioned in prose: no list, no s, and words on their line between them.

    Parameters
    ----------
    lexed
        What the lexer found.
    reading
        The answer's points.
    """
    loose = reading.dialect in ("tuples", "rows") or (len(reading) == 1 and reading.dialect in _POINTING)
    if not loose or formed(reading).any() or (reading.stroke >= 0).all() or (reading.named and len(reading) > 1):
        return False
    bits, words = between(lexed, reading)
    within = bits[1:]
    prose = ((words[1:] > 0) | ((within & SENTENCE) != 0)) & ((within & (NEWLINE | STROKE)) == 0)
    prose |= (words[1:] > 0) & ((within & SENTENCE) != 0) & ((within & STROKE) == 0)
    if prose.any() or _placed(lexed, reading):
        return True
    few = len(reading) <= FEW and not (within & STROKE).any()
    enough = 1 if len(reading) == 1 else _PROSE
    if few and len(reading) > 1 and not bits[0] & STROKE:  # "(10, 18) to (80, 90)"
        gap = lexed.text[int(reading.span[0, 1]) : int(reading.span[1, 0])]
        enough = 0 if _LETTERS.search(gap) else 1 if gap.strip() == "-" else _PROSE
    return bool(few and len(_WORD.findall(lexed.text[: 1 << 12])) >= enough)


def _placed(lexed: Lexed, reading: Reading) -> bool:
    """Whether most points are told as places on one line: ``the t is at (10, 20), the h at (30, 20)``."""
    n = len(reading)
    if n < _FEWEST_PLACES or n > _PAIRS:
        return False
    gaps = [lexed.text[int(a) : int(b)] for a, b in zip(reading.span[:-1, 1], reading.span[1:, 0], strict=True)]
    return 2 * sum("\n" not in gap and bool(_PLACED.search(gap)) for gap in gaps) > n - 1

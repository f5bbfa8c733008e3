"""Numbers that a reply mentions and that are no points: boxes, sizes, colours, arguments of code, placeholders.

They are told by what they are called, not by what they are worth. These are passed over (kind `KEY`):

* what stands in a bracket whose nearest name is one of a box, a size, a colour, a time … (``"bbox": [10, 20, 99, 50]``)
  and what follows in its sentence (``Box: (10, 20), (99, 50)``);
* an object that has a width and a height, or two corners (``{"x": 10, "y": 20, "width": 90, "height": 30}``);
* what an element of markup holds that is named so: ``<bbox>10,18,80,90</bbox>``;
* what stands beside the lists in a call that draws them: colours and widths;
* a form that is explained with placeholders: ``(x1, y1, 1), (x2, y2, 0)``.

These may belong to the ink in a way that is not read, so that an answer that has them is not whole (`ARGUMENT`):

* in an object or call, a list of two to five numbers under a name that means no point (``"start": [10, 20]``), or
  two points with names (the ends of a line);
* what is given to a function that makes no point (``range(0, 5)``, ``cv2.line(img, (1, 2), (3, 4))``).
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.characters import codes
from inktraj.parse.lexer import ARGUMENT, COMMA, KEY, LETTERS, NEWLINE, NUMBER, PARTED, SENTENCE, SPACE, Lexed
from inktraj.parse.vocabulary import X, Y, among, labels, packed, words_in

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_NO_POINT = words_in("""
    size imagesize imgsize pagesize canvassize canvas viewport viewbox dimensions dims resolution shape figsize xlim
    ylim dpi image img page width height extent bbox box boundingbox wordbox wordbbox textbox textbbox charbox
    linebox strokebox bounds boundary region area rect rectangle roi crop quad polygon corners xyxy xywh box2d bbox2d
    cornerpoints topleft bottomright topright bottomleft upperleft lowerright tl br tr bl range xrange yrange origin
    center centre centroid scale padding margin baseline color colour rgb rgba fill background outline confidence score
    scores probability probabilities pressure pressures force time times timestamp timestamps numpoints npoints
    pointcount pointcounts counts count lengths angle angles speed velocity velocities duration durations
    control controlpoints bezier ctrl ellipse""")
_AXES = np.sort(np.concatenate([X, Y]))
_TIMES = labels("t")  # of lists: a letter may be called so as well

ONE_POINT = words_in("point p pos position coord coords xy coordinate coordinates point2d pt data loc location args")
"""Names of a bracket that is one point."""

_LISTS = words_in("""
    stroke strokes points pts path paths trajectory ink trace traces polyline line lines data xys tuples sequence
    answer output result vertices segment loc location locations starts flags s pen penstates values letter char
    delta deltas offset offsets relative moves steps""")
_NAMES = np.sort(np.concatenate([ONE_POINT, _LISTS, X, Y]))
_POINT_CALLS = words_in("""
    point pt points xy vec vector coord coordinate coordinates tuple pos position moveto lineto left right big bigl
    biggl draw move line at to from start end begin stroke strokes path strokepoint inkpoint penpoint down up""")
_LIST_CALLS = words_in("""
    array asarray list tuple stroke strokes path polyline points trajectory ink trace linestring tensor set deque
    left moveto lineto""")
_WIDTHS, _HEIGHTS = labels("width", "w", "xmax", "maxx", "right"), labels("height", "h", "ymax", "maxy", "bottom")
_ELEMENT = re.compile(r"<((?!trace|stroke|path|point)[a-z_][\w-]{0,30}+)\b[^<>]{0,200}+>([^<>]*+)</", re.IGNORECASE)
_CORNERS = 5  # so many points a polygon around a word has, if it is closed
_OPENERS = (ord("["), ord("("))


def marked(lexed: Lexed) -> Lexed:
    """Return what the lexer found, where numbers that are no parts of points have the kind `KEY` or `ARGUMENT`.

    Parameters
    ----------
    lexed
        What the lexer found.
    """
    if not len(lexed.opened):
        explained = _placeholders(lexed) | _in_elements(lexed)
        return replace(lexed, kind=np.where(explained, KEY, lexed.kind)) if explained.any() else lexed
    plain = (lexed.children == 0) & (lexed.numbers > 0) & np.isin(lexed.shape, _OPENERS)
    nearest = _nearest_name(lexed)
    told = among(np.where(nearest >= 0, lexed.name[nearest], np.uint64(0)), _NO_POINT)
    # "In the box: [(12, 22, 1), …]" is an answer: corners have two numbers, and are few.
    told &= ~plain | (nearest == np.arange(len(nearest))) | ((lexed.numbers == 2) & (_beside(lexed) <= _CORNERS))
    told |= _boxes(lexed)
    around = np.maximum(lexed.parent, 0)
    told |= plain & (lexed.parent >= 0) & among(lexed.name, _AXES) & among(lexed.name[around], _NO_POINT)
    told |= plain & (lexed.parent >= 0) & among(lexed.name, _TIMES)
    told = _with_neighbours(lexed, plain, told)
    named = plain & (lexed.name >= 256) & (lexed.parent >= 0) & (lexed.numbers >= 2) & (lexed.numbers <= 5)
    named |= (lexed.name >= 256) & (lexed.parent >= 0) & (lexed.children == 0) & (lexed.numbers <= 5) & _places(lexed)
    named &= ~among(lexed.name, _NAMES)
    given = named | _in_calls(lexed, plain) | _ends(lexed, plain) | _beside_lists(lexed, plain)
    explained = _placeholders(lexed) | _in_elements(lexed)
    drawn = _drawing(lexed)
    if drawn.any():
        told |= plain & (lexed.parent >= 0) & drawn[around]
        explained |= (lexed.bracket >= 0) & drawn[lexed.bracket]
    held = (lexed.bracket >= 0) & (lexed.kind != KEY)
    told[lexed.bracket[held & explained]] |= plain[lexed.bracket[held & explained]]
    of_bracket = np.where(told, KEY, np.where(given, ARGUMENT, NUMBER))
    kind = np.where(held, of_bracket[np.maximum(lexed.bracket, 0)], NUMBER)
    kind[explained] = KEY
    return replace(lexed, kind=np.where(kind != NUMBER, kind, lexed.kind))


def _nearest_name(lexed: Lexed) -> IntArray:
    """Return the innermost bracket around each bracket (itself too) that has a name, −1 for none."""
    link = np.where(lexed.name != 0, np.arange(len(lexed.opened)), lexed.parent)
    while True:  # each round doubles the way that is gone up
        further = np.where(link >= 0, link[link], -1)
        if (further == link).all():
            return link
        link = further


def _ends(lexed: Lexed, plain: BoolArray) -> BoolArray:
    """Whether a bracket is one of two named points of one object: the ends of a line."""
    one = plain & (lexed.parent >= 0) & among(lexed.name, ONE_POINT)
    out = np.zeros(len(one), dtype=bool)
    if one.any():
        around = lexed.parent[one]
        many = np.bincount(around, minlength=len(one)) == 2
        out[one] = many[around] & (lexed.shape[around] == ord("{"))
    return out


def _in_calls(lexed: Lexed, plain: BoolArray) -> BoolArray:
    """Whether a bracket holds arguments of a function that makes no point, or is one of them."""
    called = lexed.call >= 256  # one letter is a name of points: P(12, 22)
    if not called.any():
        return called
    around = np.where(lexed.parent >= 0, lexed.call[lexed.parent], np.uint64(0))
    bare = np.zeros(len(called), dtype=bool)
    bare[lexed.bracket[(lexed.bracket >= 0) & (lexed.label == 0)]] = True
    out = (lexed.numbers > 0) & called & bare & ~among(lexed.call, _POINT_CALLS)
    return np.asarray(out | (plain & (around >= 256) & ~among(around, _LIST_CALLS)))


def _drawing(lexed: Lexed) -> BoolArray:
    """Whether a bracket is a call, not one of a single letter, of which an argument is a list of lists."""
    called = among(lexed.call, _LIST_CALLS) & (lexed.call >= 256)
    if not called.any():
        return called
    out = np.zeros(len(called), dtype=bool)
    lists = (lexed.children > 0) & (lexed.parent >= 0) & (lexed.shape == ord("["))
    out[lexed.parent[lists]] = True
    return out & called


def _beside_lists(lexed: Lexed, plain: BoolArray) -> BoolArray:
    """Whether a bracket of two or three numbers with a name of one letter stands beside lists that are called so."""
    out = (lexed.name != 0) & (lexed.name < 256)
    if not out.any():
        return np.asarray(out)
    out &= plain & (lexed.parent >= 0)
    out &= ((lexed.numbers == 2) | (lexed.numbers == 3)) & ~among(lexed.name, _NAMES)
    if out.any():
        holds = np.zeros(len(out), dtype=bool)
        holds[lexed.parent[(lexed.children > 0) & (lexed.parent >= 0) & among(lexed.name, _LISTS)]] = True
        out &= holds[lexed.parent]
    return np.asarray(out)


def _in_elements(lexed: Lexed) -> BoolArray:
    """Whether a number is the text of an element with a name that means no point."""
    out = np.zeros(len(lexed), dtype=bool)
    if "</" not in lexed.text:
        return out
    for match in _ELEMENT.finditer(lexed.text):
        if packed(match[1]) in _NO_POINT:
            out[np.searchsorted(lexed.start, match.start(2)) : np.searchsorted(lexed.start, match.end(2))] = True
    return out


def _places(lexed: Lexed) -> BoolArray:
    """Whether a bracket has one x and one y."""
    inside = (lexed.bracket >= 0) & (lexed.kind != KEY)
    x, y = (
        np.bincount(lexed.bracket[inside & among(lexed.label, names)], minlength=len(lexed.opened)) for names in (X, Y)
    )
    return np.asarray((x == 1) & (y == 1))


def _boxes(lexed: Lexed) -> BoolArray:
    """Whether a bracket names a width and a height beside x and y, or two corners."""
    n = len(lexed.opened)
    inside = (lexed.bracket >= 0) & (lexed.kind != KEY)

    def has(names: NDArray[np.uint64]) -> IntArray:
        return np.bincount(lexed.bracket[inside & among(lexed.label, names)], minlength=n)

    corners = (has(X) == 2) & (has(Y) == 2) & (lexed.children == 0) & (lexed.shape == ord("{"))
    return np.asarray(((has(_WIDTHS) > 0) & (has(_HEIGHTS) > 0)) | corners)


def _with_neighbours(lexed: Lexed, plain: BoolArray, out: BoolArray) -> BoolArray:
    """Leave out too what follows a bracket that is left out, in the same sentence: ``Box: (10, 20), (100, 60)``."""
    loose = np.flatnonzero(plain & (lexed.parent < 0))
    if not out[loose].any():
        return out
    first = lexed.first[loose]
    since = np.minimum(np.append(first[:1], (first + lexed.numbers[loose])[:-1]), first)
    ranges = np.stack([since, first + 1], axis=1).ravel()
    bits = np.bitwise_or.reduceat(np.append(lexed.gap, 0), ranges)[::2]
    words = np.append(0, np.cumsum(lexed.words))
    new = ((bits & (NEWLINE | PARTED | SENTENCE)) != 0) | (lexed.name[loose] != 0)
    new |= (words[first + 1] > words[since]) | np.append(True, lexed.shape[loose][1:] != lexed.shape[loose][:-1])
    group = np.cumsum(new) - 1
    out = out.copy()
    out[loose] |= out[loose[new]][group]
    return out


def _beside(lexed: Lexed) -> IntArray:
    """Return how many brackets stand directly in the bracket around each bracket."""
    return np.where(lexed.parent >= 0, lexed.children[lexed.parent], 0)


def _placeholders(lexed: Lexed) -> BoolArray:
    """Whether a number explains the form: ``(x1, y1, 1)``, where each x and y has the number of its point."""
    out = np.zeros(len(lexed), dtype=bool)
    named = among(lexed.label[:-1], X) & among(lexed.label[1:], Y)
    same = lexed.bracket[1:] == lexed.bracket[:-1]
    comma = ((lexed.gap[1:] & COMMA) != 0) & ((lexed.gap[1:] & ~(COMMA | SPACE | LETTERS)) == 0)
    pairs = np.flatnonzero(named & same & comma)
    if not len(pairs):
        return out
    before = codes(lexed.text)[np.maximum(lexed.start[pairs] - 1, 0)]
    glued = (before >= ord("A")) & (before != ord("["))
    value = lexed.value[pairs]
    if (glued & (value == lexed.value[pairs + 1]) & (value < 1000)).all():
        out[pairs], out[pairs + 1] = True, True
    return out

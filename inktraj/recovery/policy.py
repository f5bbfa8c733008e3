"""The learned policy: how probable each choice of the pen is, and a beam search for the most probable ways.

At every moment the pen goes on over a half-edge that leaves where it is, or is lifted; a lifted pen is set down at a
half-edge not yet drawn, or the word is done. Two small networks give the logits; each sees the features of the choice
(`inktraj.recovery.features`) and, added in its first layer, what the guide network says of the half-edges involved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.recovery.features import (
    FRONT,
    LAST,
    N_GO,
    N_START,
    N_STATE,
    Net,
    Pen,
    go_features,
    look,
    move,
    start_features,
)

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

MOST_TIMES = 3  # no edge is drawn more often
MARGIN = 6.0  # log-probability by which a hypothesis may be worse than the best finished way
UNLIKELY = -7.0  # log-probability: less probable choices are not followed


class Scorer(NamedTuple):
    """Networks of two hidden layers whose logits are averaged, the guides' part worked out for one word.

    Parameters
    ----------
    source
        ``(networks, 2 e + 1, k)`` what the half-edge drawn last adds to the first layer; the last row stands for none.
    target
        ``(networks, 2 e + 1, k)`` what the chosen half-edge adds; the last row stands for lifting the pen.
    w1, w2, b2, w3, b3
        ``(networks, features, k)``, ``(…, k, m)``, ``(…, m)``, ``(…, m)`` and ``(networks,)``: the rest.
    """

    source: Any
    target: Any
    w1: Any
    w2: Any
    b2: Any
    w3: Any
    b3: Any


@njit(cache=True, nogil=True, fastmath=True)
def _logit(scorer, source, target, features, hidden, upper):  # type: ignore[no-untyped-def]
    k, m = len(hidden), len(upper)
    total = np.float32(0)
    for net in range(len(scorer.b3)):
        w1, w2, w3 = scorer.w1[net], scorer.w2[net], scorer.w3[net]
        before, after = scorer.source[net, source], scorer.target[net, target]
        for j in range(k):
            hidden[j] = before[j] + after[j]
        for i in range(len(features)):
            x = features[i]
            if x != 0:
                for j in range(k):
                    hidden[j] += x * w1[i, j]
        for j in range(m):
            upper[j] = scorer.b2[net, j]
        for i in range(k):
            x = hidden[i]
            if x > 0:
                for j in range(m):
                    upper[j] += x * w2[i, j]
        total += scorer.b3[net]
        for j in range(m):
            total += max(upper[j], np.float32(0)) * w3[j]
    return total / np.float32(len(scorer.b3))


@njit(cache=True, nogil=True)
def new_pen(net):  # type: ignore[no-untyped-def]
    """A pen before its first stroke."""
    state = np.zeros(N_STATE)
    state[LAST] = -1
    pen = Pen(np.zeros(len(net.ends), np.int8), net.ink.copy(), state)
    look(net, pen.drawn, state)
    return pen


@njit(cache=True, nogil=True)
def moves(net, drawn, last, also, out):  # type: ignore[no-untyped-def]
    """The half-edges over which the pen may go on, and -1 for a lift; `also` even if drawn often. Returns how many."""
    v = net.ends[last // 2, 1 - last % 2]
    n = 0
    for q in range(net.first[v], net.first[v + 1]):
        c = net.half[q]
        if drawn[c // 2] < MOST_TIMES or c == also:
            out[n] = c
            n += 1
    out[n] = -1
    return n + 1


@njit(cache=True, nogil=True)
def starts(net, drawn, out):  # type: ignore[no-untyped-def]
    """The half-edges at which the pen may be set down; returns how many."""
    n = 0
    for c in range(2 * len(drawn)):
        if drawn[c // 2] == 0 and not (net.dot[c // 2] and c % 2 == 1):
            out[n] = c
            n += 1
    return n


@njit(cache=True, nogil=True)
def _as_log_probabilities(logits, n):  # type: ignore[no-untyped-def]
    top = logits[:n].max()
    total = 0.0
    for i in range(n):
        total += np.exp(logits[i] - top)
    logits[:n] -= top + np.log(total)


class Decisions(NamedTuple):
    """All choices met along given strokes, for training and for confidence; rows of one choice lie together.

    ``go_*`` are moves (go on or lift), ``start_*`` set-downs: features ``(rows, n)``, the half-edge drawn last, the
    half-edge chosen (-1: lift), offsets of the choices into the rows, the row that was taken, and the place in the
    path: of the half-edge after which a move was chosen, or at which the pen was set down.
    """

    go: Any
    go_from: Any
    go_to: Any
    go_offsets: Any
    go_taken: Any
    go_at: Any
    start: Any
    start_from: Any
    start_to: Any
    start_offsets: Any
    start_taken: Any
    start_at: Any


@njit(cache=True, nogil=True)
def decisions(net, path, marks):  # type: ignore[no-untyped-def]
    """Walk along strokes (half-edges ``path``, offsets ``marks``) and note every choice; see `Decisions`."""
    e, widest = len(net.ends), 2
    for v in range(len(net.nodes)):
        widest = max(widest, net.first[v + 1] - net.first[v] + 1)
    options = np.empty(max(2 * e, widest), np.int64)
    n_go, n_start = 0, 0
    for t in range(len(path)):
        n_go += net.first[net.ends[path[t] // 2, 1 - path[t] % 2] + 1]
        n_go -= net.first[net.ends[path[t] // 2, 1 - path[t] % 2]]
        n_go += 1
    n_start = (len(marks) - 1) * 2 * e
    go, go_from, go_to = np.zeros((n_go, N_GO), np.float32), np.empty(n_go, np.int64), np.empty(n_go, np.int64)
    start = np.zeros((n_start, N_START), np.float32)
    start_from, start_to = np.empty(n_start, np.int64), np.empty(n_start, np.int64)
    go_offsets, start_offsets = np.zeros(len(path) + 1, np.int64), np.zeros(len(marks), np.int64)
    go_taken, start_taken = np.zeros(len(path), np.int64), np.zeros(len(marks) - 1, np.int64)
    go_at, start_at = np.zeros(len(path), np.int64), np.zeros(len(marks) - 1, np.int64)
    pen = new_pen(net)
    rows, choices, s_rows, s_choices = 0, 0, 0, 0
    for s in range(len(marks) - 1):
        h = path[marks[s]]
        if pen.drawn[h // 2] == 0:
            for k in range(starts(net, pen.drawn, options)):
                c = options[k]
                start_features(net, pen, c, start[s_rows])
                start_from[s_rows], start_to[s_rows] = pen.state[LAST], c
                if c == h:
                    start_taken[s_choices] = s_rows
                s_rows += 1
            start_at[s_choices] = marks[s]
            s_choices += 1
            start_offsets[s_choices] = s_rows
        move(net, pen, h, True)
        for t in range(marks[s] + 1, marks[s + 1] + 1):
            if net.dot[path[t - 1] // 2]:
                continue
            h = path[t] if t < marks[s + 1] else -1
            last = int(pen.state[LAST])
            for k in range(moves(net, pen.drawn, last, h, options)):
                c = options[k]
                go_features(net, pen, c, go[rows])
                go_from[rows], go_to[rows] = last, c
                if c == h:
                    go_taken[choices] = rows
                rows += 1
            go_at[choices] = t - 1
            choices += 1
            go_offsets[choices] = rows
            if h >= 0:
                move(net, pen, h, False)
    return Decisions(
        go[:rows], go_from[:rows], go_to[:rows], go_offsets[: choices + 1], go_taken[:choices], go_at[:choices],
        start[:s_rows], start_from[:s_rows], start_to[:s_rows], start_offsets[: s_choices + 1], start_taken[:s_choices],
        start_at[:s_choices],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _taken(scorer, features, source, target, offsets, rows):  # type: ignore[no-untyped-def]
    out = np.empty(len(rows))
    hidden, upper = np.empty(scorer.w2.shape[1], np.float32), np.empty(scorer.w2.shape[2], np.float32)
    for i in range(len(rows)):
        a, b = offsets[i], offsets[i + 1]
        logits = np.empty(b - a)
        for r in range(a, b):
            logits[r - a] = _logit(scorer, source[r], target[r], features[r], hidden, upper)
        _as_log_probabilities(logits, b - a)
        out[i] = logits[rows[i] - a]
    return out


@njit(cache=True, nogil=True)
def taken(net, go, start, path, marks):  # type: ignore[no-untyped-def]
    """The log-probability of each choice along given strokes.

    Returns
    -------
    at, kind, log_probability
        Place in the path of each choice; its kind: 0 a set-down there, 1 going on after it, 2 a lift after it.
    """
    d = decisions(net, path, marks)
    moved = _taken(go, d.go, d.go_from, d.go_to, d.go_offsets, d.go_taken)
    set_down = _taken(start, d.start, d.start_from, d.start_to, d.start_offsets, d.start_taken)
    kind = np.zeros(len(set_down) + len(moved), np.int64)
    for i in range(len(moved)):
        kind[len(set_down) + i] = 2 if d.go_to[d.go_taken[i]] < 0 else 1
    return np.concatenate((d.start_at, d.go_at)), kind, np.concatenate((set_down, moved))


class _Beam(NamedTuple):
    drawn: Any  # (k, e)
    open_ink: Any  # (k, c)
    state: Any  # (k, N_STATE)
    score: Any  # (k,)
    path: Any  # (k, longest)
    down: Any  # (k, longest) the pen was set down for this half-edge
    size: Any  # (k,)


@njit(cache=True, nogil=True)
def _new_beam(width, e, c, longest):  # type: ignore[no-untyped-def]
    return _Beam(
        np.zeros((width, e), np.int8),
        np.zeros((width, c)),
        np.zeros((width, N_STATE)),
        np.full(width, -np.inf),
        np.zeros((width, longest), np.int32),
        np.zeros((width, longest), np.bool_),
        np.zeros(width, np.int64),
    )


@njit(cache=True, nogil=True)
def _copy(source, a, target, b):  # type: ignore[no-untyped-def]
    target.drawn[b] = source.drawn[a]
    target.open_ink[b] = source.open_ink[a]
    target.state[b] = source.state[a]
    target.score[b] = source.score[a]
    n = source.size[a]
    target.path[b, :n] = source.path[a, :n]
    target.down[b, :n] = source.down[a, :n]
    target.size[b] = n


@njit(cache=True, nogil=True)
def _same(beam, a, parent, b, c):  # type: ignore[no-untyped-def]
    """Whether hypothesis a has drawn what b will have drawn with half-edge c."""
    for i in range(beam.drawn.shape[1]):
        times = parent.drawn[b, i] + (1 if i == c // 2 else 0)
        if min(beam.drawn[a, i], MOST_TIMES) != min(times, MOST_TIMES):
            return False
    return True


@njit(cache=True, nogil=True)
def search(net, go, start, width, n_starts, n_best, margin, longest):  # type: ignore[no-untyped-def]
    """The most probable ways to draw everything.

    Parameters
    ----------
    net
        The graph.
    go, start
        `Scorer` of moves and of set-downs.
    width
        Hypotheses kept.
    n_starts
        Set-downs followed from one hypothesis.
    n_best
        Finished ways kept.
    margin
        Log-probability by which a hypothesis may be worse than the best finished way.
    longest
        Half-edges in a way at most.

    Returns
    -------
    score, path, down, size
        ``(n_best,)`` log-probabilities (-inf: none), ``(n_best, longest)`` half-edges and set-down marks, lengths.
    """
    e, n_components = len(net.ends), len(net.ink)
    beam, spare = _new_beam(width, e, n_components, longest), _new_beam(width, e, n_components, longest)
    done = _new_beam(n_best, e, n_components, longest)
    first = new_pen(net)
    beam.open_ink[0], beam.state[0], beam.score[0] = first.open_ink, first.state, 0.0
    options = np.empty(2 * e + 2, np.int64)
    logits = np.empty(2 * e + 2)
    go_row, start_row = np.empty(N_GO, np.float32), np.empty(N_START, np.float32)
    hidden, upper = np.empty(go.w2.shape[1], np.float32), np.empty(go.w2.shape[2], np.float32)
    s_hidden, s_upper = np.empty(start.w2.shape[1], np.float32), np.empty(start.w2.shape[2], np.float32)
    capacity = width * (n_starts + 12)
    offer, parent = np.empty(capacity), np.empty(capacity, np.int64)
    choice, set_down = np.empty(capacity, np.int64), np.empty(capacity, np.bool_)
    alive = 1
    for _ in range(longest):
        n_offers = 0
        best_done = done.score.max()
        for b in range(alive):
            if beam.score[b] <= best_done - margin:
                continue
            pen = Pen(beam.drawn[b], beam.open_ink[b], beam.state[b])
            last = int(pen.state[LAST])
            lift, own = 0.0, n_offers
            if last >= 0 and not net.dot[last // 2]:
                n = moves(net, pen.drawn, last, -2, options)
                for k in range(n):
                    go_features(net, pen, options[k], go_row)
                    logits[k] = _logit(go, last, options[k], go_row, hidden, upper)
                _as_log_probabilities(logits, n)
                lift = logits[n - 1]
                for k in range(n - 1):
                    if logits[k] > UNLIKELY and n_offers < capacity:
                        offer[n_offers], parent[n_offers] = beam.score[b] + logits[k], b
                        choice[n_offers], set_down[n_offers] = options[k], False
                        n_offers += 1
            if pen.state[FRONT] < 0:
                worst = int(np.argmin(done.score))
                if beam.score[b] + lift > done.score[worst]:
                    _copy(beam, b, done, worst)
                    done.score[worst] = beam.score[b] + lift
                    best_done = done.score.max()
                continue
            if lift < UNLIKELY and n_offers > own:
                continue
            n = starts(net, pen.drawn, options)
            for k in range(n):
                start_features(net, pen, options[k], start_row)
                logits[k] = _logit(start, last, options[k], start_row, s_hidden, s_upper)
            _as_log_probabilities(logits, n)
            for r in range(min(n_starts, n)):
                k = int(np.argmax(logits[:n]))
                if (logits[k] < UNLIKELY and r > 0) or n_offers == capacity:
                    break
                offer[n_offers], parent[n_offers] = beam.score[b] + lift + logits[k], b
                choice[n_offers], set_down[n_offers] = options[k], True
                n_offers += 1
                logits[k] = -np.inf
        if n_offers == 0:
            break
        ranked = np.argsort(-offer[:n_offers])
        kept = 0
        for r in range(n_offers):
            o = ranked[r]
            b, c = parent[o], choice[o]
            twin = False
            for a in range(kept):
                if int(spare.state[a, LAST]) == c and _same(spare, a, beam, b, c):
                    twin = True
                    break
            if twin:
                continue
            _copy(beam, b, spare, kept)
            n = spare.size[kept]
            spare.path[kept, n], spare.down[kept, n] = c, set_down[o]
            spare.size[kept] = n + 1
            spare.score[kept] = offer[o]
            move(net, Pen(spare.drawn[kept], spare.open_ink[kept], spare.state[kept]), c, set_down[o])
            kept += 1
            if kept == width:
                break
        beam, spare = spare, beam
        alive = kept
    if done.score.max() == -np.inf:  # too long a way: what there is, so that no ink is lost in silence
        for b in range(min(alive, n_best)):
            _copy(beam, b, done, b)
    return done.score, done.path, done.down, done.size


@dataclass(frozen=True, slots=True)
class Way:
    """One way to draw a graph.

    Parameters
    ----------
    path
        Half-edges, ``(n,)``.
    marks
        Offsets of the strokes into `path`, ``(strokes + 1,)``.
    score
        Log-probability under the policy.
    """

    path: I64
    marks: I64
    score: float


def find_ways(net: Net, go: Scorer, start: Scorer, *, width: int, n_starts: int, n_best: int) -> list[Way]:
    """The most probable ways to draw everything, best first, at most `n_best`; see `search`."""
    longest = MOST_TIMES * len(net.ends) + 2
    score, path, down, size = search(net, go, start, width, n_starts, n_best, MARGIN, longest)
    out = []
    for k in np.argsort(-score, kind="stable"):
        if score[k] > -np.inf:
            marks = np.append(np.flatnonzero(down[k, : size[k]]), size[k])
            out.append(Way(path[k, : size[k]].astype(np.int64), marks, float(score[k])))
    return out

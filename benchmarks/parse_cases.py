"""Cases for benchmarks/parse.py: made inks written in every dialect, damaged in known ways; and hostile texts.

    python benchmarks/parse_cases.py FILE.jsonl [--count N] [--seed N]

Each case is one JSON object: ``text``, ``frame``, ``width``, ``height`` of the sent image, ``stop_reason``, and
either ``strokes`` (expected points in pixels of the sent image) or ``status``. Those in parse_replies/ have a name, may
have a status beside strokes, and where ``words`` were asked for, ``page``: the strokes of each answered word by its
place. The writers here share no code with the readers.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

Stroke = list[tuple[float, float]]
Strokes = list[Stroke]

WIDTH, HEIGHT = 924, 1307


def made_ink(rng: random.Random) -> Strokes:
    """Strokes on whole pixels; no point is written twice in a row."""
    strokes = []
    for _ in range(rng.randint(1, 5)):
        x, y = rng.randrange(20, WIDTH - 120), rng.randrange(20, HEIGHT - 120)
        stroke: Stroke = [(x, y)]
        for _ in range(rng.randint(2, 14)):
            x, y = x + rng.randint(1, 9), y + rng.randint(-9, 9)
            stroke.append((max(x, 0), max(y, 0)))
        strokes.append(stroke)
    return strokes


# Frames: what is written for a pixel, and what that means again.

FRAMES: dict[
    str, tuple[Callable[[float, float], tuple[float, float]], Callable[[float, float], tuple[float, float]]]
] = {
    "sent-px": (lambda x, y: (x, y), lambda a, b: (a, b)),
    "norm1000": (
        lambda x, y: (round((x + 0.5) / WIDTH * 1000), round((y + 0.5) / HEIGHT * 1000)),
        lambda a, b: (a / 1000 * WIDTH - 0.5, b / 1000 * HEIGHT - 0.5),
    ),
    "norm1000-yx": (
        lambda x, y: (round((y + 0.5) / HEIGHT * 1000), round((x + 0.5) / WIDTH * 1000)),
        lambda a, b: (b / 1000 * WIDTH - 0.5, a / 1000 * HEIGHT - 0.5),
    ),
    "norm1": (
        lambda x, y: (round((x + 0.5) / WIDTH, 4), round((y + 0.5) / HEIGHT, 4)),
        lambda a, b: (a * WIDTH - 0.5, b * HEIGHT - 0.5),
    ),
    "percent": (
        lambda x, y: (round((x + 0.5) / WIDTH * 100, 1), round((y + 0.5) / HEIGHT * 100, 1)),
        lambda a, b: (a / 100 * WIDTH - 0.5, b / 100 * HEIGHT - 0.5),
    ),
}


# Dialects: written points → text.


def flagged(strokes: Strokes) -> list[tuple[float, float, int]]:
    return [(x, y, int(i == 0)) for s in strokes for i, (x, y) in enumerate(s)]


def tuples(strokes: Strokes) -> str:
    return "[" + ", ".join(f"({x},{y},{s})" for x, y, s in flagged(strokes)) + "]"


def loose_tuples(strokes: Strokes) -> str:
    return "\n".join(f"({x}, {y}, {s})" for x, y, s in flagged(strokes))


def lists(strokes: Strokes) -> str:
    return json.dumps(flagged(strokes))


def object_of_lists(strokes: Strokes) -> str:
    return json.dumps({"word": "the", "strokes": strokes}, indent=1)


def flat(strokes: Strokes) -> str:
    return json.dumps([v for point in flagged(strokes) for v in point])


def objects(strokes: Strokes) -> str:
    return json.dumps([{"x": x, "y": y, "s": s} for x, y, s in flagged(strokes)])


def pen_objects(strokes: Strokes) -> str:
    return json.dumps(
        [{"x": x, "y": y, "pen_up": i == len(s) - 1} for s in strokes for i, (x, y) in enumerate(s)], indent=2
    )


def numbered_objects(strokes: Strokes) -> str:
    return json.dumps([{"stroke": k + 1, "x": x, "y": y} for k, s in enumerate(strokes) for x, y in s])


def nested_objects(strokes: Strokes) -> str:
    return json.dumps(
        {"strokes": [{"id": k, "points": [{"x": x, "y": y} for x, y in s]} for k, s in enumerate(strokes)]}
    )


def columns(strokes: Strokes) -> str:
    rows = flagged(strokes)
    return json.dumps({"x": [r[0] for r in rows], "y": [r[1] for r in rows], "s": [r[2] for r in rows]})


def text(strokes: Strokes) -> str:
    return " ".join("s " + " ".join(f"x{x}y{y}" for x, y in s) for s in strokes)


def barred_text(strokes: Strokes) -> str:
    return " | ".join(" ".join(f"x{x}y{y}" for x, y in s) for s in [*strokes, [(1, 1), (2, 2)]])


def rows(strokes: Strokes) -> str:
    return "\n".join(f"{x},{y},{s}" for x, y, s in flagged(strokes))


def prose(strokes: Strokes) -> str:
    lines = [
        f"Stroke {k + 1}: " + ", ".join(f"({x}, {y})" for x, y in s) for k, s in enumerate([*strokes, [(1, 1), (2, 2)]])
    ]
    return "\n".join(lines)


def svg(strokes: Strokes) -> str:
    paths = "".join(f'<path d="M {" L ".join(f"{x} {y}" for x, y in s)}"/>' for s in strokes)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}">{paths}</svg>'


def relative_svg(strokes: Strokes) -> str:
    out = []
    for s in strokes:
        steps = [f"{b[0] - a[0]:g},{b[1] - a[1]:g}" for a, b in itertools.pairwise(s)]
        out.append(f"M{s[0][0]},{s[0][1]}l{' '.join(steps)}")
    return " ".join(out)


def inkml(strokes: Strokes) -> str:
    traces = "".join(f"<trace>{', '.join(f'{x} {y}' for x, y in s)}</trace>" for s in strokes)
    return f'<ink xmlns="http://www.w3.org/2003/InkML">{traces}</ink>'


def molmo(strokes: Strokes) -> str:
    tags = []
    for k, s in enumerate([*strokes, [(1, 1), (2, 2)]]):
        points = " ".join(f'x{i + 1}="{x}" y{i + 1}="{y}"' for i, (x, y) in enumerate(s))
        tags.append(f'<points {points} alt="stroke {k + 1}">stroke {k + 1}</points>')
    return "\n".join(tags)


EXTRA = {"barred_text", "prose", "molmo"}
"""These write one stroke more, so that there is something between strokes."""

NAMED = {"objects", "pen_objects", "numbered_objects", "nested_objects", "columns", "text", "barred_text", "svg"}
NAMED |= {"relative_svg", "inkml", "molmo"}
"""These say which number is x: they are not written in a frame that has y first."""

DIALECTS = {
    f.__name__: f
    for f in (
        *(tuples, loose_tuples, lists, object_of_lists, flat, objects, pen_objects, numbered_objects, nested_objects),
        *(columns, text, barred_text, rows, prose, svg, relative_svg, inkml, molmo),
    )
}

DECORATIONS: dict[str, Callable[[str], str]] = {
    "bare": lambda t: t,
    "fenced": lambda t: f"```json\n{t}\n```",
    "prose": lambda t: (
        f"Sure, here is the path of the word as I see it in the picture.\n\n{t}\n\nPlease tell me if you need more."
    ),
    "thinking": lambda t: f"<think>It may begin at (12, 15) or [[1,2,1],[3,4,0]]. I will check.</think>\n{t}",
    "full-width": lambda t: t.translate({ord(c): 0xFF10 + int(c) for c in "0123456789"}),
    "spaces": lambda t: t.replace(",", " , ").replace("\n", "\r\n"),
}


def case(name: str, reply: str, frame: str, stop: str | None, **expected: Any) -> dict[str, Any]:
    return {
        "name": name,
        "text": reply,
        "frame": frame,
        "width": WIDTH,
        "height": HEIGHT,
        "stop_reason": stop,
        **expected,
    }


def whole(rng: random.Random, dialect: str, frame: str, decoration: str) -> dict[str, Any]:
    """A complete reply."""
    there, back = FRAMES[frame]
    written = [[there(x, y) for x, y in s] for s in made_ink(rng)]
    reply = DECORATIONS[decoration](DIALECTS[dialect](written))
    written += [[(1, 1), (2, 2)]] if dialect in EXTRA else []
    return case(
        f"{dialect}, {frame}, {decoration}", reply, frame, "end", strokes=[[back(*p) for p in s] for s in written]
    )


def cut(rng: random.Random, dialect: str) -> dict[str, Any]:
    """A reply that ends at the token limit: points that are whole before the cut, for forms where that is plain."""
    strokes = made_ink(rng)
    pieces = [
        f"({x},{y},{s})" if dialect == "tuples" else f'{{"x":{x},"y":{y},"s":{s}}}' for x, y, s in flagged(strokes)
    ]
    n = rng.randrange(1, len(pieces))
    part = pieces[n][: rng.randrange(1, len(pieces[n]))]
    kept: Strokes = []
    for x, y, s in flagged(strokes)[:n]:
        kept += [[]] if s else []
        kept[-1].append((x, y))
    return case(f"{dialect}, cut", "[" + ",".join([*pieces[:n], part]), "sent-px", "length", strokes=kept)


def runaway(rng: random.Random) -> dict[str, Any]:
    """A reply that loops over its last points until the token limit."""
    strokes = made_ink(rng)
    pieces = [f"[{x},{y},{s}]" for x, y, s in flagged(strokes)]
    loop = pieces[-1:]
    return case("runaway", "[" + ",".join(pieces + loop * 300) + ",[1", "sent-px", "length", strokes=strokes)


NOTHING = {
    "": "empty",
    "   \n": "empty",
    "[]": "empty",
    '```json\n{"strokes": []}\n```': "empty",
    "I'm sorry, but I can't help with that.": "refused",
    "Ich kann diese Anfrage leider nicht beantworten.": "refused",
    "Je ne peux pas déterminer les coordonnées.": "refused",
    "抱歉，我无法提供坐标。": "refused",
    "The image shows the word “the” in cursive.": "invalid",
    '{"error": "no word found"}': "invalid",
}


def build(count: int, seed: int) -> list[dict[str, Any]]:
    """Return cases: every dialect in every frame and decoration that suits it, `count` times."""
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        for dialect in DIALECTS:
            for frame in FRAMES:
                if not (frame == "norm1000-yx" and dialect in NAMED):
                    out.append(whole(rng, dialect, frame, "bare"))
            for decoration in DECORATIONS:
                out.append(whole(rng, dialect, "sent-px", decoration))
        out += [cut(rng, dialect) for dialect in ("tuples", "objects") for _ in range(20)]
        out += [runaway(rng) for _ in range(5)]
        out += [case("nothing", reply, "sent-px", "end", status=status) for reply, status in NOTHING.items()]
    return out


HOSTILE = {
    "open brackets": "[",
    "braces": '{"a":',
    "alternating brackets": "[}{)(",
    "digits": "1",
    "numbers": "1 ",
    "decimal points": "1.",
    "exponents": "1e",
    "large exponents": "1e308,",
    "unclosed quotes": ',"',
    "unclosed keys": '{"a":"',
    "apostrophes": "('",
    "escapes": '\\"',
    "tuples": "(145,122,1),",
    "other tuples": "(1,2,x) (1,2,1) ",
    "triples that nest": "[[1,2],",
    "ellipses": "[1,2],...",
    "commas": "(1,234, 5, 1),",
    "objects": '{"x":1,"y":2,"s":0},',
    "open objects": '{"x":1,"y":2,',
    "columns": '{"x":[1],"y":[2,3]},',
    "flat lists": "[1,2,3,4],",
    "text": "x1y1",
    "rows": "12 13 1\n",
    "fences": "```json\n[1,2]\n",
    "prose": "hello world ",
    "attempts": "Final answer: (1,2,1) ",
    "thoughts": "<think>(1,2)</think>",
    "open thoughts": "<think>",
    "points tags": '<points x1="1" y1="2"',
    "coords": 'coords="1 1 2 3 ',
    "ink tokens": "<ink_token_450><ink_token_1>",
    "paths": "M1 2L3 4",
    "path attributes": 'd="M1 2" ',
    "traces": "<trace>1 2</trace>",
    "open traces": "<trace>1 2",
    "refusals": "I can't ",
    "comments": "//",
    "minus": "-",
    "blanks": " ",
    "full-width": "（１２，１３，１）",
    "Chinese": "抱歉我不能",
}
"""Pieces that are hard to read when they are repeated without end."""

PIECES = [
    *HOSTILE.values(),
    *(
        "(3,4,0)",
        "]",
        ")",
        "}",
        '"',
        "\n\n",
        "...",
        "NaN",
        "x1y2 ",
        "s ",
        "|",
        "Stroke 2:",
        "</trace>",
        "<answer>",
        "−",
        "12.5",
    ),
]
"""What a fuzzer makes replies of."""


def hostile(size: int = 1_000_000) -> dict[str, str]:
    """Texts of about `size` characters that are slow to read for a reader that looks back or ahead without bound."""
    rng = random.Random(3)
    signs = "[](){}<>,;:.\"'0123456789xys -+eE\n/\\|=`#"

    def times(piece: str) -> str:
        return piece * (size // len(piece))

    out = {name: times(piece) for name, piece in HOSTILE.items()}
    out["noise"] = "".join(rng.choice(signs) for _ in range(size))
    out["noise of all scripts"] = "".join(chr(rng.randrange(1, 0x3000)) for _ in range(size))
    out["points"] = ",".join(
        f"({rng.randrange(1000)},{rng.randrange(1000)},{int(rng.random() < 0.05)})" for _ in range(size // 11)
    )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    cases = build(arguments.count, arguments.seed)
    lines = [json.dumps(c, ensure_ascii=False) for c in cases]
    arguments.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(cases)} cases in {arguments.file}")


if __name__ == "__main__":
    main()

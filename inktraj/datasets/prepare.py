"""IAM-OnDB as it is distributed → a data set in the page form, once.

A form becomes a page. Each is written when it is done, whole or not at all, so that a stopped run is taken up where it
was; the list of pages and the manifest, by which the folder is a data set, come last.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inktraj.datasets.compose import MARGIN, PEN, PITCH, SCALE, compose_page
from inktraj.datasets.iamondb import Form, find_forms, read_line, read_splits, read_text_lines, words_of, writer_of
from inktraj.datasets.manifest import OWN_MANIFEST, Manifest, manifests
from inktraj.datasets.records import PAGES
from inktraj.datasets.sample import Problem
from inktraj.datasets.writing import IMAGES, json_line, page_record
from inktraj.errors import DataError, RunError
from inktraj.io.files import read_bytes, write_bytes, write_text

FORMS = "forms"
SETTINGS = "prepare.json"
PROBLEMS = "problems.jsonl"
_OURS = {FORMS, IMAGES, SETTINGS, PROBLEMS, PAGES, OWN_MANIFEST}
_FORMAT = "inktraj prepared pages 1"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a run did: pages in all and of earlier runs, words, and what is not as it should be."""

    out: Path
    pages: int
    reused: int
    words: int
    problems: tuple[Problem, ...]


def prepare(
    root: str | Path,
    out: str | Path,
    *,
    limit: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Make pages of a local copy of IAM-OnDB.

    Parameters
    ----------
    root
        The folder that holds ``lineStrokes`` and ``ascii``, and where they are at hand ``original`` (for the writers)
        and the lists of task 1 (for the splits).
    out
        Folder for the data set: new, empty, or of a stopped run with the same settings.
    limit
        Only the first so many forms.
    overwrite
        Remove what an earlier run left in `out` first.
    progress
        Called with the forms done and their number.

    Raises
    ------
    DataError
        There is no copy of IAM-OnDB, or no form of it can be used.
    RunError
        `out` holds something else, or results of other settings; it cannot be written.
    """
    root, out = Path(root), Path(out)
    if limit is not None and limit < 1:
        raise DataError(f"limit is {limit}, expected at least 1")
    forms, problems = find_forms(root)
    manifest = manifests()["iam-ondb"]
    splits, more = read_splits(root, manifest.splits, [form.id for form in forms])
    problems += more
    forms = forms[:limit]
    _adopt(out, root, overwrite)
    reused, done = 0, []
    for number, form in enumerate(forms):
        if progress:
            progress(number, len(forms))
        path = out / FORMS / f"{form.id}.json"
        split, writer = splits.get(form.id, ""), writer_of(root, form.id)
        try:
            source = _source(form, split, writer)
            if _is_done(path, out, source):
                reused += 1
            else:
                record, met = _page(form, writer, split, out)
                told = {"source": source, "page": json_line(record), "problems": [*map(_told, met)]}
                write_bytes(path, json.dumps(told).encode())
        except DataError as err:
            problems.append(Problem(form.id, str(err)))
            continue
        done.append(form.id)
    if progress:
        progress(len(forms), len(forms))
    if not done:
        raise DataError(f"{root}: no form of {len(forms)} could be used; the first: {problems[0]}")
    return _finish(out, manifest, done, reused, problems)


def _source(form: Form, split: str, writer: str) -> str:
    """SHA-256 of what a form's page is made of: the page is made anew where its lines or its text have changed."""
    content = hashlib.sha256(f"{split}\0{writer}\0".encode())
    for path in filter(None, (form.text, *form.lines)):
        data = read_bytes(path)
        content.update(f"{path.name} {len(data)}\0".encode() + data)
    return content.hexdigest()


def _is_done(path: Path, out: Path, source: str) -> bool:
    """Whether a form's record is there, whole and of this source, and its image."""
    try:
        stored = json.loads(path.read_bytes())
        return stored["source"] == source and Path(out / json.loads(stored["page"])["image"]).is_file()
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _adopt(out: Path, root: Path, overwrite: bool) -> None:
    settings: dict[str, Any] = {"format": _FORMAT, "source": str(root.resolve())}
    settings |= {"scale": SCALE, "pen": PEN, "margin": MARGIN, "pitch": PITCH}
    if out.exists() and not out.is_dir():
        raise RunError(f"the output {out} is a file; expected a folder, or a name that is still free")
    try:
        out.mkdir(parents=True, exist_ok=True)
        there = sorted(p.name for p in out.iterdir() if not p.name.startswith(".inktraj-"))  # what a kill left
        others = [name for name in there if name not in _OURS]
        if others or (there and not (out / SETTINGS).is_file()):
            example = (others or there)[0]
            raise RunError(
                f"the output folder {out} holds files that are not of an earlier run ({example!r}, …); nothing was "
                "touched. Name an empty or a new folder with --out"
            )
        if overwrite:
            _clear(out)
        if (out / SETTINGS).is_file():
            _compare(out, settings)
        else:  # first of all: a kill right after leaves a folder that is known as ours
            write_text(out / SETTINGS, json.dumps(settings, indent=1) + "\n")
        for name in (FORMS, IMAGES):
            (out / name).mkdir(exist_ok=True)
    except OSError as err:
        raise RunError(f"cannot write {out}: {err.strerror or err}; are its rights and the disk in order?") from err


def _clear(out: Path) -> None:
    # The settings go last: a kill in between leaves a folder that is still known as ours.
    for name in (OWN_MANIFEST, PAGES, PROBLEMS):
        (out / name).unlink(missing_ok=True)
    for name in (FORMS, IMAGES):
        shutil.rmtree(out / name, ignore_errors=True)
    (out / SETTINGS).unlink(missing_ok=True)


def _compare(out: Path, settings: dict[str, Any]) -> None:
    try:
        old = json.loads((out / SETTINGS).read_bytes())
        differing = [name for name in settings if old.get(name) != settings[name]]
    except (ValueError, AttributeError) as err:
        raise RunError(f"{out / SETTINGS} is damaged ({err}); use another --out, or --overwrite") from err
    if differing:
        told = "; ".join(f"{name} is {old.get(name)!r} there and {settings[name]!r} now" for name in differing)
        raise RunError(f"{out} holds pages of other settings: {told}. Use another --out, or --overwrite")


def _page(form: Form, writer: str, split: str, out: Path) -> tuple[dict[str, Any], list[Problem]]:
    """Make a form's page, write its image, and return its record and what was not as it should be."""
    import cv2

    if form.text is None:
        raise DataError(f"there is no text of the form {form.id}, expected ascii/…/{form.id}.txt")
    texts = [words_of(line) for line in read_text_lines(form.text)]
    if len(texts) != len(form.lines):
        raise DataError(
            f"{len(form.lines)} line files and {len(texts)} lines of text ({form.text}); "
            "which belongs to which is not known"
        )
    lines, problems = [], []
    for path in form.lines:
        line, met = read_line(path)
        lines.append(line)
        problems += met
    page = compose_page(lines, texts)
    image = f"{IMAGES}/{form.id}.png"
    png = cv2.imencode(".png", page.pixels)[1].tobytes()
    write_bytes(out / image, png)
    record = page_record(
        form.id,
        image,
        hashlib.sha256(png).hexdigest(),
        (page.pixels.shape[1], page.pixels.shape[0]),
        page.words,
        writer=writer,
        split=split,
        extra={"pen": PEN, "placing": page.placing},
    )
    return record, problems


def _told(problem: Problem) -> dict[str, str]:
    return {"place": problem.place, "reason": problem.reason}


def _finish(out: Path, manifest: Manifest, done: list[str], reused: int, problems: list[Problem]) -> Prepared:
    lines, words, nameless = [], 0, 0
    for id in done:
        stored = json.loads((out / FORMS / f"{id}.json").read_bytes())
        record = json.loads(stored["page"])
        words += len(record["words"])
        nameless += not record["writer"]
        lines.append(stored["page"])
        problems += [Problem(**problem) for problem in stored["problems"]]
    if nameless:
        problems.append(
            Problem(str(out), f"the writers of {nameless} forms are not known: there is no original of them")
        )
    write_text(out / PAGES, "".join(lines))
    write_text(out / PROBLEMS, "".join(json.dumps(_told(p), ensure_ascii=False) + "\n" for p in problems))
    write_text(out / OWN_MANIFEST, _manifest_text(out, manifest, len(done), words))
    return Prepared(out, len(done), reused, words, tuple(problems))


def _manifest_text(out: Path, source: Manifest, pages: int, words: int) -> str:
    digest = hashlib.sha256((out / PAGES).read_bytes()).hexdigest()
    told = {
        "name": source.name,
        "version": source.version,
        "title": f"{source.title}; a page for each form",
        "layout": "pages",
        "references": source.references,
        "licence": source.licence,
        "citation": source.citation,
        "url": source.url,
        "notes": "Lines were cut into words and drawn by inktraj data prepare; the images are not those of the forms.",
    }
    head = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in told.items())
    files = f'[[files]]\npath = "{PAGES}"\nsha256 = "{digest}"\n\n[[files]]\npath = "{IMAGES}/*.png"\ncount = {pages}\n'
    return f"{head}\n[statistics]\npages = {pages}\nwords = {words}\n\n{files}"

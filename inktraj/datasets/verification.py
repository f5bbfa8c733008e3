"""Is a data set whole? Files, counts, digests and all pages are looked at, and every problem is told."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inktraj.datasets.iamondb import find_forms, read_line, read_splits, read_text_lines
from inktraj.datasets.manifest import Manifest
from inktraj.datasets.opening import load_dataset, locate
from inktraj.datasets.sample import Problem
from inktraj.errors import DataError

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found in a folder.

    Parameters
    ----------
    manifest, root
        The data set.
    counts
        What is there, by name.
    problems
        What is missing, damaged, or not as the manifest says.
    skipped
        Words and pages that are no samples, and why; these are as they should be.
    """

    manifest: Manifest
    root: Path
    counts: Mapping[str, int]
    problems: tuple[Problem, ...]
    skipped: tuple[Problem, ...] = ()


def verify(place: str | Path, *, images: str | Path | None = None, progress: Progress | None = None) -> Verification:
    """Look at all of a data set.

    Parameters
    ----------
    place
        Its name or folder; a local copy of IAM-OnDB too.
    images
        Folder in which a pseudo-label run's page images are now.
    progress
        Called with the pages, or forms, done and their number.

    Raises
    ------
    DataError
        There is no such data set.
    """
    manifest, root = locate(place)
    if manifest.layout == "none":
        raise DataError(f"{root}: {manifest.name} is known by its description only. {manifest.notes}")
    counts, problems = _files(manifest, root)
    if manifest.layout == "iam-ondb":
        more, found = _forms(manifest, root, progress)
        return Verification(manifest, root, {**counts, **more}, (*problems, *found))
    more, found, skipped = _pages(root, images, progress)
    found += _counted(manifest, root, more)
    return Verification(manifest, root, {**counts, **more}, (*problems, *found), skipped)


def _counted(manifest: Manifest, root: Path, counts: Mapping[str, int]) -> list[Problem]:
    """What is not as many as the manifest says."""
    return [
        Problem(str(root), f"there are {counts[name]} {name}, and its manifest says {manifest.statistics[name]:g}")
        for name in ("pages", "words", "strokes")
        if name in manifest.statistics and counts.get(name, 0) != manifest.statistics[name]
    ]


def _files(manifest: Manifest, root: Path) -> tuple[dict[str, int], list[Problem]]:
    problems, total = [], 0
    for rule in manifest.files:
        paths = [path for path in sorted(root.glob(rule.path)) if path.is_file()]
        total += len(paths)
        if not paths:
            problems.append(Problem(str(root / rule.path), "there is no such file"))
        elif rule.count is not None and len(paths) != rule.count:
            problems.append(Problem(str(root / rule.path), f"there are {len(paths)}, expected {rule.count}"))
        if rule.sha256 and paths and (digest := _digest(paths[0])) != rule.sha256:
            problems.append(Problem(str(paths[0]), f"its digest is {digest[:12]}…, expected {rule.sha256[:12]}…"))
    return {"files": total}, problems


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pages(
    root: Path, images: str | Path | None, progress: Progress | None
) -> tuple[dict[str, int], list[Problem], tuple[Problem, ...]]:
    try:
        data = load_dataset(root, images=images)
    except DataError as err:
        return {"pages": 0, "words": 0, "strokes": 0}, [Problem(str(root), str(err))], ()
    problems, strokes = [], 0
    for number in range(len(data.pages)):
        if progress:
            progress(number, len(data.pages))
        try:
            page = data.pages[number]
            strokes += sum(len(sample.ink.strokes) for sample in page.samples)
            page.picture.open()
        except DataError as err:
            problems.append(Problem(f"page {number + 1}", str(err)))
            continue
        outside = [s.id for s in page.samples if not _on_page(s.box, page.picture.width, page.picture.height)]
        if outside:
            problems.append(Problem(page.id, f"{len(outside)} words lie outside of the page, such as {outside[0]}"))
    counts = {"pages": len(data.pages), "words": len(data), "strokes": strokes}
    counts |= {"skipped": len(data.skipped), "not_kept": data.not_kept}
    return counts, problems, data.skipped


def _on_page(box: tuple[float, float, float, float], width: int, height: int) -> bool:
    x0, y0, x1, y1 = box
    return x1 >= -0.5 and y1 >= -0.5 and x0 <= width - 0.5 and y0 <= height - 0.5


def _forms(manifest: Manifest, root: Path, progress: Progress | None) -> tuple[dict[str, int], list[Problem]]:
    try:
        forms, problems = find_forms(root)
    except DataError as err:
        return {"forms": 0}, [Problem(str(root), str(err))]
    splits, more = read_splits(root, manifest.splits, [form.id for form in forms])
    problems += more
    counts = {"forms": len(forms), "lines": 0, "strokes": 0, "forms_in_splits": len(splits)}
    for number, form in enumerate(forms):
        if progress:
            progress(number, len(forms))
        try:
            if form.text is None:
                raise DataError("there is no text of this form")
            texts = read_text_lines(form.text)
            if len(texts) != len(form.lines):
                raise DataError(f"{len(form.lines)} line files and {len(texts)} lines of text")
        except DataError as err:
            problems.append(Problem(form.id, str(err)))
        for path in form.lines:
            try:
                line, met = read_line(path)
            except DataError as err:
                problems.append(Problem(form.id, str(err)))
                continue
            problems += met
            counts["lines"] += 1
            counts["strokes"] += len(line.strokes)
    return counts, problems

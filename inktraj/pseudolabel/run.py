"""A run over many pages: find them, do what is missing, write each page when it is done, then the data set."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import Any

from inktraj.agree import THRESHOLD
from inktraj.errors import DataError, InktrajError, ParseError, RunError
from inktraj.io.images import Source, digest, find_sources
from inktraj.pseudolabel.export import Tally, write_dataset
from inktraj.pseudolabel.folder import FORM, RunFolder
from inktraj.pseudolabel.label import WORKING_PIXELS, Labelled
from inktraj.pseudolabel.machine import package_versions
from inktraj.pseudolabel.parts import PartNames, Parts
from inktraj.pseudolabel.pool import Pool, WorkerDied
from inktraj.pseudolabel.worker import Done, PageWorker, Start, failed, finished

FORMAT = f"{FORM} 2"
"""Name of the form of the output folder; another form is never mixed with it."""

PAGE_TIMEOUT = 600.0
"""Seconds for one page, unless the caller says otherwise."""

Where = str | Path | Sequence[str | Path]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands, after each page.

    Parameters
    ----------
    done, total
        Pages done, those of earlier runs included, and pages in all.
    words
        Words on the pages done.
    kept, failed
        Pages kept and failed among those done.
    reused
        Pages taken over from an earlier run.
    page_id
        The page that was just done; "" before the first.
    """

    done: int
    total: int
    words: int
    kept: int
    failed: int
    reused: int
    page_id: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run gave.

    Parameters
    ----------
    out
        The output folder.
    pages, kept, dropped, failed
        Pages in all and by verdict.
    words
        Words on all pages.
    agreement, ink_recall, ink_precision
        Means: agreement over the pages which have one, the ink's over kept pages; None where there are none.
    done, reused
        Pages done now, and taken over from an earlier run.
    left_out
        Ids of pages done by earlier runs that are no longer among the sources: their files stay, the data set is
        without them.
    unread
        Ids of pages that could not be read now, while results of an earlier run are there: those were kept.
    redone
        Ids of pages whose record or files something else had damaged, and what was wrong: they were done again.
    skipped
        Files that were not taken for pages, with the reason.
    seconds
        Wall time of this run.
    """

    out: Path
    pages: int
    kept: int
    dropped: int
    failed: int
    words: int
    agreement: float | None
    ink_recall: float | None
    ink_precision: float | None
    done: int
    reused: int
    left_out: tuple[str, ...]
    unread: tuple[str, ...]
    redone: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]
    seconds: float

    @property
    def kept_share(self) -> float | None:
        """Share of all pages that were kept; None without pages."""
        return self.kept / self.pages if self.pages else None


def build_pseudolabels(
    pages: Where,
    out: str | Path,
    *,
    threshold: float = THRESHOLD,
    workers: int = 1,
    segmenter: Any = "inkgap",
    recoverer: Any = "scribe",
    recognizer: Any = "ppocr",
    seed: int = 0,
    limit: int | None = None,
    overwrite: bool = False,
    retry_failed: bool = False,
    page_timeout: float = PAGE_TIMEOUT,
    progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """Turn page photos into a data set of checked stroke trajectories.

    Each page is segmented, its words' strokes are recovered, placed on the page and rendered with one pen; the
    same recogniser reads page and rendering, and the page is kept where enough words agree. A page that cannot be
    used becomes a record with the reason. A run that was stopped is taken up where it stood: call it again.

    Parameters
    ----------
    pages
        A folder, file, glob pattern, zip or tar, or several of them (`inktraj.io.images.find_sources`).
    out
        Folder for the data set (docs/pseudolabels.md lists its files); made where it does not exist.
    threshold
        Least agreement, in 0–1, for a page to be kept.
    workers
        Processes, one thread each; the results do not depend on it. 0 works in this process.
    segmenter, recoverer, recognizer
        A name (``"inkgap"``, ``"scribe"``, ``"ppocr"``), a ``module:attribute``, or an object of that protocol.
    seed
        Seeds `random` and NumPy's global generator before each page, for parts that draw.
    limit
        Only the first so many pages.
    overwrite
        Remove what an earlier run left in `out`, instead of taking it over or refusing.
    retry_failed
        Do pages that failed in an earlier run again.
    page_timeout
        Seconds after which a page fails and its worker process is replaced, so that a part which hangs cannot hold
        up the run; 0 for none. It does not apply with ``workers=0``, where nothing could end the part.
    progress
        Called in this thread after each page.

    Returns
    -------
    RunSummary
        Its `failed` says how many pages could not be used, its `unread` which ones stand as an earlier run left them.

    Raises
    ------
    DataError
        There are no pages, or an argument is out of range.
    RunError
        `out` is in use, holds other settings or other files, lies where the pages are, or cannot be written; or
        the parts cannot be loaded.
    """
    begin = time.perf_counter()
    if not 0 <= threshold <= 1:
        raise DataError(f"a threshold is a share in 0–1, not {threshold!r}; was it meant in per cent?")
    if workers < 0 or (limit is not None and limit < 1):
        raise DataError(f"workers must be at least 0 and a limit at least 1, not {workers!r} and {limit!r}")
    if not page_timeout >= 0:
        raise DataError(f"page_timeout must be at least 0 seconds (0 for no limit), not {page_timeout!r}")
    root = Path(out)
    places = [pages] if isinstance(pages, (str, Path)) else list(pages)
    check_apart(places, root)
    sources, skipped = found_in(places)
    if not sources:
        raise DataError("no pages were named, expected at least one folder, file, pattern or archive")
    check_outside(sources, root)
    sources = sources[:limit]
    names = PartNames(segmenter, recoverer, recognizer)
    parts = names.load()
    settings = {
        "format": FORMAT,
        "threshold": threshold,
        "working pixels": WORKING_PIXELS,
        "seed": seed,
        **parts.versions(),
        **{f"version of {package}": version for package, version in package_versions().items()},
    }
    with RunFolder(root, settings, overwrite=overwrite) as folder:
        run = _Run(folder, sources, progress, retry_failed)
        run.do_missing(Start(names, threshold, seed), parts, workers, page_timeout)
        known = {source.id for source in sources}
        left_out = tuple(name for name in folder.record_names() if name not in known)
        tally = write_dataset(folder, sources, settings, run.facts(workers, begin, left_out))
    return RunSummary(
        root,
        len(sources),
        tally.verdicts["kept"],
        tally.verdicts["dropped"],
        tally.verdicts["failed"],
        tally.words,
        tally.mean("agreement"),
        tally.mean("ink_recall"),
        tally.mean("ink_precision"),
        len(sources) - run.reused,
        run.reused,
        left_out,
        tuple(run.unread),
        tuple(run.redone.items()),
        skipped,
        time.perf_counter() - begin,
    )


class _Run:
    """The pages of one run: which are missing, and how far it is."""

    def __init__(
        self,
        folder: RunFolder,
        sources: list[Source],
        progress: Callable[[Progress], None] | None,
        retry_failed: bool,
    ) -> None:
        self._folder = folder
        self._sources = sources
        self._progress = progress
        self._retry_failed = retry_failed
        self._tally = Tally()
        self._peak_mb: float | None = None
        self.reused = 0
        self.unread: list[str] = []
        self.redone: dict[str, str] = {}

    def do_missing(self, start: Start, parts: Parts, workers: int, page_timeout: float) -> None:
        missing = []
        for source in self._sources:
            record = self._undamaged(source)
            if record is not None and self._still_good(source, record["page"]):
                self.reused += 1
                self._tally.add(record)
            else:
                missing.append(source)
        self._tell("")
        if not missing:
            return
        if not workers:
            worker = PageWorker(start, parts)
            for source in missing:
                self._keep(source, worker(source))
            return
        limit = page_timeout if 0 < page_timeout <= threading.TIMEOUT_MAX else None
        with Pool(start, min(workers, len(missing)), limit) as pool:
            for source, outcome in pool.map(missing):
                if isinstance(outcome, WorkerDied):
                    outcome = finished(Labelled(failed(source, str(outcome))))
                self._keep(source, outcome)

    def _undamaged(self, source: Source) -> dict[str, Any] | None:
        try:
            return self._folder.read_record(source.id)
        except ParseError as err:
            self.redone[source.id] = str(err)
            return None

    def _still_good(self, source: Source, page: dict[str, Any]) -> bool:
        if self._retry_failed and page["verdict"] == "failed":
            return False
        try:
            return bool(digest(source) == page["sha256"])
        except (InktrajError, OSError):
            if page["verdict"] == "failed":
                return bool(page["sha256"] == "")
            # Its file may be back in a moment, as on a network drive; doing it now would lose what is there.
            self.unread.append(source.id)
            return True

    def _keep(self, source: Source, done: Done) -> None:
        self._folder.write_page(source.id, done.files, done.record)
        self._tally.add(done.record)
        self._peak_mb = max(filter(None, (self._peak_mb, done.peak_mb)), default=None)
        self._tell(source.id)

    def _tell(self, page_id: str) -> None:
        if self._progress is None:
            return
        verdicts = self._tally.verdicts
        self._progress(
            Progress(
                self._tally.pages,
                len(self._sources),
                self._tally.words,
                verdicts["kept"],
                verdicts["failed"],
                self.reused,
                page_id,
            )
        )

    def facts(self, workers: int, begin: float, left_out: tuple[str, ...]) -> dict[str, Any]:
        """What ``run.json`` tells of this run beyond the settings; it may differ between equal runs."""
        return {
            "workers": workers,
            "seconds": round(time.perf_counter() - begin, 3),
            "pages_done": len(self._sources) - self.reused,
            "pages_reused": self.reused,
            "pages_left_out": list(left_out),
            "pages_unread": self.unread,
            "pages_redone": self.redone,
            "peak_mb": self._peak_mb,
        }


def found_in(places: Iterable[str | Path]) -> tuple[list[Source], tuple[tuple[str, str], ...]]:
    """Return the pages of all places, in order, with ids that are unique among all, and what was passed over."""
    sources: list[Source] = []
    skipped: list[tuple[str, str]] = []
    taken: set[str] = set()
    seen: set[tuple[str, str | None, int]] = set()
    for place in places:
        found = find_sources(place)
        skipped += [(item.path, item.reason) for item in found.skipped]
        for source in found:
            part = (os.path.realpath(source.path), source.member, source.index)
            if part in seen:
                skipped.append((source.name, "named twice"))
                continue
            seen.add(part)
            name, number = source.id, 2
            while name.casefold() in taken:
                name, number = f"{source.id}-{number}", number + 1
            taken.add(name.casefold())
            sources.append(source if name == source.id else replace(source, id=name))
    return sources, tuple(skipped)


def check_apart(places: Iterable[str | Path], out: Path) -> None:
    """Refuse an output folder that lies in a folder of pages, where the next run would find its pictures."""
    target = out.resolve()
    for place in places:
        base = Path(place)
        if has_magic(os.fspath(place)) and not base.exists():
            if "**" not in base.parts:
                continue
            base = Path(*base.parts[: base.parts.index("**")])
        if base.is_dir() and target.is_relative_to(base.resolve()):
            raise RunError(
                f"the output {out} lies in the folder of pages {base}; its pictures would be taken for pages. "
                "Name a folder elsewhere with --out"
            )


def check_outside(sources: Iterable[Source], out: Path) -> None:
    """Refuse pages that lie in the output folder."""
    target = out.resolve()
    for folder in dict.fromkeys(Path(source.path).parent for source in sources):
        if folder.resolve().is_relative_to(target):
            raise RunError(f"the pages in {folder} lie in the output folder {out}; name another folder with --out")

"""A name or a folder → a `Dataset`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from inktraj.datasets.manifest import OWN_MANIFEST, Manifest, demo_folder, manifests, read_manifest
from inktraj.datasets.records import PAGES, RecordStore, image_by_source, image_within
from inktraj.datasets.sample import Dataset
from inktraj.errors import DataError

FOLDER_VARIABLE = "INKTRAJ_DATA"
"""Environment variable: the folder, or folders, in which data sets lie under their names."""

PSEUDO_LABELS = "pseudo-labels"
"""Name of the manifest for runs of ``build-pseudolabels``."""

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class Found:
    """A manifest and where its data set lies; None where it was not found."""

    manifest: Manifest
    root: Path | None


def find(name: str) -> Found:
    """Find a data set by its manifest's name, in the package or below the folders of `FOLDER_VARIABLE`.

    Raises
    ------
    DataError
        No manifest has that name.
    """
    known = manifests()
    if name not in known:
        raise DataError(f"no data set is named {name!r}, and there is no such folder; known are: {', '.join(known)}")
    if name == DEMO:
        return Found(known[name], demo_folder() if demo_folder().is_dir() else None)
    places = [Path(place) / name for place in os.environ.get(FOLDER_VARIABLE, "").split(os.pathsep) if place]
    return Found(known[name], next((place for place in places if place.is_dir()), None))


def recognise(root: Path) -> Manifest:
    """Say by its files what kind of data set a folder holds: its own manifest, or the one of its form.

    Raises
    ------
    DataError
        It is no data set.
    """
    if (root / OWN_MANIFEST).is_file():
        return read_manifest(root / OWN_MANIFEST)
    if (root / "settings.json").is_file() and ((root / PAGES).is_file() or (root / "records").is_dir()):
        return manifests()[PSEUDO_LABELS]
    if root == demo_folder():
        return manifests()[DEMO]
    if (root / "lineStrokes").is_dir():
        return manifests()["iam-ondb"]
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; is the path misspelt?")
    raise DataError(
        f"{root}: no data set, expected {OWN_MANIFEST} with {PAGES}, a finished run of build-pseudolabels, or "
        "IAM-OnDB's lineStrokes and ascii"
    )


def locate(place: str | Path) -> tuple[Manifest, Path]:
    """Return manifest and folder of a data set's name, or of a folder.

    Raises
    ------
    DataError
        There is nothing of that name, or the data set is known but not there.
    """
    if isinstance(place, str) and place in manifests():
        found = find(place)
        if found.root is None:
            hint = found.manifest.notes or f"it is to be had from {found.manifest.url}"
            raise DataError(
                f"the data set {place!r} is known but was not found; name its folder, or put it as {place} into a "
                f"folder that {FOLDER_VARIABLE} names. {hint}"
            )
        return found.manifest, found.root
    if isinstance(place, str) and not Path(place).exists() and os.sep not in place:
        find(place)  # tells what names there are
    root = Path(place)
    return recognise(root), root


def load_dataset(place: str | Path, *, split: str | None = None, images: str | Path | None = None) -> Dataset:
    """Open a data set; its pages are read when they are asked for.

    Parameters
    ----------
    place
        Name of a known data set (``"demo"``), or a folder: one of the page form, or a finished run of
        ``build-pseudolabels``. A folder of a known name is meant by a path such as ``./demo``.
    split
        Only pages of this part of it.
    images
        Folder in which a pseudo-label run's page images are now, where they have moved.

    Raises
    ------
    DataError
        It is not there, not finished, in a form that must be prepared first, has two pages or words of one name, or
        holds no word.
    ParseError
        A file of it is not in its form.
    """
    manifest, root = locate(place)
    if manifest.layout == "iam-ondb":
        raise DataError(
            f"{root}: IAM-OnDB as it is distributed has lines, not pages; make its pages once with "
            f"inktraj data prepare {root} --out DIR, and use DIR"
        )
    if manifest.layout == "none":
        raise DataError(f"{root}: {manifest.name} is known by its description only. {manifest.notes}")
    if manifest.layout == "pseudo-labels":
        finder, filtered_by = image_by_source(None if images is None else Path(images)), _recognizer_of(root)
    else:
        if images is not None:
            raise DataError(
                f"{root} is in the page form and holds its images itself; images={str(images)!r} is for the folder of "
                "a pseudo-label run"
            )
        finder, filtered_by = image_within, ""
    store = RecordStore(root, finder, split)
    if not store.ids:
        left = f"; {store.not_kept} pages were not kept" if store.not_kept else ""
        more = f"; such as {store.skipped[0]}" if store.skipped else ""
        raise DataError(f"{root}: there is no word in it to be asked for{left}{more}")
    return Dataset(
        manifest.name if manifest.name != PSEUDO_LABELS else root.resolve().name or PSEUDO_LABELS,
        manifest.version,
        store,
        manifest.references,
        filtered_by,
        manifest.licence,
        manifest.citation,
        root,
        tuple(store.skipped),
        store.not_kept,
        split or "",
    )


def _recognizer_of(root: Path) -> str:
    try:
        told = json.loads((root / "settings.json").read_bytes())["recognizer"]
    except (OSError, ValueError, TypeError, KeyError):
        return ""  # the strokes can be used without; who chose them is then not known
    return told if isinstance(told, str) else ""

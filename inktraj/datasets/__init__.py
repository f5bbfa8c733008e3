"""Data sets for evaluation: pages, the words on them, and their reference inks.

Known ones have a manifest (``data_manifests/``); `load_dataset` opens one by its name or its folder.
"""

from inktraj.datasets.manifest import Manifest, manifests, read_manifest
from inktraj.datasets.opening import load_dataset
from inktraj.datasets.sample import REFERENCES, Dataset, PagePicture, Problem, Sample, SamplePage

__all__ = [
    "REFERENCES",
    "Dataset",
    "Manifest",
    "PagePicture",
    "Problem",
    "Sample",
    "SamplePage",
    "load_dataset",
    "manifests",
    "read_manifest",
]

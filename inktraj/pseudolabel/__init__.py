"""Page photos → a data set of checked stroke trajectories.

Wires the stages: load → segment → recover → place → render → agree. Runs over folders in several processes,
takes stopped runs up again, and writes the data set with its report (docs/pseudolabels.md).
"""

from __future__ import annotations

from inktraj.agree import THRESHOLD
from inktraj.pseudolabel.label import Labelled, label_page
from inktraj.pseudolabel.parts import PartNames, Parts
from inktraj.pseudolabel.record import PseudoLabel, WordLabel, read_pseudolabels
from inktraj.pseudolabel.run import Progress, RunSummary, build_pseudolabels

__all__ = [
    "THRESHOLD",
    "Labelled",
    "PartNames",
    "Parts",
    "Progress",
    "PseudoLabel",
    "RunSummary",
    "WordLabel",
    "build_pseudolabels",
    "label_page",
    "read_pseudolabels",
]

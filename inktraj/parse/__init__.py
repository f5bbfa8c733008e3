"""A model's reply → ink: `parse` reads whatever form the points are written in, and says what became of the rest.

A reply is text of any kind. `parse` looks for points in each of the `DIALECTS`, takes the last complete answer,
converts its points to pixels of the image as sent, and returns a `Parsed`: strokes, a status, and an account of
everything that was not used. It makes up no point, raises on no reply, and takes linear time.
"""

from inktraj.parse.dialects import DIALECTS
from inktraj.parse.frames import FRAME_NAMES, CoordinateFrame, FrameName
from inktraj.parse.reading import Problem
from inktraj.parse.reply import parse
from inktraj.parse.result import Leftover, Numbers, Parsed, Status

__all__ = [
    "DIALECTS",
    "FRAME_NAMES",
    "CoordinateFrame",
    "FrameName",
    "Leftover",
    "Numbers",
    "Parsed",
    "Problem",
    "Status",
    "parse",
]

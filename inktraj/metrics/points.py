"""Arrays of points, checked: what every function of `inktraj.metrics` takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inktraj.errors import DataError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def as_points(points: ArrayLike, name: str) -> FloatArray:
    """Return points (n, 2), n ≥ 1, as C-contiguous float64.

    Raises
    ------
    DataError
        Another shape, no points, masked points, NaN, infinity, complex numbers, or numbers whose squares overflow.
    """
    if (
        type(points) is np.ndarray
        and points.dtype == np.float64
        and points.flags.c_contiguous
        and points.shape[1:] == (2,)
    ):
        # One pass over what is most often fine: NaN and infinity come through the sum, and too large numbers are.
        with np.errstate(over="ignore", invalid="ignore"):
            if len(points) and np.vdot(points, points) <= 1e200:
                return points
    if hasattr(points, "strokes"):
        raise DataError(
            f"{name} is an ink, expected points (n, 2); inktraj.metrics.evaluate takes inks, and "
            "Normalization().apply(pred, ref) makes points of them"
        )
    if np.ma.is_masked(points):
        raise DataError(f"{name} is masked, and its masked points would count; drop them first")
    if isinstance(points, np.ndarray) and np.iscomplexobj(points):
        raise DataError(f"{name} holds complex numbers, expected (n, 2): x and y of each point")
    try:
        out = np.ascontiguousarray(points, dtype=np.float64)
    except (TypeError, ValueError) as err:
        raise DataError(f"{name} is not an array of numbers: {err}") from err
    if out.ndim != 2 or out.shape[1] != 2:
        raise DataError(f"{name} has shape {out.shape}, expected (n, 2): x and y of each point")
    if not len(out):
        raise DataError(f"{name} is empty; an ink without points has no distance to another")
    largest = np.abs(out).max()
    if not np.isfinite(largest):
        raise DataError(f"{name} holds NaN or infinity; drop or repair such points first")
    if largest > 1e100:
        raise DataError(f"{name} holds {largest:.3g}, expected coordinates below 1e100; were they decoded?")
    return out


def as_limit(value: float, name: str) -> float:
    """Return a length that something is compared with; DataError where it is negative or NaN."""
    if not value >= 0:
        raise DataError(f"{name} is {value!r}, expected a number of units, 0 or more")
    return float(value)


def as_strokes(points: ArrayLike, starts: ArrayLike, name: str) -> tuple[FloatArray, IntArray]:
    """Return a flat ink as C-contiguous float64 points (n, 2) and int64 offsets (strokes + 1).

    Raises
    ------
    DataError
        As of `as_points`; or offsets that are not whole numbers, do not rise from 0 to n, or leave a stroke empty.
    """
    checked = as_points(points, name)
    offsets = np.asarray(starts)
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu":
        raise DataError(
            f"{name}_starts has shape {offsets.shape} and type {offsets.dtype}, expected (strokes + 1,) whole numbers"
        )
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(checked):
        raise DataError(
            f"{name}_starts must run from 0 to the number of points, {len(checked)}, not "
            f"{'be empty' if not len(offsets) else f'from {offsets[0]} to {offsets[-1]}'}; is the last offset missing?"
        )
    if (np.diff(offsets) < 1).any():
        k = int(np.argmax(np.diff(offsets) < 1))
        raise DataError(
            f"{name}_starts does not rise after stroke {k}: {offsets[k]}, {offsets[k + 1]}; drop empty strokes"
        )
    return checked, offsets

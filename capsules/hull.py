"""The lower convex hull of a long sequence of points, without a Python loop over the points.

Used for min_i (b_i - c_i * x) at many x: only hull points of (c_i, b_i) can be minimal, in order of their slopes.
"""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW_KINKS = 32
MANY_KINKS = 512


def lower_hull(c: Floats, b: Floats) -> Ints:
    """Indices of the lower hull of the points (c[i], b[i]); c strictly rises.

    A point on or above the chord between its neighbours is never needed, so all such points are removed at once,
    repeatedly. Once few remain, or their number hardly falls, the points form some convex arcs, and neighbouring arcs
    are joined by their common tangent, pair by pair. (Smooth laws make long arcs, which removal alone would shorten by
    one point per round; noise makes many kinks, of which each round removes about half.)
    """
    keep = np.arange(len(c))
    before = len(c)
    while True:
        slopes = np.diff(b[keep]) / np.diff(c[keep])
        kinks = slopes[1:] <= slopes[:-1]
        count = int(np.count_nonzero(kinks))
        if count <= FEW_KINKS or (count <= MANY_KINKS and count > 0.75 * before):
            break
        before = count
        keep = keep[np.concatenate(([True], ~kinks, [True]))]
    arcs = np.split(keep, np.flatnonzero(kinks) + 2)
    while len(arcs) > 1:
        pairs = [_join(c, b, left, right) for left, right in zip(arcs[::2], arcs[1::2], strict=False)]
        arcs = pairs + arcs[len(pairs) * 2 :]
    return arcs[0]


def _join(c: Floats, b: Floats, left: Ints, right: Ints) -> Ints:
    """The hull of two convex chains that follow each other."""
    last, first = _tangent(c[left], b[left], c[right], b[right])
    return np.concatenate((left[: last + 1], right[first:]))


def _tangent(c: Floats, b: Floats, d: Floats, e: Floats) -> tuple[int, int]:
    """The points where the common lower tangent touches two convex chains, (c, b) and to its right (d, e).

    The supporting line of slope x meets the axis at min(b - c x) and min(e - d x). Their difference rises with x,
    because the right chain's point lies further right, and is zero for the tangent; so a chain's touching point is
    the first whose next edge is at least as steep as the tangent.
    """
    left, right = np.diff(b) / np.diff(c), np.diff(e) / np.diff(d)

    def past(x: float) -> bool:
        i, j = left.searchsorted(x), right.searchsorted(x)
        return bool(b[i] - c[i] * x >= e[j] - d[j] * x)

    return bisect_left(left, True, key=past), bisect_left(right, True, key=past)

"""The fixed schedule of a run: Stan's windows of warm-up, then the draws."""

from dpjax.running.schedule import Segment

__all__ = ["make_schedule"]

FIRST, WINDOW, LAST = 75, 25, 50
"""Steps before the first window that a covariance is taken of, of that window, and after the last one."""

FEWEST = 20
"""Shorter warm-ups have no such window."""


def make_schedule(num_warmup: int, num_samples: int) -> tuple[Segment, ...]:
    """The segments of a run; they depend on these numbers only. Those with `adapt` end with a new mass matrix."""
    lengths = window_lengths(num_warmup)
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    windows = [
        Segment("warm-up", start, length, 1, adapt=0 < number < len(lengths) - 1)
        for number, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    return (*windows, Segment("sampling", num_warmup, num_samples, 1))


def window_lengths(num_warmup: int) -> list[int]:
    """The lengths of the windows: each between the first and the last twice as long as the one before."""
    if num_warmup < FEWEST:
        return [num_warmup] if num_warmup else []
    first, window, last = FIRST, WINDOW, LAST
    if first + window + last > num_warmup:
        first, last = int(0.15 * num_warmup), int(0.1 * num_warmup)
        window = num_warmup - first - last
    between, rest = [], num_warmup - first - last
    while rest:
        window = window if 3 * window <= rest else rest  # no window is left that is shorter than the one before
        between.append(window)
        rest, window = rest - window, 2 * window
    return [first, *between, last]

"""The fixed schedule of a run: windows of warm-up, then the draws."""

from dpjax.running.schedule import Segment

WINDOWS = (1, 1, 1, 1, 2, 2, 4, 4)
"""Lengths of the warm-up windows, in sixteenths of the warm-up. Each gives as many draws: longer ones are thinned."""

MIN_WINDOW = 4
"""Draws of each chain that a window needs before anything is fitted to them."""


def make_schedule(num_warmup: int, num_samples: int, thin: int, adapt: bool = True) -> tuple[Segment, ...]:
    """The segments of a run; they depend on these numbers only.

    A warm-up of fewer than 64 steps is made without adaptation, and so are the last steps of a warm-up that is no
    multiple of 16. Without `adapt` the windows stay, and what was fitted before the run is left as it is.
    """
    unit = num_warmup // sum(WINDOWS)
    lengths = WINDOWS if unit >= MIN_WINDOW else ()
    segments: list[Segment] = []
    for length in lengths:
        segments.append(Segment("warm-up", next_step(segments), unit, length, adapt=adapt))
    rest = num_warmup - next_step(segments)
    if rest:
        segments.append(Segment("warm-up", next_step(segments), rest, 1))
    return (*segments, Segment("sampling", num_warmup, num_samples, thin))


def next_step(segments: list[Segment]) -> int:
    """The number of the step after these segments."""
    return segments[-1].stop if segments else 0

"""The loop everyone uses: starts, warm-up, compiled chunks, progress and checkpoints."""

from dpjax.sampling.sample import sample
from dpjax.sampling.until import Until, until

__all__ = ["Until", "sample", "until"]

"""The loop everyone uses: starts, warm-up, compiled chunks, progress and checkpoints."""

from dpjax.sampling.sample import sample

__all__ = ["sample"]

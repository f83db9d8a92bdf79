"""The loop of a run: chunk after chunk, until it is done or interrupted."""

import time
import warnings

from dpjax.running.progress import Progress, next_length
from dpjax.sampling.checkpoint import Checkpoint
from dpjax.sampling.run import Run, Status, is_done, make_chunk


def finish(run: Run, status: Status, file: Checkpoint | None, show: bool) -> Status:
    """Make chunks until all draws are made, or until an interruption; the status of the last whole chunk."""
    length, done = 1, run.schedule[status.segment].start + status.filled * run.schedule[status.segment].thin
    with Progress(run.schedule[-1].stop, done, show) as bar:
        try:
            while not is_done(run, status):
                segment, began = run.schedule[status.segment], time.perf_counter()
                status, made = make_chunk(run, status, length)
                length = next_length(made, time.perf_counter() - began)
                if file is not None:
                    file.save_sometimes(status)
                bar.advance(made * segment.thin, segment.phase)
        except KeyboardInterrupt:
            pass
    if file is not None and file.saved_at != (status.segment, status.filled):
        try:
            file.try_to_save(status)
        except KeyboardInterrupt:  # one more, while the run was being saved: the draws come first
            warnings.warn(f"The end of the run was not saved in {str(file.path)!r}.", stacklevel=3)
    return status

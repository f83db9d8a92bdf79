"""What a run has drawn, put together."""

import numpy as np

from dpjax.complaints import warn_of_nonfinite
from dpjax.mixture.checkpoint import Checkpoint
from dpjax.mixture.draws import join, join_numbers
from dpjax.mixture.problem import Problem
from dpjax.mixture.results.posterior import MixturePosterior
from dpjax.mixture.run import Run, Status
from dpjax.running.devices import bring_home
from dpjax.sampling.until import Look, UntilEnough, how_it_ended, look_at

__all__ = ["look", "report"]


def look(problem: Problem, status: Status) -> Look:
    """How good the draws made so far are."""
    return look_at(join_numbers(status.chunks), {"concentration": problem.learns_concentration})


def report(run: Run, status: Status, file: Checkpoint | None, watch: UntilEnough | None) -> MixturePosterior:
    """The posterior of the draws made, with a warning if some are missing and an error if all are."""
    interrupted, ended = how_it_ended("mixture.sample", run.schedule, status, file, watch, stacklevel=3)
    draw = join(status.chunks, status.setup.capacity)
    info = {
        name: getattr(draw.info, name) for name in ("acceptance_rate", "num_nonfinite", "num_slots", "num_split_merges")
    }
    warn_of_nonfinite(info["num_nonfinite"], stacklevel=4)
    return MixturePosterior(
        draws={"num_clusters": draw.num_clusters, "concentration": draw.concentration},
        mixing=draw.mixing,
        info=info,
        collected=draw.collected,
        truncation_error=status.setup.sampler.truncation_error(run.problem.n, np.max(draw.concentration)),
        interrupted=interrupted,
        problem=run.problem,
        final_states=bring_home(run.mesh, status.states),
        ended=ended,
    )

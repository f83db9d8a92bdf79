"""What queries made of the same records cost together."""

from collections.abc import Sequence

from dpjax.mechanisms.privacy import Neighbours
from dpjax.private import accounting, events
from dpjax.private.query import Query


def composed_log_delta(queries: Sequence[Query], epsilon: float, neighbours: Neighbours) -> float:
    """log δ at ε of queries made of the same records: by the closed form, or from above if any is subsampled."""
    if any(query.sampling_rate < 1 for query in queries):
        return events.subsampled_log_delta(queries, epsilon, neighbours)
    return accounting.log_delta(epsilon, composed_mu(queries, neighbours))


def composed_epsilon(queries: Sequence[Query], delta: float, neighbours: Neighbours) -> float:
    """ε at δ of queries made of the same records: by the closed form, or from above if any is subsampled."""
    if any(query.sampling_rate < 1 for query in queries):
        return events.subsampled_epsilon(queries, delta, neighbours)
    return accounting.epsilon(delta, composed_mu(queries, neighbours))


def composed_mu(queries: Sequence[Query], neighbours: Neighbours) -> float:
    """The mean privacy loss Σ Δ² / (2σ²) of full-batch queries (Theorem 2.4)."""
    step = accounting.sensitivity(1.0, neighbours)
    return sum((query.count * (step / query.noise_multiplier) ** 2 / 2 for query in queries), 0.0)

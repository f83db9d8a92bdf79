"""Tables imputed record by record meet the same oracles, where records can tell the case."""

import jax
import pytest

import dpjax
from tests.data_augmentation.counts import cases
from tests.data_augmentation.counts.accuracy import check_figures

LENGTHS = {"num_chains": 8, "num_warmup": 500, "num_samples": 2_500, "progress": False}
QUICK = {"skewed"}
SLOW = ["even", "row totals", "uniform size", "Poisson size", "negative binomial size", "naive Bayes", "log-linear"]


@pytest.mark.x32
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_records_meet_the_oracle(name: str) -> None:
    case = cases.build(name)
    posterior = dpjax.sample(
        jax.random.key(1),
        case.model,
        case.release,
        imputation=dpjax.imwg(),
        collect=cases.tally(name),
        **LENGTHS,
    )
    for figure, moments in case.figures.items():
        check_figures(posterior.collected if figure == "counts" else posterior.draws[figure], moments)

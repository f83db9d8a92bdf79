"""What is seen of a model, a release, a posterior and a ledger that stand at the end of a notebook's cell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import private
from dpjax._util.printing import MAX_LINES

NAMES = {"fields": ["sex", "admitted"], "levels": [["female", "male"], ["no", "yes"]]}
STATISTIC = dpjax.statistics.cells(NAMES["fields"], levels=NAMES["levels"])
RELEASE = dpjax.Release([[58, 21], [12, 64]], dpjax.DiscreteGaussian(10.0), STATISTIC, n=150)
MODEL = dpjax.models.categorical(**NAMES)


def ledger():
    """A ledger with queries of more names than are shown."""
    made = private.Ledger(private.Budget(10.0, 1e-6, neighbours="replace-one"))
    made.charge([private.Query(f"query <{k}>", noise_multiplier=50.0, grade="secure") for k in range(9)], times=3)
    return made


@pytest.fixture(scope="module")
def posterior():
    """A short run that keeps the imputed table."""
    settings = {"num_warmup": 50, "num_samples": 40, "num_chains": 2, "progress": False}
    return dpjax.sample(jax.random.key(1), MODEL, RELEASE, collect="counts", **settings)


def check_shown(value, *words):
    """At most five lines with these words, and the same in a table whose text is escaped."""
    text, html = repr(value), value._repr_html_()
    assert len(text.splitlines()) <= MAX_LINES
    assert all(word in text for word in words), text
    assert html.count("<tr>") == len(text.splitlines()) - 1
    assert "query <" not in html


def test_what_is_shown_is_short():
    check_shown(MODEL, "Categorical", "probabilities float", "sex int")
    check_shown(RELEASE, "n = 150 records", "`sex` (female, male)", "discrete Gaussian of scale 10", "58, 21, 12, 64")
    check_shown(dpjax.LocalRelease([0, 1, 1], dpjax.RandomizedResponse(0.75, 2)), "n = 3 records", "`cell`", "0, 1, 1")
    check_shown(ledger(), "ε = 10", "3 × query <0>", "…")
    answers = dpjax.LocalRelease(np.arange(200) % 2, dpjax.RandomizedResponse(0.75, 2))
    likelihood = dpjax.marginal_likelihood(dpjax.models.categorical([1.0, 1.0]), answers)
    check_shown(likelihood, "200 records", "Categorical", "2 rows")


@pytest.mark.parametrize(
    "value",
    [
        dpjax.Laplace(np.arange(1.0, 500.0)),
        dpjax.RandomizedResponse(matrix=np.full((64, 64), 1 / 64)),
        dpjax.models.NormalPrior(np.zeros(600), np.ones(600)),
        dpjax.statistics.linear(dpjax.statistics.cells("cell", 40), np.eye(40)),
        dpjax.statistics.histogram("y", np.linspace(0, 1, 90)),
        dpjax.mechanisms.Coarsened(np.arange(300) // 5 * 5.0),
        dpjax.joint(
            *[dpjax.Release([1.0], dpjax.Laplace(k + 1.0), dpjax.statistics.count(), 9) for k in range(30)]
        ).mechanism,
    ],
    ids=lambda value: type(value).__name__,
)
def test_long_arrays_are_shown_by_their_ends(value):
    """Parameters of mechanisms and priors, one for each coordinate, once took 70 lines; tuples were shown whole."""
    assert len(repr(value)) < 500
    assert "..." in repr(value)


def test_a_posterior_is_shown_and_has_its_counts(posterior):
    """The counts of each draw are those of all records."""
    check_shown(posterior, "2 chains of 40 draws", "imputation: Counts")
    assert posterior.counts.shape == (2, 40, 4)
    assert np.all(posterior.counts.sum(axis=-1) == 150)


def test_counts_that_were_not_kept_are_refused():
    release = dpjax.Release([3.0], dpjax.Laplace(1.0), dpjax.statistics.total("y", 0.0, 1.0), n=5)
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 1.0), variance=1.0)
    with pytest.raises(ValueError, match=r"collect: given .* expected"):
        dpjax.sample(jax.random.key(1), model, release, collect="counts")


def test_what_is_traced_or_batched_is_shown_by_its_shape():
    """No text is worth an error in the middle of somebody's program."""
    texts = []

    def look(value):
        release = dpjax.Release(value, dpjax.Gaussian(value[0]), dpjax.statistics.total("y", 0.0, 1.0), 5)
        texts.append(repr(release))
        return release

    batch = jax.vmap(look)(jnp.ones((3, 1)))
    assert "float" in texts[0]
    assert "[3, 1]" in repr(batch)
    assert repr(dpjax.Model(*[lambda *arguments: 1 / 0] * 4)) == "FunctionModel"


def test_a_release_describes_itself():
    assert RELEASE.describe() == dpjax.describe(RELEASE)

"""Naive-Bayes records: a class, and features that are independent given the class."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import xlogy
from jax.typing import ArrayLike

from dpjax._util.validation import check_positive, fail
from dpjax.base import Array, ConjugateCounts, Key, Model, NonCentred, Parameters, Records
from dpjax.models.arguments import as_array, as_vector
from dpjax.models.bijections import SIMPLEX, scales
from dpjax.models.distributions import accept_distributions
from dpjax.models.levels import Levels, list_records, read_levels
from dpjax.models.priors import may_underflow
from dpjax.models.recipe import numbered
from dpjax.numerics.cells import all_edges, cell_edges, cells_at, count_cells, log_probability, uniforms_within
from dpjax.numerics.dirichlet import dirichlet_log_density
from dpjax.numerics.gamma import draw_log_gamma
from dpjax.numerics.scores import UNIFORM_SCORES

__all__ = ["naive_bayes"]

FORMS = (("class", "a uniform within its cell"), ("features", "uniforms within their cells, given the class"))


@accept_distributions
@numbered
def naive_bayes(
    class_concentration: ArrayLike, feature_concentration: ArrayLike, possible: ArrayLike | None = None
) -> Model:
    """Records ``{"class": [] int, "features": [K] int}`` with independent features given the class.

    P(class = i) = class_probabilities[i], P(features[k] = j | class = i) = feature_probabilities[k, i, j].

    Parameters
    ----------
    class_concentration : [I]
        The Dirichlet prior of ``class_probabilities`` [I].
    feature_concentration : [K, I, J]
        The independent Dirichlet priors of the rows of ``feature_probabilities`` [K, I, J].
    possible : [K, I, J]
        Which levels a feature can have in each class: the others are structural zeros, whose probability is 0 whatever
        the records, and the Dirichlet priors are those of the rest. None where all can be. A feature of fewer levels
        than J has its last ones impossible in every class.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, a concentration is not positive, there are fewer than two classes or levels, or `possible`
        is not one flag for each concentration with at least one True for each feature and class.

    Notes
    -----
    The update is an exact Dirichlet draw. The non-centred form has 1 + K uniform numbers for each record. It is left
    out if a concentration is so small that probabilities underflow: below 0.16 in float32, 0.02 in float64. The support
    is listed, and the parameters can be integrated out, if there are at most 100,000 possible records.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> model = naive_bayes(jnp.ones(2), jnp.ones((3, 2, 4)))
    """
    classes, features = check_concentrations(class_concentration, feature_concentration)
    num_features, num_classes, num_levels = features.shape
    levels = read_levels(possible, features.shape)
    features = levels.ones_beyond(features)
    underflows = may_underflow(classes) or may_underflow(features)

    support = list_records(levels)

    def sample_records(key: Key, parameters: Parameters, n: int) -> Records:
        return records_at(parameters, jax.random.uniform(key, (1 + num_features, n), float))

    def summarize(records: Records) -> Records:
        counts = count_cells(feature_places(records, num_classes, num_levels), features.size)
        return {"class": count_cells(records["class"], num_classes), "features": counts.reshape(features.shape)}

    def draw_given(key: Key, counts: Records) -> Parameters:
        return draw_probabilities(key, classes + counts["class"], features + counts["features"], levels)

    def log_density_given(parameters: Parameters, counts: Records) -> Array:
        shapes = classes + counts["class"], features + counts["features"]
        return log_density_of_probabilities(parameters, *shapes, levels)

    def conjugate() -> ConjugateCounts:
        """The sums are the counts of the classes and of the levels, then the totals of both, with negative signs."""

        def split(sums: Array) -> Records:
            counts = sums.astype(float)
            table = counts[num_classes : num_classes + features.size]
            return {"class": counts[:num_classes], "features": table.reshape(features.shape)}

        assert support is not None
        shift, totals = jnp.append(classes, features), jnp.append(jnp.sum(classes), levels.total(features))
        return ConjugateCounts(
            places=sums_of_records(support(), num_classes, num_levels),
            shift=jnp.append(shift, totals),
            sign=jnp.append(jnp.ones_like(shift), -jnp.ones_like(totals)),
            update=lambda key, sums: draw_given(key, split(sums)),
            log_density=lambda parameters, sums: log_density_given(parameters, split(sums)),
        )

    none = {"class": jnp.zeros_like(classes), "features": jnp.zeros_like(features)}
    return Model(
        sample_prior=lambda key: draw_given(key, none),
        log_prior=lambda parameters: log_density_given(parameters, none),
        sample_records=sample_records,
        log_density=lambda parameters, records: log_density(levels.within(parameters), records),
        update=lambda key, parameters, records: draw_given(key, summarize(records)),
        noncentred=None if underflows else NonCentred(noise_of, records_at, scores=UNIFORM_SCORES, forms=FORMS),
        **scales({"class_probabilities": SIMPLEX, "feature_probabilities": levels.bijection}),
        summarize=summarize,
        log_likelihood=lambda parameters, counts: log_likelihood(levels.within(parameters), counts),
        support=support,
        update_log_density=lambda new, parameters, records: log_density_given(new, summarize(records)),
        conjugate=None if support is None else conjugate,
    )


def check_concentrations(class_concentration: Any, feature_concentration: Any) -> tuple[Array, Array]:
    """The concentrations [I] and [K, I, J] as arrays."""
    classes = as_vector("class_concentration", class_concentration, "Pass one positive number a class.", least=2)
    check_positive("class_concentration", class_concentration)
    expected = f"a positive array [K, {classes.size}, J] with at least two levels J"
    remedy = "Order the axes feature, class, level; give features of fewer levels a model of their own."
    features = as_array("feature_concentration", feature_concentration, expected, remedy)
    check_positive("feature_concentration", feature_concentration)
    if features.ndim != 3 or features.shape[1] != classes.size or features.shape[2] < 2 or not features.shape[0]:
        fail("feature_concentration", f"an array of shape {list(features.shape)}", expected, remedy)
    return classes, features


def draw_probabilities(key: Key, classes: Array, features: Array, levels: Levels) -> Parameters:
    """Dirichlet draws for the classes [I] and for each feature and class [K, I, J], by one call."""
    log_gamma = draw_log_gamma(key, jnp.concatenate([classes, features.ravel()]))
    rows = levels.less_beyond(log_gamma[classes.size :].reshape(features.shape))
    return {
        "class_probabilities": jax.nn.softmax(log_gamma[: classes.size]),
        "feature_probabilities": jax.nn.softmax(rows, axis=-1),
    }


def log_density_of_probabilities(parameters: Parameters, classes: Array, features: Array, levels: Levels) -> Array:
    """The log-density [] of independent Dirichlet priors of the classes [I] and each feature and class [K, I, J]."""
    rows = levels.log_density(features, parameters["feature_probabilities"])
    return dirichlet_log_density(classes, parameters["class_probabilities"]) + jnp.sum(rows)


def records_at(parameters: Parameters, noise: Array) -> Records:
    """The records whose cells contain these uniforms [1 + K, n]."""
    classes = cells_at(noise[0], cell_edges(parameters["class_probabilities"]))
    edges = cell_edges(parameters["feature_probabilities"])[:, classes]
    features = jnp.sum(noise[1:, :, None] >= edges, axis=-1, dtype=int)
    return {"class": classes, "features": features.T}


def noise_of(key: Key, parameters: Parameters, records: Records) -> Array:
    """Uniforms [1 + K, n] drawn within the cells of the records' fields."""
    classes, features = records["class"], records["features"].T
    edges = all_edges(cell_edges(parameters["class_probabilities"]))
    tables = all_edges(cell_edges(parameters["feature_probabilities"]))
    which = jnp.arange(len(features))[:, None]
    lower = jnp.concatenate([edges[classes][None], tables[which, classes[None], features]])
    upper = jnp.concatenate([edges[classes + 1][None], tables[which, classes[None], features + 1]])
    return uniforms_within(key, lower, upper)


def log_density(parameters: Parameters, records: Records) -> Array:
    """The log-probability of each record [n]."""
    classes, features = records["class"], records["features"]
    tables, which = parameters["feature_probabilities"], jnp.arange(features.shape[1])[None]
    rows = jnp.log(tables)[which, classes[:, None], features]
    possible = jnp.all((features >= 0) & (features < tables.shape[-1]), axis=1)
    total = log_probability(parameters["class_probabilities"], classes) + jnp.sum(rows, axis=1)
    return jnp.where(possible, total, -jnp.inf)


def log_likelihood(parameters: Parameters, counts: Records) -> Array:
    """The log-probability of all records."""
    classes = xlogy(counts["class"], parameters["class_probabilities"])
    return jnp.sum(classes) + jnp.sum(xlogy(counts["features"], parameters["feature_probabilities"]))


def feature_places(records: Records, num_classes: int, num_levels: int) -> Array:
    """The places [n, K] of each record's features in a table [K, I, J] of counts."""
    which = jnp.arange(records["features"].shape[1])[None]
    return (which * num_classes + records["class"][:, None]) * num_levels + records["features"]


def sums_of_records(records: Records, num_classes: int, num_levels: int) -> Array:
    """The sums to which each record adds: its class, its K levels, the total of the classes, and K totals of levels."""
    classes, features = records["class"][:, None], records["features"]
    which = jnp.arange(features.shape[1])[None]
    total = num_classes * (1 + features.shape[1] * num_levels)
    columns = [
        classes,
        num_classes + feature_places(records, num_classes, num_levels),
        jnp.full_like(classes, total),
        total + 1 + which * num_classes + classes,
    ]
    return jnp.concatenate(columns, axis=1)

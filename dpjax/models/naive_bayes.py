"""Naive-Bayes records: a class, and features that are independent given the class."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import xlogy
from jax.typing import ArrayLike

from dpjax._util.pytree import static
from dpjax._util.validation import check_positive, fail
from dpjax.base import Array, ConjugateCounts, Key, Model, NonCentred, Parameters, Records
from dpjax.models.arguments import as_array, as_vector
from dpjax.models.bijections import SIMPLEX, Bijection, MappedModel
from dpjax.models.distributions import accept_distributions
from dpjax.models.levels import Levels, read_levels
from dpjax.models.priors import may_underflow
from dpjax.numerics.cells import all_edges, cell_edges, cells_at, count_cells, log_probability, uniforms_within
from dpjax.numerics.dirichlet import dirichlet_log_density
from dpjax.numerics.gamma import draw_log_gamma
from dpjax.numerics.scores import UNIFORM_SCORES

__all__ = ["naive_bayes"]

FORMS = (("class", "a uniform within its cell"), ("features", "uniforms within their cells, given the class"))


@accept_distributions
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
        the records, and the Dirichlet priors are those of the rest. None if all can be. A feature of fewer levels
        than J has its last ones impossible in every class.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, a concentration is not positive, or there are fewer than two classes or levels. If
        `possible` is not one flag for each concentration with at least one True for each feature and class.

    Notes
    -----
    The update is an exact Dirichlet draw. The non-centred form has 1 + K uniform numbers for each record. It is left
    out if a concentration is so small that probabilities underflow: below 0.16 in float32, 0.02 in float64. The support
    is listed, and the parameters can be integrated out, if there are at most 100,000 possible records.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> model = dpjax.models.naive_bayes(jnp.ones(2), jnp.ones((3, 2, 4)))
    """
    classes, features = check_concentrations(class_concentration, feature_concentration)
    levels = read_levels(possible, features.shape)
    features = levels.ones_beyond(features)
    underflows = may_underflow(classes) or may_underflow(features)
    return NaiveBayes(classes, features, levels, interweaves=not underflows)


class NaiveBayes(MappedModel):
    """Naive-Bayes records, as `naive_bayes` describes them.

    Parameters
    ----------
    classes
        The Dirichlet prior of the classes [I].
    features
        Those of the levels of each feature and class [K, I, J]; 1 at impossible ones.
    levels
        The possible levels.
    interweaves
        Whether there is a non-centred form.
    """

    classes: Array
    features: Array
    levels: Levels = static()
    interweaves: bool = static()

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return self.draw_given(key, self.none)

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.log_density_given(parameters, self.none)

    @property
    def none(self) -> Records:
        """The counts of no records."""
        return {"class": jnp.zeros_like(self.classes), "features": jnp.zeros_like(self.features)}

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters."""
        return records_at(parameters, jax.random.uniform(key, (1 + len(self.features), n), float))

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-probability of each record [n]."""
        return log_density(self.levels.within(parameters), records)

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """An exact Dirichlet draw."""
        return self.draw_given(key, self.summarize(records))

    def update_log_density(self, new: Parameters, parameters: Parameters, records: Records) -> Array:
        """The log-density [] of that draw."""
        return self.log_density_given(new, self.summarize(records))

    def draw_given(self, key: Key, counts: Records) -> Parameters:
        """A draw of the probabilities given the counts of classes [I] and of levels [K, I, J]."""
        shapes = self.classes + counts["class"], self.features + counts["features"]
        return draw_probabilities(key, *shapes, self.levels)

    def log_density_given(self, parameters: Parameters, counts: Records) -> Array:
        """The log-density [] of that draw."""
        shapes = self.classes + counts["class"], self.features + counts["features"]
        return log_density_of_probabilities(parameters, *shapes, self.levels)

    @property
    def noncentred(self) -> NonCentred:
        """1 + K uniform numbers for each record, unless probabilities underflow."""
        if not self.interweaves:
            return super().noncentred
        return NonCentred(noise_of, records_at, scores=UNIFORM_SCORES, forms=FORMS)

    def summarize(self, records: Records) -> Records:
        """The counts of classes [I] and of levels [K, I, J]."""
        _, num_classes, num_levels = self.features.shape
        counts = count_cells(feature_places(records, num_classes, num_levels), self.features.size)
        return {"class": count_cells(records["class"], num_classes), "features": counts.reshape(self.features.shape)}

    def log_likelihood(self, parameters: Parameters, summary: Records) -> Array:
        """The log-probability [] of all records."""
        return log_likelihood(self.levels.within(parameters), summary)

    @property
    def support(self) -> Levels | None:
        """Every possible record, unless there are too many."""
        return self.levels if self.levels.is_short else None

    def has(self, member: str) -> bool:
        """Whether records can be counted, too, as they are listed, and have noise, as no probability underflows."""
        holds = {"conjugate": self.levels.is_short, "noncentred": self.interweaves}
        return super().has(member) and holds.get(member, True)

    def conjugate(self) -> ConjugateCounts:
        """The sums are the counts of the classes and of the levels, then the totals of both, with negative signs."""
        _, num_classes, num_levels = self.features.shape
        shift = jnp.append(self.classes, self.features)
        totals = jnp.append(jnp.sum(self.classes), self.levels.total(self.features))
        return ConjugateCounts(
            places=sums_of_records(self.levels(), num_classes, num_levels),
            shift=jnp.append(shift, totals),
            sign=jnp.append(jnp.ones_like(shift), -jnp.ones_like(totals)),
            update=lambda key, sums: self.draw_given(key, self.counts_of(sums)),
            log_density=lambda parameters, sums: self.log_density_given(parameters, self.counts_of(sums)),
        )

    def counts_of(self, sums: Array) -> Records:
        """The counts of classes and of levels in the sums of `conjugate`."""
        counts, num_classes = sums.astype(float), len(self.classes)
        table = counts[num_classes : num_classes + self.features.size]
        return {"class": counts[:num_classes], "features": table.reshape(self.features.shape)}

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The log-ratios of the possible probabilities."""
        return {"class_probabilities": SIMPLEX, "feature_probabilities": self.levels.bijection}


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

"""Faults of Dirichlet-process mixtures: their weights, labels, components and partitions."""

from tests.mutants.base import Mutant

LABELS = ("mixture/test_partitions.py", "mixture/test_concentration.py")
COMPONENTS = ("mixture/components/test_components.py",)
START = ("mixture/test_marginal_perfect_start.py", *LABELS)

MUTANTS = (
    Mutant(
        "Sticks are broken with one record too many",
        "mixture/samplers/weights.py",
        "jnp.stack([1 + counts, concentration + behind], axis=1)",
        "jnp.stack([1 + counts, 1 + concentration + behind], axis=1)",
        LABELS,
    ),
    Mutant(
        "The rest of the weights forgets the concentration",
        "mixture/samplers/weights.py",
        "logs = jnp.cumsum(jnp.where(occupied, 0, exponential)) / concentration",
        "logs = jnp.cumsum(jnp.where(occupied, 0, exponential))",
        ("mixture/test_perfect_start.py", *LABELS),
    ),
    Mutant(
        "The concentration is drawn as if there were a cluster more",
        "mixture/samplers/weights.py",
        "least = shape + num_clusters.astype(present.dtype) - 1",
        "least = shape + num_clusters.astype(present.dtype)",
        ("mixture/test_concentration.py",),
    ),
    Mutant(
        "The concentration counts a stick that is not broken",
        "mixture/samplers/weights.py",
        "broken = broken.at[-1].set(False)",
        "broken = broken.at[-1].set(broken[-1])",
        ("mixture/test_concentration.py",),
    ),
    Mutant(
        "A new cluster weighs 1 for the concentration",
        "mixture/samplers/neal3.py",
        "jnp.where(opening, concentration, 0)",
        "jnp.where(opening, 1.0, 0)",
        LABELS,
    ),
    Mutant(
        "A record leaves its cluster's size and not its sum",
        "mixture/samplers/neal3.py",
        "clusters.totals - jnp.outer(own, seat.features), 0)",
        "clusters.totals, 0)",
        LABELS,
    ),
    Mutant(
        "A new cluster of Neal's algorithm 2 forgets the concentration",
        "mixture/samplers/neal2.py",
        "log_weights = jnp.log(state.concentration) + log_evidence(ones, features) - nothing",
        "log_weights = log_evidence(ones, features) - nothing",
        LABELS,
    ),
    Mutant(
        "Auxiliary clusters each weigh as much as all",
        "mixture/samplers/neal8.py",
        "jnp.log(state.concentration / size)",
        "jnp.log(state.concentration)",
        LABELS,
    ),
    Mutant(
        "Slices are as high as the weights before",
        "mixture/samplers/conditional.py",
        "levels = uniforms * heights[labels]",
        "levels = uniforms * jnp.max(heights)",
        ("mixture/test_perfect_start.py", *LABELS),
    ),
    Mutant(
        "Labels are chosen without the height of their slices",
        "mixture/samplers/conditional.py",
        "log_shares = jnp.log(jnp.maximum(weights.weights, threshold))",
        "log_shares = jnp.log(weights.weights)",
        LABELS,
    ),
    Mutant(
        "A proposed record is accepted without the old density",
        "mixture/samplers/records.py",
        "proper_density(log_proposals) - log_channel, jnp.log(uniform)",
        "proper_density(log_proposals) - 0 * log_channel, jnp.log(uniform)",
        ("mixture/test_acceptance.py", "mixture/test_perfect_start.py"),
    ),
    Mutant(
        "Several proposals forget the record itself",
        "mixture/samplers/records.py",
        "log_weights = proper_density(jnp.concatenate([log_channel[None], fresh]))",
        "log_weights = proper_density(jnp.concatenate([log_channel[None] - 50, fresh]))",
        ("mixture/test_acceptance.py", "mixture/test_perfect_start.py"),
    ),
    Mutant(
        "A binned record leaves its bin one too late",
        "mixture/binned.py",
        "self.gains[source, counts[source] - 1]",
        "self.gains[source, counts[source]]",
        ("mixture/test_binned.py",),
    ),
    Mutant(
        "The scale of a cluster forgets half its squares",
        "mixture/components/gaussian.py",
        "self.shape + counts / 2, self.scale + squares / 2",
        "self.shape + counts / 2, self.scale + squares",
        COMPONENTS,
    ),
    Mutant(
        "The evidence of a cluster forgets its precision",
        "mixture/components/gaussian.py",
        "return of_precision + of_scale + gammaln(shape)",
        "return of_scale + gammaln(shape)",
        ("mixture/test_sample.py",),
    ),
    Mutant(
        "The evidence of a truncated cluster forgets its mass",
        "mixture/components/gaussian.py",
        "counts, totals) + log_mass - log_prior_mass",
        "counts, totals) - log_prior_mass",
        ("mixture/components/test_gaussian.py",),
    ),
    Mutant(
        "The posterior of beta shapes lacks the Jacobian of its logarithms",
        "mixture/components/beta.py",
        "log_prior = self.shape * (point[0] + point[1])",
        "log_prior = (self.shape - 1) * (point[0] + point[1])",
        COMPONENTS,
    ),
    Mutant(
        "A Wishart scale is not centred",
        "mixture/components/multivariate.py",
        "- precision[:, None, None] * shift[:, :, None] * shift[:, None, :]",
        "- 0 * precision[:, None, None] * shift[:, :, None] * shift[:, None, :]",
        ("mixture/components/test_multivariate.py",),
    ),
    Mutant(
        "The distance of partitions counts their overlap once",
        "mixture/partition.py",
        "total(row) - 2 * total(row * clusters + own[0])",
        "total(row) - total(row * clusters + own[0])",
        ("mixture/test_partition.py",),
    ),
    Mutant(
        "Moving a record costs as if it had stayed",
        "mixture/partition.py",
        "without = self.steps[self.counts[self.rows[record], own] - 1]",
        "without = self.steps[self.counts[self.rows[record], own]]",
        ("mixture/test_partition.py",),
    ),
)

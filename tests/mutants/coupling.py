"""Faults of coupled chains, and of the kernels for any exchangeable density."""

from tests.mutants.base import Mutant

COUPLINGS = ("coupling/test_couplings.py",)
KERNELS = ("coupling/test_gibbs.py",)
LAGGED = ("coupling/test_meetings.py",)
UNBIASED = ("coupling/test_unbiased.py",)
EXCHANGEABLE = ("exchangeable/test_samplers.py",)

MUTANTS = (
    Mutant(
        "Total variation is bounded by the floor for the ceiling",
        "coupling/meetings.py",
        "np.maximum(0.0, np.ceil(gaps / meetings.lag))",
        "np.maximum(0.0, np.floor(gaps / meetings.lag))",
        LAGGED,
    ),
    Mutant(
        "Total variation is bounded as if the lag were none",
        "coupling/meetings.py",
        "gaps = meetings.times[:, None] - meetings.lag - np.asarray(times)[None]",
        "gaps = meetings.times[:, None] - np.asarray(times)[None]",
        LAGGED,
    ),
    Mutant(
        "The window of unbiased estimates begins a lag too late",
        "coupling/meetings.py",
        "k = max(int(found) - meetings.lag, 1)",
        "k = max(int(found), 1)",
        LAGGED,
    ),
    Mutant(
        "An unbiased estimate counts one correction too few",
        "coupling/pool.py",
        "count = (time - settings.k) // lag - (behind + lag - 1) // lag + 1",
        "count = (time - settings.k) // lag - (behind + lag - 1) // lag",
        UNBIASED,
    ),
    Mutant(
        "The second chain joins a step late",
        "coupling/pool.py",
        "pair=tree_where(time == settings.lag, joined, pair)",
        "pair=tree_where(time == settings.lag + 1, joined, pair)",
        (*LAGGED, *UNBIASED),
    ),
    Mutant(
        "A correction goes on after the chains have met",
        "coupling/pool.py",
        "jnp.where(met, 0.0, weight(settings, time)) * gap",
        "weight(settings, time) * (here - 0 * gap)",
        UNBIASED,
    ),
    Mutant(
        "The average of a window leaves out its last step",
        "coupling/pool.py",
        "((time >= settings.k) & (time <= settings.m))",
        "((time >= settings.k) & (time < settings.m))",
        UNBIASED,
    ),
    Mutant(
        "The cost of a pair counts both chains up to m",
        "coupling/unbiased.py",
        "np.maximum(0, settings.m - meetings.times)",
        "2 * np.maximum(0, settings.m - meetings.times)",
        ("coupling/test_unbiased.py", *LAGGED),
    ),
    Mutant(
        "Chains meet where their densities are equal",
        "coupling/random_walk.py",
        "jnp.where(accepted & other_accepted, same_proposal, same & ~accepted & ~other_accepted)",
        "jnp.all(jnp.where(accepted, proposed, first) == jnp.where(other_accepted, other, second))",
        ("coupling/test_random_walk.py",),
    ),
    Mutant(
        "Chains keep no flag of their meeting",
        "coupling/random_walk.py",
        "same_proposal, same & ~accepted & ~other_accepted)",
        "same_proposal, same_proposal & same)",
        ("coupling/test_random_walk.py",),
    ),
    Mutant(
        "Chains that have met are decided apart",
        "coupling/random_walk.py",
        "other_accepted = jnp.where(same & met, accepted, other_accepted)",
        "other_accepted = jnp.where(same & met, other_accepted, other_accepted)",
        ("coupling/test_random_walk.py",),
    ),
    Mutant(
        "A record that one chain replaces keeps its flag",
        "coupling/sweeps.py",
        "same_proposal, states.same & ~(wrote_one | wrote_other))",
        "same_proposal, states.same & ~(wrote_one & wrote_other))",
        ("coupling/test_pairs.py",),
    ),
    Mutant(
        "Relabelling moves what records add and not the records",
        "coupling/relabel.py",
        "return state._replace(columns=swap(state.columns), source=swap(state.source))",
        "return state._replace(columns=swap(state.columns))",
        ("coupling/test_relabel.py",),
    ),
    Mutant(
        "The rest of a maximal coupling is not thinned",
        "coupling/couplings.py",
        "accepted = log_uniforms(uniform_key, num) >= jnp.minimum(log_eta, log_p(trials) - log_q(trials))",
        "accepted = log_uniforms(uniform_key, num) >= -jnp.inf",
        COUPLINGS,
    ),
    Mutant(
        "A maximal coupling compares its densities the wrong way round",
        "coupling/couplings.py",
        "< log_eta + log_q(x) - log_p(x)",
        "< log_eta + log_p(x) - log_q(x)",
        COUPLINGS,
    ),
    Mutant(
        "A reflection moves by half",
        "coupling/couplings.py",
        "reflected = normal - 2 * jnp.sum(direction * normal) * direction",
        "reflected = normal - jnp.sum(direction * normal) * direction",
        COUPLINGS,
    ),
    Mutant(
        "A reflected pair meets too seldom",
        "coupling/couplings.py",
        "log_ratio = -jnp.sum(shift * normal) - length / 2",
        "log_ratio = -jnp.sum(shift * normal) - length",
        COUPLINGS,
    ),
    Mutant(
        "Coupled indices share their residuals",
        "coupling/couplings.py",
        "rest, place = residual(probability - common)",
        "rest, place = residual(probability)",
        COUPLINGS,
    ),
    Mutant(
        "A coupled refresh keeps flags where one chain accepts",
        "coupling/refresh.py",
        "stayed = ~(accepted | accepted_too)",
        "stayed = ~(accepted & accepted_too)",
        ("coupling/test_refresh.py",),
    ),
    Mutant(
        "Coupled acceptance of SOMA forgets the reverse total",
        "coupling/sweeps.py",
        "return log_total - scale - jnp.log(reverse_total(weight, total, current))",
        "return log_total - scale - jnp.log(total)",
        KERNELS,
    ),
    Mutant(
        "The discrepancy counts each row with itself",
        "coupling/distances.py",
        "within_one, within_other = kernel_sums(one, one, width)[0] - 1, ",
        "within_one, within_other = kernel_sums(one, one, width)[0], ",
        ("coupling/test_distances.py",),
    ),
    Mutant(
        "The kernel of the discrepancy is twice as narrow",
        "coupling/distances.py",
        "kernel = np.exp(-squares / (2 * width**2))",
        "kernel = np.exp(-squares / width**2)",
        ("coupling/test_distances.py",),
    ),
    Mutant(
        "SOMA's acceptance bound forgets the other records",
        "coupling/theory.py",
        "return size * least / (size * least + 1 - least)",
        "return size * least / (size * least + 1)",
        ("coupling/test_theory.py",),
    ),
    Mutant(
        "An exchangeable target is not divided by its proposal",
        "exchangeable/targets.py",
        "return self.log_density(self.records(changed)) - (summary[-1] + proposal[-1] - columns[-1, place])",
        "return self.log_density(self.records(changed)) - summary[-1]",
        EXCHANGEABLE,
    ),
    Mutant(
        "A replaced record stays in the summary",
        "data_augmentation/records/placed.py",
        "jnp.where(accepted, state.summary + proposal - replaced, state.summary)",
        "jnp.where(accepted, state.summary + proposal, state.summary)",
        EXCHANGEABLE,
    ),
    Mutant(
        "All proposals of a sweep have one key",
        "exchangeable/samplers.py",
        "jax.vmap(propose)(jax.random.split(proposal_key, placement.proposals))",
        "jax.vmap(propose)(jax.numpy.broadcast_to(proposal_key, (placement.proposals,)))",
        EXCHANGEABLE,
    ),
)

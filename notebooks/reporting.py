# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Reporting a private posterior
#
# What should a paper, or an agency's notice, report about an analysis of a noisy release? Six things: what was
# released, what that promises, the model, how the posterior was computed, whether the chains agree and the model fits,
# and the answer without the noise model. This notebook prints each from the objects themselves, so that no number is
# copied by hand.

# %%
import platform

import jax
import matplotlib.pyplot as plt
import numpy as np

import dpjax

# %% [markdown]
# ## The analysis
#
# A survey of 800 people: how many of those who were invited to a course, and of those who were not, found work. Four
# counts with discrete Laplace noise, at ε = 0.1 for replacing one person.

# %%
n, epsilon = 800, 0.1
statistic = dpjax.statistics.cells("cell", 4)
sensitivity = statistic.sensitivity(1, "replace-one")
promise = dpjax.mechanisms.Privacy("pure", "replace-one", epsilon=epsilon, sensitivity=sensitivity, norm=1)
mechanism = dpjax.DiscreteLaplace(sensitivity / epsilon, privacy=promise)
release = dpjax.Release([262.0, 139.0, 171.0, 209.0], mechanism, statistic, n=n)
model = dpjax.models.categorical(np.ones(4), shape=(2, 2))
key = 2024
options = {"num_chains": 4, "num_warmup": 1_000, "num_samples": 2_000}
posterior = dpjax.sample(jax.random.key(key), model, release, imputation=dpjax.counts(), **options, progress=False)

# %% [markdown]
# ## 1. What was released
#
# The mechanism, its scale and the neighbouring relation: without them no reader can check anything.

# %%
noise_sd = np.sqrt(0.5) / np.sinh(0.5 * epsilon / sensitivity)
print(
    f"{statistic.dimension} counts over n = {release.n} people, discrete Laplace noise of scale {float(mechanism.scale):g}"
    f" (standard deviation {noise_sd:.1f}); {promise.epsilon:g}-differential privacy for {promise.neighbours} neighbours."
)
assert abs(noise_sd / (np.sqrt(2) * sensitivity / epsilon) - 1) < 0.01

# %% [markdown]
# ## 2. and 3. The model, and the computation
#
# `describe()` states what was done. The key, the versions and the call are all that is needed to get the same draws.

# %%
print("Prior: uniform over the probabilities of the four cells.")
print(posterior.describe())
print(f"key {key}; {options}; dpjax {dpjax.__version__}, JAX {jax.__version__}, Python {platform.python_version()}")

# %% [markdown]
# ## 4. Do the chains agree?
#
# R-hat below 1.01 and at least 400 effective draws in the middle and in the tails; and the Monte Carlo error, which says how many
# digits to print.

# %%
row = posterior.summary()["log_odds_ratio"]
print(f"R-hat {row['r_hat']:.3f}; effective draws {row['ess_bulk']:.0f} (bulk), {row['ess_tail']:.0f} (tail)")
assert row["r_hat"] < 1.01
assert min(row["ess_bulk"], row["ess_tail"]) > 400

# %% [markdown]
# ## 5. Does the model fit?

# %% alt="Four bars of predicted counts, each with the released count inside."
posterior.plot_predictive(
    jax.random.key(1), labels=["course, work", "course, none", "no course, work", "no course, none"]
)
plt.show()

# %% [markdown]
# ## 6. The answer, and the naive one
#
# As many digits as the Monte Carlo error allows: its first digit is the last one to print. The naive interval ignores the
# noise.

# %% thumbnail=true alt="Two intervals of the log odds ratio: the naive one is narrower than that of dpjax, with nearly the same centre."
naive = np.random.default_rng(3).dirichlet(1 + np.asarray(release.value), size=(1, 8_000))
naive = {"log_odds_ratio": np.log(naive[..., 0] * naive[..., 3] / (naive[..., 1] * naive[..., 2]))}
posterior.plot_forest({"naive": naive}, names=["log_odds_ratio"])
plt.show()

# %%
draws = posterior.draws["log_odds_ratio"]
low, high = np.quantile(draws, [0.025, 0.975])
naive_low, naive_high = np.quantile(naive["log_odds_ratio"], [0.025, 0.975])
widening = (high - low) / (naive_high - naive_low)
digits = max(0, int(-np.floor(np.log10(row["mcse_mean"]))))
print(f"mean {row['mean']:.{digits}f}, 95 % interval [{low:.2f}, {high:.2f}], Monte Carlo error {row['mcse_mean']:.1g}")
assert digits >= 2
assert widening > 1.1

# %% [markdown]
# ## Templates
#
# For a paper:

# %%
print(
    f"We analysed the {statistic.dimension} published counts (n = {n}; discrete Laplace noise of scale {sensitivity / epsilon:g}, "
    f"{epsilon:g}-differentially private for replacing one person) with the privacy noise accounted for, by data-augmentation "
    f"MCMC (dpjax {dpjax.__version__}; {options['num_chains']} chains of {options['num_samples']:,} draws after "
    f"{options['num_warmup']:,} of warm-up; R-hat {row['r_hat']:.3f}, at least {min(row['ess_bulk'], row['ess_tail']):,.0f} effective "
    f"draws). The log odds ratio of finding work is {row['mean']:.2f} (95 % interval {low:.2f} to {high:.2f}). Had the noise been "
    f"ignored, the interval would have been {1 - 1 / widening:.0%} narrower."
)

# %% [markdown]
# For an agency's notice beside a table:

# %%
print(
    f"To protect the people in these data, noise was added to each count; with probability 0.9 it is at most "
    f"{np.ceil(-np.log(0.1) * sensitivity / epsilon):.0f} either way. Counts may be negative, and need not add up. Do not analyse "
    f"them as if they were exact: account for discrete Laplace noise of scale {sensitivity / epsilon:g}, the same in every cell."
)
noise = np.asarray(mechanism.sample(jax.random.key(4), jax.numpy.zeros(40_000)))
share = np.mean(np.abs(noise) <= np.ceil(-np.log(0.1) * sensitivity / epsilon))
assert abs(share - 0.9) < 0.02

# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Choosing ε: what will users be able to learn?
#
# An agency is about to publish a table of 600 patients by treatment and recovery. Before anything is released it wants to
# know what each ε costs those who read the table. Nothing below uses the confidential table: simulated tables of the
# kind expected take its place, so that this costs no privacy.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import dpjax

# %% [markdown]
# ## The plan
#
# Four counts with discrete Laplace noise. Replacing one patient moves two counts by one, so the sensitivity is 2, and
# the scale is 2 / ε. Readers will ask for the log odds ratio of recovery. Previous studies suggest an odds ratio of about 2,
# and recovery of a half.

# %%
n = 600
expected = np.array([[170, 130], [120, 180]]) / n
model = dpjax.models.categorical(np.ones(4), shape=(2, 2))
epsilons = np.array([0.05, 0.1, 0.2, 0.5, 1.0, 2.0])
statistic = dpjax.statistics.cells("cell", 4)
assert statistic.sensitivity(1, "replace-one") == 2

# %% [markdown]
# ## What readers would conclude
#
# Six simulated tables; each is released once at every ε, and each release analysed by the exact posterior. `dpjax.sample_batch`
# samples them all by one program. Without noise the posterior is a Dirichlet distribution.

# %%
rng = np.random.default_rng(1)
tables = rng.multinomial(n, expected.ravel(), size=6)
keys = jax.random.split(jax.random.key(1), (len(tables), len(epsilons)))


def release_table(key, counts, epsilon):
    """One release of a table of counts."""
    mechanism = dpjax.DiscreteLaplace(2.0 / epsilon)
    return dpjax.Release(mechanism.sample(key, jnp.asarray(counts, float)), mechanism, statistic, n=n)


releases = [
    release_table(keys[i, j], table, epsilon) for i, table in enumerate(tables) for j, epsilon in enumerate(epsilons)
]
options = {"num_warmup": 300, "num_samples": 500, "progress": False}
posterior = dpjax.sample_batch(jax.random.key(2), model, releases, imputation=dpjax.counts(width=32), **options)
draws = posterior.draws["log_odds_ratio"].reshape(len(tables), len(epsilons), -1)


def log_odds_ratio(probabilities):
    """Of shares [..., 4]."""
    a, b, c, d = np.moveaxis(probabilities, -1, 0)
    return np.log(a * d / (b * c))


without = np.array([log_odds_ratio(rng.dirichlet(1.0 + table, 4_000)) for table in tables])

# %% [markdown]
# ## Width against ε
#
# The half-width of a 90 % interval. The dotted line is the uncertainty from sampling alone: no release can be better.

# %% thumbnail=true alt="The half-width of the posterior interval falls with ε, from more than 1 at ε = 0.05 to the dotted line of what sampling alone leaves open, which it reaches at about ε = 1."
widths = np.diff(np.quantile(draws, [0.05, 0.95], axis=-1), axis=0)[0] / 2
floor = np.mean(np.diff(np.quantile(without, [0.05, 0.95], axis=-1), axis=0)[0] / 2)
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axes.plot(np.tile(epsilons, (len(tables), 1)), widths, "_", color="0.6")
axes.plot(epsilons, widths.mean(axis=0), "o-", color="#1f6fb4", label="exact posterior, mean of six tables")
axes.axhline(floor, color="#404040", linestyle=":", label="without noise")
axes.set(xscale="log", xlabel="ε", ylabel="half-width of the 90 % interval", ylim=(0, None))
axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axes.minorticks_off()
axes.legend(frameon=False)
plt.show()

# %%
price = widths.mean(axis=0) / floor - 1
for epsilon, more in zip(epsilons, price, strict=True):
    print(f"ε = {epsilon:<5g} intervals {more:6.1%} wider than without noise")
assert np.all(np.diff(widths.mean(axis=0)) < 0.02)
assert price[0] > 1.0
assert abs(price[-1]) < 0.05

# %% [markdown]
# ## Will they see the effect?
#
# A decision is about conclusions rather than half-widths. In the simulated population the odds ratio is 2. How certain would
# readers be that treatment helps?

# %%
sure = np.mean(draws > 0, axis=-1)
for epsilon, share in zip(epsilons, np.mean(sure > 0.95, axis=0), strict=True):
    print(f"ε = {epsilon:<5g} {share:.0%} of readers are more than 95 % sure that treatment helps")
assert np.mean(sure[:, -1] > 0.95) >= 0.75
assert np.mean(sure[:, 0] > 0.95) <= 0.5

# %% [markdown]
# ## The decision
#
# The smallest ε whose intervals are at most a tenth wider than without noise:

# %%
enough = epsilons[np.argmax(price < 0.1)]
print(f"ε = {enough:g}")
assert 0.2 <= enough <= 1.0

# %% [markdown]
# Any larger ε would take privacy from the patients and give readers almost nothing. The answer holds for tables of this
# kind and size, and for readers who account for the noise. Readers who ignore it will be misled at a small ε, whatever the
# width of the intervals.
#
# The same serves for any model and release: draw records from what is expected, release them at every ε, and read the
# releases by `dpjax.sample_batch`.

# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Density estimation and clustering from locally private data
#
# Three hundred people each add Laplace noise to a number between -10 and 10 before they report it. We hold the noisy
# numbers, and want the density of the true ones and the groups they fall into.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import dpjax
from dpjax import mixture

# %% [markdown]
# ## What was released
#
# The true numbers come from three groups. With ε = 10 for a range of 20 the noise has scale 2, twice the spread of a
# group.

# %%
rng = np.random.default_rng(3)
records = rng.choice([-5.0, 0.0, 5.0], 300) + rng.normal(size=300)
channel = dpjax.Laplace(dpjax.mechanisms.laplace_scale(epsilon=10.0, sensitivity=20.0))
released = records + rng.laplace(scale=channel.scale, size=300)

# %% [markdown]
# ## The posterior
#
# A Dirichlet-process mixture of Gaussian distributions. The base measure says that a group's variance is about 1.5 and that its
# centre may lie anywhere in the range; the concentration has its own prior.

# %%
posterior = mixture.sample(
    jax.random.key(5),
    released,
    channel,
    component=mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=3.0, scale=3.0),
    concentration=dpjax.models.GammaPrior(2.0, 2.0),
    num_warmup=2_000,
    num_samples=1_000,
    thin=25,
    collect=("labels",),
)
print(posterior.summary())

# %% [markdown]
# ## The density
#
# The band contains the density at each point with probability 0.95. Beside it: the histogram of what was released, and a Gaussian kernel estimate that ignores the noise.

# %% thumbnail=true alt="A histogram of noisy values, and densities: the posterior mean with its band shows three groups like the truth, the kernel estimate that ignores the noise shows one."
grid = np.linspace(-12, 12, 241)
density = posterior.density(grid)
truth = np.mean([np.exp(-((grid - centre) ** 2) / 2) / np.sqrt(2 * np.pi) for centre in (-5, 0, 5)], axis=0)
width = 1.06 * np.std(released) * len(released) ** -0.2
naive = np.mean(np.exp(-(((grid[:, None] - released) / width) ** 2) / 2), axis=1) / (width * np.sqrt(2 * np.pi))

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.hist(released, 40, density=True, color="0.88", label="released values")
axes.fill_between(grid, density.lower, density.upper, color="#1f6fb4", alpha=0.25)
axes.plot(grid, density.mean, color="#1f6fb4", label="noise accounted for")
axes.plot(grid, naive, color="#c44e52", linestyle="--", label="noise ignored")
axes.plot(grid, truth, color="#404040", linewidth=1, label="truth")
axes.set(xlabel="number", ylabel="density", xlim=(-12, 12))
axes.legend()
peaks, valleys = np.interp([-5, 0, 5], grid, density.mean), np.interp([-2.5, 2.5], grid, density.mean)
assert peaks.min() > valleys.max()

# %% [markdown]
# ## Groups
#
# Two people belong together with the probability shown. Labels cannot be averaged, but there is one partition that is
# closest to all those drawn; people are sorted by it. Its blocks are blurred because one noisy number says little about
# one person.

# %% alt="Left: the posterior probability of each number of clusters. Right: the probability that two people share a cluster, in three blurred blocks."
partition = posterior.partition(jax.random.key(6), num_starts=2)
figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
posterior.plot_num_clusters(axes=panels[0])
posterior.plot_co_clustering(partition, axes=panels[1])
for label, size in enumerate(np.bincount(partition.labels)):
    members = records[partition.labels == label]
    print(
        f"group of {size}: true numbers from {np.quantile(members, 0.1):.1f} to {np.quantile(members, 0.9):.1f}, mostly"
    )

# %% [markdown]
# ## A functional
#
# The share of people below -2.5, and the naive estimate from the noisy numbers.


# %%
def share_below(weights, theta):
    """The mass of the mixture below -2.5."""
    return weights @ jax.scipy.stats.norm.cdf(-2.5, theta["mean"], theta["variance"] ** 0.5)


shares = posterior.functional(share_below)
print("posterior", np.quantile(shares, [0.025, 0.5, 0.975]).round(3))
print("released ", np.mean(released < -2.5).round(3), " true", np.mean(records < -2.5).round(3))
low, high = np.quantile(shares, [0.005, 0.995])
assert low < np.mean(records < -2.5) < high

# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # A census table: negative counts, known totals, a tree of areas
#
# A county publishes the people of each block group by group of origin, with noise: at the level of block groups, of tracts and
# of the county. How many people each tract has is known exactly. Some published counts are negative, and no two levels
# agree. What can be learnt from them together?

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import dpjax

# %% [markdown]
# ## The county
#
# Three tracts of four block groups each, and four groups of origin: 48 cells, many of them nearly empty. The people are
# made up, so that answers can be compared with the truth. The noise is that of the 2020 Census: discrete Gaussian, here
# with standard deviation 6 in each cell and 4 in each sum.

# %%
TRACTS, BLOCK_GROUPS, ORIGINS = 3, 4, 4
rng = np.random.default_rng(4)
share = rng.dirichlet([6.0, 1.5, 0.6, 0.15], size=(TRACTS, BLOCK_GROUPS))
truth = rng.poisson(rng.gamma(4.0, 30.0, (TRACTS, BLOCK_GROUPS, 1)) * share)
n = int(truth.sum())
tract, block_group, origin = (axis.ravel() for axis in np.indices(truth.shape))
print(f"{n} people, {truth.size} cells, {np.sum(truth == 0)} of them empty, {np.sum(truth < 5)} with fewer than five")

# %% [markdown]
# ## What is published
#
# One release for each level, all of the same people. A number of a level is the sum of the cells of one group; the
# totals of the tracts were kept exact (`dpjax.Exact`), as invariants are.


# %%
def publish(key, groups, mechanism):
    """The release of the sums over groups of cells."""
    design = dpjax.Release(np.zeros(groups.max() + 1), mechanism, dpjax.statistics.grouped("cell", groups), n=n)
    sums = np.bincount(groups, weights=truth.ravel())
    return dpjax.Release(mechanism.sample(key, jax.numpy.asarray(sums, float)), mechanism, design.statistic, n=n)


keys = jax.random.split(jax.random.key(2), 4)
release = dpjax.joint(
    publish(keys[0], np.arange(truth.size), dpjax.DiscreteGaussian(6.0)),
    publish(keys[1], tract * ORIGINS + origin, dpjax.DiscreteGaussian(4.0)),
    publish(keys[2], origin, dpjax.DiscreteGaussian(4.0)),
    publish(keys[3], tract, dpjax.Exact()),
)
detailed = np.asarray(release.value)[: truth.size]
print(f"{np.sum(detailed < 0)} of {truth.size} published cells are negative, the least is {detailed.min():.0f}")
assert np.sum(detailed < 0) >= 5

# %% [markdown]
# ## The posterior
#
# Every person falls into one of 48 cells. The prior says that most cells may be nearly empty. dpjax imputes the counts,
# keeps the known totals in every draw, and integrates the shares out.

# %%
model = dpjax.models.categorical(np.full(truth.size, 0.5))


def counts_of(state):
    """The table of counts behind one draw."""
    return state.latent.records["counts"][0]


posterior = dpjax.sample(
    jax.random.key(3),
    model,
    release,
    imputation=dpjax.counts(),
    collect=counts_of,
    num_warmup=500,
    num_samples=1_000,
    progress=False,
)
print(posterior)

# %%
drawn = np.asarray(posterior.collected, float)
effective = dpjax.diagnostics.ess_bulk(drawn)
print(f"effective draws of the worst cell: {np.nanmin(effective):.0f}")
assert np.nanmin(effective) > 100
drawn = drawn.reshape(-1, truth.size)

# %% [markdown]
# ## One tract, all of it
#
# The tract with the most negative counts: published cells with a bar for their noise, least squares on the whole release, and the posterior with
# its 90 % intervals. Published and estimated numbers go below zero; the posterior does not.

# %% thumbnail=true alt="The 16 cells of one tract, each with the published count and a bar of its noise, the least squares estimate, and the posterior mean with its interval. Where few people live the published count is negative and the posterior stays above zero."
names = [f"{group + 1}{'abcd'[kind]}" for group, kind in zip(block_group, origin, strict=True)]
worst = np.argmax(np.bincount(tract, weights=detailed < 0))
places = np.flatnonzero(tract == worst)
labels = [*names, *[""] * (len(release.value) - truth.size)]
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
posterior.plot_table(show=places.tolist(), labels=labels, axes=axes)
axes.set_xlabel("block group 1 to 4, origin a to d")
plt.show()

# %% [markdown]
# ## Nothing is impossible, and everything adds up
#
# In every draw counts are non-negative integers, cells sum to the county, and tracts to their known totals.

# %%
totals = np.bincount(tract, weights=truth.ravel())
assert drawn.min() >= 0
for number, total in enumerate(totals):
    np.testing.assert_array_equal(drawn[:, tract == number].sum(axis=1), total)

# %% [markdown]
# ## How good are they?
#
# Least squares with the same totals is unbiased, but some of its counts are negative, and its error is larger. The
# posterior's intervals cover the truth about as often as stated.

# %%
sds = np.concatenate([np.full(truth.size, 6.0), np.full(TRACTS * ORIGINS + ORIGINS, 4.0), np.full(TRACTS, 1e-3)])
cells = np.arange(truth.size)
rows = [
    np.eye(truth.size),
    np.equal.outer(np.arange(TRACTS * ORIGINS), tract * ORIGINS + origin),
    np.equal.outer(np.arange(ORIGINS), origin),
    np.equal.outer(np.arange(TRACTS), tract),
]
design = np.concatenate(rows) / sds[:, None]
least_squares = np.linalg.lstsq(design, np.asarray(release.value) / sds, rcond=None)[0]
flat = truth.ravel()
errors = {
    "published": detailed - flat,
    "least squares": least_squares - flat,
    "posterior mean": drawn.mean(axis=0) - flat,
}
error = {way: np.sqrt(np.mean(each**2)) for way, each in errors.items()}
print({way: round(float(each), 2) for way, each in error.items()})
assert np.sum(least_squares < -0.5) >= 3
assert error["posterior mean"] < error["least squares"] < error["published"]

low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
covered = np.mean((low <= flat) & (flat <= high))
print(f"90 % intervals hold {covered:.0%} of the cells, and are {np.mean(high - low):.1f} people wide on average")
# Forty-eight cells at 0.9 give 43 with a standard error of 2 at most; intervals of integers cover more.
assert covered > 0.9 - 3 * np.sqrt(0.09 / 48)

# %% [markdown]
# ## Questions that have no published number
#
# Any function of the table has a posterior. Examples are the probability that nobody of origin *d* lives in a block group,
# and the number of them in the county outside the largest tract.

# %%
nobody = np.mean(drawn[:, origin == 3] == 0, axis=0)
print("P(nobody of origin d), by block group:", nobody.round(2))
elsewhere = drawn[:, (origin == 3) & (tract != np.argmax(totals))].sum(axis=1)
print("outside the largest tract:", np.quantile(elsewhere, [0.05, 0.5, 0.95]), "in truth", end=" ")
print(flat[(origin == 3) & (tract != np.argmax(totals))].sum())
assert np.all((nobody >= 0) & (nobody <= 1))

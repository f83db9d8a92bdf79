# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # A census table that was rounded at random
#
# An agency publishes how many people of each age group in eight villages speak a minority language. Every number, cell and
# total alike, was rounded at random to a multiple of five. What do the numbers say, read as they are, and read as what they are?

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import dpjax

# %% [markdown]
# ## The villages
#
# Eight villages and five age groups: 40 cells, most of them with fewer than five people. They are made up, so that answers can
# be compared with the truth.

# %%
VILLAGES, AGES, BASE = 8, 5, 5
rng = np.random.default_rng(4)
share = rng.dirichlet([2.0, 3.0, 4.0, 4.0, 3.0], size=VILLAGES)
truth = rng.poisson(rng.gamma(3.0, 6.0, (VILLAGES, 1)) * share)
village, age = (axis.ravel() for axis in np.indices(truth.shape))
print(
    f"{truth.sum()} people; {np.mean(truth < BASE):.0%} of the cells have fewer than {BASE}, {np.sum(truth == 0)} nobody"
)

# %% [markdown]
# ## What is published
#
# Unbiased random rounding: 7 becomes 5 with probability 3/5 and 10 with probability 2/5. Cells, totals of villages, totals of
# ages and the grand total are rounded each by itself, so that they do not add up. Statistics Canada does so; Stats NZ
# rounds to multiples of three. The number of people is confidential too: its prior is uniform on what the rounded total allows.

# %%
rounding = dpjax.mechanisms.RandomRounding(base=BASE)
groups = {
    "cells": np.arange(truth.size),
    "villages": village,
    "ages": age,
    "total": np.zeros(truth.size, int),
}
keys = dict(zip(groups, jax.random.split(jax.random.key(5), len(groups)), strict=True))
sums = {name: np.bincount(group, weights=truth.ravel()) for name, group in groups.items()}
published = {name: np.asarray(rounding.sample(keys[name], jnp.asarray(sums[name], float)), int) for name in groups}
print(published["cells"].reshape(truth.shape))
print(
    "villages:", published["villages"], "from the cells:", np.bincount(village, weights=published["cells"]).astype(int)
)
print("total:", published["total"], "from the cells:", published["cells"].sum())
assert published["cells"].sum() != published["total"][0]

# %%
around = int(published["total"][0])
n = dpjax.UnknownCount(dpjax.models.UniformCount(around - BASE + 1, around + BASE - 1))
release = dpjax.joint(
    *(dpjax.Release(published[name], rounding, dpjax.statistics.grouped("cell", groups[name]), n) for name in groups)
)
print(dpjax.describe(release))

# %% [markdown]
# ## The posterior
#
# Each person falls into one of the 40 cells. Tables that could not have been published are impossible, and dpjax moves
# among those that are possible. Cells, totals and grand total all have to be within the base of what was printed.

# %%
model = dpjax.models.categorical(np.ones(truth.size))


def counts_of(state):
    """The table of counts behind one draw."""
    return state.latent.records["counts"][0]


posterior = dpjax.sample(
    jax.random.key(8),
    model,
    release,
    imputation=dpjax.counts(),
    collect=counts_of,
    num_warmup=1_000,
    num_samples=2_000,
    progress=False,
)
print(posterior)
drawn = np.asarray(posterior.collected, float)
effective = dpjax.diagnostics.ess_bulk(drawn)
print(f"effective draws of the worst cell: {np.nanmin(effective):.0f}")
assert np.nanmin(effective) > 100
drawn = drawn.reshape(-1, drawn.shape[-1])[:, : truth.size]
for name, group in groups.items():
    added = np.stack([np.sum(drawn[:, group == place], axis=1) for place in range(group.max() + 1)], axis=1)
    assert np.max(np.abs(added - published[name])) < BASE

# %% thumbnail=true alt="The forty cells: hollow squares at the published multiples of five, bars for the posterior 90 % intervals with their means, and dots for the true counts, which lie within nearly all of the bars. Published zeros have posterior means of up to one and a half."
flat = truth.ravel()
low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
places = np.arange(truth.size) + village  # a gap between villages
figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
axes.vlines(places, low, high, color="C0", linewidth=5, alpha=0.3, label="posterior, 90 %")
axes.plot(places, drawn.mean(axis=0), "_", color="C0", label="posterior mean")
axes.plot(places, published["cells"], "s", color="0.55", markersize=4, fillstyle="none", label="published")
axes.plot(places, flat, ".", color="#404040", label="truth")
axes.set_xticks(
    [places[village == one].mean() for one in range(VILLAGES)], [f"village {one + 1}" for one in range(VILLAGES)]
)
axes.set_ylabel("people")
figure.legend(frameon=False, ncols=4, loc="outside upper center")
plt.show()

# %% [markdown]
# ## How many cells are empty?
#
# A published 0 stands for 0 to 4 people. Whoever counts the zeros finds many more empty cells than there are.

# %%
empty = np.sum(drawn == 0, axis=1)
zeros = np.sum(published["cells"] == 0)
print(f"published zeros {zeros}, truly empty {np.sum(flat == 0)}, posterior {np.quantile(empty, [0.05, 0.5, 0.95])}")
assert np.quantile(empty, 0.01) <= np.sum(flat == 0) <= np.quantile(empty, 0.99) < zeros

# %% [markdown]
# ## A question of shares: the young
#
# Which part of each village's speakers is in the youngest two groups? Naive, the published cells are taken for the counts, and
# the share has its usual Beta posterior. Its intervals are too narrow, and wrong where five printed people are two.

# %% alt="For each village three intervals of the share of the young: that from the published cells is narrower than that of dpjax, and displaced from that of the true counts, which dpjax covers."
young = age < 2
prior = np.array([2, AGES - 2])


def share_given(counts):
    """Draws [draw, village] of the share of the young given tables of counts [draw, cell] or one [cell]."""
    table = np.broadcast_to(counts, (len(drawn), truth.size))
    parts = [
        [table[:, (village == one) & (young == which)].sum(axis=1) for one in range(VILLAGES)]
        for which in (True, False)
    ]
    return rng.beta(prior[0] + np.array(parts[0]), prior[1] + np.array(parts[1])).T


answers = {
    "as published": share_given(published["cells"]),
    "dpjax": share_given(drawn),
    "true counts": share_given(flat),
}
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
for shift, (name, answer) in zip((-0.2, 0.0, 0.2), answers.items(), strict=True):
    ends = np.quantile(answer, [0.05, 0.95], axis=0)
    color = {"as published": "#d95f02", "dpjax": "#1f6fb4", "true counts": "#404040"}[name]
    axes.vlines(np.arange(VILLAGES) + shift, *ends, color=color, linewidth=4, alpha=0.6, label=name)
    axes.plot(np.arange(VILLAGES) + shift, answer.mean(axis=0), "_", color=color, markersize=10)
axes.set_xticks(range(VILLAGES), [f"village {one + 1}" for one in range(VILLAGES)])
axes.set_ylabel("share of the young")
figure.legend(frameon=False, ncols=3, loc="outside upper center")
plt.show()

# %%
target = answers["true counts"].mean(axis=0)
off = {name: np.sqrt(np.mean((answer.mean(axis=0) - target) ** 2)) for name, answer in answers.items()}
print({name: round(float(error), 3) for name, error in off.items()})
assert off["dpjax"] < off["as published"]

errors = {"published": published["cells"] - flat, "posterior mean": drawn.mean(axis=0) - flat}
error = {name: np.sqrt(np.mean(each**2)) for name, each in errors.items()}
covered = np.mean((low <= flat) & (flat <= high))
print(
    {name: round(float(each), 2) for name, each in error.items()}, f"and 90 % intervals hold {covered:.0%} of the cells"
)
assert error["posterior mean"] < error["published"]
assert covered > 0.9 - 3 * np.sqrt(0.09 / truth.size)

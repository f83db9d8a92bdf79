# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Page views above a threshold
#
# An encyclopedia publishes the daily views of its pages from one country. Each count gets noise, and only those that then
# reach a threshold appear. What can be said about the missing pages, and about shares of all views?

# %%
import tempfile
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import dpjax
from dpjax.adapters.pageviews import read_thresholded_counts

# %% [markdown]
# ## The file
#
# In the form that the Wikimedia Foundation publishes: Gaussian noise with standard deviation 10, and a threshold of 90. Views
# of thirty pages are made up, with a few popular pages and many that are hardly read. The total of 4,000 views is public.

# %%
NOISE, THRESHOLD, PAGES = 10.0, 90, 30
rng = np.random.default_rng(5)
n = 4_000
popularity = 1.0 / np.arange(1, PAGES + 1)
truth = rng.multinomial(n, popularity / popularity.sum())
noisy = np.round(truth + rng.normal(scale=NOISE, size=PAGES)).astype(int)
published = np.flatnonzero(noisy >= THRESHOLD)

path = Path(tempfile.mkdtemp()) / "2023-3-1.csv"
lines = [f"Iceland,is.wikipedia,{page},{noisy[page]}" for page in published]
path.write_text("country,project,page_id,private_count\n" + "\n".join(lines) + "\n")
print(f"{len(published)} of {PAGES} pages are in the file, with {noisy[published].sum()} of {n} views")
assert 5 <= len(published) < PAGES

# %% [markdown]
# ## The release
#
# The reader needs the list of pages that could have been published. For a missing page the noisy count
# is known to be below 90, which is part of the release.

# %%
views = read_thresholded_counts(
    path,
    mechanism=dpjax.Gaussian(NOISE),
    threshold=THRESHOLD,
    keys=[("is.wikipedia", str(page)) for page in range(PAGES)],
    columns=("project", "page_id"),
    where={"country": "Iceland"},
    n=n,
)
print(views.release.mechanism)

# %% [markdown]
# ## The posterior
#
# Every view goes to one of thirty pages. Before the file is seen all shares are equally likely, sparse ones more so.

# %%
model = dpjax.models.categorical(np.full(PAGES, 0.5))
options = {"num_warmup": 500, "num_samples": 1_000, "progress": False}
posterior = dpjax.sample(jax.random.key(1), model, views.release, imputation=dpjax.counts(), **options)
effective = dpjax.diagnostics.ess_bulk(posterior.draws["probabilities"])
print(f"effective draws of the worst share: {effective.min():.0f}")
assert effective.min() > 200

# %% [markdown]
# ## Missing is not zero
#
# A naive analysis assumes that the missing pages had no views, or divides each count by the sum of those that are listed.
# In the posterior the missing pages have the remaining views, at most about 90 each.

# %% thumbnail=true alt="Views of thirty pages: published counts as squares where there are any, posterior intervals for all pages. Intervals of missing pages lie below the dashed threshold and hold the true counts."
drawn = n * posterior.draws["probabilities"].reshape(-1, PAGES)
low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
places = np.arange(PAGES)
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
axes.vlines(places, low, high, color="#1f6fb4", linewidth=3, label="posterior, 90 %")
axes.plot(places, truth, "_", color="#404040", markersize=9, label="truth")
axes.plot(published, noisy[published], "s", color="0.55", markersize=4, label="published")
axes.axhline(THRESHOLD, color="0.6", linestyle="--", linewidth=1)
axes.set(yscale="log", xlabel="page", ylabel="views", ylim=(3, None))
axes.legend(frameon=False, ncols=3)
plt.show()

# %%
missing = np.setdiff1d(places, published)
covered = np.mean((low <= truth) & (truth <= high))
print(
    f"intervals hold {covered:.0%} of the true counts; of missing pages {np.mean(drawn[:, missing]):.0f} views on average"
)
assert covered > 0.9 - 3 * np.sqrt(0.09 / PAGES)
assert np.all(high[missing] < THRESHOLD + 3 * NOISE)

# %% [markdown]
# ## A share of all views
#
# The most popular page's share: of the listed views, as the file suggests; of all views, from its count alone; and the
# posterior.

# %%
top = published[np.argmax(noisy[published])]
of_listed = noisy[top] / noisy[published].sum()
share = posterior.draws["probabilities"][..., top]
interval = np.quantile(share, [0.05, 0.95])
print(f"share of listed views {of_listed:.3f}; posterior {share.mean():.3f} [{interval[0]:.3f}, {interval[1]:.3f}]")
print(f"in truth {popularity[top] / popularity.sum():.3f}")
assert of_listed > interval[1]
assert interval[0] < popularity[top] / popularity.sum() < interval[1]

# %% [markdown]
# The file omits the small counts, so that shares of the listed views are all too large. Whether pages
# without any view were considered at all matters too: `only_present=True` states that they were not.

# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Choosing a release: what to sum, and for how much
#
# A statistical office holds the schooling and the wages of 2,000 people and can publish once. Before anything is charged
# it compares statistics and budgets by what readers would learn from each. Then it spends the budget on one of them, and a
# reader draws from the posterior.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import dpjax
from dpjax import private

# %% [markdown]
# ## What readers will believe
#
# A linear regression of log wages on schooling, both in units of about one standard deviation, with priors that a reader who
# has seen other countries could hold. A pilot that is public puts the slope near 0.5.

# %%
n = 2_000
model = dpjax.models.linear_regression(
    covariate_prior=dpjax.models.NormalInverseWishartPrior(jnp.zeros(1), 1.0, 4.0, 2.0 * jnp.eye(1)),
    noise_variance=dpjax.models.NormalInverseGammaPrior(jnp.zeros(2), 0.5 * jnp.eye(2), 3.0, 1.5),
)
pilot = {
    "coef": np.array([0.0, 0.5]),
    "variance": np.array(0.75),
    "covariate_mean": np.zeros(1),
    "covariate_cov": np.eye(1),
}

# %% [markdown]
# ## What could be released
#
# Sums of products, of records clamped to narrow, middling or wide bounds. Wide bounds clamp nobody, and one person can move
# the sums far: the noise is large. Narrow bounds need little noise, but hide the tails. Sums without products come with the
# least noise of all.


# %%
def products(bound):
    """The sums of all products of 1, schooling and wage, of records clamped to a bound."""
    return dpjax.statistics.gram(lower=[-bound], upper=[bound], response=(-bound, bound))


sums = dpjax.statistics.stacked(dpjax.statistics.total("x", [-2.0], [2.0]), dpjax.statistics.total("y", -2.0, 2.0))
candidates = {
    "products within ±1": products(1.0),
    "products within ±2": products(2.0),
    "products within ±4": products(4.0),
    "sums within ±2": sums,
}
budgets = [private.Budget(epsilon, delta=1e-6, neighbours="replace-one") for epsilon in (0.1, 0.3, 1.0, 3.0)]

# %% [markdown]
# ## The forecast
#
# `private.design` simulates records where the pilot says, releases them as they would be released, and reads each release as its
# readers will. No confidential record is involved and no ledger, so this can be repeated as often as one likes, and shown to
# anybody.

# %%
expected = private.design(
    jax.random.key(1), model, candidates, budgets, n, parameters=pilot, num_releases=4, progress=False
)
print(expected)

# %% [markdown]
# The slope is what readers ask for.

# %% thumbnail=true alt="The width of the slope's interval against ε for four candidates: those of products fall with ε, steepest for the widest bounds, and that of the sums stays near the prior's at every ε."
slope = expected.widths["coef"][..., 1]
figure, axes = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
epsilons = [budget.epsilon for budget in budgets]
for mark, name, widths in zip("osD^", candidates, slope.mean(axis=-1), strict=True):
    axes.plot(epsilons, widths, f"{mark}-", label=name)
axes.set(xscale="log", yscale="log", xlabel="ε", ylabel="width of the slope's 90 % interval")
axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axes.set_yticks([0.1, 0.2, 0.5, 1, 2, 4], ["0.1", "0.2", "0.5", "1", "2", "4"])
axes.minorticks_off()
figure.legend(frameon=False, loc="outside right upper")
plt.show()

# %% [markdown]
# Bounds decide as much as the budget does. The widest need five to ten times the ε of the narrowest for the same interval.
# None gains much once sampling error is what is left. Sums without products say next to nothing of a slope, at any price.
# Bounds of ±1 come out best up to ε = 1, but hide the tails, where the model may be wrong. The office takes products
# within ±2 at ε = 1, with an interval a quarter wider.
#
# ## The release
#
# Only now are the records read. The ledger is charged before the noise is drawn, and the release can be given to anybody.

# %%
rng = np.random.default_rng(12)  # stands for the office's records
schooling = rng.normal(0.1, 1.05, n)
records = {"x": schooling[:, None], "y": 0.05 + 0.42 * schooling + rng.normal(0.0, 0.85, n)}

ledger = private.Ledger(private.Budget(1.0, delta=1e-6, neighbours="replace-one"))
# With a source of its own this page is the same each time; leave `noise` out if records are confidential.
source = private.noise.Secure(np.random.default_rng(3).bytes)
release = private.release(ledger, products(2.0), records, noise=source)
print(dpjax.describe(release))
print(ledger)

# %% [markdown]
# ## Reading
#
# A reader has the release and the model, and neither the records nor the pilot.

# %%
posterior = dpjax.sample(jax.random.key(2), model, release, num_warmup=600, num_samples=1_000, progress=False)
print(posterior.summary(names=["coef"]))

# %% [markdown]
# The interval is about as wide as the forecast said, and holds what least squares finds in the records themselves.

# %%
low, high = np.quantile(posterior.draws["coef"][..., 1], [0.05, 0.95])
forecast = slope[list(candidates).index("products within ±2"), epsilons.index(1.0)].mean()
fitted = np.polyfit(records["x"][:, 0], records["y"], 1)[0]
print(f"forecast {forecast:.3f}, found {high - low:.3f}; least squares {fitted:.3f} in ({low:.3f}, {high:.3f})")
assert low < fitted < high
assert 0.6 < (high - low) / forecast < 1.6

# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Every picture
#
# All plots of dpjax, on small problems. Every function takes Matplotlib axes and returns those that it
# drew into; without any it makes a figure.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import dpjax
from dpjax import coupling, plot, private

# %% [markdown]
# ## The problem
#
# A regression with one covariate. Sums of products over 100 people, the covariate clamped to ±3 and the response to ±4,
# were released with Laplace noise at ε = 3. The people are made up, so that the answer can be compared with theirs.

# %%
n, epsilon, variance = 100, 3.0, 1.0
rng = np.random.default_rng(3)
x = rng.normal(0.0, 1.0, n)
records = {"x": np.clip(x, -3, 3)[:, None], "y": np.clip(0.5 - 1.2 * x + rng.normal(size=n), -4, 4)}
statistic = dpjax.statistics.gram(lower=[-3], upper=[3], response=(-4, 4))
mechanism = dpjax.Laplace(dpjax.mechanisms.laplace_scale(epsilon, statistic.sensitivity(1, "replace-one")))
template = dpjax.Release(np.zeros(5), mechanism, statistic, n)
release = template.sample(jax.random.key(1), jax.tree.map(jax.numpy.asarray, records))
model = dpjax.models.linear_regression(
    covariate_mean=[0.0],
    covariate_cov=[[1.0]],
    coef_prior=dpjax.models.NormalPrior(0.0, 2.0),
    noise_variance=variance,
)
posterior = dpjax.sample(jax.random.key(2), model, release, num_samples=2_000, progress=False)

# %% [markdown]
# ## The posterior beside other answers
#
# Given the sums themselves the coefficients are Normal in closed form. *Non-private* takes the confidential sums,
# *naive* the noisy ones as if they had no noise. A thick line has half of the probability, a thin one 95 %.


# %%
def given_sums(sums):
    """Draws [1, draw, 2] of the coefficients given the sums y, xy, yy, x, xx of the rescaled variables."""
    y, xy, _, x, xx = np.asarray(sums) * np.array([4, 12, 16, 3, 9])
    precision = np.array([[n, x], [x, xx]]) / variance + np.eye(2) / 4
    mean = np.linalg.solve(precision, [y, xy]) / variance
    return {"coef": rng.multivariate_normal(mean, np.linalg.inv(precision), 4_000)[None]}


confidential = np.sum(jax.vmap(statistic)(records), axis=0)
answers = {"non-private": given_sums(confidential), "naive": given_sums(release.value)}

# %% thumbnail=true alt="Two rows, intercept and slope, each with three intervals: the naive one of the slope is narrow and misses the one of the confidential data, and the one of dpjax is wider and holds it."
posterior.plot_forest(answers)
plt.show()

# %%
slopes = {name: np.ravel(answer["coef"][..., 1]) for name, answer in {**answers, "dpjax": posterior.draws}.items()}
center = slopes["non-private"].mean()
assert abs(slopes["naive"].mean() - center) > 2 * slopes["naive"].std()
assert np.quantile(slopes["dpjax"], 0.025) < center < np.quantile(slopes["dpjax"], 0.975)
assert slopes["dpjax"].std() > 1.5 * slopes["naive"].std()

# %% [markdown]
# `plot.forest` does the same for answers of any kind, posterior or plain draws, by their names.
#
# ## Does the model fit what was published?
#
# Each of the five numbers is shown in units of its predictions. A red one is outside what the model
# considers possible.

# %% alt="Five bars of predicted releases, each with a dark dot for the released number within the bar."
posterior.plot_predictive(jax.random.key(3), labels=["y", "x y", "y²", "x", "x²"])
plt.show()

# %% [markdown]
# For one released value for each person all are shown together.

# %% alt="A histogram of 200 released values over the band of what is predicted for each bin; all but a few dots are in the band."
local = dpjax.LocalRelease(rng.normal(1.0, 1.0, 200) + rng.laplace(scale=1.5, size=200), dpjax.Laplace(1.5), field="y")
wide = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 3.0), dpjax.models.InverseGammaPrior(2.0, 2.0))
people = dpjax.sample(jax.random.key(4), wide, local, num_samples=1_000, progress=False)
people.plot_predictive(jax.random.key(5))
plt.show()

# %% [markdown]
# ## Acceptance, and its lower bound
#
# For IMwG a proposal is accepted with probability e^(−ε) at least, whatever the records are. ε follows from the noise and
# the clamps. In practice far more proposals are accepted.

# %% alt="Acceptance of 100 records, all alike and far above the dashed line of the theory's bound at 0.05."
posterior.plot_acceptance()
plt.show()

# %%
accepted = posterior.info["acceptance_rate_per_record"]
assert accepted.mean() > np.exp(-epsilon)
assert accepted.min() > 0.4

# %% [markdown]
# ## Convergence of chains
#
# Pairs of chains that meet bound the distance to the posterior, sweep by sweep. With records fixed while the
# coefficients move (no interweaving) convergence is slow. That pairs of one sampler meet later than those of the other makes its
# bound less sharp; it does not prove that its chains are slower.

# %% alt="Left: bounds of the distance fall from 1 to 0 within some hundred sweeps. Right: the share of pairs that have not met falls in nearly straight lines on a logarithmic scale."
kernels = {
    "SOMA": coupling.coupled_gibbs(model, release, dpjax.soma(attempts=32)),
    "IMwG": coupling.coupled_gibbs(model, release, dpjax.imwg()),
}
options = {"lag": 150, "num_pairs": 60, "max_steps": 20_000}
meetings = {name: coupling.meeting_times(jax.random.key(6), kernel, **options) for name, kernel in kernels.items()}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
plot.total_variation(meetings, axes=left)
plot.survival(meetings, axes=right)
plt.show()

# %% [markdown]
# ## A table with its intervals
#
# Published counts may be negative, and need not add up. Least squares makes them add up; the posterior also keeps them
# at zero or above.

# %% alt="Six counts with three marks each: the released count with a bar for its noise, least squares, and the posterior mean with its interval, which stays above zero where the released count is negative."
counts = [-7.0, 3.0, 18.0, 41.0, 9.0, 52.0]
table = dpjax.Release(counts, dpjax.DiscreteGaussian(5.0), dpjax.statistics.cells("cell", 6), n=120)
cells = dpjax.sample(jax.random.key(7), dpjax.models.categorical(np.ones(6)), table, num_samples=1_000, progress=False)
cells.plot_table(jax.random.key(8), labels=["0–9", "10–19", "20–39", "40–59", "60–79", "80+"])
plt.show()

# %% [markdown]
# ## Calibration, and the invariance test
#
# Ranks of the truth among draws are uniform if sampler, model and release agree: bars stay in the grey band.

# %% alt="Three histograms of ranks, for the log-density and the two coefficients, all within their grey bands."
calibration = dpjax.sampler_tests.sbc(jax.random.key(9), model, template, num_replicates=100, num_samples=49)
calibration.plot()
plt.show()

# %%
assert min(np.min(p_value) for p_value in calibration.p_values().values()) > 0.001

# %% [markdown]
# The invariance test starts exact chains at the draws to be tested, here those of `sample_clt`, and compares the ends.

# %% alt="For both coefficients the median and central 90 % of the draws, and below them those after exact sweeps, nearly the same."
approximate = dpjax.sample_clt(jax.random.key(10), model, release, num_samples=500)
verdict = dpjax.sampler_tests.invariance_test(jax.random.key(11), approximate)
verdict.plot()
plt.show()
print(verdict)

# %% [markdown]
# ## What a budget was spent on
#
# A data holder's ledger, with the ε that its queries amount to in the order in which they were made. Later queries add
# less than they would cost by themselves.

# %% alt="Bars for 150 gradients, 80 log-likelihood ratios and what is left of a budget of 4, each beginning where the one above ends."
ledger = private.Ledger(private.Budget(epsilon=4.0, delta=1e-6, neighbours="replace-one"))
ledger.charge([private.Query("gradient", 40.0, "secure")], times=150)
ledger.charge([private.Query("log-ratio", 60.0, "secure")], times=80)
plot.budget(ledger)
plt.show()

# %% [markdown]
# ## What readers would learn from a release
#
# Before a data holder spends a budget: how wide the intervals of readers will be, by simulated releases. Products of the
# variables tell the slope; their sums alone hardly do, and have less noise.

# %% alt="For the intercept the widths of both candidates fall with epsilon; for the slope those of the products fall, and those of the sums stay near the prior's."
sums = dpjax.statistics.stacked(dpjax.statistics.total("x", [-3], [3]), dpjax.statistics.total("y", -4, 4))
budgets = [private.Budget(epsilon, delta=1e-6, neighbours="replace-one") for epsilon in (1.0, 4.0)]
candidates = {"products": statistic, "sums": sums}
expected = private.design(jax.random.key(12), model, candidates, budgets, n, num_releases=4, num_samples=300)
expected.plot()
plt.show()

# %%
slope = expected.widths["coef"][..., 1].mean(axis=-1)
assert slope[0, 1] < slope[0, 0] < slope[1, 1]

# %% [markdown]
# ## Traces and ranks
#
# Pictures of chains are ArviZ's: `posterior.to_arviz()` hands over draws, reports and the released value, and
# `arviz.plot_trace`, `plot_rank` or `plot_pair` do the rest.

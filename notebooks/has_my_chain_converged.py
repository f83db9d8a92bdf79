# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # How do I know that my chain has converged?
#
# R-hat and effective sample sizes can show that a chain has not converged, but not that it has. Two coupled chains that
# meet give more. They bound the distance between the distribution of a draw and the posterior, sweep by sweep. They give
# estimates without the bias of the start. Here both are computed for a private regression.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import dpjax
from dpjax import coupling, plot
from dpjax.diagnostics import ess_bulk, split_r_hat

# %% [markdown]
# ## The problem
#
# 20 records of two covariates and a response, clamped at ±10 and mapped to ±1; their nine sums are released with
# Laplace noise. The coefficients and the variance of the response are unknown.

# %%
n, epsilon = 20, 10.0
model = dpjax.models.linear_regression(
    covariate_mean=[0.9, -1.2],
    covariate_cov=np.eye(2),
    noise_variance=dpjax.models.NormalInverseGammaPrior(np.zeros(3), 0.5 * np.eye(3), 10.0, 10.0),
)
statistic = dpjax.statistics.scaled(dpjax.statistics.gram(lower=[-10, -10], upper=[10, 10], response=(-10, 10)), 0.1)
template = dpjax.Release(np.zeros(9), dpjax.Laplace(1.2 / epsilon), statistic, n)
record_key, noise_key = jax.random.split(jax.random.key(8))
truth = {"coef": jnp.array([-1.8, -2.9, -0.7]), "variance": jnp.array(1.1)}
release = template.sample(noise_key, model.sample_records(record_key, truth, n))

# %% [markdown]
# ## The usual diagnostics
#
# A sampler with a parameter step and an imputation step in turn, without interweaving, so that it is the one that is
# coupled below. It starts from the prior and nothing is discarded.

# %%
posterior = dpjax.sample(
    jax.random.key(1),
    model,
    release,
    imputation=dpjax.soma(),
    interweave=False,
    num_chains=8,
    num_warmup=0,
    num_samples=4_000,
    progress=False,
)
coef = posterior.draws["coef"]
for sweeps in (100, 400, 4_000):
    part = coef[:, :sweeps]
    print(f"{sweeps:5} sweeps: R-hat {np.max(split_r_hat(part)):.3f}, {np.min(ess_bulk(part)):.0f} effective draws")

# %% [markdown]
# R-hat falls, but after which sweep are the draws good? The chains can only be compared with each other.
#
# ## When two chains meet
#
# A pair starts from two independent draws of the prior. Both chains run the sampler above, with common random numbers
# chosen so that their parameters and records become the same; then they stay the same. The first chain is `lag` sweeps
# ahead, and the meeting time shows how long it takes to forget the start.

# %%
pairs = {"lag": 300, "max_steps": 20_000, "batch_size": 50}
kernels = {
    "SOMA": coupling.coupled_gibbs(model, release, dpjax.soma()),
    "IMwG, equal indices": coupling.coupled_gibbs(model, release, dpjax.imwg(), relabel=False),
}
meetings = {
    name: coupling.meeting_times(jax.random.key(2), kernel, num_pairs=100, **pairs) for name, kernel in kernels.items()
}
for name, found in meetings.items():
    assert found.num_censored == 0
    rate = coupling.convergence_rate(found, np.random.default_rng(1))
    together = found.times - found.lag
    print(
        f"{name:20} met after {together.mean():6.1f} sweeps, at most {together.max()}; not met: {found.num_censored}; "
        f"rate {rate.rate:.4f} ({rate.lower:.4f} to {rate.upper:.4f})"
    )

# %% [markdown]
# ## A bound for every sweep
#
# From the meeting times follows an upper bound of the total variation distance between the distribution of the chain after
# t sweeps and the posterior. No probability of an event is wrong by more. A lag as long as the meeting times makes it
# sharp. It is a mean over pairs and has a standard error, which is added twice here; more pairs make that smaller. If a
# single pair had not met, the bound would be refused rather than be too small.

# %% alt="Left: the share of pairs that have not met, on a logarithmic scale, for two samplers. Right: their bounds of the distance to the posterior, which fall from 1 to 0 within some hundred sweeps."
times = np.arange(0, 800, 5)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
plot.survival(meetings, axes=left)
plot.total_variation(meetings, target=0.05, axes=right)
plt.show()

bounds, errors = coupling.total_variation_bounds(meetings["SOMA"], times)
warmup = int(times[np.argmax(bounds + 2 * errors < 0.05)])
print(f"After {warmup} sweeps of SOMA a draw is within 0.05 of the posterior.")
assert warmup > 0
assert bounds[-1] == 0

# %% [markdown]
# ## Estimates without bias
#
# The same pairs give estimates whose mean is the posterior mean, however short they run: the average of the first chain
# over a window, plus a correction for its start. Pairs are independent, so the standard error is that of a plain
# mean, and no autocorrelation has to be estimated.


# %%
def coefficients(position):
    return position.parameters["coef"]


k, m = coupling.suggest_k_m(meetings["SOMA"], multiple=3)
run = coupling.unbiased_estimates(jax.random.key(3), kernels["SOMA"], coefficients, k=k, m=m, num_pairs=50, **pairs)
estimate = run.estimate()
after = coef[:, warmup:]
print(f"window {k} to {m}; {estimate.cost:,} sweeps in all")
for index, name in enumerate(("intercept", "first slope", "second slope")):
    error = np.std(after[..., index]) / np.sqrt(ess_bulk(after)[index])
    print(
        f"{name:13} unbiased {estimate.mean[index]:7.3f} ± {estimate.standard_error[index]:.3f}; "
        f"long run {np.mean(after[..., index]):7.3f} ± {error:.3f}"
    )
    gap = abs(estimate.mean[index] - np.mean(after[..., index]))
    assert gap < 5 * np.hypot(error, estimate.standard_error[index])

# %% [markdown]
# ## What this shows, and what it does not
#
# * The bound holds for this sampler from this start. Another kernel, interweaving for one, usually converges faster;
#   the default of `dpjax.sample` is then better than shown here.
# * Records were relabelled while the chains ran, which does not change the posterior: the bound concerns
#   parameters and everything that does not depend on the order of records.
# * The bound and its error come from the pairs that were run. A second mode that no start ever visits would not be
#   seen; starts from the prior, as here, reach whatever the prior reaches.
# * Late meetings do not prove slow mixing: the coupling may be inefficient, and not the chain.

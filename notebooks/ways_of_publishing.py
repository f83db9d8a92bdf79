# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Which way to publish a posterior
#
# The holder of 20,000 confidential records wants others to have the posterior of a logistic regression. It can run a Markov
# chain whose every look at the records is noisy, and publish the draws. Or it can publish noisy sums, once, of which everybody
# computes the posterior. Here both are done at the same budgets, on made-up records, next to the posterior that
# nobody may see.

# %%
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax
from dpjax import private

jax.config.update("jax_enable_x64", True)

n, epsilons = 20_000, (0.3, 1.0, 3.0, 10.0)


def make_up(rng, theta):
    x = rng.normal(size=n)
    return {"x": x, "y": rng.binomial(1, 1 / (1 + np.exp(-theta[0] - theta[1] * x))).astype(float)}


truth = np.array([-0.95, 0.56])
records = make_up(np.random.default_rng(1), truth)

# %% [markdown]
# ## What is public
#
# An intercept near -1 and a slope near 0.5 are known from elsewhere. Records that are made up at this guess say how large
# gradients are, and how round the posterior is; that decides all settings below, and costs nothing.

# %%
guess = np.array([-1.0, 0.5])
pilot = make_up(np.random.default_rng(2), guess)


def log_likelihood(theta, record):
    predictor = theta[0] + theta[1] * record["x"]
    return record["y"] * predictor - jax.nn.softplus(predictor)


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2) / 4.0


information = -jax.vmap(jax.hessian(log_likelihood), (None, 0))(jnp.asarray(guess), pilot).sum(axis=0)
scale = np.linalg.inv(np.linalg.cholesky(information)).T  # θ = guess + scale u, and u is about N(0, I)


def budget(epsilon):
    return private.Budget(epsilon, delta=1e-6, neighbours="replace-one")


# %% [markdown]
# ## A chain: DP-HMC
#
# `private.plan` says what a budget gives before it is spent.

# %%
target = private.target(log_likelihood, log_prior, pilot, jnp.zeros(2))
for epsilon in epsilons:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws, as is printed
        try:
            plan = private.plan(
                jax.random.key(1),
                target,
                source="synthetic",
                num_records=n,
                budget=budget(epsilon),
                num_chains=1,
                num_iterations=250,
            )
            print(f"ε = {epsilon}: {plan.effective_draws:.0f} independent draws")
        except ValueError as refusal:
            print(f"ε = {epsilon}: refused, {str(refusal).split('; expected')[0].split('given ')[1]}")

# %% [markdown]
# ## A chain without a test: DP-SGLD
#
# Langevin steps on all records, in coordinates in which the posterior is round, with all of the noise that the dynamics need in
# the release. The first quarter is its warm-up.


# %%
def on_round_scale(data):
    def place(u):
        return jnp.asarray(guess) + scale @ u

    return private.target(
        lambda u, record: log_likelihood(place(u), record), lambda u: log_prior(place(u)), data, jnp.zeros(2)
    )


norms = np.linalg.norm(
    jax.vmap(jax.grad(log_likelihood), (None, 0))(jnp.asarray(guess), pilot) @ scale, axis=1
)  # of the gradients with respect to u
step, bound = 0.2, float(np.quantile(norms, 0.999))
chains = {}
for epsilon in epsilons:
    kernel = private.dp_sgld(
        on_round_scale(records),
        private.noise.jax,  # so that this page is the same each time: leave the records' noise to noise.secure
        step_size=step,
        sampling_rate=1.0,
        gradient_bound=bound,
        noise_multiplier=private.largest_langevin_noise(step, 1.0, bound),
    )
    ledger = private.Ledger(budget(epsilon))
    iterations = min(2_000, ledger.affordable(kernel.queries))
    run = private.sample(jax.random.key(2), kernel, jnp.zeros((1, 2)), ledger, num_iterations=iterations)
    chains[epsilon] = guess + np.asarray(run.draws)[0, iterations // 4 :] @ scale.T
    print(f"ε = {epsilon}: {iterations} iterations, which spend {run.privacy_spent().epsilon:.3f}")

# %% [markdown]
# ## A release: score and curvature at the guess
#
# The gradient and the second derivatives of each record's log-likelihood at the guess are summed, with noise, once. They
# determine the log-likelihood near the guess; but readers need not believe in that expansion: they compute the posterior given
# these sums under their model of records, wherever it lies.


# %%
def derivatives(record):
    def loss(u):
        return -log_likelihood(jnp.asarray(guess) + scale @ u, record)

    origin = jnp.zeros(2)
    return jnp.concatenate([jax.grad(loss)(origin), jax.hessian(loss)(origin)[np.triu_indices(2)]])


lengths = np.linalg.norm(jax.vmap(derivatives)(pilot), axis=1)
statistic = dpjax.statistics.clipped(derivatives, float(np.quantile(lengths, 0.9)), dimension=5)


def logistic(n):
    theta = numpyro.sample("theta", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    with numpyro.plate("people", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=theta[0] + theta[1] * x))


model = dpjax.from_numpyro(logistic, records=["x", "y"])
read = {}
for epsilon in epsilons:
    source = private.noise.Secure(np.random.default_rng(3).bytes)
    release = private.release(private.Ledger(budget(epsilon)), statistic, records, noise=source)
    posterior = dpjax.sample_clt(jax.random.key(4), model, release, progress=False)
    read[epsilon] = np.asarray(posterior.draws["theta"]).reshape(-1, 2)
print(posterior.summary())

# %% [markdown]
# ## What nobody may see
#
# The posterior given the records themselves, for comparison.

# %%
exact_kernel = private.hmc(on_round_scale(records), step_size=0.4, num_leapfrog=4)


@jax.jit
def exact_chain(key):
    def move(state, index):
        state, _ = exact_kernel.step(jax.random.fold_in(key, index), state)
        return state, state.position

    return jax.lax.scan(move, exact_kernel.init(jnp.zeros(2)), jnp.arange(1_000))[1]


exact = guess + np.asarray(exact_chain(jax.random.key(5)))[100:] @ scale.T

# %% thumbnail=true alt="For each of four budgets the interval of the slope from a chain and from a release, next to a band for the posterior given the records. At ε = 0.3 the chain's interval is short and below the band, and that of the release covers most of the band and a little more; from ε = 1 on both agree with it."
figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
low, high = np.quantile(exact[:, 1], [0.05, 0.95])
axes.axhspan(low, high, color="0.85", label="given the records")
places = np.arange(len(epsilons))
for offset, mark, name, draws in ((-0.12, "o", "DP-SGLD", chains), (0.12, "s", "release of derivatives", read)):
    low, middle, high = np.transpose([np.quantile(one[:, 1], [0.05, 0.5, 0.95]) for one in draws.values()])
    axes.errorbar(places + offset, middle, [middle - low, high - middle], fmt=mark, capsize=3, label=name)
axes.axhline(truth[1], color="#404040", linewidth=0.8, label="truth")
axes.set_xticks(places, [f"ε = {epsilon:g}" for epsilon in epsilons])
axes.set_ylabel("slope, 90 % interval")
figure.legend(frameon=False, loc="outside right upper")
plt.show()

# %% [markdown]
# A small budget allows the chain a few noisy steps. Its draws are then where it started and what the noise made of it, and
# nothing in them says so. The release is as wide as its noise deserves. With more budget both come close to the posterior.
# [Publishing under differential privacy](../private.md) says what else speaks for either. A
# [table](../benchmarks.md#ways-of-publishing-a-posterior) has four models and eight repeats of each.

# %%
for epsilon in (1.0, 3.0, 10.0):
    centre, deviation = read[epsilon].mean(axis=0), read[epsilon].std(axis=0)
    assert np.all(np.abs(centre - exact.mean(axis=0)) < 3 * deviation)
assert np.all(np.abs(chains[10.0].mean(axis=0) - exact.mean(axis=0)) < exact.std(axis=0))

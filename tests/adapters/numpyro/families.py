"""Every law that a record may have in `from_numpyro`, at ordinary and extreme parameters, beside SciPy's law.

Each family is followed through its points in turn: noise that gives a record at one point must give a record of the
next point's law there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import transforms
from scipy import special, stats

from tests.adapters.numpyro.oracles import Mixture, Transformed, Truncated, kumaraswamy, levels

EIGHT_OUT = ((-8.0, 1.0), (0.5, 1.0), (8.0, 0.7), (-30.0, 2.0), (-3.0, 0.4))


class Family(NamedTuple):
    """One family: its NumPyro law and SciPy's law as functions of one point, and the points.

    double
        Further points whose values float32 cannot hold.
    """

    law: Callable[..., Any]
    oracle: Callable[..., Any]
    points: tuple[tuple[float, ...], ...]
    double: tuple[tuple[float, ...], ...] = ()

    def at(self) -> tuple[tuple[float, ...], ...]:
        """The points for this precision."""
        return self.points + (self.double if jax.config.jax_enable_x64 else ())


def truncated(base: Any, oracle: Any, low: float = -np.inf, high: float = np.inf) -> Family:
    """A law with a location and a scale cut to [low, high], from far below to far above."""
    bounds = {name: bound for name, bound in (("low", low), ("high", high)) if np.isfinite(bound)}
    return Family(
        lambda loc, scale: dist.TruncatedDistribution(base(loc, scale), **bounds),
        lambda loc, scale: Truncated(oracle(loc, scale), low, high),
        EIGHT_OUT,
    )


def doubly_truncated_power_law(alpha: float) -> Any:
    """x^(α + 1) is uniform on 0.5 to 4."""
    power = alpha + 1
    low, high = sorted((0.5**power, 4.0**power))
    return Transformed(
        stats.uniform(low, high - low),
        lambda x: np.asarray(x, np.float64) ** power,
        lambda v: v ** (1 / power),
        lambda v: np.log(np.abs(1 / power)) + (1 / power - 1) * np.log(v),
        increasing=power > 0,
    )


def inflated(gate: float, rate: float) -> Any:
    return Mixture([gate, 1 - gate], [stats.randint(0, 1), stats.poisson(rate)])


def hurdle(gate: float, rate: float) -> Any:
    counts = np.arange(1, 200)
    return levels([gate, *(1 - gate) * stats.poisson(rate).pmf(counts) / -np.expm1(-rate)])


LOCATED = ((0.0, 1.0), (-5.0, 1e3), (20.0, 0.05), (1.0, 3.0))
SHAPES = ((0.5, 2.0), (1.0, 0.3), (3.0, 1.0), (1e3, 5.0))

CONTINUOUS: dict[str, Family] = {
    "Normal": Family(dist.Normal, stats.norm, LOCATED),
    "LogNormal": Family(
        dist.LogNormal, lambda m, s: stats.lognorm(s, scale=np.exp(m)), ((0.0, 1.0), (-3.0, 0.05), (2.0, 5.0))
    ),
    "Laplace": Family(dist.Laplace, stats.laplace, LOCATED),
    "Cauchy": Family(dist.Cauchy, stats.cauchy, LOCATED),
    "Logistic": Family(dist.Logistic, stats.logistic, LOCATED),
    "Gumbel": Family(dist.Gumbel, stats.gumbel_r, LOCATED),
    "SoftLaplace": Family(dist.SoftLaplace, stats.hypsecant, LOCATED),
    "StudentT": Family(dist.StudentT, stats.t, ((5.0, 0.0, 1.0), (1.0, 2.0, 0.05), (1e3, -3.0, 1e3), (0.5, 0.0, 1.0))),
    "HalfNormal": Family(dist.HalfNormal, lambda s: stats.halfnorm(scale=s), ((1.0,), (0.05,), (1e3,))),
    "HalfCauchy": Family(dist.HalfCauchy, lambda s: stats.halfcauchy(scale=s), ((1.0,), (0.05,), (1e3,))),
    "Uniform": Family(
        lambda low, width: dist.Uniform(low, low + width), stats.uniform, ((0.0, 1.0), (-1.0, 1e3), (2.0, 0.05))
    ),
    "LogUniform": Family(dist.LogUniform, stats.loguniform, ((0.5, 2.0), (1e-6, 1e3), (1.0, 1.05))),
    "Exponential": Family(dist.Exponential, lambda r: stats.expon(scale=1 / r), ((1.0,), (0.05,), (1e3,))),
    "Weibull": Family(
        dist.Weibull, lambda s, c: stats.weibull_min(c, scale=s), ((1.0, 2.0), (0.3, 0.5), (2.0, 1e3), (1.0, 0.05))
    ),
    "Kumaraswamy": Family(
        dist.Kumaraswamy, kumaraswamy, ((2.0, 3.0), (0.5, 0.5), (1.0, 1e3), (1e3, 1.0), (0.05, 1.0), (1.0, 0.05))
    ),
    "Pareto": Family(
        dist.Pareto, lambda s, a: stats.pareto(a, scale=s), ((1.0, 2.0), (0.05, 0.5), (2.0, 1e3)), ((1.0, 0.05),)
    ),
    "Gamma": Family(
        dist.Gamma, lambda a, r: stats.gamma(a, scale=1 / r), ((2.0, 1.0), (1e3, 5.0), (0.5, 2.0), (0.05, 1.0))
    ),
    "Chi2": Family(dist.Chi2, stats.chi2, ((3.0,), (1e3,), (1.0,), (0.1,))),
    "InverseGamma": Family(
        dist.InverseGamma, lambda a, r: stats.invgamma(a, scale=r), ((2.0, 1.0), (1e3, 5.0), (0.5, 2.0)), ((0.05, 1.0),)
    ),
    "Beta": Family(
        dist.Beta,
        stats.beta,
        ((2.0, 3.0), (1e3, 1e3), (0.5, 0.5), (1.0, 0.05), (0.05, 1.0), (0.05, 0.05), (1e3, 0.05)),
    ),
    "BetaProportion": Family(
        dist.BetaProportion, lambda m, k: stats.beta(m * k, (1 - m) * k), ((0.5, 4.0), (0.02, 5.0), (0.98, 5.0))
    ),
    "AsymmetricLaplace": Family(
        dist.AsymmetricLaplace,
        lambda m, s, k: stats.laplace_asymmetric(k, m, s),
        ((0.0, 1.0, 1.0), (1.0, 0.05, 3.0), (-2.0, 1e3, 0.2)),
    ),
    "AsymmetricLaplaceQuantile": Family(
        dist.AsymmetricLaplaceQuantile,
        lambda m, s, q: stats.laplace_asymmetric((q / (1 - q)) ** 0.5, m, s / (q * (1 - q)) ** 0.5),
        ((0.0, 1.0, 0.5), (1.0, 0.05, 0.9), (-2.0, 1e3, 0.02)),
    ),
    "Levy": Family(dist.Levy, stats.levy, ((0.0, 1.0), (2.0, 0.05), (-1.0, 1e3))),
    "Dagum": Family(
        lambda p, a: dist.Dagum(p, a, 2.0),
        lambda p, a: stats.mielke(p * a, a, scale=2.0),
        ((1.0, 2.0), (0.5, 3.0), (50.0, 8.0)),
    ),
    "Gompertz": Family(
        lambda c, r: dist.Gompertz(c, r),
        lambda c, r: stats.gompertz(c, scale=1 / r),
        ((1.0, 1.0), (0.05, 2.0), (1e3, 0.5)),
    ),
    "LowerTruncatedPowerLaw": Family(
        lambda alpha, low: dist.LowerTruncatedPowerLaw(-alpha, low),
        lambda alpha, low: stats.pareto(alpha - 1, scale=low),
        ((2.0, 1.0), (1.5, 0.05), (1e3, 2.0)),
    ),
    "DoublyTruncatedPowerLaw": Family(
        lambda alpha: dist.DoublyTruncatedPowerLaw(alpha, 0.5, 4.0),
        doubly_truncated_power_law,
        ((1.0,), (-2.0,), (0.3,)),
    ),
    "VonMises": Family(dist.VonMises, lambda m, k: stats.vonmises(k, m), ((0.0, 1.0), (0.0, 0.05), (0.0, 50.0))),
    "FoldedNormal": Family(
        lambda m, s: dist.FoldedDistribution(dist.Normal(m, s)),
        lambda m, s: stats.foldnorm(abs(m) / s, scale=s),
        ((0.3, 1.0), (-0.7, 0.5), (8.0, 1.0), (-2.0, 3.0)),
    ),
    "FoldedCauchy": Family(
        lambda m, s: dist.FoldedDistribution(dist.Cauchy(m, s)),
        lambda m, s: stats.foldcauchy(abs(m) / s, scale=s),
        ((0.3, 1.0), (-0.7, 0.5), (8.0, 1.0)),
    ),
    "affine StudentT": Family(
        lambda m, s: dist.TransformedDistribution(dist.StudentT(5.0), transforms.AffineTransform(m, s)),
        lambda m, s: stats.t(5.0, m, s),
        LOCATED,
    ),
    "logit-Normal": Family(
        lambda m, s: dist.TransformedDistribution(dist.Normal(m, s), transforms.SigmoidTransform()),
        lambda m, s: Transformed(
            stats.norm(m, s), special.logit, special.expit, lambda v: special.log_expit(v) + special.log_expit(-v)
        ),
        ((0.0, 1.0), (2.0, 0.5), (-3.0, 1.0)),
    ),
    "mixture of Normals": Family(
        lambda w, m: dist.MixtureSameFamily(
            dist.Categorical(probs=jnp.stack([w, 1 - w])), dist.Normal(jnp.stack([m, -m]), 1.0)
        ),
        lambda w, m: Mixture([w, 1 - w], [stats.norm(m, 1.0), stats.norm(-m, 1.0)]),
        ((0.5, 1.0), (0.05, 8.0), (0.999, 3.0)),
    ),
    "TruncatedGamma": Family(
        lambda a, r: dist.TruncatedGamma(a, r, low=1.0, high=4.0),
        lambda a, r: Truncated(stats.gamma(a, scale=1 / r), 1.0, 4.0),
        ((2.0, 1.0), (20.0, 1.0), (0.5, 0.5)),
    ),
    **{
        f"{name} {words}": truncated(base, oracle, **bounds)
        for name, base, oracle in (
            ("Normal", dist.Normal, stats.norm),
            ("Cauchy", dist.Cauchy, stats.cauchy),
            ("Laplace", dist.Laplace, stats.laplace),
            ("Logistic", dist.Logistic, stats.logistic),
            ("SoftLaplace", dist.SoftLaplace, stats.hypsecant),
        )
        for words, bounds in (
            ("above 0", {"low": 0.0}),
            ("below 1", {"high": 1.0}),
            ("in [-1, 2]", {"low": -1.0, "high": 2.0}),
        )
    },
}

RARE = ((0.3,), (1e-6,), (0.999999,), (0.5,))

DISCRETE: dict[str, Family] = {
    "Bernoulli": Family(lambda p: dist.Bernoulli(probs=p), stats.bernoulli, RARE),
    "Bernoulli logits": Family(
        lambda v: dist.Bernoulli(logits=v), lambda v: stats.bernoulli(special.expit(v)), ((0.3,), (-13.0,), (13.0,))
    ),
    "Categorical": Family(
        lambda p, q: dist.Categorical(probs=jnp.stack([p, q, 1 - p - q])),
        lambda p, q: levels([p, q, 1 - p - q]),
        ((0.2, 0.5), (1e-6, 0.5), (0.5, 0.5), (0.0, 1e-6)),
    ),
    "Categorical logits": Family(
        lambda v, w: dist.Categorical(logits=jnp.stack([v, w, 0 * v])),
        lambda v, w: levels(list(special.softmax([v, w, 0.0]))),
        ((0.1, -0.5), (-13.0, 0.0), (5.0, 20.0)),
    ),
    "OrderedLogistic": Family(
        lambda v: dist.OrderedLogistic(v, jnp.array([-1.0, 0.5, 2.0])),
        lambda v: levels(list(np.diff(special.expit(np.array([-np.inf, -1.0, 0.5, 2.0, np.inf]) - v)))),
        ((0.0,), (4.0,), (-8.0,)),
    ),
    "DiscreteUniform": Family(
        lambda low: dist.DiscreteUniform(low.astype(int), low.astype(int) + 4),
        lambda low: stats.randint(int(low), int(low) + 5),
        ((2.0,), (-3.0,), (0.0,)),
    ),
    "Poisson": Family(dist.Poisson, stats.poisson, ((2.5,), (1e-6,), (1e3,), (30.0,))),
    "Binomial": Family(
        lambda p: dist.Binomial(20, probs=p), lambda p: stats.binom(20, p), ((0.4,), (1e-6,), (0.999999,))
    ),
    "Binomial logits": Family(
        lambda v: dist.Binomial(20, logits=v), lambda v: stats.binom(20, special.expit(v)), ((0.4,), (-9.0,), (9.0,))
    ),
    "Geometric": Family(
        lambda p: dist.Geometric(probs=p), lambda p: stats.geom(p, loc=-1), ((0.3,), (0.999,), (0.01,))
    ),
    "NegativeBinomial": Family(
        lambda m, k: dist.NegativeBinomial2(m, k),
        lambda m, k: stats.nbinom(k, k / (k + m)),
        ((3.0, 2.0), (0.05, 0.05), (50.0, 1e3)),
    ),
    "BetaBinomial": Family(
        lambda a, b: dist.BetaBinomial(a, b, 20),
        lambda a, b: stats.betabinom(20, a, b),
        ((2.0, 3.0), (0.05, 0.05), (1e3, 5.0), (20.0, 0.5)),
    ),
    "BetaNegativeBinomial": Family(
        lambda a, b: dist.BetaNegativeBinomial(a, b, 3.0),
        lambda a, b: stats.betanbinom(3.0, b, a),
        ((2.0, 9.0), (0.05, 30.0)),
    ),
    "ZeroInflatedPoisson": Family(dist.ZeroInflatedPoisson, inflated, ((0.3, 2.0), (1e-6, 5.0), (0.95, 30.0))),
    "HurdlePoisson": Family(lambda g, r: dist.HurdlePoisson(g, r), hurdle, ((0.3, 2.0), (0.9, 0.05), (0.01, 30.0))),
    "mixture of Poissons": Family(
        lambda w: dist.MixtureSameFamily(
            dist.Categorical(probs=jnp.stack([w, 1 - w])), dist.Poisson(jnp.array([1.0, 300.0]))
        ),
        lambda w: Mixture([w, 1 - w], [stats.poisson(1.0), stats.poisson(300.0)]),
        ((0.5,), (0.01,), (0.99,)),
    ),
}

QUICK = ("FoldedNormal", "Normal above 0", "Levy")
"""The families that the quick tests follow."""

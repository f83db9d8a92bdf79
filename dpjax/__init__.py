"""Exact posteriors from differentially private releases, in JAX."""

from typing import TYPE_CHECKING

from dpjax._util.lazy import lazy_names

if TYPE_CHECKING:
    from dpjax import coupling, exchangeable, mixture, models, plot, private, statistics
    from dpjax._util.jit import enable_compilation_cache
    from dpjax.adapters.numpyro import from_numpyro
    from dpjax.adapters.numpyro import private_target as private_target  # the former name of private.numpyro_target
    from dpjax.base import Model
    from dpjax.clt import sample_clt
    from dpjax.data_augmentation.algorithm import gibbs, impute
    from dpjax.data_augmentation.counts import counts, least_squares
    from dpjax.data_augmentation.parameters import parameter_kernel
    from dpjax.data_augmentation.records import imwg, pcn, soma
    from dpjax.importance import importance_sample
    from dpjax.likelihood import MaximumLikelihood, likelihood_ratio_test, maximum_likelihood
    from dpjax.mcmc import sample, sample_batch, until
    from dpjax.mechanisms import (
        CellKeys,
        Censored,
        DiscreteGaussian,
        DiscreteLaplace,
        Exact,
        ExponentialMechanism,
        Gaussian,
        HaarWavelet,
        Independent,
        KNormLinf,
        Laplace,
        LocalChannel,
        Mechanism,
        MultivariateGaussian,
        PermuteAndFlip,
        PrimarySuppression,
        Privacy,
        RandomizedResponse,
        RandomRounding,
        ReportNoisyMax,
        Rounded,
        SmoothedHistogram,
        Staircase,
        Truncated,
        Tulap,
        VectorLaplace,
        gaussian_scale,
        laplace_scale,
        zcdp_scale,
    )
    from dpjax.posterior import Posterior
    from dpjax.posterior.prediction import sample_prior_predictive
    from dpjax.posterior.saving import load
    from dpjax.release import (
        LocalRelease,
        Release,
        UnknownCount,
        describe,
        from_json,
        joint,
        mechanism_from_published,
        releases,
    )
    from dpjax.sampler_tests import invariance_test, sbc
    from dpjax.smc import sample_smc
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "dpjax": (
                "adapters base clt coupling data_augmentation diagnostics exchangeable importance likelihood mcmc "
                "mechanisms mixture models numerics plot posterior private release runtime sampler_tests smc "
                "statistics"
            ),
            "dpjax._util.jit": "enable_compilation_cache",
            "dpjax.posterior.saving": "load",
            "dpjax.adapters.numpyro": "from_numpyro private_target",
            "dpjax.base": "Model",
            "dpjax.clt": "sample_clt",
            "dpjax.data_augmentation.algorithm": "gibbs impute",
            "dpjax.data_augmentation.counts": "counts least_squares",
            "dpjax.data_augmentation.parameters": "parameter_kernel",
            "dpjax.data_augmentation.records": "imwg pcn soma",
            "dpjax.importance": "importance_sample",
            "dpjax.likelihood": "MaximumLikelihood likelihood_ratio_test maximum_likelihood",
            "dpjax.mcmc": "sample sample_batch until",
            "dpjax.mechanisms": (
                "CellKeys Censored DiscreteGaussian DiscreteLaplace Exact ExponentialMechanism Gaussian HaarWavelet "
                "Independent KNormLinf Laplace LocalChannel Mechanism MultivariateGaussian PermuteAndFlip "
                "PrimarySuppression Privacy RandomizedResponse RandomRounding ReportNoisyMax Rounded "
                "SmoothedHistogram Staircase Truncated Tulap VectorLaplace gaussian_scale laplace_scale zcdp_scale"
            ),
            "dpjax.posterior": "Posterior",
            "dpjax.posterior.prediction": "sample_prior_predictive",
            "dpjax.release": (
                "LocalRelease Release UnknownCount describe from_json joint mechanism_from_published releases"
            ),
            "dpjax.sampler_tests": "invariance_test sbc",
            "dpjax.smc": "sample_smc",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "CellKeys",
    "Censored",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exact",
    "ExponentialMechanism",
    "Gaussian",
    "HaarWavelet",
    "Independent",
    "KNormLinf",
    "Laplace",
    "LocalChannel",
    "LocalRelease",
    "MaximumLikelihood",
    "Mechanism",
    "Model",
    "MultivariateGaussian",
    "PermuteAndFlip",
    "Posterior",
    "PrimarySuppression",
    "Privacy",
    "RandomRounding",
    "RandomizedResponse",
    "Release",
    "ReportNoisyMax",
    "Rounded",
    "SmoothedHistogram",
    "Staircase",
    "Truncated",
    "Tulap",
    "UnknownCount",
    "VectorLaplace",
    "counts",
    "coupling",
    "describe",
    "enable_compilation_cache",
    "exchangeable",
    "from_json",
    "from_numpyro",
    "gaussian_scale",
    "gibbs",
    "importance_sample",
    "impute",
    "imwg",
    "invariance_test",
    "joint",
    "laplace_scale",
    "least_squares",
    "likelihood_ratio_test",
    "load",
    "maximum_likelihood",
    "mechanism_from_published",
    "mixture",
    "models",
    "parameter_kernel",
    "pcn",
    "plot",
    "private",
    "releases",
    "sample",
    "sample_batch",
    "sample_clt",
    "sample_prior_predictive",
    "sample_smc",
    "sbc",
    "soma",
    "statistics",
    "until",
    "zcdp_scale",
]

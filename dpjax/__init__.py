"""Exact posteriors from differentially private releases, in JAX."""

from typing import TYPE_CHECKING

from dpjax._util.lazy import lazy_names

if TYPE_CHECKING:
    from dpjax import (
        coupling,
        diagnostics,
        exchangeable,
        mechanisms,
        mixture,
        models,
        plot,
        private,
        statistics,
    )
    from dpjax._util.jit import enable_compilation_cache as enable_compilation_cache
    from dpjax.adapters.numpyro import (
        MarkovChain as MarkovChain,
        NormalChain as NormalChain,
        from_numpyro,
        private_target as private_target,
        unknown as unknown,
    )
    from dpjax.base import Model
    from dpjax.clt import normal_sum as normal_sum
    from dpjax.comparison import compare as compare
    from dpjax.data_augmentation.algorithm import gibbs, impute
    from dpjax.data_augmentation.counts import counts, least_squares as least_squares
    from dpjax.data_augmentation.parameters import parameter_kernel as parameter_kernel
    from dpjax.data_augmentation.records import imwg, pcn, soma
    from dpjax.data_augmentation.summed_out import marginal_likelihood, summed_out as summed_out
    from dpjax.importance import importance_sample
    from dpjax.likelihood import (
        MaximumLikelihood as MaximumLikelihood,
        likelihood_ratio_test as likelihood_ratio_test,
        maximum_likelihood,
    )
    from dpjax.mcmc import sample, sample_batch, sample_clt, until
    from dpjax.mechanisms import (
        AddedNoise as AddedNoise,
        CellKeys as CellKeys,
        Censored as Censored,
        DiscreteGaussian,
        DiscreteLaplace,
        Exact,
        ExponentialMechanism as ExponentialMechanism,
        Gaussian,
        HaarWavelet as HaarWavelet,
        Independent as Independent,
        KNormLinf as KNormLinf,
        Laplace,
        LocalChannel as LocalChannel,
        Mechanism as Mechanism,
        MultivariateGaussian as MultivariateGaussian,
        PermuteAndFlip as PermuteAndFlip,
        PossibleSums as PossibleSums,
        PrimarySuppression as PrimarySuppression,
        Privacy as Privacy,
        Promised as Promised,
        RandomizedResponse,
        RandomRounding as RandomRounding,
        ReportNoisyMax as ReportNoisyMax,
        Rounded as Rounded,
        SmoothedHistogram as SmoothedHistogram,
        Staircase as Staircase,
        Tails as Tails,
        Truncated as Truncated,
        Tulap as Tulap,
        VectorLaplace as VectorLaplace,
        gaussian_scale as gaussian_scale,
        laplace_scale as laplace_scale,
        zcdp_scale as zcdp_scale,
    )
    from dpjax.posterior import Posterior as Posterior
    from dpjax.posterior.prediction import sample_prior_predictive as sample_prior_predictive
    from dpjax.posterior.saving import load
    from dpjax.posterior.synthetic import combine_synthetic as combine_synthetic
    from dpjax.release import (
        LocalRelease,
        Microdata,
        OwnRelease as OwnRelease,
        Release,
        UnknownCount,
        describe,
        from_json,
        joint,
        mechanism_from_published as mechanism_from_published,
        releases,
    )
    from dpjax.sampler_tests import invariance_test as invariance_test, sbc as sbc
    from dpjax.smc import sample_smc
else:
    __getattr__, _ = lazy_names(
        __name__,
        {
            "dpjax": (
                "adapters base clt comparison coupling data_augmentation diagnostics exchangeable importance "
                "likelihood mcmc mechanisms mixture models numerics plot posterior private release runtime "
                "sampler_tests smc statistics"
            ),
            "dpjax._util.jit": "enable_compilation_cache",
            "dpjax.posterior.saving": "load",
            "dpjax.adapters.numpyro": "MarkovChain NormalChain from_numpyro private_target unknown",
            "dpjax.base": "Model",
            "dpjax.clt": "normal_sum",
            "dpjax.comparison": "compare",
            "dpjax.data_augmentation.algorithm": "gibbs impute",
            "dpjax.data_augmentation.counts": "counts least_squares",
            "dpjax.data_augmentation.parameters": "parameter_kernel",
            "dpjax.data_augmentation.records": "imwg pcn soma",
            "dpjax.data_augmentation.summed_out": "marginal_likelihood summed_out",
            "dpjax.importance": "importance_sample",
            "dpjax.likelihood": "MaximumLikelihood likelihood_ratio_test maximum_likelihood",
            "dpjax.mcmc": "sample sample_batch sample_clt until",
            "dpjax.mechanisms": (
                "AddedNoise CellKeys Censored DiscreteGaussian DiscreteLaplace Exact ExponentialMechanism Gaussian "
                "HaarWavelet Independent KNormLinf Laplace LocalChannel Mechanism MultivariateGaussian PermuteAndFlip "
                "PossibleSums PrimarySuppression Privacy Promised RandomizedResponse RandomRounding ReportNoisyMax "
                "Rounded SmoothedHistogram Staircase Tails Truncated Tulap VectorLaplace gaussian_scale laplace_scale "
                "zcdp_scale"
            ),
            "dpjax.posterior": "Posterior",
            "dpjax.posterior.prediction": "sample_prior_predictive",
            "dpjax.posterior.synthetic": "combine_synthetic",
            "dpjax.release": (
                "LocalRelease Microdata OwnRelease Release UnknownCount describe from_json joint "
                "mechanism_from_published releases"
            ),
            "dpjax.sampler_tests": "invariance_test sbc",
            "dpjax.smc": "sample_smc",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exact",
    "Gaussian",
    "Laplace",
    "LocalRelease",
    "Microdata",
    "Model",
    "RandomizedResponse",
    "Release",
    "UnknownCount",
    "counts",
    "coupling",
    "describe",
    "diagnostics",
    "exchangeable",
    "from_json",
    "from_numpyro",
    "gibbs",
    "importance_sample",
    "impute",
    "imwg",
    "joint",
    "load",
    "marginal_likelihood",
    "maximum_likelihood",
    "mechanisms",
    "mixture",
    "models",
    "pcn",
    "plot",
    "private",
    "releases",
    "sample",
    "sample_batch",
    "sample_clt",
    "sample_smc",
    "soma",
    "statistics",
    "until",
]


def __dir__() -> list[str]:
    """The names that users call most; others that can be imported from here are shown where they are defined."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]

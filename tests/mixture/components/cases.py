"""Components and the laws that their base measures give the parameters."""

import numpy as np
from scipy import special, stats

import dpjax
from dpjax import mixture

NOISE = 1.2

TRUNCATED = mixture.TruncatedNormalInverseGamma(0.5, 0.5, 2.0, 1.5).behind(dpjax.Gaussian(NOISE))
CUT = float(special.gammainc(2.0, 1.5 / NOISE**2))


class CutInverseGamma:
    """IG(2, 1.5) on [NOISE², ∞)."""

    @staticmethod
    def cdf(value: np.ndarray) -> np.ndarray:
        return 1 - special.gammainc(2.0, 1.5 / np.maximum(value, NOISE**2)) / CUT


COMPONENTS = {
    "gaussian": (
        mixture.NormalInverseGamma(0.5, 0.5, 3.0, 2.0),
        {"mean": stats.t(6.0, loc=0.5, scale=np.sqrt(2 / 3 / 0.5)), "variance": stats.invgamma(3.0, scale=2.0)},
    ),
    "truncated": (TRUNCATED, {"variance": CutInverseGamma}),
    "beta": (mixture.GammaShapes(2.0, 1.5), dict.fromkeys("ab", stats.gamma(2.0, scale=1 / 1.5))),
}

"""Kernels for the confidential records given the parameters and a release."""

from dpjax.imputation.imwg import imwg
from dpjax.imputation.pcn import pcn
from dpjax.imputation.soma import soma

__all__ = ["imwg", "pcn", "soma"]

"""Kernels for the confidential records given the parameters and a release."""

from dpjax.data_augmentation.records.imwg import imwg
from dpjax.data_augmentation.records.pcn import pcn
from dpjax.data_augmentation.records.soma import soma

__all__ = ["imwg", "pcn", "soma"]

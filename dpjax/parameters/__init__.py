"""Kernels for the parameters given the records, and the non-centred step that interweaving adds."""

from dpjax.parameters.centred import build_centred_step, slice_kernel
from dpjax.parameters.coordinates import Tuning, fit_tuning, initial_tuning
from dpjax.parameters.interweaving import build_interweaving_step

__all__ = ["Tuning", "build_centred_step", "build_interweaving_step", "fit_tuning", "initial_tuning", "slice_kernel"]

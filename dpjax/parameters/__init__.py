"""Kernels for the parameters given the records, and the non-centred step that interweaving adds."""

from dpjax.parameters.affine import build_affine_step, can_move_noise, should_move_noise
from dpjax.parameters.centred import build_centred_step
from dpjax.parameters.choice import choose_kernel
from dpjax.parameters.coordinates import Tuning, check_tuning, fit_to_prior, fit_tuning, initial_tuning
from dpjax.parameters.interweaving import build_interweaving_step
from dpjax.parameters.kernels import KernelBuilder, ParameterKernel, parameter_kernel
from dpjax.parameters.step_size import fit_step_size
from dpjax.parameters.summed import build_summed_step

__all__ = [
    "KernelBuilder",
    "ParameterKernel",
    "Tuning",
    "build_affine_step",
    "build_centred_step",
    "build_interweaving_step",
    "build_summed_step",
    "can_move_noise",
    "check_tuning",
    "choose_kernel",
    "fit_step_size",
    "fit_to_prior",
    "fit_tuning",
    "initial_tuning",
    "parameter_kernel",
    "should_move_noise",
]

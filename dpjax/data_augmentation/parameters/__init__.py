"""Kernels for the parameters given the records, and the non-centred step that interweaving adds."""

from dpjax.data_augmentation.parameters.affine import build_affine_step, can_move_noise, should_move_noise
from dpjax.data_augmentation.parameters.centred import (
    average_steps_under,
    build_centred_step,
    build_move_by,
    choose_kernel,
    fit_step_size,
)
from dpjax.data_augmentation.parameters.coordinates import (
    Tuning,
    check_tuning,
    fit_to_prior,
    fit_tuning,
    initial_tuning,
)
from dpjax.data_augmentation.parameters.interweaving import (
    build_enumerated_step,
    build_interweaving_step,
    build_standardised_step,
    build_summed_step,
)
from dpjax.data_augmentation.parameters.kernels import KernelBuilder, ParameterKernel, parameter_kernel
from dpjax.data_augmentation.parameters.unknown_number import build_number_step

__all__ = [
    "KernelBuilder",
    "ParameterKernel",
    "Tuning",
    "average_steps_under",
    "build_affine_step",
    "build_centred_step",
    "build_enumerated_step",
    "build_interweaving_step",
    "build_move_by",
    "build_number_step",
    "build_standardised_step",
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

"""Data augmentation: confidential records or counts are imputed given the parameters, and parameters given these."""

from dpjax.data_augmentation.counts import least_squares
from dpjax.data_augmentation.parameters import ParameterKernel, Tuning, initial_tuning, parameter_kernel
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.refresh import RefreshTuning
from dpjax.data_augmentation.sweep import GibbsInfo
from dpjax.models.simulation import GibbsState, Position

__all__ = [
    "GibbsInfo",
    "GibbsState",
    "ParameterKernel",
    "Position",
    "RefreshTuning",
    "SweepPlan",
    "Tuning",
    "initial_tuning",
    "least_squares",
    "parameter_kernel",
]

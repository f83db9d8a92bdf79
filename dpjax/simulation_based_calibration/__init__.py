"""Simulation-based calibration of the samplers."""

from dpjax.simulation_based_calibration.result import Calibration
from dpjax.simulation_based_calibration.run import calibrate

__all__ = ["Calibration", "calibrate"]

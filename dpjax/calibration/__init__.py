"""Simulation-based calibration of the samplers."""

from dpjax.calibration.result import Calibration
from dpjax.calibration.run import calibrate

__all__ = ["Calibration", "calibrate"]

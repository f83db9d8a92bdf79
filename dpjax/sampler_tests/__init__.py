"""Tests of samplers: simulation-based calibration, and the test that an exact kernel leaves draws in their law."""

from dpjax.sampler_tests.invariance_test import referee
from dpjax.sampler_tests.ranks import Calibration
from dpjax.sampler_tests.sbc import calibrate
from dpjax.sampler_tests.verdict import Verdict

__all__ = ["Calibration", "Verdict", "calibrate", "referee"]

"""Tests of samplers: simulation-based calibration and the invariance test."""

from dpjax.sampler_tests.invariance_test import invariance_test
from dpjax.sampler_tests.invariance_test_result import InvarianceTestResult
from dpjax.sampler_tests.sbc import sbc
from dpjax.sampler_tests.sbc_result import SBCResult

__all__ = ["InvarianceTestResult", "SBCResult", "invariance_test", "sbc"]

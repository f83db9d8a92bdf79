"""Tests of samplers: simulation-based calibration, and the test that an exact kernel leaves draws in their law."""

from dpjax.sampler_tests.invariance_test import invariance_test
from dpjax.sampler_tests.ranks import SBCResult
from dpjax.sampler_tests.sbc import sbc
from dpjax.sampler_tests.verdict import InvarianceTestResult

__all__ = ["InvarianceTestResult", "SBCResult", "invariance_test", "sbc"]

"""Benchmarks of speed and memory, run on request: ``python -m benchmarks --help``."""

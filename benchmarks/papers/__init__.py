"""Every figure and table of the papers, beside what a run here gave: ``python -m benchmarks papers``."""

"""Convergence diagnostics, Monte Carlo errors, streaming summaries, summary tables, and warnings."""

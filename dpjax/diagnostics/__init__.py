"""What draws are worth: convergence and accuracy, streaming summaries, the table of a summary, and warnings."""

"""General utilities: checks of input, pytrees, compilation, files, pickles, threads."""

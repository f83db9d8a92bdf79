"""The experiments of Xiong and Ju (2025), arXiv v2."""

"""Dirichlet-process mixtures behind a channel: the experiments of Beraha, Favaro and Rao (2025), and speed."""

"""All papers by the name of the folder of their experiments."""

from benchmarks.papers import damcmc, dphmc, mixture, soma

PAPERS = {"damcmc": damcmc.PAPER, "soma": soma.PAPER, "dphmc": dphmc.PAPER, "mixture": mixture.PAPER}

"""All papers by the name of the folder of their experiments."""

from benchmarks.papers.damcmc.paper import PAPER as DAMCMC
from benchmarks.papers.dphmc.paper import PAPER as DPHMC
from benchmarks.papers.mixture.paper import PAPER as MIXTURE
from benchmarks.papers.soma.paper import PAPER as SOMA

PAPERS = {"damcmc": DAMCMC, "soma": SOMA, "dphmc": DPHMC, "mixture": MIXTURE}

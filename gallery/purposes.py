"""Which notebook answers which question, in the order of the gallery."""

PURPOSES = {
    "You hold a table": ["first_posterior", "census_table"],
    "You hold sums, or the results of a regression": ["from_numpyro"],
    "You hold one value per person": ["local_privacy_densities"],
    "You hold the data": ["choosing_epsilon", "publishing_posterior_draws"],
    "You check, compare and report": ["every_picture", "has_my_chain_converged", "choosing_a_sampler"],
}

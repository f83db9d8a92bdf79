"""Which notebook answers which question, in the order of the gallery."""

PURPOSES = {
    "You hold a table": [
        "first_posterior",
        "census_table",
        "rounded_census_table",
        "page_views",
    ],
    "You hold one number for each area or week": ["suppressed_counties", "weekly_counts", "small_areas"],
    "You hold sums, a regression, or several releases": [
        "private_regression",
        "fitted_logistic_regression",
        "several_releases",
        "from_numpyro",
        "likelihood_inference",
    ],
    "You hold one row or value per person": ["local_privacy_densities", "survey_microdata"],
    "You hold the data": [
        "ways_of_publishing",
        "choosing_a_release",
        "choosing_epsilon",
        "power_of_a_study",
        "publishing_posterior_draws",
    ],
    "You check, compare and report": [
        "every_picture",
        "has_my_chain_converged",
        "choosing_a_sampler",
        "prior_sensitivity",
        "reporting",
    ],
}

SHOWN = (
    "first_posterior",
    "census_table",
    "suppressed_counties",
    "weekly_counts",
    "private_regression",
    "survey_microdata",
    "choosing_epsilon",
    "every_picture",
)
"""The notebooks with an executed copy in the repository: one at least for each kind of reader."""

"""Tests that `make test` runs though they are heavy, by what they prove."""

import json
from pathlib import Path

JOINT_DISTRIBUTIONS = (
    "data_augmentation/counts/test_perfect_start.py::test_the_joint_law_is_invariant[swaps]",
    "coupling/test_gibbs.py::test_both_chains_keep_their_law[imwg random]",
    "exchangeable/test_samplers.py::test_the_target_is_invariant[imwg random, general]",
    "exchangeable/test_samplers.py::test_the_target_is_invariant[soma]",
    "coupling/test_random_walk.py::test_each_chain_keeps_its_distribution_and_chains_meet_while_records_differ",
    "mixture/components/test_components.py::test_an_update_keeps_the_base_measure[truncated]",
    "mixture/test_perfect_start.py::test_the_joint_law_is_invariant[exact]",
    "data_augmentation/parameters/test_kernels.py::test_the_joint_law_is_invariant[mala]",
    "private/kernels/test_invariance.py::test_the_posterior_is_invariant_at_three_levels_of_noise[hmc]",
    "private/kernels/test_invariance.py::test_the_posterior_is_invariant_at_three_levels_of_noise[walk]",
    "private/sums/test_poisson.py::test_each_record_takes_part_independently",
    "data_augmentation/parameters/test_unknown_number.py::test_the_joint_law_is_invariant[interweaved]",
    "data_augmentation/records/test_births.py::test_the_joint_law_is_invariant",
    "data_augmentation/records/test_pcn.py::test_the_joint_law_is_invariant_under_the_key_checker[blocks]",
    "data_augmentation/records/test_perfect_start.py::test_local_updates_leave_the_joint_law_invariant[exact, finite]",
    "data_augmentation/records/test_perfect_start.py::test_local_updates_leave_the_joint_law_invariant[metropolis]",
    "data_augmentation/records/test_perfect_start.py::test_the_joint_law_is_invariant[a BlackJAX kernel]",
    "data_augmentation/records/test_perfect_start.py::test_the_joint_law_is_invariant[imwg, interweaved]",
    "data_augmentation/records/test_perfect_start.py::test_the_joint_law_is_invariant[soma windows]",
    "data_augmentation/records/test_perfect_start.py::test_the_joint_law_is_invariant[table]",
    "data_augmentation/test_refresh.py::test_sweeps_and_refreshes_leave_the_joint_law_invariant",
    "data_augmentation/summed_out/test_perfect_start.py::test_chains_that_start_in_the_posterior_stay_in_it",
)
"""One for each family of kernels, under the key reuse checker where it is marked so."""

PLANTED_FAULTS = (
    "private/kernels/test_invariance.py::test_without_the_penalty_it_is_not[walk]",
    "data_augmentation/records/test_perfect_start.py::test_a_channel_read_the_wrong_way_is_rejected",
    "data_augmentation/records/test_perfect_start.py::test_accepting_every_proposal_is_rejected",
    "data_augmentation/summed_out/test_perfect_start.py::test_chains_of_planted_faults_do_not[without_offset]",
)
"""What the joint-distribution tests reject."""

POSTERIORS = (
    "coupling/test_unbiased.py::test_estimates_from_one_draw_are_unbiased",
    "likelihood/test_estimates.py::test_the_prior_does_not_enter",
    "likelihood/test_imputed.py::test_the_move_keeps_the_noise_as_it_is",
    "test_importance.py::test_agrees_with_the_exact_posterior",
    "mcmc/test_sample.py::test_draws_agree_with_the_exact_posterior",
    "private/kernels/test_hmc.py::test_the_limit_without_noise_is_blackjax[dense]",
    "private/kernels/test_hmc.py::test_the_limit_without_noise_is_blackjax[scalar]",
    "private/kernels/test_hmc.py::test_the_noise_released_is_the_noise_stated",
    "smc/test_sample.py::test_normal_mean_in_closed_form",
)
"""Exact posteriors, estimates and limits of each method."""

PROOFS = frozenset(f"tests/{name}" for name in JOINT_DISTRIBUTIONS + PLANTED_FAULTS + POSTERIORS)

KILLED: dict[str, str] = json.loads((Path(__file__).parents[1] / "mutants" / "killed.json").read_text())
"""By mutant, a test that notices it."""

KILLERS = frozenset(KILLED.values())
"""They are heavy from more J on than others."""

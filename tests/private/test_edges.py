"""Where privacy was lost at the edges: integers that overflow, keys used twice, chances rounded up, files that tell."""

import multiprocessing
import os
import re
import stat
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import private
from dpjax._util.files import write_whole
from dpjax.private import noise
from dpjax.private.fixed_point import LARGEST_BLOCK, FixedPoint, steps_of
from dpjax.private.noise.base import at_least
from dpjax.private.noise.secure import Secure
from dpjax.private.sums.poisson import gap_thresholds, gaps, successes
from tests.private.cases import TARGET, WALK, normal_mean
from tests.private.runs.paid_runs import KEY, go, ledger
from tests.tools.perfect_start import REJECT

SETTINGS = {"step_size": 0.01, "sampling_rate": 0.5, "gradient_bound": 1.0}


@pytest.mark.parametrize("dtype", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.x64)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_block_at_the_bound_is_added_up_exactly(dtype: Any, sign: int) -> None:
    """Of 2^20 contributions the halves of an int32 overflowed, and one record moved the sum by two million bounds."""
    adder, steps = FixedPoint(1.0, dtype), jnp.full((1, LARGEST_BLOCK), sign * steps_of(dtype), dtype)
    total = adder.floats(jax.jit(adder.sum)(steps))
    assert int(total.high[0]) + int(total.low[0]) == sign * LARGEST_BLOCK * int(steps_of(dtype))
    # With one record less whose steps fill the lower half.
    other = adder.floats(jax.jit(adder.sum)(steps.at[0, 0].set(sign * 2047)))
    moved = int(total.high[0]) + int(total.low[0]) - int(other.high[0]) - int(other.low[0])
    assert moved == sign * (int(steps_of(dtype)) - 2047)


def hazard(gap: int, thresholds: list[int]) -> Fraction:
    """The chance that a gap ends here, given that it has not before, by the bits of all words; exact."""
    *bits, ends = (Fraction(threshold, 2**64) for threshold in thresholds)
    here = at_least = Fraction(1)
    for place, bit in enumerate(bits):
        one = (gap - 1) >> place & 1
        here *= bit if one else 1 - bit
        at_least = bit * at_least if one else (1 - bit) * at_least + bit
    return here * ends / (at_least * ends + 1 - ends)


@pytest.mark.parametrize("num_records", [10, 10**7, 2**31 - 2])
@pytest.mark.parametrize("rate", [1e-8, 1e-7, 1e-5, 1e-3, 0.3, 0.99, 1 - 1e-9])
def test_no_record_takes_part_more_often_than_its_rate(rate: float, num_records: int) -> None:
    """By any words, after any gap: in float32 long gaps were rounded, and 1e-7 was up to 1.46e-7."""
    thresholds = gap_thresholds(rate, num_records)
    longest = min(2 ** (len(thresholds) - 1), num_records)
    near = [place * 2**bit + step for bit in range(31) for place in (1, 3) for step in (-1, 0, 1)]
    found = {gap: hazard(gap, thresholds) / Fraction(rate) for gap in [*near, longest] if 0 < gap <= longest}
    assert max(found.values()) <= 1
    often = [chance for gap, chance in found.items() if -np.log1p(-rate) * gap < 22]
    assert min(often) > 1 - Fraction(1, 10**6)


def test_long_gaps_are_odd_and_even() -> None:
    """In float32 all beyond 2^24 were odd, so that every second record was sampled twice as often."""
    keys, last = jax.random.split(jax.random.key(2), 4_000), jnp.asarray(-1, jnp.int32)
    places = np.asarray(jax.jit(jax.vmap(lambda key: successes(key, last, 1e-7, 1, 2**30)))(keys))
    long = places[(places > 2**24) & (places < 2**28)]
    assert abs(np.mean(long % 2) - 0.5) < 4 * 0.5 / np.sqrt(long.size)


def test_gaps_are_geometric() -> None:
    rate, most, thresholds = 0.2, 30, gap_thresholds(0.2, 1_000)
    words = jax.random.bits(jax.random.key(1), (len(thresholds) + 1, 20_000), jnp.uint32)
    found = np.asarray(gaps(words, thresholds, 1_000))
    observed = np.bincount(np.minimum(found, most), minlength=most + 1)[1:]
    law = stats.geom(rate)
    expected = np.append(law.pmf(np.arange(1, most)), law.sf(most - 1)) * found.size
    assert stats.chisquare(observed, expected).pvalue > REJECT


def test_the_last_word_decides_ties() -> None:
    """Words equal to the first half of their threshold are below it where the last word is below its second half."""
    thresholds = [2**32 * 5 + 7, 2**32 * 9, 2**63]
    words = jnp.asarray([[5, 5, 4, 6], [8, 9, 9, 8], [0, 0, 0, 2**32 - 1], [6, 7, 2**32 - 1, 0]], jnp.uint32)
    assert gaps(words, thresholds, 100).tolist() == [4, 1, 2, 101]


@pytest.mark.x64
def test_secure_runs_by_one_key_have_samples_of_their_own() -> None:
    """The ledger composes samples as independent: fifty runs by one key had the same ones."""
    pytest.importorskip("cryptography")
    key = jax.random.key(1)
    found = {tuple(np.asarray(jax.random.key_data(noise.secure.sampling_key(key))).tolist()) for _ in range(20)}
    assert len(found) == 20
    lanes = jax.jit(jax.vmap(noise.secure.sampling_key))(jax.random.split(key, 5))
    assert len(np.unique(np.asarray(jax.random.key_data(lanes)), axis=0)) == 5
    assert noise.jax.sampling_key(key) is key
    kernel = private.dp_sgld(TARGET, noise.secure, noise_multiplier=1.0, **SETTINGS)
    states = [jax.jit(kernel.step)(key, kernel.init(jnp.zeros(2)))[0].position.tolist() for _ in range(2)]
    assert states[0] != states[1]


def test_a_ledger_refuses_the_key_of_an_earlier_run() -> None:
    spent = ledger()
    go(spent=spent)
    with pytest.raises(ValueError, match=r"^key: given the key of an earlier run .*fold_in"):
        go(spent=spent)
    go(spent=spent, key=jax.random.fold_in(KEY, 1))


def test_the_file_of_a_ledger_remembers_keys(tmp_path: Path) -> None:
    """Opened again, as by the script run twice, it refuses the key; nothing of keys is in what is published."""
    budget = ledger().budget
    go(spent=private.Ledger(budget, tmp_path / "ledger.json"))
    again = private.Ledger(budget, tmp_path / "ledger.json")
    charged = again.queries
    with pytest.raises(ValueError, match=r"^key: given the key of an earlier run"):
        go(spent=again)
    assert again.queries == charged
    assert '"keys": {}' in again.to_json()
    go(spent=again, key=jax.random.fold_in(KEY, 1))


def test_a_continuation_draws_no_noise_a_second_time() -> None:
    """With the key of another run, or twice from one result, its iterations had noise that had been used."""
    spent, other = ledger(), jax.random.key(2)
    go(spent=spent, num_iterations=4)
    second = go(spent=spent, key=other, num_iterations=2)
    with pytest.raises(ValueError, match=r"^key: given the key of an earlier run .*fold_in"):
        go(second, spent=spent, num_iterations=2)
    third = go(second, spent=spent, key=other, num_iterations=2)
    with pytest.raises(ValueError, match=r"^key: given the key of an earlier run"):
        go(second, spent=spent, key=other, num_iterations=1)
    assert go(third, spent=spent, num_iterations=1).num_iterations == 5  # KEY drew four


@pytest.mark.skipif(os.name != "posix", reason="files have modes on POSIX systems")
def test_the_file_of_a_ledger_confirms_no_guess_of_a_key(tmp_path: Path) -> None:
    """It held a hash of the key, the same in every file."""
    paths = [tmp_path / name for name in ("one.json", "other.json")]
    for path in paths:
        go(spent=private.Ledger(ledger().budget, path), num_iterations=4)
    one, other = (set(re.findall("[0-9a-f]{12,}", path.read_text())) for path in paths)
    assert one
    assert not one & other
    secret = paths[0].with_name("one.json.secret")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    secret.unlink()
    spent = private.Ledger(ledger().budget, paths[0])
    with pytest.raises(RuntimeError, match=r"'one.json.secret' cannot be used, by which keys are marked"):
        go(spent=spent, num_iterations=4)
    assert spent.queries[0].count == 4 * 3


def test_draws_go_on_with_their_own_ledger_alone() -> None:
    """Any ledger with as many equal queries would do, though nobody had charged it for these draws."""
    drawn, other = go(num_iterations=4), ledger()
    go(spent=other, key=jax.random.key(2), num_iterations=8)
    with pytest.raises(ValueError, match="ledger: given one that was not charged for the draws that go on"):
        go(drawn, spent=other, num_iterations=2)
    again = private.Ledger.from_json(drawn.ledger.to_json(), chargeable=True)
    assert go(drawn, spent=again, num_iterations=2).num_iterations == 6


@pytest.mark.x64
def test_a_scalar_is_released_securely() -> None:
    pytest.importorskip("cryptography")
    draws = np.array([noise.secure.release(jax.random.key(1), jnp.asarray(2.0), 3.0) for _ in range(200)])
    assert draws.shape == (200,)
    assert stats.kstest((draws - 2) / 3, "norm").pvalue > REJECT
    kernel = private.dp_penalty(TARGET, noise.secure, proposal_scale=1.0, ratio_bound=1.0, tau=1.0)
    state, _ = kernel.step(jax.random.key(2), kernel.init(jnp.zeros(2)))
    assert np.all(np.isfinite(state.position))


def test_a_refused_checkpoint_tells_nothing_of_the_records(tmp_path) -> None:
    path = tmp_path / "run.npz"
    go(spent=ledger(), checkpoint=path)
    for change in (TARGET.records + 1, TARGET.records * 1.5):
        with pytest.raises(ValueError, match="in records; target; expected") as told:
            go(spent=ledger(), checkpoint=path, kernel=WALK._replace(target=replace(TARGET, records=change)))
        assert "saved" not in str(told.value)


@pytest.mark.skipif(os.name != "posix", reason="files have modes on POSIX systems")
def test_a_checkpoint_is_its_owner_s_alone(tmp_path, monkeypatch) -> None:
    from dpjax._util import files

    seen: list[int] = []
    monkeypatch.setattr(files.os, "fsync", lambda number: seen.append(stat.S_IMODE(os.fstat(number).st_mode)))
    go(spent=ledger(), checkpoint=tmp_path / "run.npz")
    assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == 0o600
    assert seen[0] == 0o600  # before it had its name


@pytest.mark.parametrize("records", [[], [0.4]])
def test_no_records_and_one_are_told_apart_by_noise_alone(records) -> None:
    """An error told for nothing that there were none."""
    spent = private.Ledger(private.Budget(1e4, 1e-6, "add-or-remove"))
    number = dpjax.UnknownCount(dpjax.models.UniformCount(1, 9))
    released = private.release(
        spent, dpjax.statistics.total("y", 0.0, 1.0), {"y": np.array(records)}, n=number, budget=spent.budget
    )
    assert released.n == number
    assert abs(float(released.value[0]) - sum(records)) < 0.2
    assert len(spent.queries) == 1


def test_a_run_without_records_has_draws_of_the_prior() -> None:
    """Its target was refused, before anything was charged."""
    nobody, someone = normal_mean(np.zeros(0), 1.0), normal_mean(np.zeros(1), 1.0, chunk_size=16)
    assert jax.tree.map(jnp.shape, nobody.records) == jax.tree.map(jnp.shape, someone.records)
    assert (int(nobody.count), int(someone.count)) == (0, 1)
    kernel = private.dp_penalty(nobody, noise.jax, proposal_scale=1.0, ratio_bound=1.0, tau=1.0)
    drawn = private.sample(jax.random.key(1), kernel, jnp.zeros((2, 1)), ledger(1e3), num_iterations=8)
    assert np.all(np.isfinite(drawn.draws))


@pytest.mark.skipif(os.name != "posix", reason="files have modes on POSIX systems")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_that_is_written_again_keeps_its_mode(tmp_path, mode) -> None:
    """A pickle of mode 0600 became readable to all; a ledger that is shared stays so."""
    path = tmp_path / "ledger.json"
    spent = private.Ledger(ledger().budget, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(mode)
    spent.charge(WALK.queries)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    write_whole(path, lambda file: None)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
    return -0.5 * (record.astype(float) - theta[0]) ** 2


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (np.ma.masked_array([1.0, 2.0], [False, True]), "a masked array"),
        (jax.random.split(jax.random.key(1), 3), "an array of keys"),
    ],
    ids=["masked", "keys"],
)
def test_records_that_are_no_numbers_are_refused(records: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"^records: given {message}"):
        private.target(likelihood, lambda theta: -jnp.sum(theta**2), records, jnp.zeros(1))


@pytest.mark.parametrize(
    "entry", [np.nan, -np.inf, np.float64(1e300), np.int64(2**40), np.int64(-(2**31) - 1), np.uint64(2**63)]
)
def test_an_entry_that_is_no_number_of_jax_counts_as_0(entry: Any) -> None:
    """Its target was refused before any charge: an error told for nothing that it was there."""
    given = np.array([entry, 3], np.asarray(entry).dtype)
    built = private.target(likelihood, lambda theta: -jnp.sum(theta**2), given, jnp.zeros(1))
    held = np.asarray(built.records).ravel()
    assert held.tolist() == [entry if np.isfinite(entry) and jax.config.jax_enable_x64 else 0, 3]
    gradients = private.clipped_gradients(built, jnp.zeros(1), bound=5.0)
    np.testing.assert_allclose(gradients.value, [np.clip(held[0], -5.0, 5.0) + 3.0], rtol=1e-5)


def test_the_text_of_a_kernel_does_not_go_by_the_number_of_records() -> None:
    texts = {
        repr(private.dp_sgld(normal_mean(np.zeros(n)), noise.jax, noise_multiplier=0.5, **SETTINGS)) for n in (10, 40)
    }
    assert len(texts) == 1
    assert "block" not in texts.pop()
    assert "queries" in repr(WALK)


def charge_in_a_fork(spent: private.Ledger, told: Any) -> None:
    try:
        spent.charge([private.Query("sum", 50.0, "secure")])
    except RuntimeError as error:
        told.put(str(error))
    else:
        told.put("charged")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")
def test_a_ledger_in_memory_is_not_charged_in_a_fork() -> None:
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    process = context.Process(target=charge_in_a_fork, args=(ledger(), told))
    process.start()
    assert "ledger: given one in the memory of another process" in told.get(timeout=60)
    process.join()


def test_scales_of_jax_are_rounded_up() -> None:
    for scale in (0.1, 1 / 3, 1e-3):
        rounded = at_least(jnp.asarray(scale), jnp.float32)
        assert float(rounded) >= float(jnp.asarray(scale))
        assert float(rounded) < scale * (1 + 3e-7)


def test_scripted_bytes_give_the_same_sampling_keys() -> None:
    """The words come from the stream: no other source of randomness is used."""
    streams = [Secure(partial(np.random.default_rng(3).bytes)) for _ in range(2)]
    keys = [
        np.asarray(jax.random.key_data(source.sampling_key(jax.random.key(number))))
        for number, source in enumerate(streams)
    ]
    np.testing.assert_array_equal(*keys)


def budget(epsilon: Any = 1.0) -> private.Budget:
    return private.Budget(epsilon, 1e-6, neighbours="replace-one")


def walk(**changes: Any) -> private.PrivateKernel:
    settings: dict[str, Any] = {"proposal_scale": 1.0, "ratio_bound": 1.0, "tau": 10.0}
    return private.dp_penalty(TARGET, noise.jax, **settings | changes)


QUERY = private.Query("sum", 50.0, "secure")

BAD_INPUT = {
    "a whole number beyond floats": (
        lambda: private.Query("sum", 10**400, "secure"),
        "noise_multiplier: given a number",
    ),
    "hardly any noise": (lambda: private.Query("sum", 1e-200, "secure"), "noise_multiplier: given 1e-200"),
    "a budget without end": (lambda: budget(1e308), r"epsilon: given 1e\+308"),
    "a budget beyond floats": (lambda: budget(10**400), "epsilon: given a number"),
    "a loss without end": (lambda: private.accounting.epsilon(1e-6, 1e300), r"mu: given 1e\+300"),
    "a noise level that is true": (lambda: walk(tau=True), "tau: given True"),
    "a bound that is true": (lambda: walk(ratio_bound=True), "ratio_bound: given True"),
    "a word for a flag": (lambda: walk(guided="yes"), "guided: given 'yes'"),
    "ragged scales": (lambda: walk(proposal_scale=[[1.0], [1.0, 2.0]]), "proposal_scale: given rows"),
    "more iterations than there are": (
        lambda: go(spent=private.Ledger(budget()), num_iterations=10**18),
        "num_iterations",
    ),
    "a compiled run": (
        lambda: jax.jit(lambda key: go(key=key).draws)(KEY),
        "key: given a value of a traced program",
    ),
    "a compiled charge": (
        lambda: jax.jit(lambda x: (private.Ledger(budget()).charge([QUERY]), x)[1])(1.0),
        "ledger: given a charge within a traced program",
    ),
    "more queries than can be made": (lambda: private.Ledger(budget()).charge([QUERY], times=10**30), "budget: given"),
    "a file where none can be": (
        lambda: private.Ledger(budget(), "/proc/self/ledger.json"),
        "in a folder where no lock can be had",
    ),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_named_at_once(name: str) -> None:
    if "file" in name and not os.path.isdir("/proc/self"):
        pytest.skip("there is no such folder")
    make, message = BAD_INPUT[name]
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        make()


def test_what_a_killed_process_left_is_cleared_away(tmp_path) -> None:
    left = tmp_path / "ledger.json.7-8.unfinished"
    left.write_text("half")
    private.Ledger(budget(), tmp_path / "ledger.json").charge([QUERY])
    assert not left.exists()


@pytest.mark.parametrize("shape", [lambda x: x.T, lambda x: x.ravel(), lambda x: x[1:], lambda x: x])
def test_records_that_a_function_holds_are_refused_in_other_shapes(shape: Any) -> None:
    held = shape(jnp.arange(120.0).reshape(40, 3))

    def likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -0.5 * (record - theta[0]) ** 2 + 0 * jnp.sum(held)

    def build(**arguments: Any) -> private.Target:
        return private.target(likelihood, lambda theta: -jnp.sum(theta**2), jnp.zeros(40), jnp.zeros(1), **arguments)

    with pytest.raises(ValueError, match=r"^log_likelihood: given a function that holds an array of shape"):
        build()
    assert build(public_arrays={"prices": held}).num_records == 40


@pytest.mark.parametrize("size", [64, 100])
def test_what_a_function_holds_tells_no_number_of_records(size: int) -> None:
    """An array of 100 rows failed for 99, 100 and 101 records: a free query of their number."""

    def likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -0.5 * (record - theta[0]) ** 2 + 0 * jnp.sum(jnp.asarray(np.ones(size)))

    refused = []
    for number in (1, 50, 98, 99, 100, 101, 200):
        try:
            private.target(likelihood, lambda theta: -jnp.sum(theta**2), jnp.zeros(number), jnp.zeros(1))
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) == (7 if size > 64 else 0)
    assert len(set(refused)) <= 1


def test_queries_without_number_are_charged_by_what_is_left() -> None:
    """Of so many, or of so little noise, no distribution is composed."""
    many = private.Query("sum", 1e4, "secure", 10**9, 0.1)
    quiet = private.Query("sum", 0.001, "secure", 1, 0.1)
    for query in (many, quiet):
        assert private.events.subsampled_log_delta([query], 1.0, "replace-one") <= 0
        assert private.events.subsampled_epsilon([query], 1e-6, "add-or-remove") > 0

"""What dpjax takes out of NumPyro programs, against NumPyro's own densities at NumPyro's own draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln
from numpyro import handlers
from numpyro.distributions import conjugate
from numpyro.infer.util import log_density, potential_energy

import dpjax
from dpjax._util.validation import is_refusal
from tests.adapters.numpyro.fidelity_programs import EQUAL, Program, programs
from tests.tools.validation import record

PROGRAMS = {program.name: program for program in programs()}
POINTS = 3
QUICK = (
    "sample_shape",
    "sample_shape of an event",
    "probability of Beta",
    "decreasing scale",
    "LocScaleReparam",
    "records: mixture of Normals",
    "refused: substitute",
    "refused: a subsampled plate without sites",
    "refused: scan",
    "refused: Delta prior",
    "refused: unnormalised probabilities",
    "refused: Normal probability",
    "refused: almost positive scale",
    "refused: block without a key",
    "refused: random key",
)


def values_of(program: Program, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and records of one of NumPyro's own draws."""
    trace = handlers.trace(handlers.seed(program.function, seed)).get_trace()
    drawn = {
        name: jnp.asarray(site["value"])
        for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }
    return (
        {name: value for name, value in drawn.items() if name not in program.records},
        {name: drawn[name] for name in program.records},
    )


def distance(ours: Any, theirs: Any) -> float:
    """The distance of two numbers or arrays, in units of what rounding may do."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    scale = 1e4 * np.finfo(jnp.zeros((), float).dtype).eps * (1 + np.abs(theirs))
    with np.errstate(invalid="ignore"):
        off = np.where(ours == theirs, 0.0, np.abs(ours - theirs) / scale)
    return float(np.max(np.where(np.isnan(off), np.inf, off), initial=0.0))


def compare(program: Program) -> float:
    """The largest distance between dpjax and NumPyro over points drawn by NumPyro."""
    model = dpjax.from_numpyro(program.function, records=program.records)
    worst = 0.0
    for seed in range(POINTS):
        parameters, records = values_of(program, seed)
        drawn = model.sample_prior(jax.random.key(seed))
        assert jax.tree.map(jnp.shape, drawn) == jax.tree.map(jnp.shape, parameters)
        total = model.log_prior(parameters) + jnp.sum(model.log_density(parameters, records))
        worst = max(worst, distance(total, log_density(program.function, (), {}, parameters | records)[0]))
        ours = model.sample_records(jax.random.key(seed), drawn, 4)
        total = model.log_prior(drawn) + jnp.sum(model.log_density(drawn, ours))
        worst = max(worst, distance(total, log_density(program.function, (), {}, drawn | ours)[0]))
        worst = max(worst, of_coordinates(program, model, parameters, records))
        if model.has("noncentred"):
            noise = model.noncentred.noise(jax.random.key(seed), parameters, records)
            again = model.noncentred.records(parameters, noise)
            worst = max(worst, *(distance(again[name], records[name]) for name in records))
    return max(worst, of_support(model, parameters))


def of_coordinates(program: Program, model: Any, parameters: Any, records: Any) -> float:
    """The distance on the unconstrained scale."""
    free = model.unconstrain(parameters)
    ours = model.log_prior(model.constrain(free)) + model.log_jacobian(free)
    ours = ours + jnp.sum(model.log_density(parameters, records))
    conditioned = handlers.condition(program.function, data=records)
    return distance(ours, -potential_energy(conditioned, (), {}, free))


def of_support(model: Any, parameters: Any) -> float:
    """How far the probabilities of all possible records are from a sum of 1."""
    if model.support is None or model.num_records is not None:
        return 0.0
    total = jnp.sum(jnp.exp(model.log_density(parameters, model.support())))
    return float(jnp.abs(total - 1)) / 1e-5  # NumPyro's log Beta function is good to seven digits


def judge(program: Program) -> str:
    """What is amiss; empty where the program is equal, or refused in its words."""
    try:
        worst = compare(program)
    except Exception as error:  # whatever is raised is judged
        if program.expected == EQUAL:
            return f"{type(error).__name__}: {error}"
        return "" if is_refusal(error) and program.expected in str(error) else f"raw or other words: {error!r}"
    if program.expected != EQUAL:
        return "taken, and should be refused"
    return "" if worst < 1 else f"off by {worst:.3g} roundings"


@pytest.mark.x64
@pytest.mark.parametrize("name", QUICK)
def test_a_program_is_equal_or_refused_by_name(name: str) -> None:
    assert judge(PROGRAMS[name]) == ""


@pytest.mark.slow
def test_every_program_is_equal_or_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(PROGRAMS) >= 120
    # JAX's own is good to six digits from arguments of ten on, and dpjax computes counts without it.
    monkeypatch.setattr(conjugate, "betaln", lambda a, b: gammaln(a) + gammaln(b) - gammaln(a + b))
    found = {name: judge(program) for name, program in PROGRAMS.items()}
    amiss = {name: what for name, what in found.items() if what}
    refused = sum(program.expected != EQUAL for program in PROGRAMS.values())
    precision = str(jnp.zeros((), float).dtype)
    record(
        f"numpyro_fidelity_{precision}",
        title=f"Models of NumPyro, {precision}",
        what="log densities of records and prior, shapes, unconstrained scale, non-centred form and support",
        against="NumPyro's log_density and potential_energy at its own draws and dpjax's",
        cases=len(PROGRAMS),
        refused=refused,
        precisions=[precision],
        result=f"{len(PROGRAMS) - refused} programs to be equal, {refused} to raise errors; {len(amiss)} amiss",
        command="pytest -m slow tests/adapters/numpyro/test_fidelity.py",
    )
    assert amiss == {}

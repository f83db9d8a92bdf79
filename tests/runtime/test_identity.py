"""What a function is and does is told apart from any other, alike in every process."""

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import dpjax
from dpjax.runtime.identity import identify


def of(value):
    return identify("model.update", value).split()[-1]


def scaled_by(factor):
    return lambda x: factor * x


def written_to_scale_by(factor):
    return lambda x: factor * x


def shifted_by(shift, *, twice=False):
    return lambda x: x + shift * (1 + twice)


def with_default(default):
    def function(x, scale=default):
        return x * scale

    return function


def with_keyword(default):
    def function(x, *, scale=default):
        return x * scale

    return function


def documented(x):
    """One text."""
    return x + 1


def documented_otherwise(x):
    """Another text."""
    return x + 1


def with_nested(step):
    def outer(x):
        def inner(y):
            return jnp.sin(y) * step

        return inner(x)

    return outer


def helper(x):
    return x + 1


def calls_itself(x):
    return x if x < 1 else calls_itself(x - 1)


def counting_down(stop):
    def again(x):
        return x if x < stop else again(x - 1)

    return again


@dataclass(frozen=True)
class Plus:
    shift: float

    def __call__(self, x):
        return x + self.shift


@dataclass(frozen=True)
class Minus:
    shift: float

    def __call__(self, x):
        return x - self.shift


class Attributes:
    def __init__(self, shift):
        self.shift = shift

    def method(self, x):
        return x + self.doubled

    @cached_property
    def doubled(self):
        return 2 * self.shift


def class_with(body):
    class Kernel:
        def __call__(self, x):
            return body(x)

    return Kernel()


DIFFERENT = {
    "captured numbers": (scaled_by(2.0), scaled_by(3.0)),
    "captured types of number": (scaled_by(2), scaled_by(2.0)),
    "captured arrays": (scaled_by(np.arange(3.0)), scaled_by(np.arange(3.0) + 1e-12)),
    "captured shapes": (scaled_by(np.zeros(3)), scaled_by(np.zeros((3, 1)))),
    "captured keys": (scaled_by(jax.random.key(0)), scaled_by(jax.random.key(1))),
    "captured functions": (scaled_by(jnp.sin), scaled_by(jnp.cos)),
    "captured laws": (scaled_by(dist.Normal(0.0, 1.0)), scaled_by(dist.Normal(0.0, 2.0))),
    "captured kinds of law": (scaled_by(dist.Normal(0.0, 1.0)), scaled_by(dist.Laplace(0.0, 1.0))),
    "captured sets": (scaled_by({"a", "b"}), scaled_by({"a", "c"})),
    "captured dicts": (scaled_by({"a": 1}), scaled_by({"a": 2})),
    "instructions": (lambda x: x + 1, lambda x: x - 1),
    "constants": (lambda x: x + 1, lambda x: x + 2),
    "attributes": (lambda x: x.real, lambda x: x.imag),
    "defaults": (with_default(1.0), with_default(2.0)),
    "keyword defaults": (with_keyword(1.0), with_keyword(2.0)),
    "a keyword of the maker": (shifted_by(1.0), shifted_by(1.0, twice=True)),
    "partials": (partial(jnp.add, 1.0), partial(jnp.add, 2.0)),
    "partials of other functions": (partial(jnp.add, 1.0), partial(jnp.multiply, 1.0)),
    "partials by keyword": (partial(helper, x=1.0), partial(helper, x=2.0)),
    "methods": (Attributes(1.0).method, Attributes(2.0).method),
    "objects": (Plus(1.0), Plus(2.0)),
    "types of object": (Plus(1.0), Minus(1.0)),
    "classes of one name": (class_with(jnp.sin), class_with(jnp.cos)),
    "compiled functions": (jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 2)),
    "mapped functions": (jax.vmap(lambda x: x + 1), jax.vmap(lambda x: x + 2)),
    "nested functions": (with_nested(1.0), with_nested(2.0)),
    "recursive functions": (counting_down(1), counting_down(2)),
    "mechanisms": (dpjax.Laplace(1.0), dpjax.Gaussian(1.0)),
    "library functions": (jax.scipy.stats.norm.logpdf, jax.scipy.stats.norm.logcdf),
}
EQUAL = {
    "made anew": lambda: scaled_by(2.0),
    "made by a twin": lambda: (scaled_by, written_to_scale_by)[next(TWINS)](2.0),
    "with arrays": lambda: scaled_by(jnp.arange(3.0)),
    "with sets": lambda: scaled_by(set(np.random.default_rng(next(TWINS)).permutation(list("abcdefgh")).tolist())),
    "documentation": lambda: (documented, documented_otherwise)[next(TWINS)],
    "recursion": lambda: counting_down(3),
    "self-calling": lambda: calls_itself,
    "objects": lambda: Plus(1.0),
    "laws": lambda: scaled_by(dist.Normal(0.0, 1.0)),
    "compiled": lambda: jax.jit(scaled_by(2.0)),
}
TWINS = iter([])


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_told_apart(name):
    one, other = DIFFERENT[name]
    assert of(one) != of(other)
    assert of(one) == of(one)


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_the_same_is_not(name):
    global TWINS
    TWINS = iter([0, 1])
    assert of(EQUAL[name]()) == of(EQUAL[name]())


def test_what_is_computed_once_and_kept_does_not_count():
    kept = Attributes(1.0)
    before = of(kept.method)
    assert kept.method(1.0) == 3.0
    assert "doubled" in vars(kept)
    assert of(kept.method) == before


@pytest.mark.parametrize("held", [Lock(), (entry for entry in "ab")], ids=["a lock", "a generator"])
def test_what_cannot_be_told_is_refused(held):
    with pytest.raises(
        TypeError, match=r"checkpoint: given a run whose model.update holds a .* cannot be hashed; expected"
    ):
        of(scaled_by(held))


def test_a_traced_array_is_refused():
    with pytest.raises(TypeError, match=r"checkpoint: given a run whose model.update holds a traced array"):
        jax.jit(lambda x: len(of(scaled_by(x))))(1.0)


HELPERS = """width = 2.0

def moved(mean):
    return mean + 1
"""

SCRIPT = """
    import jax, numpy as np, numpyro, numpyro.distributions as dist
    import dpjax, helpers
    from dpjax.runtime.identity import identify

    def program(n):
        mean = numpyro.sample("mean", dist.Normal(0, helpers.width))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(helpers.moved(mean), 1.0))

    model = dpjax.from_numpyro(program, records=("y",))
    shipped = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 1.0), variance=1.0)
    names = {"a", "b", "c", "d", "e"}
    members = [getattr(model, name) for name in dpjax.base.MEMBERS if model.has(name)]
    nouns = [*members, shipped, lambda record: record["y"][None] * (len(names) in {1, 2, 5}), dpjax.soma(3)]
    print(*[identify("noun", noun) for noun in nouns])
"""


@pytest.mark.x64
def test_another_process_finds_the_same(tmp_path):
    """With other addresses and another order of sets."""
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    (tmp_path / "helpers.py").write_text(HELPERS)
    command = [sys.executable, str(tmp_path / "script.py")]
    paths = {"PYTHONPATH": f"{dpjax.__path__[0]}/..", "PYTHONDONTWRITEBYTECODE": "1"}
    runs = [
        subprocess.Popen(command, env={**paths, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, text=True)
        for seed in ("1", "2")
    ]
    one, other = (run.communicate()[0] for run in runs)
    assert one.count(" ") > 40
    assert one == other

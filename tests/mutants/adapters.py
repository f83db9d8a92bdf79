"""Faults of readers of other tools, of models read from NumPyro, and of what everything stands on."""

from tests.mutants.base import Mutant

TOOLS = ("adapters/test_opendp.py", "adapters/test_tumult.py")
DIFFPRIVLIB = ("adapters/diffprivlib/test_tools.py", "adapters/diffprivlib/test_models.py")
DPPACK = ("adapters/dppack/test_summaries.py", "adapters/dppack/test_models.py")
CENSUS = ("adapters/census/test_measurements.py",)
FORMS = ("adapters/numpyro/test_forms.py",)
PICKLES = ("_util/test_pickles.py",)

MUTANTS = (
    Mutant(
        "A selection of OpenDP has half its epsilon",
        "adapters/opendp.py",
        "(utilities, 2 / scale_of(arguments), 1.0)",
        "(utilities, 1 / scale_of(arguments), 1.0)",
        TOOLS,
    ),
    Mutant(
        "Whole numbers of OpenDP get real noise",
        "adapters/opendp.py",
        "return (DiscreteLaplace if is_whole(arguments) else Laplace)",
        "return (Laplace if is_whole(arguments) else DiscreteLaplace)",
        TOOLS,
    ),
    Mutant(
        "Tumult's Gaussian parameter is taken for its scale",
        "adapters/tumult.py",
        '"GAUSSIAN": "gaussian_variance"',
        '"GAUSSIAN": "gaussian_standard_deviation"',
        TOOLS,
    ),
    Mutant(
        "Tumult's ρ is taken for that of any mechanism",
        "adapters/tumult.py",
        "sqrt(8 * float(rho or 0.0))",
        "sqrt(2 * float(rho or 0.0))",
        TOOLS,
    ),
    Mutant(
        "A threshold of published counts is forgotten for keys left out",
        "adapters/pageviews.py",
        "thresholded(published, values, possible, mechanism, threshold, n=n, only_present=only_present)",
        "thresholded(published, values, possible, mechanism, threshold - 1, n=n, only_present=only_present)",
        ("adapters/test_pageviews.py",),
    ),
    Mutant(
        "Diffprivlib's mean has the noise of a sum",
        "adapters/diffprivlib/tools.py",
        "Laplace((upper - lower) / number / budget)",
        "Laplace((upper - lower) / budget)",
        DIFFPRIVLIB,
    ),
    Mutant(
        "Diffprivlib's variance moves as that of a public mean",
        "adapters/diffprivlib/tools.py",
        "((upper - lower) / number) ** 2 * (number - 1)",
        "((upper - lower) / number) ** 2",
        DIFFPRIVLIB,
    ),
    Mutant(
        "A last edge of diffprivlib leaves its bin",
        "adapters/diffprivlib/tools.py",
        "beyond = next_above(edges[-1], np.float32)",
        "beyond = edges[-1]",
        DIFFPRIVLIB,
    ),
    Mutant(
        "DPpack's tables move as if one record were added",
        "adapters/dppack/summaries.py",
        'SENSITIVITIES = {"bounded": (2.0, sqrt(2))',
        'SENSITIVITIES = {"bounded": (1.0, 1.0)',
        DPPACK,
    ),
    Mutant(
        "DPpack's Gaussian scale forgets its δ",
        "adapters/dppack/summaries.py",
        "sqrt(2 * log(1.25 / delta)) / budget",
        "sqrt(2 * log(1 / delta)) / budget",
        DPPACK,
    ),
    Mutant(
        "Census noise has its variance for its scale",
        "adapters/census/tables.py",
        "scales = np.sqrt([row.variance for row in part])",
        "scales = np.asarray([row.variance for row in part])",
        CENSUS,
    ),
    Mutant(
        "Cells of a census query are numbered without their size",
        "adapters/census/measurements.py",
        "groups[..., None] * (codes.max() + 1) + codes",
        "groups[..., None] * codes.max() + codes",
        CENSUS,
    ),
    Mutant(
        "Bounds of the census are taken for noisy values",
        "adapters/census/tables.py",
        'np.full(value.size, sign != ">=")',
        "np.full(value.size, True)",
        CENSUS,
    ),
    Mutant(
        "A standardised site forgets its location",
        "adapters/numpyro/families.py",
        "lambda noise: expand_as(location, noise) + expand_as(scale, noise) * noise,",
        "lambda noise: expand_as(scale, noise) * noise,",
        (*FORMS, "adapters/numpyro/test_perfect_start.py"),
    ),
    Mutant(
        "The noise of gamma records lacks its slope",
        "adapters/numpyro/families.py",
        "jnp.exp(logarithm) - gammaln(shape) + jnp.log(scale))",
        "jnp.exp(logarithm) - gammaln(shape))",
        FORMS,
    ),
    Mutant(
        "A hierarchy's Jacobian forgets the scale of its groups",
        "adapters/numpyro/noncentred.py",
        "jnp.sum(transform.log_abs_det_jacobian(free, value)) + jnp.sum(jnp.log(scale))",
        "jnp.sum(transform.log_abs_det_jacobian(free, value))",
        ("adapters/numpyro/test_hierarchies.py",),
    ),
    Mutant(
        "All sites of a record draw their noise with one key",
        "adapters/numpyro/noncentred.py",
        "site_key = jax.random.fold_in(key, len(noise))",
        "site_key = key",
        ("adapters/numpyro/test_perfect_start.py", "adapters/numpyro/test_forms.py"),
    ),
    Mutant(
        "A success has the cell of a failure",
        "adapters/numpyro/cells.py",
        "edge = 1 - jnp.asarray(inner.probs, float)",
        "edge = jnp.asarray(inner.probs, float)",
        FORMS,
    ),
    Mutant(
        "A truncated density is not normalised",
        "adapters/numpyro/truncation.py",
        "return inner.base_dist.log_prob(value) - interval.high - log_mass(interval.high - interval.low)",
        "return inner.base_dist.log_prob(value)",
        (
            "adapters/numpyro/test_twins.py",
            "adapters/numpyro/test_tails.py",
            "adapters/numpyro/test_small_shapes.py",
            "adapters/numpyro/test_truncation.py",
        ),
    ),
    Mutant(
        "A program is known without the constants inside it",
        "runtime/identity.py",
        "*constants_of(value)]",
        '*getattr(value, "consts", ())]',
        ("adapters/numpyro/test_arguments.py",),
    ),
    Mutant(
        "A copy out of a pickle has no release",
        "_util/pickles.py",
        "return Packed(pickle.dumps(part))",
        "return Packed(pickle.dumps(None))",
        PICKLES,
    ),
    Mutant(
        "The number of a mechanism's parts is data",
        "_util/pytree.py",
        "for name in data), tuple(getattr(node, name) for name in static)",
        "for name in data), tuple(None for name in static)",
        ("mechanisms/test_mechanism_pytrees.py",),
    ),
    Mutant(
        "Programs that read an argument are taken for others",
        "_util/dependence.py",
        "return [any(operands)] * len(equation.outvars)",
        "return [False] * len(equation.outvars)",
        ("_util/test_dependence.py", "coupling/test_gibbs.py", "adapters/numpyro/test_model.py"),
    ),
    Mutant(
        "A function that was replaced is forgotten",
        "base.py",
        "FunctionModel(**{name: getattr(self, name) for name in MEMBERS if self.has(name)} | changes)",
        "FunctionModel(**changes | {name: getattr(self, name) for name in MEMBERS if self.has(name)})",
        ("models/test_models_as_data.py", "models/test_checks.py"),
    ),
)

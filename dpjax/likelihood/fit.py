"""Maximum likelihood from a private release: the function that users call."""

from functools import partial

import jax
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.threads import one_blas_thread
from dpjax.base import Imputation, Key, Model, Parameters
from dpjax.data_augmentation.records.forms import OwnLatentData
from dpjax.likelihood.choose import Method, check_inputs, choose_method, open_surface
from dpjax.likelihood.confirm import SHARE, confirm, look_around
from dpjax.likelihood.imputed import Imputed
from dpjax.likelihood.newton import climb
from dpjax.likelihood.other_starts import compare_starts
from dpjax.likelihood.remarks import find_remarks, row_names, warn_of
from dpjax.likelihood.result import Fitted, MaximumLikelihood, report, split_keys
from dpjax.likelihood.surface import Surface
from dpjax.release import PrivateRelease
from dpjax.runtime.progress import PREPARING, Progress, ShowProgress


@names_arguments
def maximum_likelihood(
    key: Key,
    model: Model,
    release: PrivateRelease,
    *,
    method: Method = "auto",
    imputation: Imputation | str | None = None,
    num_chains: int = 32,
    num_steps: int = 20_000,
    precision: float = 0.05,
    initial: Parameters | None = None,
    progress: ShowProgress = True,
) -> MaximumLikelihood:
    """The parameters under which the release is most likely, with standard errors and their Monte Carlo errors.

    If the records can be summed out, as by `dpjax.marginal_likelihood`, this is exact. Else chains impute the
    confidential records at the present parameters. By Fisher's identity they give the score of the
    release's likelihood, and by Louis's its information. Newton steps lead to the maximum, with longer and longer
    chains until the Monte Carlo error is small. No prior enters: that of the model is only where the search starts.

    Parameters
    ----------
    key
        One typed key; equal keys give equal results.
    model
        The model of the records. All of its parameters are estimated.
    release
        What was released about a known number of records.
    method
        ``"imputation"``, or ``"clt"``: the sum is then taken to be Normal as by `dpjax.sample_clt`, at a cost free of
        n. ``"auto"`` sums the records out where that is possible. Else it is ``"clt"`` from 1,000 records on that would
        be imputed one by one, if it is possible.
    imputation
        The imputation of the records given the parameters, see `dpjax.impute`; it imputes also what could be summed
        out. By default counts if a record takes fewer values than there are records, else IMwG. Wholly new records are
        proposed beside it.
    num_chains
        The chains, from whose differences all Monte Carlo errors are computed.
    num_steps
        How many sweeps each chain makes at most.
    precision
        The largest Monte Carlo error of an estimate, in its standard errors; and of the standard errors, relative,
        as far as some ten thousand sweeps allow that.
    initial
        Parameters to start from; by default those of starts near the release.
    progress
        What is shown of the run; see `dpjax.sample`.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable (before compilation), or no start of positive density is found.

    Warns
    -----
    UserWarning
        If the precision was not reached, the likelihood is flat along some direction, starts lead to several maxima, or
        the estimate is at a boundary or drifts to infinity. All of this is in `MaximumLikelihood.remarks`, too.

    Notes
    -----
    The maximum is the highest that steps from three starts lead to; pass several `initial` if there may be others. The
    standard errors are those of the observed information (Louis 1982), with parameters on their natural scale by the
    delta method.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> fit = dpjax.maximum_likelihood(jax.random.key(1), model, release, progress=False)
    >>> bool(abs(fit.estimate["mean"] - 1.2) < 0.1 * fit.standard_errors["mean"])
    True
    """
    check_inputs(key, model, release, method, num_chains, num_steps, precision, progress)
    open_key, climb_key, check_key, look_key, last_key, later_key, other_key = jax.random.split(key, 7)
    lengths: list[int] = []
    with one_blas_thread(), Progress(progress) as bar:
        bar.expect(num_steps)
        chosen = choose_method(model, release, method, imputation)
        bar.say(PREPARING)
        surface, vectors, chains, others = open_surface(
            open_key, model, release, chosen, imputation, num_chains, initial
        )
        tell = partial(advance, bar, lengths)
        settings = surface.settings(float(precision), num_steps) | {"with_errors": True, "report": tell}
        found = climb(surface, climb_key, surface.values, vectors, chains, **settings)
        found, disagreements = compare_starts(
            other_key, surface, model, release, found, list(others), chains, **settings
        )
        fitted_there = surface.fitted_around(found.vectors[0], found.solution.steps[0])
        if fitted_there is not None:
            surface = fitted_there
            found = climb(surface, climb_key, surface.values, found.vectors, chains, **settings)
        surface.check(check_key, found.vectors[0])
        bar.say("looking around the maximum")
        looks = look_around(surface, look_key, found, max(max(lengths) // SHARE, 1))
        room = num_steps - found.num_steps
        found, made = confirm(surface, last_key, found, looks, max(lengths), room, float(precision))
        tell(made)
        labels = model.entry_labels(release.level_names | model.level_names)
        remarks = (*find_remarks(surface, found, looks, labels), *disagreements)
    warn_of(remarks)
    fitted = Fitted(model, release, surface, found, split_keys(later_key), num_steps)
    rows = row_names(surface, np.shape(surface.natural(found.vectors[0])[0])[0], labels)
    return report(fitted, in_words(surface), rows, remarks)


def advance(bar: Progress, lengths: list[int], made: int) -> None:
    """Move the bar by the sweeps made, and note them."""
    lengths.append(made)
    bar.advance(made, "maximum likelihood")


def in_words(surface: Surface) -> str:
    """How the likelihood was computed."""
    if not isinstance(surface, Imputed):
        return surface.METHOD
    what = surface.imputation.latent_data if isinstance(surface.imputation, OwnLatentData) else "records"
    return f"{surface.METHOD} of {what}"

"""Records imputed with the parameters held, which leaves p(records | parameters, release) as it is."""

from functools import partial

import jax

from dpjax.base import Array, Imputation, Key, Latent, Model
from dpjax.imputation.forms import OwnLatentData
from dpjax.numbered import jit_model
from dpjax.plan import close
from dpjax.release import PrivateRelease
from dpjax.states import GibbsState

__all__ = ["holding", "impute_all"]


def holding(imputation: Imputation) -> Imputation:
    """The imputation by which records move while the parameters are held, with every open option closed."""
    closed = close(imputation)
    return closed.given_parameters() if isinstance(closed, OwnLatentData) else closed


@partial(jit_model, static_argnames=("imputation",))
def impute_all(
    model: Model, imputation: Imputation, key: Key, release: PrivateRelease, states: GibbsState, length: Array
) -> GibbsState:
    """The states [chain, ...] after `length` [] sweeps of the imputation, with the parameters held."""
    impute = imputation(model, release)

    def chain(key: Key, state: GibbsState) -> GibbsState:
        def sweep(number: Array, latent: Latent) -> Latent:
            return impute(jax.random.fold_in(key, number), latent, state.parameters)[0]

        return GibbsState(state.parameters, jax.lax.fori_loop(0, length, sweep, state.latent))

    return jax.vmap(chain)(jax.random.split(key, states.latent.log_density.shape[0]), states)

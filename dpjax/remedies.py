"""What may help where chains mix poorly, beyond what is already done."""

from dpjax.base import Model
from dpjax.imputation.forms import OwnLatentData, latent_form
from dpjax.pickles import is_missing
from dpjax.plan import SweepPlan, interweaving
from dpjax.release import PrivateRelease

__all__ = ["STARTS", "advise"]

DRAW_MORE = "Draw more (num_samples, num_warmup), thin more"

STARTS = (
    "Chains that stand apart may have started badly, or in modes of their own: pass starts (initial=, which takes "
    '"large-sample", too), or use dpjax.tempered.'
)


def advise(model: Model, release: PrivateRelease, plan: SweepPlan | None) -> str:
    """What to try for chains of this plan; None for trajectories that impute nothing."""
    if plan is None:
        return "Draw more (num_samples, num_warmup), or use dpjax.sample."
    if any(map(is_missing, (model, release, plan))):
        return f"{DRAW_MORE}, or try another imputation."
    others = ["interweave=True"] * lacks_interweaving(model, release, plan)
    others += ["another imputation", "parameter_kernel"]
    if model.noncentred is None and not isinstance(plan.imputation, OwnLatentData):
        others.append("the model written in NumPyro, which may have a non-centred form as this one has not")
    return f"{DRAW_MORE}, or try {' or '.join(others)}."


def lacks_interweaving(model: Model, release: PrivateRelease, plan: SweepPlan) -> bool:
    """Whether interweaving is off though it may pay: for records of few values it costs more than it brings."""
    if plan.interweave or model.support is not None:
        return False
    return interweaving(*latent_form(model, release, plan.imputation), plan.imputation)[1]

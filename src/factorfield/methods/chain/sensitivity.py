"""What numerical errors of the fields do to unknown coefficients.

Where a field is off at a sensor, coefficients move as if the reading were off by as much to the other side, and the
fields follow them. Errors are those of the mean path at given coefficients: what measurements have made of the start
and of inner weights is in them already, so only coefficients have to answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.elimination import smoothed
from factorfield.methods.chain.passes import Path
from factorfield.model.model import WindowModel
from factorfield.model.searched import Coordinate
from factorfield.posterior.numbers import Numbers
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]


def felt_by_numbers(root: Array, path: Path, numbers: Numbers, priors: Sequence[Coordinate]) -> Array:
    """Errors of the windows' weights at given numbers, (windows, weights, columns), as errors of the weights and of
    the numbers that stand beside them."""
    most = np.array([prior.std for prior in priors])
    shift = _shift(root, path, numbers.slopes, numbers.root @ numbers.root.T, most)
    beside = np.broadcast_to(shift, (len(root), *shift.shape))
    return np.concatenate([root + numbers.slopes @ shift, beside], axis=1)


def felt_by_coefficients(root: Array, path: Path, model: WindowModel) -> Array:
    """The same where coefficients are weights of every window."""
    latents, fields = model.representation.latents, model.problem.fields
    forms = [form for name, form in model.representation.forms.items() if name not in fields]
    names = [name for form in forms for name in form.latents if TIME not in latents[name].basis.axes]
    where = np.concatenate([np.zeros(0, int), *(np.arange(model.size)[latents[name].block] for name in names)])
    if not len(where):
        return root
    slopes, order = [], np.concatenate(model.layout)
    for belief in (smoothed(*known) for known in zip(path.starts, path.links, path.futures, strict=True)):
        spread = np.empty_like(belief.root)
        spread[order] = belief.root
        covariance = spread[where] @ spread[where].T
        slopes.append(np.linalg.lstsq(covariance, spread[where] @ spread.T, rcond=None)[0].T)
    return root + np.stack(slopes) @ _shift(root, path, np.stack(slopes), covariance, model.prior.std[where])


def _shift(root: Array, path: Path, slopes: Array, covariance: Array, most: Array) -> Array:
    """By how much coefficients move, (coefficients, columns): they are known to a covariance, and weights follow them
    by slopes, window by window. By no more than `most`, their prior stds: gross errors leave the prior."""
    pulled = np.zeros((slopes.shape[2], root.shape[2]))
    for groups, centre, slope, error in zip(path.groups, path.centres, slopes, root, strict=True):
        for group in (group for group in groups if group.statement.kind == "observation"):
            _, rows = group.linear_misfit(centre)
            pulled += (rows @ slope).T @ (rows @ error)
    shift = np.asarray(-covariance @ pulled, float)
    size = np.maximum(np.linalg.norm(shift, axis=1), 1e-300)
    return shift * np.minimum(1.0, most / size)[:, None]

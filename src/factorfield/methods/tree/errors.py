"""The errors of starts and walls beside a belief on boxes.

An error is a smooth function with few principal components (model/face_errors.py), each a standard normal number that
factors all along a wall would read. So they are no weights: the field's response R to each of them is found without the
measurements, as that to a wall which is moved, and w = w0 + R e. Equations and walls say what the response is and
nothing about e, whatever the cells can follow: they are not data. Measurements B do: with W their covariance of w0,

    w0 given e moves by -W B'B R e,    the precision of e is 1 + (B R)' B G,    G = R - W B'B R.

Exact for linear factors; for others all is linearised at the weights that were found with e = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from factorfield.methods.tree.search import Found, Lines, eliminated, linearised
from factorfield.model.face_errors import error_rows
from factorfield.model.local import LocalGroup
from factorfield.model.tree import TreeModel, sigmas_without_errors

Array = NDArray[np.float64]
MET_FIRST = 1e3  # how much better than an answer does, its response meets conditions: an error may jump to a wall's end


def followed(model: TreeModel, found: Found) -> Found:
    """What was found with all errors zero, with them."""
    moved = {
        group.name: error_rows(group.statement, model.problem.domain, group.points) / group.sigma[:, None]
        for group in model.groups
        if group.statement.error is not None
    }
    if not moved:
        return found
    lines = linearised(model, found.weights, found.held)
    response = _response(model, lines, moved)
    seen, misfit = _measured(model, lines)
    read = seen @ response
    slopes = response - found.tree.solve(seen.T @ read)
    precision = np.eye(read.shape[1]) + read.T @ (seen @ slopes)
    root = linalg.cholesky(0.5 * (precision + precision.T), lower=True)
    white = linalg.solve_triangular(root, -(read.T @ misfit), lower=True)
    mean = linalg.solve_triangular(root, white, lower=True, trans=1)
    return replace(
        found, weights=found.weights + slopes @ mean, errors=_by_name(moved, mean),
        beside=linalg.solve_triangular(root, slopes.T, lower=True).T,
        gain=0.5 * float(white @ white) - float(np.sum(np.log(np.diagonal(root)))),
    )  # fmt: skip


def _response(model: TreeModel, lines: Lines, moved: Mapping[str, Array]) -> Array:
    """What every weight (rows) does when a wall moves by a component of its error (columns), measurements left out."""
    pulls, rows, exact = [], [], sigmas_without_errors(model)
    for group, sigma, own in zip(model.groups, model.sigmas, lines.rows, strict=True):
        share = {"equation": 1.0, "observation": 0.0}.get(group.statement.kind, MET_FIRST)
        if group.name in moved:
            share *= sigma.typical / exact[group.name]
        rows.append(share * own)
        if group.name in moved:
            pulls.append(_sparse(group, share * own, model.size).T @ (share * moved[group.name]))
    tree = eliminated(model, Lines(lines.misfits, tuple(rows)), True)  # by QR: shares so far apart leave few digits
    return np.asarray(tree.solve(np.concatenate(pulls, axis=1)))


def _measured(model: TreeModel, lines: Lines) -> tuple[sparse.csr_matrix, Array]:
    """All rows of measurements, and their misfits."""
    every = zip(model.groups, lines.rows, lines.misfits, strict=True)
    kept = [(_sparse(g, rows, model.size), m) for g, rows, m in every if g.statement.kind == "observation"]
    if not kept:
        return sparse.csr_matrix((0, model.size)), np.zeros(0)
    return sparse.vstack([rows for rows, _ in kept]).tocsr(), np.concatenate([misfit for _, misfit in kept])


def _sparse(group: LocalGroup, rows: Array, size: int) -> sparse.csr_matrix:
    columns = group.all_columns
    ends = np.arange(0, columns.size + 1, columns.shape[1])
    return sparse.csr_matrix((rows.ravel(), columns.ravel(), ends), shape=(group.count, size))


def _by_name(moved: Mapping[str, Array], mean: Array) -> dict[str, tuple[float, int]]:
    """Chi-square of each error at its mean, and the number of its components."""
    found, begin = {}, 0
    for name, rows in moved.items():
        own = mean[begin : begin + rows.shape[1]]
        found[name] = float(own @ own), len(own)
        begin += len(own)
    return found

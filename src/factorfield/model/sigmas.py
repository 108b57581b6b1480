"""The sigma of every statement: the user's, the evidence's, or a default. The rules of all methods stand side by side.

One Gaussian over the whole domain (joint and the other methods of one block) asks equations pointwise and cannot meet
them exactly; windows of time (chain) ask an equation as often as it has weights to settle and walls as often as they
can hold. So their defaults differ, and are given here in units of what they qualify:

    |                      | one block                          | windows                                      |
    | equation             | 1e-3 of its largest term           | 1e-5 of the field per horizon, or rounding   |
    | start (initial)      | 1e-4 of its size                   | 1e-4 of its size                             |
    | wall (boundary)      | 1e-4 of its size                   | 1e-9 of its size: it holds                   |
    | measurement          | 1e-2 of the field                  | estimated from eight values on, else 1e-2    |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.model.scales import condition_scale, natural_size
from factorfield.model.spectrum import Spectrum
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
LABEL_NOISE = 0.01  # default sigma of a measurement, in units of the field's scale
FACE_NOISE = 1e-4  # of an initial or boundary condition: they are meant to hold
BLOCK_RESIDUAL = 1e-3  # of an equation in one block, in units of its largest term
WINDOW_RESIDUAL = 1e-5  # of an equation in windows: this share of the field's scale over the horizon
WALL_NOISE = 1e-9  # of a wall in windows: it holds. Noise that is new at every instant would be no smooth field
ROUNDING = 1e-12  # smallest sigma of an equation in windows, in units of its terms
FEWEST_LABELS = 8  # fewer cannot tell their noise
FIRST_NOISE = 0.1  # where the search for the noise of labels begins, in units of the field's scale


@dataclass(frozen=True, eq=False)
class Sigma:
    """The standard deviation of a statement, one number or one per measurement, and where it comes from."""

    value: float | Array
    origin: Literal["given", "estimated", "default"]
    noise: float | Array | None = None  # of the measurement alone, where `value` holds what the basis leaves out too
    is_open: bool = False  # is it found while solving?
    rounds: int = 0  # how often it has been estimated anew

    @property
    def typical(self) -> float:
        return float(np.sqrt(np.mean(np.square(self.value))))


def observation_noise(problem: Problem, sigmas: Sequence[Sigma]) -> dict[str, float]:
    """What one more measurement of a field would add: the root mean square of all its direct measurements' noise."""
    squares: dict[str, list[Array]] = {}
    for statement, sigma in zip(problem.statements, sigmas, strict=True):
        if statement.is_direct:
            noise = sigma.value if sigma.noise is None else sigma.noise
            each = np.broadcast_to(np.square(noise), statement.target.shape)
            squares.setdefault(statement.jet.field, []).append(each)
    return {name: float(np.sqrt(np.mean(np.concatenate(found)))) for name, found in squares.items()}


def shown(problem: Problem, sigmas: Sequence[Sigma]) -> list[tuple[str, float]]:
    """For settings: every statement with its sigma."""
    return [(s.name, sigma.typical) for s, sigma in zip(problem.statements, sigmas, strict=True)]


def block_sigmas(problem: Problem, scale: float) -> tuple[Sigma, ...]:
    """Of a model with one weight vector."""
    return tuple(_block_sigma(problem, statement, scale) for statement in problem.statements)


def _block_sigma(problem: Problem, statement: Statement, scale: float) -> Sigma:
    if statement.sigma is not None:
        return Sigma(statement.sigma, "given")
    if statement.kind == "observation":
        return Sigma(LABEL_NOISE * scale, "default")
    if statement.kind == "equation":
        return Sigma(BLOCK_RESIDUAL * natural_size(statement.relation, problem, scale), "default")
    return Sigma(FACE_NOISE * _face_size(problem, statement, scale), "default")


def _face_size(problem: Problem, statement: Statement, scale: float) -> float:
    return natural_size(statement.relation, problem, condition_scale(problem, statement, scale))


def window_sigmas(
    problem: Problem, scale: float, spectra: Mapping[str, Spectrum], modes: Mapping[str, int], fastest: float
) -> tuple[Sigma, ...]:
    """Of a model with windows of time; `fastest` is the rate of the fastest wave that its modes hold."""
    least = ROUNDING * scale * max(fastest, 1.0 / problem.domain[TIME].length)  # what rounding lets an equation meet
    found = []
    for statement in problem.statements:
        if statement.kind == "equation":
            found.append(_window_residual(problem, statement, scale, least))
        elif statement.kind == "observation":
            found.append(_label_sigma(problem, statement, scale, spectra, modes))
        elif statement.sigma is not None:
            found.append(Sigma(statement.sigma, "given"))
        else:
            share = FACE_NOISE if TIME in (statement.face or {}) else WALL_NOISE
            found.append(Sigma(share * _face_size(problem, statement, scale), "default"))
    return tuple(found)


def _window_residual(problem: Problem, statement: Statement, scale: float, least: float) -> Sigma:
    if statement.sigma is None:
        return Sigma(max(WINDOW_RESIDUAL * scale / problem.domain[TIME].length, 10.0 * least), "default")
    if np.max(statement.sigma) < least:
        received, remedy = f"{float(np.max(statement.sigma)):.2g}", f"Equation(..., sigma={100 * least:.1g})"
        raise expected(f"sigma of the equation of at least {least:.2g}: rounding is larger", received, remedy)
    return Sigma(statement.sigma, "given")


def _label_sigma(
    problem: Problem, statement: Statement, scale: float, spectra: Mapping[str, Spectrum], modes: Mapping[str, int]
) -> Sigma:
    given = statement.sigma
    one = len(statement.relation.jets) == 1 and not statement.jet.orders
    spectrum = spectra.get(statement.jet.field) if one else None
    assert statement.points is not None
    if spectrum is not None and np.all(statement.points[TIME] == problem.domain[TIME].lower):
        noise = spectrum.sigma if given is None else given
        left_out = spectrum.left_out(modes[problem.domain.space[0]])  # what the basis cannot follow disturbs labels too
        value = np.sqrt(np.square(noise) + left_out)
        return Sigma(value, "estimated" if given is None else "given", noise)
    if given is not None:
        return Sigma(given, "given")
    if len(statement.target) >= FEWEST_LABELS:
        return Sigma(FIRST_NOISE * scale, "estimated", is_open=True)
    return Sigma(LABEL_NOISE * scale, "default")

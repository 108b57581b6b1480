"""Exact messages on a tree of boxes of cells, for fields that need many features: fronts, planes and spaces.

A box of cells collects the rows of its cells and the messages of its halves, eliminates the weights that no cell
outside reads, and sends the rest up (messages/boxes.py). Linear problems take one elimination. Others take Gauss-Newton
steps, halved until the log joint does not fall; the belief is then Laplace's. Unknown numbers given which all else is
linear are found on their marginal likelihood (searched.py).

Cells are halved until the estimated numerical error meets the tolerance, or until operations or memory forbid.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice, expected
from factorfield.messages.boxes import BoxTree
from factorfield.methods import taken
from factorfield.methods.advice import UNFOLLOWED, contradictions, free_directions, is_missed, unconstrained, unfollowed
from factorfield.methods.marginal import MARGINAL, UNSETTLED, elsewhere
from factorfield.methods.tree.errors import followed
from factorfield.methods.tree.looseness import loosened
from factorfield.methods.tree.resolution import NumericalError, numerical_error
from factorfield.methods.tree.search import Found, log_evidence, search
from factorfield.methods.tree.searched import FoundNumbers, evidence_of, is_searched, mean_near, search_numbers
from factorfield.model.model import Model
from factorfield.model.searched import latents, number_coordinates
from factorfield.model.tree import TreeModel, prolonged, refined_cells, tree_model, with_cells, with_condition
from factorfield.posterior.boxes import BoxesPosterior
from factorfield.problem.domain import TIME, Points, normal_along
from factorfield.problem.places import at_times, inside_of
from factorfield.problem.problem import Problem
from factorfield.progress import Progress
from factorfield.solution import Solution, Status, unresolved

Array = NDArray[np.float64]
HELPED = 0.9  # of the error that cells halved twice may leave: else rounding, or noise, is what is left
FREE = 0.1  # of the prior's standard deviation, ten times the field's size: a place that is left with it
ASKED = 64.5  # places at most, all over the domain
MOST_SCANNED = 3000  # weights of a model that is worth some forty evaluations of the marginal likelihood
KEPT = 2 << 30  # bytes of messages that may be kept, so that `condition` renews only what changes


@dataclass(frozen=True)
class Tree:
    """Settings.

    tolerance    of the numerical error, relative to the field
    iterations   Gauss-Newton steps at most
    adapt        may cells that were chosen automatically be halved?
    """

    tolerance: float = 1e-5
    iterations: int = 50
    adapt: bool = True

    name = "tree"
    model_for = staticmethod(tree_model)

    def __post_init__(self) -> None:
        if self.iterations < 1 or not self.tolerance > 0.0:
            received = f"{self.iterations}, {self.tolerance}"
            raise expected("iterations >= 1 and tolerance > 0", received, "tolerance=1e-5")

    def run(self, model: Model, progress: Progress | None = None) -> Solution:
        return self._run(taken(model, TreeModel, self.name), progress)

    def refine(self, model: Model, solution: Solution) -> TreeModel | None:
        """The same problem from other numbers, if those are better, else on halved cells, from the solution found; None
        where cells are small enough or too many, or where nothing settles the field: smaller cells would not either."""
        tree = taken(solution.model, TreeModel, self.name)
        other = self._elsewhere(tree, solution)
        if other is not None:
            return other
        error = solution.trace["numerical_error"]
        history = (*tree.errors_before, error)
        missed = is_searched(tree) and is_missed(solution)  # cells may be too large for other numbers, that fit better
        enough = error <= self.tolerance and not missed
        enough = enough or (len(history) > 2 and error > HELPED * history[-3])
        enough = enough or any(advice.kind == "free-directions" for advice in solution.advice or ())
        cells = refined_cells(tree) if tree.automatic and not enough else None
        if cells is None:
            if error <= self.tolerance or not is_missed(solution) or tree.looseness > 1.0:
                return None
            looser = loosened(tree, self.iterations, solution.trace.get("searched", {}))
            return looser if looser.looseness > 1.0 else None
        finer = replace(with_cells(tree, cells), errors_before=history)
        if tree.is_linear:
            return finer
        return _from(finer, prolonged(finer, tree, solution.posterior.weight_mean), solution.trace)

    def _elsewhere(self, model: TreeModel, solution: Solution) -> TreeModel | None:
        """Where measurements are missed, the marginal likelihood may have a higher maximum: a search from there."""
        if model.size > MOST_SCANNED or not is_searched(model) or not is_missed(solution):
            return None
        coordinates = number_coordinates(model.problem)
        better = elsewhere(evidence_of(model), coordinates, solution.trace["searched"], len(coordinates))
        return None if better is None else replace(model, start=better, errors_before=())

    def _run(
        self, model: TreeModel, progress: Progress | None, known: BoxTree | None = None,
        error: NumericalError | None = None,
    ) -> Solution:  # fmt: skip
        """`known`: boxes eliminated before; `error`: the numerical error, where it is known."""
        begin = time.perf_counter()
        keep = 8 * sum(len(box.interface) ** 2 for box in model.boxes) < KEPT
        numbers = search_numbers(model, progress) if is_searched(model) else None
        if numbers is None:
            found = followed(model, search(model, self.iterations, progress, known, keep))
        else:
            found = numbers.found
        solved = time.perf_counter()
        error = error or numerical_error(model, found.weights, partial(self._mean, model, numbers))
        timings = {"solve": solved - begin, "compare": time.perf_counter() - solved}
        belief = BoxTree(found.tree.boxes, found.tree.conditionals)
        posterior = BoxesPosterior(
            model.problem, model.representation, model.noise, found.weights, belief, found.beside, numerical=error.std,
        )  # fmt: skip
        trace = {
            "iterations": max(len(found.merits) - 1, 1), "negative_log_joint": list(found.merits),
            "numerical_error": error.relative, "rcond": found.tree.rcond,
        }  # fmt: skip
        if numbers is not None:
            trace["evaluations"] = numbers.marginal.evaluations
            trace["searched"] = latents(number_coordinates(model.problem), numbers.marginal.mean)
        path = "SquareRoot" if found.square_root else "Cholesky"
        distinct = len({id(c) for c in belief.conditionals if c is not None})
        settings = {
            **model.settings, "method": self.name, "path": path, "tolerance": self.tolerance,
            "boxes": len(model.boxes), "distinct boxes": distinct,
        }  # fmt: skip
        status = self._status(model, found, error, numbers)
        return Solution(
            posterior, status, trace, timings, settings, model=model,
            resume=partial(self._resume, _from(model, found.weights, trace), found.tree, error),
            advice=(*model.advice, *advice_about(model, posterior, status, found.errors)),
            evidence=partial(log_evidence, model, found) if numbers is None else partial(float, numbers.marginal.level),
        )  # fmt: skip

    def _mean(self, fine: TreeModel, numbers: FoundNumbers | None, model: TreeModel) -> Array:
        """Of the weights on other cells, whose equations are as loose as these need."""
        if fine.looseness > 1.0:
            values = {} if numbers is None else latents(number_coordinates(fine.problem), numbers.marginal.mean)
            model = loosened(model, self.iterations, values)
        if numbers is None:
            return followed(model, search(model, self.iterations, None)).weights
        return mean_near(model, fine, numbers.marginal)

    def _resume(self, model: TreeModel, known: BoxTree, error: NumericalError, problem: Problem) -> Solution:
        """With further conditions. The numerical error stays: measurements do not reduce it."""
        return self._run(with_condition(model, problem), None, known, error)

    def taken_up(self, stored: Solution) -> Callable[[Problem], Solution] | None:
        """`resume` of a solution that was read from a file: on the same cells, from the weights that were found."""
        settings, posterior = stored.settings, stored.posterior
        gaussian = all(statement.noise is None for statement in stored.problem.statements)
        if not gaussian or "cells" not in settings or posterior.numerical is None:
            return None
        error = NumericalError(posterior.numerical, stored.trace["numerical_error"])

        def resume(problem: Problem) -> Solution:
            model = tree_model(stored.problem, cells=settings["cells"], degree=settings["degree"])
            near = _from(model, posterior.weight_mean, stored.trace)
            return self._run(with_condition(near, problem), None, None, error)

        return resume

    def _status(
        self, model: TreeModel, found: Found, error: NumericalError, numbers: FoundNumbers | None
    ) -> Status:  # fmt: skip
        if not np.all(np.isfinite(found.weights)):
            return Status("diverged")
        if found.stalled is not None:
            return Status("max-iterations", found.stalled)
        if numbers is not None and not numbers.marginal.settled:
            return Status("max-iterations", UNSETTLED)
        cells = " x ".join(str(count) for count in model.modes.values())
        if not error.relative <= self.tolerance:
            return unresolved(error.relative, self.tolerance, f"{cells} cells", "cells")
        exact = "linear and Gaussian: the posterior is exact" if model.is_linear else "the search has arrived"
        exact = exact if numbers is None else MARGINAL
        return Status("converged", f"{exact}; numerical error {error.relative:.1g} of the field on {cells} cells")


def _asked(problem: Problem) -> Mapping[str, Points]:
    """Places all over the domain, or in each part of a region that touches no other, with words for where that is."""
    domain, shape = problem.domain, problem.shape
    count = int(ASKED ** (1.0 / len(domain)))
    along = {name: axis.cells(count) for name, axis in domain.items()}
    if shape is None:
        return {"": domain.tensor(along)}
    if len(shape.parts) == 1:
        return {"": inside_of(domain, shape, along)}
    found = {}
    for part in shape.parts:
        chosen = {axis: x[:: max(1, len(x) // count**2)] for axis, x in part.items()}
        where = ", ".join(f"{axis} = {x[0]:.3g}" for axis, x in part.items())
        found[f" in the part around {where}, which touches no other,"] = at_times(chosen, along.get(TIME))
    return found


def thin_places(model: TreeModel) -> Iterator[Advice]:
    """Where a region, or a gap in it, is thinner than a cell."""
    shape = model.problem.shape
    if shape is None:
        return
    width = min(model.splines[axis].width for axis in shape.axes)
    points = shape.away_from_corners(width)
    for side, what in ((-1.0, "the region"), (1.0, "a gap in the region")) if points else ():
        moved = {axis: points[axis] + side * width * points[normal_along(axis)] for axis in shape.axes}
        near = {axis: points[axis] + side * 1e-3 * width * points[normal_along(axis)] for axis in shape.axes}
        thin = shape.contains(moved) != shape.contains(near)
        if np.any(thin):
            place = ", ".join(f"{axis} = {points[axis][thin][0]:.3g}" for axis in shape.axes)
            yield Advice(
                "thin", f"{what} is thinner than a cell ({width:.2g}) at {place}: its two sides share their splines; "
                "try more cells=", what,
            )  # fmt: skip


def _from(model: TreeModel, weights: Array, trace: Mapping[str, Any]) -> TreeModel:
    """The model whose search begins where another one ended."""
    return replace(model, first_weights=weights, start=trace.get("searched", {}))


def advice_about(
    model: TreeModel, posterior: BoxesPosterior, status: Status, errors: Mapping[str, tuple[float, int]]
) -> Iterator[Advice]:
    """Places that nothing settles, groups that contradict the rest, unknown numbers that nothing constrains.

    Where cells are too few, equations are missed for that reason, which the status tells.
    """
    for prior in (prior for prior in model.priors if prior.latent.name in model.problem.fields):
        for where, places in _asked(model.problem).items():
            std = posterior.exact.predict(places, of=prior.latent.name, points=True)["std"].values
            free = int(np.sum(std > FREE * prior.std))
            if free:
                text = f"values of {prior.latent.name} at {free} of {len(std)} places{where} are"
                yield free_directions(model.problem, text)
    yield from thin_places(model)
    if model.problem.unknowns:
        yield from unconstrained(model.problem, posterior.numbers)
    found = dict(errors)
    for group in (g for g in model.groups if g.statement.noise is None and g.statement.error is None):
        misfit = group.misfit(posterior.mean)
        total = float(misfit @ misfit)
        if group.statement.kind == "observation" and group.name in model.given:
            found[group.name] = total, group.count
        elif total > UNFOLLOWED**2 * group.count and status == "converged":
            yield unfollowed(group.name, float(np.sqrt(total / group.count)))
    yield from contradictions(found, posterior)

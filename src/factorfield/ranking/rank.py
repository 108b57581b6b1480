"""Which equation? The evidence of the same measurements under several problems, and what it hangs on.

Candidates share the measurements, and one prior of what the start may be: the same features of space. Their own
coefficients have the priors that they were given, which is part of what is compared; where the winner would be another
with half or twice the std of such a prior, that is told.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from factorfield import methods
from factorfield.errors import Advice, AdviceWarning, expected, warn_of
from factorfield.methods import Method
from factorfield.methods.joint.searched import is_searched
from factorfield.methods.marginal import NODES
from factorfield.methods.tree import searched as on_boxes
from factorfield.model.choices import Sigma
from factorfield.model.model import BlockModel, Model, WindowModel
from factorfield.model.tree import TreeModel
from factorfield.problem.coefficients import Unknown
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement
from factorfield.progress import Progress
from factorfield.ranking.one_start import common_modes, with_one_prior
from factorfield.solution import Solution
from factorfield.solving import solve

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
EVIDENT = ("chain", "forward", "joint", "laplace", "tree")  # methods with an evidence
FACTORS = {0.5: "half", 2.0: "twice"}  # of a prior's std: what the order must survive
TOWARDS_ZERO = 1.0  # prior sds that a positive coefficient has gone down, ...
OPEN = 0.3  # ... and the share of the prior's sd that is left: its posterior reaches to zero


def rank(
    problems: Mapping[str, Problem | Solution],
    odds: Mapping[str, float] | None = None,
    method: str | Method | None = None,
    progress: bool | Progress | None = None,
    **options: Any,
) -> xr.Dataset:
    """The evidence for each of several problems with the same measurements, and their probabilities.

    problems  by name; a Solution of this session is taken as it is
    odds      of each problem before the measurements, as numbers > 0; None: all alike
    method, progress, options   as of `solve`

    The dataset has the names in the order given, with log_evidence and how it was found (`evidence`: exact, quadrature
    over one or two unknown numbers, or Laplace), probability, status, the coefficients' means, stds and 90 % intervals,
    and the misfit of every data set in sigmas (root mean square). `found.sortby("probability", ascending=False)` sorts.
    """
    named = _checked(problems)
    if (name := getattr(method, "name", method)) not in (None, *EVIDENT):
        raise expected(f"methods with an evidence: {', '.join(EVIDENT)}", name, "method='chain'")
    prior = _log_odds(list(named), odds)
    _check_measurements({name: _problem_of(item) for name, item in named.items()})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)  # that a wrong equation misses its data is what the table tells
        found = _solved(named, method, progress, options)
    candidates = [_candidate(name, solution) for name, solution in found.items()]
    advice = [*_about_each(candidates), *_about_start(candidates), *_about_priors(candidates, prior)]
    warn_of(advice, stacklevel=1)
    return _table(candidates, prior, advice)


def _solved(
    named: Mapping[str, Problem | Solution], method: str | Method | None, progress: bool | Progress | None,
    options: Mapping[str, Any],
) -> dict[str, Solution]:  # fmt: skip
    """All candidates, with one prior of the start."""

    def from_problem(problem: Problem | Solution, **more: Any) -> Solution:
        return problem if isinstance(problem, Solution) else solve(problem, method, progress, **{**options, **more})

    def from_model(model: Model) -> Solution:
        name = str(found[next(iter(found))].settings["method"]) if method is None else method
        chosen = methods.configured(name, options)[0] if isinstance(name, str) else name
        return solve(model, chosen, progress, adapt=False)

    found = {name: from_problem(item) for name, item in named.items()}
    for name, modes in common_modes(found).items():
        found[name] = from_problem(named[name], modes=modes) if isinstance(named[name], Problem) else found[name]
    return with_one_prior(found, from_model)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A solved problem with its evidence."""

    name: str
    solution: Solution
    level: float
    kind: str

    @property
    def unknowns(self) -> dict[str, tuple[Unknown, Unknown]]:
        """Prior and posterior of every unknown number, both by their moments."""
        priors = self.solution.problem.unknowns
        after = self.solution.parameters
        return {n: (priors[n], Unknown(a["mean"], a["std"], priors[n].positive)) for n, a in after.items()}


def _candidate(name: str, solution: Solution) -> Candidate:
    if solution.status == "diverged":
        raise expected(f"a solution of {name!r} to trust", "one that diverged", "another start, or leaving it out")
    level = solution.log_evidence
    if level is None:
        method = solution.settings.get("method", "a method")
        received = f"{method}, or a file" if solution.model is None else str(method)
        raise expected(f"methods with an evidence: {', '.join(EVIDENT)}", received, "ff.rank of the problems")
    return Candidate(name, solution, level, _kind(solution))


def _kind(solution: Solution) -> str:
    """How an evidence was found: exact, by quadrature over unknown numbers, or by Laplace's approximation."""
    model, numbers = solution.model, len(solution.problem.unknowns)
    if "evidence" in solution.settings:
        return str(solution.settings["evidence"])
    if isinstance(model, WindowModel):
        if not model.traits.linear:
            return "Laplace"
        if not model.coordinates:
            return "exact"
        return "quadrature" if len(model.coordinates) == numbers and numbers in NODES else "Laplace"
    if getattr(model, "is_linear", False):
        return "exact"
    searched = isinstance(model, BlockModel) and is_searched(model)
    searched = searched or (isinstance(model, TreeModel) and on_boxes.is_searched(model))
    return "quadrature" if searched and numbers in NODES else "Laplace"


# -- what is compared


def _checked(problems: Mapping[str, Problem | Solution]) -> dict[str, Problem | Solution]:
    if not isinstance(problems, Mapping) or len(problems) < 2:
        raise expected("two or more problems by name", problems, "ff.rank({'heat': first, 'decay': second})")
    for name, item in problems.items():
        if not isinstance(item, Problem | Solution):
            raise expected(f"an ff.Problem or a solution for {name!r}", type(item).__name__, "ff.Problem(...)")
    return {str(name): item for name, item in problems.items()}


def _problem_of(item: Problem | Solution) -> Problem:
    return item.problem if isinstance(item, Solution) else item


def _log_odds(names: Sequence[str], odds: Mapping[str, float] | None) -> Array:
    if odds is None:
        return np.zeros(len(names))
    if set(odds) != set(names):
        raise expected(f"odds of {', '.join(names)}", ", ".join(map(str, odds)) or "none", "one number for each")
    values = np.array([odds[name] for name in names], float)
    if not np.all(np.isfinite(values) & (values > 0.0)):
        raise expected("odds > 0", dict(odds), "leaving out what is impossible")
    return np.log(values)


def _check_measurements(problems: Mapping[str, Problem]) -> None:
    """All problems are about the same values at the same places with the same sigmas."""
    (first, of_first), *others = [
        (name, [(s.name, _digest(s)) for s in problem.statements if s.kind == "observation"])
        for name, problem in problems.items()
    ]
    if not of_first:
        raise expected("measurements to judge problems by", f"none in {first!r}", "ff.Observations")
    for problem in problems.values():
        if any(statement.noise is not None for statement in problem.statements):
            raise expected("measurements with Gaussian noise", "other noise", "noise='gaussian'")
    for name, own in others:
        if sorted(digest for _, digest in own) != sorted(digest for _, digest in of_first):
            known = {digest for _, digest in of_first}
            other = next((text for text, digest in own if digest not in known), f"{len(own)} data sets")
            raise expected(
                "the same measurements in all problems: values, places and sigmas",
                f"others in {name!r} than in {first!r} ({other})", "one ff.Observations for all",
            )  # fmt: skip


def _digest(statement: Statement) -> str:
    """Of all that a data set is."""
    digest = hashlib.blake2b(digest_size=16)
    points = statement.points or {}
    parts: list[object] = [points[name] for name in sorted(points)]
    for shift, weight in statement.stencil:
        parts += [*(shift[name] for name in sorted(shift)), weight]
    sigma = () if statement.sigma is None else np.broadcast_to(statement.sigma, statement.target.shape)
    for values in (*parts, statement.target, sigma):
        digest.update(np.ascontiguousarray(values, float).tobytes() + b"|")
    digest.update(f"{statement.relation.expression} {sorted(points)}".encode())
    return digest.hexdigest()


# -- what the order hangs on


def _about_each(candidates: Sequence[Candidate]) -> list[Advice]:
    found = []
    for each in candidates:
        status = each.solution.status
        if status != "converged":
            text = f"{each.name} is {status} ({status.help}): its evidence is as rough"
            found.append(Advice(str(status), text, each.name))
        for name, (prior, after) in each.unknowns.items():
            (m, variance), (mean, left) = prior.latent_moments, after.latent_moments
            down = (m - mean) / math.sqrt(variance)
            if prior.positive and each.kind != "exact" and down > TOWARDS_ZERO and left > OPEN**2 * variance:
                text = f"{each.name}: {name} goes to its bound, zero, where the evidence ({each.kind}) is rough"
                found.append(Advice("bound", f"{text}; try the equation without {name} as a candidate", each.name))
        if any(sigma.origin != "given" for _, sigma in _measured(each.solution)):
            text = f"{each.name}: its evidence is that of the noise level found for it, not of the noise unknown"
            found.append(Advice("noise", f"{text}; try a sigma in ff.Observations", each.name))
    return found


def _about_start(candidates: Sequence[Candidate]) -> list[Advice]:
    """Whether all can have one prior of the start."""
    used = list(dict.fromkeys(str(each.solution.settings.get("method")) for each in candidates))
    if len(used) == 1:
        return []
    text = f"priors of the start differ, as methods do ({', '.join(used)}): where it is not told, so do the evidences"
    return [Advice("start", f"{text}; try one method for all")]


def _about_priors(candidates: Sequence[Candidate], odds: Array) -> list[Advice]:
    """Unknown numbers whose prior, half or twice as wide, would make another candidate the first."""
    levels = np.array([each.level for each in candidates]) + odds
    winner, found = int(np.argmax(levels)), []
    for index, each in enumerate(candidates):
        for (name, (prior, after)), factor in product(each.unknowns.items(), FACTORS):
            changed = levels.copy()
            changed[index] += moved_level(prior, replace(prior, std=factor * prior.spread), after)
            if int(np.argmax(changed)) != winner:
                first = candidates[int(np.argmax(changed))].name
                wide = f"with {FACTORS[factor]} the std of the prior of {name} in {each.name}"
                text = f"the order hangs on a prior: {wide} ({factor * prior.spread:.3g}), {first} would be the first"
                found.append(Advice("vague-prior", f"{text}; state what is known of {name}", each.name))
    return found


def moved_level(prior: Unknown, other: Unknown, after: Unknown) -> float:
    """What another prior of a number does to the log evidence: the log of the posterior mean of the ratio of both
    priors, which is exact for a Gaussian posterior of the number (or of its logarithm)."""
    (m, s), (n, t), (mean, v) = prior.latent_moments, other.latent_moments, after.latent_moments
    curvature, slope, level = 1.0 / t - 1.0 / s, n / t - m / s, n * n / t - m * m / s
    precision = max(1.0 / v + curvature, 1e-12 / v)
    quadratic = (mean / v + slope) ** 2 / precision - mean * mean / v - level
    return 0.5 * (math.log(s / t) - math.log(v * precision) + quadratic)


# -- what is told


def _table(candidates: Sequence[Candidate], odds: Array, advice: Sequence[Advice]) -> xr.Dataset:
    import xarray as xr

    levels = np.array([each.level for each in candidates])
    coefficients = list(dict.fromkeys(name for each in candidates for name in each.solution.problem.unknowns))
    numbers = np.full((4, len(candidates), len(coefficients)), np.nan)
    for i, each in enumerate(candidates):
        for name, after in each.solution.parameters.items():
            numbers[:, i, coefficients.index(name)] = after["mean"], after["std"], *after["interval"]
    sets = [s.name for s in candidates[0].solution.problem.statements if s.kind == "observation"]
    data: dict[str, Any] = {
        "log_evidence": ("name", levels), "probability": ("name", special.softmax(levels + odds)),
        "evidence": ("name", [each.kind for each in candidates]),
        "status": ("name", [str(each.solution.status) for each in candidates]),
        "misfit": (("name", "measurements"), np.array([_misfits(each.solution) for each in candidates])),
    }  # fmt: skip
    for key, values in zip(("mean", "std", "lower", "upper"), numbers, strict=True):
        data[f"coefficient_{key}"] = (("name", "coefficient"), values)
    coords = {"name": [each.name for each in candidates], "coefficient": coefficients, "measurements": sets}
    return xr.Dataset(data, coords, {"advice": list(dict.fromkeys(entry.text for entry in advice))})


def _measured(solution: Solution) -> list[tuple[Statement, Sigma]]:
    """Data sets with the sigmas that were used."""
    statements, model = solution.problem.statements, solution.model
    if model is None:  # by the map: in its settings
        found = dict(solution.settings.get("sigma", ()))
        sigmas = [
            Sigma(found[s.name], "estimated") if s.sigma is None else Sigma(s.sigma, "given")
            for s in statements if s.kind == "observation"
        ]  # fmt: skip
        return list(zip((s for s in statements if s.kind == "observation"), sigmas, strict=True))
    pairs = zip(statements, model.sigmas, strict=True)
    return [(statement, sigma) for statement, sigma in pairs if statement.kind == "observation"]


def _misfits(solution: Solution) -> list[float]:
    """Of every data set, the root mean square distance of the mean from the values in sigmas; NaN of averages."""
    found = []
    for statement, sigma in _measured(solution):
        assert statement.points is not None
        mean = solution.posterior.predict(statement.points, statement.relation.text, points=True)["mean"].values
        distance = (mean - statement.target) / sigma.value
        found.append(math.nan if statement.stencil else float(np.sqrt(np.mean(distance**2))))
    return found

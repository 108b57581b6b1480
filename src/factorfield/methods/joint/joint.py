"""One Gaussian over all weights: every factor sends a rank-one message, and all messages are added at once.

In whitened weights v = (w - prior mean) / prior sd, linearised factors say J v = r +- 1, and the belief is
exp(-1/2 |v|^2 - 1/2 |J v - r|^2). An iteration projects (BLAS 2), linearises in jet space, sums J'J by symmetric rank
updates over blocks of rows (BLAS 3) and factorises. Linear models take one step. Nonlinear ones

  1. by tangents at the mean (Gauss-Newton), steps halved until the negative log joint does not rise; its end is the
     Laplace approximation (`linearisation="taylor"`, method="laplace");
  2. then, by default, by the best line under the belief itself (posterior linearisation), steps halved until the
     variational free energy F(q) = E_q[-log joint] - entropy(q) does not rise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield import threads
from factorfield.errors import Advice, expected
from factorfield.messages.gaussian import Dense, Diagonal, LowRank, Message
from factorfield.methods import taken
from factorfield.methods.advice import (
    UNFOLLOWED,
    contradictions,
    error_misfits,
    free_directions,
    is_missed,
    unconstrained,
    unfollowed,
)
from factorfield.methods.continuation import stages
from factorfield.methods.joint.belief import (
    Gaussian,
    between,
    condition,
    divergence,
    free_energy,
    lines_under,
    log_evidence,
    negative_log_joint,
    onto_equation,
    quadratic,
    sampled_change,
    starting_lines,
    starting_place,
    tangents,
    unwhitened,
)  # fmt: skip
from factorfield.methods.joint.resolution import (
    answered,
    is_helping,
    numerical_error,
    richer,
    with_held_coefficients,
)
from factorfield.methods.joint.searched import evidence_of, is_searched, near_numbers, search_numbers
from factorfield.methods.marginal import MARGINAL, UNSETTLED, Marginal, elsewhere
from factorfield.methods.noise import next_sigmas, of_block
from factorfield.methods.resolution import NumericalError
from factorfield.methods.starts import HELD, best_of, ends_of, start_values
from factorfield.model.activation import Identity
from factorfield.model.block import held_names, holding_model, relinearised
from factorfield.model.choices import HOLDS
from factorfield.model.factors import FactorGroup
from factorfield.model.linearisation import Linearised
from factorfield.model.model import BlockModel, Model
from factorfield.model.searched import latents, number_coordinates
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.progress import Progress
from factorfield.solution import Solution, Status, unresolved

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
EXACT_CONDITION = (
    1e6  # a linear problem is exact: Cholesky keeps ten digits of the answer below this, QR takes over above
)
ITERATED_CONDITION = 1e12  # a linearised one is not: Cholesky may keep four
STARTED = 50.0  # tangents stop at a promised gain of this many tolerances when posterior linearisation follows
NEARBY = 10.0  # promised gain, in nats, below which it is worth asking whether the belief has settled already
SHORTEST_STEP = 1e-6
FOLLOWED = 5  # factorisations for bringing the fields back onto the equation
STALLED = 1.0  # nats: a refinement that wants to move farther and cannot has not converged
LARGER = (1e3, 1e2, 1e1, 1.0)  # sigmas of the equations, one search after the other, where the plain one stalls


# what the conditioning of the problem asked for, as settings tell it
PATHS = {Dense: "Dense", Message: "SquareRoot", LowRank: "LowRank"}


@dataclass(frozen=True)
class Stall:
    """Why a search ended before it converged, and the gain in nats that it was promised last."""

    text: str
    promised: float


@dataclass
class Trace:
    """How a search went."""

    negative_log_joint: list[float] = field(default_factory=list)
    free_energy: list[float] = field(default_factory=list)
    iterations: int = 0
    refinement: float = math.inf  # KL that posterior linearisation would add, estimated from a sample of factors
    evaluations: int = 0  # of the marginal likelihood
    searched: Mapping[str, float] = field(default_factory=dict)  # latent values found on it

    def told(self) -> dict[str, object]:
        left_out = {"refinement"} if self.refinement == math.inf else set()
        left_out |= {"evaluations", "searched"} if not self.evaluations else set()
        return {key: value for key, value in asdict(self).items() if key not in left_out}


@dataclass(frozen=True)
class Joint:
    """Settings. `linearisation`: "moments" (under the belief) or "taylor" (at the mean: Laplace).

    tolerance      of the numerical error, relative to the field: modes chosen automatically grow until it is met
    step_tolerance stop when a step promises to gain less than this in log joint or free energy (nats)
    continuation   a parameter that grows to its value in four passes, None: the model's choice, "": none
    starts         so many searches from unknowns spread over their prior; the most probable end is kept
    adapt          may modes grow that were chosen automatically, and noise levels be estimated?

    A search begins at the prior mean, or at the model's `first_weights`.
    """

    linearisation: Literal["moments", "taylor"] = "moments"
    iterations: int = 50
    tolerance: float = 1e-5
    step_tolerance: float = 1e-3
    continuation: str | None = None
    starts: int = 1
    adapt: bool = True

    model_for = staticmethod(holding_model)

    def __post_init__(self) -> None:
        if self.linearisation not in ("moments", "taylor"):
            raise expected("linearisation 'moments' or 'taylor'", self.linearisation, "'moments'")
        if min(self.iterations, self.starts) < 1 or not min(self.tolerance, self.step_tolerance) > 0.0:
            received = f"{self.iterations}, {self.starts}, {self.tolerance}, {self.step_tolerance}"
            wanted = "iterations and starts >= 1, tolerance and step_tolerance > 0"
            raise expected(wanted, received, "tolerance=1e-5")

    @property
    def name(self) -> str:
        return "joint" if self.linearisation == "moments" else "laplace"

    def run(self, model: Model, progress: Progress | None = None) -> Solution:
        block = taken(model, BlockModel, self.name)
        with threads.suited_to(model.size):
            several = self.starts > 1 and not block.is_linear and block.first_weights is None
            return self._run_several(block, progress) if several else self._run(block, progress)

    def refine(self, model: Model, solution: Solution) -> BlockModel | None:
        """The next model: more modes along the axes that need them, else a better response to errors of walls, else
        better noise levels; None: none of these."""
        block, posterior = taken(solution.model, BlockModel, self.name), solution.posterior
        assert isinstance(posterior, GaussianPosterior)
        error = solution.trace.get("numerical_error", 0.0)
        better = None
        if error > self.tolerance and is_helping(block, error):
            better = richer(block, solution.trace["numerical_error_along"], self.tolerance)
        better = better or relinearised(block, posterior.weight_mean)
        better = better or self._elsewhere(block, solution)
        if better is not None:
            return better
        sigmas = next_sigmas(block, of_block(block, posterior))
        return None if sigmas is None else block.with_sigmas(sigmas)

    def _elsewhere(self, model: BlockModel, solution: Solution) -> BlockModel | None:
        """Where measurements are missed, the marginal likelihood may have a higher maximum: a search from there."""
        if not is_missed(solution) or not is_searched(model):
            return None
        coordinates = number_coordinates(model.problem)
        with threads.suited_to(model.size):
            better = elsewhere(evidence_of(model), coordinates, solution.trace["searched"], len(coordinates))
        return None if better is None else replace(model, start=better)

    def _run_several(self, model: BlockModel, progress: Progress | None) -> Solution:
        by_numbers = is_searched(model)

        def search(values: Mapping[str, float]) -> Solution:
            if by_numbers:
                return self._run(replace(model, start=values), progress)
            start = self._held(model, values) if values else None
            return self._run(replace(model, first_weights=start), progress)

        def merit(solution: Solution) -> float:
            return -(solution.log_evidence or 0.0) if by_numbers else -model.log_joint(solution.posterior.weight_mean)

        found = ends_of(start_values(model.problem, self.starts), search)
        best, said, advice = best_of([(merit(solution), solution.parameters) for solution in found])
        status = Status(str(found[best].status), f"{found[best].status.help}; {said}")
        return replace(found[best], status=status, advice=(*(found[best].advice or ()), *advice))

    def _held(self, model: BlockModel, values: Mapping[str, float]) -> Array:
        """Weights that suit unknowns held at given values: where a search from there begins."""
        mean, variance = np.array(model.prior.mean), np.array(model.prior.std) ** 2
        for name, value in values.items():
            at = model.representation.latents[name].block.start
            mean[at], variance[at] = value, HELD**2 * variance[at]
        held = replace(model, prior=Diagonal.from_moments(mean, variance), first_weights=None)
        belief, _ = replace(self, linearisation="taylor")._iterate(held, Trace(), None)
        return unwhitened(held, belief.mean)

    def _run(self, model: BlockModel, progress: Progress | None) -> Solution:
        begin = time.perf_counter()
        trace = Trace()
        evidence: Callable[[], float | None]
        marginal: Marginal | None = None
        if is_searched(model):
            found, posterior = search_numbers(model, progress)
            marginal = found
            trace.evaluations, path = found.evaluations, PATHS[Message]
            trace.searched = latents(number_coordinates(model.problem), found.mean)
            status = Status("converged", MARGINAL) if found.settled else Status("max-iterations", UNSETTLED)
            evidence = partial(float, found.level)
        else:
            belief, status = self._found(model, trace, progress)
            mean = model.prior.mean + model.prior.std * belief.mean
            root = model.prior.std[:, None] * belief.root
            posterior = GaussianPosterior(model.problem, model.representation, model.noise, mean, root)
            path, evidence = PATHS[type(belief)], partial(log_evidence, model, belief.mean)
        solved = time.perf_counter()
        told: dict[str, object] = trace.told()
        error = self._numerical_error(model, posterior, marginal) if status != "diverged" else None
        if error is not None:
            posterior = replace(posterior, numerical=error.root)
            told |= {"numerical_error": error.relative, "numerical_error_along": dict(error.axes)}
            status = self._judged(status, model, error)
        timings = {"solve": solved - begin, "compare": time.perf_counter() - solved}
        settings = {**model.settings, "method": self.name, "path": path, "tolerance": self.tolerance}
        advice = (*model.advice, *advice_about(model, posterior))
        return Solution(posterior, status, told, timings, settings, model=model, advice=advice, evidence=evidence)

    def _numerical_error(
        self, model: BlockModel, posterior: GaussianPosterior, found: Marginal | None
    ) -> NumericalError | None:
        """By the same problem with fewer modes; None for the paper's model, which is meant as it is, and for other
        ansatzes than fields linear in their weights."""
        form = next(iter(model.representation.forms.values()))
        plain = isinstance(form.activation, Identity) and len(form.latents) == 1
        if model.follows_protocol or not plain:
            return None

        held = bool(found is None and (model.problem.unknowns or model.problem.functions))

        def mean(coarse: BlockModel) -> Array:
            if found is not None:
                return near_numbers(coarse, model, found)
            own = with_held_coefficients(coarse, model, posterior.weight_mean) if held else coarse
            belief, _ = self._found(own, Trace(), None)
            return unwhitened(own, belief.mean)

        error = numerical_error(model, posterior.weight_mean, posterior.weight_std, mean)
        return replace(error, root=answered(model, posterior, error.root)) if held and error else error

    def _judged(self, status: Status, model: BlockModel, error: NumericalError) -> Status:
        if status != "converged":
            return status
        modes = " x ".join(str(count) for count in model.modes.values())
        if error.relative <= self.tolerance:
            return Status("converged", f"{status.help}; numerical error {error.relative:.1g} of the field")
        return unresolved(error.relative, self.tolerance, f"{modes} modes", "modes")

    def _found(self, model: BlockModel, trace: Trace, progress: Progress | None) -> tuple[Gaussian, Status]:
        """The Gaussian of all weights together."""
        if not model.is_linear:
            return self._iterate(model, trace, progress)
        trace.iterations = 1
        belief, _ = condition(model, tangents(model, model.prior.mean), np.zeros(model.size), EXACT_CONDITION)
        return belief, Status("converged", "linear and Gaussian: the posterior is exact")

    def _enough(self, model: BlockModel) -> float:
        """The KL between successive beliefs, over all weights together, at which posterior linearisation stops."""
        return self.step_tolerance * max(10.0, 0.02 * model.size)

    def _iterate(self, model: BlockModel, trace: Trace, progress: Progress | None) -> tuple[Gaussian, Status]:
        passes = stages(model, self.continuation) if model.first_weights is None else [model]
        start: list[Linearised] | None = None
        if model.first_weights is None:
            position = starting_place(passes[0])
            start = starting_lines(passes[0], position)
        else:
            position = (model.first_weights - model.prior.mean) / model.prior.std
        for stage in passes[:-1]:  # an early pass has to reach the next one's neighbourhood
            belief, _ = self._descend(stage, position, start, trace, progress, 1.0)
            position, start = belief.mean, None
        belief, stall = self._descend(model, position, start, trace, progress, None)
        if stall is not None and stall.promised > STALLED and not model.follows_protocol:
            belief, stall = self._by_sigmas(model, belief, stall, trace, progress)
        if self.linearisation == "moments" and not trace.refinement < self._enough(model):
            belief, stall = self._refined(model, belief, stall, trace, progress)
        if not np.all(np.isfinite(belief.mean)):
            return belief, Status("diverged")
        if stall is not None:
            return belief, Status("max-iterations", stall.text)
        said = f"a further step would change the log probability by less than {self.step_tolerance:g}"
        return belief, Status("converged", f"the search came to rest: {said}")

    def _refined(
        self, model: BlockModel, belief: Gaussian, stall: Stall | None, trace: Trace, progress: Progress | None
    ) -> tuple[Gaussian, Stall | None]:
        """The belief refined; with unknown coefficients only where it still is on the equations."""
        refined, told = self._refine(model, belief, trace, progress)
        if len(field_weights(model)) == model.size:
            return refined, told
        # lines over the uncertainty of coefficients may leave an equation that bends with them: tangents do not
        if told is None and not followed(model, refined.mean) > UNFOLLOWED > followed(model, belief.mean):
            return refined, stall
        return belief, stall

    def _by_sigmas(
        self, model: BlockModel, belief: Gaussian, stall: Stall, trace: Trace, progress: Progress | None
    ) -> tuple[Gaussian, Stall | None]:
        """Where the search stalls: the equations first with larger sigmas, which leave it more room, then with less."""
        position = starting_place(model) if model.first_weights is None else belief.mean
        for factor in LARGER:
            eased = replace(model, groups=tuple(_with_larger_sigma(group, factor) for group in model.groups))
            attempt = Trace()
            found, again = self._descend(eased, position, None, attempt, progress, 1.0 if factor > 1.0 else None)
            position = found.mean
            trace.iterations += attempt.iterations
        if not negative_log_joint(model, found.mean) < negative_log_joint(model, belief.mean):
            return belief, stall
        trace.negative_log_joint, trace.refinement = attempt.negative_log_joint, attempt.refinement
        return found, again

    def _descend(
        self, model: BlockModel, position: Array, start: list[Linearised] | None, trace: Trace,
        progress: Progress | None, tolerance: float | None,
    ) -> tuple[Gaussian, Stall | None]:  # fmt: skip
        """Gauss-Newton on the negative log joint from a position in whitened weights.

        `tolerance` None: as far as asked, or to the neighbourhood of the refinement that follows.
        """
        refining = tolerance is None and self.linearisation == "moments"
        least = tolerance or (STARTED if refining else 1.0) * self.step_tolerance
        merit, fields = negative_log_joint(model, position), field_weights(model)
        for _ in range(self.iterations):
            lines = start or tangents(model, unwhitened(model, position))
            start = None
            # a step may be inexact, the line search judges it
            belief, rcond = condition(model, lines, position, math.inf)
            trace.iterations += 1
            trace.negative_log_joint.append(merit)
            step = belief.mean - position
            promised = 0.5 * quadratic(belief, step)  # what the linearised factors say the step gains
            if progress is not None:
                progress(f"iteration {trace.iterations}, promised gain {promised:.1e}", 0.5)
            near = promised < (NEARBY if refining else least)
            if near and refining:  # would the next belief, by best lines under this one, be any different?
                trace.refinement = sampled_change(model, belief, lines, position)
                near = trace.refinement < self._enough(model) or promised < least
            if near:
                exact = rcond * ITERATED_CONDITION > 1.0
                return belief if exact else condition(model, lines, position, ITERATED_CONDITION)[0], None
            found = self._line_search(model, position, step, merit, fields)
            if found is None:
                text = f"a step promises {promised:.2g} in log probability, and no part of it gains any"
                return belief, Stall(f"the search stalls: {text}", promised)
            position, merit = found
        text = f"{self.iterations} iterations came first: the last step promised {promised:.2g} in log probability"
        return belief, Stall(text, promised)

    def _line_search(
        self, model: BlockModel, position: Array, step: Array, merit: float, fields: Indices
    ) -> tuple[Array, float] | None:
        """A step that gains; where the equation bends away from it, the fields are brought back onto it first."""
        length = 1.0
        while length > SHORTEST_STEP:
            candidate = position + length * step
            value = negative_log_joint(model, candidate)
            if len(fields) < model.size and not value < 0.5 * merit:
                candidate, value = onto_equation(model, candidate, fields, FOLLOWED)
            if value <= merit:
                return candidate, value
            length *= 0.5
        return None

    def _refine(
        self, model: BlockModel, belief: Gaussian, trace: Trace, progress: Progress | None
    ) -> tuple[Gaussian, Stall | None]:
        """Posterior linearisation from a belief, accepted only while the free energy falls."""
        lines = lines_under(model, belief)
        merit = free_energy(model, belief, lines)
        if not math.isfinite(merit):  # a function of a field that has no value within its uncertainty
            return belief, None
        trace.free_energy.append(merit)
        for _ in range(self.iterations):
            proposal, _ = condition(model, lines, belief.mean, ITERATED_CONDITION)
            trace.iterations += 1
            change = divergence(proposal, belief)
            if progress is not None:
                progress(f"refinement {len(trace.free_energy)}, KL to the last belief {change:.1e}", 0.8)
            if change < self._enough(model):  # the free energy is flat here: nothing left to judge
                return proposal, None
            found = next(_better(model, belief, proposal, merit), None)
            if found is None:  # not even a short step helps: the belief is as good as the free energy can tell
                text = f"the refinement would move the belief by {change:.2g}, and no part of that gains anything"
                return belief, Stall(text, change) if change > STALLED else None
            belief, lines, merit = found
            trace.free_energy.append(merit)
        text = f"{self.iterations} refinements came first: the last moved the belief by {change:.2g}"
        return belief, Stall(text, change)


def Laplace(**options: Any) -> Joint:
    """method="laplace": Joint with tangents at the mean."""
    if "linearisation" in options:
        raise expected("laplace without linearisation=, which it sets", options["linearisation"], "method='joint'")
    return Joint(linearisation="taylor", **options)


def _better(
    model: BlockModel, belief: Gaussian, proposal: Gaussian, merit: float
) -> Iterator[tuple[Gaussian, list[Linearised], float]]:
    """Beliefs on the way to a proposal whose free energy is not larger, the farthest first, with their best lines."""
    for length in (1.0, 0.25, 0.0625, 0.015625):
        try:
            candidate = proposal if length == 1.0 else between(belief, proposal, length)
            lines = lines_under(model, candidate)
            value = free_energy(model, candidate, lines)
        except linalg.LinAlgError:  # of two beliefs that differ by more than rounding leaves of their sum
            continue
        if value <= merit:
            yield candidate, lines, value


def field_weights(model: BlockModel) -> Indices:
    """Weights of the fields: all but those of unknown coefficients and of the errors of starts and walls."""
    own = np.ones(model.size, bool)
    for name in model.representation.forms.keys() - model.problem.fields:
        own[model.representation.latents[name].block] = False
    return np.flatnonzero(own)


def followed(model: BlockModel, position: Array) -> float:
    """By how many sigmas the equations are missed, root mean square of the worst one."""
    weights = unwhitened(model, position)
    missed = [group.misfit(weights) for group in model.groups if group.statement.kind == "equation"]
    return max(float(np.sqrt(np.mean(misfit**2))) for misfit in missed)


def _with_larger_sigma(group: FactorGroup, factor: float) -> FactorGroup:
    return replace(group, sigma=factor * group.sigma) if group.statement.kind == "equation" else group


# -- what a user should know


def advice_about(model: BlockModel, posterior: GaussianPosterior) -> Iterator[Advice]:
    """Directions that neither data nor equation settled, groups that contradict the rest, modes that are too few."""
    if model.follows_protocol:
        return
    ratio = (posterior.weight_std / model.prior.std) ** 2
    for name in model.representation.forms.keys() - model.problem.fields:
        ratio[model.representation.latents[name].block] = 0.0
    if ratio.sum() >= 0.5:
        yield free_directions(model.problem, f"about {ratio.sum():.0f} of {model.size} details of the field are")
    yield from unconstrained(model.problem, posterior)
    found = error_misfits(model, posterior.mean)
    held = held_names(model)
    for group in (group for group in model.groups if group.statement.noise is None):
        # what holds by default is missed by the numerical error, which is told by itself
        misfit = group.misfit(posterior.mean) * (HOLDS if group.name in held else 1.0)
        total = float(misfit @ misfit)
        if group.statement.kind == "observation" and group.name in model.given:
            found[group.name] = total, group.count
        elif total > UNFOLLOWED**2 * group.count:
            yield unfollowed(group.name, float(np.sqrt(total / group.count)))
    yield from contradictions(found, posterior)

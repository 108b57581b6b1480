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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from factorfield import threads
from factorfield.errors import expected, overheard, repeat
from factorfield.messages.gaussian import Diagonal
from factorfield.methods.advice import UNFOLLOWED, contradictions, free_directions, unconstrained, unfollowed
from factorfield.methods.continuation import stages
from factorfield.methods.joint.belief import (
    Gaussian,
    between,
    condition,
    divergence,
    free_energy,
    laplace_evidence,
    lines_under,
    negative_log_joint,
    quadratic,
    sampled_change,
    starting_lines,
    tangents,
    unwhitened,
)  # fmt: skip
from factorfield.methods.joint.modes import richer
from factorfield.methods.starts import best_of, start_values
from factorfield.model.factors import Linearised
from factorfield.model.model import Model, observation_noise
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.progress import Progress
from factorfield.solution import Solution, Status

Array = NDArray[np.float64]
EXACT_CONDITION = (
    1e6  # a linear problem is exact: Cholesky keeps ten digits of the answer below this, QR takes over above
)
ITERATED_CONDITION = 1e12  # a linearised one is not: Cholesky may keep four
STARTED = 50.0  # tangents stop at a promised gain of this many tolerances when posterior linearisation follows
NEARBY = 10.0  # promised gain, in nats, below which it is worth asking whether the belief has settled already
HELD = 1e-4  # share of the prior's sd within which an unknown counts as held


@dataclass(frozen=True)
class Joint:
    """Settings. `linearisation`: "moments" (under the belief) or "taylor" (at the mean: Laplace).

    tolerance      stop when a step promises to gain less than this in log joint or free energy (nats)
    continuation   a parameter that grows to its value in four passes, None: the model's choice, "": none
    start          weights to start from, in one pass; None starts from the prior mean
    starts         so many searches from unknowns spread over their prior; the most probable end is kept
    """

    linearisation: Literal["moments", "taylor"] = "moments"
    iterations: int = 50
    tolerance: float = 1e-3
    continuation: str | None = None
    start: Array | None = None
    starts: int = 1

    def __post_init__(self) -> None:
        if self.linearisation not in ("moments", "taylor"):
            raise expected("linearisation 'moments' or 'taylor'", self.linearisation, "'moments'")
        if self.iterations < 1 or not self.tolerance > 0.0 or self.starts < 1:
            received = f"{self.iterations}, {self.tolerance}, {self.starts}"
            raise expected("iterations >= 1, tolerance > 0 and starts >= 1", received, "iterations=50")

    @property
    def name(self) -> str:
        return "joint" if self.linearisation == "moments" else "laplace"

    def run(self, model: Model, progress: Progress | None = None) -> Solution:
        while True:
            with threads.suited_to(model.size), overheard() as told:
                several = self.starts > 1 and not model.is_linear
                solution = self._run_several(model, progress) if several else self._run(model, progress)
            more = richer(model, solution) if self.start is None else None
            if more is None:
                repeat(told)
                return solution
            model = more

    def _run_several(self, model: Model, progress: Progress | None) -> Solution:
        found, ends, advice = [], [], []
        for values in start_values(model.problem, self.starts):
            start = self._held(model, values) if values else self.start
            with overheard() as told:
                found.append(replace(self, starts=1, start=start)._run(model, progress))
            advice.append(told)
            ends.append((-model.log_joint(found[-1].posterior.weight_mean), found[-1].parameters))
        best, said = best_of(ends, 4)
        repeat(advice[best])
        status = found[best].status
        return replace(found[best], status=Status(str(status), f"{status.help}; {said}"))

    def _held(self, model: Model, values: Mapping[str, float]) -> Array:
        """Weights that suit unknowns held at given values: where a search from there begins."""
        mean, variance = np.array(model.prior.mean), np.array(model.prior.std) ** 2
        for name, value in values.items():
            at = model.representation.latents[name].start
            mean[at], variance[at] = value, HELD**2 * variance[at]
        held = replace(model, prior=Diagonal.from_moments(mean, variance))
        trace: dict[str, Any] = {"negative_log_joint": [], "free_energy": [], "iterations": 0}
        belief, _ = replace(self, linearisation="taylor", starts=1, start=None)._iterate(held, trace, None)
        return unwhitened(held, belief.mean)

    def _run(self, model: Model, progress: Progress | None) -> Solution:
        begin = time.perf_counter()
        trace: dict[str, Any] = {"negative_log_joint": [], "free_energy": [], "iterations": 0}
        if model.is_linear:
            belief = condition(model, tangents(model, model.prior.mean), np.zeros(model.size), EXACT_CONDITION)
            status = Status("converged", "linear and Gaussian: the posterior is exact")
            trace |= {"iterations": 1, "log_evidence": laplace_evidence(model, belief)}
        else:
            belief, status = self._iterate(model, trace, progress)
        mean = model.prior.mean + model.prior.std * belief.mean
        root = model.prior.std[:, None] * belief.root
        timings = {"solve": time.perf_counter() - begin}
        posterior = GaussianPosterior(model.problem, model.representation, observation_noise(model), mean, root)
        advise(model, belief, posterior)
        settings = {**model.settings, "method": self.name, "path": type(belief).__name__}
        return Solution(posterior, status, trace, timings, settings)

    def _enough(self, model: Model) -> float:
        """The KL between successive beliefs, over all weights together, at which posterior linearisation stops."""
        return self.tolerance * max(10.0, 0.02 * model.size)

    def _iterate(self, model: Model, trace: dict[str, Any], progress: Progress | None) -> tuple[Gaussian, Status]:
        position, passes = np.zeros(model.size), stages(model, self.continuation)
        start: list[Linearised] | None = starting_lines(passes[0])
        if self.start is not None:
            position, passes, start = (self.start - model.prior.mean) / model.prior.std, [model], None
        refining = self.linearisation == "moments"
        for index, stage in enumerate(passes):
            last = index == len(passes) - 1
            # an early pass has to reach the next one's neighbourhood, and tangents that of the refinement
            tolerance = (STARTED if refining else 1.0) * self.tolerance if last else 1.0
            belief, done = self._descend(stage, position, start, trace, progress, tolerance, last and refining)
            position, start = belief.mean, None
        if refining and not trace.get("refinement", math.inf) < self._enough(model):
            belief, done = self._refine(model, belief, trace, progress)
        else:
            trace["log_evidence"] = laplace_evidence(model, belief)
        if not np.all(np.isfinite(belief.mean)):
            return belief, Status("diverged")
        if done:
            return belief, Status("converged", f"a further step would gain less than {self.tolerance:g} nats")
        return belief, Status("max-iterations")

    def _descend(
        self, model: Model, position: Array, start: list[Linearised] | None, trace: dict[str, Any],
        progress: Progress | None, tolerance: float, refining: bool,
    ) -> tuple[Gaussian, bool]:  # fmt: skip
        """Gauss-Newton on the negative log joint from a position in whitened weights."""
        merit = negative_log_joint(model, position)
        for _ in range(self.iterations):
            lines = start or tangents(model, unwhitened(model, position))
            start = None
            belief = condition(model, lines, position, math.inf)  # a step may be inexact, the line search judges it
            trace["iterations"] += 1
            trace["negative_log_joint"].append(merit)
            step = belief.mean - position
            promised = 0.5 * quadratic(belief, step)  # what the linearised factors say the step gains
            if progress is not None:
                progress(f"iteration {trace['iterations']}, promised gain {promised:.1e} nats", 0.5)
            near = promised < (NEARBY if refining else tolerance)
            if near and refining:  # would the next belief, by best lines under this one, be any different?
                trace["refinement"] = sampled_change(model, belief, lines, position)
                near = trace["refinement"] < self._enough(model) or promised < tolerance
            if near:
                return condition(model, lines, position, ITERATED_CONDITION, belief), True
            length = 1.0
            while True:
                candidate = position + length * step
                value = negative_log_joint(model, candidate)
                if value <= merit:
                    break
                length *= 0.5
                if length < 1e-6:
                    return belief, False
            position, merit = candidate, value
        return belief, False

    def _refine(
        self, model: Model, belief: Gaussian, trace: dict[str, Any], progress: Progress | None
    ) -> tuple[Gaussian, bool]:
        """Posterior linearisation from a belief, accepted only while the free energy falls."""
        lines = lines_under(model, belief)
        merit = free_energy(model, belief, lines)
        trace["free_energy"].append(merit)
        for _ in range(self.iterations):
            proposal = condition(model, lines, belief.mean, ITERATED_CONDITION)
            trace["iterations"] += 1
            trace["log_evidence"] = -merit
            change = divergence(proposal, belief)
            if progress is not None:
                progress(f"refinement {len(trace['free_energy'])}, KL to the last belief {change:.1e}", 0.8)
            if change < self._enough(model):  # the free energy is flat here: nothing left to judge
                return proposal, True
            length = 1.0
            while True:
                candidate = proposal if length == 1.0 else between(belief, proposal, length)
                new_lines = lines_under(model, candidate)
                value = free_energy(model, candidate, new_lines)
                if value <= merit:
                    break
                length *= 0.25
                if length < 1e-2:  # not even a short step helps: the belief is as good as the free energy can tell
                    return belief, True
            belief, lines, merit = candidate, new_lines, value
            trace["free_energy"].append(merit)
        return belief, False


def Laplace(**options: Any) -> Joint:
    """method="laplace": Joint with tangents at the mean."""
    if "linearisation" in options:
        raise expected("laplace without linearisation=, which it sets", options["linearisation"], "method='joint'")
    return Joint(linearisation="taylor", **options)


# -- what a user should know


def advise(model: Model, belief: Gaussian, posterior: GaussianPosterior) -> None:
    """Warn of directions that neither data nor equation settled, and of groups that contradict the rest."""
    if model.settings.get("model") == "paper":  # the paper's protocol leaves both as they are
        return
    ratio = np.array(belief.variance)  # of a weight's posterior variance to its prior's
    for name in (*model.problem.unknowns, *model.problem.functions):
        ratio[model.representation.latents[name].block] = 0.0
    if ratio.sum() >= 0.5:
        free_directions(model.problem, f"about {ratio.sum():.0f} of {model.size} directions are", 4)
    unconstrained(model.problem, posterior, 4)
    given = {s.name for s in model.problem.statements if s.sigma is not None and s.points is not None}
    exempt = {s.name for s in model.problem.statements if s.noise is not None}
    found: dict[str, tuple[float, int]] = {}
    for group in (group for group in model.groups if group.name not in exempt):
        value = group.relation.value(group.project(posterior.mean), group.parameters, group.points)
        total = float(np.sum(((value - group.target) / group.sigma) ** 2))
        if group.name in given:
            missed, count = found.get(group.name, (0.0, 0))
            found[group.name] = missed + total, count + group.count
        elif total > UNFOLLOWED**2 * group.count:
            unfollowed(group.name, float(np.sqrt(total / group.count)), 4)
    contradictions(found, 4)

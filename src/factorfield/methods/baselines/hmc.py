"""Hamiltonian Monte Carlo, the reference for all other methods (extra `baselines`: BlackJAX, ArviZ).

Chains start around the maximum of the posterior and move in the coordinates v with w = map + C v, C C' the inverse of
the Gauss-Newton Hessian there: unit masses in v are the dense mass matrix of the protocol in w. All chains of all
trajectories of a batch take the same number of leapfrog steps per proposal (drawn uniformly from 1..20), so that they
advance in lockstep and every gradient is a product of matrices. A run is `converged` only if split R-hat < 1.05 and
bulk ESS > 100 for every weight.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, needed
from factorfield.methods.baselines.density import Batch, Batched, Facts, Shape, Shared, double_precision, log_joint
from factorfield.methods.joint.joint import Laplace
from factorfield.methods.mean_field.mean_field import MeanField
from factorfield.model.model import BlockModel
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.posterior.sampled import SampledPosterior
from factorfield.progress import Progress
from factorfield.solution import Solution, Status

if TYPE_CHECKING:
    from jax import Array as JaxArray
    from jax.stages import Wrapped

    Carry = tuple["State", "Tuning"]
    Transition = tuple["State", tuple[JaxArray, JaxArray]]  # acceptance rate, divergence

Array = NDArray[np.float64]
A = TypeVar("A")
CHUNK = 50  # iterations per compiled call: between them progress is reported and an interrupt is noticed
MOST_STEPS = 20
LARGEST_RHAT, LEAST_ESS = 1.05, 100.0
FEWEST_DRAWS = 8  # per chain: split R-hat needs two halves of four
COLLAPSED = 1e-4  # a step size below this, in units of posterior standard deviations, moves nothing


@dataclass(frozen=True)
class HMC(Batched):
    """Settings. `iterations` per chain, `warmup` of them to tune the step size to acceptance 0.8 and not kept.

    kernel   "hmc" (leapfrog steps uniform on 1..20) or "nuts"
    """

    kernel: Literal["hmc", "nuts"] = "hmc"
    chains: int = 4
    iterations: int = 1000
    warmup: int = 250
    acceptance: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kernel not in ("hmc", "nuts"):
            raise expected("kernel 'hmc' or 'nuts'", self.kernel, "'hmc'")
        if self.chains < 1 or not 0 <= self.warmup < self.iterations or not 0.0 < self.acceptance < 1.0:
            received = f"chains={self.chains}, iterations={self.iterations}, warmup={self.warmup}"
            raise expected("chains >= 1, 0 <= warmup < iterations, 0 < acceptance < 1", received, "iterations=1000")

    name = "hmc"

    def _run(self, batch: Batch, progress: Progress | None) -> list[Solution]:
        begin = time.perf_counter()
        tops = [maximum(model) for model in batch.models]
        found = time.perf_counter()
        with double_precision():
            sampling = self._sample(batch, tops, progress)
        sampled = time.perf_counter()
        count = len(batch.models)
        timings = {
            "map": (found - begin) / count,
            "compile": sampling.compile_seconds,
            "sample": (sampled - found - sampling.compile_seconds) / count,
            "solve": (sampled - begin) / count,
        }
        return [self._solution(model, tops[i], sampling, i, timings) for i, model in enumerate(batch.models)]

    def _sample(self, batch: Batch, tops: Sequence[GaussianPosterior], progress: Progress | None) -> Sampling:
        jax = needed("jax", "baselines")
        count, size = len(tops), batch.models[0].size
        rng = np.random.default_rng(self.seed)
        start = 2.0 * rng.standard_normal((count, self.chains, size))
        start[:, 0] = 0.0
        centre, root = np.stack([top.mean for top in tops]), np.stack([top.root for top in tops])
        target = jax.tree.map(jax.numpy.asarray, Target(batch.shared, batch.facts(), centre, root))
        initialise, advance = kernels(batch.shapes, self.kernel, self.acceptance)
        key = jax.random.key(self.seed)
        first = min(1.0, size**-0.25)
        before = time.perf_counter()
        carry = initialise(start, key, first, target)
        sampling = Sampling(np.isfinite(np.asarray(carry[0].logdensity)).all(1))
        compiled = advance.lower(carry, key, 0, self.warmup, target).compile()
        sampling.compile_seconds = time.perf_counter() - before
        try:
            for done in range(0, self.iterations, CHUNK):
                key, own = jax.random.split(key)
                carry, (positions, accepted, divergent) = compiled(carry, own, done, self.warmup, target)
                keep = slice(max(self.warmup - done, 0), min(CHUNK, self.iterations - done))
                sampling.add(np.asarray(positions)[keep], np.asarray(accepted)[keep], np.asarray(divergent)[keep])
                sampling.step = np.exp(np.asarray(carry[1].log_step_size_avg))
                if progress is not None:
                    stage = "warm-up" if done < self.warmup else "sampling"
                    text = f"{stage}, step size {sampling.step.mean():.2g}"
                    progress(text, min(1.0, (done + CHUNK) / self.iterations))
        except KeyboardInterrupt:  # what was drawn is kept
            sampling.interrupted = True
        return sampling

    def _solution(
        self, model: BlockModel, top: GaussianPosterior, sampling: Sampling, index: int, timings: dict[str, float]
    ) -> Solution:
        whitened = sampling.draws(index)  # (chains, draws, weights)
        draws = top.mean + whitened @ top.root.T
        status, trace = judged(draws, sampling, index)
        kept = draws.reshape(-1, model.size) if draws.size else top.mean[None]
        settings = {
            **model.settings, "method": self.name, "kernel": self.kernel, "chains": self.chains,
            "draws": int(draws.shape[1]), "warmup": self.warmup, "method_seed": self.seed,
        }  # fmt: skip
        posterior = SampledPosterior(model.problem, model.representation, model.noise, kept)
        return Solution(posterior, status, trace, timings, settings, model=model, advice=model.advice)


@dataclass
class Sampling:
    """What the chains of a batch have produced so far; arrays are (iterations, trajectories, chains, ...)."""

    sound: Array  # per trajectory: is the log density finite at every start?
    positions: list[Array] = field(default_factory=list)
    accepted: list[Array] = field(default_factory=list)
    divergent: list[Array] = field(default_factory=list)
    step: Array = field(default_factory=lambda: np.zeros(0))
    compile_seconds: float = 0.0
    interrupted: bool = False

    def add(self, positions: Array, accepted: Array, divergent: Array) -> None:
        if len(positions):
            self.positions.append(positions)
            self.accepted.append(accepted)
            self.divergent.append(divergent)

    def draws(self, index: int) -> Array:
        """(chains, draws, weights) of one trajectory."""
        if not self.positions:
            return np.zeros((0, 0, 0))
        return np.concatenate([part[:, index] for part in self.positions]).swapaxes(0, 1)


def maximum(model: BlockModel) -> GaussianPosterior:
    """The maximum of the posterior with the Gauss-Newton covariance there; strong reactions try two starts."""
    tops = [Laplace().run(model).posterior]
    if model.continuation is not None:
        start = MeanField().run(model).posterior.weight_mean
        tops.append(Laplace().run(replace(model, first_weights=start)).posterior)
    best = max(tops, key=lambda top: model.log_joint(top.weight_mean))
    assert isinstance(best, GaussianPosterior)
    return best


class Target(NamedTuple, Generic[A]):
    """The posterior that chains move on, in the coordinates v with w = centre + root v."""

    shared: Shared[A]
    facts: tuple[Facts[A], ...]
    centre: A
    root: A


class State(Protocol):
    """BlackJAX's state of a chain."""

    position: JaxArray
    logdensity: JaxArray


class Tuning(Protocol):
    """BlackJAX's state of dual averaging."""

    log_step_size: JaxArray
    log_step_size_avg: JaxArray


def whitened_density(shapes: tuple[Shape, ...]) -> Callable[[JaxArray, Target[JaxArray]], JaxArray]:
    """The log density of v; its derivative is the gradient that `log_joint` returns."""
    jax = needed("jax", "baselines")

    def valued(v: JaxArray, target: Target[JaxArray]) -> tuple[JaxArray, JaxArray]:
        value, gradient = log_joint(shapes, target.shared, target.facts, target.centre + target.root @ v)
        return value, target.root.T @ gradient

    density = jax.custom_vjp(lambda v, target: valued(v, target)[0])
    density.defvjp(valued, lambda gradient, cotangent: (cotangent * gradient, None))
    return density


def transitions(shapes: tuple[Shape, ...], kernel: str) -> tuple[Callable[..., State], Callable[..., Transition]]:
    """States from positions, and one transition of every chain; both over trajectories and their chains."""
    jax = needed("jax", "baselines")
    blackjax = needed("blackjax", "baselines")
    density = whitened_density(shapes)
    dynamic = kernel == "hmc"
    if dynamic:
        move = blackjax.dynamic_hmc.build_kernel(
            integration_steps_fn=lambda key: jax.random.randint(key, (), 1, MOST_STEPS + 1)
        )
        state_axes = blackjax.mcmc.dynamic_hmc.DynamicHMCState(0, 0, 0, None)  # the number of steps is common
    else:
        move = blackjax.nuts.build_kernel()
        state_axes = blackjax.mcmc.hmc.HMCState(0, 0, 0)

    def start(v: JaxArray, key: JaxArray, target: Target[JaxArray]) -> State:
        module = blackjax.dynamic_hmc if dynamic else blackjax.nuts
        return module.init(v, lambda x: density(x, target), *([key] if dynamic else []))

    def one(key: JaxArray, state: State, step: JaxArray, target: Target[JaxArray]) -> Transition:
        state, info = move(key, state, lambda x: density(x, target), step, jax.numpy.ones_like(state.position))
        return state, (info.acceptance_rate, info.is_divergent)

    # vmap over chains, then over trajectories: designs and prior are common, the rest is per trajectory
    own: Target[int] = Target._make((None, 0, 0, 0))
    starts = jax.vmap(start, (0, None, None), state_axes)
    starts = jax.vmap(starts, (0, None, own), state_axes)
    moves = jax.vmap(one, (0, state_axes, None, None), (state_axes, (0, 0)))
    moves = jax.vmap(moves, (0, state_axes, 0, own), (state_axes, (0, 0)))
    return starts, moves


@lru_cache(maxsize=16)
def kernels(shapes: tuple[Shape, ...], kernel: str, acceptance: float) -> tuple[Wrapped, Wrapped]:
    """(initialise, advance by CHUNK iterations) for a batch, to be compiled."""
    jax = needed("jax", "baselines")
    starts, moves = transitions(shapes, kernel)
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    begin_tuning, tune, _ = dual_averaging_adaptation(acceptance, t0=10, gamma=0.05, kappa=0.75)

    def initialise(positions: JaxArray, key: JaxArray, step: float, target: Target[JaxArray]) -> Carry:
        tuning = jax.vmap(begin_tuning)(jax.numpy.full(len(positions), step))
        return starts(positions, key, target), tuning

    def advance(
        carry: Carry, key: JaxArray, done: int, warmup: int, target: Target[JaxArray]
    ) -> tuple[Carry, tuple[JaxArray, JaxArray, JaxArray]]:
        def iteration(
            carry: Carry, inputs: tuple[JaxArray, JaxArray]
        ) -> tuple[Carry, tuple[JaxArray, JaxArray, JaxArray]]:
            states, tuning = carry
            number, key = inputs
            tuned = number >= warmup
            step = jax.numpy.exp(jax.numpy.where(tuned, tuning.log_step_size_avg, tuning.log_step_size))
            keys = jax.random.split(key, states.position.shape[:2])
            states, (accepted, divergent) = moves(keys, states, step, target)
            moved = jax.vmap(tune)(tuning, accepted.mean(1))
            tuning = jax.tree.map(lambda old, new: jax.numpy.where(tuned, old, new), tuning, moved)
            return (states, tuning), (states.position, accepted, divergent)

        return jax.lax.scan(iteration, carry, (done + jax.numpy.arange(CHUNK), jax.random.split(key, CHUNK)))

    return jax.jit(initialise), jax.jit(advance)


def judged(draws: Array, sampling: Sampling, index: int) -> tuple[Status, dict[str, float]]:
    """The gate: is this a reference?"""
    trace: dict[str, float] = {"draws_per_chain": int(draws.shape[1]), "interrupted": sampling.interrupted}
    if not sampling.sound[index]:
        return Status(
            "diverged",
            "the log density is not finite at a starting point: check the data and sigmas, or start from "
            "method='joint'; only the starting maximum is kept",
        ), trace
    lead = "interrupted; " if sampling.interrupted else ""
    if not draws.size:
        return Status("diverged", f"{lead}no draw was kept: only the starting maximum is there"), trace
    accepted = np.concatenate([part[:, index] for part in sampling.accepted])
    divergences = int(np.concatenate([part[:, index] for part in sampling.divergent]).sum())
    step = float(sampling.step[index])
    trace |= {"acceptance": float(accepted.mean()), "divergences": divergences, "step_size": step}
    if step < COLLAPSED or not np.isfinite(step):
        return Status(
            "diverged", f"{lead}the step size collapsed to {step:.1e}: try a longer warm-up or larger sigmas"
        ), trace
    if draws.shape[1] < FEWEST_DRAWS:
        return Status(
            "max-iterations",
            f"{lead}{draws.shape[1]} draws per chain are too few for R-hat and ESS (at least {FEWEST_DRAWS}): "
            "try iterations=1000",
        ), trace
    rhat, ess = diagnostics(draws)
    trace |= {"rhat": rhat, "ess": ess}
    text = f"{lead}split R-hat {rhat:.3f}, bulk ESS {ess:.0f}, {divergences} divergences"
    if rhat < LARGEST_RHAT and ess > LEAST_ESS:
        return Status("converged", text), trace
    return Status(
        "max-iterations",
        f"{text}: not a reference (needs R-hat < {LARGEST_RHAT} and ESS > {LEAST_ESS:.0f}); try more iterations",
    ), trace


def diagnostics(draws: Array) -> tuple[float, float]:
    """The worst split R-hat and bulk ESS over the weights, by ArviZ, from draws (chains, draws, weights)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its next version on import
        arviz = needed("arviz", "baselines")
        data = arviz.convert_to_dataset({"w": draws})
        rhat, ess = arviz.rhat(data)["w"], arviz.ess(data, method="bulk")["w"]
    return float(np.max(np.asarray(rhat))), float(np.min(np.asarray(ess)))

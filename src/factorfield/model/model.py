"""Model: how a problem is represented - ansatz, basis, points, noise, prior. All that a comparison must share.

Every method takes a Model and only a Model. `BlockModel` (built in block.py, the paper's in
paper.py) has its factors over one weight vector; `WindowModel` (windowed.py) has windows of time, each with weights
of its own; `TreeModel` (tree.py) has local features, and factors that read few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice, ProblemError, expected
from factorfield.messages.gaussian import LOG_TWO_PI, Belief, Diagonal
from factorfield.model.choices import LABEL_NOISE, Sigma, observation_noise, shown
from factorfield.model.factors import FactorGroup
from factorfield.model.graded import GradedSpline
from factorfield.model.representation import Representation, layout
from factorfield.model.searched import Coordinate, StartSpectrum, number_coordinates
from factorfield.model.spectrum import Tail
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """What every model has; `settings` tells its choices to people and files."""

    problem: Problem
    representation: Representation
    sigmas: tuple[Sigma, ...]  # one per statement of the problem
    modes: Mapping[str, int]  # frequencies, polynomial degrees or cells per axis
    scale: float  # the field's typical size
    settings: Mapping[str, object]
    advice: tuple[Advice, ...] = ()
    held: Mapping[str, float] = field(default_factory=dict)  # unknown numbers that are no weights, at a value
    # latent values of coefficients and of the start's spectrum where a search begins, if not in the prior's middle
    start: Mapping[str, float] = field(default_factory=dict)

    @property
    def constants(self) -> Mapping[str, Any]:
        """What factors read besides weights: known numbers and tables, and the numbers that are held."""
        return {**self.problem.constants, **self.held}

    @property
    def size(self) -> int:
        return self.representation.size

    @property
    def noise(self) -> dict[str, float]:
        """Of one more measurement of each measured field."""
        return observation_noise(self.problem, self.sigmas)

    def with_sigmas(self, sigmas: Sequence[Sigma]) -> Self:
        settings = {**self.settings, "sigma": shown(self.problem, sigmas)}
        return replace(self, sigmas=tuple(sigmas), settings=settings)

    @cached_property
    def given(self) -> frozenset[str]:
        """Measurements, starts and walls whose sigma the user gave, for Gaussian noise."""
        pairs = zip(self.problem.statements, self.sigmas, strict=True)
        told = [s for s, sigma in pairs if sigma.origin == "given" and s.kind != "equation"]
        return frozenset(s.name for s in told if s.noise is None)


def log_noise(model: Model) -> float:
    """Minus the log of the largest density that the measurements could have: what their normalisers subtract."""
    total = 0.0
    for statement, sigma in zip(model.problem.statements, model.sigmas, strict=True):
        if statement.kind == "observation":
            each = np.broadcast_to(np.log(sigma.value), statement.target.shape)
            total += float(np.sum(each)) + 0.5 * len(statement.target) * LOG_TWO_PI
    return total


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockModel(Model):
    """Factor groups over one weight vector with an independent Gaussian prior."""

    prior: Diagonal  # of the weights
    groups: tuple[FactorGroup, ...]
    automatic: tuple[str, ...] = ()  # axes whose modes were chosen, and may prove too few
    collocation: Mapping[str, int] = field(default_factory=dict)  # points per axis that the user asked for
    continuation: str | None = None  # a parameter that grows to its value in several passes
    follows_protocol: bool = False  # the paper's: points and weights that nothing settles are meant
    first_weights: Array | None = None  # where a search begins, instead of the prior mean
    errors_before: tuple[float, ...] = ()  # numerical errors with fewer modes
    errors_at: Array | None = None  # where the response to errors of faces is linearised, instead of the prior mean

    @property
    def is_linear(self) -> bool:
        return all(group.relation.is_linear for group in self.groups)

    @property
    def factors(self) -> int:
        return sum(group.count for group in self.groups)

    def log_joint(self, weights: Array) -> float:
        """log p(weights) + log p(all factors | weights), constants included."""
        prior = float(np.sum(self.prior.log_density(weights)))
        return prior + sum(group.log_likelihood(weights) for group in self.groups)

    def with_sigmas(self, sigmas: Sequence[Sigma]) -> BlockModel:
        """Other sigmas, of the statements and of their factors."""
        values = {s.name: sigma.value for s, sigma in zip(self.problem.statements, sigmas, strict=True)}
        groups = tuple(replace(g, sigma=np.broadcast_to(values[g.name], g.target.shape)) for g in self.groups)
        return replace(super().with_sigmas(sigmas), groups=groups)

    def with_parameters(self, **values: float) -> BlockModel:
        """The same model with other constants; only for constants that no functional's rows depend on."""
        groups = []
        for group in self.groups:
            frozen = {
                str(symbol)
                for functional in group.relation.functionals
                for _, coefficient in functional.terms
                for symbol in coefficient.free_symbols
            }
            if frozen & set(values):
                raise expected(
                    "constants outside the merged functionals", ", ".join(frozen & set(values)), "a new model"
                )
            groups.append(replace(group, parameters={**group.parameters, **values}))
        return replace(self, groups=tuple(groups))

    def describe(self) -> str:
        """Groups, counts, functionals, weights and memory in a few lines."""
        lines = [f"{self.size} weights, {self.factors} factors, {self.memory / 2**20:.1f} MiB of design rows"]
        for name, form in self.representation.forms.items():
            basis = self.representation.latents[form.latents[0]].basis
            shape = " x ".join(f"{axis}:{size}" for axis, size in zip(basis.axes, basis.shape, strict=True)) or "1"
            rotated = "" if basis.rotation is None else f", rotated to {basis.size}"
            lines.append(f"  {name}: {len(form.latents)} unit(s) of {shape} features{rotated}, {form.activation.name}")
        for group in self.groups:
            reads = ", ".join(str(functional) for functional in group.relation.functionals)
            kind = "linear" if group.relation.is_linear else "nonlinear"
            sigma = f"{group.sigma.min():.3g}" + ("" if np.ptp(group.sigma) == 0 else f"..{group.sigma.max():.3g}")
            lines.append(f"  {group.name}: {group.count} {kind} factors, sigma {sigma}, reading {reads}")
        return "\n".join(lines)

    @property
    def memory(self) -> int:
        """Bytes of the design rows."""
        return sum(group.nbytes for group in self.groups)


@dataclass(frozen=True)
class Traits:
    """What the equations and conditions are like: which short cuts are exact."""

    linear: bool
    autonomous: bool  # nothing depends on time explicitly: windows of equal length have equal factors
    separable: bool  # linear with constant coefficients on periodic axes: waves do not mix
    steady_windows: bool  # waves keep their size: windows need not become longer
    has_later_data: bool  # is anything said after the start besides the equation, or is a coefficient unknown?
    starts_by_formula: bool  # not by labels
    asked_too_often: bool  # equations and walls, for what they leave unmet not to count against uncertain walls


@dataclass(frozen=True, eq=False)
class Space:
    """Collocation points along the space axes, and what equations are projected on (`projections` in windowed.py)."""

    points: Mapping[str, Array]
    projections: Mapping[str, Array]


@dataclass(frozen=True)
class Asked:
    """What the user asked of the windows; None: chosen."""

    degree: int | None = None
    edges: tuple[float, ...] | None = None
    cells: bool = False  # is their number given?


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowModel(Model):
    """One window's representation and prior; time is moved along. `edges` None: windows are found while solving."""

    prior: Diagonal  # of the weights
    degree: int
    traits: Traits
    space: Space
    tails: Mapping[str, Tail]  # modes left out, by field
    # copies of the wall conditions at t = start, so that the first state meets them
    held_at_start: tuple[Statement, ...]
    asked: Asked = Asked()
    growing: tuple[str, ...] = ()  # space axes whose modes were chosen without data, and may prove too few
    first_level: int = 0  # the first window that is tried is the horizon / 2^level
    edges: tuple[float, ...] | None = None
    jumps: tuple[float, ...] = ()  # instants when something known jumps: each begins a window
    spectrum: StartSpectrum | None = None  # of a start that only later measurements tell
    path: tuple[Array, ...] = ()  # weights of each window where its factors are linearised first
    cells: tuple[GradedSpline, ...] = ()  # of each window, where local features follow the field
    holds: bool = False  # do equations and starts without a sigma of their own hold to rounding?
    process: Mapping[str, Array] = field(default_factory=dict)  # by field over cells, a root of its start's prior

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What is found on the marginal likelihood: held numbers and the start's spectrum."""
        numbers = number_coordinates(self.problem) if self.held else ()
        return numbers + (() if self.spectrum is None else self.spectrum.coordinates())

    def at(self, position: Array) -> WindowModel:
        """The model with what is searched at a position in `coordinates`, each in its prior's sds."""
        values = {each.name: each.value(float(z)) for each, z in zip(self.coordinates, position, strict=True)}
        held = {name: values[name] for name in self.held}
        return replace(self, held=held, prior=self.prior if self.spectrum is None else self._spread(values))

    def _spread(self, values: Mapping[str, float]) -> Diagonal:
        """The prior with the start's spectrum at values, by name, or as it was chosen."""
        assert self.spectrum is not None
        spectrum, std = self.spectrum.at(values), np.array(self.prior.std)
        for name in self.problem.fields:
            latent = self.representation.latents[self.representation.forms[name].latents[0]]
            sds = spectrum.deviations(name, latent.basis)
            std[latent.block.start : latent.block.start + len(sds)] = sds
        return Diagonal.from_moments(self.prior.mean, std**2)

    @cached_property
    def local(self) -> dict[str, GradedSpline]:
        """The axes with local features, and the cells that these begin on."""
        form = self.representation.forms[self.problem.fields[0]]
        families = self.representation.latents[form.latents[0]].basis.families
        return {axis: own for axis, own in families.items() if isinstance(own, GradedSpline)}

    @property
    def in_plane(self) -> bool:
        """Are its features local in two axes of space?"""
        return len(self.local) > 1

    @cached_property
    def layout(self) -> tuple[Indices, Indices]:
        """Weights that are the state at a window's start, and its inner ones."""
        return layout(self.representation)

    @cached_property
    def field_states(self) -> int:
        """Entries of the state that belong to fields; coefficients and errors of walls follow them."""
        forms, latents = self.representation.forms, self.representation.latents
        others = [latents[form.latents[0]] for name, form in forms.items() if name not in self.problem.fields]
        return len(self.layout[0]) - sum(latent.basis.size for latent in others)

    @property
    def open_states(self) -> Indices:
        """Entries of the fields' state that the prior leaves open."""
        return np.flatnonzero(self.prior.std[self.layout[0]][: self.field_states] > 0.1 * self.scale)

    @cached_property
    def prior_state(self) -> Belief:
        state = self.layout[0]
        root = np.diag(self.prior.std[state])
        for name, own in self.process.items():
            first = self.representation.latents[self.representation.forms[name].latents[0]].block.start
            at = np.flatnonzero((state >= first) & (state < first + len(own)))
            root[np.ix_(at, at)] = own
        return Belief(self.prior.mean[state], root)

    def first_state(self) -> Belief:
        """The prior, moved to where the search begins: its first pass follows that path, smoothing corrects it."""
        mean, state = self.prior_state.mean.copy(), self.layout[0]
        for name, value in self.start.items():
            if name in self.representation.latents:
                mean[state == self.representation.latents[name].block.start] = value
        return replace(self.prior_state, mean=mean)

    def with_condition(self, problem: Problem) -> WindowModel:
        """The same choices for the same problem with further conditions after its own, or a later end of time."""
        added = problem.statements[len(self.problem.statements) :]
        default = Sigma(LABEL_NOISE * self.scale, "default")
        sigmas = *self.sigmas, *(default if s.sigma is None else Sigma(s.sigma, "given") for s in added)
        traits = replace(self.traits, has_later_data=self.traits.has_later_data or bool(added))
        closed = tuple(replace(sigma, is_open=False) for sigma in sigmas)
        return replace(self, problem=problem, sigmas=closed, traits=traits, growing=(), path=())


def is_standing(statement: Statement) -> bool:
    """Does a statement hold in every window alike: an equation or a wall?"""
    return statement.points is None and TIME not in (statement.face or {})


def check_no_region(problem: Problem, what: str) -> None:
    """Refuse a region where features reach over the whole domain."""
    if problem.shape is not None:
        raise expected(f"a problem without a region for {what}", f"{problem.region!r}", "method='tree'")


def check_memory(weights: int, rows: int) -> None:
    """Refuse a model that cannot fit before anything of its size is allocated."""
    needed = 8 * (rows * weights + 4 * weights**2)
    free = available_memory()
    if needed > free:
        raise ProblemError(
            f"expected a model of at most {free / 2**30:.1f} GiB (the memory available), received "
            f"{needed / 2**30:.1f} GiB ({weights} weights, {rows} rows of features); "
            "try fewer modes, fewer points or a shorter horizon"
        )


def available_memory() -> int:
    """Bytes the system can give; a very large number where it does not say."""
    try:
        with open("/proc/meminfo") as lines:
            entries = dict(line.split(":", 1) for line in lines)
        return int(entries["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 1 << 50

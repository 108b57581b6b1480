"""Model: how a problem is represented - ansatz, basis, points, noise, prior. All that a comparison must share.

Every method runs on a Model and sees the same factor groups, log joint and gradient. `default_model` is for
users; the paper's is in paper.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import AdviceWarning, ProblemError, expected
from factorfield.messages.gaussian import Diagonal
from factorfield.model.activation import Activation, Identity
from factorfield.model.basis import Fourier, Tensor, family_for
from factorfield.model.factors import FactorGroup, build_group
from factorfield.model.functions import coefficient_parts, coefficient_prior
from factorfield.model.representation import Representation, field_form
from factorfield.model.resolution import modes_of_functions
from factorfield.model.scales import condition_scale, field_scale, natural_size
from factorfield.model.symbol import rates
from factorfield.problem.consistency import check_orders
from factorfield.problem.domain import TIME, Interval, Periodic, Points
from factorfield.problem.problem import Problem, Statement

Array = NDArray[np.float64]

LABEL_NOISE = 0.01  # default sigma of a condition, in units of the field's scale
FACE_NOISE = 1e-4  # of an initial or boundary condition: they are meant to hold
RESIDUAL_NOISE = 1e-3  # default sigma of an equation, in units of its natural size (see `natural_size`)
MOST_MODES = 16
MOST_WEIGHTS = 1200  # of a model chosen automatically: a few seconds on a laptop


@dataclass(frozen=True, eq=False)
class Model:
    """Factor groups over one weight vector with an independent Gaussian prior."""

    problem: Problem
    representation: Representation
    groups: tuple[FactorGroup, ...]
    prior: Diagonal
    settings: Mapping[str, Any]

    @property
    def size(self) -> int:
        return self.representation.size

    @property
    def factors(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def is_linear(self) -> bool:
        return all(group.relation.is_linear for group in self.groups)

    def log_joint(self, weights: Array) -> float:
        """log p(weights) + log p(all factors | weights), constants included."""
        prior = float(np.sum(self.prior.log_density(weights)))
        return prior + sum(group.log_likelihood(weights) for group in self.groups)

    def log_joint_gradient(self, weights: Array) -> tuple[float, Array]:
        level = float(np.sum(self.prior.log_density(weights)))
        gradient = self.prior.shift - self.prior.precision * weights
        for group in self.groups:
            part, slope = group.log_likelihood_gradient(weights)
            level += part
            gradient = gradient + slope
        return level, gradient

    def with_parameters(self, **values: float) -> Model:
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


def default_model(
    problem: Problem,
    *,
    modes: Mapping[str, int] | None = None,
    collocation: Mapping[str, int] | None = None,
    activation: Activation | None = None,
    readout: Sequence[float] = (1.0,),
) -> Model:
    """One tensor basis over the whole domain, identity ansatz, collocation at twice the features per axis.

    `modes` gives frequencies (periodic axes) or polynomial degrees (intervals); axes left out are chosen from
    the data and the equation's linear part. `collocation` gives points per axis.
    """
    scale = field_scale(problem)
    given = checked_counts(modes, problem, "modes")
    chosen = _chosen_modes(problem, given)
    intervals = {name: n for name, n in chosen.items() if isinstance(problem.domain[name], Interval)}
    check_orders(problem.statements, intervals)
    families = {name: family_for(problem.domain[name], chosen[name]) for name in problem.domain.names}
    sizes = {name: family.size for name, family in families.items()}
    points = {**{name: 2 * n for name, n in sizes.items()}, **checked_counts(collocation, problem, "collocation")}
    ansatz = activation or Identity()
    basis = Tensor(families)
    parts = [(name, basis, field_form(name, problem.domain.names, ansatz, readout)) for name in problem.fields]
    representation = Representation.build(parts + coefficient_parts(problem))
    everywhere = int(np.prod([points[name] for name in problem.domain.names]))
    observed = sum(len(s.target) for s in problem.statements if s.points is not None)
    check_memory(representation.size, everywhere * len(problem.equations) + observed)
    groups = tuple(
        _statement_group(problem, representation, statement, points, scale) for statement in problem.statements
    )
    model = Model(
        problem, representation, groups, _prior(problem, representation, scale, ansatz),
        {
            "model": "default", "modes": chosen, "automatic": sorted(set(chosen) - set(given)), "collocation": points,
            "scale": scale, "activation": ansatz.name,
            "sigma": [(group.name, float(np.sqrt(np.mean(group.sigma**2)))) for group in groups],
        },
    )  # fmt: skip
    check_collocation(model, {name: n for name, n in points.items() if n < sizes[name]})
    return model


def checked_counts(counts: Mapping[str, int] | None, problem: Problem, what: str) -> dict[str, int]:
    checked = {}
    for name, count in (counts or {}).items():
        if name not in problem.domain:
            raise expected(f"{what} for the axes {', '.join(problem.domain.names)}", name, f"{what}={{'x': 8}}")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= 100_000:
            raise expected(f"a positive whole number of {what} along {name}", count, f"{what}={{'{name}': 8}}")
        checked[name] = int(count)
    return checked


def _statement_group(
    problem: Problem, representation: Representation, statement: Statement, points: Mapping[str, int], scale: float
) -> FactorGroup:
    relation = representation.read(statement.relation)
    if statement.points is not None:
        where: Points = statement.points
        sigma = LABEL_NOISE * scale if statement.sigma is None else statement.sigma
    else:
        face = statement.face or {}
        axes = {
            name: [face[name]] if name in face else problem.domain[name].collocation(points[name])
            for name in problem.domain.names
        }
        where = problem.domain.tensor(axes)
        own = scale if statement.face is None else condition_scale(problem, statement, scale)
        natural = natural_size(statement.relation, problem, own)
        noise = RESIDUAL_NOISE if statement.face is None else FACE_NOISE
        sigma = noise * natural if statement.sigma is None else statement.sigma
    return build_group(
        statement.name, relation, representation, where, statement.target, sigma, problem.constants, statement.stencil
    )


def _prior(problem: Problem, representation: Representation, scale: float, activation: Activation) -> Diagonal:
    """Every field weight N(0, s^2), s the pre-activation that gives the field's scale; coefficients as stated."""
    mean, variance = np.zeros(representation.size), np.empty(representation.size)
    reach = float(abs(activation.inverse(scale)))
    for name, form in representation.forms.items():
        for latent in form.latents:
            block = representation.latents[latent].block
            if name in problem.parameters:
                mean[block], variance[block] = coefficient_prior(problem, name)
            else:
                variance[block] = reach**2
    return Diagonal.from_moments(mean, variance)


def observation_noise(model: Model) -> dict[str, float]:
    """The noise of direct observations of each field: the root mean square of their sigmas."""
    noise: dict[str, list[Array]] = {}
    for group in model.groups:
        for name in model.problem.fields:
            if group.name in (f"observations of {name}", "observations"):
                noise.setdefault(name, []).append(group.sigma)
    return {name: float(np.sqrt(np.mean(np.concatenate(sigmas) ** 2))) for name, sigmas in noise.items()}


# -- how many modes


def _chosen_modes(problem: Problem, given: Mapping[str, int]) -> dict[str, int]:
    """Modes per axis: the user's where given, else from the data (space) and the equation's linear part (time)."""
    modes = {}
    for name in problem.domain.space:
        automatic = _modes_from_data(problem, name) if isinstance(problem.domain[name], Periodic) else 16
        modes[name] = given.get(name, automatic)
    if TIME not in problem.domain:
        open_axes = [name for name in modes if name not in given]
        for name in open_axes:  # a field has two derivatives more than what it answers to
            modes[name] = max(modes[name], modes_of_functions(problem, name) + 2)
        return most_modes(problem, modes, open_axes)
    if TIME in given:
        modes[TIME] = given[TIME]
    elif TIME in problem.domain:
        across = int(np.prod([family_for(problem.domain[name], n).size for name, n in modes.items()], dtype=int))
        wanted, most = _time_degree(problem, modes), max(12, MOST_WEIGHTS // (across * len(problem.fields)) - 1)
        modes[TIME] = min(wanted, most)
        if wanted > most:
            warnings.warn(
                f"the equation's fastest waves ask for degree {wanted} in time, {most} keeps the model small; "
                "set modes={'t': ...} for more, or shorten the horizon",
                AdviceWarning,
                stacklevel=4,
            )
    return modes


def most_modes(problem: Problem, wanted: Mapping[str, int], automatic: Sequence[str]) -> dict[str, int]:
    """As many of the wanted modes as keep the model small, taken from the longest of the automatic axes."""
    modes = dict(wanted)

    def weights() -> int:
        sizes = [family_for(problem.domain[name], n).size for name, n in modes.items()]
        return len(problem.fields) * int(np.prod(sizes, dtype=float))

    while automatic and weights() > MOST_WEIGHTS and max(modes[name] for name in automatic) > MOST_MODES:
        modes[max(automatic, key=modes.__getitem__)] -= 1
    return modes


def _modes_from_data(problem: Problem, axis: str) -> int:
    """The fewest frequencies that explain data along a periodic axis; 8 without data.

    Enough is 99.99 % of the varying energy, or - when the rest is noise - the minimum of the Bayesian information
    criterion, whichever comes first.
    """
    for statement in problem.statements:
        if statement.points is None or len(problem.domain.space) != 1 or statement.stencil:
            continue
        x, values = statement.points[axis], statement.target - np.mean(statement.target)
        most = min(MOST_MODES, (len(np.unique(x)) - 1) // 4)
        if most < 1 or not np.any(values) or (TIME in problem.domain and np.ptp(statement.points[TIME]) > 0):
            continue
        features = Fourier(most, problem.domain[axis].lower, problem.domain[axis].length)(x)
        rotated = np.linalg.qr(features)[0].T @ values
        explained = np.cumsum(rotated**2)[2::2]  # by 1, 2, ... frequencies
        left = np.maximum(values @ values - explained, 1e-30 * (values @ values))
        count = np.arange(1, most + 1)
        criterion = len(x) * np.log(left) + (2 * count + 1) * np.log(len(x))
        enough = np.flatnonzero(left <= 1e-4 * (values @ values))
        return int(min(count[np.argmin(criterion)], count[enough[0]] if len(enough) else most))
    return 8


def _time_degree(problem: Problem, modes: Mapping[str, int]) -> int:
    """Degree in time from the linear part: oscillations need about rate * T / 2, decays its square root."""
    horizon = problem.domain[TIME].length
    waves = {name: 2.0 * np.pi * modes[name] / problem.domain[name].length for name in problem.domain.space}
    degree = 12.0
    for statement in problem.statements:
        found = rates(problem, statement, waves) if statement.points is None and statement.face is None else None
        if found is not None:
            rate = complex(found[0])
            degree = max(degree, 12.0 + 0.6 * abs(rate.imag) * horizon + 2.0 * np.sqrt(abs(rate.real) * horizon))
    return int(np.ceil(min(degree, 200.0)))


# -- memory


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


# -- points against features


def check_collocation(model: Model, short: Mapping[str, int]) -> None:
    """Too few points leave modes free that the equation would settle, and they explode: refuse, with the numbers.

    Only axes with fewer points than features (`short`) can lose rank on a tensor grid, so the numerical ranks are
    compared only then: at the chosen points and at twice the features per axis.
    """
    if not short:
        return
    domain = model.problem.domain
    for group, statement in zip(model.groups, model.problem.statements, strict=True):
        if statement.points is not None or statement.face is not None:
            continue
        families = model.representation.latents[
            model.representation.forms[statement.relation.fields[0]].latents[0]
        ].basis
        enough = {n: 2 * size for n, size in zip(families.axes, families.shape, strict=True)}
        dense = build_group(
            group.name, group.relation, model.representation,
            domain.tensor({n: domain[n].collocation(enough[n]) for n in domain.names}), 0.0, 1.0, group.parameters,
        )  # fmt: skip
        rank, full = numerical_rank(group, model.size), numerical_rank(dense, model.size)
        if rank < full:
            raise ProblemError(
                f"expected collocation points that settle {full} of the {model.size} weights ({group.name}), received "
                f"{group.count} points of rank {rank}; try collocation={enough} or fewer modes"
            )


def numerical_rank(group: FactorGroup, size: int) -> int:
    """Rank of a group's rows, linearised at weights where nothing vanishes by accident."""
    weights = np.random.default_rng(0).standard_normal(size)
    _, slopes = group.relation.value_and_gradient(group.project(weights), group.parameters, group.points)
    values = np.linalg.svd(group.pull_back(slopes, size), compute_uv=False)
    return int(np.sum(values > 1e-10 * values[0]))

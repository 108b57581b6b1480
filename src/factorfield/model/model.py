"""Model: how a problem is represented - ansatz, basis, points, noise, prior. All that a comparison must share.

Every method takes a Model and only a Model. `BlockModel` (built in block.py, the paper's in
paper.py) has its factors over one weight vector; `WindowModel` (windowed.py) has windows of time, each with weights
of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice, ProblemError, expected
from factorfield.messages.gaussian import Diagonal
from factorfield.model.factors import FactorGroup
from factorfield.model.representation import Representation
from factorfield.model.sigmas import Sigma, observation_noise
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """What every model has; `settings` tells its choices to people and files."""

    problem: Problem
    representation: Representation
    prior: Diagonal  # of the weights
    sigmas: tuple[Sigma, ...]  # one per statement of the problem
    modes: Mapping[str, int]  # frequencies or polynomial degrees per axis
    scale: float  # the field's typical size
    settings: Mapping[str, object]
    advice: tuple[Advice, ...] = ()

    @property
    def size(self) -> int:
        return self.representation.size

    @property
    def noise(self) -> dict[str, float]:
        """Of one more measurement of each measured field."""
        return observation_noise(self.problem, self.sigmas)

    def is_given(self, name: str) -> bool:
        """Did the user give the sigma of this measurement, start or wall, for Gaussian noise?"""
        return any(
            s.name == name and sigma.origin == "given" and s.noise is None and not s.is_equation
            for s, sigma in zip(self.problem.statements, self.sigmas, strict=True)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockModel(Model):
    """Factor groups over one weight vector with an independent Gaussian prior."""

    groups: tuple[FactorGroup, ...]
    automatic: tuple[str, ...] = ()  # axes whose modes were chosen, and may prove too few
    continuation: str | None = None  # a parameter that grows to its value in several passes
    follows_protocol: bool = False  # the paper's: points and weights that nothing settles are meant
    start: Array | None = None  # weights where a search begins, instead of the prior mean

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

    def log_joint_gradient(self, weights: Array) -> tuple[float, Array]:
        level = float(np.sum(self.prior.log_density(weights)))
        gradient = self.prior.shift - self.prior.precision * weights
        for group in self.groups:
            part, slope = group.log_likelihood_gradient(weights)
            level += part
            gradient = gradient + slope
        return level, gradient

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

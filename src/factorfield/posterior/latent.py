"""Posterior of the forward map: fields are the path at the posterior mean plus its tangent times what the latents'
posterior leaves open. What resolutions leave out is a separate part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from factorfield.errors import expected
from factorfield.forward.paths import Reading, read
from factorfield.forward.relations import Expression, expression_of
from factorfield.inference.segments import Belief, Segment, smoothed
from factorfield.inference.stored import Writer, segments_from
from factorfield.model.linearisation import Linearised
from factorfield.posterior.base import Estimate, Posterior
from factorfield.posterior.functionals import Functionals
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
NODES = 24  # of Gauss and Hermite, for moments of a function of one Gaussian number


@dataclass(frozen=True)
class Frozen:
    """What a solution by the map is made of, for people and files: `size` counts the coefficients of the fields."""

    size: int
    latents: int

    @staticmethod
    def of(segments: Sequence[Segment]) -> Frozen:
        last = segments[-1].fit
        return Frozen(last.point.path.values.shape[-1], last.task.latents.size)


@dataclass(frozen=True, eq=False)
class LatentPosterior(Posterior):
    """`segments` in order of time; `mixture`: other posteriors with their weights, the first one among them, where
    sizes and lengths of functions are averaged over; `logarithms`: mean and std of the logarithms of these."""

    segments: tuple[Segment, ...]
    mixture: tuple[tuple[float, Segment], ...] = ()
    logarithms: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    _kept: dict[str, Any] = field(default_factory=dict)

    marker = "path0_values"
    described = "discretisation"

    def form(self) -> tuple[Mapping[str, Any], dict[str, Array]]:
        writer = Writer()
        spec = writer.spec(self.segments, self.mixture)
        logarithms = {name: {k: list(v) for k, v in kinds.items()} for name, kinds in self.logarithms.items()}
        return {**spec, "logarithms": logarithms}, writer.arrays

    def arrays(self) -> dict[str, Array]:
        return {}  # `form` has them all

    @classmethod
    def from_arrays(
        cls, problem: Problem, representation: Any, noise: Mapping[str, float], arrays: Mapping[str, Array]
    ) -> Self:
        """`representation` is the description that `form` gives."""
        segments, mixture = segments_from(problem, representation, arrays)
        logarithms = representation["logarithms"]
        inputs = segments[0].fit.task.latents.inputs
        functions = [name for name, source in inputs.items() if source.space or source.time]
        if not set(logarithms) <= set(functions):
            wanted = f"sizes of {', '.join(functions) or 'nothing'}"
            raise expected(wanted, ", ".join(logarithms), "saving it again")
        named = {name: {k: (v[0], v[1]) for k, v in kinds.items()} for name, kinds in logarithms.items()}
        return cls(problem, Frozen.of(segments), noise, segments, mixture, named)  # type: ignore[arg-type]

    @property
    def weight_mean(self) -> Array:
        return self.segments[-1].fit.belief.mean

    @property
    def weight_std(self) -> Array:
        root = self.segments[-1].filtered.root
        return np.asarray(np.linalg.norm(root, axis=1))

    @property
    def exact(self) -> Self:
        if not any(segment.columns for segment in self.segments):
            return self
        segments = tuple(replace(segment, columns=(), floors=()) for segment in self.segments)
        mixture = tuple((weight, replace(segment, columns=(), floors=())) for weight, segment in self.mixture)
        return replace(self, segments=segments, mixture=mixture, _kept={})

    def hyperparameters(self, level: float = 0.9) -> dict[str, dict[str, Estimate]]:
        """Size and length of unknown functions that were not stated: log-normal."""
        reach = float(special.ndtri(0.5 * (1.0 + level)))
        return {
            name: {
                kind: {
                    "mean": float(np.exp(mean + 0.5 * std**2)),
                    "std": float(np.exp(mean + 0.5 * std**2) * np.sqrt(np.expm1(std**2))),
                    "interval": (float(np.exp(mean - reach * std)), float(np.exp(mean + reach * std))),
                }
                for kind, (mean, std) in kinds.items()
            }
            for name, kinds in self.logarithms.items()
        }

    # -- numbers

    def parameters(self, level: float = 0.9) -> dict[str, Estimate]:
        reach = float(special.ndtri(0.5 * (1.0 + level)))
        result: dict[str, Estimate] = {}
        for name, (mean, std) in self._numbers.items():
            low, high = mean - reach * std, mean + reach * std
            if self.problem.unknowns[name].positive:
                centre = float(np.exp(mean + 0.5 * std**2))
                width = centre * float(np.sqrt(np.expm1(std**2)))
                result[name] = {"mean": centre, "std": width, "interval": (float(np.exp(low)), float(np.exp(high)))}
            else:
                result[name] = {"mean": mean, "std": std, "interval": (low, high)}
        return result

    @cached_property
    def _numbers(self) -> dict[str, tuple[float, float]]:
        """Mean and std of each number, or of its logarithm."""
        means, covariance = self._latent_moments
        return {n: (float(means[i]), float(np.sqrt(covariance[i, i]))) for i, n in enumerate(self.problem.unknowns)}

    @cached_property
    def _latent_moments(self) -> tuple[Array, Array]:
        """Mean and covariance of the numbers, or their logarithms, the numerical error included."""
        parts = self.mixture or ((1.0, self.segments[-1]),)
        means = np.array([self._numbers_of(segment)[0] for _, segment in parts])
        weights = np.array([weight for weight, _ in parts])
        mean = weights @ means
        covariance = sum(weight * self._numbers_of(segment)[1] for weight, segment in parts)
        apart = means - mean
        return mean, np.asarray(covariance + apart.T @ (weights[:, None] * apart))

    def _numbers_of(self, segment: Segment) -> tuple[Array, Array]:
        names, latents = list(self.problem.unknowns), segment.fit.task.latents
        if not names:
            return np.zeros(0), np.zeros((0, 0))
        directions = latents.directions(np.eye(latents.size))
        rows = np.concatenate([directions[name] for name in names])
        spread, errors = segment.fit.belief.spread(rows), rows @ _shifts(segment)
        means = np.array([segment.fit.point.path.inputs[name][0] for name in names])
        return means, np.asarray(spread @ spread.T + errors @ errors.T)

    def _coefficient_covariance(self) -> Array:
        means, covariance = self._latent_moments
        positive = np.array([self.problem.unknowns[name].positive for name in self._numbers], bool)
        centre = np.exp(means + 0.5 * np.diag(covariance))
        both = np.outer(positive, positive)
        scale = np.where(positive, centre, 1.0)
        return np.asarray(np.outer(scale, scale) * np.where(both, np.expm1(covariance), covariance))

    # -- what is asked

    def _relation(self, of: str) -> Expression:  # type: ignore[override]
        text = self.problem.equations[0].text if of == "residual" else of
        expression = expression_of(self.problem, self.problem.relation(text))
        if not expression.fields and not expression.inputs:
            raise expected("a quantity of the field", f"{of!r}, which knows none", f"of='{self.problem.fields[0]}'")
        return expression

    def _axes_read(self, relation: Any) -> set[str]:
        axes: set[str] = set(self.problem.domain.names) if relation.fields else set()
        for jet in relation.inputs.values():
            if jet.name in self.problem.functions:
                axes |= set(self.problem.functions[jet.name].over)
        return axes

    def _segment_of(self, t: Array) -> NDArray[np.int64]:
        begins = np.array([segment.begin for segment in self.segments])
        return np.clip(np.searchsorted(begins, t, side="left") - 1, 0, len(begins) - 1)

    def _beliefs(self, number: int) -> Belief:
        key = f"belief {number}"
        if key not in self._kept:
            self._kept[key] = smoothed(self.segments, number)
        return self._kept[key]

    def _rows(
        self, relation: Expression, flat: Mapping[str, Array]
    ) -> tuple[Array, Array, Array, NDArray[np.int64]]:
        """At every place: the mean, functionals of standard normal numbers (places, numbers), errors (places, columns),
        and the number of its segment. Of a mixture, a Gaussian with its mean and covariance."""
        if not self.mixture:
            return self._rows_of_segments(relation, flat)
        parts = [
            (weight, replace(self, segments=(segment,), mixture=(), _kept={})._rows_of_segments(relation, flat))
            for weight, segment in self.mixture
        ]
        mean = np.sum([weight * part[0] for weight, part in parts], axis=0)
        columns = [np.sqrt(weight) * part[1] for weight, part in parts]
        columns += [np.sqrt(weight) * (part[0] - mean)[:, None] for weight, part in parts]
        return mean, np.concatenate(columns, axis=1), parts[0][1][2], parts[0][1][3]

    def _rows_of_segments(
        self, relation: Expression, flat: Mapping[str, Array]
    ) -> tuple[Array, Array, Array, NDArray[np.int64]]:  # fmt: skip
        count = len(next(iter(flat.values())))
        which = self._segment_of(flat[TIME]) if TIME in flat and len(self.segments) > 1 else np.zeros(count, np.int64)
        values, parts, width = np.empty(count), [], 0
        errors = np.zeros((count, 1 + max(len(segment.columns) for segment in self.segments)))
        for number in np.unique(which):
            chosen = np.flatnonzero(which == number)
            points = {axis: np.asarray(x)[chosen] for axis, x in flat.items()}
            segment, belief = self.segments[number], self._beliefs(int(number))
            latents = segment.fit.task.latents
            reading = read(relation, segment.fit.point.path, points, latents.inputs)
            rows = self._moved(reading, segment)
            values[chosen] = reading.values + rows @ (belief.mean - segment.fit.point.e)
            spread = belief.spread(rows) if latents.size else np.zeros((len(chosen), 0))
            parts.append((chosen, spread))
            width = max(width, spread.shape[1])
            if segment.columns:
                fields = np.stack([column.at(relation, points, latents.inputs) for column in segment.columns], axis=1)
                errors[chosen, : len(segment.columns)] = fields + rows @ _shifts(segment)
            for number_of_field, slope in reading.slopes.items() if segment.floors else ():
                errors[chosen, -1] = np.hypot(errors[chosen, -1], slope * segment.floors[number_of_field])
        table = np.zeros((count, width))
        for chosen, spread in parts:
            table[chosen, : spread.shape[1]] = spread
        return values, table, errors, which

    def _moved(self, reading: Reading, segment: Segment) -> Array:
        latents = segment.fit.task.latents
        if not latents.size:
            return np.zeros((len(reading.values), 0))
        directions = latents.directions(np.eye(latents.size))
        if reading.rows.nnz:
            return reading.moved(segment.fit.tangent, directions)
        total = np.zeros((len(reading.values), latents.size))
        for name, rows in reading.input_rows.items():
            total += rows @ directions[name]
        return total

    def _moments(
        self, relation: Any, grid: Mapping[str, Array], points: bool, levels: Array
    ) -> tuple[Array, Array, Array]:
        flat = grid if points else self.problem.domain.tensor(grid)
        reach = special.ndtri(levels)[:, None]
        alone = _alone(relation)
        if alone is not None:
            return self._function_of_one(relation, alone, flat, reach)
        mean, spread, errors, _ = self._rows(relation, flat)
        variance = np.sum(spread**2, axis=1) + np.sum(errors**2, axis=1)
        return mean, variance, mean + reach * np.sqrt(variance)

    def _function_of_one(
        self, relation: Expression, alone: Expression, flat: Mapping[str, Array], reach: Array
    ) -> tuple[Array, Array, Array]:
        """A function of one Gaussian input: moments by quadrature; quantiles pass through it where it is monotone."""
        z, spread, errors, _ = self._rows(alone, flat)
        std = np.sqrt(np.sum(spread**2, axis=1) + np.sum(errors**2, axis=1))
        nodes, shares = np.polynomial.hermite_e.hermegauss(NODES)
        shares = shares / shares.sum()
        (symbol,) = relation.inputs

        def value(at: Array) -> Array:
            rows = at.reshape(-1)
            places = {axis: np.tile(np.asarray(x), len(at)) for axis, x in flat.items()}
            one = relation.value_and_slopes({str(symbol): rows[:, None]}, places, np.zeros(1))[0]
            return np.broadcast_to(one, (len(rows), 1)).reshape(at.shape)

        table = value(z + nodes[:, None] * std)
        mean = shares @ table
        variance = shares @ (table - mean) ** 2
        return mean, variance, value(z + reach * std) if len(reach) else np.zeros((0, len(z)))

    # -- covariances

    def _line(self, relation: Any, grid: Mapping[str, Array], points: bool) -> tuple[Functionals, Any]:
        functionals = Functionals(((relation, ()),), np.ones((1, 1)), grid, points)
        mean, spread, errors, _ = self._rows(relation, functionals.flat)
        functionals = replace(functionals, slopes=np.ones((1, len(mean))))
        explained = np.sum(spread**2, axis=1) + np.sum(errors**2, axis=1)
        return functionals, Linearised(mean, np.ones((len(mean), 1)), np.zeros(len(mean)), explained)

    def _table(self, functionals: Functionals) -> tuple[Array, Array]:
        """Rows over standard normal numbers and over columns of the numerical error."""
        ((relation, _),) = functionals.atoms
        if "rows" not in functionals.held:
            functionals.held["rows"] = self._rows(relation, functionals.flat)[1:3]  # type: ignore[arg-type]
        spread, errors = functionals.held["rows"]
        return spread * functionals.slopes[0][:, None], errors * functionals.slopes[0][:, None]

    def _cross_covariance(self, left: Functionals, right: Functionals) -> Array:
        first, second = _of_one_width(self._table(left)[0], self._table(right)[0])
        return np.asarray(first @ second.T)

    def _numerical_cross(self, left: Functionals, right: Functionals) -> Array:
        (_, first), (_, second) = self._table(left), self._table(right)
        return np.asarray(first @ second.T)

    def _joint_covariance(self, asked: Sequence[Any]) -> Array:
        tables = [self._table(self._line(*item)[0]) for item in asked]
        spread = np.concatenate(_of_one_width(*(table for table, _ in tables)))
        errors = np.concatenate([table for _, table in tables])
        return np.asarray(spread @ spread.T + errors @ errors.T)

    # -- draws

    def sample(self, count: int, *, seed: int = 0, of: str | None = None, **axes: ArrayLike) -> Any:
        import xarray as xr

        relation = self._relation(of or self.problem.fields[0])
        grid, unused = self._coordinates(axes, False, [relation])  # type: ignore[list-item]
        flat = self.problem.domain.tensor(grid)
        rng = np.random.default_rng(seed)
        alone = _alone(relation)
        mean, spread, errors, _ = self._rows(alone or relation, flat)
        shape = [len(x) for x in grid.values()]
        draws = [
            mean + spread @ rng.standard_normal(spread.shape[1]) + errors @ rng.standard_normal(errors.shape[1])
            for _ in range(count)
        ]
        if alone is not None:
            (symbol,) = relation.inputs
            draws = [relation.value_and_slopes({str(symbol): z[:, None]}, flat, np.zeros(1))[0][:, 0] for z in draws]
        result = xr.DataArray(
            np.stack([draw.reshape(shape) for draw in draws]), dims=("sample", *grid), coords=dict(grid)
        )  # fmt: skip
        inside = self._inside(result, grid, unused)
        if inside is not None:
            result = result.where(inside).assign_coords(inside=inside)
        return result.isel(dict.fromkeys(unused, 0), drop=True)

    def _weight_draws(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        belief = self._beliefs(len(self.segments) - 1)
        for _ in range(count):
            yield belief.mean + belief.root @ rng.standard_normal(belief.root.shape[1])


def _alone(relation: Expression) -> Expression | None:
    """The input itself, where a relation is a nonlinear function of one input and of nothing else."""
    if relation.fields or len(relation.inputs) != 1 or relation.is_affine:
        return None
    (symbol,) = relation.inputs
    return replace(relation, expression=symbol)


def _of_one_width(*tables: Array) -> list[Array]:
    """Tables over the same standard normal numbers, of which earlier segments of time read more than later ones."""
    width = max(table.shape[1] for table in tables)
    return [np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in tables]


def _shifts(segment: Segment) -> Array:
    """What the columns of the numerical error do to the latents, (latents, columns)."""
    if not segment.columns:
        return np.zeros((segment.fit.task.latents.size, 0))
    return np.stack([column.latents for column in segment.columns], axis=1)

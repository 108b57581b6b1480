"""Posterior: what is believed about the weights, and through them about every field, derivative and coefficient.

Code outside this room asks a posterior for fields; how the belief about the weights is stored stays inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from factorfield.errors import expected, nearest
from factorfield.model.linearisation import Linearised, linearise
from factorfield.model.representation import Latent, LatentRelation, Representation
from factorfield.posterior.functionals import Atom, Functionals, Shared, SharedDirectly
from factorfield.problem.coefficients import located
from factorfield.problem.domain import TIME, Periodic
from factorfield.problem.problem import Problem
from factorfield.problem.relation import evaluate_coefficient

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
MOST_SCATTERED, MOST_ON_GRID = 1 << 14, 1 << 19  # places that are looked at together


class Estimate(TypedDict):
    """The posterior of one unknown coefficient."""

    mean: float
    std: float
    interval: tuple[float, float]  # holds it with 90 %, or another level that was asked for


@dataclass(frozen=True, eq=False)
class Posterior:
    """What every posterior answers; a subclass says how the belief about the weights is stored.

    `marker` is the array by which a file shows that it holds this kind of posterior (reading.py).

    `numerical` is what the representation leaves out, a Gaussian of its own beside the belief: a root of the covariance
    of the weights' errors, (weights, columns), one-dimensional where these are independent, with an axis of windows in
    front where weights have it; None: not estimated. It is a part of every std, draw and interval.
    """

    marker: ClassVar[str]
    described: ClassVar[str] = "representation"

    problem: Problem
    representation: Representation
    noise: Mapping[str, float]  # of direct observations of each field: rms of their sigmas, for predict(noise=True)
    numerical: Array | None = field(default=None, kw_only=True)

    @property
    def weight_mean(self) -> Array:
        raise NotImplementedError

    @property
    def weight_std(self) -> Array:
        raise NotImplementedError

    def arrays(self) -> dict[str, Array]:
        """What a file has to hold."""
        raise NotImplementedError

    def form(self) -> tuple[Mapping[str, Any], dict[str, Array]]:
        """What the belief is about, as a file says it under the key `described`: text and arrays."""
        return self.representation.spec()

    @classmethod
    def from_arrays(
        cls, problem: Problem, representation: Representation, noise: Mapping[str, float], arrays: Mapping[str, Array]
    ) -> Self:
        """The posterior whose `arrays()` these are."""
        raise NotImplementedError

    @property
    def exact(self) -> Self:
        """The belief without the numerical error."""
        return self if self.numerical is None else replace(self, numerical=None)

    def parameters(self, level: float = 0.9) -> dict[str, Estimate]:
        """Posterior of each unknown coefficient: mean, std and the interval that holds it with this probability."""
        raise NotImplementedError

    def _coefficient_covariance(self) -> Array:
        """Of the unknown coefficients with each other."""
        raise NotImplementedError

    def predict(
        self,
        axes: Mapping[str, ArrayLike],
        of: str | None = None,
        noise: bool = False,
        points: bool = False,
        quantiles: Sequence[float] = (),
        numerical: bool = True,
    ) -> xr.Dataset:
        """Mean, std and quantiles of a field or any expression of it, on a tensor grid or at scattered points.

        numerical=False leaves the numerical error out.
        noise=True is about another measurement of the field instead of the field: `self.noise`, the root mean square
        of the sigmas of all direct observations of that field, whatever condition they came in, is added to std.
        """
        import xarray as xr

        levels = checked_levels(quantiles)
        names = [of] if of is not None else list(self.problem.fields)
        relations = [self._relation(name) for name in names]
        grid, unused = self._coordinates(axes, points, relations)
        shape = (len(next(iter(grid.values()))),) if points else tuple(len(x) for x in grid.values())
        dims = ("point",) if points else tuple(grid)
        columns: dict[str, list[Array]] = {}
        for name, relation in zip(names, relations, strict=True):
            with np.errstate(all="ignore"):  # what is beyond all numbers is infinite or NaN, and seen by who asked
                mean, variance, bands = (self if numerical else self.exact)._in_parts(relation, grid, points, levels)
            if noise:
                widened = np.sqrt(1.0 + self._noise(name) ** 2 / np.where(variance > 0.0, variance, np.inf))
                variance = variance + self._noise(name) ** 2
                bands = mean + (bands - mean) * widened
            columns.setdefault("mean", []).append(mean.reshape(shape))
            columns.setdefault("std", []).append(np.sqrt(variance).reshape(shape))
            if len(levels):
                columns.setdefault("quantiles", []).append(bands.reshape(-1, *shape))
        coords: dict[str, object] = {n: (("point",), x) if points else x for n, x in grid.items()}
        if len(levels):
            coords["quantile"] = levels
        data = {}
        for key, values in columns.items():
            own = ("quantile", *dims) if key == "quantiles" else dims
            data[key] = (own, values[0]) if len(names) == 1 else (("field", *own), np.stack(values))
        if len(names) == 1:
            found = xr.Dataset(data, coords, {"of": names[0]})
        else:
            found = xr.Dataset(data, {**coords, "field": names})
        inside = self._inside(found, grid, unused)
        if inside is not None:
            found = found.where(inside).assign_coords(inside=inside)
        return found.drop_vars(unused) if points else found.isel(dict.fromkeys(unused, 0), drop=True)

    def sample(self, count: int, *, seed: int = 0, of: str | None = None, **axes: ArrayLike) -> xr.DataArray:
        """Joint draws of the field on a tensor grid."""
        import xarray as xr

        relation = self._relation(of or self.problem.fields[0])
        grid, unused = self._coordinates(axes, False, [relation])
        flat = self._located(relation, self.problem.domain.tensor(grid))
        draws, atoms = [], self._atoms(relation)
        left_out = self._left_out_draws(atoms, flat)
        rng = np.random.default_rng(seed)
        for weights in self._weight_draws(count, rng):
            weights = weights if self.numerical is None else weights + _drawn(self.numerical, rng)
            means = self._grid_means(atoms, grid, weights) + (0.0 if left_out is None else left_out(rng))
            zeta = self._combine_means(relation, means, flat)
            draws.append(relation.value(zeta, self.problem.constants, flat).reshape([len(x) for x in grid.values()]))
        found = xr.DataArray(np.stack(draws), dims=("sample", *grid), coords=dict(grid))
        inside = self._inside(found, grid, unused)
        if inside is not None:
            found = found.where(inside).assign_coords(inside=inside)
        return found.isel(dict.fromkeys(unused, 0), drop=True)

    def _in_parts(
        self, relation: LatentRelation, grid: Mapping[str, Array], points: bool, levels: Array
    ) -> tuple[Array, Array, Array]:
        """`_moments` of many places, part by part: a scattered point is a row over all weights."""
        parts = [self._moments(relation, part, points, levels) for part in _parts(grid, points)]
        if len(parts) == 1:
            return parts[0]
        mean, variance, bands = zip(*parts, strict=True)
        return np.concatenate(mean), np.concatenate(variance), np.concatenate(bands, axis=-1)

    def _inside(
        self, found: xr.Dataset | xr.DataArray, grid: Mapping[str, Array], unused: Sequence[str]
    ) -> xr.DataArray | None:
        """Which of the predicted places lie in the region; None without one, or if nothing asked for varies over it."""
        import xarray as xr

        shape = self.problem.shape
        if shape is None or set(unused) & set(shape.axes):
            return None
        first, second = (xr.Variable(found[axis].dims, grid[axis]) for axis in shape.axes)
        x, y = xr.broadcast(xr.DataArray(first), xr.DataArray(second))
        inside = shape.contains({shape.axes[0]: x.values.ravel(), shape.axes[1]: y.values.ravel()})
        return xr.DataArray(inside.reshape(x.shape), dims=x.dims)

    def _moments(
        self, relation: LatentRelation, grid: Mapping[str, Array], points: bool, levels: Array
    ) -> tuple[Array, Array, Array]:
        """Mean (n,), variance (n,) and quantiles (levels, n)."""
        atoms = self._atoms(relation)
        flat = self._located(relation, grid if points else self.problem.domain.tensor(grid))
        means, covariance = self._atom_moments(atoms, grid, points)
        if self.numerical is not None:
            covariance = covariance + self._numerical_covariance(atoms, grid, points)
        reach = special.ndtri(levels)[:, None]
        if len(atoms) == 1 and relation.functionals[0].is_value:
            line = linearise(relation, means.T, covariance.transpose(2, 0, 1), self.problem.constants, flat)
            variance = np.maximum(line.explained, 0.0) + line.excess
            activation = relation.is_activation
            if activation is not None:  # g is increasing: quantiles pass through it
                sd = np.sqrt(np.maximum(covariance[0, 0], 0.0))
                return line.value, variance, activation(means[0] + reach * sd)
        else:
            combine = self._combination(relation, atoms, flat)
            zeta = np.einsum("nja,an->nj", combine, means)
            spread = np.einsum("nja,abn,nkb->njk", combine, covariance, combine)
            line = linearise(relation, zeta, spread, self.problem.constants, flat)
            variance = np.maximum(line.explained, 0.0) + line.excess
        return line.value, variance, line.value + reach * np.sqrt(variance)

    def _atom_moments(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> tuple[Array, Array]:
        """Means (atoms, n) and covariances (atoms, atoms, n) of derivatives of latents, n points of the grid."""
        raise NotImplementedError

    def _numerical_covariance(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> Array:
        """What the numerical error adds to covariances (atoms, atoms, n)."""
        raise NotImplementedError

    def _weight_draws(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        """Of the belief alone: the numerical error is added by those who ask."""
        raise NotImplementedError

    def _left_out_draws(
        self, atoms: Sequence[Atom], flat: Mapping[str, Array]
    ) -> Callable[[np.random.Generator], Array] | None:
        """Draws (atoms, points) of what no weight stands for and no numerical error; None: there is nothing of it."""
        return None

    # -- how functionals go together

    def _line(
        self, relation: LatentRelation, grid: Mapping[str, Array], points: bool
    ) -> tuple[Functionals, Linearised]:
        """The best line of a relation at every place as functionals of the weights, with its moments."""
        atoms = self._atoms(relation)
        flat = self._located(relation, grid if points else self.problem.domain.tensor(grid))
        means, covariance = self._atom_moments(atoms, grid, points)
        if self.numerical is not None:
            covariance = covariance + self._numerical_covariance(atoms, grid, points)
        combine = self._combination(relation, atoms, flat)
        zeta = np.einsum("nja,an->nj", combine, means)
        spread = np.einsum("nja,abn,nkb->njk", combine, covariance, combine, optimize=True)
        line = linearise(relation, zeta, spread, self.problem.constants, flat)
        return Functionals(tuple(atoms), np.einsum("nj,nja->an", line.slopes, combine), grid, points), line

    def _cross_covariance(self, left: Functionals, right: Functionals) -> Array:
        """Of functionals with others, (left, right), the numerical error left out."""
        raise NotImplementedError

    def _shared(self, left: Functionals, right: Functionals) -> Shared:
        """The same as it is asked for again and again."""
        return SharedDirectly(self._cross_covariance(left, right))

    def _numerical_cross(self, left: Functionals, right: Functionals) -> Array:
        """What the numerical error adds to it."""
        raise NotImplementedError

    @property
    def _reducible(self) -> Posterior:
        """The belief without what no measurement reduces."""
        return self.exact

    def _joint_covariance(self, asked: Sequence[tuple[LatentRelation, Mapping[str, Array], bool]]) -> Array:
        """Of several relations, each at its places: through their best lines, which is exact for pairs of which one is
        linear; what a line leaves out is added where relation and place are the same."""
        lines = [self._line(*each) for each in asked]
        ends = np.cumsum([0, *(functionals.count for functionals, _ in lines)])
        found = np.empty((ends[-1], ends[-1]))
        for i, (left, line) in enumerate(lines):
            rows = slice(ends[i], ends[i + 1])
            for j, (right, _) in enumerate(lines[: i + 1]):
                columns = slice(ends[j], ends[j + 1])
                block = self._cross_covariance(left, right)
                if self.numerical is not None:
                    block = block + self._numerical_cross(left, right)
                found[rows, columns], found[columns, rows] = block, block.T
            found[rows, rows] = 0.5 * (found[rows, rows] + found[rows, rows].T) + _at_same_places(left, line.excess)
        return found

    # -- from weights to functionals

    def _relation(self, of: str) -> LatentRelation:
        text = self.problem.equations[0].text if of == "residual" else of
        relation = self.representation.read(self.problem.relation(text))
        if not relation.functionals:
            raise expected("a quantity of the field", f"{of!r}, which knows none", f"of='{self.problem.fields[0]}'")
        return relation

    def _noise(self, name: str) -> float:
        if name not in self.noise:
            raise expected("observations of what noise=True is asked for", name, "noise=False")
        return self.noise[name]

    def _located(self, relation: LatentRelation, flat: Mapping[str, Array]) -> dict[str, Array]:
        """Points with the values of tables that a relation mentions."""
        return located(flat, relation.coordinates, self.problem.constants)

    def _coordinates(
        self, axes: Mapping[str, ArrayLike], points: bool, relations: Sequence[LatentRelation]
    ) -> tuple[dict[str, Array], list[str]]:
        """Checked coordinates, and the axes left out because nothing asked for depends on them."""
        names = self.problem.domain.names
        used = {axis for relation in relations for axis in self._axes_read(relation)}
        used |= {name for relation in relations for name in relation.coordinates}
        unused = [name for name in names if name not in axes and name not in used]
        axes = {**axes, **{name: [self.problem.domain[name].lower] for name in unused}}
        for name in axes:
            if name not in names:
                raise expected(f"coordinates for the axes {', '.join(names)}", name, nearest(name, names))
        missing = [name for name in names if name not in axes]
        if missing:
            raise expected(
                f"coordinates for every axis of {', '.join(names)}", f"none for {missing[0]}", f"{missing[0]}=..."
            )
        grid = {name: np.atleast_1d(np.asarray(axes[name], float)) for name in names}
        for name, x in grid.items():
            if x.ndim != 1 or len(x) == 0 or not np.all(np.isfinite(x)):
                raise expected(f"a finite one-dimensional array for {name}", f"shape {x.shape}", "np.linspace(...)")
        for name in names:
            axis = self.problem.domain[name]
            outside = grid[name][~axis.contains(grid[name])]
            if len(outside) and not isinstance(axis, Periodic):
                remedy = "a longer horizon" if name == TIME else "a wider domain"
                received = f"{len(outside)} outside (first {outside[0]:.6g})"
                raise expected(f"{name} inside [{axis.lower:g}, {axis.upper:g}]", received, remedy)
        if points:
            length = max(len(x) for x in grid.values())
            if any(len(x) not in (1, length) for x in grid.values()):
                raise expected(
                    "equally many coordinates per axis with points=True", "different lengths", "points=False"
                )
            grid = {name: np.broadcast_to(x, (length,)) for name, x in grid.items()}
        return grid, unused

    def _axes_read(self, relation: LatentRelation) -> set[str]:
        """The axes that what a relation reads varies over."""
        return {axis for f in relation.functionals for axis in self.representation.latents[f.latent].basis.axes}

    def _atoms(self, relation: LatentRelation) -> list[Atom]:
        found = [(f.latent, orders) for f in relation.functionals for orders, _ in f.terms]
        return list(dict.fromkeys(found))

    def _combination(self, relation: LatentRelation, atoms: Sequence[Atom], flat: Mapping[str, Array]) -> Array:
        """Coefficients (points or 1, functionals, atoms) that make functionals from derivatives."""
        table: dict[tuple[int, int], float | Array] = {}
        for j, functional in enumerate(relation.functionals):
            for orders, coefficient in functional.terms:
                where = (j, atoms.index((functional.latent, orders)))
                table[where] = evaluate_coefficient(coefficient, self.problem.constants, flat)
        count = len(next(iter(flat.values())))
        combine = np.zeros((count, len(relation.functionals), len(atoms)))
        for where, value in table.items():
            combine[:, where[0], where[1]] = value
        return combine

    def _combine_means(self, relation: LatentRelation, means: Array, flat: Mapping[str, Array]) -> Array:
        return np.einsum("nja,an->nj", self._combination(relation, self._atoms(relation), flat), means)

    def _grid_means(self, atoms: Sequence[Atom], grid: Mapping[str, Array], weights: Array) -> Array:
        means = []
        for name, orders in atoms:
            latent = self.representation.latents[name]
            field = latent.basis.raw(weights[latent.block]).reshape(latent.basis.shape)
            for matrix in latent.basis.matrices(grid, orders):  # contracts the leading axis, appends its grid axis
                field = np.tensordot(field, matrix, axes=(0, 1))
            means.append(self._spread(field, latent, grid))
        return np.stack(means)

    def _spread(self, values: Array, latent: Latent, grid: Mapping[str, Array]) -> Array:
        """Values over a latent's own axes, broadcast over the whole grid and flattened."""
        shape = [len(x) if name in latent.basis.axes else 1 for name, x in grid.items()]
        return np.broadcast_to(np.reshape(values, shape), [len(x) for x in grid.values()]).ravel()


def _parts(grid: Mapping[str, Array], points: bool) -> Iterator[dict[str, Array]]:
    """Places a part at a time, in the order of all: scattered ones, or those of a grid, whose last axis runs first."""
    most = MOST_SCATTERED if points else MOST_ON_GRID
    sizes = [len(x) for x in grid.values()]
    if (sizes[0] if points else math.prod(sizes)) <= most:
        yield dict(grid)
        return
    cut = 0 if points else next(i for i in range(len(sizes)) if math.prod(sizes[i + 1 :]) <= most)
    length = most if points else max(1, most // math.prod(sizes[cut + 1 :]))
    names = list(grid)
    for before in np.ndindex(*sizes[:cut]):
        fixed = {name: grid[name][at : at + 1] for name, at in zip(names, before, strict=False)}
        for start in range(0, sizes[cut], length):
            own = slice(start, start + length)
            yield {n: fixed[n] if n in fixed else x[own] if points or n == names[cut] else x for n, x in grid.items()}


def _at_same_places(functionals: Functionals, values: Array) -> Array:
    """A matrix of the values where two places are one, zero elsewhere."""
    if not np.any(values):
        return np.zeros((len(values), len(values)))
    _, place = np.unique(np.stack(list(functionals.flat.values())), axis=1, return_inverse=True)
    return np.where(place.ravel()[:, None] == place.ravel(), values, 0.0)


def _drawn(root: Array, rng: np.random.Generator) -> Array:
    """One draw of errors with a covariance of this root."""
    return root * rng.standard_normal(len(root)) if root.ndim == 1 else root @ rng.standard_normal(root.shape[-1])


def shaped(arrays: Mapping[str, Array], name: str, *shape: int | None) -> Array:
    """A stored array of a given shape; None fits any length."""
    found = arrays[name]
    fits = len(found.shape) == len(shape) and all(b in (a, None) for a, b in zip(found.shape, shape, strict=True))
    if not fits or found.size == 0:
        wanted = " x ".join("any" if length is None else str(length) for length in shape)
        raise expected(f"an array {name} of {wanted} numbers", f"shape {found.shape}", "saving it again")
    return found


def checked_levels(quantiles: Sequence[float]) -> Array:
    levels = np.asarray(quantiles, float)
    if levels.ndim != 1 or not np.all((levels > 0.0) & (levels < 1.0)):
        raise expected("quantile levels between 0 and 1", quantiles, "quantiles=[0.05, 0.95]")
    return levels

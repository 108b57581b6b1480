"""Posterior over a chain of time windows: filtered beliefs, what later windows say, and the modes left out.

A prediction touches only the windows its times fall in; a window's covariance is put together when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import expected
from factorfield.messages.elimination import InteriorNoise, NoiseBlock, Segment, smoothed, told
from factorfield.messages.gaussian import Belief, Message
from factorfield.messages.paths import Readings, SmoothedPath
from factorfield.model.basis import Departure, Orders
from factorfield.model.graded import GradedSpline
from factorfield.model.representation import Representation, end_map, layout, window_representation
from factorfield.model.spectrum import Tail
from factorfield.posterior.base import Estimate, Posterior, shaped
from factorfield.posterior.functionals import Atom, Functionals
from factorfield.posterior.gaussian import GaussianPosterior, contract_pairs
from factorfield.posterior.left_out import LastOctave
from factorfield.posterior.numbers import Numbers
from factorfield.posterior.stored import StoredBeliefs
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
AT_ONCE = 1024  # scattered points whose rows over all weights are held together
# arrays of a segment by their names in files
STORED = {
    "slope": "slope", "offset": "offset", "outside": "end_noise", "forward": "transition", "shift": "shift",
    "kick": "noise_root",
}  # fmt: skip

_ByWindow = dict[int, tuple[Functionals, NDArray[np.int64]]]


class InteriorTable(NamedTuple):
    """A block of the noise inside a window: what each of its noises does to which features of space and time."""

    places: NDArray[np.int64]
    powers: NDArray[np.int64]
    table: Array  # (powers, places, noises)


@dataclass(frozen=True, eq=False)
class ChainPosterior(Posterior):
    """Windows between `edges`; `starts` are filtered beliefs, `futures` what comes back from later windows."""

    edges: Array
    starts: Sequence[Belief]
    links: Sequence[Segment]
    futures: Sequence[Message]
    tails: Mapping[str, Tail] = field(default_factory=dict)
    numbers: Numbers | None = None  # unknown numbers that are no weights of a window: the last of the representation
    cells: tuple[GradedSpline, ...] = ()  # of each window, where they move

    marker = "chain_edges"

    def window(self, index: int) -> GaussianPosterior:
        """The belief about all weights of one window."""
        seen = self.seen(index)
        _, rest = layout(self.windowed)
        inside = np.zeros((len(seen.mean), len(rest)))
        inside[rest] = self.links[index].interior.dense()
        return replace(seen, root=np.column_stack([seen.root, inside]))

    def seen(self, index: int) -> GaussianPosterior:
        """The belief about a window's weights without the noise that stays inside it."""
        order = np.concatenate(layout(self.windowed))
        known = smoothed(self.starts[index], self.links[index], self.futures[index])
        mean, root = np.empty(len(order)), np.empty(known.root.shape)
        mean[order], root[order] = known.mean, known.root
        if self.numbers is not None:
            mean, root = self.numbers.extended(index, mean, root)
        error = None if self.numerical is None else self.numerical[index]
        return GaussianPosterior(self.problem, self._moved(index), self.noise, mean, root, numerical=error)

    @cached_property
    def windowed(self) -> Representation:
        """What the windows' weights are: the representation without the numbers beside them."""
        return _without_numbers(self.representation, self.numbers)

    def _moved(self, index: int) -> Representation:
        cells = self.cells[index] if self.cells else None
        return window_representation(self.representation, self.edges[index], self.edges[index + 1], cells)

    def _ends(self) -> list[Array]:
        """From each window's weights, state and inner ones, to the state at its end."""
        order, found = np.concatenate(layout(self.windowed)), []
        cells: list[GradedSpline | None] = [*self.cells, self.cells[-1]] if self.cells else [None] * len(self.edges)
        for edges, (own, onto) in zip(pairwise(self.edges), pairwise(cells), strict=True):
            found.append(end_map(window_representation(self.windowed, *edges, own), onto)[:, order])
        return found

    def _add_interior_at(
        self, covariance: Array, index: int, atoms: Sequence[Atom], points: Mapping[str, Array]
    ) -> None:
        """Add the noise inside a window to the covariance (atoms, atoms, n) of derivatives at scattered points."""
        latents, (_, rest) = self._moved(index).latents, layout(self.windowed)
        for start in range(0, covariance.shape[2], AT_ONCE):
            chosen = slice(start, start + AT_ONCE)
            part = {axis: x[chosen] for axis, x in points.items()}
            rows = np.zeros((len(atoms), len(part[TIME]), self.representation.size))
            for own, (name, orders) in zip(rows, atoms, strict=True):
                own[:, latents[name].block] = latents[name].basis.rows(part, orders)
            for noise in self.links[index].interior.parts:
                moved = rows[:, :, rest[noise.where]] @ noise.block
                covariance[:, :, chosen] += np.einsum("anr,bnr->abn", moved, moved, optimize=True)

    def _add_interior(
        self, covariance: Array, index: int, atoms: Sequence[Atom], grid: Mapping[str, Array]
    ) -> None:
        """The same on a grid, block by block."""
        representation = self._moved(index)
        roots = [self._interior_roots(index, representation, latent, orders, grid) for latent, orders in atoms]
        for a, (first, orders_a) in enumerate(atoms):
            for b, (second, orders_b) in enumerate(atoms[: a + 1]):
                if roots[a] is None or roots[b] is None:
                    continue  # coefficients have no inside
                left, right = representation.latents[first].basis, representation.latents[second].basis
                across = tuple(basis.size // basis.families[TIME].size for basis in (left, right))
                at_times = np.zeros((len(grid[TIME]), *across))
                for (places, root), (others, other) in zip(roots[a] or [], roots[b] or [], strict=True):
                    at_times[:, places[:, None], others] += root @ other.transpose(0, 2, 1)
                f, g = left.matrices(grid, orders_a)[1:], right.matrices(grid, orders_b)[1:]
                added = contract_pairs(at_times, f, g).ravel()
                covariance[a, b] += added
                if a != b:
                    covariance[b, a] += added

    def _interior_roots(
        self, index: int, representation: Representation, name: str, orders: Orders, grid: Mapping[str, Array]
    ) -> list[tuple[NDArray[np.int64], Array]] | None:
        """Per block of the noise inside: which space features it moves, and how, (times, features, noises)."""
        basis = representation.latents[name].basis
        if not isinstance(basis.families.get(TIME), Departure):
            return None
        shape = basis.families[TIME](grid[TIME], dict(orders).get(TIME, 0))
        return [
            (places, np.tensordot(shape[:, powers], block, 1))
            for places, powers, block in self._interior_tables(self.links[index], name)
        ]

    def _interior_tables(self, link: Segment, name: str) -> list[InteriorTable]:
        """The noise inside, block by block; made once per link."""
        if (id(link.interior), name) not in self._tables:
            latent = self.representation.latents[name]
            across = latent.basis.size // latent.basis.families[TIME].size
            _, rest = layout(self.windowed)
            tables = []
            for part in link.interior.parts:
                weights, block = rest[part.where], part.block
                mine = (weights >= latent.block.start) & (weights < latent.block.stop)
                power, place = np.divmod(weights[mine] - latent.block.start, across)
                powers, places = np.unique(power), np.unique(place)
                table = np.zeros((len(powers), len(places), block.shape[1]))
                table[np.searchsorted(powers, power), np.searchsorted(places, place)] = block[mine]
                tables.append(InteriorTable(places, powers, table))
            self._tables[id(link.interior), name] = tables
        return self._tables[id(link.interior), name]

    @cached_property
    def _tables(self) -> dict[tuple[int, str], list[InteriorTable]]:
        return {}

    @property
    def weight_mean(self) -> Array:
        """Weights of the first window: the state at the start and how it departs."""
        return self.window(0).weight_mean

    @property
    def weight_std(self) -> Array:
        return self.window(0).weight_std

    def parameters(self, level: float = 0.9) -> dict[str, Estimate]:
        return self.seen(len(self.links) - 1).parameters(level) if self.problem.unknowns else {}

    def _coefficient_covariance(self) -> Array:
        return self.seen(len(self.links) - 1)._coefficient_covariance()

    @property
    def _is_told(self) -> bool:
        return not isinstance(self.starts, StoredBeliefs) and not self.starts[0].root.shape[1]

    @classmethod
    def _told(
        cls, problem: Problem, representation: Representation, noise: Mapping[str, float], arrays: Mapping[str, Array]
    ) -> Self:
        """Windows of which nothing is uncertain."""
        state, inner = (len(part) for part in layout(representation))
        windows = len(shaped(arrays, "chain_edges", None)) - 1
        means, ends = (shaped(arrays, key, windows, state) for key in ("chain_mean", "chain_shift"))
        inside = shaped(arrays, "chain_told", windows, inner)
        if np.any(np.diff(arrays["chain_edges"]) <= 0.0):
            raise expected("windows one after the other", "edges in disorder", "saving it again")
        return cls(
            problem, representation, noise, arrays["chain_edges"],
            [Belief(mean, np.zeros((state, 0))) for mean in means],
            [told(own, end) for own, end in zip(inside, ends, strict=True)], [Message.nothing(state)] * windows,
        )  # fmt: skip

    # -- fields

    def _windows_of(self, times: Array) -> NDArray[np.int64]:
        return np.clip(np.searchsorted(self.edges[1:-1], times, side="left"), 0, len(self.links) - 1)

    def _atom_moments(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> tuple[Array, Array]:
        which = self._windows_of(np.asarray(grid[TIME]))
        across = 1 if points else int(np.prod([len(x) for name, x in grid.items() if name != TIME], dtype=int))
        means = np.empty((len(atoms), len(which), across))
        covariance = np.empty((len(atoms), len(atoms), len(which), across))
        for index in np.unique(which):
            chosen = np.flatnonzero(which == index)
            part = {name: x[chosen] if points or name == TIME else x for name, x in grid.items()}
            own_means, own = self.seen(int(index))._atom_moments(atoms, part, points)
            (self._add_interior_at if points else self._add_interior)(own, int(index), atoms, part)
            self._add_left_out(own, int(index), atoms, part, points)
            means[:, chosen] = own_means.reshape(len(atoms), len(chosen), across)
            covariance[:, :, chosen] = own.reshape(len(atoms), len(atoms), len(chosen), across)
        return means.reshape(len(atoms), -1), covariance.reshape(len(atoms), len(atoms), -1)

    def _add_left_out(
        self, covariance: Array, index: int, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool
    ) -> None:
        """Add the variance of the modes that the basis leaves out, where those that it holds say that they are."""
        for a, (name, orders) in enumerate(atoms):
            if name in self.tails:
                tail = self.tails[name]
                size = tail.of(dict(orders), np.asarray(grid[TIME]) - self.edges[0])
                covariance[a, a] += (size[:, None] * self._octave(index, name).share(grid, points)).ravel()

    def _octave(self, index: int, name: str) -> LastOctave:
        if (index, name) not in self._octaves:
            self._octaves[index, name] = LastOctave.of(self.seen(index), name, self.tails[name].axis)
        return self._octaves[index, name]

    @cached_property
    def _octaves(self) -> dict[tuple[int, str], LastOctave]:
        return {}

    def _waves_left_out(self, name: str, orders: Orders, flat: Mapping[str, Array]) -> NDArray[np.complex128]:
        """A derivative of every left-out wave at places, large where the field's finest ones are: (places, waves)."""
        tail, which = self.tails[name], self._windows_of(np.asarray(flat[TIME]))
        found = tail.waves(dict(orders), {**flat, TIME: flat[TIME] - self.edges[0]})
        for index in np.unique(which):
            chosen = np.flatnonzero(which == index)
            part = {axis: x[chosen] for axis, x in flat.items()}
            found[chosen] *= np.sqrt(np.maximum(self._octave(int(index), name).share(part, True), 0.0))
        return found

    def _numerical_covariance(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> Array:
        assert self.numerical is not None
        which = self._windows_of(np.asarray(grid[TIME]))
        across = 1 if points else int(np.prod([len(x) for name, x in grid.items() if name != TIME], dtype=int))
        covariance = np.empty((len(atoms), len(atoms), len(which), across))
        for index in np.unique(which):
            chosen = np.flatnonzero(which == index)
            part = {name: x[chosen] if points or name == TIME else x for name, x in grid.items()}
            nowhere, root = np.zeros(self.numerical.shape[1]), self.numerical[index]
            error = GaussianPosterior(
                self.problem, self._moved(int(index)), self.noise, nowhere, root[:, :0], numerical=root
            )
            own = error._numerical_covariance(atoms, part, points)
            covariance[:, :, chosen] = own.reshape(len(atoms), len(atoms), len(chosen), across)
        return covariance.reshape(len(atoms), len(atoms), -1)

    # -- covariances between windows

    @property
    def _reducible(self) -> Posterior:
        return replace(self, numerical=None, tails={})

    def _cross_covariance(self, left: Functionals, right: Functionals) -> Array:
        """Along the smoothed path, by the noise inside windows, by what the numbers move, and by the waves left out (of
        one derivative with itself only, as their variance is)."""
        ordered = self._path.covariances(self._readings(left), self._readings(right))
        rows, columns = self._by_window(left), self._by_window(right)
        self._add_inside(ordered, rows, columns)
        found = _in_order(_in_order(ordered, rows).T, columns).T
        if self.numbers is not None:
            roots = [self.numbers.shared_root(index) for index in range(len(self.links))]
            found = found + self._through(roots, left, right)
        for name in self.tails:
            found = found + self._waves_between(name, left, right)
        return found

    @cached_property
    def _path(self) -> SmoothedPath:
        return SmoothedPath(self.starts, self.links, self.futures)

    def _readings(self, functionals: Functionals) -> list[Readings]:
        """What functionals read of the columns of their windows; made once."""
        if "path" not in functionals.held:
            order, made = np.concatenate(layout(self.windowed)), []
            for index, (part, _) in self._by_window(functionals).items():
                root, moved = self._path.columns(index)
                columns = np.zeros((self.representation.size, root.shape[1] + moved.shape[1]))
                columns[order, : root.shape[1]], columns[order, root.shape[1] :] = root, moved
                read = self._bare(index).readings(part, columns)
                made.append(Readings(index, read[:, : root.shape[1]], read[:, root.shape[1] :]))
            functionals.held["path"] = made
        found: list[Readings] = functionals.held["path"]
        return found

    def _add_inside(self, found: Array, left: _ByWindow, right: _ByWindow) -> None:
        """What the noise that stays inside a window adds, to rows and columns by ascending windows."""
        (_, rest), row = layout(self.windowed), 0
        for index, (part, _) in left.items():
            if index in right:
                weights = np.zeros((part.count, self.representation.size))
                weights[:, rest] = self.links[index].interior.between(self._bare(index).rows_of(part)[:, rest])
                other = right[index][0]
                column = sum(each.count for at, (each, _) in right.items() if at < index)
                own = found[row : row + part.count, column : column + other.count]
                own += self._bare(index).readings(other, weights.T).T
            row += part.count

    def _waves_between(self, name: str, left: Functionals, right: Functionals) -> Array:
        """What the waves left out of a field add to covariances."""
        found, variance = np.zeros((left.count, right.count)), self.tails[name].variance
        for a, (latent, orders) in enumerate(left.atoms):
            if latent == name and (latent, orders) in right.atoms:
                one, other = (self._waves_left_out(name, orders, each.flat) for each in (left, right))
                both = np.real((one * variance) @ other.conj().T)
                found += left.slopes[a][:, None] * both * right.slopes[right.atoms.index((latent, orders))]
        return found

    def _numerical_cross(self, left: Functionals, right: Functionals) -> Array:
        assert self.numerical is not None
        return self._through(list(self.numerical), left, right)

    def _through(self, roots: Sequence[Array], left: Functionals, right: Functionals) -> Array:
        """Covariances by noises that all windows share, each through a root of its own."""
        shares = []
        for functionals in (left, right):
            share = np.empty((functionals.count, roots[0].shape[1]))
            for index, (part, numbers) in self._by_window(functionals).items():
                share[numbers] = self._bare(index).readings(part, roots[index])
            shares.append(share)
        return np.asarray(shares[0] @ shares[1].T)

    def _bare(self, index: int) -> GaussianPosterior:
        """A window's features, without a belief."""
        nowhere = np.zeros(self.representation.size)
        return GaussianPosterior(self.problem, self._moved(index), self.noise, nowhere, np.zeros((len(nowhere), 0)))

    def _by_window(self, functionals: Functionals) -> _ByWindow:
        """The functionals of each window in ascending order, and their numbers; taken apart once."""
        if "windows" not in functionals.held:
            which = self._windows_of(np.asarray(functionals.grid[TIME]))
            functionals.held["windows"] = {
                int(index): functionals.during(np.flatnonzero(which == index)) for index in np.unique(which)
            }
        found: _ByWindow = functionals.held["windows"]
        return found

    def _left_out_draws(
        self, atoms: Sequence[Atom], flat: Mapping[str, Array]
    ) -> Callable[[np.random.Generator], Array] | None:
        if not self.tails:
            return None
        waves = {
            place: np.sqrt(self.tails[name].variance) * self._waves_left_out(name, orders, flat)
            for place, (name, orders) in enumerate(atoms)
            if name in self.tails
        }

        def draw(rng: np.random.Generator) -> Array:
            drawn = {name: rng.standard_normal((2, len(tail.wave))) for name, tail in self.tails.items()}
            found = np.zeros((len(atoms), len(flat[TIME])))
            for place, table in waves.items():
                parts = drawn[atoms[place][0]]
                found[place] = (table @ (parts[0] + 1j * parts[1])).real
            return found

        return draw

    def _weight_draws(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        """Paths (windows, weights): the state at the start, then window by window what its end and the future allow."""
        width = len(self.starts[0].mean)
        beliefs = [smoothed(s, link, f) for s, link, f in zip(self.starts, self.links, self.futures, strict=True)]
        given = [] if self._is_told else [linalg.svd(belief.root[:width], full_matrices=True) for belief in beliefs]
        order = np.concatenate(layout(self.windowed))
        ends = [] if self._is_told else self._ends()
        for _ in range(count):
            if self._is_told:
                yield np.stack([self.seen(index).mean for index in range(len(self.links))])
                continue
            path, state = np.empty((len(self.links), len(order))), None
            for index, (belief, link) in enumerate(zip(beliefs, self.links, strict=True)):
                if state is not None:  # condition on where the last window ended
                    left, singular, right = given[index]
                    known = rng.standard_normal(right.shape[0])
                    good = singular > 1e-12 * max(singular[0], 1e-300)
                    gap = left.T @ (state - belief.mean[:width])
                    known[: len(singular)] = np.where(good, gap / np.where(good, singular, 1.0), 0.0)
                    rest = belief.mean[width:] + belief.root[width:] @ (right.T @ known)
                else:
                    drawn = belief.mean + belief.root @ rng.standard_normal(belief.root.shape[1])
                    state, rest = drawn[:width], drawn[width:]
                rest = rest + link.interior @ rng.standard_normal(len(rest))
                whole = np.concatenate([state, rest])
                path[index, order] = whole
                state = ends[index] @ whole
            yield path if self.numbers is None else self.numbers.drawn(path, rng)

    def _grid_means(self, atoms: Sequence[Atom], grid: Mapping[str, Array], weights: Array) -> Array:
        which = self._windows_of(np.asarray(grid[TIME]))
        shape = (len(atoms), -1, int(np.prod([len(x) for n, x in grid.items() if n != TIME], dtype=int)))
        result = np.empty((len(atoms), len(which), shape[2]))
        for index in np.unique(which):
            chosen = np.flatnonzero(which == index)
            part = {name: x[chosen] if name == TIME else x for name, x in grid.items()}
            flat = weights[index]
            window = GaussianPosterior(
                self.problem, self._moved(int(index)), self.noise, flat, np.zeros((len(flat), 0))
            )
            result[:, chosen] = window._grid_means(atoms, part, flat).reshape(shape)
        return result.reshape(len(atoms), -1)

    # -- files

    def arrays(self) -> dict[str, Array]:
        if self._is_told:
            return {
                "chain_edges": self.edges, "chain_mean": np.stack([b.mean for b in self.starts]),
                "chain_told": np.stack([link.offset for link in self.links]),
                "chain_shift": np.stack([link.shift for link in self.links]),
            }  # fmt: skip
        unique = list({id(link): link for link in self.links}.values())
        stored = {
            "chain_edges": self.edges,
            "chain_kind": np.array([next(i for i, u in enumerate(unique) if u is link) for link in self.links], float),
            "chain_mean": np.stack([b.mean for b in self.starts]),
            "chain_root": np.stack([b.root for b in self.starts]),
        }
        for name, messages in (("future", self.futures), ("message", [link.message for link in unique])):
            packed = [_packed(message) for message in messages]
            stored[f"chain_{name}_rows"] = np.stack([rows for rows, _ in packed])
            stored[f"chain_{name}_target"] = np.stack([target for _, target in packed])
        for name, attribute in STORED.items():
            stored[f"chain_{name}"] = np.stack([getattr(link, attribute) for link in unique])
        for i, link in enumerate(unique):  # blocks in a row: their sizes, their rows, their entries
            parts = link.interior.parts
            sizes = [part.directions.shape for part in parts]
            stored[f"chain_inside_sizes_{i}"] = np.array(sizes, float).reshape(-1, 2)
            stored[f"chain_inside_where_{i}"] = _joined([part.where for part in parts])
            stored[f"chain_inside_{i}"] = _joined([part.root.ravel() for part in parts])
            stored[f"chain_inside_directions_{i}"] = _joined([part.directions.ravel() for part in parts])
        if self.cells:
            stored["chain_breaks"] = np.array([cells.breaks for cells in self.cells])
        for name, tail in self.tails.items():
            stored[f"tail_{name}"] = np.stack([tail.wave, tail.variance, tail.rate.real, tail.rate.imag])
        return stored if self.numbers is None else {**stored, **self.numbers.arrays()}

    @classmethod
    def from_arrays(
        cls, problem: Problem, representation: Representation, noise: Mapping[str, float], arrays: Mapping[str, Array]
    ) -> Self:
        if "chain_told" in arrays:
            return cls._told(problem, representation, noise, arrays)
        numbers = Numbers.from_arrays(arrays, representation.size)
        _check_shapes(_without_numbers(representation, numbers), arrays)
        links = []
        for i in range(len(arrays["chain_slope"])):
            message = _unpacked(arrays["chain_message_rows"][i], arrays["chain_message_target"][i])
            interior = InteriorNoise(arrays["chain_slope"].shape[1], _interior_blocks(arrays, i))
            held = {attribute: arrays[f"chain_{name}"][i] for name, attribute in STORED.items()}
            links.append(Segment(message=message, interior=interior, **held))
        pairs = zip(arrays["chain_future_rows"], arrays["chain_future_target"], strict=True)
        space = problem.domain.space[0] if problem.domain.space else ""
        tails = {
            key.removeprefix("tail_"): Tail(space, values[0], values[1], values[2] + 1j * values[3])
            for key in arrays if key.startswith("tail_") for values in [shaped(arrays, key, 4, None)]
        }  # fmt: skip
        return cls(
            problem, representation, noise, arrays["chain_edges"],
            [Belief(m, r) for m, r in zip(arrays["chain_mean"], arrays["chain_root"], strict=True)],
            [links[int(kind)] for kind in arrays["chain_kind"]],
            [_unpacked(rows, target) for rows, target in pairs], tails, numbers, _stored_cells(representation, arrays),
        )  # fmt: skip


def _without_numbers(representation: Representation, numbers: Numbers | None) -> Representation:
    """The representation without its last weights, if these are numbers."""
    if numbers is None:
        return representation
    kept = list(representation.forms.items())[: -len(numbers.mean)]
    bases = {unit: latent.basis for unit, latent in representation.latents.items()}
    return Representation.build([(name, bases[form.latents[0]], form) for name, form in kept])


def _stored_cells(representation: Representation, arrays: Mapping[str, Array]) -> tuple[GradedSpline, ...]:
    if "chain_breaks" not in arrays:
        return ()
    bases = [latent.basis for latent in representation.latents.values()]
    first = next((own for basis in bases for own in basis.families.values() if isinstance(own, GradedSpline)), None)
    if first is None:
        raise expected("cells of a model that has them", "others", "saving it again")
    breaks = shaped(arrays, "chain_breaks", len(arrays["chain_edges"]) - 1, len(first.breaks))
    ends = np.all(breaks[:, [0, -1]] == [first.breaks[0], first.breaks[-1]])
    if not ends or np.any(np.diff(breaks, axis=1) <= 0.0):
        raise expected("cells one after the other", "breaks in disorder", "saving it again")
    return tuple(replace(first, breaks=tuple(map(float, own))) for own in breaks)


def _check_shapes(representation: Representation, arrays: Mapping[str, Array]) -> None:
    """Whether a file's arrays are windows of this representation."""
    state, inner = (len(part) for part in layout(representation))
    windows = len(shaped(arrays, "chain_edges", None)) - 1
    kinds = len(shaped(arrays, "chain_slope", None, inner, state))
    shaped(arrays, "chain_mean", windows, state)
    shaped(arrays, "chain_root", windows, state, None)
    for name, count in (("future", windows), ("message", kinds)):
        shaped(arrays, f"chain_{name}_rows", count, state, state)
        shaped(arrays, f"chain_{name}_target", count, state)
    for name, shape in (("offset", (inner,)), ("outside", (inner, None)), ("forward", (state, state))):
        shaped(arrays, f"chain_{name}", kinds, *shape)
    shaped(arrays, "chain_shift", kinds, state)
    shaped(arrays, "chain_kick", kinds, state, arrays["chain_outside"].shape[2])
    if np.any(np.diff(arrays["chain_edges"]) <= 0.0):
        raise expected("windows one after the other", "edges in disorder", "saving it again")
    _check_indices("chain_kind", shaped(arrays, "chain_kind", windows), kinds)
    for i in range(kinds):
        _check_indices(f"chain_inside_where_{i}", arrays[f"chain_inside_where_{i}"], inner)


def _check_indices(name: str, values: Array, count: int) -> None:
    known = values.ndim == 1 and bool(np.all((values >= 0.0) & (values < count)))  # also not of NaN
    if not known or np.any(values != np.round(values)):
        raise expected(f"{name} of whole numbers below {count}", "others", "saving it again")


def _in_order(ordered: Array, parts: _ByWindow) -> Array:
    """Rows by ascending windows in the order of their own numbers."""
    numbers = np.concatenate([own for _, own in parts.values()])
    if np.all(np.diff(numbers) == 1):
        return ordered
    found = np.empty_like(ordered)
    found[numbers] = ordered
    return found


def _joined(parts: Sequence[NDArray[Any]]) -> Array:
    """One after the other; of none, nothing."""
    return np.concatenate([np.zeros(0), *parts])


def _packed(message: Message) -> tuple[Array, Array]:
    """Rows and targets of one shape for all messages; those that are not there have no target."""
    width, count = message.rows.shape[1], len(message.rows)
    rows, target = np.zeros((width, width)), np.full(width, np.nan)
    rows[:count], target[:count] = message.rows, message.target
    return rows, target


def _unpacked(rows: Array, target: Array) -> Message:
    there = ~np.isnan(target)
    return Message(rows[there], target[there])


def _interior_blocks(stored: Mapping[str, Array], i: int) -> tuple[NoiseBlock, ...]:
    sizes = stored[f"chain_inside_sizes_{i}"].astype(int)
    if not len(sizes):
        return ()
    if sizes.ndim == 1:  # format 1 held blocks as they are: no directions to take out
        sizes = np.column_stack([sizes, np.zeros_like(sizes)])
    rows, columns = sizes.T
    places = np.split(stored[f"chain_inside_where_{i}"].astype(int), np.cumsum(rows)[:-1])
    roots = np.split(stored[f"chain_inside_{i}"], np.cumsum(rows**2)[:-1])
    held = stored.get(f"chain_inside_directions_{i}", np.zeros(0))
    directions = np.split(held, np.cumsum(rows * columns)[:-1])
    return tuple(
        NoiseBlock(where, root.reshape(len(where), len(where)), ways.reshape(tuple(size)))
        for where, root, ways, size in zip(places, roots, directions, sizes, strict=True)
    )

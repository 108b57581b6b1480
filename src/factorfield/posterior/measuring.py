"""Where to measure next: places chosen one after the other, each where it takes most variance from what is wanted.

A measurement of a functional c with noise sigma takes cov(c, target)^2 / (var c + sigma^2) from the variance of a
target, whatever its value turns out to be: the best place is known before anything is measured. After a choice all
covariances lose a product of two (a rank-one update), so that choosing costs no solve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.posterior.base import Posterior
from factorfield.posterior.functionals import Functionals
from factorfield.problem.domain import TIME, Axis, Periodic
from factorfield.problem.problem import Problem

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
MOST_CANDIDATES = 50_000  # with the nodes of a target, their covariances take up to 230 MB
ALONG = {1: 201, 2: 41, 3: 13}  # candidates along each axis, by the number of axes; fewer beyond
NODES = {1: 96, 2: 24, 3: 8}  # of the target's quadrature
FEWEST = 5
EXACT = (
    "exact, given noise levels and spectra as found: equations and measurements are linear, no coefficient is unknown"
)
LINEARISED = "linearised: coefficients and nonlinear terms vary with the fields as they do at what is known now"


@dataclass(frozen=True, eq=False)
class Target:
    """A quantity on the nodes of a grid, and the share of each in the variance that counts."""

    of: str
    grid: Mapping[str, Array]
    shares: Array
    text: str

    def line(self, posterior: Posterior) -> tuple[Functionals, float]:
        """Functionals, each times the root of its share, and the variance: the mean over the target, the numerical
        error included."""
        nodes, line = posterior._line(posterior._relation(self.of), self.grid, False)
        variance = float(self.shares @ (np.maximum(line.explained, 0.0) + line.excess))
        return replace(nodes, slopes=nodes.slopes * np.sqrt(self.shares)), variance


@dataclass(frozen=True, eq=False)
class Choice:
    """Numbers of the candidates chosen, the variance that each takes, and what every candidate would take first."""

    chosen: tuple[int, ...]
    taken: tuple[float, ...]
    gain: Array


def next_measurements(
    posterior: Posterior, count: int, sigma: float | None, candidates: object, of: str, target: object
) -> xr.Dataset:
    """The best places for `count` further measurements, one after the other, with what each is expected to leave."""
    import xarray as xr

    _check_count(count)
    believed, noise = posterior._reducible, _noise(posterior, of, sigma)
    grid, points = candidates_of(posterior, of, candidates)
    wanted = target_of(posterior, of, target)
    places, line = believed._line(believed._relation(of), grid, points)
    aims, before = wanted.line(posterior)
    inside = _inside(posterior.problem, places.flat)
    if not np.any(inside):
        raise expected("candidates inside the region", "none", "other places")
    found = _greedy(believed, aims, places, np.where(inside, np.maximum(line.explained, 0.0), np.nan), noise**2, count)
    if not before > 0.0:
        raise expected("a target that is uncertain", f"{wanted.text}, whose std is {before:g}", "another target")
    left = np.maximum(before - np.cumsum(found.taken), 0.0)
    dims = ("candidate",) if points else tuple(f"candidate_{name}" for name in grid)
    coords: dict[str, Any] = {name: ("measurement", x[list(found.chosen)]) for name, x in places.flat.items()}
    coords["measurement"] = np.arange(1, count + 1)
    for name, x in grid.items():
        coords[f"candidate_{name}"] = ("candidate", x) if points else x
    shape = (places.count,) if points else tuple(len(x) for x in grid.values())
    data = {
        "std": ("measurement", np.sqrt(left)), "removed": ("measurement", 1.0 - left / before),
        "std_now": ((), np.sqrt(before)), "gain": (dims, (found.gain / before).reshape(shape)),
    }  # fmt: skip
    told = {
        "of": of,
        "sigma": noise,
        "target": wanted.text,
        "valid": EXACT if _is_linear(posterior, of) else LINEARISED,
    }
    return xr.Dataset(data, coords, told)


def _greedy(
    believed: Posterior, aims: Functionals, places: Functionals, variance: Array, noise: float, count: int
) -> Choice:
    """A choice takes a b' from the covariances of the target with the places and b b' from those of the places, so that
    sums of squares over the target's nodes take one product each time. Places with a variance of NaN are not chosen."""
    shared = believed._shared(aims, places)
    square = shared.squares()
    first = square / (variance + noise)
    chosen, taken = [int(np.nanargmax(first))], [float(np.nanmax(first))]
    steps: list[tuple[Array, Array]] = []  # a and b
    while len(chosen) < count:
        best = chosen[-1]
        one, _ = places.scattered.during(np.array([best]))
        of_target, of_places = shared.at(one, best), believed._cross_covariance(one, places)[0]
        for a, b in steps:
            of_target, of_places = of_target - b[best] * a, of_places - b[best] * b
        root = np.sqrt(variance[best] + noise)
        a_new, b_new = of_target / root, of_places / root
        along = shared.along(a_new) - sum((float(a_new @ a) * b for a, b in steps), np.zeros(len(variance)))
        square = np.maximum(square - 2.0 * b_new * along + b_new**2 * float(a_new @ a_new), 0.0)
        variance = np.maximum(variance - b_new**2, 0.0)
        steps.append((a_new, b_new))
        gain = square / (variance + noise)
        chosen.append(int(np.nanargmax(gain)))
        taken.append(float(gain[chosen[-1]]))
    return Choice(tuple(chosen), tuple(taken), first)


# -- what may be measured


def candidates_of(posterior: Posterior, of: str, candidates: object) -> tuple[dict[str, Array], bool]:
    """Checked places, and whether they are scattered: rows of a table, else a grid of the axes given, those not given
    from end to end. A tuple of two numbers is a stretch of an axis; of time, what is measured already by default."""
    problem, relation = posterior.problem, posterior._relation(of)
    if not problem.relation(of).jets:
        raise expected("something of a field to measure", of, f"of={problem.fields[0]!r}")
    columns = getattr(candidates, "columns", None)
    if columns is not None:
        table: Any = candidates
        given = {name: np.asarray(table[name], float) for name in columns if name in problem.domain}
        grid, _ = posterior._coordinates(given, True, [relation])
    else:
        if not isinstance(candidates, Mapping | None):
            raise expected(
                "candidates as a mapping of axes to values, or a table with a column per axis",
                type(candidates).__name__, "candidates={'x': np.linspace(0, 1, 50)}",
            )  # fmt: skip
        own: Mapping[str, Any] = candidates or {}
        along = {name: _along(problem, name, own.get(name)) for name in problem.domain.names}
        grid, _ = posterior._coordinates({**own, **along}, False, [relation])
    number = (
        len(grid[problem.domain.names[0]]) if columns is not None else int(np.prod([len(x) for x in grid.values()]))
    )
    if number > MOST_CANDIDATES:
        raise expected(f"at most {MOST_CANDIDATES} candidates", str(number), "a coarser grid")
    return grid, columns is not None


def _along(problem: Problem, name: str, given: Any) -> Any:
    """Candidates along an axis."""
    axis = problem.domain[name]
    if given is not None and not isinstance(given, tuple):
        return given
    lower, upper = axis.lower, axis.upper
    if given is not None:
        lower, upper = _stretch(name, axis, given)
    elif name == TIME:
        lower, upper = _measured_span(problem)
    count = ALONG.get(len(problem.domain), FEWEST)
    whole_ring = isinstance(axis, Periodic) and upper - lower >= axis.length
    return np.linspace(lower, upper, count, endpoint=not whole_ring)


def _measured_span(problem: Problem) -> tuple[float, float]:
    """From the first measurement to the last; the whole axis where that is one instant, or none."""
    axis = problem.domain[TIME]
    times = [s.points[TIME] for s in problem.statements if s.kind == "observation" and s.points is not None]
    lower = min((float(t.min()) for t in times), default=axis.lower)
    upper = max((float(t.max()) for t in times), default=axis.lower)
    return (lower, upper) if lower < upper else (axis.lower, axis.upper)


def _stretch(name: str, axis: Axis, given: Any) -> tuple[float, float]:
    try:
        lower, upper = (float(end) for end in given)
    except (TypeError, ValueError):
        raise expected(f"two numbers for a stretch of {name}", given, f"{name}=(0.0, 1.0)") from None
    if not (lower < upper and np.all(axis.contains([lower, upper]))):
        wanted = f"a stretch of {name} inside [{axis.lower:g}, {axis.upper:g}], lower end first"
        raise expected(wanted, f"({lower:g}, {upper:g})", "ends within the domain")
    return lower, upper


# -- what is wanted


def target_of(posterior: Posterior, of: str, target: object) -> Target:
    """None: the field that is measured, everywhere. A text: a coefficient, or a functional everywhere. A mapping: "of"
    and axes, each at a number or over a stretch (lower, upper); axes left out from end to end."""
    problem = posterior.problem
    measured = next(iter(problem.relation(of).jets.values())).field
    if target is None:
        target = measured
    if not isinstance(target, str | Mapping):
        raise expected("a target as a text or a mapping", type(target).__name__, "target='u', or target={'t': 2.0}")
    asked: Mapping[str, Any] = {"of": target} if isinstance(target, str) else target
    name = str(asked.get("of", measured))
    for key in asked:
        if key != "of" and key not in problem.domain:
            raise expected(f"'of' and the axes {', '.join(problem.domain.names)} in a target", key, "leaving it out")
    relation = posterior._relation(name)
    places = asked if name not in problem.unknowns else {}
    free = sum(not np.isscalar(places.get(axis)) for axis in problem.domain) if name not in problem.unknowns else 0
    nodes = NODES.get(free, FEWEST)
    rules = {} if name in problem.unknowns else {
        axis: _rule(axis, problem.domain[axis], places.get(axis), nodes) for axis in problem.domain.names
    }  # fmt: skip
    grid, _ = posterior._coordinates({axis: x for axis, (x, _) in rules.items()}, False, [relation])
    shares = np.ones(1)
    for _, weights in rules.values():
        shares = np.outer(shares, weights).ravel()
    shares = shares * _inside(problem, problem.domain.tensor(grid)) if rules else shares
    if not np.any(shares):
        raise expected("a target inside the region", "none of it", "another part of the domain")
    shares = shares / shares.sum()
    where = "".join(f", {axis} = {value}" for axis, value in asked.items() if axis != "of")
    return Target(name, grid, shares, name + where)


def _rule(name: str, axis: Axis, given: Any, nodes: int) -> tuple[Array, Array]:
    """Nodes and shares of the mean along an axis: Gauss's, and evenly spread ones on a whole ring."""
    if given is not None and np.isscalar(given):
        return np.array([given], float), np.ones(1)
    lower, upper = (axis.lower, axis.upper) if given is None else _stretch(name, axis, given)
    if isinstance(axis, Periodic) and given is None:
        return axis.cells(nodes), np.full(nodes, 1.0 / nodes)
    x, weights = np.polynomial.legendre.leggauss(nodes)
    return lower + 0.5 * (upper - lower) * (x + 1.0), 0.5 * weights


# -- the rest


def _inside(problem: Problem, flat: Mapping[str, Array]) -> NDArray[np.bool_]:
    """Which places lie in the region, if there is one."""
    if problem.shape is None:
        return np.ones(len(next(iter(flat.values()))), bool)
    return np.asarray(problem.shape.contains({axis: flat[axis] for axis in problem.shape.axes}), bool)


def _check_count(count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise expected("a whole number of measurements, 1 or more", count, "solution.next_measurements(10)")


def _noise(posterior: Posterior, of: str, sigma: float | None) -> float:
    """The given one, or that of the measurements so far."""
    if sigma is None:
        if of not in posterior.noise:
            raise expected(f"the sigma of a measurement of {of}, of which there is none yet", "none", "sigma=0.1")
        return float(posterior.noise[of])
    if not isinstance(sigma, int | float | np.number) or not 0.0 < float(sigma) < np.inf:
        raise expected("a sigma > 0", sigma, "sigma=0.1")
    return float(sigma)


def _is_linear(posterior: Posterior, of: str) -> bool:
    """Are equations, conditions and what is measured linear in the fields, with nothing else unknown?"""
    problem = posterior.problem
    relations = [problem.relation(of), *(statement.relation for statement in problem.statements)]
    return not problem.unknowns and not problem.functions and all(relation.is_linear for relation in relations)

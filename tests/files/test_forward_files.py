"""Files of solutions by the map: the same bits after loading, and everything in them is checked before it is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import attacks
import factorfield as ff

COARSE: dict[str, Any] = {"method": "forward", "tolerance": 1e-3}
X = np.linspace(0.1, 0.9, 6)


def heat(sigma: float | None = 0.05) -> ff.Problem:
    """A number, a function of time, a start, and noise that may be unknown."""
    x, t = (a.ravel() for a in np.meshgrid(X, [0.1, 0.2, 0.4]))
    u = np.sin(np.pi * x) * np.exp(-t) + 0.03 * np.random.default_rng(0).standard_normal(x.size)
    return ff.Problem(
        "u_t = k*u_xx + q", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.5)},
        {"k": ff.Unknown(0.1, 0.05, positive=True), "q": ff.Unknown(0.0, 1.0, over="t", length=0.3)},
        [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}),
         ff.Initial("u = sin(pi*x)", sigma=0.2), ff.Observations(x=x, t=t, u=u, sigma=sigma)],
    )  # fmt: skip


def reading(x: float, t: float) -> ff.Observations:
    return ff.Observations(x=[x], t=[t], u=[0.3], sigma=0.05)


def populations() -> ff.Problem:
    t = np.linspace(0.2, 3, 8)
    return ff.Problem(
        ["u_t = v", "v_t = -w*u"], {"t": ff.Interval(0, 3)}, {"w": ff.Unknown(1.0, 0.5)},
        [ff.Initial("u = 1"), ff.Initial("v = 0", sigma=0.2), ff.Observations(t=t, u=np.cos(1.1 * t), sigma=0.05)],
    )  # fmt: skip


def off() -> ff.Problem:
    """An equation that is off, over a length that is stated."""
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    seen = ff.Observations(x=X, u=X * (1 - X) / 2, sigma=0.01)
    return ff.Problem(ff.Equation("u_xx = -1", sigma=0.3, length=0.4), {"x": ff.Interval(0, 1)}, {}, [*walls, seen])


def updated() -> ff.Solution:
    """Three segments of time."""
    solution = ff.solve(heat(), **COARSE).update(reading(0.5, 0.6), until=0.7)
    return solution.update(reading(0.3, 0.8), until=0.9)


MADE: dict[str, Callable[[], ff.Solution]] = {
    "heat": lambda: ff.solve(heat(None), **COARSE),
    "updated": updated,
    "extended": lambda: ff.solve(heat(), **COARSE).extend(0.8),
    "populations": lambda: ff.solve(populations(), **COARSE),
    "function and region": lambda: attacks.by_the_map()[2],
    "equation with a sigma": lambda: ff.solve(off(), **COARSE),
    "unknown size": lambda: attacks.by_the_map()[0],
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[ff.Solution, Path]]:
    folder = tmp_path_factory.mktemp("runs")
    solutions = {name: make() for name, make in MADE.items()}
    return {name: (s, s.save(folder / f"{number}.nc")) for number, (name, s) in enumerate(solutions.items())}


def everywhere(solution: ff.Solution, count: int = 6) -> dict[str, Any]:
    domain = solution.problem.domain
    return {axis: np.linspace(domain[axis].lower, domain[axis].upper, count) for axis in domain.names}


def check_same(one: ff.Solution, other: ff.Solution) -> None:
    at = everywhere(one)
    for numerical in (True, False):
        first, second = (s.predict(numerical=numerical, **at) for s in (one, other))
        for key in ("mean", "std"):
            np.testing.assert_array_equal(first[key], second[key])
    assert one.parameters == other.parameters and one.hyperparameters == other.hyperparameters
    for name, function in one.problem.functions.items():
        places = {axis: at[axis] for axis in function.over}
        np.testing.assert_array_equal(*(s.predict(of=name, **places)["std"] for s in (one, other)))
    np.testing.assert_array_equal(*(s.sample(2, seed=1, **at) for s in (one, other)))
    np.testing.assert_array_equal(*(s.covariance(points=True, **at) for s in (one, other)))


@pytest.mark.parametrize("name", MADE)
def test_a_loaded_solution_predicts_the_same_bits(name: str, saved: Mapping[str, tuple[ff.Solution, Path]]) -> None:
    solution, path = saved[name]
    loaded = ff.load(path)
    check_same(solution, loaded)
    assert loaded.status == solution.status and dict(loaded.timings) == dict(solution.timings)


def test_a_file_of_a_loaded_solution_is_the_same_again(
    saved: Mapping[str, tuple[ff.Solution, Path]], tmp_path: Path
) -> None:
    solution, path = saved["updated"]
    check_same(solution, ff.load(ff.load(path).save(tmp_path / "again.nc")))


@pytest.mark.parametrize("name", ["heat", "updated", "populations"])
def test_a_loaded_solution_goes_on_as_the_saved_one(name: str, saved: Mapping[str, tuple[ff.Solution, Path]]) -> None:
    solution, path = saved[name]
    loaded, end = ff.load(path), solution.problem.domain["t"].upper
    place = {axis: [0.4] for axis in solution.problem.domain.space}
    late, later = (ff.Observations(t=[share * end], u=[0.2], sigma=0.1, **place) for share in (0.99, 1.05))
    check_same(solution.condition(late), loaded.condition(late))
    check_same(solution.update(later, until=1.1 * end), loaded.update(later, until=1.1 * end))
    if name != "updated":
        check_same(solution.extend(1.2 * end), loaded.extend(1.2 * end))


def changed(path: Path, change: Callable[[Any, Any], None], folder: Path) -> Path:
    """The file with another description or other arrays, and the checksum that goes with them."""

    def edit(file: h5py.File) -> None:
        spec = json.loads(file.attrs["discretisation"])
        change(spec, file["posterior"])
        file.attrs["discretisation"] = json.dumps(spec)

    result = folder / "changed.nc"
    result.write_bytes(attacks.resealed(path.read_bytes(), edit))
    return result


def cut(group: Any, name: str) -> None:
    values = group[name][()]
    del group[name]
    group[name] = values[:-1]


def broken(group: Any, name: str) -> None:
    group[name][...] = np.nan


def of_segment(number: int, **changes: Any) -> Callable[[Any, Any], None]:
    return lambda spec, group: spec["segments"][number].update(changes)


def in_grid(**changes: Any) -> Callable[[Any, Any], None]:
    return lambda spec, group: spec["paths"][0]["grid"]["x"].update(changes)


def left_out(name: str) -> Callable[[Any, Any], None]:
    return lambda spec, group: group.__delitem__(name)


WRONG: dict[str, tuple[Callable[[Any, Any], None], str]] = {
    "numbers cut": (lambda spec, group: cut(group, "path0_values"), "windows in ascending order|finite numbers"),
    "no numbers": (lambda spec, group: broken(group, "segment0_vectors"), "segment0_vectors of .* finite numbers"),
    "shares of two": (lambda spec, group: group["segment0_shares"].write_direct(np.full(
        group["segment0_shares"].shape, 2.0)), "between -3.47 and 1"),
    "array left out": (left_out("segment1_root0"), "an array segment1_root1 of"),
    "link left out": (left_out("segment0_link"), "links between them"),
    "edges reversed": (lambda spec, group: group["path0_edges"].write_direct(group["path0_edges"][()][::-1].copy()),
                       "ascending order"),
    "windows moved": (lambda spec, group: group["path0_edges"].write_direct(group["path0_edges"][()] + 1.0),
                      "links between them|windows from"),
    "other path": (of_segment(0, path=99), "the number of one of"),
    "other stages": (of_segment(0, stages=3), "paths with the inputs and instants"),
    "other measurements": (of_segment(0, measurements=["nothing"]), "measurements among"),
    "no latents": (of_segment(0, latents={}), "latents k, q"),
    "handed to the first": (lambda spec, group: spec["segments"][1].update(latents={"parts": {}}), "hands to the next"),
    "floors of others": (of_segment(0, floors=[0.1, 0.2]), "1 fields"),
    "far grid": (in_grid(breaks=[0.0, 5.0]), "functions of x from 0 to 1"),
    "repeated breaks": (in_grid(breaks=[0.0] + [0.5] * 9 + [1.0]), "degree that their breaks allow"),
    "another size": (in_grid(degree=4), "path0_values"),
    "many nodes": (lambda spec, group: spec["segments"][0]["latents"]["parts"]["q"]["nodes"].update(count=90_000),
                   "at most 4000 nodes"),
    "weights": (lambda spec, group: spec.update(weights=[0.5]), "weights of others that add up to one"),
    "sizes of nothing": (lambda spec, group: spec.update(logarithms={"z": {"std": [0.0, 1.0]}}), "sizes of q"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused_in_one_line(
    name: str, saved: Mapping[str, tuple[ff.Solution, Path]], tmp_path: Path
) -> None:
    change, said = WRONG[name]
    path = changed(saved["updated"][1], change, tmp_path)
    with pytest.raises(ff.ProblemError, match=said) as error:
        ff.load(path)
    assert "\n" not in str(error.value)


def test_a_file_with_neither_form_is_refused(saved: Mapping[str, tuple[ff.Solution, Path]], tmp_path: Path) -> None:
    path = tmp_path / "bare.nc"
    content = saved["heat"][1].read_bytes()
    path.write_bytes(attacks.resealed(content, lambda file: file.attrs.__delitem__("discretisation")))
    with pytest.raises(ff.ProblemError, match="a form of each of"):
        ff.load(path)

"""Problems and solutions in other processes: pickled, copied, sent to workers; a solution travels as its file."""

from __future__ import annotations

import concurrent.futures
import copy
import multiprocessing
import pickle
import pickletools

import numpy as np
import pytest

import factorfield as ff

NAMES = ["heat", "lotka-volterra", "heat-disk", "heat-conductivity", "plate-with-holes"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("copied", [lambda item: pickle.loads(pickle.dumps(item)), copy.deepcopy, copy.copy])
def test_a_problem_that_was_handed_on_is_the_same_problem(name: str, copied: object) -> None:
    problem = ff.problems.get(name)
    ff.default_model(problem, method=ff.methods.default_method(problem))  # what it keeps for later is no hindrance
    again = copied(problem)  # type: ignore[operator]
    assert repr(again) == repr(problem) and repr(again.region) == repr(problem.region)
    assert again.domain == problem.domain and again.domain.names == problem.domain.names
    assert [s.name for s in again.statements] == [s.name for s in problem.statements]


def solved() -> ff.Solution:
    rod = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.2)}
    walls = [ff.Boundary("u = 0", at={"x": x}) for x in (0, 1)]
    seen = ff.Observations(x=[0.3, 0.5, 0.7], t=0.1, u=[0.3, 0.4, 0.3], sigma=0.05)
    start = ff.Initial("u = sin(pi*x)", sigma=0.1)
    return ff.solve(ff.Problem("u_t = k*u_xx", rod, {"k": ff.Unknown(1.0, 0.5, positive=True)}, [*walls, start, seen]))


@pytest.fixture(scope="module")
def solution() -> ff.Solution:
    return solved()


def told(solution: ff.Solution) -> np.ndarray:
    found = solution.predict(x=[0.2, 0.5], t=[0.05, 0.2])
    return np.stack([found["mean"].values, found["std"].values])


@pytest.mark.parametrize("copied", [lambda item: pickle.loads(pickle.dumps(item)), copy.deepcopy])
def test_a_solution_that_was_handed_on_predicts_the_same_and_goes_on(copied: object, solution: ff.Solution) -> None:
    again = copied(solution)  # type: ignore[operator]
    assert np.array_equal(told(again), told(solution))
    assert again.status == solution.status and again.parameters == solution.parameters
    more = ff.Observations(x=0.5, t=0.2, u=0.2, sigma=0.05)
    assert np.array_equal(told(again.condition(more)), told(solution.condition(more)))


def test_a_plain_copy_keeps_the_model(solution: ff.Solution) -> None:
    assert copy.copy(solution).model is solution.model


def test_a_pickled_solution_is_its_file_and_is_checked_like_one(solution: ff.Solution) -> None:
    whole = pickle.dumps(solution)
    names = {str(argument) for _, argument, _ in pickletools.genops(whole) if isinstance(argument, str)}
    assert {name for name in names if "factorfield" in name} == {"factorfield.solving"}
    at = whole.index(b"posterior") + 4000
    with pytest.raises(ff.ProblemError, match="as it was saved"):
        pickle.loads(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])




def test_workers_take_problems_and_return_solutions() -> None:
    problem = ff.problems.get("poisson")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        again, solution = pool.submit(ff.solve, problem), pool.submit(copy.copy, problem)
        there = np.array_equal(again.result().predict(x=[0.3])["mean"], ff.solve(problem).predict(x=[0.3])["mean"])
    assert there and repr(solution.result()) == repr(problem)


def test_dask_hands_problems_and_solutions_on() -> None:
    protocol = pytest.importorskip("distributed.protocol")
    problem = ff.problems.get("poisson")
    for item in (problem, ff.solve(problem)):
        assert repr(protocol.deserialize(*protocol.serialize(item))) == repr(item)

"""factorfield: differential equations and noisy measurements, solved together, with honest uncertainty.

    import factorfield as ff

    problem = ff.Problem(
        equation="u_t + b*u_x",
        domain={"x": ff.Periodic(0, 1), "t": ff.Interval(0, 2)},
        parameters={"b": 0.4},
        conditions=[ff.Observations(x=x0, t=0.0, u=y0, sigma=0.02)],
    )
    solution = ff.solve(problem)
    field = solution.predict(x=grid_x, t=grid_t)        # xarray.Dataset with mean and std

Problem (what is known) -> Model (how it is represented) -> method -> Solution -> predict() -> xarray.
`ff.problems.get("advection", b=0.4)` gives worked problems with their truth; `ff.metrics.score` judges a prediction.
"""

from __future__ import annotations

from factorfield.version import __version__

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing: `import factorfield` should cost nothing
if TYPE_CHECKING:
    from factorfield import data, methods, metrics, problems
    from factorfield.errors import AdviceWarning, ProblemError
    from factorfield.files.problem_file import ProblemFile, read_problem
    from factorfield.model.activation import Identity, PiecewiseExponential
    from factorfield.model.model import Model
    from factorfield.model.paper import paper_model
    from factorfield.problem.coefficients import Table, Unknown
    from factorfield.problem.conditions import Boundary, Equation, Initial, Observations
    from factorfield.problem.domain import Interval, Periodic
    from factorfield.problem.noise import LogNormal, StudentT
    from factorfield.problem.problem import Problem
    from factorfield.problem.region import Region
    from factorfield.ranking.rank import rank
    from factorfield.show import plotting, report
    from factorfield.show.plotting import plot
    from factorfield.solution import Solution
    from factorfield.solving import default_model, load, solve

# public name -> module; imported at first use, so that `import factorfield` costs almost nothing
_HOMES = {
    "AdviceWarning": "errors", "ProblemError": "errors",
    "Problem": "problem.problem", "Interval": "problem.domain", "Periodic": "problem.domain",
    "Boundary": "problem.conditions", "Equation": "problem.conditions", "Initial": "problem.conditions",
    "Observations": "problem.conditions", "Region": "problem.region",
    "Table": "problem.coefficients", "Unknown": "problem.coefficients",
    "LogNormal": "problem.noise", "StudentT": "problem.noise",
    "Identity": "model.activation", "PiecewiseExponential": "model.activation",
    "Model": "model.model", "paper_model": "model.paper",
    "Solution": "solution", "load": "solving", "solve": "solving", "default_model": "solving",
    "rank": "ranking.rank",
    "ProblemFile": "files.problem_file", "read_problem": "files.problem_file", "plot": "show.plotting",
}  # fmt: skip
_MODULES = {
    "data": "data", "methods": "methods", "metrics": "metrics", "problems": "problems",
    "plotting": "show.plotting", "report": "show.report",
}  # fmt: skip

__all__ = [
    "AdviceWarning", "Boundary", "Equation", "Identity", "Initial", "Interval", "LogNormal", "Model", "Observations",
    "Periodic", "PiecewiseExponential", "Problem", "ProblemError", "ProblemFile", "Region", "Solution", "StudentT",
    "Table", "Unknown", "__version__", "data", "default_model", "load", "methods", "metrics", "paper_model", "plot",
    "plotting", "problems", "rank", "read_problem", "report", "solve",
]  # fmt: skip


def __getattr__(name: str) -> object:
    import importlib

    if name in _HOMES:
        value = getattr(importlib.import_module(f"factorfield.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"factorfield.{_MODULES[name]}")
    raise AttributeError(f"module 'factorfield' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Problems as text and arrays."""

from __future__ import annotations

import json

import numpy as np

import factorfield as ff
from factorfield.files.description import problem_from_spec, problem_spec


def test_a_problem_survives_its_description() -> None:
    x = np.linspace(0.0, 1.0, 5)
    problem = ff.Problem(
        [ff.Equation("u_t = D*u_xx + k*v", sigma=0.1), "v_t = f*u + c"],
        {"x": ff.Interval(0, 1), "t": ff.Interval(0, 2)},
        {
            "D": ff.Table(x=x, value=1.0 + x), "k": ff.Unknown(1.0, 0.5, positive=True), "c": 0.3,
            "f": ff.Unknown(0.0, 1.0, over="x", length=0.3),
        },
        [
            ff.Initial("u = x", sigma=0.01), ff.Boundary("u_x", at={"x": (0, 1)}),
            ff.Boundary("v = 0", at={"x": 0}, sigma=0.1, length={"t": 0.7}),
            ff.Observations(x=x, t=1.0, u=x, sigma=0.1 + x, noise=ff.StudentT(3.0)),
            ff.Observations(x=0.5, t=1.0, of="u_x", value=1.0, average={"x": 0.1}),
        ],
        name="all of it", units={"x": "m"},
    )  # fmt: skip
    spec, arrays = problem_spec(problem)
    again = problem_from_spec(json.loads(json.dumps(spec)), arrays, None, None)
    assert json.dumps(problem_spec(again)[0]) == json.dumps(spec) and repr(again) == repr(problem)
    assert again.units == problem.units and again.parameters["f"] == problem.parameters["f"]
    for old, new in zip(problem.statements, again.statements, strict=True):
        assert (old.name, old.kind, old.face, old.noise) == (new.name, new.kind, new.face, new.noise)
        assert old.error == new.error
        assert np.array_equal(old.target, new.target) and len(old.stencil) == len(new.stencil)
        assert (old.sigma is None) == (new.sigma is None) and np.all(np.equal(old.sigma, new.sigma))

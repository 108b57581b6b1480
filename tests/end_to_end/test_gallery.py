"""Every problem of the gallery: its truth satisfies it, and the default method finds it."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff

# problem, and the relative L2 error that exact data must reach
CASES = [
    ("wave", 1e-6),
    ("klein-gordon", 1e-6),
    ("poisson", 1e-6),
    ("poisson-2d", 1e-6),
    ("helmholtz-2d", 1e-4),
    ("lotka-volterra", 1e-6),
    ("burgers", 1e-5),
    ("gray-scott", 1e-5),
    ("plate-with-holes", 1e-5),
    ("schroedinger", 1e-6),
    ("allen-cahn", 1e-5),
]


def scored(problem: ff.Problem) -> dict[str, float]:
    solution = ff.solve(problem)
    assert solution.status == "converged"
    axes = {name: problem.truth[name] for name in problem.domain.names}
    field = solution.predict(**axes)
    widths = {
        "rms_z": float(np.sqrt((((field["mean"] - problem.truth) / field["std"]) ** 2).mean())),
        "relative_std": float(field["std"].mean() / np.sqrt((problem.truth**2).mean())),
    }
    return ff.metrics.score(field, problem.truth) | widths


@pytest.mark.parametrize(("name", "bound"), CASES, ids=[case[0] for case in CASES])
def test_exact_data_give_the_truth_with_a_std_that_estimates_the_error(name: str, bound: float) -> None:
    """Errors of 1e-10 of the field and less are rounding, which no std has to know."""
    problem = ff.problems.get(name)
    solution = ff.solve(problem)
    assert solution.status == "converged"
    field = solution.predict(**{axis: problem.truth[axis] for axis in problem.domain.names})
    assert ff.metrics.score(field, problem.truth)["relative_l2"] < bound
    error = np.abs((field["mean"] - problem.truth).values)
    ratio = np.nanquantile(error / field["std"].transpose(*(field["mean"] - problem.truth).dims).values, 0.95)
    assert ratio < 3.0 and float(field["std"].mean()) < bound * float(np.abs(problem.truth).max())
    assert ratio > 1e-3 or error.max() < 1e-10 * float(np.abs(problem.truth).max())


@pytest.mark.parametrize("name", ["wave", "klein-gordon"])
def test_intervals_from_noisy_data_cover_the_truth(name: str) -> None:
    noisy = scored(ff.problems.get(name, noise=0.02, seed=3))
    assert noisy["coverage90"] > 0.75 and noisy["relative_l2"] < 0.05
    assert 0.33 < noisy["rms_z"] < 1.67  # ten independent directions or more: 1 +- 0.22, thrice


@pytest.mark.parametrize("name", ["poisson", "poisson-2d"])
def test_noisy_measurements_do_not_disturb_what_the_equation_settles(name: str) -> None:
    noisy = scored(ff.problems.get(name, noise=0.02, seed=3))
    assert noisy["relative_l2"] < 3e-5 and noisy["coverage90"] > 0.9 and noisy["relative_std"] < 3e-4


def test_intervals_of_noisy_populations_cover_over_draws() -> None:
    """Two numbers decide a whole trajectory, so one draw says little."""
    covers = [scored(ff.problems.get("lotka-volterra", noise=2.0, seed=seed))["coverage90"] for seed in range(12)]
    assert 0.75 < np.mean(covers) < 0.99


@pytest.mark.parametrize(
    ("name", "modes"),
    [("heat", {"x": 6, "t": 30}), ("heat-2d", {"x": 2, "y": 2, "t": 14})],
)
def test_windows_agree_with_one_polynomial_over_all_time(name: str, modes: dict[str, int]) -> None:
    """Two representations of one posterior: other polynomials, points and (broad) priors, the same modes in space.

    Not for waves between walls: pointwise residuals (joint) also punish the highest waves, which polynomials hold only
    in part; seen through the modes that are left (chain) they do not.
    """
    base = ff.problems.get(name, noise=0.02, **({"sigma": 0.02} if name == "heat" else {}))
    equations = [ff.Equation(equation.text, sigma=1e-5) for equation in base.equations]
    problem = ff.Problem(equations, base.domain, base.parameters, base.conditions)
    inside = {axis: np.linspace(0.1, 0.9, 8) for axis in base.domain.names}
    chain = ff.solve(problem, modes={axis: n for axis, n in modes.items() if axis != "t"})
    joint = ff.solve(ff.default_model(problem, modes=modes), method="joint")
    one, other = chain.predict(**inside), joint.predict(**inside)
    assert float((abs(one["mean"] - other["mean"]) / other["std"]).max()) < 0.1
    np.testing.assert_allclose(one["std"], other["std"], rtol=0.02)


@pytest.mark.parametrize(
    "name", ["kdv", "schroedinger", "heat-2d", "burgers", "klein-gordon", "wave", "gray-scott", "fisher-kpp-2d"]
)
def test_truths_satisfy_their_equations(name: str) -> None:
    """Central differences of the exact solution, put into the equation as the package reads it."""
    problem = ff.problems.get(name)
    truth = problem.truth
    if "field" not in truth.dims:
        truth = truth.expand_dims(field=list(problem.fields))
    grid = {axis: np.asarray(truth[axis]) for axis in problem.domain.names}
    for statement in problem.statements:
        if statement.points is not None or statement.face is not None:
            continue
        values, sizes = {}, []
        for symbol, jet in statement.relation.jets.items():
            part = truth.sel(field=jet.field)
            for axis, times in jet.orders:
                for _ in range(times):
                    part = part.differentiate(axis, edge_order=2)
            values[str(symbol)] = np.asarray(part.transpose(*problem.domain.names))
            sizes.append(np.abs(values[str(symbol)]).max())
        mesh = dict(zip(grid, np.meshgrid(*grid.values(), indexing="ij"), strict=True))
        import sympy

        names = sorted(str(s) for s in statement.relation.expression.free_symbols)
        known = {**values, **mesh, **problem.constants}
        residual = sympy.lambdify(names, statement.relation.expression, "numpy")(*(known[name] for name in names))
        inner = residual[tuple(slice(4, -4) if n > 12 else slice(1, -1) for n in residual.shape)]
        assert np.abs(inner).max() < 0.15 * max(sizes)


def test_unknown_coefficients_come_with_intervals() -> None:
    rng = np.random.default_rng(1)
    x, t = rng.uniform(0, 1, 100), rng.uniform(0, 1, 100)
    u = np.sin(np.pi * x) * np.cos(1.3 * np.pi * t) + 0.02 * rng.standard_normal(100)
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    problem = ff.Problem(
        "u_tt = c**2*u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)},
        {"c": ff.Unknown(1.0, 0.5, positive=True)},
        [ff.Initial("u = sin(pi*x)"), ff.Initial("u_t = 0"), *walls, ff.Observations(x=x, t=t, u=u, sigma=0.02)],
    )  # fmt: skip
    found = ff.solve(problem, modes={"x": 10}).parameters["c"]
    assert abs(found["mean"] - 1.3) < 4 * found["std"] and 0.0005 < found["std"] < 0.01


@pytest.mark.filterwarnings("ignore:the last of 8 modes:factorfield.AdviceWarning")
def test_a_coefficient_that_varies_in_space_is_a_second_field() -> None:
    rng = np.random.default_rng(2)
    x, t = rng.uniform(0, 1, 200), rng.uniform(0, 1, 200)
    # u = exp(-t) (2 - x - x^2) solves u_t = (D u_x)_x where D (1 + 2 x) is the integral of 2 - x - x^2
    u = np.exp(-t) * (2 - x - x**2) + 0.002 * rng.standard_normal(200)
    truth = lambda x: (2 * x - x**2 / 2 - x**3 / 3) / (1 + 2 * x)  # noqa: E731
    problem = ff.Problem(
        ["u_t = D*u_xx + D_x*u_x", "D_t = 0"], {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}, {},
        [
            ff.Initial("u = 2 - x - x**2"), ff.Initial("D = 0.3", sigma=0.3), ff.Boundary("D = 0", at={"x": 0}),
            ff.Boundary("u = 0", at={"x": 1}), ff.Observations(x=x, t=t, u=u, sigma=0.002),
        ],
    )  # fmt: skip
    solution = ff.solve(problem, modes={"x": 8})
    places = np.array([0.3, 0.5, 0.8])
    shown = solution.predict(x=places, t=[0.5], of="D")
    error = np.abs(np.ravel(shown["mean"]) - truth(places))
    assert np.all(error < 5 * np.ravel(shown["std"]) + 1e-3) and np.all(error < 0.05) and np.all(shown["std"] < 5e-3)


def test_a_function_of_a_field_may_be_observed() -> None:
    times = np.linspace(0, 2, 9)
    problem = ff.Problem(
        "u_t = -k*u", {"t": ff.Interval(0, 2)}, {"k": ff.Unknown(1.0, 0.5, positive=True)},
        [ff.Initial("u = 20", sigma=0.5), ff.Observations(t=times, of="log(u)", value=3.0 - 0.7 * times, sigma=0.05)],
    )  # fmt: skip
    found = ff.solve(problem).parameters["k"]
    assert abs(found["mean"] - 0.7) < 0.05 and 0.005 < found["std"] < 0.1


def test_hare_and_lynx_agree_with_the_published_analysis() -> None:
    solution = ff.solve(ff.problems.get("hare-lynx"))
    assert solution.status == "converged"
    for name, published in {"alpha": 0.55, "beta": 0.028, "gamma": 0.80, "delta": 0.024}.items():
        found = solution.parameters[name]
        assert abs(found["mean"] - published) < 2 * found["std"] and 0.05 < found["std"] / published < 0.2


def test_a_density_that_is_nowhere_finite_is_one_line() -> None:
    with pytest.raises(ff.ProblemError, match=r"a finite density near the data.*ff.Initial"):
        ff.solve(ff.Problem("u_t = log(-1 - u**2)", {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 1")]))


def test_logarithms_alone_tell_where_a_field_is() -> None:
    seen = ff.Observations(t=[0.0, 0.5], of="log(u)", value=[1.0, 0.5], sigma=0.1)
    found = ff.solve(ff.Problem("u_t = -u", {"t": ff.Interval(0, 1)}, {}, [seen])).predict(t=[0.0])
    assert abs(found["mean"].item() - np.e) < 0.05


def test_a_method_that_cannot_follow_says_so() -> None:
    """One polynomial over twenty years of oscillations is far off."""
    with pytest.warns(ff.AdviceWarning) as told:
        ff.solve(ff.problems.get("lotka-volterra"), method="joint")
    said = " ".join(str(entry.message) for entry in told)
    assert "misses its values" in said


@pytest.mark.parametrize(
    ("name", "truths"),
    [
        ("reaction-coefficient", {"k": (2.0, 0.05)}),
        ("wave-speed", {"c": (1.3, 0.0027)}),
        ("fisher-kpp-rates", {"nu": (0.02, 9e-4), "rho": (3.0, 0.027)}),
    ],
)
def test_inverse_problems_find_their_coefficients(name: str, truths: dict[str, tuple[float, float]]) -> None:
    solution = ff.solve(ff.problems.get(name, seed=5))
    for coefficient, (truth, std) in truths.items():  # with the std that the data leave
        found = solution.parameters[coefficient]
        assert abs(found["mean"] - truth) < 4 * found["std"] and std / 2 < found["std"] < 2 * std


def test_two_dimensions_with_few_modes() -> None:
    problem = ff.problems.get("fisher-kpp-2d", nu=0.02)
    solution = ff.solve(problem, modes={"x": 5, "y": 5})
    assert solution.status == "converged"
    field = solution.predict(x=problem.truth.x, y=problem.truth.y, t=problem.truth.t)
    scores = ff.metrics.score(field, problem.truth)
    assert scores["relative_l2"] < 1e-5 and np.all(field["std"] > 0.0)


def test_a_reaction_whose_start_and_ends_disagree_gives_its_coefficients() -> None:
    """The ends hold 1 and 0 from the first moment on, the start bends there: polynomials cannot follow the corner. What
    they leave out is in the std, and small beside what the data leave open."""
    solution = ff.solve(ff.problems.get("reaction-inverse", seed=1), modes={"x": 16}, degree=8)
    assert solution.status == "converged" and solution.trace["numerical_error"] > 1e-5
    for coefficient, (truth, std) in {"D": (2.0, 0.013), "k": (0.1, 0.003)}.items():
        found = solution.parameters[coefficient]
        assert abs(found["mean"] - truth) < 4 * found["std"] and std / 2 < found["std"] < 2 * std

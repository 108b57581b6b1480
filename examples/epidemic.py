"""An epidemic from daily counts, three of them typed wrongly: infection and recovery rates with intervals.

python examples/epidemic.py
"""

import numpy as np
from scipy.integrate import solve_ivp

import factorfield as ff

BETA, GAMMA = 0.4, 0.1


def rates(t, y):
    return [-BETA * y[0] * y[1], BETA * y[0] * y[1] - GAMMA * y[1]]


days, grid = np.linspace(0, 60, 41), np.linspace(0, 60, 121)
exact = solve_ivp(rates, (0, 60), [0.99, 0.01], rtol=1e-10, atol=1e-12, dense_output=True).sol
counted = exact(days)[1] + 0.01 * np.random.default_rng(0).standard_normal(41)
counted[[5, 17, 30]] = 0.9, 0.0, 1.2  # typing errors
problem = ff.Problem(
    ["S_t = -beta*S*I", "I_t = beta*S*I - gamma*I"],
    {"t": ff.Interval(0, 60)},
    {"beta": ff.Unknown(0.5, 0.5, positive=True), "gamma": ff.Unknown(0.2, 0.2, positive=True)},
    [
        ff.Initial("S = 0.99"),
        ff.Initial("I = 0.01"),
        ff.Observations(t=days, I=counted, sigma=0.01, noise="student-t"),  # "gaussian" would believe the errors
    ],
)
solution = ff.solve(problem)
field = solution.predict(t=grid)
error = float(np.abs(field["mean"].sel(field=["S", "I"]).transpose("field", "t") - exact(grid)).max())
found = solution.parameters
for name, truth in (("beta", BETA), ("gamma", GAMMA)):
    print(f"{name} {found[name]['mean']:.4f} +- {found[name]['std']:.4f}, truth {truth}")
    assert abs(found[name]["mean"] - truth) < 3 * found[name]["std"]
print(f"{solution.status}: largest error of S and I {error:.4f}")
assert error < 0.03

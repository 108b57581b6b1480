"""A membrane under a known load, held on two sides only: the shape from 60 scattered noisy heights and the equation.

python examples/scattered_poisson.py
"""

import numpy as np

import factorfield as ff


def exact(x, y):
    return np.sin(np.pi * x) * (np.sin(np.pi * y) + np.exp(-np.pi * y))


rng = np.random.default_rng(0)
x, y = rng.uniform(0, 1, 60), rng.uniform(0, 1, 60)
problem = ff.Problem(
    "u_xx + u_yy = -2*pi**2*sin(pi*x)*sin(pi*y)",
    {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)},
    conditions=[
        ff.Boundary("u = 0", at={"x": 0}),
        ff.Boundary("u = 0", at={"x": 1}),  # nothing is said about the sides y = 0 and y = 1
        ff.Observations(x=x, y=y, u=exact(x, y) + 0.05 * rng.standard_normal(60), sigma=0.05),
    ],
)
solution = ff.solve(problem)
field = solution.predict(x=np.linspace(0, 1, 31), y=np.linspace(0, 1, 31))
error = np.abs(field["mean"] - exact(field["x"], field["y"]))
covered = float((error < 1.645 * field["std"]).mean())
for side in (0.0, 0.5, 1.0):
    here = field.sel(x=0.5, y=side, method="nearest")
    print(f"u(0.5, {side}) = {float(here['mean']):.3f} +- {float(here['std']):.3f}, truth {exact(0.5, side):.3f}")
print(f"{solution.status}: 90 % intervals hold {100 * covered:.0f} % of the surface")
assert covered > 0.7 and float(error.sel(x=slice(0.1, 0.9), y=slice(0.1, 0.9)).max()) < 0.1

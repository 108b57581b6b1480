"""Where is the heat made? An unknown source f(x) along a rod, from its steady temperature at 60 places.

python examples/unknown_source.py
"""

import numpy as np

import factorfield as ff


def temperature(x):  # of the source below, zero at both ends
    return np.sin(2 * np.pi * x) / np.pi**2 + (x - x**3) / 3


def source(x):
    return 4 * np.sin(2 * np.pi * x) + 2 * x


x = np.linspace(0, 1, 60)
measured = temperature(x) + 1e-3 * np.random.default_rng(0).standard_normal(60)
problem = ff.Problem(
    "u_xx + f = 0",
    {"x": ff.Interval(0, 1)},
    {"f": ff.Unknown(0, 5, over="x")},  # a smooth function, 0 +- 5 at every point before the data
    [
        ff.Boundary("u = 0", at={"x": 0}),
        ff.Boundary("u = 0", at={"x": 1}),
        ff.Observations(x=x, u=measured, sigma=1e-3),
    ],
)
solution = ff.solve(problem)
found = solution.predict(x=x, of="f")
error = np.abs(found["mean"].values - source(x))
covered = float((error < 1.645 * found["std"].values).mean())
for place in (0, 15, 30, 45):
    mean, std = float(found["mean"][place]), float(found["std"][place])
    print(f"f({x[place]:.2f}) = {mean:5.2f} +- {std:.2f}, truth {source(x[place]):5.2f}")
print(f"{solution.status}: 90 % intervals hold {100 * covered:.0f} % of the source")
assert covered > 0.7 and error[5:-5].max() < 1.0

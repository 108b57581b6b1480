"""Heat on a ring, from 40 noisy measurements of its start: the field at all later times, with its uncertainty.

python examples/heat_from_noisy_data.py
"""

import numpy as np

import factorfield as ff

NU = 0.02


def exact(x, t):  # each wave decays at its own rate
    first, third = (np.exp(-NU * (2 * np.pi * k) ** 2 * t) for k in (1, 3))
    return first * np.cos(2 * np.pi * x) + 0.5 * third * np.sin(6 * np.pi * x)


rng = np.random.default_rng(0)
x = np.linspace(0, 1, 40, endpoint=False)
problem = ff.Problem(
    "u_t = nu*u_xx",
    {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)},
    {"nu": NU},
    [ff.Observations(x=x, t=0.0, u=exact(x, 0.0) + 0.1 * rng.standard_normal(40), sigma=0.1)],
)
solution = ff.solve(problem)
field = solution.predict(x=np.linspace(0, 1, 50, endpoint=False), t=np.linspace(0, 1, 11))
error = np.abs(field["mean"] - exact(field["x"], field["t"]))
covered = float((error < 1.645 * field["std"]).mean())
for t in (0.0, 1.0):
    std, worst = float(field["std"].sel(t=t).mean()), float(error.sel(t=t).max())
    print(f"t = {t:.0f}: mean std {std:.3f}, largest error {worst:.3f}")
print(f"{solution.status}: 90 % intervals hold {100 * covered:.0f} % of the exact field")
assert covered > 0.7 and float(error.max()) < 0.2

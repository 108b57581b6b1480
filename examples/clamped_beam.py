"""How far does a beam bend? Clamped at one end, free at the other, its stiffness known as a table of numbers.

python examples/clamped_beam.py
"""

import numpy as np
from scipy.integrate import cumulative_trapezoid

import factorfield as ff

places = np.linspace(0, 1, 21)
problem = ff.Problem(
    "S*u_xxxx + 2*S_x*u_xxx + S_xx*u_xx = q",  # (S u'')'' = q, written out
    {"x": ff.Interval(0, 1)},
    {"S": ff.Table(x=places, value=1 + places**2), "q": 2.0},
    [
        ff.Boundary("u = 0", at={"x": 0}),  # clamped: no shift, no slope
        ff.Boundary("u_x = 0", at={"x": 0}),
        ff.Boundary("u_xx = 0", at={"x": 1}),  # free: no moment, no shear force
        ff.Boundary("u_xxx = 0", at={"x": 1}),
    ],
)
solution = ff.solve(problem)

x = np.linspace(0, 1, 4001)  # truth: the moment S u'' is q (1 - x)^2 / 2; integrate u'' twice
slope = cumulative_trapezoid((1 - x) ** 2 / (1 + x**2), x, initial=0)
exact = cumulative_trapezoid(slope, x, initial=0)
field = solution.predict(x=x)
tip, std = float(field["mean"][-1]), float(field["std"][-1])
error = float(np.abs(field["mean"] - exact).max())
print(f"{solution.status}: the tip bends by {tip:.5f} +- {std:.5f}, truth {exact[-1]:.5f}; largest error {error:.1e}")
assert error < 1e-3 * exact[-1]

"""The forward map: from inputs (numbers, functions, starts) to the fields that solve the equations.

At an instant, equations and walls are a square system G(u', u, inputs, t) = 0. A steady problem is one Newton solve, a
problem in time is a sequence of Radau windows. The discrete map is frozen: its tangent and adjoint are exact.
"""

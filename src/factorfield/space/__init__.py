"""Discretisations of space: Fourier modes on rings, B-splines on lines, their products, and products cut by a region.

A discretisation says where integrals are taken (cells of points) and what its functions are there (local tables).
Everything else is built on these two.
"""

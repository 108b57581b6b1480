"""Data: initial conditions, PDEBench files, reference solutions."""

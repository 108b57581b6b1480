"""Rivals: what an expert would write by hand for the problems of `cases`, one module per problem.

Every rival takes a case (plain arrays) and returns plain numbers. It knows what our problem states: the same equation,
the same measurements with the same sigmas, the same priors as further residuals. Callers measure processor time.

    python benchmarks/rivals/rod.py        # and fisher_kpp, hare_lynx, flux, odes, filters: its numbers and its time
"""

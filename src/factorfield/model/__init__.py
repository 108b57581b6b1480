"""How a problem is represented: bases, ansatz, factor groups, linearisation, priors, and all automatic choices."""

"""Time windows linked by exact Gaussian messages: the default where there is time."""

"""One Gaussian over all weights."""

"""The paper's message passing: one Gaussian per weight."""

"""What the paper compares with: gradient descent, variational inference and Hamiltonian Monte Carlo (JAX)."""

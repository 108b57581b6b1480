"""What is known afterwards: one Gaussian block, a chain of windows, or samples; asked for fields, never for weights."""

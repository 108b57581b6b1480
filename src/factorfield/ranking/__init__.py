"""Which equation? Problems with the same measurements, ranked by their evidence."""

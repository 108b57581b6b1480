"""Messages on a tree of boxes of cells."""

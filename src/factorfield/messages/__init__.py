"""The Gaussian algebra: messages, beliefs, the elimination of a block, and walks over a tree of blocks."""

"""The Gaussian algebra: messages, beliefs, the elimination of a block, and messages along a path of blocks."""

"""The registry of coverage: every feature that gives an interval owns a row, with draws, coverage and a verdict."""

"""Pictures, the report, and formulas as people write them."""

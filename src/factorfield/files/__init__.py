"""Problem files, tables of data and result files."""

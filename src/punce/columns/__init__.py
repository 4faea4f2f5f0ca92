"""A table to numbers: kinds of columns, encoding, bins, normal scores."""

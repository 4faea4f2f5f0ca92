"""A table to numbers, once, for priors, trees, networks and views.

    given.py    rows as a caller hands them over
    kinds.py    what a column holds, and its values as numbers, dates or names of categories
    fitted.py   a single column as a fit decided to read it
    encoder.py  TableEncoder: a data frame to a float32 matrix, the same way next week
    bins.py     numbers cut at quantiles, for trees
    one_hot.py  a 0/1 column for each common category
    dense.py    normal scores and 0/1 columns, for networks
    counts.py   texts to TF-IDF weights of words or letters
    sparse.py   sparse matrices to frames or dense matrices of bounded size

Nothing here looks at the labels.
"""

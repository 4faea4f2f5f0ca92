"""A classifier as an ONNX file, for programs without punce. Needs the extra punce[export].

    graph.py        nodes and constants as they are added
    columns.py      the columns of a table, encoded as ``punce.columns.encoder`` does
    trees.py        trees, and bins, as TreeEnsembleRegressor
    members.py      the default models of tables: the ensemble, or the ridge of few labelled rows
    linear.py       any model whose scores are linear in the columns
    probability.py  the map from scores to probabilities, and the calls
    file.py         which of them a classifier needs

Inputs of a table:

    X               float64 (n, d): its numbers, NaN where missing
    categories      string (n, c): its categories, "" where missing; not there without categories

`X` has all columns of a matrix. Of a data frame it has only the columns of numbers that the model reads: their names,
and those of the categories, are JSON lists in the metadata of the file, `numbers` and `categories`. True is 1, and a
duration is its days. The texts of categories have no spaces around them. An embedding has one input, `X` float32.

Outputs:

    label           int64 (n,): 1 where the probability reaches the threshold, else 0
    probabilities   float64 (n, 2): of negative and positive
"""

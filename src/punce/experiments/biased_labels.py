"""Beyond the paper: labels that are not drawn uniformly from the positives but prefer bright images."""

from punce.experiments.tables import network_experiment

BIASED_LABELS = network_experiment(
    "biased_labels",
    "Labels that prefer bright images",
    # MNIST with 1k labels; at strength s a positive one deviation brighter is eˢ times as likely to be labelled.
    lambda on, method, strength: on.method(method, "1k", label_bias=float(strength)),
    kind="curves",
    rows=("nnpu", "scl", "punce"),
    columns=("0", "0.5", "1", "2"),
    row_heads=("method",),
    column_head="strength of the bias",
    control="0",
)

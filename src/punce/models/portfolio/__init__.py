"""Features, then heads: candidates cross-fitted and weighted by held-out labelled rows. No true label is used.

:class:`~punce.models.portfolio.model.FeatureModel` is what images, texts and embeddings call once they are numbers.
"""

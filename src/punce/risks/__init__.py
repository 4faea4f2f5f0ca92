"""risks."""

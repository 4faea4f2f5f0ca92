"""How probable, where to cut and how good, without negatives."""

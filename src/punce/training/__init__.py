"""How anything here is trained: batches, held-out rows, optimisers, ranks, seeds, progress, one resumable run."""

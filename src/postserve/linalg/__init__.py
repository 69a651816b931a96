"""The exact linear core: sums, cached inverses, and the prior learnt from the evidence."""

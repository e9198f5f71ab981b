"""What only a checkout has: the local stack, the recorder of examples, the fault matrix, benchmarks, page timings."""

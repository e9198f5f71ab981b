"""Tools of a checkout: the local stack, the recorder of examples, the fault matrix, benchmarks, page timings."""

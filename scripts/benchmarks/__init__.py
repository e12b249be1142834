"""Benchmarks: each area measures Hostler against its peers and prints ratios of figures of one and the same run."""

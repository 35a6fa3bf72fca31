"""What the benchmarks measure against: the cheapest things a host can do, without any sandbox."""

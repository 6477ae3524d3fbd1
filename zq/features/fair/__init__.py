"""Fair shares: the jobs of a queue by keys, each of which gets its share of the workers."""

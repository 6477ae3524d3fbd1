"""`format("zq")`: how Spark reads, streams and writes the jobs and history of servers."""

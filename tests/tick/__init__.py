"""The tick: the decisions of one transaction, and the naive model that they are compared with."""

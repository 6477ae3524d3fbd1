"""The audit: a record of each thing that an operator has done."""

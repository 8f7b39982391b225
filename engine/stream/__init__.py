"""Common parts of all operators: the contract, the order of time, the column evaluator, the format
of a snapshot."""

"""Common parts of all operators: the contract, the order of time, the evaluator by columns, the form of a
snapshot."""

"""What all operators share: the contract, the order of time, the evaluator by columns, the form of a
snapshot."""

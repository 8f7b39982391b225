"""What all operators share: the contract, the order of time, and the form of a snapshot."""

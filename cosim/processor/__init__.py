"""The WJASIP behind its ports, wherever it runs: the device contract over rows of words."""

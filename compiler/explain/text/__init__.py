"""The stages as text, one function each, from the records of `facts`."""

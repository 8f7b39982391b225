"""The core of all three languages: types, functions, expressions, from text to bound and typed."""

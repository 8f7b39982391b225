"""The core of all three languages: types, functions and expressions, from text to bound, typed
trees."""

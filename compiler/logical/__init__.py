"""The logical plan of all languages: a program of relations over streams, joins, and their order."""

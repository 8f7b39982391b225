"""The logical plan all languages become: a program of relations over streams, joins, and their order."""

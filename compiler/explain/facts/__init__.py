"""The facts of each stage as plain records, from which the text and the pictures are drawn. JSON
output is the records themselves."""

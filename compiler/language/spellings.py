"""Values as they are written in files, as patterns that Python, Arrow and Java read alike."""

INTEGER = r"[+-]?[0-9]+"
REAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
NOT_FINITE = r"[+-]?(?:[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN])"
DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
CLOCK = r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]+))?)?"
ZONE = r"[Zz]|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?"
TRUE, FALSE = ("true", "t", "1"), ("false", "f", "0")
"""In any case."""

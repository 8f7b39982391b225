"""All functions and operators by name, collected from the file of each kind.

A new function is one entry in one of these files; nothing else needs a change.
"""

from seustream.compiler.language.functions.arithmetic import ARITHMETIC
from seustream.compiler.language.functions.choices import CHOICES
from seustream.compiler.language.functions.numbers import NUMBERS
from seustream.compiler.language.functions.texts import TEXTS
from seustream.compiler.language.functions.times import TIMES
from seustream.compiler.language.registry import ScalarFunction

FUNCTIONS: dict[str, ScalarFunction] = {
    entry.name: entry for entry in (*ARITHMETIC, *CHOICES, *NUMBERS, *TEXTS, *TIMES)
}

__all__ = ["FUNCTIONS"]

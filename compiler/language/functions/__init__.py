"""All functions and operators by name, collected from the file of each kind.

A new function is one entry in one of these files; there is nothing else to write.
"""

from compiler.language.functions.arithmetic import ARITHMETIC
from compiler.language.functions.choices import CHOICES
from compiler.language.functions.numbers import NUMBERS
from compiler.language.functions.texts import TEXTS
from compiler.language.functions.times import TIMES
from compiler.language.registry import Function

FUNCTIONS: dict[str, Function] = {
    entry.name: entry for entry in (*ARITHMETIC, *CHOICES, *NUMBERS, *TEXTS, *TIMES)
}

__all__ = ["FUNCTIONS"]

"""Widths of texts on a terminal, where some characters take two cells, or none."""

from __future__ import annotations

import unicodedata


def width_of(text: str) -> int:
    """Returns how many cells a text takes.

    >>> width_of("abc"), width_of("温度"), width_of("e\\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_cell, text))


def padded(text: str, width: int, to_right: bool = False) -> str:
    """Fills a text with blanks up to a width, behind it or before it.

    >>> padded("温度", 6) + "|" + padded("7", 3, to_right=True)
    '温度  |  7'
    """
    blanks = " " * (width - width_of(text))
    return blanks + text if to_right else text + blanks


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1

"""Examples of docstrings as blocks of code, for the site's reference: an extension of griffe."""

from __future__ import annotations

from typing import Any

import griffe

from tests.docs.site import fenced


class Fenced(griffe.Extension):
    """Puts each example between fences, where the docstring has it bare."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)

"""An extension of griffe that turns examples in docstrings into code blocks, for the site's
reference."""

from __future__ import annotations

from typing import Any

import griffe

from tests.docs.site import fenced


class Fenced(griffe.Extension):
    """Puts fences around each example that is bare in its docstring."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)

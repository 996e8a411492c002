"""What a model is made of and how it runs here."""

import functools
import html
import json
from collections.abc import Callable
from typing import Any


class Report:
    """Layers, their zeros, the kernels that compute them, and the times of those that do not: as text when printed, as
    a dict, and as a page with pictures in a notebook."""

    def __init__(self, text: Callable[[], str], json_text: Callable[[], str], page: Callable[[], str]):
        self._text, self._json, self._page = (functools.cache(part) for part in (text, json_text, page))

    def __str__(self) -> str:
        return self._text()

    def __repr__(self) -> str:
        return self._text()

    def to_dict(self) -> dict[str, Any]:
        return json.loads(self._json())

    def to_html(self) -> str:
        """A page that is one file and loads nothing."""
        return self._page()

    def _repr_html_(self) -> str:
        """The page in a frame of its own, whose script reaches nothing of the notebook's."""
        return (f'<iframe srcdoc="{html.escape(self._page())}" sandbox="allow-scripts" '
                'style="width: 100%; height: 42em; border: 0"></iframe>')

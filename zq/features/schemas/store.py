"""The form of a text in rows of schemas, in every store."""

from typing import Any

FORMS = {"schemas": {"body": Any}}
"""The forms of what columns hold, by table."""

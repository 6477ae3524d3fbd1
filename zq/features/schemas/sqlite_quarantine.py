"""The form of a text in rows of schemas."""

from typing import Any

FORMS = {"schemas": {"body": Any}}

"""The form of a text in rows of groups of failures."""

FORMS = {"error_groups": {"types": list[str]}}

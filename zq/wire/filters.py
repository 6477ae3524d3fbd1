"""The names of the parameters that choose among jobs, and of those that page."""

FILTERS = (
    *("status", "queue", "type", "group", "id"),
    *("priority", "ready_at", "finished_at", "attempts", "filter", "budgets.key", "error", "upto"),
    "search",
)
ZIZQS = (
    *("status", "queue", "type", "id"),
    *("priority", "ready_at", "attempts", "filter", "budgets.key"),
)
"""The filters that Zizq has. Its clients may send an empty one in a read, which filters nothing."""

CHOOSING = frozenset((*FILTERS, "who", "verb", "since", "until", "job", "types"))
"""All parameters that choose among jobs, actions or events."""

LISTS = ("status", "queue", "type", "group", "id", "budgets.key", "error")
"""Filters whose values are lists with commas."""

PAGING = ("from", "order", "limit")
ALIASES = {"budgets_key": "budgets.key"}
"""Other spellings of names that some clients need."""

TEXTS = ("filter", "search")
"""Filters whose values are no lists of names."""

MAX_LIMIT = 2000
DEFAULT_LIMIT = 50

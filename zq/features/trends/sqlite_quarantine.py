"""The forms of texts in rows of trends."""

FORMS = {
    "trends": {"wait": dict[int, int], "run": dict[int, int]},
    "type_trends": {"run": dict[int, int]},
}

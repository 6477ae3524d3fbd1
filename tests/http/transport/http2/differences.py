"""The cases in which zttp differs from the tests here.

Each of these tests must fail. Remove one from the table once it passes.
"""

_RESET = "it resets the stream of a malformed request by itself, as RFC 9113, 8.1.1 allows too"
_MALFORMED = (
    *("upper-case", "unknown-pseudo", "pseudo-of-answers", "pseudo-after-others"),
    *("of-the-connection", "te", "empty-path", "no-method", "no-scheme", "no-path"),
    *("two-methods", "two-schemes", "two-paths", "nul", "space", "another-host"),
    "announced-body",
)
_TOO_LONG = "it ends a connection at 64 KiB of headers, which its settings say"

DIFFERENCES = {
    **{
        f"test_a_malformed_request_is_answered_400_and_its_connection_goes_on[zttp-{case}]": _RESET
        for case in _MALFORMED
    },
    "test_what_is_too_long_is_answered_as_over_http_1[zttp-path]": _TOO_LONG,
    "test_what_is_too_long_is_answered_as_over_http_1[zttp-header]": _TOO_LONG,
}
"""By case of a test: the reason."""

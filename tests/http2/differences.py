"""Where zttp does otherwise than is asked here.

Each of these tests must fail: one that passes is to leave the table.
"""

_RESET = "it resets the stream of a malformed request by itself, as RFC 9113, 8.1.1 allows too"
_MALFORMED = (
    *("8.1.2/1", "8.1.2.1/1", "8.1.2.1/2", "8.1.2.1/4", "8.1.2.2/1", "8.1.2.2/2", "8.1.2.3/1"),
    *("8.1.2.3/2", "8.1.2.3/3", "8.1.2.3/4", "8.1.2.3/5", "8.1.2.3/6", "8.1.2.3/7"),
    *("rfc9113-8.2.1/nul", "rfc9113-8.2.1/space", "rfc9113-8.3.1/host"),
)
_TOO_LONG = "it ends a connection at 64 KiB of headers, which its settings say"

DIFFERENCES = {
    **{
        f"test_a_malformed_request_is_answered_400_and_its_connection_goes_on[zttp-{case}]": _RESET
        for case in _MALFORMED
    },
    "test_what_is_too_long_is_answered_as_over_http_1[zttp-path]": _TOO_LONG,
    "test_what_is_too_long_is_answered_as_over_http_1[zttp-header]": _TOO_LONG,
    "test_a_connection_error_is_told_with_goaway[zttp-generic/priority-of-itself]": (
        "it reads no priorities, which RFC 9113 has dropped"
    ),
    "test_frames_on_a_stream_that_has_ended_are_an_error[zttp-5.1/12]": (
        "it ends the connection with PROTOCOL_ERROR where STREAM_CLOSED is asked for"
    ),
}
"""By case of a test: the reason."""

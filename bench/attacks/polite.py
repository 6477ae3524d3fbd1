"""The well-behaved client: `python -m bench.attacks.polite PORT [SECRET]`.

It posts one job after the other, with a pause between them, and prints when each request began and
when it was answered, in seconds of the monotonic clock, which all processes share.
"""

from __future__ import annotations

import http.client
import sys
import time

PAUSE = 0.005
JOB = b'{"queue": "polite", "type": "t", "payload": 1}'


def main() -> None:
    """Post jobs until somebody ends this process."""
    port, secret = int(sys.argv[1]), "".join(sys.argv[2:3])
    headers = {"Content-Type": "application/json"}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        began = time.monotonic()
        try:
            connection.request("POST", "/jobs", JOB, headers)
            answered = connection.getresponse().read().startswith(b"{")
        except (OSError, http.client.HTTPException):
            answered = False
            connection.close()
        print(began, time.monotonic(), int(answered), flush=True)
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()

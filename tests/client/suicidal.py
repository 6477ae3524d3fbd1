"""A task that ends its worker."""

import os
import signal

import zq

app = zq.App()


@app.task(queue="q", max_attempts=3)
def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

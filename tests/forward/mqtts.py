"""A broker and a client library of MQTT, for the program of the page about it.

    python tests/forward/mqtts.py        installs the library into .peers/, unless it is there

The program gets it as its readers do, beside zq and not with it.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

VERSION = "2.1.0"

PLACE = Path(__file__).parents[2] / ".peers" / f"paho-mqtt-{VERSION}"

PUBLISHES = """
import sys
import paho.mqtt.client as mqtt

port, first, last = map(int, sys.argv[1:])
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "sensor", clean_session=False)
client.max_inflight_messages_set(1000)
client.connect("127.0.0.1", port)
client.loop_start()
for message in [client.publish("sensors/1", str(n), qos=1) for n in range(first, last)]:
    message.wait_for_publish(60)
"""
"""A program that publishes numbers by QoS 1: its arguments are a port, and a range."""

CONFIGURATION = """
listener {port} 127.0.0.1
allow_anonymous true
max_inflight_messages 500
"""


def install() -> None:
    """Put it into its directory. It takes a second."""
    if PLACE.exists():
        return
    made = PLACE.with_suffix(".making")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--target", str(made), f"paho-mqtt=={VERSION}"], check=True)
    made.rename(PLACE)


@contextlib.asynccontextmanager
async def broker(folder: Path, port: int) -> AsyncIterator[asyncio.StreamReader]:
    """A Mosquitto of its own. It says what it does."""
    configuration = folder / "mosquitto.conf"
    await asyncio.to_thread(configuration.write_text, CONFIGURATION.format(port=port))
    process = await asyncio.create_subprocess_exec(
        *("/usr/sbin/mosquitto", "-v", "-c", str(configuration)), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        yield process.stderr
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    install()

"""The browser that pages are tried in: Debian's Chromium without its windows.

A page costs it a third of what it costs `chromium --headless`, which makes the parts of a window
for each, its tabs included.
"""

import shutil

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def browser() -> str:
    """Where the program is."""
    found = shutil.which("chromium-headless-shell")
    assert found, "pages are tried in Chromium: apt-get install chromium-headless-shell"
    return found

"""The commands of the documents about users, run by a shell."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from conformance.site import Site
from documents import SERVER, commands

from .users import auth_settings

STATUS, LOGIN, MAKE, GRANT, GRANT_GROUP, SEND = commands("queue-ti users")


async def test_the_commands_about_users_run(tmp_path: Path) -> None:
    site = Site(tmp_path / "data", auth_settings(tmp_path))
    await site.start()

    async def document(command: str, **values: str) -> Any:
        for name, value in values.items():
            command = command.replace(name, value)
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", command.replace(SERVER, site.url)),
            env=os.environ | {"NO_PROXY": "*"},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        return json.loads(output)

    assert await document(STATUS) == {"auth_required": True}
    token = (await document(LOGIN))["token"]
    user = (await document(MAKE))["id"]
    granted = await document(GRANT, USER=user)
    assert (granted["action"], granted["topic_pattern"]) == ("write", "orders.*")
    assert (await document(GRANT_GROUP, USER=user))["consumer_group"] == "billing"
    assert (await document(SEND, TOKEN=token))["id"]
    await site.stop()

"""The autoscaler of the documents, by the contract of KEDA's scaler `metrics-api`.

The scaler sends a GET with the bearer token to `url`, and reads the number at `valueLocation` in
the JSON. It is active if the number is above `activationTargetValue` (0). Kubernetes then aims at
number / `targetValue` replicas, rounded up and within the bounds; while it is not active, at the
lowest.
"""

import json
from math import ceil
from pathlib import Path
from typing import Any

import httpx
import msgspec
from documents import ROOT, code, commands

from zq.model.keys import digest_of, make_key

from .server import running
from .test_first_job import Shell

SCALED_OBJECT, AUTHENTICATION = code("scaled object").split("---\n")
(BACKLOG,) = commands("backlog")


class Scaler:
    """Plays the scaler and Kubernetes for the first trigger of a ScaledObject."""

    def __init__(self, scaled_object: str, token: str) -> None:
        document: Any = msgspec.yaml.decode(scaled_object)
        self.spec: Any = document["spec"]
        (self.trigger,) = self.spec["triggers"]
        self._token = token

    async def value(self, server: str) -> float:
        """The number that the scaler finds at `server`, which stands for the service."""
        told = self.trigger["metadata"]
        url = httpx.URL(told["url"])
        assert (url.scheme, url.host, url.port) == ("http", "zq", 7890)
        async with httpx.AsyncClient(trust_env=False) as client:
            target = f"{server}{url.raw_path.decode()}"
            reply = await client.get(target, headers={"Authorization": f"Bearer {self._token}"})
        assert reply.status_code == 200, reply.text
        found = json.loads(reply.content)
        for name in told["valueLocation"].split("."):
            found = found[name]
        assert isinstance(found, int | float)
        return found

    async def replicas(self, server: str) -> int:
        """How many replicas there are to be."""
        told, value = self.trigger["metadata"], await self.value(server)
        least, most = self.spec["minReplicaCount"], self.spec["maxReplicaCount"]
        if value <= float(told.get("activationTargetValue", "0")):
            return int(least)
        return int(min(max(ceil(value / float(told["targetValue"])), least, 1), most))


async def test_the_scaled_object_of_the_documents_follows_the_backlog(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    reading = make_key("keda", digest_of(b"token-of-keda"), "read", ["mail"])
    shop = make_key("shop", digest_of(b"token-of-shop"), "enqueue,take,manage", [])
    keys.write_text(f"{reading.line}\n{shop.line}\n")
    scaler = Scaler(SCALED_OBJECT, "token-of-keda")
    assert scaler.trigger["type"] == "metrics-api"
    assert scaler.trigger["metadata"]["authMode"] == "bearer"
    authentication: Any = msgspec.yaml.decode(AUTHENTICATION)
    assert scaler.trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
    (secret,) = authentication["spec"]["secretTargetRef"]
    assert secret["parameter"] == "token"

    async with running(tmp_path / "data", "--keys", str(keys)) as server:
        url = f"http://127.0.0.1:{server.port}"
        # The queue was never there.
        assert await scaler.replicas(url) == 0
        own = {"Authorization": "Bearer token-of-shop"}
        async with httpx.AsyncClient(base_url=url, headers=own, trust_env=False) as client:

            async def send(method: str, path: str, body: Any) -> Any:
                reply = await client.request(method, path, json=body)
                assert reply.is_success, reply.text
                return reply.json() if reply.content else None

            async def add(count: int, **fields: Any) -> None:
                jobs = [{"queue": "mail", "type": "letter", "payload": 1, **fields}] * count
                await send("POST", "/jobs/bulk", {"jobs": jobs})

            await add(1)
            assert await scaler.replicas(url) == 1
            await add(60)
            assert await scaler.replicas(url) == 4
            # Jobs that no worker may have need none.
            await add(500, group="one")
            assert await scaler.replicas(url) == 4
            # Nor does a paused queue, but for its jobs in flight: their worker stays.
            claimed = await send("POST", "/queues/mail/claim", {"holder": "w", "max": 30})
            await send("PATCH", "/queues/mail/settings", {"paused": True})
            assert await scaler.replicas(url) == 2
            await send("POST", "/jobs/success", {"ids": [job["id"] for job in claimed["jobs"]]})
            assert await scaler.replicas(url) == 0
            await send("PATCH", "/queues/mail/settings", {"paused": False})
            await add(5_000)
            assert await scaler.replicas(url) == 40


async def test_the_backlog_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        found = Shell(server).document(BACKLOG)
    assert found == {"ready": 2, "running": 0, "jobs": 2, "workers": 1, "held": {"group": 2}}
    assert json.dumps(found) in (ROOT / "docs" / "autoscaling.md").read_text("utf-8")

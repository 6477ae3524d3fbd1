"""Who gets in over gRPC: keys, users and certificates."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from conformance.client import JSON, Client
from conformance.keyed import secret, write_keys
from conformance.site import Site
from google.protobuf.message import Message
from grpc import aio
from tls.authority import Authority

from zq.doors.queue_ti.http.rpc import queue_pb2 as pb

from .rpc import UNKNOWN, rpc_of
from .users import ADMIN, LONG, Caller, admin_of, auth_settings, basic


class TestKeys:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> dict[str, Any]:
        return {"grpc_port": 0, "keys": write_keys(tmp_path / "keys")}

    CALLS: tuple[tuple[Message, str], ...] = (
        (pb.EnqueueRequest(topic="t", payload=b"x"), "enqueue"),
        (pb.DequeueRequest(topic="t"), "take"),
        (pb.BatchDequeueRequest(topic="t", count=1), "take"),
        (pb.AckRequest(id=UNKNOWN), "take"),
        (pb.NackRequest(id=UNKNOWN), "take"),
        (pb.SubscribeRequest(topic="t"), "take"),
    )

    async def test_every_method_needs_a_key_with_its_scope(self, site: Site) -> None:
        for request, scope in self.CALLS:
            for authorization, code in (
                (None, "UNAUTHENTICATED"),
                ("Bearer wrong", "UNAUTHENTICATED"),
                (f"Bearer {secret(f'not-{scope}')}", "PERMISSION_DENIED"),
            ):
                async with rpc_of(site, authorization) as rpc:
                    assert await rpc.code(request) == code, (request, authorization)

    async def test_a_key_reaches_the_topics_of_its_prefixes_only(self, site: Site) -> None:
        async with rpc_of(site, f"Bearer {secret('shop')}") as rpc:
            await rpc.enqueue("shop-1")
            assert (await rpc.dequeue("shop-1")).topic == "shop-1"
            for request in (
                *(pb.EnqueueRequest(topic="t", payload=b"x"), pb.SubscribeRequest(topic="t")),
                *(pb.DequeueRequest(topic=topic) for topic in ("t", "t.dlq")),
                *(pb.BatchDequeueRequest(topic=topic, count=1) for topic in ("t", "t.dlq")),
            ):
                assert await rpc.code(request) == "PERMISSION_DENIED", request

    async def test_a_subscription_ends_with_its_key(self, site: Site, tmp_path: Path) -> None:
        async with rpc_of(site, f"Bearer {secret('shop')}") as rpc:
            stream = rpc.subscribe("shop-1")
            await stream.wait_for_connection()
            write_keys(tmp_path / "keys", "shop")
            site.server.reload()
            with pytest.raises(aio.AioRpcError) as raised:
                await stream.read()
            assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED


class TestUsers:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> dict[str, Any]:
        return {"grpc_port": 0, **auth_settings(tmp_path)}

    async def test_every_method_needs_a_user_with_its_grant(self, site: Site) -> None:
        async with Client(site, JSON) as client:
            admin = await admin_of(client)
            for name, grants in (
                ("writer", (("write", "t"),)),
                ("consumer", (("consume:g", "t"),)),
                ("reader", (("read", "t"),)),
            ):
                await admin.make(name, *grants)
            calls = (
                (pb.EnqueueRequest(topic="t", payload=b"x"), {"writer"}),
                (pb.BatchDequeueRequest(topic="t", count=1), {"writer", "consumer"}),
                (pb.DequeueRequest(topic="t"), {"writer", "consumer"}),
            )
            settling = (pb.AckRequest, pb.NackRequest)
            for name in ("writer", "consumer", "reader"):
                async with rpc_of(site, basic(name, LONG)) as rpc:
                    for request, allowed in calls:
                        denied = await rpc.code(request) == "PERMISSION_DENIED"
                        assert denied is (name not in allowed), (name, request)
                    for kind in settling:
                        message = {"topic": "t", "payload": "x"}
                        id = (await admin.send("POST", "/messages", message)).doc["id"]
                        denied = await rpc.code(kind(id=id)) == "PERMISSION_DENIED"
                        assert denied is (name == "reader"), (name, kind)
                    if name == "reader":
                        assert await rpc.code(pb.SubscribeRequest(topic="t")) == "PERMISSION_DENIED"
            for authorization in (None, "Bearer x", basic("reader", "wrong")):
                async with rpc_of(site, authorization) as rpc:
                    for any_call, _ in TestKeys.CALLS:
                        assert await rpc.code(any_call) == "UNAUTHENTICATED", authorization
            async with rpc_of(site, admin.authorization) as rpc:
                await rpc.enqueue("any")

    async def test_attempts_to_log_in_count_together_with_those_over_http(self, site: Site) -> None:
        async with Client(site, JSON) as client, rpc_of(site, basic(ADMIN, "wrong")) as rpc:
            for _ in range(5):
                assert await rpc.code(pb.DequeueRequest(topic="t")) == "UNAUTHENTICATED"
                reply = await Caller(client, basic(ADMIN, "other")).send("GET", "/stats")
                assert reply.status == 401
            assert await rpc.code(pb.DequeueRequest(topic="t")) == "RESOURCE_EXHAUSTED"

    @pytest.mark.parametrize(
        ("change", "code"), [("grant", "PERMISSION_DENIED"), ("password", "UNAUTHENTICATED")]
    )
    async def test_a_subscriber_gets_nothing_once_its_grant_is_gone_or_its_password_another(
        self, site: Site, change: str, code: str
    ) -> None:
        async with Client(site, JSON) as client:
            admin = await admin_of(client)
            id = await admin.make("ann")
            grant = await admin.grant(id, "write", "t")
            async with rpc_of(site, basic("ann", LONG)) as rpc:
                stream = rpc.subscribe("t")
                await stream.wait_for_connection()
                if change == "grant":
                    await admin.send("DELETE", f"/users/{id}/grants/{grant}")
                else:
                    await admin.send("PUT", f"/users/{id}", {"password": "another long password"})
                await admin.send("POST", "/messages", {"topic": "t", "payload": "x"})
                with pytest.raises(aio.AioRpcError) as raised:
                    await stream.read()
                assert raised.value.code().name == code
            (message,) = (await admin.send("GET", "/messages?topic=t")).doc["items"]
            assert (message["status"], message["retry_count"]) == ("pending", 0)


class TestTls:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        return Authority(tmp_path / "certificates")

    @pytest.fixture
    def settings(self, authority: Authority, tmp_path: Path) -> dict[str, Any]:
        cert, key = authority.issue("server")
        keys = write_keys(tmp_path / "keys")
        return {
            "grpc_port": 0,
            "tls_cert": cert,
            "tls_key": key,
            "tls_client_ca": authority.file,
            "keys": keys,
        }

    async def test_a_certificate_names_a_key(self, site: Site, authority: Authority) -> None:
        cert, key = authority.issue("only-enqueue")
        tls = grpc.ssl_channel_credentials(
            authority.file.read_bytes(), key.read_bytes(), cert.read_bytes()
        )
        async with rpc_of(site, tls=tls) as rpc:
            await rpc.enqueue("t")
            assert await rpc.code(pb.DequeueRequest(topic="t")) == "PERMISSION_DENIED"
        without = grpc.ssl_channel_credentials(authority.file.read_bytes())
        async with rpc_of(site, tls=without) as rpc:
            assert await rpc.code(pb.DequeueRequest(topic="t")) == "UNAVAILABLE"

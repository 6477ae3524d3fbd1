"""The name of a server at its hubs."""

import pytest

from zq.features.devices.model import check_device, lane_to
from zq.features.forward.model import check_lane
from zq.features.forward.peer_presence import device_name


@pytest.mark.parametrize("said", ["edge-7", "x" * 200, "h\xfctte 7/a", None])
def test_whatever_a_server_is_called_its_hub_takes_for_a_device(said: str | None) -> None:
    name = device_name(said)
    assert check_device(name) == name and check_lane(lane_to(name))

"""Settings of queues in the form in which people write them."""

from collections.abc import Mapping

import msgspec

from zq.model.settings import SettingsPatch
from zq.wire import codecs
from zq.wire.settings import decode_settings_patch


def patch_of(given: Mapping[str, object]) -> SettingsPatch:
    """The change that sets these, as a server reads it. Raises `InvalidRequest`."""
    return decode_settings_patch(msgspec.json.encode(given), codecs.JSON)

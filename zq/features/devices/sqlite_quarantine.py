"""The forms of texts in rows of devices."""

from zq.features.devices.model import LaneReport

FORMS = {"devices": {"lanes": list[LaneReport]}}

"""The forms of texts in rows of lanes."""

from zq.features.forward.model import LaneRule

FORMS = {"lanes": {"rule": LaneRule}, "lane_batches": {"keys": list[int]}}

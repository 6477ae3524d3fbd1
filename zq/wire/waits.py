"""Why a job waits, as a document for clients."""

import msgspec

from zq.model.waits import WaitReason


class WaitDocument(msgspec.Struct):
    """A job and its status, and why it does not run: the strongest reason first."""

    id: str
    status: str
    reasons: list[WaitReason]

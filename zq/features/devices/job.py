"""What devices add to a job."""

import msgspec


class AddressFields(msgspec.Struct, frozen=True, kw_only=True):
    """The device that a job is for. It leaves this server, and no worker here gets it."""

    to: str | None = None


FIELDS = AddressFields

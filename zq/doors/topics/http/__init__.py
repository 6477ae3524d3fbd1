"""The `/v0` dialect: topics."""

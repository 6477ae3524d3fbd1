"""The description of the `/v0` dialect."""

"""Programs that copy the data of other servers over HTTP."""

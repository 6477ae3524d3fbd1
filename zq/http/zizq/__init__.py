"""The native API: Zizq's, endpoint by endpoint."""

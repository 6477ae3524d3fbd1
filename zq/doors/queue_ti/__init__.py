"""The dialect of queue-ti: `/api`, gRPC, and its users."""

"""A real API server as the other end of the machine driver."""

"""A Kubernetes API without sockets: requests in, responses and watches out."""

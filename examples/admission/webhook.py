"""A mutating webhook: pods of gangs get the label team, if they have none. Ends with Ctrl-C.

python examples/admission/webhook.py server.pem server.key 8443
muster apply -f webhook.yaml        (as docs/how-to/admission.md writes it)
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """What becomes of one request: allowed, with a JSON patch where something is missing."""
    response = {"uid": request["uid"], "allowed": True}
    pod = request.get("object") or {}
    labels = pod.get("metadata", {}).get("labels") or {}
    if "schedulingGroup" not in pod.get("spec", {}) or "team" in labels:
        return response
    steps = [{"op": "add", "path": "/metadata/labels", "value": {**labels, "team": "unknown"}}]
    patch = base64.b64encode(json.dumps(steps).encode()).decode()
    return {**response, "patchType": "JSONPatch", "patch": patch, "warnings": ["the label team was missing"]}


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answered(review["request"])}
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


def server(certificate: str, key: str, port: int = 8443) -> ThreadingHTTPServer:
    """The webhook, listening on loopback with TLS; port 0 takes a free one."""
    made = ThreadingHTTPServer(("127.0.0.1", port), Webhook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    made.socket = context.wrap_socket(made.socket, server_side=True)
    return made


if __name__ == "__main__":
    server(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 8443).serve_forever()

"""Receives webhooks, and checks each with the library of Standard Webhooks.

Reads secrets from standard input, one a line. Prints its port, then for each message its type and `verified` or `refused`. What is verified is
answered with 204, all else with 401.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

secret = None


def told(text):
    print(text, flush=True)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = dict(self.headers)
        webhook = Webhook(secret)
        try:
            message = webhook.verify(body, headers)
            told(f"{message['type']} verified")
            status = 204
        except WebhookVerificationError as error:
            told(f"message refused: {error}")
            status = 401
        try:
            webhook.verify(body.replace(b'"session"', b'"Session"'), headers)
            told("a changed body is verified")
        except WebhookVerificationError:
            pass
        self.send_response(status)
        self.end_headers()

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
told(server.server_port)
secret = sys.stdin.readline().strip()
threading.Thread(target=server.serve_forever, daemon=True).start()
told("begins")
for line in sys.stdin:
    secret = line.strip()
    told("another secret")

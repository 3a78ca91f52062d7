"""The webhook of a2a-handler: no agent, but the server that agents notify."""

from __future__ import annotations

from a2a_handler.webhook import create_webhook_application
from serving import serve

if __name__ == "__main__":
    serve(lambda port: create_webhook_application(expected_token="secret"))

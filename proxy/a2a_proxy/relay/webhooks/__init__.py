"""Webhooks that lead through the proxy (`--webhooks`): which URL stands for which receiver, and the
deliveries to it.

`registration` holds the values, `registry` keeps them in the state directory, `agent_urls` chooses
the URLs that one agent gets, `delivery_requests` finds the receiver of a delivery, and `delivery`
relays it. `restore` sets a configuration back to the client's URL.
"""

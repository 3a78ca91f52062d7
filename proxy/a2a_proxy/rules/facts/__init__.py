"""Single facts that rules read from frames: digests, hosts, credentials, errors."""

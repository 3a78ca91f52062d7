"""A recorded call in other words: JSON, bytes, a shell command, Python, a test, its ids. Pure, but for
`call.load_call`."""

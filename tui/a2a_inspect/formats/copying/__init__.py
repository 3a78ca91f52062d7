"""A recorded call in other forms: JSON, bytes, a shell command, Python, a test, its ids.

Pure except for `call.load_call`.
"""

"""What differs between two payloads, exchanges, tasks or runs. All but `view`, `exchanges`, `runs` is pure."""

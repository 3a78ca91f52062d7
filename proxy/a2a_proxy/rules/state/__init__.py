"""State of a session as known to the rules: agents, tasks, open exchanges."""

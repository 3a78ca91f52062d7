"""What the rules know about a session: agents, tasks, open exchanges."""

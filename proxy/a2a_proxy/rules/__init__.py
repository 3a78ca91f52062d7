"""Rules that detect protocol violations in recorded traffic. No I/O; time is an argument.

The rules:
- `families`: the rules, one folder per family (package)
- `examples`: examples of rules as conversations (package)
- `define`: definition and catalogue of rules, manual pages (package)

Running them:
- `run`: engine, gate, flags, repeat limit (package)
- `context`: the context given to a rule
- `endings`: why a call or a task did not end well, from a whole recording (package)

Facts and state:
- `state`: agents, tasks and open exchanges of a session (package)
- `facts`: single facts from frames (package)
- `schema`: checks of payloads against the shapes of A2A objects (package)
"""

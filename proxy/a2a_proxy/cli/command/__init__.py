"""`a2a-proxy run`: a command and all its processes, with their A2A traffic through a forward proxy.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

- `bypass`: connections of the command's processes that do not go through the proxy
- `client_processes`: the processes behind the proxy's client connections
- `socket_lookup`: one TCP socket in the kernel, by netlink (Linux)
- `process_table`: the processes of this machine and their TCP sockets (Linux)
- `launcher`: start of the command, with signals for it
- `environment`: environment variables of the command
"""

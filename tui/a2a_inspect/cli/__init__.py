"""The command line of `a2a-inspect`: options and arguments only; the commands are in `commands`."""

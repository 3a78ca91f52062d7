"""The command line of `a2a-proxy`: arguments are parsed into a frozen config, and one function call
runs the config.

Everything is printed by `present.output`, and only `main` exits.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Commands:
- `main`: definitions of all commands and options
- `demo`: `a2a-proxy demo`
- `drive`: `a2a-proxy drive` and `a2a-proxy send` (package)
- `command`: `a2a-proxy run` (package)
- `run`: one run of the proxy
- `stdio`: `a2a-proxy stdio`
- `replay`: `a2a-proxy replay`
- `wrap_card`: `a2a-proxy wrap-card`
- `card`: requests of `a2a-inspect card` (package)
- `stdio_followers`: the process of the followers of a stdio agent's recording

Configuration and followers:
- `config`: the config of a run from the options
- `authority`: `a2a-proxy ca`, and the variables of programs whose traffic goes through the proxy
- `tls`: `--tls`, and the certificates that the proxy presents
- `card_keys`: `--card-keys`
- `webhooks`: `--webhooks`
- `faults`: `--fault`
- `recorder_config`: the options that reach the recorder, and `session.json`
- `follower_config`: the config of everything that follows a run
- `followers`: the followers of one run
- `archive`: `--archive`
- `hooks`: `--hook`
- `otlp`: `--otlp`
- `metrics`: `--metrics`
- `followed_run`: the interface common to all followers
- `redaction_options`: `--redact` and `--redact-policy`
- `span_options`: options of the content of spans
- `arguments`: the options of the proxy, each declared once
- `options`: options of commands from such declarations
- `fail_on`: `--fail-on`
- `match_options`: `--match-on`, `--ignore` and `--normalize`

Output and signals:
- `capture_watch`: warnings about problems of the capture
- `console`: the output of a running proxy
- `console_lines`: the order of its lines, and findings that repeat
- `replay_console`: the output of `a2a-proxy replay`
- `unfinished`: waiting for the recorder of a proxy that has ended
- `completion`: the command `completion` of both programs
- `help_sections`: help in sections
- `end_signals`: Ctrl-C, SIGTERM and SIGHUP
- `streams`: standard output and error that accept every text
- `sizes`: parsing of sizes and durations
- `errors`: errors that the user can fix
"""

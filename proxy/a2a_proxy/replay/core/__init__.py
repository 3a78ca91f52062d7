"""Decision of what a replayed agent sends, and when. Performs no I/O: time is an argument, sends
are return values. returned.

Script   the recorded calls, each a list of lines
Player   begin_call(request, at) returns a CallPlayback or a Miss
Playback take_due(at) returns what to send now, wake_time says when to call it again;
on_client_message(value, at) takes a message of the client
"""

"""What a replayed agent says, and when. Pure: time is an argument, and what is to be sent is a value given back.

Script   what was recorded, as calls of lines
Player   begin(Asked, at) -> Play or Miss
Play     due(at) -> what to send now; wake -> when to ask again; heard(value, at) -> the client said something
"""

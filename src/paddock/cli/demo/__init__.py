"""`paddock demo`: what coordination is good for, shown with real processes on a real server.

`director` plays the acts on a `stage`, whose workers write to one `notebook`; `screen` shows it on
a terminal. Nothing that is shown is made up: it is what workers report, what the service holds, and
what the demo itself does to them.
"""

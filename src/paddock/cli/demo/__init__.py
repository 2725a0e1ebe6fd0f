"""`paddock demo`: what coordination is good for, shown with real processes on a real server.

    leash      a process that ends with its parent
    killing    the end of such a process before its time
    worker     one of the processes that the viewer watches; it takes a part of an act
    notebook   all reports, in one order
    tree       what the service holds, as the service says
    server     `paddock serve`, in memory, for the length of the demo
    stage      an act, and where it is played: workers are started, awaited and killed
    remote     how fast it goes, and what the viewer's keys do
    director   all of it together, from the start of the server to the end of the last process
    plain      one line for each happening
    screen     the same, live, for a terminal, with `branches` of the tree and `keys`

Nothing that is shown is made up: it is what workers report, what the service holds, and what the
demo itself does to them.
"""

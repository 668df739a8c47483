"""One engine for all windows of a user: a process that holds it, and the link that leads there.

`python -m dg_engine.daemon` is the process, started by the first window that needs it. Windows
speak to it over a Unix socket that only their user can open; on Windows, where none of this was
ever run, over a named pipe.
"""

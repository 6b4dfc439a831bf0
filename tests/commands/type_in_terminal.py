#!/usr/bin/env python3
"""Runs a command in a terminal, types when it asks, and prints what the terminal shows after that.

    type_in_terminal.py KEYS COMMAND...

KEYS may have Python's escapes: "\\x04" is Ctrl-D. Ends with the command's exit code.
"""
import os
import pty
import select
import signal
import sys
import time

keys = sys.argv[1].encode().decode("unicode_escape").encode()
process, terminal = pty.fork()
if process == 0:
    os.environ["TERM"] = "dumb"
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
typed_at = None
while True:
    if not select.select([terminal], [], [], 20)[0]:
        os.kill(process, signal.SIGKILL)
        break
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # the other end is closed
        break
    if not piece:
        break
    shown += piece
    if typed_at is None and shown.endswith(b"> "):
        typed_at = len(shown)
        time.sleep(0.3)  # the line editor takes over the terminal after the prompt
        os.write(terminal, keys)
print(repr(shown[typed_at:].decode()))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))

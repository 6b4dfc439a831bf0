#!/usr/bin/env python3
"""Runs poise chat in a terminal, types at its prompts, and prints the terminal's contents.

    type_in_terminal.py KEYS COMMAND...

KEYS may have Python's escapes: "\\x04" is Ctrl-D. {prompt} waits until the prompt is there again. Ends with the
command's exit code.
"""
import os
import pty
import re
import select
import signal
import sys
import time

PROMPT = b"you> "

waiting = [keys.encode().decode("unicode_escape").encode("latin-1") for keys in sys.argv[1].split("{prompt}")]
process, terminal = pty.fork()
if process == 0:
    os.environ["TERM"] = "dumb"
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
first_prompt = None
since = 0  # the contents when keys were typed last
while True:
    if not select.select([terminal], [], [], 60)[0]:
        os.kill(process, signal.SIGKILL)
        break
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # the other end is closed
        break
    if not piece:
        break
    shown += piece
    if waiting and shown[since:].endswith(PROMPT):
        first_prompt = len(shown) if first_prompt is None else first_prompt
        since = len(shown)
        time.sleep(0.3)  # the line editor takes over the terminal after the prompt
        for part in re.split(b"(?=\\x03)", waiting.pop(0)):  # Ctrl-C drops keys that the program has not read yet
            os.write(terminal, part)
            time.sleep(0.3)
print(repr(shown[first_prompt:].decode()))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))

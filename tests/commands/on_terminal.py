#!/usr/bin/env python3
"""Runs a command whose standard error is a terminal with COLUMNS columns, and prints its progress bar.

    on_terminal.py COLUMNS COMMAND...
"""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

columns = int(sys.argv[1])
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
command = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
text = b""
while True:
    try:
        piece = os.read(ours, 4096)
    except OSError:  # the other end is closed
        break
    if not piece:
        break
    text += piece
if command.wait() != 0:
    sys.exit(f"exit code {command.returncode}: {text}")
WIPE = "\r\x1b[K"
bars = [bar for bar in text.decode().split(WIPE) if bar]
if not bars or not all("%" in bar for bar in bars):
    sys.exit(f"no bar: {text}")
widest = max(map(len, bars))
print(f"a bar of {columns - 1} columns at most" if widest <= columns - 1 else f"a bar of {widest} columns", end="; ")
print("wiped" if text.endswith(WIPE.encode()) else "left")

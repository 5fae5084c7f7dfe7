#!/usr/bin/env python3
"""Ctrl-C in a console of Windows: starts a long reconstruction under Wine in a terminal, waits for its progress bar,
presses Ctrl-C, and checks the exit status, the message and the remaining files.

    tests/windows/ctrl_c.py RECON.EXE
"""
import os
import pty
import select
import subprocess
import sys
import tempfile
import time


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        scan = "simulate --matrix 128,128 --trajectory golden-angle --shots 400 --coils 4 -o scan.h5"
        subprocess.run(["wine", program, *scan.split()], check=True, stdin=subprocess.DEVNULL)
        child, terminal = pty.fork()
        if child == 0:
            command = "cg scan.h5 --iterations 1000000 --threads 1 --save-q q -o image.h5"
            os.execvp("wine", ["wine", program, *command.split()])
        text, is_sent, end = b"", False, time.time() + 100
        while time.time() < end:
            if not select.select([terminal], [], [], 0.5)[0]:
                continue
            try:
                received = os.read(terminal, 65536)
            except OSError:
                break
            if not received:
                break
            text += received
            if b"conjugate gradients [" in text and not is_sent:
                os.write(terminal, b"\x03")
                is_sent = True
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        files = sorted(os.listdir(folder))
        if not is_sent or status != 130 or b"recon: error: interrupted" not in text or files != ["scan.h5"]:
            sys.exit(f"FAILED: Ctrl-C: sent {is_sent}, status {status}, files {files}, text {text!r}")
        print("ok: a progress bar, and Ctrl-C: status 130, a message, and no temporary files")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))

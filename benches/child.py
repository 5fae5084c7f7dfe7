"""Runs a command and prints its wall time and peak memory as one line of JSON. The command's output goes to stderr.

This is a separate process because Linux includes, in the peak memory of a child, the memory of the process that started
the child. This process has next to none.
"""

import json
import os
import sys
import time

started = time.perf_counter()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
_, status, usage = os.wait4(pid, 0)
seconds = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "peak_bytes": 1024 * usage.ru_maxrss}))
sys.exit(os.waitstatus_to_exitcode(status) != 0)

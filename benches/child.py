"""Runs a command; prints its wall time and peak memory as one line of JSON, its own output going to stderr.

A process of its own because Linux counts, in a child's peak memory, that of the process which started it: from here that is
next to nothing.
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

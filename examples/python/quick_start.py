"""One sandbox: a command, a file, a shell, and output as it comes.

quick_start.py [ENVIRONMENT]
"""

import sys

from libdsec import Sandbox

environment = sys.argv[1] if len(sys.argv) > 1 else "example"

with Sandbox.create(environment, ttl={"lifetime_ms": 600_000}) as sandbox:
    print(f"{sandbox.id} was ready after {sandbox.info.timings.ready_ms or 0:.0f} ms")

    result = sandbox.exec("echo hello from inside; exit 3")
    print(f"exit code {result.exit_code}: {result.stdout!r}")

    sandbox.files.write("/tmp/greeting", "hello from outside\n")
    print(sandbox.exec(["cat", "/tmp/greeting"], check=True).stdout, end="")

    with sandbox.session(cwd="/tmp") as shell:
        shell.exec("WORDS='this shell remembers'")
        print(shell.exec("pwd; echo $WORDS").stdout, end="")

    command = sandbox.start("echo one; echo two")
    for chunk in command.stream():
        print(f"{chunk.stream} at {chunk.offset}: {chunk.data!r}")
    print(f"and then it {command.wait().describe_end()}")

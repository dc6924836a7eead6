"""Many sandboxes in one call; each is worked with as soon as it is ready, all at the same time.

burst.py [COUNT] [ENVIRONMENT]
"""

import asyncio
import sys
import time

from libdsec import AsyncClient, AsyncSandbox, SandboxFailure

count = int(sys.argv[1]) if len(sys.argv) > 1 else 16
environment = sys.argv[2] if len(sys.argv) > 2 else "example"


async def work(sandbox: AsyncSandbox) -> str:
    """Stands for a rollout: some commands, a score, and an end."""
    async with sandbox:
        await sandbox.files.write("/tmp/answer", sandbox.id)
        result = await sandbox.exec(["cat", "/tmp/answer"])
        return "right" if result.stdout == sandbox.id else "wrong"


async def main() -> None:
    started = time.perf_counter()
    tasks: list[asyncio.Task[str]] = []
    async with AsyncClient() as client:
        async for item in client.create_many(count, environment, job="burst"):
            if isinstance(item, SandboxFailure):
                print(f"sandbox {item.index}: {item.error}", file=sys.stderr)
            else:
                tasks.append(asyncio.create_task(work(item)))
        scores = await asyncio.gather(*tasks)
    seconds = time.perf_counter() - started
    print(f"{scores.count('right')} of {count} right, {seconds:.2f} s")


asyncio.run(main())

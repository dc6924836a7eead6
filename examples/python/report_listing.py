"""Listing 1 of the DSec technical report (arXiv 2609.22978), given an image.

    report_listing.py [IMAGE]

IMAGE is an environment, or a layer: kind/name:version, or name:version for a base.
"""

import asyncio
import sys

from libdsec import DSecClient, DSecContainerRunArgs

image = sys.argv[1] if len(sys.argv) > 1 else "example"


async def main() -> None:
    client = DSecClient()
    await client.open()
    sandbox = await client.run_container(
        DSecContainerRunArgs(
            container_image=image,
            memory_limit_mb=4096,
            cpu_cores_limit=4,
            ttl_running_stop=300,
            network_rules={},
            init_user="root",
        ),
        timeout=120,
    )
    result = await sandbox.run_shell("echo hello world")
    print(result.stdout, end="")
    await sandbox.stop()
    await client.close()


asyncio.run(main())

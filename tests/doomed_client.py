"""A client to be killed: starts a server with a request in flight and tells who runs.

Prints one line, the process ids of the server and of its engine's stand-in. Their standard error
is this process's standard output, so that whoever reads it sees when the last of them is gone.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.wire_client import WireClient


async def main() -> None:
    client = await WireClient.start(
        Path(sys.argv[1]), stderr=sys.stdout.fileno(), answers=["!wait"], child=True
    )
    await client.initialize()
    client.open("x = \n")
    client.ask_completion(0, 4, kind=1)
    await client.until_said("test/job")
    (child,) = await client.until_said("test/child")
    print(json.dumps([client.process.pid, child["pid"]]), flush=True)
    await asyncio.Event().wait()


asyncio.run(main())

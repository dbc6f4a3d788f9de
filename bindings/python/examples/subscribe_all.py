"""Shows every event that a gateway tells, each in a line: subscribe_all.py SOCKET USER [COUNT]."""

import os
import sys

from tickpath_gateway import Client, EventKind, GatewayError


def main(socket, user, count="0"):
    left = int(count)
    with Client(socket, user, os.environ["TICKPATH_GATEWAY_PASSWORD"], name="subscribe-all-py") as client:
        for event in client:
            if event.kind == EventKind.PING:
                continue
            print(event)
            left -= 1
            if left == 0:
                return


try:
    main(*sys.argv[1:])
except GatewayError as error:
    sys.exit(f"error: {error}")

"""Shows every event that a gateway tells, each in a line."""

import argparse
import os
import sys

from tickpath_gateway import Client, EventKind, GatewayError


def main(args):
    left = args.count
    with Client(args.socket, args.user, os.environ["TICKPATH_GATEWAY_PASSWORD"], name=args.name) as client:
        for event in client:
            if event.kind == EventKind.CONNECTED and args.exchange not in (None, event.body.exchange):
                raise GatewayError(
                    f"the gateway is connected with '{event.body.exchange}', and not with '{args.exchange}'"
                )
            if event.kind == EventKind.PING:
                continue
            print(event)
            left -= 1
            if left == 0:
                return


flags = argparse.ArgumentParser(description=__doc__)
flags.add_argument("socket")
flags.add_argument("user")
flags.add_argument("count", nargs="?", type=int, default=0, help="end after this number of events")
flags.add_argument("--name", default="subscribe-all-py")
flags.add_argument("--exchange", help="end unless the gateway is connected with this venue")
try:
    main(flags.parse_args())
except GatewayError as error:
    sys.exit(f"error: {error}")

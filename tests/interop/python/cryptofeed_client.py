"""Runs cryptofeed, which supports only TLS, on the venue's market while one order after another is filled. Prints a line for
each type of message with its count. Arguments: address and port, the authority's file, and the run time in seconds."""

import asyncio
import json
import logging
import os
import ssl
import sys
import threading
import time
from collections import Counter

ADDRESS, AUTHORITY, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
# One of the libraries below reads the first variable, another the second.
os.environ["SSL_CERT_FILE"] = os.environ["REQUESTS_CA_BUNDLE"] = AUTHORITY

import websocket
from cryptofeed import FeedHandler
from cryptofeed.connection import RestEndpoint, Routes, WebsocketEndpoint
from cryptofeed.defines import (
    ASK, BALANCES, BID, FILLS, FUNDING, L1_BOOK, L2_BOOK, OPEN_INTEREST, TICKER, TRADES,
)
from cryptofeed.exchanges import Deribit

PERPETUAL = "BTC-USD-PERP"
PRICE = 60000
SEEN = Counter()
BOOKS = set()
PROBLEMS = []


class Problems(logging.Handler):
    """Records the library's warnings: an unreadable message, a gap in the sequence numbers of a book, a lost connection."""

    def emit(self, record):
        PROBLEMS.append(record.getMessage())


class Venue(Deribit):
    websocket_endpoints = [WebsocketEndpoint(f"wss://{ADDRESS}/ws/api/v2")]
    rest_endpoints = [RestEndpoint(f"https://{ADDRESS}", routes=Routes([
        f"/api/v2/public/get_instruments?currency={currency}" for currency in ("BTC", "ETH", "USDC", "SOL")
    ]))]
    logins = 0

    async def authenticate(self, conn):
        # cryptofeed's nonce is the time in milliseconds and may be used once: log connections in at different times.
        delay, Venue.logins = 0.1 * Venue.logins, Venue.logins + 1
        await asyncio.sleep(delay)
        await super().authenticate(conn)


def counter(kind):
    async def count(message, _received):
        SEEN[kind] += 1
        if kind == L2_BOOK:
            book = message.book
            BOOKS.add((len(book[BID]), len(book[ASK])))

    return count


class Trader:
    """A client that trades, so that the market has orders and trades."""

    def __init__(self, name):
        self.socket = websocket.create_connection(
            f"wss://{ADDRESS}/ws/api/v2", timeout=60, sslopt={"ca_certs": AUTHORITY, "cert_reqs": ssl.CERT_REQUIRED})
        self.call("public/auth", {"grant_type": "client_credentials", "client_id": name, "client_secret": "test"})

    def call(self, method, params):
        self.socket.send(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
        while True:
            reply = json.loads(self.socket.recv())
            if reply.get("id") == 7:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]


def trade(end):
    """Repeatedly fills orders such that the book has one side, then none, until the time `end`."""
    anna, bert = Trader("anna"), Trader("bert")
    order = {"instrument_name": "BTC-PERPETUAL", "amount": 10, "price": PRICE}
    while time.monotonic() < end:
        resting = anna.call("private/sell", {**order, "amount": 20})["order"]["order_id"]
        time.sleep(0.2)
        bert.call("private/buy", order)
        time.sleep(0.2)
        anna.call("private/cancel", {"order_id": resting})
        anna.call("private/buy", {**order, "price": PRICE - 100})
        time.sleep(0.2)
        bert.call("private/sell", {**order, "price": PRICE - 100})
        time.sleep(0.2)


def main():
    handler = FeedHandler(config={"log": {"filename": os.devnull, "level": "WARNING"}})
    logging.getLogger("feedhandler").addHandler(Problems())
    symbols = Venue.symbols()
    if PERPETUAL not in symbols or "BTC-USDC" not in symbols:
        sys.exit(f"no perpetual or no pair among {symbols}")
    print(f"symbols: {len(symbols)}", flush=True)
    config = {"deribit": {"key_id": "bert", "key_secret": "test"}, "log": {"filename": os.devnull, "level": "WARNING"}}
    kinds = [L1_BOOK, L2_BOOK, TRADES, TICKER, FUNDING, OPEN_INTEREST, FILLS]
    handler.add_feed(Venue(
        symbols=[PERPETUAL], channels=kinds, callbacks={kind: counter(kind) for kind in kinds}, config=config))
    handler.add_feed(Venue(
        symbols=["BTC"], channels=[BALANCES], callbacks={BALANCES: counter(BALANCES)}, config=config))
    end = time.monotonic() + SECONDS
    failed = []

    def run():
        try:
            trade(end)
        except Exception as error:
            failed.append(error)

    trader = threading.Thread(target=run)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    handler.run(start_loop=False, install_signal_handlers=False)
    trader.start()
    loop.run_until_complete(asyncio.sleep(SECONDS + 1))
    handler.stop(loop=loop)
    trader.join()
    if failed or PROBLEMS:
        sys.exit(f"failed: {failed} {PROBLEMS}")
    steps = 0
    for kind in kinds + [BALANCES]:
        if SEEN[kind] == 0:
            sys.exit(f"nothing of '{kind}' came: {SEEN}")
        steps += 1
        print(f"{kind}: {SEEN[kind]}", flush=True)
    if not {(0, 0), (0, 1), (1, 0)} <= BOOKS:
        sys.exit(f"the book had {BOOKS}")
    print(f"{steps} steps passed", flush=True)


main()

"""What the module promises, against a gateway: check.py SOCKET USER."""

import os
import sys
from decimal import Decimal

from tickpath_gateway import (
    CancelOrderRequest,
    Client,
    CreateOrderRequest,
    EventKind,
    GatewayError,
    Money,
    NotConnected,
    ReferenceDataEvent,
    record,
)

socket, user = sys.argv[1:]
password = os.environ["TICKPATH_GATEWAY_PASSWORD"]


def fails(error, work):
    try:
        work()
    except error as found:
        return str(found)
    raise AssertionError(f"no {error.__name__}")


# Numbers are exact, or rejected.
order = record(CreateOrderRequest, price="64250.5", quantity=Decimal("0.00000001"))
assert (order.price, order.quantity) == (Decimal("64250.5"), Decimal("0.00000001"))
assert "more than 8" in fails(ValueError, lambda: record(CreateOrderRequest, price="0.000000001"))
assert "out of range" in fails(ValueError, lambda: record(CreateOrderRequest, price="92233720369"))
assert Money(2**64 - 1, -1).value() == Decimal("-0.000000000000000001")
assert Money(0, 1).value() == Decimal(2**64).scaleb(-18)

# A wrong name and a wrong password have the same answer; no gateway listens at another socket.
wrong = fails(GatewayError, lambda: Client(socket, user, "guess"))
assert wrong == "the gateway refuses: wrong user or password", wrong
assert wrong == fails(GatewayError, lambda: Client(socket, "absent", password))
assert "is it running?" in fails(GatewayError, lambda: Client(socket + ".no", user, password))
assert "32 characters" in fails(GatewayError, lambda: Client(socket, "x" * 33, password))

with Client(socket, user, password, timer=0.001) as client:
    assert client.is_connected
    seen = {}
    sequences = {False: 0, True: 0}
    for event in client:
        seen.setdefault(event.kind, event)
        if event.header.source:
            # Events of each ring are numbered without gaps.
            is_broadcast = bool(event.header.flags & 2)
            last = sequences[is_broadcast]
            assert event.header.sequence == last + 1 or (is_broadcast and last == 0), str(event)
            sequences[is_broadcast] = event.header.sequence
        if {EventKind.PING, EventKind.TIMER, EventKind.TOP_OF_BOOK} <= seen.keys() and min(sequences.values()) > 9:
            break
    reference = seen[EventKind.REFERENCE_DATA]
    assert isinstance(reference.body, ReferenceDataEvent)
    assert (reference.body.name, reference.body.tick_size) == ("BTC-PERPETUAL", Decimal("0.5"))
    assert str(reference).startswith("reference_data symbol=1 ")
    assert seen[EventKind.CONNECTED].body.exchange == "deribit"
    assert client.next_order_id() == 1001
    ids = [client.send(CancelOrderRequest(), account=1, symbol=1, client_order_id=7) for _ in range(2)]
    assert ids == [1, 2]

assert not client.is_connected
assert "closed" in fails(GatewayError, client.poll)
assert issubclass(NotConnected, GatewayError)
print("all checks passed")

"""One order's life: order_test.py SOCKET USER SYMBOL [REST_MS].

It enters a bid 5 ticks below the best, moves it to the best, lets it rest, cancels it, and ends when the cancel is
confirmed. The order is post-only, and can be filled while it rests at the best bid.
"""

import os
import sys
import time

from tickpath_gateway import (
    AckStatus,
    CancelOrderRequest,
    Client,
    CreateOrderRequest,
    EventKind,
    Execution,
    GatewayError,
    ModifyOrderRequest,
    OrderStatus,
    OrderType,
    Origin,
    ReadyScope,
    Side,
    TimeInForce,
    record,
)


def order_test(client, wanted, rest_ns):
    step, until = "waiting", 0
    account = symbol = order = tick = quantity = best_bid = 0
    is_ready = False
    while True:
        event = client.poll()
        if step == "resting" and time.monotonic_ns() >= until:
            client.send(CancelOrderRequest(), account=account, symbol=symbol, client_order_id=order)
            step = "cancelling"
        if event is None:
            continue
        body = event.body
        if event.kind == EventKind.REFERENCE_DATA and body.name == wanted:
            symbol, tick, quantity = event.symbol, body.tick_size, body.min_quantity
        elif event.kind == EventKind.ACCOUNT_REFERENCE and body.may_trade and not account:
            account = event.account
        elif event.kind == EventKind.READY and body.scope == ReadyScope.ACCOUNT and event.account == account:
            is_ready = True
        elif event.kind == EventKind.TOP_OF_BOOK and event.symbol == symbol and body.bid_quantity:
            best_bid = body.bid_price
        elif event.kind == EventKind.DISCONNECTED:
            raise GatewayError("the gateway is gone; the order may still rest")
        elif event.kind == EventKind.ORDER_ACK and body.client_order_id == order:
            print(event)
            if body.status == AckStatus.REJECTED:
                raise GatewayError(f"the order was refused: {body.text}")
            if step == "modifying" and body.origin == Origin.EXCHANGE:
                step, until = "resting", time.monotonic_ns() + rest_ns
        elif event.kind == EventKind.ORDER_UPDATE and body.client_order_id == order:
            print(event)
            if step == "creating" and body.status == OrderStatus.WORKING:
                change = record(ModifyOrderRequest, price=best_bid, quantity=quantity, execution=Execution.POST_ONLY)
                client.send(change, account=account, symbol=symbol, client_order_id=order)
                step = "modifying"
            elif step == "cancelling" and body.status == OrderStatus.CANCELED:
                return
            elif body.status in (OrderStatus.COMPLETED, OrderStatus.CANCELED, OrderStatus.EXPIRED):
                raise GatewayError("the order has ended and was not to")
        if step == "waiting" and is_ready and best_bid:
            step, order = "creating", client.next_order_id()
            create = record(
                CreateOrderRequest,
                price=best_bid - 5 * tick,
                quantity=quantity,
                side=Side.BUY,
                order_type=OrderType.LIMIT,
                time_in_force=TimeInForce.GTC,
                execution=Execution.POST_ONLY,
            )
            client.send(create, account=account, symbol=symbol, client_order_id=order)


def main(socket, user, symbol, rest_ms="30000"):
    password = os.environ["TICKPATH_GATEWAY_PASSWORD"]
    with Client(socket, user, password, name="order-test-py", trading=True) as client:
        order_test(client, symbol, int(rest_ms) * 1_000_000)


try:
    main(*sys.argv[1:])
except GatewayError as error:
    sys.exit(f"error: {error}")

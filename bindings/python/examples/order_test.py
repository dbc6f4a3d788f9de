"""One order's life. Without --enable_trading it says what it would do.

It enters a bid 5 ticks below the best, moves it to the best, lets it rest, cancels it, and ends when the cancel is
confirmed. The order is post-only, and can be filled while it rests at the best bid.
"""

import argparse
import os
import sys
import time

from tickpath_gateway import (
    AckStatus,
    AckType,
    CancelOrderRequest,
    Client,
    CreateOrderRequest,
    EventKind,
    Execution,
    GatewayError,
    ModifyOrderRequest,
    OrderStatus,
    OrderType,
    ReadyScope,
    Side,
    TimeInForce,
    record,
)

ENDS = (OrderStatus.COMPLETED, OrderStatus.CANCELED, OrderStatus.REJECTED, OrderStatus.EXPIRED)


def order_test(client, wanted, rest_ns, exchange, is_enabled):
    step, until = "waiting", 0
    account = symbol = order = tick = quantity = best_bid = 0
    is_ready = is_market_told = False
    pings = 0
    while True:
        event = client.poll()
        if step == "resting" and time.monotonic_ns() >= until:
            client.send(CancelOrderRequest(), account=account, symbol=symbol, client_order_id=order)
            step = "cancelling"
        if event is None:
            continue
        body = event.body
        if event.kind == EventKind.CONNECTED and exchange not in (None, body.exchange):
            raise GatewayError(f"the gateway is connected with '{body.exchange}', and not with '{exchange}'")
        if event.kind == EventKind.REFERENCE_DATA and body.name == wanted:
            symbol, tick, quantity = event.symbol, body.tick_size, body.min_quantity
        elif event.kind == EventKind.ACCOUNT_REFERENCE and body.may_trade and not account:
            account = event.account
        elif event.kind == EventKind.DOWNLOAD_END and body.scope == ReadyScope.MARKET_DATA:
            is_market_told = True
        elif event.kind == EventKind.PING and is_market_told:
            pings += 1
        elif event.kind == EventKind.READY and body.scope == ReadyScope.ACCOUNT and event.account == account:
            is_ready = True
        elif event.kind == EventKind.TOP_OF_BOOK and event.symbol == symbol and body.bid_quantity:
            best_bid = body.bid_price
        elif event.kind == EventKind.DISCONNECTED:
            raise GatewayError("the gateway is gone; the order may still rest")
        elif event.kind == EventKind.ORDER_ACK and order and body.client_order_id == order:
            print(event)
            if body.status == AckStatus.REJECTED:
                raise GatewayError(f"the order was refused: {body.text}")
            # The ack of the new order may arrive after the update that it is working.
            is_change = step == "modifying" and body.request == AckType.MODIFY
            if is_change and body.status == AckStatus.ACCEPTED:
                step, until = "resting", time.monotonic_ns() + rest_ns
            elif is_change and body.status == AckStatus.TIMEOUT:
                # The result of the change is unknown, so the order is cancelled.
                step, until = "resting", time.monotonic_ns()
        elif event.kind == EventKind.ORDER_UPDATE and order and body.client_order_id == order:
            print(event)
            if step == "creating" and body.status == OrderStatus.WORKING:
                change = record(ModifyOrderRequest, price=best_bid, quantity=quantity, execution=Execution.POST_ONLY)
                client.send(change, account=account, symbol=symbol, client_order_id=order)
                step = "modifying"
            elif step == "cancelling" and body.status == OrderStatus.CANCELED:
                return
            elif body.status in ENDS:
                raise GatewayError("the order has ended and was not to")
        # Missing items are an error. Two pings after the instruments, all accounts have been received.
        if is_market_told and not symbol:
            raise GatewayError(f"the gateway has no instrument {wanted}")
        if pings >= 2 and not account and is_enabled:
            raise GatewayError("the user has no account that it may trade with")
        if step == "waiting" and best_bid and not is_enabled:
            print(f"would buy {quantity.normalize():f} at {(best_bid - 5 * tick).normalize():f}: give --enable_trading")
            return
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


def main(args):
    password = os.environ["TICKPATH_GATEWAY_PASSWORD"]
    with Client(args.socket, args.user, password, name=args.name, trading=args.enable_trading) as client:
        order_test(client, args.symbol, args.rest_ms * 1_000_000, args.exchange, args.enable_trading)


flags = argparse.ArgumentParser(description=__doc__)
flags.add_argument("socket")
flags.add_argument("user")
flags.add_argument("symbol")
flags.add_argument("rest_ms", nargs="?", type=int, default=30_000, help="how long it rests at the best bid")
flags.add_argument("--name", default="order-test-py")
flags.add_argument("--exchange", help="end unless the gateway is connected with this venue")
flags.add_argument("--enable_trading", action="store_true", help="send orders; without it none is sent")
try:
    main(flags.parse_args())
except GatewayError as error:
    sys.exit(f"error: {error}")

"""Runs third-party Deribit clients against the venue's front: ccxt over HTTP, its pro class over WebSocket, and a plain
WebSocket client. Prints a line for each step; for a failed step, the answer. Argument: address and port."""

import asyncio
import json
import sys

import ccxt
import ccxt.pro
import websocket

ADDRESS = sys.argv[1]
PERPETUAL = "BTC/USD:BTC"
STEPS = 0


def step(name, condition, seen):
    global STEPS
    if not condition:
        sys.exit(f"step '{name}' failed: {seen}")
    STEPS += 1
    print(name, flush=True)


def credentials(name):
    return {
        "apiKey": name,
        "secret": "test",
        "enableRateLimit": False,
    }


def over_http():
    anna, bert = ccxt.deribit(credentials("anna")), ccxt.deribit(credentials("bert"))
    for client in (anna, bert):
        client.urls["api"]["rest"] = f"http://{ADDRESS}"
    markets = anna.load_markets()
    bert.load_markets()
    step("markets", PERPETUAL in markets and markets[PERPETUAL]["inverse"], list(markets))
    step("option", any(market["option"] for market in markets.values()), list(markets))
    currencies = anna.fetch_currencies()
    step("currencies", {"BTC", "ETH", "USDC"} <= set(currencies) == set(anna.currencies), list(currencies))
    status = anna.fetch_status()
    step("status", status["status"] == "ok", status)
    step("time", anna.fetch_time() > 1_700_000_000_000, anna.fetch_time())
    sold = anna.create_order(PERPETUAL, "limit", "sell", 100, 60100, {"label": "ccxt"})
    step("create limit", sold["status"] == "open" and sold["remaining"] == 100, sold)
    book = bert.fetch_order_book(PERPETUAL)
    step("order book", book["asks"][0] == [60100, 100] and book["bids"] == [], book)
    edited = anna.edit_order(sold["id"], PERPETUAL, "limit", "sell", 120, 60090)
    step("edit", edited["price"] == 60090 and edited["amount"] == 120, edited)
    bought = bert.create_order(PERPETUAL, "market", "buy", 50)
    step("create market", bought["status"] == "closed" and bought["filled"] == 50, bought)
    order = anna.fetch_order(sold["id"], PERPETUAL)
    step("fetch order", order["filled"] == 50 and order["status"] == "open", order)
    open_orders = anna.fetch_open_orders(PERPETUAL)
    step("open orders", [order["id"] for order in open_orders] == [sold["id"]], open_orders)
    mine = bert.fetch_my_trades(PERPETUAL)
    step("my trades", mine[0]["amount"] == 50 and mine[0]["takerOrMaker"] == "taker", mine)
    of_order = bert.fetch_order_trades(bought["id"], PERPETUAL)
    step("trades of an order", len(of_order) == 1, of_order)
    trades = anna.fetch_trades(PERPETUAL)
    step("trades", trades[0]["price"] == 60090 and trades[0]["side"] == "buy", trades)
    ticker = anna.fetch_ticker(PERPETUAL)
    step("ticker", ticker["last"] == 60090 and ticker["ask"] == 60090, ticker)
    tickers = anna.fetch_tickers(None, {"code": "BTC"})
    step("tickers", PERPETUAL in tickers, tickers)
    balance = bert.fetch_balance({"code": "BTC"})
    step("balance", 9.99 < balance["BTC"]["total"] <= 10, balance["BTC"])
    position = bert.fetch_position(PERPETUAL)
    step("position", position["side"] == "long" and position["notional"], position)
    positions = anna.fetch_positions([PERPETUAL])
    step("positions", len(positions) == 1 and positions[0]["side"] == "short", positions)
    funding = anna.fetch_funding_rate(PERPETUAL)
    step("funding rate", funding["fundingRate"] is not None, funding)
    history = anna.fetch_funding_rate_history(PERPETUAL)
    step("funding rate history", isinstance(history, list), history)
    stop = anna.create_order(PERPETUAL, "limit", "sell", 10, 50000, {"stopLossPrice": 50100, "trigger": "mark_price"})
    step("create stop", stop["status"] == "open" and not stop["filled"], stop)
    step("cancel stop", anna.cancel_order(stop["id"], PERPETUAL)["status"] == "canceled", stop)
    cancelled = anna.cancel_order(sold["id"], PERPETUAL)
    step("cancel", cancelled["status"] == "canceled", cancelled)
    closed = anna.fetch_closed_orders(PERPETUAL)
    step("closed orders", closed[0]["id"] == sold["id"], closed)
    anna.create_order(PERPETUAL, "limit", "buy", 10, 59000)
    step("cancel all", anna.cancel_all_orders(PERPETUAL) is not None, "nothing")
    for name, error, call in [
        ("not enough funds", ccxt.InsufficientFunds, lambda: anna.create_order("BTC/USDC", "limit", "buy", 50, 60000)),
        ("order not found", ccxt.OrderNotFound, lambda: anna.cancel_order("999999", PERPETUAL)),
    ]:
        try:
            step(name, False, call())
        except error:
            step(name, True, None)


async def over_websocket():
    anna, bert = ccxt.pro.deribit(credentials("anna")), ccxt.pro.deribit(credentials("bert"))
    for client in (anna, bert):
        client.urls["api"]["rest"] = f"http://{ADDRESS}"
        client.urls["test"]["ws"] = client.urls["api"]["ws"] = f"ws://{ADDRESS}/ws/api/v2"
    try:
        await asyncio.gather(anna.load_markets(), bert.load_markets())
        watched = asyncio.gather(
            anna.watch_order_book(PERPETUAL), anna.watch_trades(PERPETUAL), anna.watch_ticker(PERPETUAL),
            bert.watch_orders(PERPETUAL), bert.watch_my_trades(PERPETUAL), bert.watch_balance(),
        )
        for _ in range(100):
            sold = await anna.create_order(PERPETUAL, "limit", "sell", 30, 60050)
            await bert.create_order(PERPETUAL, "limit", "buy", 20, 60050)
            await anna.cancel_order(sold["id"], PERPETUAL)
            done, _ = await asyncio.wait([watched], timeout=0.3)
            if done:
                break
        book, trades, ticker, orders, mine, balance = await asyncio.wait_for(watched, 60)
        step("watch order book", book["symbol"] == PERPETUAL, book)
        step("watch trades", trades[0]["amount"] == 20, trades)
        step("watch ticker", ticker["symbol"] == PERPETUAL, ticker)
        step("watch orders", orders[0]["side"] == "buy", orders)
        step("watch my trades", mine[0]["amount"] == 20, mine)
        step("watch balance", float(balance["info"]["equity"]) > 9, balance)
    finally:
        await asyncio.gather(anna.close(), bert.close())


def over_raw_websocket():
    socket = websocket.create_connection(f"ws://{ADDRESS}/ws/api/v2", timeout=60)

    def call(method, params):
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
        while True:
            reply = json.loads(socket.recv())
            if reply.get("id") == 7:
                return reply

    auth = call("public/auth", {"grant_type": "client_credentials", "client_id": "anna", "client_secret": "test"})
    step("auth", auth["result"]["token_type"] == "bearer", auth)
    subscribed = call("public/subscribe", {"channels": ["book.BTC-PERPETUAL.raw"]})
    step("subscribe", subscribed["result"] == ["book.BTC-PERPETUAL.raw"], subscribed)
    log = call("private/get_transaction_log", {"currency": "BTC", "start_timestamp": 0, "end_timestamp": 4_000_000_000_000})
    step("transaction log", log["result"]["logs"][0]["type"] == "trade", log)
    for method, params in [
        ("private/get_settlement_history_by_currency", {"currency": "BTC"}),
        ("public/get_delivery_prices", {"index_name": "btc_usd"}),
        ("private/enable_cancel_on_disconnect", {}),
        ("private/set_mmp_config", {"index_name": "btc_usd", "mmp_group": "desk", "interval": 1, "frozen_time": 1, "max_quote_quantity": 1}),
    ]:
        reply = call(method, params)
        step(method, "result" in reply, reply)
    side = {"amount": 10, "price": 59000, "post_only": True, "reject_post_only": True}
    quotes = [{"instrument_name": "BTC-PERPETUAL", "quote_set_id": "1", "bid": side}]
    quoted = call("private/mass_quote", {"quote_id": "1", "mmp_group": "desk", "detailed": True, "quotes": quotes})
    step("mass quote", quoted["result"]["orders"][0]["quote"] and not quoted["result"]["errors"], quoted)
    cancelled = call("private/cancel_quotes", {"cancel_type": "all"})
    step("cancel quotes", cancelled["result"] == 1, cancelled)
    refused = call("private/buy", {"instrument_name": "BTC-PERPETUAL", "amount": 10, "price": 1.3})
    step("refusal", refused["error"]["code"] == 10043, refused)
    socket.close()


over_http()
asyncio.run(over_websocket())
over_raw_websocket()
print(f"{STEPS} steps passed", flush=True)

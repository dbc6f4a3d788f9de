"""Calls every unified method that ccxt's deribit class lists at least once against the venue's front, and prints a line for
each call. A call that fails ends the program, unless ccxt or the real API does not support it: REFUSED lists these, with
the expected error and the reason. Argument: address and port."""

import asyncio
import re
import sys
import time

import ccxt
import ccxt.pro

ADDRESS = sys.argv[1]
PERPETUAL = "BTC/USD:BTC"
LINEAR = "ETH/USDC:USDC"
SPOT = "BTC/USDC"
CALLS = 0

# Entries of `has` that are not methods.
FEATURES = {
    "publicAPI", "privateAPI", "CORS", "sandbox", "spot", "margin", "swap", "future", "option", "ws",
}

# Calls that must fail: ccxt's error, and the reason.
REFUSED = {
    "fetchCurrenciesWs": (
        AttributeError, "ccxt lists it as emulated, and its class without WebSockets has no such method"),
}


def snake(name):
    name = name.replace("OHLCV", "Ohlcv").replace("L2", "L2_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("__", "_")


def credentials(name):
    return {"apiKey": name, "secret": "test", "enableRateLimit": False}


def call(name, function, check=lambda result: result is not None):
    global CALLS
    try:
        result = function()
    except Exception as error:
        if name in REFUSED and isinstance(error, REFUSED[name][0]):
            CALLS += 1
            print(f"{name} cannot be done: {REFUSED[name][1]}", flush=True)
            return None
        sys.exit(f"call '{name}' failed: {type(error).__name__}: {error}")
    if not check(result):
        sys.exit(f"call '{name}' gave {result}")
    CALLS += 1
    print(name, flush=True)
    return result


def connect(name):
    client = ccxt.deribit(credentials(name))
    client.urls["api"]["rest"] = f"http://{ADDRESS}"
    client.load_markets()
    return client


def listed(client):
    return {name for name, has in client.has.items() if has and name not in FEATURES}


def over_http():
    anna, bert = connect("anna"), connect("bert")
    option = next(symbol for symbol, market in anna.markets.items() if market["option"])
    now = anna.milliseconds()
    # Round to the tick size of prices above 0.005, which ccxt's precision does not support.
    option_price = int(float(anna.fetch_ticker(option)["info"]["mark_price"]) / 0.0005) * 0.0005

    # Creates a market with trades, positions and closed orders.
    sold = anna.create_order(PERPETUAL, "limit", "sell", 200, 60000)
    bought = bert.create_order(PERPETUAL, "limit", "buy", 100, 60000)
    a_list = lambda result: isinstance(result, list)
    nonempty = lambda result: len(result) > 0
    of_one = lambda result: result["symbol"] == PERPETUAL
    is_open = lambda order: order["status"] == "open"

    def stop(price, kind="limit", params=None):
        return lambda: anna.create_order(PERPETUAL, kind, "sell", 10, price, {"trigger": "mark_price", **params})

    def cancelled():
        order = anna.create_order(PERPETUAL, "limit", "buy", 10, 59000)
        return anna.cancel_order(order["id"], PERPETUAL)

    def edited():
        order = anna.create_order(PERPETUAL, "limit", "buy", 10, 59000)
        return anna.edit_order(order["id"], PERPETUAL, "limit", "buy", 20, 58999.5)

    def timeframes():
        for timeframe in anna.timeframes:
            candles = anna.fetch_ohlcv(PERPETUAL, timeframe, now - 3_600_000 * 48)
            if not candles or candles[-1][4] != 60000:
                raise AssertionError(f"{timeframe}: {candles}")
        return anna.fetch_ohlcv(LINEAR, "1h", None, 10)

    calls = {
        "fetchTime": [lambda: anna.fetch_time()],
        "fetchStatus": [(lambda: anna.fetch_status(), lambda status: status["status"] == "ok")],
        "fetchMarkets": [(lambda: anna.fetch_markets(), nonempty)],
        "fetchCurrencies": [(lambda: anna.fetch_currencies(), nonempty)],
        "fetchCurrenciesWs": [lambda: anna.fetch_currencies_ws()],
        "fetchAccounts": [(lambda: anna.fetch_accounts(), nonempty)],
        "fetchBalance": [(lambda: anna.fetch_balance(), nonempty), (lambda: anna.fetch_balance({"code": "BTC"}), nonempty)],
        "createDepositAddress": [(lambda: anna.create_deposit_address("BTC"), lambda it: it["address"])],
        "fetchDepositAddress": [(lambda: anna.fetch_deposit_address("BTC"), lambda it: it["address"])],
        "fetchTicker": [(lambda symbol=symbol: anna.fetch_ticker(symbol), nonempty) for symbol in (PERPETUAL, LINEAR, SPOT, option)],
        "fetchTickers": [
            (lambda: anna.fetch_tickers(None, {"code": "BTC"}), nonempty), (lambda: anna.fetch_tickers([PERPETUAL]), nonempty)],
        "fetchOHLCV": [(timeframes, a_list)],
        "fetchTrades": [
            (lambda: anna.fetch_trades(PERPETUAL), nonempty), (lambda: anna.fetch_trades(PERPETUAL, now - 3_600_000, 5), nonempty)],
        "fetchTradingFees": [(lambda: anna.fetch_trading_fees(), nonempty)],
        "fetchOrderBook": [
            (lambda: anna.fetch_order_book(PERPETUAL), lambda book: book["asks"][0] == [60000, 100]),
            (lambda: anna.fetch_order_book(option, 10), nonempty)],
        "fetchL2OrderBook": [(lambda: anna.fetch_l2_order_book(PERPETUAL), nonempty)],
        "fetchOrder": [(lambda: anna.fetch_order(sold["id"], PERPETUAL), lambda order: order["filled"] == 100)],
        "createOrder": [
            (lambda: anna.create_order(PERPETUAL, "limit", "buy", 10, 59000, {"postOnly": True, "label": "60"}), is_open),
            (lambda: anna.create_order(LINEAR, "limit", "buy", 0.01, 2900), is_open),
            (lambda: anna.create_order(option, "limit", "buy", 0.1, option_price), is_open),
            (lambda: anna.create_order(SPOT, "limit", "sell", 0.001, 61000), is_open)],
        "createLimitOrder": [(lambda: anna.create_limit_order(PERPETUAL, "buy", 10, 59000), is_open)],
        "createMarketOrder": [
            (lambda: bert.create_market_order(PERPETUAL, "buy", 10), lambda order: order["status"] == "closed")],
        "createReduceOnlyOrder": [(lambda: bert.create_reduce_only_order(PERPETUAL, "limit", "sell", 10, 61000), is_open)],
        "createStopOrder": [
            (lambda: anna.create_stop_order(PERPETUAL, "limit", "sell", 10, 50000, 50100, {"trigger": "mark_price", "stopLossPrice": 50100}), is_open)],
        "createStopLimitOrder": [
            (lambda: anna.create_stop_limit_order(PERPETUAL, "sell", 10, 50000, 50100, {"trigger": "mark_price", "stopLossPrice": 50100}), is_open)],
        "createStopMarketOrder": [
            (lambda: anna.create_stop_market_order(PERPETUAL, "sell", 10, 50100, {"trigger": "mark_price", "stopLossPrice": 50100}), is_open)],
        "createTrailingAmountOrder": [
            (lambda: anna.create_trailing_amount_order(PERPETUAL, "market", "sell", 10, None, 500, None, {"trigger": "mark_price"}), is_open)],
        "editOrder": [(edited, lambda order: order["amount"] == 20)],
        "cancelOrder": [(cancelled, lambda order: order["status"] == "canceled")],
        "fetchOpenOrders": [(lambda: anna.fetch_open_orders(PERPETUAL), nonempty), (lambda: anna.fetch_open_orders(None, None, None, {"code": "BTC"}), nonempty)],
        "fetchClosedOrders": [(lambda: bert.fetch_closed_orders(PERPETUAL), nonempty), (lambda: bert.fetch_closed_orders(None, None, None, {"code": "BTC"}), nonempty)],
        "fetchOrderTrades": [(lambda: bert.fetch_order_trades(bought["id"], PERPETUAL), nonempty)],
        "fetchMyTrades": [
            (lambda: bert.fetch_my_trades(PERPETUAL), nonempty), (lambda: bert.fetch_my_trades(PERPETUAL, now - 3_600_000, 5), nonempty),
            (lambda: bert.fetch_my_trades(None, None, None, {"code": "BTC"}), nonempty)],
        "transfer": [(
            lambda: anna.transfer("BTC", 0.5, "anna", bert.fetch_accounts()[0]["id"]), lambda it: it["status"] == "ok"),
            (lambda: anna.transfer("BTC", 0.25, "anna", bert.fetch_accounts()[0]["info"]["username"], {"method": "privateGetSubmitTransferToUser"}),
             lambda it: it["amount"] == 0.25)],
        "fetchTransfers": [(lambda: anna.fetch_transfers("BTC"), nonempty)],
        "withdraw": [lambda: bert.withdraw("BTC", 0.1, "an-address")],
        "fetchWithdrawals": [(lambda: bert.fetch_withdrawals("BTC"), lambda all: all[0]["amount"] == 0.1)],
        "fetchDeposits": [(lambda: bert.fetch_deposits("BTC"), a_list)],
        "fetchDepositWithdrawFees": [(lambda: anna.fetch_deposit_withdraw_fees(["BTC"]), nonempty)],
        "fetchPosition": [(lambda: bert.fetch_position(PERPETUAL), lambda position: position["side"] == "long")],
        "fetchPositions": [(lambda: bert.fetch_positions(), nonempty), (lambda: bert.fetch_positions([PERPETUAL]), nonempty)],
        "fetchVolatilityHistory": [(lambda: anna.fetch_volatility_history("BTC"), a_list)],
        "fetchFundingRate": [(lambda: anna.fetch_funding_rate(PERPETUAL), of_one)],
        "fetchFundingRateHistory": [(lambda: anna.fetch_funding_rate_history(PERPETUAL, now - 86_400_000), a_list)],
        "fetchLiquidations": [(lambda: anna.fetch_liquidations(PERPETUAL), a_list)],
        "fetchMyLiquidations": [(lambda: anna.fetch_my_liquidations(PERPETUAL), a_list)],
        "fetchGreeks": [(lambda: anna.fetch_greeks(option), lambda greeks: greeks["delta"] is not None)],
        "fetchOption": [(lambda: anna.fetch_option(option), nonempty)],
        "fetchOptionChain": [(lambda: anna.fetch_option_chain("BTC"), nonempty)],
        "fetchOpenInterest": [(lambda: anna.fetch_open_interest(PERPETUAL), nonempty)],
        "cancelAllOrders": [
            (lambda: anna.cancel_all_orders(PERPETUAL), lambda it: it is not None),
            (lambda: anna.cancel_all_orders(), lambda it: it is not None)],
    }
    missing, unknown = listed(anna) - set(calls), set(calls) - listed(anna)
    if missing or unknown:
        sys.exit(f"ccxt {ccxt.__version__} has {missing} that are not called, and lacks {unknown}")
    for name, ways in calls.items():
        for way in ways:
            call(name, *(way if isinstance(way, tuple) else (way,)))
    # Methods without a unified call.
    for name, params in [
        ("public_get_get_volatility_index_data", {"currency": "BTC", "start_timestamp": now - 60_000, "end_timestamp": now, "resolution": "60"}),
        ("public_get_get_funding_chart_data", {"instrument_name": "BTC-PERPETUAL", "length": "8h"}),
        ("public_get_get_index_price_names", {}),
        ("public_get_get_mark_price_history", {"instrument_name": "BTC-PERPETUAL", "start_timestamp": now - 60_000, "end_timestamp": now}),
        ("public_get_get_expirations", {"currency": "any", "kind": "any"}),
        ("public_get_get_trade_volumes", {"extended": "true"}),
        ("public_get_get_announcements", {"count": 5}),
        ("private_get_get_trigger_order_history", {"currency": "BTC"}),
        ("private_get_get_subaccounts", {"with_portfolio": "true"}),
    ]:
        call(name, lambda: getattr(anna, name)(params), lambda reply: "result" in reply)
    call("get_combos", lambda: anna.request("get_combos", ["public"], "GET", {"currency": "any"}), lambda reply: reply["result"] == [])


async def over_websocket():
    anna, bert = ccxt.pro.deribit(credentials("anna")), ccxt.pro.deribit(credentials("bert"))
    for client in (anna, bert):
        client.urls["api"]["rest"] = f"http://{ADDRESS}"
        client.urls["test"]["ws"] = client.urls["api"]["ws"] = f"ws://{ADDRESS}/ws/api/v2"
    watches = {
        "watchBalance": lambda: bert.watch_balance(),
        "watchMyTrades": lambda: bert.watch_my_trades(PERPETUAL),
        "watchOHLCV": lambda: bert.watch_ohlcv(PERPETUAL, "1m"),
        "watchOHLCVForSymbols": lambda: bert.watch_ohlcv_for_symbols([[PERPETUAL, "5m"]]),
        "watchOrderBook": lambda: bert.watch_order_book(PERPETUAL),
        "watchOrderBookForSymbols": lambda: bert.watch_order_book_for_symbols([PERPETUAL]),
        "watchOrders": lambda: bert.watch_orders(PERPETUAL),
        "watchTicker": lambda: bert.watch_ticker(PERPETUAL),
        "watchTickers": lambda: bert.watch_tickers([PERPETUAL]),
        "watchBidsAsks": lambda: bert.watch_bids_asks([PERPETUAL]),
        "watchTrades": lambda: bert.watch_trades(PERPETUAL),
        "watchTradesForSymbols": lambda: bert.watch_trades_for_symbols([PERPETUAL]),
    }
    try:
        await asyncio.gather(anna.load_markets(), bert.load_markets())
        has = {name for name in listed(bert) - listed(ccxt.deribit())}
        if has != set(watches):
            sys.exit(f"ccxt {ccxt.__version__} watches {has ^ set(watches)} otherwise")
        waiting = {name: asyncio.ensure_future(watch()) for name, watch in watches.items()}
        end = time.monotonic() + 60
        while time.monotonic() < end and not all(task.done() for task in waiting.values()):
            sold = await anna.create_order(PERPETUAL, "limit", "sell", 30, 60050)
            await bert.create_order(PERPETUAL, "limit", "buy", 20, 60050)
            await anna.cancel_order(sold["id"], PERPETUAL)
            await asyncio.wait(waiting.values(), timeout=0.3)
        for name, task in waiting.items():
            if not task.done():
                sys.exit(f"call '{name}' has no answer")
            call(name, task.result)
    finally:
        await asyncio.gather(anna.close(), bert.close())


over_http()
asyncio.run(over_websocket())
print(f"{CALLS} steps passed", flush=True)

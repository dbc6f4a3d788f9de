//! Statements, quotes, states: encoding reproduces each message exactly, and truncated ones are rejected.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use tickpath_deribit::codes::{Advanced, Kind};
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{
    AccessLog, AccountSummaries, AccountSummary, BookSummary, BookUpdateKind, CancelQuotes, CancelReport,
    Candle, ChartData, ContractSize, Currency, DeliveryPrices, EstimatedExpirationPrice, ExchangeToken,
    ForkToken, FundingRate, GetAccountSummaries, GetBookSummaryByCurrency, GetBookSummaryByInstrument,
    GetDeliveryPrices, GetFundingRate, GetLastTradesByCurrency, GetMargins, GetMmp,
    GetOrderBookByInstrumentId, GetOrderHistoryByCurrency, GetOrderHistoryByInstrument,
    GetSettlementsByCurrency, GetSettlementsByInstrument, GetTradingviewChartData, GetTransactionLog,
    LinkedOrder, Links, Margins, MassQuote, MassQuoteResult, MmpConfig, MmpStatus, OptionMarkPrice, Order,
    OrderBook, OrderHistory, PerpetualState, PublicMethodsState, PublicTrade, QuoteRefusal, ResetMmp,
    SetMmpConfig, SetSelfTradingConfig, Settlement, Settlements, Status, Ticker, Transaction, TransactionLog,
    UserLock, UserTrade,
};
use tickpath_deribit::scan::Scanner;

/// Decodes a message with both readers, encodes it again, and returns it.
fn golden<'a, T: Field<'a> + PartialEq + Debug>(text: &'a str) -> T {
    let read: T = T::read(&mut Scanner::new(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(T::read(&mut Scanner::new(text).plain()).as_ref(), Ok(&read), "{text}");
    let mut out = Vec::new();
    read.write(&mut out);
    assert_eq!(std::str::from_utf8(&out).unwrap(), text);
    for len in 0..text.len() {
        assert!(T::read(&mut Scanner::new(&text[..len])).is_err(), "{}", &text[..len]);
    }
    // Unknown members of a later server are skipped.
    let longer: &'a str = format!("{},\"x\":[{{}}]}}", &text[..text.len() - 1]).replace("{,", "{").leak();
    let mut out = Vec::new();
    T::read(&mut Scanner::new(longer)).unwrap_or_else(|error| panic!("{longer}: {error}")).write(&mut out);
    assert_eq!(std::str::from_utf8(&out).unwrap(), text);
    read
}

#[test]
fn params_are_written_as_they_were_read() {
    golden::<ExchangeToken<'_>>(r#"{"refresh_token":"r","subject_id":10,"scope":"trade:read"}"#);
    golden::<ForkToken<'_>>(r#"{"refresh_token":"r","session_name":"desk"}"#);
    golden::<GetOrderBookByInstrumentId>(r#"{"instrument_id":42,"depth":10}"#);
    let summary = golden::<GetBookSummaryByCurrency<'_>>(r#"{"currency":"BTC","kind":"option"}"#);
    assert_eq!(summary.kind, Some(Kind::Option));
    golden::<GetBookSummaryByInstrument<'_>>(r#"{"instrument_name":"BTC-PERPETUAL"}"#);
    golden::<GetFundingRate<'_>>(
        r#"{"instrument_name":"BTC-PERPETUAL","start_timestamp":1,"end_timestamp":2}"#,
    );
    golden::<GetDeliveryPrices<'_>>(r#"{"index_name":"btc_usd","offset":5,"count":10}"#);
    golden::<GetSettlementsByInstrument<'_>>(
        r#"{"instrument_name":"A","type":"delivery","count":2,"continuation":"xY","search_start_timestamp":5}"#,
    );
    golden::<GetSettlementsByCurrency<'_>>(r#"{"currency":"BTC","type":"settlement"}"#);
    golden::<GetLastTradesByCurrency<'_>>(
        r#"{"currency":"ETH","kind":"future","start_id":"ETH-5","end_id":"ETH-9","count":100,"sorting":"asc"}"#,
    );
    golden::<GetOrderHistoryByInstrument<'_>>(
        r#"{"instrument_name":"A","count":20,"offset":1,"include_old":true,"include_unfilled":false,"with_continuation":true}"#,
    );
    golden::<GetOrderHistoryByCurrency<'_>>(
        r#"{"currency":"BTC","kind":"any","historical":true,"continuation":"c"}"#,
    );
    golden::<GetMargins<'_>>(r#"{"instrument_name":"A","amount":10,"price":60000.5}"#);
    golden::<GetTransactionLog<'_>>(
        r#"{"currency":"BTC","start_timestamp":1,"end_timestamp":2,"query":"trade","count":5,"continuation":7}"#,
    );
    golden::<GetAccountSummaries>(r#"{"subaccount_id":3,"extended":true}"#);
    golden::<SetSelfTradingConfig<'_>>(r#"{"mode":"cancel_maker","extended_to_subaccounts":true}"#);
    golden::<SetMmpConfig<'_>>(
        r#"{"index_name":"btc_usd","interval":60,"frozen_time":0,"max_quote_quantity":5,"quantity_limit":3,"delta_limit":2,"vega_limit":100.5,"mmp_group":"g"}"#,
    );
    golden::<GetMmp<'_>>(r#"{"index_name":"btc_usd","mmp_group":"g"}"#);
    golden::<ResetMmp<'_>>(r#"{"index_name":"btc_usd"}"#);
    let quote = golden::<MassQuote<'_>>(
        r#"{"quote_id":"q","mmp_group":"g","quotes":[{"instrument_name":"A","quote_set_id":"s","bid":{"price":1,"amount":2,"post_only":true,"reject_post_only":false}}],"wait_for_response":false,"detailed":true,"valid_until":9}"#,
    );
    let entry = quote.quotes.iter().next().unwrap().unwrap();
    assert!(entry.bid.unwrap().post_only && entry.ask.is_none());
    golden::<CancelQuotes<'_>>(
        r#"{"cancel_type":"delta","min_delta":-0.5,"max_delta":0.5,"currency":"BTC","detailed":false,"freeze_quotes":true}"#,
    );
    let links = golden::<Links<'_>>(
        r#"{"linked_order_type":"one_cancels_other","trigger_fill_condition":"first_hit","otoco_config":[{"direction":"sell","amount":10,"type":"stop_market","label":"l","post_only":false,"reject_post_only":false,"reduce_only":true,"trigger":"mark_price","trigger_price":50000}]}"#,
    );
    let linked: LinkedOrder<'_> = links.otoco_config.unwrap().iter().next().unwrap().unwrap();
    assert!(linked.reduce_only && linked.price.is_none());
}

#[test]
fn results_are_written_as_they_were_read() {
    golden::<Status<'_>>(r#"{"locked":"partial","locked_indices":["btc_usd"]}"#);
    golden::<Status<'_>>(r#"{"locked":false}"#);
    golden::<Currency<'_>>(
        r#"{"currency":"BTC","currency_long":"Bitcoin","coin_type":"BITCOIN","fee_precision":4,"min_confirmations":1,"min_withdrawal_fee":0.0001,"withdrawal_fee":0.0001,"withdrawal_priorities":[{"value":1.5,"name":"very_high"}],"in_cross_collateral_pool":true}"#,
    );
    golden::<ContractSize>(r#"{"contract_size":10}"#);
    golden::<BookSummary<'_>>(
        r#"{"instrument_name":"A","base_currency":"BTC","quote_currency":"USD","creation_timestamp":5,"bid_price":1,"ask_price":2,"mid_price":1.5,"mark_price":1.4,"last":1,"high":2,"low":1,"price_change":-0.5,"volume":3,"volume_usd":4,"open_interest":5,"mark_iv":60.5,"underlying_price":60000,"underlying_index":"btc_usd","interest_rate":0}"#,
    );
    golden::<FundingRate<'_>>(
        r#"{"timestamp":5,"index_price":60000,"prev_index_price":59999.5,"interest_1h":0.00001,"interest_8h":-1.2e-7}"#,
    );
    golden::<DeliveryPrices<'_>>(
        r#"{"data":[{"date":"2026-11-22","delivery_price":60000.25}],"records_total":1}"#,
    );
    let settled = golden::<Settlements<'_>>(
        r#"{"settlements":[{"type":"settlement","timestamp":5,"instrument_name":"A","position":-20,"index_price":1,"mark_price":1,"profit_loss":0.5,"session_profit_loss":0.25,"funding":0.1}],"continuation":"xY"}"#,
    );
    let first: Settlement<'_> = settled.settlements.iter().next().unwrap().unwrap();
    assert_eq!(first.kind, "settlement");
    let log = golden::<TransactionLog<'_>>(
        r#"{"logs":[{"id":7,"type":"trade","timestamp":5,"currency":"BTC","change":-0.1,"balance":1,"equity":1.1,"commission":0.0001,"instrument_name":"A","side":"open buy","amount":10,"contracts":1,"position":10,"price":60000,"mark_price":60001,"index_price":60002,"cashflow":-0.0999,"trade_id":"5","order_id":"6","user_role":"taker","user_id":3,"username":"anna","user_seq":7}],"continuation":6}"#,
    );
    let first: Transaction<'_> = log.logs.iter().next().unwrap().unwrap();
    assert_eq!((first.id, log.continuation), (7, Some(6)));
    golden::<Margins<'_>>(r#"{"buy":0.01,"sell":0.011,"min_price":59000,"max_price":61000}"#);
    golden::<AccountSummaries<'_>>(
        r#"{"id":3,"username":"anna","type":"main","mmp_enabled":true,"summaries":[{"currency":"BTC","balance":1,"equity":1,"available_funds":1}]}"#,
    );
    golden::<AccountSummary<'_>>(
        r#"{"currency":"BTC","balance":1,"equity":1,"available_funds":1,"options_pl":0.5,"spot_reserve":0.1,"delta_total_map":{"btc_usd":0.5},"estimated_liquidation_ratio":0.01,"estimated_liquidation_ratio_map":{"btc_usd":0.01},"email":"a@b","mmp_enabled":true,"fees":[]}"#,
    );
    golden::<MassQuoteResult<'_>>(
        r#"{"errors":[{"instrument_name":"A","side":"bid","quote_set_id":"s","error":{"code":10007,"message":"price_too_high 5"}}],"errors_count":1,"orders_count":0,"trades_count":0,"orders":[],"trades":[]}"#,
    );
    golden::<QuoteRefusal<'_>>(r#"{"error":{"code":-32602}}"#);
    golden::<MmpConfig<'_>>(
        r#"{"index_name":"btc_usd","interval":60,"frozen_time":5,"quantity_limit":3,"delta_limit":0,"vega_limit":0,"max_quote_quantity":1}"#,
    );
    golden::<MmpStatus<'_>>(r#"{"index_name":"btc_usd","mmp_group":"g","frozen_until":0}"#);
    golden::<OrderHistory<'_>>(r#"{"orders":[],"continuation":"c"}"#);
    golden::<CancelReport<'_>>(r#"{"instrument_name":"A","currency":"BTC","type":"limit","result":[]}"#);
}

#[test]
fn data_of_channels_is_written_as_it_was_read() {
    golden::<PerpetualState<'_>>(r#"{"timestamp":5,"interest":0.004,"index_price":60000.5}"#);
    golden::<Candle<'_>>(r#"{"tick":60000,"open":1,"high":3,"low":0.5,"close":2,"volume":10.5,"cost":21}"#);
    golden::<GetTradingviewChartData<'_>>(
        r#"{"instrument_name":"A","start_timestamp":60000,"end_timestamp":120000,"resolution":"1D"}"#,
    );
    let data = golden::<ChartData<'_>>(
        r#"{"status":"ok","ticks":[60000,120000],"open":[1,2],"high":[3,2],"low":[0.5,2],"close":[2,2],"volume":[10.5,0],"cost":[21,0]}"#,
    );
    assert_eq!(data.ticks.iter().map(Result::unwrap).collect::<Vec<u64>>(), [60_000, 120_000]);
    golden::<EstimatedExpirationPrice<'_>>(r#"{"is_estimated":true,"price":60000.5,"seconds":120}"#);
    golden::<OptionMarkPrice<'_>>(r#"{"timestamp":5,"instrument_name":"A","mark_price":0.05,"iv":0.605}"#);
    golden::<PublicMethodsState>(r#"{"allow_unauthenticated_public_requests":true}"#);
    golden::<UserLock<'_>>(r#"{"locked":true,"currency":"ALL"}"#);
    golden::<AccessLog<'_>>(r#"{"id":5,"timestamp":6,"ip":"127.0.0.1","result":"success","log":"login"}"#);
    golden::<MmpStatus<'_>>(r#"{"index_name":"btc_usd","frozen_until":1798185600000}"#);
    let ticker =
        golden::<Ticker<'_>>(r#"{"type":"change","timestamp":5,"instrument_name":"A","mark_price":1.5}"#);
    assert_eq!(ticker.kind, Some(BookUpdateKind::Change));
    golden::<OrderBook<'_>>(
        r#"{"timestamp":5,"instrument_name":"A","change_id":7,"bids":[],"asks":[],"interest_value":0.1,"estimated_delivery_price":60000,"current_funding":0,"funding_8h":0,"underlying_price":60000,"underlying_index":"btc_usd","interest_rate":0,"bid_iv":1,"ask_iv":2,"mark_iv":1.5,"greeks":{"delta":0.5,"gamma":0.0001,"rho":1,"theta":-5,"vega":6}}"#,
    );
}

#[test]
fn orders_and_trades_have_what_few_have() {
    const ORDER: &str = r#"{"label":"l","price":0.05,"amount":1,"direction":"buy","instrument_name":"A","web":false,"api":true,"order_id":"5","creation_timestamp":1,"replaced":false,"last_update_timestamp":2,"post_only":false,"reduce_only":false,"mmp":true,"order_state":"open","order_type":"limit","is_liquidation":false,"risk_reducing":false,"advanced":"usd","usd":3000,"quote":true,"quote_id":"q","quote_set_id":"s","mmp_group":"g","is_secondary_oto":true,"primary_order_id":"4","is_primary_otoco":false,"oto_order_ids":["6","7"],"auto_replaced":true,"is_rebalance":false,"mobile":false,"refresh_amount":10,"commission":0.1,"profit_loss":-0.2}"#;
    let order = golden::<Order<'_>>(ORDER);
    assert_eq!(order.advanced, Some(Advanced::Usd));
    assert_eq!(order.oto_order_ids.unwrap().count(), 2);
    assert_eq!(order.quote_set_id.unwrap(), "s");
    let trade = r#"{"timestamp":1,"price":2,"amount":3,"direction":"sell","instrument_name":"A","trade_seq":4,"api":true,"order_id":"5","post_only":false,"reduce_only":false,"mmp":true,"trade_id":"6","risk_reducing":true,"iv":60.5,"underlying_price":60000,"legs":[],"quote_id":"q","quote_set_id":"s","advanced":"implv"}"#;
    assert_eq!(golden::<UserTrade<'_>>(trade).advanced, Some(Advanced::ImpliedVolatility));
    golden::<PublicTrade<'_>>(
        r#"{"timestamp":1,"price":2,"amount":3,"direction":"sell","instrument_name":"A","trade_seq":4,"trade_id":"6","block_trade_id":"b","block_trade_leg_count":2,"block_rfq_id":77}"#,
    );
    let mut out = Vec::new();
    Order::empty("A").write(&mut out);
    let empty = String::from_utf8(out).unwrap();
    golden::<Order<'_>>(&empty);
}

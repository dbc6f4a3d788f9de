//! Errors of the configuration: one line each.

use crate::front::support::{changed, settings};

#[test]
fn what_cannot_run_is_refused_in_one_line() {
    for (from, to, word) in [
        ("matching_rate = 1000", "matching_rat = 1", "unknown field"),
        ("matching_rate = 1000", "matching_rate = 0", "matching_rate"),
        ("matching_rate = 1000", "matching_rate = 5\nband = '1'", "band must be above 0 and below 1"),
        ("matching_rate = 1000", "matching_rate = 5\nband = 'wide'", "'wide' is no number"),
        ("matching_rate = 1000", "matching_rate = 5\nmax_connections = 0", "max_connections"),
        ("matching_rate = 1000", "matching_rate = 5\nmax_connections_per_address = 0", "per_address"),
        ("matching_rate = 1000", "matching_rate = 5\nmax_labels = 536870912", "max_labels"),
        ("price = \"60000\"", "price = \"-1\"", "index btc_usd"),
        ("price = \"60000\"", "price = \"60000\", step_ppm = 20000", "step_ppm"),
        ("symbol = \"BTCPERP\"", "symbol = \"NOTHING\"", "the venue has no instrument 'NOTHING'"),
        ("index = \"btc_usd\"", "index = \"xrp_usd\"", "no [[deribit.index]] 'xrp_usd'"),
        ("name = \"ETH_USDC-PERPETUAL\"", "name = \"BTC-PERPETUAL\"", "is there twice"),
        ("period = \"perpetual\"", "period = \"week\"", "expiration_timestamp"),
        ("option_type = \"call\"", "option_type = \"both\"", "call or put"),
        ("option_type = \"call\", ", "", "option_type and strike"),
        ("min_trade_amount = \"10\"", "min_trade_amount = \"0\"", "above 0"),
        ("taker_commission = \"0.0005\"", "taker_commission = \"7\"", "must be -1 to 1"),
        ("client_id = \"bert\"", "client_id = \"anna\"", "a separate id"),
        ("client_secret = \"anna-secret\"", "client_secret = \"\"", "has no secret"),
        ("client_secret = \"anna-secret\"", "client_secret = \"env:NOT_SET_ANYWHERE\"", "NOT_SET_ANYWHERE"),
        ("user = \"ANNA\" }", "user = \"CLEO\" }", "no user 'CLEO'"),
        ("BTC = \"10\"", "BTC = \"ten\"", "'ten' BTC is no amount"),
    ] {
        let error = changed(&[(from, to)]).err().unwrap_or_else(|| panic!("{to} is accepted")).to_string();
        assert!(!error.contains('\n'), "{error}");
        assert!(error.contains(word), "no '{word}' in {error}");
    }
    assert_eq!(settings().listings.len(), 4);
}

#[test]
fn a_public_secret_is_for_the_loopback_interface_alone() {
    let public = ("client_secret = \"anna-secret\"", "client_secret = \"test\"");
    let anywhere = ("matching_rate = 1000", "address = \"0.0.0.0:1\"");
    assert!(changed(&[public]).is_ok() && changed(&[anywhere]).is_ok());
    let error = changed(&[public, anywhere]).expect_err("a public secret").to_string();
    assert!(error.contains("not the loopback interface"), "{error}");
}

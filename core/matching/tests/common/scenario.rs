//! Scenarios: commands, and the events that the engine must cause, as text.
//!
//! A line that begins at the margin is a command; a client's command begins with `s` and the session:
//!
//! ```text
//! s1 buy 1 100 @ 10.00 [ioc|gtc|gtt 5] [post-only] [min 50] [hidden] [show 10] [stop 10.00] [in 2]
//! s1 replace 1 by 2 100 @ 10.00 ...                           as above; price or `market`
//! s1 cancel 1 [to 50]
//! s1 modify 1 B to 50
//! s1 refuse 1 | s1 cancel-all | open 2 | halt 1 | quote 1 | trade 1 | end
//! s1 mass-cancel 1 [in 2] [side buy] | s1 disable 1 | s1 enable 1 | s1 kill | s1 unkill | kill | unkill
//! s1 prevent oldest [account 2] | s1 limits orders 5 qty 100 notional 1000000
//! uncross 1 | close 1 | imbalance 1 | band 1 10.00 width 0.50 | suspend 1 | break 3 | expire 7 | end-day
//! ```
//! The exact events follow: after the command if they fit on one line, otherwise in the indented lines below
//! it. `s1!` begins a reply, `*` a public event; [`event_text`] lists the events that share a line.

mod event_text;

use std::fmt::Write;

use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::{CommandKind, Engine, EngineLimits, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_types::*;

use crate::auditor::Auditor;
use crate::common::{apply, instruments, numbered, order};

/// Runs the scenario on an engine with each kind of books, and compares the events with the scenario's.
pub fn check(scenario: &str) {
    check_with::<FastBooks<Owner>>(scenario);
    check_with::<ReferenceBooks<Owner>>(scenario);
}

fn check_with<B: OrderBooks<Owner>>(scenario: &str) {
    let mut engine: Engine<B> = Engine::new(&instruments(3), small()).unwrap();
    let mut auditor = Auditor::new(3);
    let mut sequence = 0;
    // Instruments 1 and 2 trade from the start; a scenario can open instrument 3.
    for instrument in [InstrumentId(1), InstrumentId(2)] {
        let state = TradingState::Trading;
        let command = numbered(&mut sequence, 0, CommandKind::OpenInstrument { instrument, state });
        auditor.audit(&command, &apply(&mut engine, &command));
    }
    let mut actual = String::new();
    let lines = scenario.lines().map(|line| line.strip_prefix("        ").unwrap_or(line));
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    for line in lines.iter().filter(|line| !line.starts_with(' ')) {
        let text = line.split(':').next().unwrap_or(line);
        let (session, kind) = parse(text);
        let mut command = numbered(&mut sequence, session, kind);
        if let Some(seconds) = text.strip_prefix("expire ") {
            command.ts = Nanos(seconds.parse::<u64>().unwrap() * 1_000_000_000);
        }
        let events = apply(&mut engine, &command);
        auditor.audit(&command, &events);
        auditor.check_books(&engine);
        auditor.check_uncrossed(&engine);
        match &event_text::format_events(&command, &events)[..] {
            [only] => writeln!(actual, "{text}: {only}").unwrap(),
            several => {
                writeln!(actual, "{text}").unwrap();
                several.iter().for_each(|line| writeln!(actual, "  {line}").unwrap());
            }
        }
    }
    let expected: String = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    assert_eq!(actual, expected, "\ntold:\n{actual}\nexpected:\n{expected}");
}

fn small() -> EngineLimits {
    EngineLimits {
        max_open_orders: 100,
        max_open_orders_per_session: 100,
        max_sessions: 8,
        max_index_pages: 32,
        max_index_pages_per_session: 8,
        max_special_orders: 400,
        max_recent_executions: 64,
        max_instruments: 0,
    }
}

fn parse(line: &str) -> (u16, CommandKind) {
    let tokens: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| tokens[at].parse::<u64>().unwrap();
    let user_ref = |at: usize| UserRefNum(number(at) as u32);
    let option = |name: &str| tokens.iter().position(|word| *word == name);
    let value = |name: &str| option(name).map(|at| number(at + 1));
    let state = |state| CommandKind::SetTradingState { instrument: InstrumentId(number(1) as u16), state };
    match tokens[0] {
        "open" => {
            let instrument = InstrumentId(number(1) as u16);
            return (0, CommandKind::OpenInstrument { instrument, state: TradingState::QuotationOnly });
        }
        "halt" => return (0, state(TradingState::Halted)),
        "quote" => return (0, state(TradingState::QuotationOnly)),
        "trade" => return (0, state(TradingState::Trading)),
        "end" => return (0, CommandKind::System(SystemEventCode::EndOfMessages)),
        "kill" => return (0, CommandKind::KillVenue { is_killed: true }),
        "unkill" => return (0, CommandKind::KillVenue { is_killed: false }),
        "expire" => return (0, CommandKind::ExpireOrders),
        "end-day" => return (0, CommandKind::EndDay),
        "break" => {
            let (match_id, reason) = (MatchId(number(1)), BrokenReason::Erroneous);
            return (0, CommandKind::BreakTrade { match_id, reason });
        }
        "uncross" | "close" | "imbalance" | "band" | "suspend" => {
            let instrument = InstrumentId(number(1) as u16);
            let state = TradingState::Trading;
            return (
                0,
                match tokens[0] {
                    "uncross" => CommandKind::Uncross { instrument, kind: CrossKind::Opening, state },
                    "close" => CommandKind::Uncross {
                        instrument,
                        kind: CrossKind::Closing,
                        state: TradingState::Halted,
                    },
                    "imbalance" => CommandKind::PublishImbalance { instrument, kind: CrossKind::Opening },
                    "suspend" => CommandKind::SuspendInstrument { instrument },
                    _ => CommandKind::SetPriceBand {
                        instrument,
                        reference: Price::parse(tokens[2]).unwrap(),
                        width: Price::parse(tokens[4]).unwrap(),
                    },
                },
            );
        }
        _ => {}
    }
    let session = tokens[0].strip_prefix('s').unwrap().parse().unwrap();
    let price = option("@").map(|at| match tokens[at + 1] {
        "market" => Price::MARKET,
        text => Price::parse(text).unwrap(),
    });
    let time_in_force = match () {
        () if option("ioc").is_some() => TimeInForce::Ioc,
        () if option("gtc").is_some() => TimeInForce::Gtc,
        () if option("gtt").is_some() => TimeInForce::Gtt,
        () => TimeInForce::Day,
    };
    let special = OrderInstructions {
        stop_price: option("stop").map_or(Price(0), |at| Price::parse(tokens[at + 1]).unwrap()),
        display_qty: Qty(value("show").unwrap_or(0)),
        expire_at: value("gtt").unwrap_or(0) as u32,
        is_hidden: option("hidden").is_some(),
    };
    let special = (special != OrderInstructions::default()).then_some(special);
    let entered = |user_ref: UserRefNum, side, qty| EnterOrder {
        instrument: InstrumentId(value("in").unwrap_or(1) as u16),
        time_in_force,
        post_only: option("post-only").is_some(),
        min_qty: Qty(value("min").unwrap_or(0)),
        special,
        ..order(user_ref.0, side, qty, price.unwrap().0)
    };
    let request = match tokens[1] {
        "buy" => OrderRequest::Enter(entered(user_ref(2), Side::Buy, number(3))),
        "sell" => OrderRequest::Enter(entered(user_ref(2), Side::Sell, number(3))),
        "force-buy" => {
            return (session, CommandKind::Force(entered(user_ref(2), Side::Buy, number(3))));
        }
        // A replacement inherits the old order's side, so the side given here has no effect.
        "replace" => OrderRequest::Replace(entered(user_ref(4), Side::Buy, number(5)).replacing(user_ref(2))),
        "cancel" => {
            OrderRequest::Cancel(CancelOrder { user_ref: user_ref(2), qty: Qty(value("to").unwrap_or(0)) })
        }
        "modify" => OrderRequest::Modify(ModifyOrder {
            user_ref: user_ref(2),
            side_marking: tokens[3].as_bytes()[0],
            qty: Qty(value("to").unwrap()),
        }),
        "refuse" => {
            let (reason, client_order_id) =
                (RejectReason::DisplayNotOffered, ClientOrderId(*b"CLIENT-ORDER-7"));
            return (session, CommandKind::GatewayReject { user_ref: user_ref(2), reason, client_order_id });
        }
        "kill" => return (session, CommandKind::KillSession { is_killed: true }),
        "unkill" => return (session, CommandKind::KillSession { is_killed: false }),
        "prevent" => {
            let strategy = match tokens[2] {
                "newest" => SelfTradePrevention::CancelNewest,
                "oldest" => SelfTradePrevention::CancelOldest,
                "both" => SelfTradePrevention::CancelBoth,
                "decrement" => SelfTradePrevention::Decrement,
                _ => SelfTradePrevention::None,
            };
            let account = SessionId(value("account").map_or(session, |account| account as u16));
            return (session, CommandKind::SetSelfTradePrevention { strategy, account });
        }
        "limits" => {
            let kind = CommandKind::SetLimits {
                open_orders: value("orders").map_or(u32::MAX, |count| count as u32),
                order_qty: Qty(value("qty").unwrap_or(u64::MAX)),
                order_notional: value("notional").unwrap_or(u64::MAX),
            };
            return (session, kind);
        }
        "mass-cancel" => OrderRequest::MassCancel(MassCancel {
            user_ref: user_ref(2),
            instrument: InstrumentId(value("in").unwrap_or(0) as u16),
            side: option("side").map(|at| if tokens[at + 1] == "buy" { Side::Buy } else { Side::Sell }),
            firm: *b"FIRM",
        }),
        "disable" | "enable" => OrderRequest::SetOrderEntry(SetOrderEntry {
            user_ref: user_ref(2),
            is_enabled: tokens[1] == "enable",
            firm: *b"FIRM",
        }),
        "cancel-all" => return (session, CommandKind::CancelAll { reason: CancelReason::System }),
        other => panic!("{other} is not a command"),
    };
    (session, CommandKind::Order(request))
}

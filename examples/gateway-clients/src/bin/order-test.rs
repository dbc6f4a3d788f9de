//! One order's lifecycle: waits, enters a bid 5 ticks below the best, moves it to the best, lets it rest,
//! cancels it, and ends when the cancel is confirmed. The order is post-only; it can be filled while resting.
//!
//! `cargo run --release -p gateway-clients --bin order-test -- SOCKET --user NAME --symbols BTC-PERPETUAL --enable_trading`

use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Parser;
use gateway_clients::{Args, run};
use tickpath_config::{Duration, print_stderr, print_stdout};
use tickpath_gateway_io::{Client, monotonic};
use tickpath_gateway_protocol::{
    AccountReference, AckStatus, AckType, CancelOrder, CreateOrder, DownloadEnd, Event, EventKind,
    ExecutionFlags, Fixed, ModifyOrder, OrderAck, OrderStatus, OrderType, OrderUpdate, Ready, ReadyScope,
    ReferenceData, Side, TimeInForce, TopOfBook,
};
use tickpath_types::Nanos;

/// Ticks below the best bid at which the order is entered.
const TICKS_BELOW: i64 = 5;

/// Pings after the market data download by which all accounts are received, as they share one ring.
const PINGS_BEHIND: u32 = 2;

/// Enter an order, modify it, cancel it
#[derive(Parser)]
struct OrderTest {
    #[command(flatten)]
    args: Args,
    /// The account; the first that may trade by default
    #[arg(long)]
    account: Option<String>,
    /// The order's quantity; the minimum by default
    #[arg(long)]
    quantity: Option<Fixed>,
    /// Time to wait before the order is entered
    #[arg(long, default_value = "0s")]
    wait: Duration,
    /// Time that the order rests before it is cancelled
    #[arg(long, default_value = "30s")]
    rest: Duration,
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    /// Until the account is ready and the instrument has a bid, and then for `--wait`.
    Waiting {
        until: Option<Nanos>,
    },
    Creating,
    Modifying,
    Resting {
        until: Nanos,
    },
    Cancelling,
}

struct Test {
    flags: OrderTest,
    step: Step,
    known: Known,
    order: u64,
}

/// State reported by one gateway instance; in the next one, numbers may mean other instruments and accounts.
#[derive(Default)]
struct Known {
    symbol: u32,
    tick: Fixed,
    quantity: Fixed,
    best_bid: Fixed,
    account: u16,
    is_account_ready: bool,
    /// Accounts of the user, and whether it may trade with them.
    accounts: Vec<(String, bool)>,
    /// Pings since all instruments were received.
    pings: Option<u32>,
}

impl Test {
    fn handle(&mut self, client: &mut Client, event: &Event) -> anyhow::Result<ControlFlow<ExitCode>> {
        self.learn(event)?;
        self.check_known()?;
        if let Some(ack) =
            event.body::<OrderAck>().filter(|ack| ack.client_order_id == self.order && self.order > 0)
        {
            print_stdout(event)?;
            if ack.status == AckStatus::REJECTED {
                bail!("the {} was refused by the {}: {}: {}", ack.request, ack.origin, ack.error, ack.text);
            }
            // The ack of the new order may arrive after the update that it is working.
            if self.step == Step::Modifying && ack.request == AckType::MODIFY {
                match ack.status {
                    AckStatus::ACCEPTED => {
                        self.step = Step::Resting { until: monotonic() + self.flags.rest.0 };
                    }
                    // The result of the change is unknown, so the order is cancelled.
                    AckStatus::TIMEOUT => self.step = Step::Resting { until: monotonic() },
                    _ => {}
                }
            }
        }
        if let Some(update) = event
            .body::<OrderUpdate>()
            .filter(|update| update.client_order_id == self.order && self.order > 0)
        {
            print_stdout(event)?;
            match update.status {
                OrderStatus::WORKING if self.step == Step::Creating => self.modify(client)?,
                OrderStatus::CANCELED if self.step == Step::Cancelling => {
                    return Ok(ControlFlow::Break(ExitCode::SUCCESS));
                }
                OrderStatus::COMPLETED => bail!("the order was filled while it rested"),
                status if !status.is_open() => bail!("the order is {status} and was not to be"),
                _ => {}
            }
        }
        self.proceed(client)
    }

    /// Fails for an instrument or account that does not exist, instead of waiting for it.
    fn check_known(&self) -> anyhow::Result<()> {
        let (Some(pings), args) = (self.known.pings, &self.flags.args) else { return Ok(()) };
        if self.known.symbol == 0 {
            let wanted = args.symbols.join(", ");
            bail!(
                "the gateway has no instrument {wanted}: name one that its configuration's [symbols] let in"
            );
        }
        if self.known.account > 0 || pings < PINGS_BEHIND {
            return Ok(());
        }
        let (accounts, user) = (&self.known.accounts, &args.user);
        let names: Vec<&str> = accounts.iter().map(|(name, _)| name.as_str()).collect();
        let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        match self.flags.account.as_deref() {
            Some(wanted) if names.contains(&wanted) => bail!("the user {user} may not trade with {wanted}"),
            Some(wanted) => bail!("the user {user} has no account {wanted}: it has {has}"),
            None => bail!("the user {user} has no account that it may trade with: it has {has}"),
        }
    }

    /// Records the values that an order needs.
    fn learn(&mut self, event: &Event) -> anyhow::Result<()> {
        let (header, known) = (&event.header, &mut self.known);
        if let Some(reference) = event.body::<ReferenceData>() {
            if known.symbol == 0 && self.flags.args.wants(reference.name.as_str()) {
                (known.symbol, known.tick) = (header.symbol, reference.tick_size);
                known.quantity = self.flags.quantity.unwrap_or(reference.min_quantity);
            }
        } else if let Some(account) = event.body::<AccountReference>() {
            let (name, may_trade) = (account.name.as_str(), account.may_trade == 1);
            known.accounts.retain(|(other, _)| other != name);
            known.accounts.push((name.to_owned(), may_trade));
            let is_wanted = self.flags.account.as_deref().is_none_or(|wanted| wanted == name);
            if known.account == 0 && may_trade && is_wanted {
                known.account = header.account;
            }
        } else if let Some(end) = event.body::<DownloadEnd>() {
            if end.scope == ReadyScope::MARKET_DATA {
                known.pings.get_or_insert(0);
            }
        } else if header.kind == EventKind::PING {
            known.pings = known.pings.map(|pings| pings.saturating_add(1));
        } else if let Some(ready) = event.body::<Ready>() {
            if ready.scope == ReadyScope::ACCOUNT && header.account == known.account {
                known.is_account_ready = true;
                if known.best_bid.is_zero() {
                    print_stderr(
                        "there is no bid yet: waiting for one (at a local venue enter one, e.g. in tickpath shell)",
                    );
                }
            }
        } else if let Some(top) = event.body::<TopOfBook>() {
            if header.symbol == known.symbol && !top.bid_quantity.is_zero() {
                known.best_bid = top.bid_price;
            }
        } else if header.kind == EventKind::DISCONNECTED {
            ensure!(self.order == 0, "the gateway is gone; the order may still rest");
            *known = Known::default();
        }
        Ok(())
    }

    fn proceed(&mut self, client: &mut Client) -> anyhow::Result<ControlFlow<ExitCode>> {
        let now = monotonic();
        let can_enter = self.known.is_account_ready && !self.known.best_bid.is_zero();
        match self.step {
            Step::Waiting { until: None } if can_enter => {
                self.step = Step::Waiting { until: Some(now + self.flags.wait.0) };
            }
            Step::Waiting { until: Some(until) } if now >= until && can_enter => {
                if !self.flags.args.enable_trading {
                    print_stdout(format_args!(
                        "would buy {} at {}: give --enable_trading",
                        self.known.quantity,
                        self.price()
                    ))?;
                    return Ok(ControlFlow::Break(ExitCode::SUCCESS));
                }
                self.create(client)?;
            }
            Step::Resting { until } if now >= until && self.known.is_account_ready => {
                self.step = Step::Cancelling;
                client.request(self.known.account, self.known.symbol, self.order, &CancelOrder::default())?;
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn price(&self) -> Fixed {
        Fixed(self.known.best_bid.0 - TICKS_BELOW * self.known.tick.0)
    }

    fn create(&mut self, client: &mut Client) -> anyhow::Result<()> {
        self.step = Step::Creating;
        self.order = client.next_order_id();
        client.request(
            self.known.account,
            self.known.symbol,
            self.order,
            &CreateOrder {
                price: self.price(),
                quantity: self.known.quantity,
                side: Side::BUY,
                order_type: OrderType::LIMIT,
                time_in_force: TimeInForce::GTC,
                execution: ExecutionFlags::POST_ONLY,
                ..CreateOrder::default()
            },
        )?;
        Ok(())
    }

    fn modify(&mut self, client: &mut Client) -> anyhow::Result<()> {
        self.step = Step::Modifying;
        client.request(
            self.known.account,
            self.known.symbol,
            self.order,
            &ModifyOrder {
                price: self.known.best_bid,
                quantity: self.known.quantity,
                execution: ExecutionFlags::POST_ONLY,
                ..ModifyOrder::default()
            },
        )?;
        Ok(())
    }
}

fn main() -> ExitCode {
    let flags = OrderTest::parse();
    let args = flags.args.clone();
    let mut test = Test { flags, step: Step::Waiting { until: None }, known: Known::default(), order: 0 };
    run(&args, |client, event| test.handle(client, event)).unwrap_or_else(|error| {
        print_stderr(format_args!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

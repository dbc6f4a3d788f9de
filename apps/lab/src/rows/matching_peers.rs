//! The matching engine beside two open-source order books, with one sequence of commands for all.

use std::hint::black_box;

use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::workload::{Flow, Workload, WorkloadConfig};
use tickpath_matching::{Command, CommandKind, Engine, Owner};
use tickpath_types::{InstrumentId, OrderRequest, Price, Qty, SessionId, Side, UserRefNum};

use super::matching::{Pass, RING, Rings, SLICE};
use super::matching_series::{GROUP, TURN, scaled};
use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[
            row("lobster_100k", "M/s").note(
                "commands executed by the book of the crate lobster: 60 in 100 are passive orders, 30 cancels, \
                 10 orders that trade; 100 k open orders in 500 levels; requests prepared, results read; p50 of \
                 groups of 64 commands; in turns of 10,240 commands with the rows below; lobster keeps the ids \
                 of filled orders, so it slows down during a round",
            ),
            row("orderbook_rs_100k", "M/s")
                .note("the same commands executed by the book of the crate orderbook-rs, on one thread"),
            row("matching_100k", "M/s")
                .note(
                    "the same commands matched by the engine, which looks sessions and ids up and pushes every \
                     event to a ring; the levels, quantities and trades of the three books must be equal",
                )
                .limit("lobster_100k")
                .goal(Goal::RatioAtLeast(10.0)),
            row("matching_100k_orderbook_rs", "M/s")
                .note("the figure of matching_100k")
                .limit("orderbook_rs_100k")
                .goal(Goal::RatioAtLeast(45.0)),
        ],
        |lab| open(lab, 100_000, 500),
    ),
    on_one_core(
        &[
            row("lobster_1k", "M/s").note("as lobster_100k, with 1 k open orders in 50 levels"),
            row("orderbook_rs_1k", "M/s").note("as orderbook_rs_100k, with 1 k open orders in 50 levels"),
            row("matching_1k", "M/s")
                .note("as matching_100k, with 1 k open orders in 50 levels")
                .limit("lobster_1k")
                .goal(Goal::RatioAtLeast(5.0)),
            row("matching_1k_orderbook_rs", "M/s")
                .note("the figure of matching_1k")
                .limit("orderbook_rs_1k")
                .goal(Goal::RatioAtLeast(35.0)),
        ],
        |lab| open(lab, 1_000, 50),
    ),
];

/// Number of commands in a full round.
const COMMANDS: usize = 1_000_000;

fn open(lab: &Lab<'_>, open_order_count: u32, level_count: u16) -> anyhow::Result<Round> {
    let workload = Workload::generate(&scaled(
        &lab.context,
        WorkloadConfig {
            instrument_count: 1,
            open_order_count,
            command_count: COMMANDS,
            flow: Flow::Ladder { level_count },
            ..WorkloadConfig::default()
        },
    ));
    let opened: Engine<FastBooks<Owner>> = workload.opened();
    let lobster: Requests<Lobster> = Requests::of(&workload)?;
    let orderbook_rs: Requests<OrderbookRs> = Requests::of(&workload)?;
    let mut round = 0;
    each_round(lab, move |context| {
        let count = workload.commands.len();
        // The rings hold the events of a slice in which many orders trade.
        let mut ours = Pass::new(opened.clone(), Rings::new(2 * RING), GROUP, count);
        let (mut lobster, mut orderbook_rs) = (PeerPass::new(&lobster), PeerPass::new(&orderbook_rs));
        for from in (0..count).step_by(TURN) {
            let range = from..count.min(from + TURN);
            round += 1;
            for step in 0..3 {
                match (round + step) % 3 {
                    0 => ours.apply(context, &workload.commands[range.clone()]),
                    1 => lobster.apply(context, range.clone()),
                    _ => orderbook_rs.apply(context, range.clone()),
                }
            }
        }
        let (engine, trade_count) = (ours.engine(), ours.engine().counters().executions);
        let lobster = lobster.finish(engine.books(), trade_count).context("lobster")?;
        let orderbook_rs = orderbook_rs.finish(engine.books(), trade_count).context("orderbook-rs")?;
        let rate = |mut ticks: Vec<u64>| 1_000.0 * GROUP as f64 / context.quantile_ns(&mut ticks, 0.5);
        let ours = rate(ours.finish(&workload)?);
        Ok([rate(lobster), rate(orderbook_rs), ours, ours])
    })
}

/// A price level: price and total quantity.
type PriceAndQty = (i64, u64);

/// An order book of another project.
trait Peer {
    /// A command in the form that the book executes.
    type Request: Copy;

    /// An empty book, with memory for an expected number of orders if the book takes it in advance.
    fn new(order_count: usize) -> Self;

    /// Converts a command.
    fn request(command: &BookCommand) -> Self::Request;

    /// Executes a request, and reads the trades and the success in its result.
    fn execute(&mut self, request: Self::Request);

    /// Number of trades, and of requests that failed.
    fn results(&self) -> Results;

    /// The levels of a side, from the best.
    ///
    /// # Errors
    /// The book cannot list them.
    fn levels(&self, side: Side) -> anyhow::Result<Vec<PriceAndQty>>;
}

/// Counts of a peer's results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Results {
    trades: u64,
    failures: u64,
}

/// A command about one order of one book.
enum BookCommand {
    Enter { id: u64, session: SessionId, side: Side, qty: Qty, price: Price },
    Cancel { id: u64 },
}

impl BookCommand {
    /// Converts a command; `None` for those that concern no order.
    ///
    /// # Errors
    /// A kind of request that the load does not have.
    fn of(command: &Command) -> anyhow::Result<Option<BookCommand>> {
        let session = command.session;
        let id = |user_ref: UserRefNum| u64::from(session.0) << 32 | u64::from(user_ref.0);
        Ok(match &command.kind {
            CommandKind::Order(OrderRequest::Enter(order)) => Some(BookCommand::Enter {
                id: id(order.user_ref),
                session,
                side: order.side,
                qty: order.qty,
                price: order.price,
            }),
            CommandKind::Order(OrderRequest::Cancel(request)) => {
                Some(BookCommand::Cancel { id: id(request.user_ref) })
            }
            CommandKind::Order(_) => bail!("the load has a request that the peers lack"),
            _ => None,
        })
    }
}

/// A load in the form that a peer executes.
struct Requests<P: Peer> {
    opening: Vec<P::Request>,
    /// One for each command of the load.
    commands: Vec<P::Request>,
}

impl<P: Peer> Requests<P> {
    fn of(workload: &Workload) -> anyhow::Result<Requests<P>> {
        let converted = |commands: &[Command]| -> anyhow::Result<Vec<P::Request>> {
            let requests = commands.iter().map(BookCommand::of).filter_map(Result::transpose);
            requests.map(|request| Ok(P::request(&request?))).collect()
        };
        Ok(Requests { opening: converted(&workload.opening)?, commands: converted(&workload.commands)? })
    }
}

/// One book of a peer that executes a load, and the ticks of each group of [`GROUP`] requests.
struct PeerPass<'a, P: Peer> {
    peer: P,
    requests: &'a Requests<P>,
    waiting: Vec<P::Request>,
    samples: Vec<u64>,
}

impl<P: Peer> PeerPass<'_, P> {
    fn new(requests: &Requests<P>) -> PeerPass<'_, P> {
        let mut peer = P::new(requests.opening.len());
        requests.opening.iter().for_each(|request| peer.execute(*request));
        let samples = Vec::with_capacity(requests.commands.len() / GROUP + 1);
        PeerPass { peer, requests, waiting: Vec::with_capacity(SLICE), samples }
    }

    /// Executes the requests in this range of the load, like [`Pass::apply`].
    fn apply(&mut self, context: &Context, range: std::ops::Range<usize>) {
        for slice in self.requests.commands[range].chunks(SLICE) {
            self.waiting.clear();
            self.waiting.extend_from_slice(slice);
            let mut start = context.clock.ticks();
            for group in black_box(&self.waiting[..]).chunks(GROUP) {
                for request in group {
                    self.peer.execute(*request);
                }
                let end = context.clock.ticks();
                if group.len() == GROUP {
                    self.samples.push(end - start);
                }
                start = end;
            }
        }
    }

    /// Compares the results and the book with the engine's. Returns the ticks of each group.
    fn finish(self, books: &FastBooks<Owner>, trade_count: u64) -> anyhow::Result<Vec<u64>> {
        let results = self.peer.results();
        ensure!(
            results == Results { trades: trade_count, failures: 0 },
            "{results:?}, but the engine has {trade_count} trades"
        );
        for side in Side::BOTH {
            let ours = books.levels(InstrumentId(1), side).map(|level| (level.price.0, level.qty.0));
            ensure!(self.peer.levels(side)? == ours.collect::<Vec<_>>(), "the books differ on a side");
        }
        Ok(self.samples)
    }
}

/// The book of the crate lobster.
struct Lobster {
    book: lobster::OrderBook,
    results: Results,
}

/// Capacity of the queue of a new level of lobster, the crate's default.
const LOBSTER_QUEUE: usize = 10;

impl Peer for Lobster {
    type Request = lobster::OrderType;

    fn new(order_count: usize) -> Lobster {
        let book = lobster::OrderBook::new(order_count, LOBSTER_QUEUE, false);
        Lobster { book, results: Results::default() }
    }

    fn request(command: &BookCommand) -> lobster::OrderType {
        match *command {
            BookCommand::Enter { id, side, qty, price, .. } => lobster::OrderType::Limit {
                id: u128::from(id),
                side: match side {
                    Side::Buy => lobster::Side::Bid,
                    Side::Sell => lobster::Side::Ask,
                },
                qty: qty.0,
                price: price.0.unsigned_abs(),
            },
            BookCommand::Cancel { id } => lobster::OrderType::Cancel { id: u128::from(id) },
        }
    }

    #[inline]
    fn execute(&mut self, request: lobster::OrderType) {
        match black_box(self.book.execute(request)) {
            lobster::OrderEvent::Filled { fills, .. }
            | lobster::OrderEvent::PartiallyFilled { fills, .. } => {
                self.results.trades += fills.len() as u64;
            }
            lobster::OrderEvent::Placed { .. } | lobster::OrderEvent::Canceled { .. } => {}
            lobster::OrderEvent::Unfilled { .. } => self.results.failures += 1,
        }
    }

    fn results(&self) -> Results {
        self.results
    }

    fn levels(&self, side: Side) -> anyhow::Result<Vec<PriceAndQty>> {
        // The book lists both sides by ascending price.
        let depth = self.book.depth(usize::from(u16::MAX));
        let ascending = match side {
            Side::Buy => depth.bids,
            Side::Sell => depth.asks,
        };
        let mut levels: Vec<PriceAndQty> =
            ascending.iter().map(|level| (level.price.cast_signed(), level.qty)).collect();
        if side == Side::Buy {
            levels.reverse();
        }
        Ok(levels)
    }
}

/// The book of the crate orderbook-rs.
struct OrderbookRs {
    book: orderbook_rs::OrderBook<()>,
    results: Results,
}

/// A request to orderbook-rs, with the arguments of the method that executes it.
#[derive(Clone, Copy)]
enum OrderbookRsRequest {
    Enter { id: orderbook_rs::Id, price: u128, qty: u64, side: orderbook_rs::Side, owner: u8 },
    Cancel(orderbook_rs::Id),
}

impl Peer for OrderbookRs {
    type Request = OrderbookRsRequest;

    fn new(_order_count: usize) -> OrderbookRs {
        OrderbookRs { book: orderbook_rs::OrderBook::new("SYM1"), results: Results::default() }
    }

    fn request(command: &BookCommand) -> OrderbookRsRequest {
        match *command {
            BookCommand::Enter { id, session, side, qty, price } => OrderbookRsRequest::Enter {
                id: orderbook_rs::Id::from_u64(id),
                price: u128::from(price.0.unsigned_abs()),
                qty: qty.0,
                side: match side {
                    Side::Buy => orderbook_rs::Side::Buy,
                    Side::Sell => orderbook_rs::Side::Sell,
                },
                // The load has fewer than 255 sessions. An owner of zeroes means no owner.
                owner: 1 + session.0 as u8,
            },
            BookCommand::Cancel { id } => OrderbookRsRequest::Cancel(orderbook_rs::Id::from_u64(id)),
        }
    }

    #[inline]
    fn execute(&mut self, request: OrderbookRsRequest) {
        match request {
            OrderbookRsRequest::Enter { id, price, qty, side, owner } => {
                let entered = self.book.add_limit_order_with_user_and_result(
                    id,
                    price,
                    qty,
                    side,
                    orderbook_rs::TimeInForce::Gtc,
                    [owner; 32].into(),
                    None,
                );
                match entered {
                    Ok((_, Some(result))) => {
                        self.results.trades += black_box(&result).match_result.trades().len() as u64;
                    }
                    Ok((_, None)) => {}
                    Err(_) => self.results.failures += 1,
                }
            }
            OrderbookRsRequest::Cancel(id) => match black_box(self.book.cancel_order(id)) {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => self.results.failures += 1,
            },
        }
    }

    fn results(&self) -> Results {
        self.results
    }

    fn levels(&self, side: Side) -> anyhow::Result<Vec<PriceAndQty>> {
        let side = match side {
            Side::Buy => orderbook_rs::Side::Buy,
            Side::Sell => orderbook_rs::Side::Sell,
        };
        let levels = self.book.levels_with_cumulative_depth(side);
        levels
            .map(|level| {
                let level = level.map_err(|error| anyhow::anyhow!("{error}"))?;
                Ok((i64::try_from(level.price)?, level.quantity))
            })
            .collect()
    }
}

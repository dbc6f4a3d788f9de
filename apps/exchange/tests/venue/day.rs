//! The trading day: phases, auctions, pauses, added instruments, busted trades, and the end of the day.

use tickpath_exchange::{
    AdminCommand, AdminOutcome, AdminRefusal, BandWidth, LimitsChange, Phase, Schedule, ScheduleStep,
    VenueSettings,
};
use tickpath_journal::{DiskFaults, FaultyDisk, InspectOptions, JournalConfig, Opened, Policy, SessionName};
use tickpath_matching::{COMMAND_LEN_MAX, Command, CommandKind};
use tickpath_nasdaq::itch50::Message;
use tickpath_types::{
    AddInstrumentError, BrokenReason, CancelReason, EnterOrder, Instrument, InstrumentId, InstrumentTable,
    Liquidity, MatchId, Nanos, OrderEventKind, OrderInstructions, OrderRequest, Price, Qty, RejectReason,
    Sequence, SessionId, Side, Symbol, TimeInForce, TradingState,
};

use crate::market_data::{Line, RetransmissionClient, with_lines};
use crate::support::{
    ALPHA, Client, Received, Rig, build_on, cancel, enter, instruments, ioc, journal, order, settings,
};

const ANNA: SessionId = SessionId(1);
const BRAVO: InstrumentId = InstrumentId(2);
pub const GAMMA: InstrumentId = InstrumentId(3);
const SECOND: Nanos = Nanos::from_secs(1);

pub fn phase(phase: Phase, instrument: Option<InstrumentId>) -> AdminCommand {
    AdminCommand::Phase { phase, instrument }
}

pub fn done(commands: u32) -> AdminOutcome {
    AdminOutcome::Done { commands }
}

pub fn state(rig: &Rig, id: InstrumentId) -> TradingState {
    // An instrument that was never opened has no state.
    let code = rig.view.states[usize::from(id.0)].read() as u8;
    TradingState::from_code(code).unwrap_or(TradingState::Halted)
}

/// Lists message types; a code follows `S` (the event), `H` (the state), and `I` and `Q` (the cross type).
fn summary(messages: &[Vec<u8>]) -> String {
    let word = |message: &Vec<u8>| {
        let code = match message[0] {
            b'S' => Some(message[11]),
            b'H' => Some(message[19]),
            b'I' => Some(message[48]),
            b'Q' => Some(message[39]),
            _ => None,
        };
        [message[0]].into_iter().chain(code).map(char::from).collect::<String>()
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Waits until the line has all published messages. Returns the [`summary`] of those after the first `seen`.
fn new_messages(rig: &mut Rig, line: &mut Line, seen: &mut usize) -> String {
    let published = rig.view.publisher.messages.read() as usize;
    rig.until_true("all that was published", |_| {
        line.read();
        line.messages().len() >= published
    });
    let messages = line.messages();
    let text = summary(&messages[*seen..]);
    *seen = messages.len();
    text
}

pub fn reason(answer: OrderEventKind) -> RejectReason {
    match answer {
        OrderEventKind::Rejected { reason, .. } => reason,
        other => panic!("{other:?} in place of a refusal"),
    }
}

pub fn accepted(rig: &mut Rig, client: &mut Client, request: &OrderRequest) {
    let answer = rig.submit(client, request);
    assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
}

#[test]
fn an_auction_publishes_imbalances_and_crosses() {
    let (mut rig, mut line, _) = with_lines(&settings());
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let mut seen = 0;
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "SO SS R HT R HT SQ");
    assert_eq!(rig.command(phase(Phase::Auction, Some(ALPHA))), done(2));
    assert_eq!(
        (state(&rig, ALPHA), state(&rig, BRAVO)),
        (TradingState::QuotationOnly, TradingState::Trading)
    );
    accepted(&mut rig, &mut anna, &enter(1, Side::Buy, 10, 1_000_200));
    accepted(&mut rig, &mut bert, &enter(1, Side::Sell, 10, 1_000_000));
    rig.advance(SECOND);
    rig.advance(SECOND);
    let published = new_messages(&mut rig, &mut line, &mut seen);
    assert!(
        published.starts_with("HQ II") && published.contains("A A") && published.ends_with("II"),
        "{published}"
    );

    assert_eq!(rig.command(phase(Phase::Open, Some(ALPHA))), done(1));
    let [anna_received] = rig.receive_events(&mut anna);
    assert!(
        matches!(
            anna_received,
            OrderEventKind::Executed { qty: Qty(10), liquidity: Liquidity::OpeningCross, .. }
        ),
        "{anna_received:?}"
    );
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "C C QI HT");
    let trades = &rig.view.trades[usize::from(ALPHA.0)];
    assert_eq!((trades.volume.read(), trades.count.read()), (10, 1), "both sides are one trade");
    assert_eq!(
        rig.command(phase(Phase::Open, Some(ALPHA))),
        AdminOutcome::Refused(AdminRefusal::Trading),
        "it trades"
    );
    rig.assert_serves(&mut anna, 2);
}

#[test]
fn the_close_crosses_and_halts() {
    let (mut rig, mut line, _) = with_lines(&settings());
    let mut anna = rig.log_in("ANNA");
    let mut seen = 0;
    new_messages(&mut rig, &mut line, &mut seen);
    assert_eq!(rig.command(phase(Phase::PreClose, None)), done(4));
    assert_eq!(rig.command(phase(Phase::Close, None)), done(3));
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "HQ IC HQ IC SM QC HH QC HH");
    assert_eq!(reason(rig.submit(&mut anna, &enter(1, Side::Buy, 1, 1_000_000))), RejectReason::Halted);
    let refused = rig.command(phase(Phase::Close, Some(ALPHA)));
    assert_eq!(refused, AdminOutcome::Refused(AdminRefusal::Halted));
}

#[test]
fn a_price_band_pauses_and_an_auction_resumes_trading() {
    let (mut rig, mut line, _) = with_lines(&settings());
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let band = |reference| AdminCommand::SetPriceBand {
        instrument: Some(ALPHA),
        width: BandWidth::Ppm(1_000),
        reference,
    };
    let outside = AdminOutcome::Refused(AdminRefusal::OutsideCollar);
    assert_eq!(rig.command(band(Some(Price(100_000_000)))), outside);
    assert_eq!(rig.command(band(None)), done(1));
    accepted(&mut rig, &mut anna, &enter(1, Side::Sell, 5, 1_020_000));
    let mut seen = 0;
    new_messages(&mut rig, &mut line, &mut seen);
    accepted(&mut rig, &mut bert, &enter(1, Side::Buy, 5, 1_030_000));
    rig.advance(SECOND);
    assert_eq!(state(&rig, ALPHA), TradingState::Paused);
    rig.advance(SECOND);
    rig.advance(Nanos::from_secs(5));
    let [received] = rig.receive_events(&mut bert);
    assert!(matches!(received, OrderEventKind::Executed { qty: Qty(5), .. }), "{received:?}");
    assert_eq!(state(&rig, ALPHA), TradingState::Trading);
    let published = new_messages(&mut rig, &mut line, &mut seen);
    assert!(published.starts_with("J HP A") && published.contains("IH"), "{published}");
    assert!(published.ends_with("C C QH HT"), "{published}");
    assert!(!published.replace("QH", "").contains('Q'), "one cross: {published}");
}

#[test]
fn a_broken_trade_is_reported_to_both_users_and_published() {
    let (mut rig, mut line, _) = with_lines(&settings());
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    accepted(&mut rig, &mut anna, &enter(1, Side::Sell, 5, 1_000_000));
    accepted(&mut rig, &mut bert, &enter(1, Side::Buy, 5, 1_000_000));
    let [OrderEventKind::Executed { match_id, .. }] = rig.receive_events(&mut bert) else {
        panic!("no trade")
    };
    let _ = rig.receive_event(&mut anna);
    let mut seen = 0;
    new_messages(&mut rig, &mut line, &mut seen);
    let command = |match_id| AdminCommand::BreakTrade { match_id, reason: BrokenReason::Erroneous };
    assert_eq!(rig.command(command(match_id)), done(1));
    for client in [&mut anna, &mut bert] {
        let received = rig.receive_event(client);
        assert!(
            matches!(received, OrderEventKind::Broken { reason: BrokenReason::Erroneous, .. }),
            "{received:?}"
        );
    }
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "B");
    for match_id in [match_id, MatchId(0), MatchId(77)] {
        let refused = AdminOutcome::Refused(AdminRefusal::NoExecution);
        assert_eq!(rig.command(command(match_id)), refused, "{match_id}");
    }
}

#[test]
fn limits_change_independently() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let change = |change| AdminCommand::SetLimits { session: ANNA, change };
    let qty = LimitsChange { order_qty: Some(Some(Qty(10))), ..LimitsChange::default() };
    assert_eq!(rig.command(change(qty)), done(1));
    assert_eq!(rig.command(change(qty)), done(0), "nothing new");
    let open = LimitsChange { open_orders: Some(Some(1)), ..LimitsChange::default() };
    assert_eq!(rig.command(change(open)), done(1));
    let request = enter(1, Side::Buy, 11, 900_000);
    assert_eq!(reason(rig.submit(&mut anna, &request)), RejectReason::QtyAboveLimit);
    accepted(&mut rig, &mut anna, &enter(2, Side::Buy, 10, 900_000));
    let request = enter(3, Side::Buy, 10, 900_000);
    assert_eq!(reason(rig.submit(&mut anna, &request)), RejectReason::OpenOrdersAboveLimit);
    let none = LimitsChange { order_qty: Some(None), open_orders: Some(None), ..LimitsChange::default() };
    assert_eq!(rig.command(change(none)), done(1));
    accepted(&mut rig, &mut anna, &enter(4, Side::Buy, 11, 900_000));
    let rate = tickpath_exchange::RateLimit { per_second: 1, burst: 1 };
    let slow = LimitsChange { rate: Some(Some(rate)), ..LimitsChange::default() };
    assert_eq!(rig.command(change(slow)), done(1));
    assert_eq!(rig.command(change(slow)), done(0), "nothing new");
    accepted(&mut rig, &mut anna, &enter(5, Side::Buy, 1, 900_000));
    let request = enter(6, Side::Buy, 1, 900_000);
    assert_eq!(reason(rig.submit(&mut anna, &request)), RejectReason::RateAboveLimit);
}

pub fn gamma() -> Instrument {
    Instrument { symbol: Symbol::new("GAMMA").unwrap(), ..*instruments().get(ALPHA).unwrap() }
}

/// Settings with capacity for one more instrument.
pub fn with_spare_instrument() -> VenueSettings {
    let mut settings = settings();
    settings.limits.max_instruments = 3;
    settings
}

/// Encodes an OUCH order for GAMMA, which is not in the test clients' instrument table.
pub fn enter_gamma(user_ref: u32, side: Side, price: i64) -> Vec<u8> {
    let mut packet = crate::support::request_packet(&enter(user_ref, side, 5, price));
    let place = packet.windows(8).position(|bytes| bytes == b"ALPHA   ").unwrap();
    packet[place..place + 8].copy_from_slice(b"GAMMA   ");
    packet
}

pub fn receive_type(rig: &mut Rig, client: &mut Client) -> u8 {
    match rig.receive(client) {
        Received::Message(message) => message[0],
        other => panic!("{other:?} in place of an answer"),
    }
}

#[test]
fn an_instrument_is_added_traded_suspended_and_reopened() {
    let (mut rig, mut line, _) = with_lines(&with_spare_instrument());
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    anna.send(&enter_gamma(1, Side::Buy, 1_000_000));
    assert_eq!(receive_type(&mut rig, &mut anna), b'J', "it is not known yet");
    let mut seen = 0;
    new_messages(&mut rig, &mut line, &mut seen);
    assert_eq!(rig.command(AdminCommand::AddInstrument(gamma())), done(2));
    assert_eq!(state(&rig, GAMMA), TradingState::Halted);
    assert_eq!(rig.command(phase(Phase::Open, Some(GAMMA))), done(1));
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "R HH QO HT");
    let messages = line.messages();
    let directory = messages.iter().rfind(|message| message[0] == b'R').unwrap();
    let Ok(Message::StockDirectory(directory)) = Message::parse(directory) else { panic!("no directory") };
    assert_eq!(
        (directory.stock_locate.get(), directory.stock.get().to_string()),
        (GAMMA, "GAMMA".to_owned())
    );
    anna.send(&enter_gamma(2, Side::Buy, 1_000_000));
    bert.send(&enter_gamma(1, Side::Sell, 1_000_000));
    assert_eq!([receive_type(&mut rig, &mut anna), receive_type(&mut rig, &mut anna)], *b"AE");
    assert_eq!([receive_type(&mut rig, &mut bert), receive_type(&mut rig, &mut bert)], *b"AE");

    anna.send(&enter_gamma(3, Side::Buy, 1_000_000));
    assert_eq!(receive_type(&mut rig, &mut anna), b'A');
    assert_eq!(rig.command(AdminCommand::SuspendInstrument { instrument: GAMMA }), done(1));
    assert_eq!(receive_type(&mut rig, &mut anna), b'C');
    assert_eq!(rig.command(phase(Phase::Resume, Some(GAMMA))), done(1));
    anna.send(&enter_gamma(4, Side::Buy, 1_000_000));
    assert_eq!(receive_type(&mut rig, &mut anna), b'A');

    let again = AdminRefusal::Instrument(AddInstrumentError::Symbol { symbol: gamma().symbol });
    assert_eq!(rig.command(AdminCommand::AddInstrument(gamma())), AdminOutcome::Refused(again));
    let delta = Instrument { symbol: Symbol::new("DELTA").unwrap(), ..gamma() };
    let full = AdminRefusal::Instrument(AddInstrumentError::Full { max: GAMMA });
    assert_eq!(rig.command(AdminCommand::AddInstrument(delta)), AdminOutcome::Refused(full));
}

/// A venue's settings, and its disk, which keeps its data when the venue ends.
pub struct Site {
    pub settings: VenueSettings,
    pub disk: FaultyDisk,
}

impl Site {
    pub fn new(settings: VenueSettings) -> Site {
        Site { settings, disk: FaultyDisk::new(1, DiskFaults::default()) }
    }

    pub fn start(&self) -> Rig {
        Rig::of(build_on(&self.settings, &journal(Policy::Group), &self.disk).unwrap())
    }

    pub fn restart(&self, rig: Rig) -> Rig {
        self.disk.kill();
        drop(rig);
        self.start()
    }
}

#[test]
fn an_added_instrument_survives_restarts() {
    let mut site = Site::new(with_spare_instrument());
    let mut rig = site.start();
    assert_eq!(rig.command(AdminCommand::AddInstrument(gamma())), done(2));
    assert_eq!(rig.command(phase(Phase::Open, Some(GAMMA))), done(1));
    let mut anna = rig.log_in("ANNA");
    anna.send(&enter_gamma(1, Side::Buy, 1_000_000));
    assert_eq!(receive_type(&mut rig, &mut anna), b'A');
    let mut numbers = 1;
    for round in 0..3 {
        drop(anna);
        rig = site.restart(rig);
        let recovery = rig.journal.as_ref().unwrap().recovery.clone();
        assert_eq!(recovery.snapshot.is_some(), round > 0, "{recovery}");
        anna = rig.log_in_from("ANNA", u64::from(numbers) + 1);
        assert_eq!(state(&rig, GAMMA), TradingState::Trading);
        // Write enough commands for a snapshot.
        for _ in 0..60 {
            numbers += 1;
            anna.send(&enter_gamma(numbers, Side::Buy, 1_000_000));
            assert_eq!(receive_type(&mut rig, &mut anna), b'A', "{round}");
        }
    }
    drop(anna);
    // The configuration may reserve less capacity than before.
    site.settings.limits.max_instruments = 0;
    rig = site.restart(rig);
    assert_eq!(state(&rig, GAMMA), TradingState::Trading);
    // The configuration may list the added instrument, and reserve more capacity.
    let listed: Vec<_> = instruments().iter().copied().chain([Instrument { id: GAMMA, ..gamma() }]).collect();
    site.settings.instruments = InstrumentTable::new(&listed);
    site.settings.limits.max_instruments = 5;
    rig = site.restart(rig);
    let delta = Instrument { symbol: Symbol::new("DELTA").unwrap(), ..gamma() };
    assert_eq!(rig.command(AdminCommand::AddInstrument(delta)), done(2));
    rig = site.restart(rig);
    assert_eq!(state(&rig, InstrumentId(4)), TradingState::Halted);
    assert_eq!(rig.command(phase(Phase::Open, Some(InstrumentId(4)))), done(1));
}

#[test]
fn an_end_of_day_command_skips_the_rest_of_the_schedule() {
    let mut settings = settings();
    let steps = [(0, Phase::Start), (1_000, Phase::Auction), (2_000, Phase::Close), (3_000, Phase::EndOfDay)];
    settings.day.schedule = Some(schedule(tickpath_agent::TscClock::system().now(), &steps));
    let (mut rig, mut line, _) = with_lines(&settings);
    let mut seen = 0;
    run_due_steps(&mut rig);
    assert_eq!(rig.command(phase(Phase::EndOfDay, None)), done(6));
    let ended = new_messages(&mut rig, &mut line, &mut seen);
    assert!(ended.ends_with("SM HH HH SE SC"), "{ended}");
    for state in [TradingState::Trading, TradingState::Halted] {
        let refused = rig.command(AdminCommand::SetTradingState { instrument: ALPHA, state });
        assert_eq!(refused, AdminOutcome::Refused(AdminRefusal::DayNotStarted));
    }
    rig.advance(Nanos::from_secs(4_000));
    run_due_steps(&mut rig);
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "");
    rig.advance(Nanos::from_secs(24 * 3_600 - 3_500));
    run_due_steps(&mut rig);
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "SO SS R HH R HH", "the next day comes as ever");
}

/// Asserts that UserRefNum 1 is free in the new day: enters an order with it, and cancels the order.
fn assert_new_day(rig: &mut Rig, client: &mut Client) {
    accepted(rig, client, &enter(1, Side::Buy, 1, 900_000));
    let answer = rig.submit(client, &cancel(1, 0));
    assert!(matches!(answer, OrderEventKind::Canceled { .. }), "{answer:?}");
}

#[test]
fn the_day_ends_and_another_begins() {
    let (mut rig, mut line, _) = with_lines(&settings());
    let mut anna = rig.log_in("ANNA");
    anna.keeps_system_events = true;
    accepted(&mut rig, &mut anna, &enter(7, Side::Buy, 10, 900_000));
    let mut seen = 0;
    new_messages(&mut rig, &mut line, &mut seen);
    assert_eq!(rig.command(phase(Phase::Start, None)), AdminOutcome::Refused(AdminRefusal::DayStarted));
    assert_eq!(rig.command(phase(Phase::EndOfDay, None)), done(6));
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "SM HH HH SE D SC");
    let Received::Message(stage) = rig.receive(&mut anna) else { panic!("no end of day") };
    assert_eq!((stage[0], stage[9]), (b'S', b'E'));
    let received = rig.receive_event(&mut anna);
    let is_over = matches!(
        received,
        OrderEventKind::Canceled { user_ref, reason: CancelReason::EndOfDay, .. } if user_ref.0 == 7
    );
    assert!(is_over, "{received:?}");
    for command in [phase(Phase::EndOfDay, None), AdminCommand::AddInstrument(gamma())] {
        assert_eq!(rig.command(command), AdminOutcome::Refused(AdminRefusal::DayNotStarted));
    }
    assert_eq!(reason(rig.submit(&mut anna, &enter(1, Side::Buy, 1, 900_000))), RejectReason::Halted);

    assert_eq!(rig.command(phase(Phase::Start, None)), done(4));
    let Received::Message(stage) = rig.receive(&mut anna) else { panic!("no start of day") };
    assert_eq!((stage[0], stage[9]), (b'S', b'S'));
    assert_eq!(rig.command(phase(Phase::Open, None)), done(3));
    assert_eq!(new_messages(&mut rig, &mut line, &mut seen), "SO SS R HH R HH SQ QO HT QO HT");
    let mut bert = rig.log_in_from("BERT", 3);
    assert_new_day(&mut rig, &mut bert);
}

/// Runs the venue for 400 ms of simulated time, so that it executes all due schedule steps.
pub fn run_due_steps(rig: &mut Rig) {
    for _ in 0..20 {
        rig.advance(Nanos::from_millis(20));
        (0..5).for_each(|_| _ = rig.turn());
    }
}

/// Appends a command to a journal that no venue has open.
fn write_command(site: &Site, session: SessionId, ts: Nanos, kind: CommandKind) {
    let name = SessionName::new("TODAY").unwrap();
    let config = JournalConfig {
        policy: Policy::Group,
        segment_len: 16 << 10,
        buffer_len: 4 << 10,
        payload_len_max: COMMAND_LEN_MAX,
        first_sequence: Sequence(1),
    };
    let options = InspectOptions { session: Some(name), from: Sequence(1), accept_loss: false };
    let Opened { mut journal, mut worker, found, .. } =
        tickpath_journal::open(&site.disk, name, config, &options).unwrap();
    let sequence = found.last_sequence().next();
    let mut bytes = [0; COMMAND_LEN_MAX];
    let len = Command { sequence, session, ts, kind }.encode(&mut bytes);
    journal.append(sequence, &bytes[..len]).unwrap();
    while journal.durable_view().durable() < sequence {
        journal.poll();
        worker.run_once();
    }
}

/// True if an event cancels the order with this UserRefNum for this reason.
fn is_canceled(received: &OrderEventKind, number: u32, expected: CancelReason) -> bool {
    matches!(received, OrderEventKind::Canceled { user_ref, reason, .. } if user_ref.0 == number && *reason == expected)
}

#[test]
fn a_gtc_order_survives_the_day_and_a_restart() {
    let site = Site::new(settings());
    let mut rig = site.start();
    run_due_steps(&mut rig);
    let ts = Nanos(rig.time_of_day());
    rig.close();
    drop(rig);
    // OUCH has no good-till-cancel orders, but the log may have one from another front.
    let carried = EnterOrder { time_in_force: TimeInForce::Gtc, ..order(9, Side::Sell, 10, 1_010_000) };
    write_command(&site, ANNA, ts, CommandKind::Order(OrderRequest::Enter(carried)));
    let mut rig = site.start();
    let mut bert = rig.log_in("BERT");
    accepted(&mut rig, &mut bert, &enter(1, Side::Sell, 5, 1_000_000));
    accepted(&mut rig, &mut bert, &enter(2, Side::Buy, 5, 900_000));
    let mut requester = RetransmissionClient::new(&rig);
    let before = rig.view.publisher.messages.read();
    assert_eq!(rig.command(phase(Phase::EndOfDay, None)), done(6));
    for user_ref in [1, 2] {
        let received = rig.receive_event(&mut bert);
        assert!(is_canceled(&received, user_ref, CancelReason::EndOfDay), "{received:?}");
    }
    let count = rig.view.publisher.messages.read() - before;
    requester.request("TODAY", before + 1, count as u16);
    let (_, end) = requester.receive(&mut rig, count as usize);
    assert_eq!(summary(&end), "SM HH HH SE D D D A SC");

    // Anna receives the same messages at a login, and again after a restart.
    drop(bert);
    for _ in 0..2 {
        let mut anna = rig.log_in("ANNA");
        let [first, second] = rig.receive_events(&mut anna);
        assert!(matches!(first, OrderEventKind::Accepted { .. }), "{first:?}");
        let OrderEventKind::Replaced { order, orig_user_ref, order_id, .. } = second else {
            panic!("{second:?}")
        };
        assert_eq!((orig_user_ref.0, order.user_ref.0, order_id.0), (9, 1, 1), "all begins again");
        drop(anna);
        // Without a schedule, the next day begins when the venue starts.
        rig = site.restart(rig);
    }
    let mut bert = rig.log_in_from("BERT", 7);
    accepted(&mut rig, &mut bert, &enter(1, Side::Buy, 10, 1_010_000));
    let received = rig.receive_event(&mut bert);
    assert!(
        matches!(received, OrderEventKind::Executed { qty: Qty(10), match_id: MatchId(1), .. }),
        "{received:?}"
    );
}

/// The current second of the simulated day.
fn second_of(rig: &Rig) -> u32 {
    (rig.time_of_day() / 1_000_000_000) as u32
}

#[test]
fn a_gtt_order_expires_also_after_a_restart() {
    let site = Site::new(settings());
    let mut rig = site.start();
    if second_of(&rig) + 200 > 24 * 3_600 {
        // Advance past midnight, because too little of the day remains.
        rig.advance(Nanos::from_secs(300));
    }
    let mut anna = rig.log_in("ANNA");
    let second = second_of(&rig);
    let until = |user_ref, expire_at| {
        let special = Some(OrderInstructions { expire_at, ..OrderInstructions::default() });
        let order = order(user_ref, Side::Buy, 5, 900_000);
        OrderRequest::Enter(EnterOrder { time_in_force: TimeInForce::Gtt, special, ..order })
    };
    accepted(&mut rig, &mut anna, &until(1, second + 60));
    accepted(&mut rig, &mut anna, &until(2, second + 120));
    drop(anna);
    rig.advance(Nanos::from_secs(61));
    let mut anna = rig.log_in_from("ANNA", 3);
    let received = rig.receive_event(&mut anna);
    assert!(is_canceled(&received, 1, CancelReason::Expired), "{received:?}");
    drop(anna);
    rig = site.restart(rig);
    let wait = (24 * 3_600 + second + 121 - second_of(&rig)) % (24 * 3_600);
    rig.advance(Nanos::from_secs(wait.into()));
    let mut anna = rig.log_in_from("ANNA", 4);
    let received = rig.receive_event(&mut anna);
    assert!(is_canceled(&received, 2, CancelReason::Expired), "{received:?}");
}

/// A schedule with steps at these seconds after `now`.
pub fn schedule(now: Nanos, steps: &[(u32, Phase)]) -> Schedule {
    // Choose the time zone so that the schedule's clock reads 08:00 now.
    let day = Nanos::DAY.0 / 1_000_000_000;
    let utc_offset = 8 * 3_600 - (now.0 / 1_000_000_000 % day) as i32;
    let step = |(second, phase): &(u32, Phase)| ScheduleStep {
        second: 8 * 3_600 + second,
        phase: *phase,
        instruments: None,
    };
    Schedule { utc_offset, steps: steps.iter().map(step).collect() }
}

#[test]
fn each_step_of_a_schedule_runs_once_despite_restarts() {
    let now = tickpath_agent::TscClock::system().now();
    let mut settings = settings();
    let steps = [
        (0, Phase::Start),
        (0, Phase::PreOpen),
        (1_000, Phase::Open),
        (2_000, Phase::PreClose),
        (3_000, Phase::Close),
        (4_000, Phase::EndOfDay),
    ];
    settings.day.imbalance_interval = Nanos::from_secs(10_000);
    settings.day.schedule = Some(schedule(now, &steps));
    let mut line = Line::join(settings.line_a);
    let site = Site::new(settings);
    let mut rig = site.start();
    let mut seen = 0;
    run_due_steps(&mut rig);
    let first = new_messages(&mut rig, &mut line, &mut seen);
    assert_eq!(first, "SO SS R HH R HH HQ IO HQ IO", "and nothing is traded");
    let mut anna = rig.log_in("ANNA");
    accepted(&mut rig, &mut anna, &enter(3, Side::Buy, 5, 1_000_000));
    drop(anna);

    // The venue restarts before the opening; then the time of the opening passes.
    rig = site.restart(rig);
    rig.advance(Nanos::from_secs(1_500));
    run_due_steps(&mut rig);
    assert_eq!(state(&rig, ALPHA), TradingState::Trading);
    let opened = new_messages(&mut rig, &mut line, &mut seen);
    assert!(opened.ends_with("SQ QO HT QO HT") && !opened.contains('R'), "{opened}");
    let published = rig.view.publisher.messages.read();
    rig = site.restart(rig);
    rig.advance(Nanos::from_secs(1_500));
    run_due_steps(&mut rig);
    assert_eq!(rig.view.publisher.messages.read(), published, "nothing of it again");

    // The venue restarts; its next schedule check is on the next day.
    rig = site.restart(rig);
    rig.advance(Nanos::from_secs(24 * 3_600 + 1));
    run_due_steps(&mut rig);
    let rest = new_messages(&mut rig, &mut line, &mut seen);
    let day_end = "HQ IC HQ IC SM QC HH QC HH HH HH SE D SC";
    assert!(rest.contains(day_end) && rest.ends_with("SO SS R HH R HH HQ IO HQ IO"), "{rest}");
    let mut bert = rig.log_in_from("BERT", 3);
    assert_new_day(&mut rig, &mut bert);
}

#[test]
fn a_schedule_and_commands_run_under_load() {
    let now = tickpath_agent::TscClock::system().now();
    let mut settings = settings();
    let steps =
        [(0, Phase::Start), (0, Phase::Open), (4, Phase::Auction), (8, Phase::Open), (12, Phase::Halt)];
    settings.day.schedule = Some(schedule(now, &steps));
    let site = Site::new(settings);
    let mut rig = site.start();
    run_due_steps(&mut rig);
    let mut anna = rig.log_in("ANNA");
    let mut number = 0;
    for expected in [TradingState::QuotationOnly, TradingState::Trading, TradingState::Halted] {
        rig.advance(Nanos::from_secs(4));
        rig.until_true("the next step", |rig| {
            number += 1;
            anna.request(&ioc(number, Side::Buy, 1, 900_000));
            while anna.try_receive().is_some() {}
            state(rig, ALPHA) == expected
        });
    }
    assert_eq!(rig.command(phase(Phase::Resume, Some(ALPHA))), done(1));
}

#[test]
fn phases_and_schedule_steps_do_not_allocate() {
    let mut settings = with_spare_instrument();
    let now = tickpath_agent::TscClock::system().now();
    settings.day.schedule =
        Some(schedule(now, &[(0, Phase::Start), (0, Phase::PreOpen), (1_000, Phase::Open)]));
    let mut rig = Rig::with(&settings);
    let mut admin = rig.admin.take().unwrap();
    assert!(tickpath_agent::counts_allocations());
    let mut allocations = rig.allocations_of(20);
    rig.advance(Nanos::from_secs(1_500));
    allocations += rig.allocations_of(20);
    for command in [
        AdminCommand::AddInstrument(gamma()),
        phase(Phase::Auction, None),
        phase(Phase::Open, None),
        AdminCommand::SetPriceBand { instrument: None, width: BandWidth::Price(Price(100)), reference: None },
        AdminCommand::BreakTrade { match_id: MatchId(1), reason: BrokenReason::Consent },
        phase(Phase::EndOfDay, None),
    ] {
        admin.submit(command).unwrap();
        rig.advance(SECOND);
        allocations += rig.allocations_of(20);
        assert!(admin.poll().is_some(), "{command:?}");
    }
    assert_eq!(allocations, 0);
}

//! Parses framing and fields of messages at the offsets of the specifications, without the product's codecs.
//!
//! The `streams` checker compares the sent bytes with expected bytes that the product's codecs encoded. It
//! misses an error in a codec, since both sides have it. This checker finds such errors.
//!
//! Sources: Nasdaq OUCH 5.0, TotalView-ITCH 5.0, SoupBinTCP 3.00, MoldUDP64 1.00. Numbers are big-endian.

use tickpath_types::{
    ClientOrderId, EnterOrder, InstrumentId, MarketEvent, MarketEventKind, MassCancel, OrderEvent,
    OrderEventKind, OrderId, OrderRequest, Price, Side, Symbol, UserRefNum,
};

use super::Case;

/// A field: its offset, its width in bytes, and its numeric value.
type Field = (usize, usize, u64);

pub(super) fn check(case: &Case<'_>) {
    let symbol = |id| case.truth.table.symbol(id);
    for message in case.truth.streams.iter().flatten() {
        let Some(event) = message.event.filter(|_| !message.bytes.is_empty()) else { continue };
        let instrument = match event.kind {
            OrderEventKind::Accepted { order, .. } | OrderEventKind::Replaced { order, .. } => {
                Some(order.instrument)
            }
            OrderEventKind::MassCanceled(request) => Some(request.instrument),
            _ => None,
        };
        let fields = order_event(&event, instrument.and_then(symbol));
        case.expect(holds(&message.bytes, &fields), || {
            format!("command {}: {:?} is sent as {:02x?}", message.command, event.kind, message.bytes)
        });
    }
    for public in case.truth.market.iter().filter(|public| !public.bytes.is_empty()) {
        let fields = market_event(&public.event, symbol(public.event.instrument));
        case.expect(holds(&public.bytes, &fields), || {
            format!(
                "message {}: {:?} is published as {:02x?}",
                public.event.sequence, public.event.kind, public.bytes
            )
        });
    }
}

fn holds(bytes: &[u8], fields: &[Field]) -> bool {
    fields.iter().all(|(offset, width, value)| number(bytes, *offset, *width) == Some(*value))
}

fn with(mut fields: Vec<Field>, more: &[Field]) -> Vec<Field> {
    fields.extend_from_slice(more);
    fields
}

fn number(bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
    let field = bytes.get(offset..offset + width)?;
    Some(field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn letter(side: Side) -> u64 {
    u64::from(if side == Side::Buy { b'B' } else { b'S' })
}

/// Encodes OUCH's price of eight bytes, which has a special value for market orders.
fn long_price(price: Price) -> u64 {
    const MARKET: u64 = 0x7fff_ffff;
    if price == Price::MARKET { MARKET } else { price.0.cast_unsigned() }
}

/// Returns a symbol's eight letters as a number; 0 without a symbol, since no symbol encodes to 0.
fn text(symbol: Option<Symbol>) -> u64 {
    symbol.map_or(0, |symbol| u64::from_be_bytes(symbol.0))
}

/// Returns the fields that follow the UserRefNum (at offset `at`) in a mass cancel or its answer. An empty
/// option list is two zero bytes.
fn mass_cancel(at: usize, request: &MassCancel, symbol: Option<Symbol>) -> Vec<Field> {
    const SIDE_TAG: u64 = 27;
    let is_of_all = request.instrument == InstrumentId(0);
    let symbol = if is_of_all { u64::from_be_bytes([b' '; 8]) } else { text(symbol) };
    let mut fields = vec![firm_at(at + 4, request.firm), (at + 8, 8, symbol)];
    match request.side {
        None => fields.push((at + 16, 2, 0)),
        Some(side) => fields.extend([
            (at + 16, 2, 3),
            (at + 18, 1, 2),
            (at + 19, 1, SIDE_TAG),
            (at + 20, 1, letter(side)),
        ]),
    }
    fields
}

fn firm_at(at: usize, firm: [u8; 4]) -> Field {
    (at, 4, u64::from(u32::from_be_bytes(firm)))
}

/// Returns the fields that the event's OUCH message must have.
fn order_event(event: &OrderEvent, symbol: Option<Symbol>) -> Vec<Field> {
    let order_fields = |at: usize, order: &EnterOrder, order_id: OrderId| {
        vec![
            (at, 1, letter(order.side)),
            (at + 1, 4, order.qty.0),
            (at + 5, 8, text(symbol)),
            (at + 13, 8, long_price(order.price)),
            (at + 23, 8, order_id.0),
        ]
    };
    let (kind, user_ref, fields) = match event.kind {
        OrderEventKind::Accepted { ref order, order_id, .. } => {
            (b'A', order.user_ref, order_fields(13, order, order_id))
        }
        OrderEventKind::Replaced { ref order, orig_user_ref, order_id, .. } => {
            let number = (13, 4, u64::from(order.user_ref.0));
            (b'U', orig_user_ref, with(order_fields(17, order, order_id), &[number]))
        }
        OrderEventKind::Canceled { user_ref, decrement, .. } => (b'C', user_ref, vec![(13, 4, decrement.0)]),
        OrderEventKind::Modified { user_ref, qty, .. } => (b'M', user_ref, vec![(14, 4, qty.0)]),
        OrderEventKind::Executed { user_ref, qty, price, match_id, .. } => {
            (b'E', user_ref, vec![(13, 4, qty.0), (17, 8, long_price(price)), (26, 8, match_id.0)])
        }
        OrderEventKind::SelfTradePrevented { user_ref, decrement, prevented, price, .. } => {
            (b'D', user_ref, vec![(13, 4, decrement.0), (18, 4, prevented.0), (22, 8, long_price(price))])
        }
        OrderEventKind::Restated { user_ref, .. } => (b'R', user_ref, vec![]),
        OrderEventKind::Triggered { user_ref, order_id, price } => {
            (b'T', user_ref, vec![(13, 8, long_price(price)), (22, 8, order_id.0)])
        }
        OrderEventKind::Broken { user_ref, match_id, .. } => (b'B', user_ref, vec![(13, 8, match_id.0)]),
        OrderEventKind::Rejected { user_ref, .. } => (b'J', user_ref, vec![]),
        OrderEventKind::MassCanceled(ref all) => (b'X', all.user_ref, mass_cancel(9, all, symbol)),
        OrderEventKind::OrderEntrySet(ref request) => {
            let kind = b"GK"[usize::from(request.is_enabled)];
            (kind, request.user_ref, vec![firm_at(13, request.firm)])
        }
    };
    with(fields, &[(0, 1, u64::from(kind)), (1, 8, event.ts.0), (9, 4, u64::from(user_ref.0))])
}

/// Returns the fields that the event's ITCH message must have.
fn market_event(event: &MarketEvent, symbol: Option<Symbol>) -> Vec<Field> {
    let price_at = |at: usize, price: Price| (at, 4, price.0.cast_unsigned());
    let symbol_at = |at: usize| (at, 8, text(symbol));
    let (kind, fields) = match event.kind {
        MarketEventKind::Add { order_id, side, price, qty } => (
            b'A',
            vec![
                (11, 8, order_id.0),
                (19, 1, letter(side)),
                (20, 4, qty.0),
                symbol_at(24),
                price_at(32, price),
            ],
        ),
        MarketEventKind::Executed { order_id, qty, match_id } => {
            (b'E', vec![(11, 8, order_id.0), (19, 4, qty.0), (23, 8, match_id.0)])
        }
        MarketEventKind::ExecutedAt { order_id, qty, price, match_id } => {
            (b'C', vec![(11, 8, order_id.0), (19, 4, qty.0), (23, 8, match_id.0), price_at(32, price)])
        }
        MarketEventKind::Reduced { order_id, qty } => (b'X', vec![(11, 8, order_id.0), (19, 4, qty.0)]),
        MarketEventKind::Deleted { order_id } => (b'D', vec![(11, 8, order_id.0)]),
        MarketEventKind::Replaced { old_order_id, order_id, price, qty } => {
            (b'U', vec![(11, 8, old_order_id.0), (19, 8, order_id.0), (27, 4, qty.0), price_at(31, price)])
        }
        MarketEventKind::Traded { qty, price, match_id, .. } => {
            (b'P', vec![(20, 4, qty.0), symbol_at(24), price_at(32, price), (36, 8, match_id.0)])
        }
        MarketEventKind::Cross { qty, price, match_id, .. } => {
            (b'Q', vec![(11, 8, qty.0), symbol_at(19), price_at(27, price), (31, 8, match_id.0)])
        }
        MarketEventKind::TradeBroken { match_id } => (b'B', vec![(11, 8, match_id.0)]),
        MarketEventKind::System(code) => (b'S', vec![(11, 1, u64::from(code as u8))]),
        MarketEventKind::TradingAction(state) => (b'H', vec![symbol_at(11), (19, 1, u64::from(state as u8))]),
        MarketEventKind::Directory => (b'R', vec![symbol_at(11)]),
        MarketEventKind::Imbalance(_) => (b'I', vec![]),
        MarketEventKind::PriceBand { .. } => (b'J', vec![symbol_at(11)]),
    };
    with(fields, &[(0, 1, u64::from(kind)), (1, 2, u64::from(event.instrument.0)), (5, 6, event.ts.0)])
}

/// Returns true if the bytes of an OUCH request have the fields of the logged request.
pub(super) fn is_request(
    bytes: &[u8],
    logged: &OrderRequest,
    symbol: impl FnOnce(InstrumentId) -> Option<Symbol>,
) -> bool {
    let (kind, user_ref, fields) = match logged {
        OrderRequest::Enter(order) => {
            let symbol = text(symbol(order.instrument));
            let order_values =
                [(5, 1, letter(order.side)), (6, 4, order.qty.0), (18, 8, long_price(order.price))];
            (b'O', order.user_ref, with(vec![(10, 8, symbol)], &order_values))
        }
        OrderRequest::Replace(order) => {
            let number = u64::from(order.user_ref.0);
            let fields = vec![(5, 4, number), (9, 4, order.qty.0), (13, 8, long_price(order.price))];
            (b'U', order.orig_user_ref, fields)
        }
        OrderRequest::Cancel(cancel) => (b'X', cancel.user_ref, vec![(5, 4, cancel.qty.0)]),
        OrderRequest::Modify(order) => {
            (b'M', order.user_ref, vec![(5, 1, u64::from(order.side_marking)), (6, 4, order.qty.0)])
        }
        OrderRequest::MassCancel(request) => {
            (b'C', request.user_ref, mass_cancel(1, request, symbol(request.instrument)))
        }
        OrderRequest::SetOrderEntry(request) => {
            let kind = b"DE"[usize::from(request.is_enabled)];
            (kind, request.user_ref, vec![firm_at(5, request.firm)])
        }
    };
    holds(bytes, &with(fields, &[(0, 1, u64::from(kind)), (1, 4, u64::from(user_ref.0))]))
}

/// Returns true if an OUCH request has the UserRefNum and client order id of a rejection. Only new orders and
/// replacements have a client order id.
pub(super) fn is_refused(bytes: &[u8], user_ref: UserRefNum, client_order_id: ClientOrderId) -> bool {
    let (number_at, text_at) = match bytes.first() {
        Some(b'O') => (1, Some(31)),
        Some(b'U') => (5, Some(24)),
        _ => (1, None),
    };
    let is_text = match text_at {
        Some(at) => bytes.get(at..at + client_order_id.0.len()) == Some(&client_order_id.0[..]),
        None => client_order_id == ClientOrderId::default(),
    };
    is_text && holds(bytes, &[(number_at, 4, u64::from(user_ref.0))])
}

/// Returns the type, payload and length of the first SoupBinTCP packet; `None` until it is complete.
pub(super) fn soup_packet(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let len = number(bytes, 0, 2)? as usize;
    let (kind, payload) = bytes.get(2..2 + len)?.split_first()?;
    Some((*kind, payload, 2 + len))
}

pub(super) struct Mold<'a> {
    pub(super) sequence: u64,
    pub(super) messages: Vec<&'a [u8]>,
}

impl<'a> Mold<'a> {
    /// Parses a packet; `None` if it is invalid. A heartbeat, and the end of a session, have no messages.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Mold<'a>> {
        const HEADER_LEN: usize = 20;
        const END_OF_SESSION: u64 = 0xffff;
        let (sequence, count) = (number(bytes, 10, 8)?, number(bytes, 18, 2)?);
        let mut messages = Vec::new();
        let mut at = HEADER_LEN;
        for _ in 0..if count == END_OF_SESSION { 0 } else { count } {
            let len = number(bytes, at, 2)? as usize;
            messages.push(bytes.get(at + 2..at + 2 + len)?);
            at += 2 + len;
        }
        (at == bytes.len()).then_some(Mold { sequence, messages })
    }

    /// Returns the sequence number after that of the packet's last message.
    pub(super) fn next_sequence(&self) -> u64 {
        self.sequence + self.messages.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{Liquidity, MatchId, ModifyOrder, Nanos, Qty, Sequence, SessionId, SetOrderEntry};

    use super::*;

    #[test]
    fn changed_bytes_of_an_execution_are_found() {
        let kind = OrderEventKind::Executed {
            user_ref: UserRefNum(7),
            qty: Qty(300),
            price: Price(1_234_500),
            liquidity: Liquidity::Added,
            match_id: MatchId(9),
        };
        let (command, session, ts) = (Sequence(1), SessionId(1), Nanos(5));
        let fields = order_event(&OrderEvent { command, session, ts, is_reply: false, kind }, None);
        // Fields of the specification: type, timestamp, UserRefNum, quantity, price, liquidity, match
        // number, no options.
        let mut bytes = b"E".to_vec();
        bytes.extend(5_u64.to_be_bytes());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend(300_u32.to_be_bytes());
        bytes.extend(1_234_500_u64.to_be_bytes());
        bytes.push(b'A');
        bytes.extend(9_u64.to_be_bytes());
        bytes.extend(0_u16.to_be_bytes());
        assert!(holds(&bytes, &fields));
        for place in (0..25).chain(26..34) {
            let mut other = bytes.clone();
            other[place] ^= 1;
            assert!(!holds(&other, &fields), "byte {place}");
        }
        assert!(!holds(&bytes[..30], &fields), "cut short");
    }

    #[test]
    fn changed_bytes_of_a_level_are_found() {
        let (order_id, price, qty) = (OrderId(3), Price(10_000), Qty(1));
        let kind = MarketEventKind::Add { order_id, side: Side::Sell, price, qty };
        let (sequence, command, ts, instrument) = (Sequence(1), Sequence(1), Nanos(2), InstrumentId(4));
        let event = MarketEvent { sequence, command, ts, instrument, kind };
        let symbol = Symbol::new("ONLY").ok();
        let mut bytes = b"A\x00\x04\x00\x00\x00\x00\x00\x00\x00\x02".to_vec();
        bytes.extend(3_u64.to_be_bytes());
        bytes.extend(b"S\x00\x00\x00\x01ONLY    ");
        bytes.extend(10_000_u32.to_be_bytes());
        assert!(holds(&bytes, &market_event(&event, symbol)));
        *bytes.last_mut().expect("it has bytes") ^= 1;
        assert!(!holds(&bytes, &market_event(&event, symbol)));
    }

    /// Checks that these bytes match the request, and that a change of any byte breaks the match.
    fn check_request(request: OrderRequest, bytes: &[u8]) {
        let is_same = |bytes: &[u8]| is_request(bytes, &request, |_| Symbol::new("ONLY").ok());
        assert!(is_same(bytes), "{request:?}");
        for place in 0..bytes.len() {
            let mut other = bytes.to_vec();
            other[place] ^= 1;
            assert!(!is_same(&other), "{request:?}, byte {place}");
        }
        assert!(!is_same(&bytes[..bytes.len() - 1]), "{request:?} cut short");
    }

    #[test]
    fn changed_bytes_of_a_request_are_found() {
        let user_ref = UserRefNum(7);
        let modify = ModifyOrder { user_ref, side_marking: b'T', qty: Qty(300) };
        check_request(OrderRequest::Modify(modify), b"M\0\0\0\x07T\0\0\x01\x2c");
        let all = MassCancel { user_ref, instrument: InstrumentId(0), side: None, firm: *b"FIRM" };
        check_request(OrderRequest::MassCancel(all), b"C\0\0\0\x07FIRM        \0\0");
        let some = MassCancel { instrument: InstrumentId(1), side: Some(Side::Sell), ..all };
        check_request(OrderRequest::MassCancel(some), b"C\0\0\0\x07FIRMONLY    \0\x03\x02\x1bS");
        for (is_enabled, bytes) in [(false, b"D\0\0\0\x07FIRM"), (true, b"E\0\0\0\x07FIRM")] {
            let request = SetOrderEntry { user_ref, is_enabled, firm: *b"FIRM" };
            check_request(OrderRequest::SetOrderEntry(request), bytes);
        }
    }

    #[test]
    fn refusals_match_number_and_text_of_the_request() {
        let (number, text) = (UserRefNum(7), ClientOrderId(*b"text of client"));
        let enter = [&b"O\0\0\0\x07"[..], &[0; 26], &text.0].concat();
        let replace = [&b"U\0\0\0\x01\0\0\0\x07"[..], &[0; 15], &text.0].concat();
        for bytes in [&enter, &replace] {
            assert!(is_refused(bytes, number, text));
            assert!(!is_refused(bytes, UserRefNum(8), text));
            assert!(!is_refused(bytes, number, ClientOrderId::default()));
        }
        assert!(is_refused(b"C\0\0\0\x07", number, ClientOrderId::default()));
        assert!(!is_refused(b"C\0\0\0\x07", number, text));
    }

    #[test]
    fn only_complete_frames_are_parsed() {
        assert_eq!(soup_packet(b"\x00\x03Uab\x00"), Some((b'U', &b"ab"[..], 5)));
        assert_eq!(soup_packet(b"\x00\x03Ua"), None);
        assert_eq!(soup_packet(b"\x00\x00U"), None, "a packet has a type");
        let packet =
            |count: &[u8], rest: &[u8]| [b"0123456789", &8_u64.to_be_bytes()[..], count, rest].concat();
        let two = packet(b"\x00\x02", b"\x00\x01a\x00\x02bc");
        let mold = Mold::parse(&two).expect("a packet");
        assert_eq!((mold.sequence, mold.next_sequence()), (8, 10));
        assert_eq!(mold.messages, [&b"a"[..], b"bc"]);
        assert!(Mold::parse(&two[..two.len() - 1]).is_none(), "cut short");
        assert!(Mold::parse(&packet(b"\x00\x00", b"x")).is_none(), "more than it says");
        let end = packet(b"\xff\xff", b"");
        assert_eq!(Mold::parse(&end).map(|mold| mold.messages.len()), Some(0));
    }
}

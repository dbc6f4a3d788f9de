//! NYSE XDP: the request server over TCP, retransmissions and refreshes by multicast.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_book::BooksById;
use tickpath_feed::xdp::{LiveBooks, Missing, Packets};
use tickpath_feed::{BooksAlone, Channel, Framing, Line, MessageBooks, SnapshotHealer, SnapshotScope};
use tickpath_net::{BufferSizes, Fill, Kernel, MulticastReceiver, NetError, SendOutcome, TcpConnection};
use tickpath_nyse::{
    DeliveryFlag, HEADER_LEN, Header, HeartbeatResponse, Message, PACKET_LEN_MAX, Packet, PacketBuilder,
    RefreshHeader, RefreshRequest, RequestResponse, RequestStatus, RetransmissionRequest, SendTime, SourceId,
    SymbolIndexMapping,
};
use tickpath_types::{InstrumentId, Nanos, Sequence};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::config::ChannelSection;
use super::lines::{DATAGRAM_MAX, Gate};
use super::outputs::Sink;
use super::recovery::{Recovery, RecoveryCounters};
use crate::senders::Senders;

/// Packets taken off one group, or answers of the server, in one duty cycle.
const PACKETS_PER_CYCLE: usize = 16;
/// How long a connection may take.
const CONNECT_MAX: Nanos = Nanos::from_secs(5);
/// Until the server is tried again.
const RETRY_WAIT: Nanos = Nanos::from_secs(1);
/// The server says every minute that it is there; after so long without a word it is not.
const SILENCE_MAX: Nanos = Nanos::from_secs(150);
/// A refresh of which nothing came for so long is asked for again, each time after twice as long.
const REFRESH_SILENCE: Nanos = Nanos::from_secs(2);
const REFRESH_DOUBLINGS_MAX: u32 = 6;
/// So many books are refreshed one by one; of more, all are.
const SINGLE_REFRESHES_MAX: u32 = 4;
const BUFFERS: BufferSizes = BufferSizes { receive: 64 << 10, pending: 16 << 10 };

/// Lets packets through and tells the books when they were sent.
pub(super) struct SendTimes;

impl<B: BooksById + Send> Gate<LiveBooks<B>> for SendTimes {
    #[inline]
    fn admits(&mut self, datagram: &[u8], books: &mut LiveBooks<B>) -> bool {
        if let Ok((header, _)) = Header::ref_from_prefix(datagram)
            && header.delivery_flag == DeliveryFlag::ORIGINAL
        {
            books.begin_packet(SendTime { secs: header.send_time.get(), nanos: header.send_time_ns.get() });
        }
        true
    }
}

enum State {
    Resting { until: Nanos },
    Connecting { deadline: Nanos },
    Up { heard: Nanos },
}

/// The refresh of one symbol that is being read.
#[derive(Clone, Copy)]
struct Loading {
    instrument: InstrumentId,
    packet: u16,
    packets: u16,
    /// Number of the first live message that it does not cover.
    end: u64,
    last_symbol_seq: u32,
}

/// What has been asked for, and when that is given up.
#[derive(Clone, Copy)]
struct Asked {
    deadline: Nanos,
    /// Number of the request.
    number: u32,
    /// All symbols.
    all: bool,
}

/// The servers of an XDP channel.
pub(super) struct XdpRecovery {
    server: Option<SocketAddrV4>,
    retransmissions: Option<MulticastReceiver>,
    refresh_group: Option<SocketAddrV4>,
    /// Joined while books wait.
    refreshes: Option<MulticastReceiver>,
    interface: Ipv4Addr,
    /// Addresses that may send to both groups.
    senders: Senders,
    source_id: SourceId,
    product_id: u8,
    channel_id: u8,
    state: State,
    connection: Option<TcpConnection<Kernel>>,
    buffer: Box<[u8]>,
    /// Number of our next packet.
    number: u32,
    /// A request that waits for the connection.
    waiting: Option<Missing>,
    /// Number of the latest request for messages.
    requested: Option<u32>,
    asked: Option<Asked>,
    refresh_failures: u32,
    loading: Option<Loading>,
    /// Where the first symbol of a refresh of all ended, while none of its packets was missed.
    all: Option<u64>,
    counters: RecoveryCounters,
}

impl XdpRecovery {
    pub(super) fn open(section: &ChannelSection) -> Result<XdpRecovery, NetError> {
        let join = |group| MulticastReceiver::join(group, section.interface);
        Ok(XdpRecovery {
            server: section.request_server,
            retransmissions: section.retransmission_group.map(join).transpose()?,
            refresh_group: section.refresh_group,
            refreshes: None,
            interface: section.interface,
            senders: section.senders(),
            source_id: SourceId::new(&section.source_id).expect("checked with the configuration"),
            product_id: section.product,
            channel_id: section.channel_id,
            state: State::Resting { until: Nanos::ZERO },
            connection: None,
            buffer: vec![0; DATAGRAM_MAX].into(),
            number: 1,
            waiting: None,
            requested: None,
            asked: None,
            refresh_failures: 0,
            loading: None,
            all: None,
            counters: RecoveryCounters::default(),
        })
    }

    /// Sends one message; gives the number of its packet back, if the connection took it.
    fn send<M: IntoBytes + Immutable>(&mut self, now: Nanos, message: &M) -> Option<u32> {
        let connection = self.connection.as_mut().filter(|_| matches!(self.state, State::Up { .. }))?;
        let number = self.number;
        let mut packet = PacketBuilder::new([0; PACKET_LEN_MAX], number);
        packet.push(message).ok()?;
        let bytes = packet.finish(DeliveryFlag::ORIGINAL, SendTime::of_nanos(now.0));
        match connection.send(bytes) {
            Ok(SendOutcome::Sent | SendOutcome::Pending) => {
                self.number = self.number.wrapping_add(1);
                Some(number)
            }
            _ => {
                self.fail(now);
                None
            }
        }
    }

    fn fail(&mut self, now: Nanos) {
        self.counters.failures += 1;
        if let Some(connection) = &mut self.connection {
            connection.close();
        }
        self.state = State::Resting { until: now + RETRY_WAIT };
    }

    fn connect(&mut self, now: Nanos, server: SocketAddrV4) {
        self.counters.connections += 1;
        let begun = match &mut self.connection {
            Some(connection) => connection.start_connecting(server),
            none => TcpConnection::begin_on(Kernel, server, BUFFERS).map(|begun| *none = Some(begun)),
        };
        match begun {
            Ok(()) => self.state = State::Connecting { deadline: now + CONNECT_MAX },
            Err(_) => self.fail(now),
        }
    }

    fn ask_again(&mut self, now: Nanos) {
        if let Some(missing) = self.waiting.take() {
            self.ask(now, missing);
        }
    }

    fn ask(&mut self, now: Nanos, missing: Missing) {
        let request = RetransmissionRequest::new(
            missing.begin_seq_num,
            missing.end_seq_num,
            self.source_id,
            self.product_id,
            self.channel_id,
        );
        match self.send(now, &request) {
            Some(number) => {
                self.counters.requests += 1;
                self.requested = Some(number);
            }
            None => self.waiting = Some(missing),
        }
    }

    fn ask_refresh(&mut self, now: Nanos, symbol_index: Option<u32>) {
        let index = symbol_index.unwrap_or(0);
        let request = RefreshRequest::new(index, self.source_id, self.product_id, self.channel_id);
        if let Some(number) = self.send(now, &request) {
            self.counters.snapshot_requests += 1;
            let deadline = now + self.refresh_silence();
            self.asked = Some(Asked { deadline, number, all: symbol_index.is_none() });
        }
    }

    fn refresh_silence(&self) -> Nanos {
        Nanos(REFRESH_SILENCE.0 << self.refresh_failures.min(REFRESH_DOUBLINGS_MAX))
    }

    fn poll_server<B: BooksById>(
        &mut self,
        now: Nanos,
        channel: &mut Channel<LiveBooks<B>, Packets>,
        out: &mut Sink<'_>,
    ) -> usize {
        let Some(server) = self.server else { return 0 };
        match self.state {
            State::Resting { until } if now >= until => {
                self.connect(now, server);
                1
            }
            State::Resting { .. } => 0,
            State::Connecting { deadline } => {
                let Some(connection) = &mut self.connection else { return 0 };
                match connection.poll_connected() {
                    Ok(true) => {
                        self.state = State::Up { heard: now };
                        self.ask_again(now);
                    }
                    Ok(false) if now < deadline => {}
                    _ => self.fail(now),
                }
                0
            }
            State::Up { heard } => self.read(now, heard, channel, out),
        }
    }

    fn read<B: BooksById>(
        &mut self,
        now: Nanos,
        heard: Nanos,
        channel: &mut Channel<LiveBooks<B>, Packets>,
        out: &mut Sink<'_>,
    ) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        let is_closed = matches!(connection.fill(), Ok(Fill::Closed) | Err(_));
        let mut count = 0;
        while count < PACKETS_PER_CYCLE {
            let Some(answer) = self.next_answer() else {
                self.fail(now);
                return count;
            };
            match answer {
                Answer::NotYet => break,
                Answer::Heartbeat => {
                    let response = HeartbeatResponse::new(self.source_id);
                    self.send(now, &response);
                }
                Answer::Response(number, status) => self.take_response(now, number, status, channel, out),
                Answer::Other => {}
            }
            count += 1;
        }
        if let State::Up { heard: latest } = &mut self.state {
            *latest = if count > 0 { now } else { heard };
            if is_closed || now.since(*latest) > SILENCE_MAX {
                self.fail(now);
            }
        }
        count
    }

    /// The next packet of the server; `None` when its bytes are none.
    fn next_answer(&mut self) -> Option<Answer> {
        let Some(connection) = &mut self.connection else { return Some(Answer::NotYet) };
        let bytes = connection.received();
        let Some(size) = bytes.first_chunk().map(|size| usize::from(u16::from_le_bytes(*size))) else {
            return Some(Answer::NotYet);
        };
        if size < HEADER_LEN {
            return None;
        }
        let Some(bytes) = bytes.get(..size) else { return Some(Answer::NotYet) };
        let packet = Packet::parse(bytes).ok()?;
        let answer = match packet.messages().next() {
            None => Answer::Heartbeat,
            Some((_, message)) => match Message::parse(message) {
                Ok(Message::RequestResponse(RequestResponse { request_seq_num, status, .. })) => {
                    Answer::Response(request_seq_num.get(), status)
                }
                _ => Answer::Other,
            },
        };
        connection.consume(size);
        Some(answer)
    }

    fn take_response<B: BooksById>(
        &mut self,
        now: Nanos,
        number: u32,
        status: RequestStatus,
        channel: &mut Channel<LiveBooks<B>, Packets>,
        out: &mut Sink<'_>,
    ) {
        self.counters.answers += 1;
        if status == RequestStatus::ACCEPTED {
            return;
        }
        self.counters.refusals += 1;
        if self.requested == Some(number) {
            self.requested = None;
            channel.handle_refused(now, out);
        }
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.number == number) {
            self.refresh_failures += 1;
            asked.deadline =
                now + Nanos(REFRESH_SILENCE.0 << self.refresh_failures.min(REFRESH_DOUBLINGS_MAX));
        }
    }

    fn poll_retransmissions<B: BooksById>(
        &mut self,
        now: Nanos,
        channel: &mut Channel<LiveBooks<B>, Packets>,
        out: &mut Sink<'_>,
    ) -> usize {
        let Some(receiver) = &mut self.retransmissions else { return 0 };
        let mut count = 0;
        while count < PACKETS_PER_CYCLE
            && let Ok(Some(received)) = receiver.recv(&mut self.buffer)
        {
            count += 1;
            if !self.senders.allows(*received.from.ip()) {
                self.counters.strangers += 1;
                continue;
            }
            self.counters.answers += 1;
            // Others ask as well, and their answers are of use. Heartbeats there are of another numbering's state.
            let datagram = &self.buffer[..received.len];
            let near = channel.arbiter().next_sequence().0;
            let is_data = Packets::header(datagram, near).is_some_and(|header| header.count > 0);
            if is_data && !received.is_truncated {
                channel.handle_packet(now, Line::Recovery, datagram, out);
            }
        }
        count
    }

    fn poll_refreshes<B: BooksById>(
        &mut self,
        now: Nanos,
        channel: &mut Channel<LiveBooks<B>, Packets>,
        out: &mut Sink<'_>,
    ) -> usize {
        let Some(group) = self.refresh_group else { return 0 };
        if !channel.needs_snapshot() {
            if self.refreshes.take().is_some() {
                self.forget_refresh();
            }
            return 0;
        }
        if self.refreshes.is_none() {
            self.refreshes = MulticastReceiver::join(group, self.interface).ok();
        }
        self.ask_if_due(now, channel);
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut count = 0;
        while count < PACKETS_PER_CYCLE
            && let Some(receiver) = &mut self.refreshes
            && let Ok(Some(received)) = receiver.recv(&mut buffer)
        {
            count += 1;
            if !self.senders.allows(*received.from.ip()) {
                self.counters.strangers += 1;
            } else if let Ok(packet) = Packet::parse(&buffer[..received.len]) {
                self.take_refresh(now, &packet, channel, out);
            }
        }
        self.buffer = buffer;
        count
    }

    fn forget_refresh(&mut self) {
        (self.asked, self.loading, self.all, self.refresh_failures) = (None, None, None, 0);
    }

    /// Asks for all symbols, or for the one that waits.
    fn ask_if_due<B: BooksById>(&mut self, now: Nanos, channel: &mut Channel<LiveBooks<B>, Packets>) {
        match self.asked {
            Some(asked) if now < asked.deadline => return,
            Some(_) => self.refresh_failures += 1,
            None => {}
        }
        self.asked = None;
        let Some(healer) = channel.snapshots() else { return };
        let single = healer.first_waiting().filter(|_| healer.waiting() <= SINGLE_REFRESHES_MAX);
        let index = single.and_then(|id| channel.books().builder().symbol_index(id));
        self.ask_refresh(now, index);
    }

    fn take_refresh<B: BooksById>(
        &mut self,
        now: Nanos,
        packet: &Packet<'_>,
        channel: &mut Channel<LiveBooks<B>, Packets>,
        out: &mut Sink<'_>,
    ) {
        let flag = packet.delivery_flag();
        if !flag.is_refresh() {
            return;
        }
        let silence = self.refresh_silence();
        if let Some(asked) = &mut self.asked {
            asked.deadline = now + silence;
        }
        let near = channel.arbiter().next_sequence().0;
        let Some((healer, books)) = channel.healer() else { return };
        if flag == DeliveryFlag::REFRESH_START {
            self.all = None;
        }
        let mut header = None;
        for (_, message) in packet.messages() {
            match Message::parse(message) {
                Ok(Message::RefreshHeader(refresh)) => {
                    header = Some((refresh, message.len() >= RefreshHeader::LEN));
                }
                Ok(Message::SymbolIndexMapping(_)) => {
                    // Before anything else about the symbol can be understood.
                    books.handle_message(Sequence(near), message, &mut BooksAlone);
                    if let Some((refresh, is_full)) = header {
                        self.begin(refresh, is_full, near, message, healer, books);
                    }
                }
                _ => {
                    if let Some((refresh, is_full)) = header {
                        self.begin(refresh, is_full, near, message, healer, books);
                    }
                    if let Some(loading) = self.loading {
                        healer.load(loading.instrument, message, books);
                    }
                }
            }
        }
        self.end_packet(now, flag, header.map(|(refresh, _)| refresh), healer, books, out);
    }

    /// The first message of a packet that names its symbol.
    fn begin<B: BooksById, R: tickpath_feed::MessageRoom>(
        &mut self,
        refresh: RefreshHeader,
        is_full: bool,
        near: u64,
        message: &[u8],
        healer: &mut SnapshotHealer<R>,
        books: &mut LiveBooks<B>,
    ) {
        let (packet, packets) = (refresh.current_refresh_pkt.get(), refresh.total_refresh_pkts.get());
        let instrument = books.named_by(message);
        match self.loading {
            Some(loading) if loading.packet == packet && loading.instrument == instrument => {}
            Some(loading) if loading.packet + 1 == packet && loading.instrument == instrument => {
                self.loading = Some(Loading { packet, ..loading });
            }
            _ if packet == 1 && is_full && instrument.0 != 0 => {
                let last = refresh.last_seq_num.get();
                let ahead = last.wrapping_sub(near as u32).cast_signed();
                let last = near.checked_add_signed(i64::from(ahead)).unwrap_or(u64::from(last));
                healer.begin(SnapshotScope::Instrument);
                healer.begin_instrument(instrument, books);
                let (end, last_symbol_seq) = (last + 1, refresh.last_symbol_seq_num.get());
                self.loading = Some(Loading { instrument, packet, packets, end, last_symbol_seq });
            }
            // A packet was missed: the symbol waits for the next refresh.
            _ => {
                healer.abandon();
                (self.loading, self.all) = (None, None);
            }
        }
    }

    fn end_packet<B: BooksById, R: tickpath_feed::MessageRoom>(
        &mut self,
        now: Nanos,
        flag: DeliveryFlag,
        header: Option<RefreshHeader>,
        healer: &mut SnapshotHealer<R>,
        books: &mut LiveBooks<B>,
        out: &mut Sink<'_>,
    ) {
        let Some(loading) =
            self.loading.filter(|loading| header.is_some() && loading.packet == loading.packets)
        else {
            return;
        };
        self.loading = None;
        if healer.is_waiting(loading.instrument) {
            books.set_symbol_seq(loading.instrument, loading.last_symbol_seq);
        }
        healer.end(Some(Sequence(loading.end)), books, out);
        if flag == DeliveryFlag::REFRESH_START {
            self.all = Some(loading.end);
        }
        let is_all = self.asked.is_none_or(|asked| asked.all);
        if flag == DeliveryFlag::REFRESH_ONE || flag == DeliveryFlag::REFRESH_END || !is_all {
            self.counters.snapshots += 1;
            self.refresh_failures = 0;
            if let Some(end) = self.all.take().filter(|_| is_all && flag == DeliveryFlag::REFRESH_END) {
                healer.end_turn(Sequence(end), books, out);
            }
            // What is left is asked for at once, unless the refresh was too old for it.
            if let Some(asked) = &mut self.asked {
                asked.deadline = now + Nanos::from_millis(100);
            }
        }
    }
}

enum Answer {
    NotYet,
    Heartbeat,
    /// To the request of this number.
    Response(u32, RequestStatus),
    Other,
}

impl<B: BooksById + Send> Recovery<LiveBooks<B>, Packets> for XdpRecovery {
    fn request(&mut self, now: Nanos, request: Missing) {
        self.waiting = None;
        self.ask(now, request);
    }

    fn poll(
        &mut self,
        now: Nanos,
        channel: &mut Channel<LiveBooks<B>, Packets>,
        out: &mut Sink<'_>,
    ) -> usize {
        self.poll_server(now, channel, out)
            + self.poll_retransmissions(now, channel, out)
            + self.poll_refreshes(now, channel, out)
    }

    fn counters(&self) -> RecoveryCounters {
        self.counters
    }
}

const _: () = assert!(SymbolIndexMapping::TYPE == 3);

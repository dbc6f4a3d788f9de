//! The rows that this crate measures: their units, limits, goals and references.

use crate::row::{Goal, Row};

/// What is known of a row before it is measured.
pub(crate) struct RowSpec {
    pub(crate) name: &'static str,
    unit: &'static str,
    /// The row whose value of the same round is the limit.
    pub(crate) limit: Option<&'static str>,
    goal: Option<Goal>,
    reference: &'static str,
    /// What exactly is measured; what was found beside the value follows it.
    pub(crate) note: &'static str,
}

/// In the order of the report.
pub(crate) const ROWS: &[RowSpec] = &[
    RowSpec {
        name: "host_jitter",
        unit: "% lost",
        limit: None,
        goal: None,
        reference: "",
        note: "time that a thread spinning on the clock lost in gaps above 1 us; it is in every tail below",
    },
    RowSpec {
        name: "tsc_read",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "one read of the time-stamp counter, in batches of 4096",
    },
    RowSpec {
        name: "stamp",
        unit: "ns",
        limit: Some("tsc_read"),
        goal: Some(Goal::RatioAtMost(1.6)),
        reference: "a C++ tick simulator 50 ns; Packt's trading ecosystem, a formatted log line, 232 cycles at best",
        note: "one hop stamp, its counter read included, in batches of 4096 between which the ring is drained",
    },
    RowSpec {
        name: "cacheline_rtt",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "a bare cache line to the other core and another one back, p50",
    },
    RowSpec {
        name: "spsc_rtt",
        unit: "ns",
        limit: Some("cacheline_rtt"),
        goal: Some(Goal::RatioAtMost(1.4)),
        reference: "rtrb 170 ns, Aeron IPC 140 ns",
        note: "a 56-byte message over an SPSC ring to the other core and back over another, p50",
    },
    RowSpec {
        name: "matching",
        unit: "M/s",
        limit: None,
        goal: Some(Goal::ValueAtLeast(25.0)),
        reference: "exchange-core book 11.9 M/s, lobster 6.1 M/s, Liquibook 3.5 M/s",
        note: "commands matched on one core: 10 in 100 cross, the others enter and cancel by halves, 8 books, \
               100 k resting orders, ids looked up, every event pushed to a ring; p50 of slices of 512 \
               commands, which wait in the cache as they do in a ring",
    },
    RowSpec {
        name: "matching_p99",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(200.0)),
        reference: "Liquibook 250 ns, lobster 730 ns (cancel)",
        note: "the same load timed in groups of 16 (a step of the counter is too coarse for one): p99 of a \
               group's time per command",
    },
    RowSpec {
        name: "empty_loop",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "an open loop at 1 M commands/s that takes each command of the matching row's load at its intended time and \
               does nothing with it: from the intended time to the end, p50",
    },
    RowSpec {
        name: "empty_loop_p99",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "the same, p99",
    },
    RowSpec {
        name: "empty_loop_p999",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "the same, p99.9",
    },
    RowSpec {
        name: "matching_open_loop",
        unit: "ns",
        limit: Some("empty_loop"),
        goal: Some(Goal::AboveLimitAtMost(200.0)),
        reference: "exchange-core p50 500 ns on idle metal",
        note: "the same loop matching each command, every event pushed to a ring that is emptied when time is left; \
               commands that are due together are taken together by both loops, up to the 32 that the venue's matcher \
               takes; in turns of 10 ms with the empty loop; p50",
    },
    RowSpec {
        name: "matching_open_loop_p99",
        unit: "ns",
        limit: Some("empty_loop_p99"),
        goal: Some(Goal::RatioAtMost(1.2)),
        reference: "exchange-core p99 4 us on idle metal",
        note: "the same, p99; where the host takes about 1% of the time, as host_jitter says, the quantile lies on the edge \
               of what the host took, and differs much from round to round",
    },
    RowSpec {
        name: "matching_open_loop_p999",
        unit: "ns",
        limit: Some("empty_loop_p999"),
        goal: Some(Goal::RatioAtMost(1.2)),
        reference: "exchange-core p99.9 22 us on idle metal",
        note: "the same, p99.9: what the host takes is in it, and in the empty loop's",
    },
    RowSpec {
        name: "itch_decode",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(6.0)),
        reference: "CppTrader 14 ns",
        note: "a message of the day itch-8000 out of its file: framed, decoded through the listener that the books \
               use, every field folded into a checksum",
    },
    RowSpec {
        name: "itch_books",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(25.0)),
        reference: "itch-book 60 ns",
        note: "a message of the day itch-8000 out of its file into full order-by-order books; nobody asks for updates, \
               and none are made",
    },
    RowSpec {
        name: "itch_books_500",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(15.0)),
        reference: "itch-order-book, levels only, 36 ns; CppTrader 41 to 168 ns",
        note: "the same of itch-500",
    },
    RowSpec {
        name: "book_record_bytes",
        unit: "bytes",
        limit: None,
        goal: Some(Goal::ValueAtMost(32.0)),
        reference: "",
        note: "memory of the books for one more resting order; what the order needs besides is stated and not in the value",
    },
    RowSpec {
        name: "plain_instructions",
        unit: "instr",
        limit: None,
        goal: None,
        reference: "",
        note: "instructions a message of the plain twin, ordered maps, on the same file and by the same driver as \
               book_instructions",
    },
    RowSpec {
        name: "book_instructions",
        unit: "instr",
        limit: Some("plain_instructions"),
        goal: Some(Goal::RatioAtMost(0.2)),
        reference: "a C++ NYSE feed handler -15% from one version to the next",
        note: "instructions a message into full books and out of them as an update, with framing, decoding and \
               the index of orders in both figures, counted by callgrind on itch-8000-smoke (80 k messages), where a symbol's book is as in the \
               whole day; a ratio of 0.2 is -80%",
    },
    RowSpec {
        name: "dbn_books",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(30.0)),
        reference: "hftbacktest depth 14-53 ns/update, price levels only",
        note: "a record out of DBN bytes in memory, read as tickpath replay reads it, into full order-by-order books; \
               the files over and over, each time into new books that are made while the clock stands",
    },
    RowSpec {
        name: "lobster_books",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(30.0)),
        reference: "hftbacktest depth 14-53 ns/update, price levels only",
        note: "a line of a LOBSTER message file in memory, text parsed as tickpath replay parses it, into full \
               order-by-order books; the file over and over, each time into new books that are made while the clock \
               stands",
    },
    RowSpec {
        name: "iex_decode",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(25.0)),
        reference: "",
        note: "a message of a real DEEP 1.0 capture in memory: segment checked, numbering followed by the arbiter, \
               decoded, applied to books of 7.8 k symbols; the capture over and over, each time into new books that \
               are made while the clock stands",
    },
    RowSpec {
        name: "xdp_books",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(35.0)),
        reference: "",
        note: "a message of a synthetic day of NYSE's Integrated Feed (generate xdp, 500 symbols, two channels) in \
               memory: pcap, Ethernet, IPv4 and UDP framing, the channel's numbers checked, decoded, applied to full \
               books; packets as bursts fill them, and full ones in the note",
    },
    RowSpec {
        name: "cache_write",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(3.5)),
        reference: "20.5 ns published, 22.8 ns on this kind of host",
        note: "a quote of 56 bytes into the symbol cache in shared memory, 100 instruments, in batches of 4096",
    },
    RowSpec {
        name: "cache_read",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(3.0)),
        reference: "42.5 ns published, 7.7 ns on this kind of host",
        note: "the same out of it by a reader that has it mapped read-only, every field added up and checked",
    },
    RowSpec {
        name: "cache_read_contended",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(60.0)),
        reference: "",
        note: "the same against a million writes a second on the other core - those that it misses while the host takes the \
               core follow at once - in groups of 16 (a step of the counter is too coarse for one): p99 of a group's time \
               per read; every read is checked",
    },
    RowSpec {
        name: "ticks_parse",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(4.0)),
        reference: "a C++ tick simulator 182 ns; its parser 17-45 ns on this kind of host",
        note: "a tick of 56 bytes out of a stream, checksum and number checked, handed to a listener that reads it; the \
               slowest of pieces of 64 KiB, 4 KiB, 1448 and 100 bytes, each the median of its passes; the bytes lie in the \
               parser's buffer already, as a read puts them there, whose copy is not in the figure",
    },
    RowSpec {
        name: "view_refresh",
        unit: "ms",
        limit: None,
        goal: Some(Goal::ValueAtMost(0.5)),
        reference: "a C++ tick simulator 1.8 ms",
        note: "a picture of 120 x 40 from the symbol cache: 100 symbols read and ordered, 20 drawn with latencies, what \
               changed written as escape codes; every symbol moves between two pictures; p50",
    },
    RowSpec {
        name: "ticks_client_rss",
        unit: "MB",
        limit: None,
        goal: Some(Goal::ValueAtMost(6.0)),
        reference: "a C++ tick simulator 5.7 MB",
        note: "resident memory of `tickpath ticks watch --no-tui` that gets 100,000 ticks/s of 100 symbols, each of which \
               must come into its cache",
    },
    RowSpec {
        name: "udp_echo",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "bare loopback UDP round trip with the sizes of order_rtt, p50",
    },
    RowSpec {
        name: "tcp_echo",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "bare loopback TCP round trip with the sizes of order_rtt, p50; 20 us between trips",
    },
    RowSpec {
        name: "order_rtt",
        unit: "us",
        limit: Some("tcp_echo"),
        goal: Some(Goal::RatioAtMost(1.25)),
        reference: "exchange-core 0.5 us without network or TCP",
        note: "order to its acceptance over loopback TCP through the whole venue on one core, stamps on and \
               market data published, p50; 20 us between trips",
    },
    RowSpec {
        name: "venue_response",
        unit: "us",
        limit: None,
        goal: Some(Goal::ValueAtMost(1.0)),
        reference: "Packt's trading ecosystem 71 us, its hops' medians added",
        note: "of these trips the venue's own part by its stamps: order read (T1) to answer ready to write \
               (T6tw), p50",
    },
    RowSpec {
        name: "journal_async_cost",
        unit: "us",
        limit: Some("order_rtt"),
        goal: Some(Goal::RatioAtMost(1.1)),
        reference: "",
        note: "order_rtt of a venue with a journal, policy async, right after one without: every command is in the \
               file before its answer leaves; both with 20 us between trips",
    },
    RowSpec {
        name: "decision_demo",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "market update taken to the request that it causes, of the taker as the demo has it, after a pause of 100 us \
               in which 4 MiB of other data went through the caches and the engine was warmed up; p50",
    },
    RowSpec {
        name: "decision_trader",
        unit: "ns",
        limit: Some("decision_demo"),
        goal: Some(Goal::RatioAtMost(1.25)),
        reference: "",
        note: "the same of the same strategy as `tickpath trader --config` has it, by its name and behind a box, on a thread \
               that is awake; one that sleeps, `idle = \"park\"`, does not warm up and decides as decision_cold does; p50",
    },
    RowSpec {
        name: "decision_cold",
        unit: "ns",
        limit: Some("decision_demo"),
        goal: None,
        reference: "",
        note: "the same without a warm-up, p50",
    },
    RowSpec {
        name: "idle_cpu",
        unit: "% of a core",
        limit: None,
        goal: Some(Goal::ValueAtMost(3.0)),
        reference: "",
        note: "processor time of all threads of `tickpath exchange` with its defaults while there is no work",
    },
    RowSpec {
        name: "idle_memory",
        unit: "MB",
        limit: None,
        goal: Some(Goal::ValueAtMost(120.0)),
        reference: "",
        note: "resident memory of the same venue",
    },
    RowSpec {
        name: "idle_echo",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "bare loopback TCP echo by a thread that sleeps in read, after 1 s of silence, p50",
    },
    RowSpec {
        name: "idle_answer",
        unit: "us",
        limit: Some("idle_echo"),
        goal: Some(Goal::ValueAtMost(100.0)),
        reference: "",
        note: "request to answer of the same venue after 1 s of silence, p50; policy `group`: the answer waits for an fdatasync",
    },
    RowSpec {
        name: "hundred_clients",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "order to its acceptance through the whole venue on one core with 100 clients connected, 99 of which \
               take turns; after each answer the hundredth sends an order too and reads its answers; p50, 20 us between \
               trips",
    },
    RowSpec {
        name: "hundred_clients_p99",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "the same, p99",
    },
    RowSpec {
        name: "hundred_clients_again",
        unit: "us",
        limit: Some("hundred_clients"),
        goal: None,
        reference: "",
        note: "the same once more in the same round, p50: how far equal things differ here",
    },
    RowSpec {
        name: "hundred_clients_again_p99",
        unit: "us",
        limit: Some("hundred_clients_p99"),
        goal: None,
        reference: "",
        note: "the same, p99",
    },
    RowSpec {
        name: "stuck_client",
        unit: "us",
        limit: Some("hundred_clients"),
        goal: Some(Goal::RatioWithinAgain),
        reference: "a C++ tick simulator p99 +17% with 10 clients",
        note: "the same while the hundredth reads nothing any more, its connection full and its answers kept for it, p50; \
               the three are measured in turn, each first in one round of three; the goal is the greatest ratio that \
               hundred_clients_again came to in a round",
    },
    RowSpec {
        name: "stuck_client_p99",
        unit: "us",
        limit: Some("hundred_clients_p99"),
        goal: Some(Goal::RatioWithinAgain),
        reference: "",
        note: "the same, p99",
    },
    RowSpec {
        name: "hundred_clients_instructions",
        unit: "instr",
        limit: None,
        goal: None,
        reference: "",
        note: "instructions of the venue's agents for a round trip of hundred_clients and the hundredth's order behind it, \
               without those of the kernel, counted by callgrind over 2000 trips, venue and clients on one thread",
    },
    RowSpec {
        name: "stuck_client_instructions",
        unit: "instr",
        limit: Some("hundred_clients_instructions"),
        goal: Some(Goal::RatioAtMost(1.0)),
        reference: "",
        note: "the same while the hundredth is stuck",
    },
    RowSpec {
        name: "journal_replay",
        unit: "M/s",
        limit: None,
        goal: Some(Goal::ValueAtLeast(10.0)),
        reference: "LMAX replays",
        note: "commands of the matching row's load out of the journal's files, in the page cache, checked, decoded and \
               matched on one core",
    },
    RowSpec {
        name: "fdatasync",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "bare 104 bytes written over zeroes of a file in the temporary folder and synced, p50",
    },
    RowSpec {
        name: "journal_group_ack",
        unit: "us",
        limit: Some("fdatasync"),
        goal: Some(Goal::RatioAtMost(1.2)),
        reference: "",
        note: "a record of as many bytes appended under policy group until it may be answered, in turns with fdatasync \
               on the same disk, p50",
    },
    RowSpec {
        name: "journal_async_rate",
        unit: "k/s",
        limit: None,
        goal: None,
        reference: "",
        note: "orders that a venue with a journal under policy async accepts from one client over loopback TCP, 4,096 of \
               them in flight; its threads give their core away when there is nothing to do",
    },
    RowSpec {
        name: "journal_group_rate",
        unit: "k/s",
        limit: Some("journal_async_rate"),
        goal: Some(Goal::RatioAtLeast(0.5)),
        reference: "",
        note: "the same under policy group, on the disk of the temporary folder",
    },
    RowSpec {
        name: "journal_restart",
        unit: "ms",
        limit: None,
        goal: Some(Goal::ValueAtMost(1_000.0)),
        reference: "",
        note: "a venue built from the journal of the matching row's load with its snapshots, the newest of them as old as \
               it can be, until it can be connected to",
    },
    RowSpec {
        name: "multicast_send",
        unit: "M/s",
        limit: None,
        goal: None,
        reference: "",
        note: "bare 1400-byte multicast datagrams from one core, every one received on the other",
    },
    RowSpec {
        name: "market_data_out",
        unit: "M/s",
        limit: Some("multicast_send"),
        goal: Some(Goal::ValueAtLeast(10.0)),
        reference: "a C++ tick simulator 0.15 M/s",
        note: "messages out of the publisher on one core, its ring filled there too, both lines sent, stamps on, \
               packets of up to 1400 bytes; line A received, arbitrated and checked on the other core with \
               nothing lost, because the publisher waits while too much for the receive buffer is on its way; \
               nobody listens to line B; the limit is the messages that as many bare datagrams would hold",
    },
    RowSpec {
        name: "feed_heal",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "p99 of the time from the opening of a gap to its close, one packet in twenty lost on both lines: 100 us for \
               the other line, the request, the answer, and again for what one packet does not hold; publisher and feed on \
               one core, as fast as they go; the row fails unless the books are the venue's, order by order",
    },
    RowSpec {
        name: "feed_live",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(120.0)),
        reference: "commercial feed handlers 100 to 250 ns an update",
        note: "a message of itch-8000 in full packets on two lines of loopback multicast: packet in, arbitration of both \
               copies, decoding, full books, the update made; without the receive call, which is beside it; one core; the \
               row fails unless the books end as the day's",
    },
    RowSpec {
        name: "tick_generate",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(5.0)),
        reference: "245 ns; 57 ns measured on a host of this kind",
        note: "a tick of 100 symbols made in batches, jumps included, every field folded",
    },
    RowSpec {
        name: "tcp_one_way",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "56 bytes over bare loopback TCP at 100 K/s, both ends busy-polled: from the intended time to when they are read, p50; \
               5 s a full round",
    },
    RowSpec {
        name: "tcp_one_way_p99",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "the same, p99",
    },
    RowSpec {
        name: "ticks_e2e_1",
        unit: "us",
        limit: Some("tcp_one_way"),
        goal: Some(Goal::RatioAtMost(1.5)),
        reference: "p50 52 us",
        note: "ticks server to one client at 100 K ticks/s, each tick written as it is made: from its intended time to when it stands in \
               the client's symbol cache, p50; 60 s a full round",
    },
    RowSpec {
        name: "ticks_e2e_1_p99",
        unit: "us",
        limit: Some("tcp_one_way_p99"),
        goal: None,
        reference: "p99 124 us",
        note: "the same, p99; where the host takes its time, as host_jitter says, that is in both",
    },
    RowSpec {
        name: "ticks_coalesced_1",
        unit: "us",
        limit: None,
        goal: None,
        reference: "",
        note: "the same with a write each millisecond, one client, p99",
    },
    RowSpec {
        name: "ticks_e2e_10",
        unit: "us",
        limit: Some("ticks_coalesced_1"),
        goal: Some(Goal::RatioAtMost(1.17)),
        reference: "p99 + 17% with 10 clients",
        note: "the same with ten clients, a million ticks a second delivered, over all of them, p99; every client the same ticks",
    },
    RowSpec {
        name: "tcp_bulk",
        unit: "M/s",
        limit: None,
        goal: None,
        reference: "",
        note: "messages of 56 bytes that bare loopback TCP carries in writes of the size of the next row, read and not looked at",
    },
    RowSpec {
        name: "ticks_max_rate",
        unit: "M/s",
        limit: Some("tcp_bulk"),
        goal: Some(Goal::ValueAtLeast(30.0)),
        reference: "145,833 a second",
        note: "ticks made, encoded, sealed and sent on one core, and checked (checksum, sequence) on the other, as fast as it goes",
    },
    RowSpec {
        name: "ticks_server_rss",
        unit: "MB",
        limit: None,
        goal: Some(Goal::ValueAtMost(12.0)),
        reference: "8.2 MB with one client",
        note: "the most memory that the process of a ticks server had with 1,000 clients",
    },
    RowSpec {
        name: "deribit_parse_book",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(150.0)),
        reference: "6.9 us published; sonic-rs 369 ns on this kind of host",
        note: "a change or snapshot of a book of Deribit, as recorded, out of the receive buffer: the frame and all of its \
               levels in one pass, numbers exact, each checked against another reader",
    },
    RowSpec {
        name: "deribit_parse_order",
        unit: "ns",
        limit: None,
        goal: Some(Goal::ValueAtMost(350.0)),
        reference: "6.9 us published; sonic-rs 724 ns on this kind of host",
        note: "a reply to an order, as recorded, with its trade, more than 1 KB: the frame, the order and each of its trades in \
               one pass, numbers exact, checked against another reader",
    },
    RowSpec {
        name: "tls_write",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "as many bytes as the frame of deribit_send_buy has, by a bare TLS session into a loopback socket, p50",
    },
    RowSpec {
        name: "deribit_send_buy",
        unit: "ns",
        limit: Some("tls_write"),
        goal: Some(Goal::RatioAtMost(1.3)),
        reference: "48 us published",
        note: "a buy order encoded, numbered, framed, encrypted and written to a loopback socket, in turns with the bare \
               write; each is answered, and the answer read, before the next; p50",
    },
    RowSpec {
        name: "deribit_command_to_socket",
        unit: "us",
        limit: None,
        goal: Some(Goal::ValueAtMost(10.0)),
        reference: "150 to 220 us published; its login 131 us",
        note: "the shell's buy command from its text to the socket, TLS included, by the shell's own stop-watch; p50 of 19 a \
               round",
    },
    RowSpec {
        name: "deribit_receive_instructions",
        unit: "instr",
        limit: None,
        goal: None,
        reference: "",
        note: "instructions of the shell's link for a book change that it takes in over TLS, without its history of messages, \
               counted by callgrind",
    },
    RowSpec {
        name: "deribit_history_cost",
        unit: "instr",
        limit: Some("deribit_receive_instructions"),
        goal: Some(Goal::RatioAtMost(1.02)),
        reference: "printing each message took 79% of the time",
        note: "the same with the whole history of messages",
    },
    RowSpec {
        name: "shell_heap",
        unit: "KiB",
        limit: None,
        goal: Some(Goal::ValueAtMost(2_048.0)),
        reference: "586 KiB published",
        note: "the most heap that `tickpath shell` had at once, its message history and what the allocator needs included, by \
               massif",
    },
    RowSpec {
        name: "shell_leaks",
        unit: "bytes",
        limit: None,
        goal: Some(Goal::ValueAtMost(0.0)),
        reference: "0 after a leak was mended",
        note: "bytes that the same session lost, by memcheck",
    },
    RowSpec {
        name: "gateway_ring_rtt",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "a gateway's request and event over bare rings of shared memory to the other core and back, p50; 20 us between \
               trips",
    },
    RowSpec {
        name: "gateway_rtt",
        unit: "ns",
        limit: Some("gateway_ring_rtt"),
        goal: Some(Goal::RatioAtMost(4.0)),
        reference: "12 us published",
        note: "an order through a whole gateway to its RECEIVED acknowledgement: permissions, request limit, steps, caps, \
               the connection's capacity and credits checked, kept in the order table; it is encoded and queued to the venue's \
               connection after that; each is accepted by the venue's end before the next; p50",
    },
    RowSpec {
        name: "gateway_to_wire",
        unit: "ns",
        limit: Some("tls_write"),
        goal: Some(Goal::AboveLimitAtMost(1_000.0)),
        reference: "9 us published, tick to trade",
        note: "of the same orders, from the client's sending to the bytes written to the venue's socket over TLS, by the \
               gateway's own stamps, p50",
    },
    RowSpec {
        name: "gateway_heartbeat",
        unit: "ns",
        limit: Some("cacheline_rtt"),
        goal: Some(Goal::RatioAtMost(1.5)),
        reference: "",
        note: "a ping one way between a gateway's door and a client, both of which look all the time, the slower way, p50; \
               three times half of the limit is its 1.5 fold",
    },
    RowSpec {
        name: "gateway_broadcast_instructions",
        unit: "instr",
        limit: None,
        goal: None,
        reference: "",
        note: "instructions of a gateway's door for an event of market data that one client reads, counted by callgrind",
    },
    RowSpec {
        name: "gateway_fanout_per_client",
        unit: "instr",
        limit: Some("gateway_broadcast_instructions"),
        goal: Some(Goal::RatioAtMost(1.001)),
        reference: "",
        note: "the same for sixteen clients, each of which gets every event",
    },
    RowSpec {
        name: "gateway_sixteen_clients",
        unit: "ns",
        limit: None,
        goal: None,
        reference: "",
        note: "a request of one of fifteen clients in turn to a gateway's door and its answer, while the sixteenth gets an \
               event with each and reads it, p50; 20 us between trips",
    },
    RowSpec {
        name: "gateway_stuck_client",
        unit: "ns",
        limit: Some("gateway_sixteen_clients"),
        goal: Some(Goal::RatioWithinAgain),
        reference: "",
        note: "the same while the sixteenth reads nothing; it is cut off once its ring is full",
    },
];

impl RowSpec {
    /// The row with the values of its rounds still to come.
    pub(crate) fn row(&self) -> Row {
        Row {
            limit_name: self.limit.map(str::to_owned),
            goal: self.goal,
            reference: self.reference.to_owned(),
            note: self.note.to_owned(),
            ..Row::new(self.name, self.unit)
        }
    }
}

/// Names that an unknown one is near to, at most.
const NEAR_MAX: usize = 5;
/// Letters at the beginning that a near name has in common with it, at least.
const NEAR_LEN_MIN: usize = 2;

/// The row of this name.
pub(crate) fn spec(name: &str) -> Option<&'static RowSpec> {
    ROWS.iter().find(|spec| spec.name == name)
}

/// Names of the rows that [`bench`](crate::bench) measures, in the order of the report.
pub fn row_names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|spec| spec.name)
}

/// The rows that a filter names, their limits, and the limits of these; all for an empty filter.
///
/// # Errors
/// As [`names_meant`].
pub(crate) fn choose(filter: &[String], external: &[&str]) -> anyhow::Result<Vec<&'static RowSpec>> {
    let filter = names_meant(filter, external)?;
    Ok(ROWS.iter().filter(|spec| is_wanted(spec.name, &filter)).collect())
}

/// The whole names that a filter means: each of its words is a row's name, or else the beginning of some. `external` are names
/// of rows that somebody else measures.
///
/// # Errors
/// A word that no row begins with, with the names that are near it.
pub fn names_meant(filter: &[String], external: &[&str]) -> anyhow::Result<Vec<String>> {
    let known: Vec<&str> = ROWS.iter().map(|spec| spec.name).chain(external.iter().copied()).collect();
    let mut meant = Vec::new();
    for word in filter {
        if known.contains(&word.as_str()) {
            meant.push(word.clone());
            continue;
        }
        let begun = known.iter().filter(|name| !word.is_empty() && name.starts_with(word.as_str()));
        let before = meant.len();
        meant.extend(begun.map(|name| (*name).to_owned()));
        if meant.len() == before {
            anyhow::bail!("there is no row '{word}'{}: --list names all", near(word, &known));
        }
    }
    Ok(meant)
}

/// A few names that have most of their beginning in common with a word, as they are told of.
fn near(word: &str, known: &[&str]) -> String {
    let common = |name: &str| name.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
    let most = known.iter().map(|name| common(name)).max().unwrap_or_default();
    if most < NEAR_LEN_MIN {
        return String::new();
    }
    let names = known.iter().filter(|name| common(name) == most).take(NEAR_MAX);
    format!(", near it are {}", names.copied().collect::<Vec<_>>().join(", "))
}

/// Whether a filter names a row, or one that it is a limit of: a limit has its own limit beside it too.
fn is_wanted(name: &str, filter: &[String]) -> bool {
    let is_limit_of = |spec: &RowSpec| spec.limit == Some(name) && is_wanted(spec.name, filter);
    filter.is_empty() || filter.iter().any(|named| named == name) || ROWS.iter().any(is_limit_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(filter: &[&str]) -> Vec<&'static str> {
        let filter: Vec<String> = filter.iter().map(|name| (*name).to_owned()).collect();
        choose(&filter, &["elsewhere"]).unwrap().iter().map(|spec| spec.name).collect()
    }

    #[test]
    fn a_filter_brings_the_limits_of_its_rows() {
        assert_eq!(chosen(&[]).len(), ROWS.len());
        assert_eq!(chosen(&["order_rtt", "stamp"]), ["tsc_read", "stamp", "tcp_echo", "order_rtt"]);
        assert_eq!(chosen(&["tcp_echo"]), ["tcp_echo"]);
        assert_eq!(chosen(&["journal_async_cost"]), ["tcp_echo", "order_rtt", "journal_async_cost"]);
        assert_eq!(chosen(&["elsewhere"]), [""; 0]);
        assert_eq!(chosen(&["elsew"]), [""; 0]);
    }

    #[test]
    fn the_beginning_of_names_means_all_of_them() {
        let deribit = chosen(&["deribit_parse"]);
        assert!(["deribit_parse_book", "deribit_parse_order"].iter().all(|name| deribit.contains(name)));
        assert!(deribit.len() < chosen(&["deribit"]).len());
        // What is a whole name means that row alone, whatever begins with it.
        assert!(!chosen(&["matching"]).contains(&"matching_open_loop"));
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_what_is_near() {
        let error = choose(&["stmap".to_owned()], &["elsewhere"]).err().unwrap().to_string();
        assert!(error.contains("'stmap'") && error.contains("near it are stamp"), "{error}");
        for word in ["", "?"] {
            let error = choose(&[word.to_owned()], &["elsewhere"]).err().unwrap().to_string();
            assert_eq!(error, format!("there is no row '{word}': --list names all"));
        }
    }

    #[test]
    fn every_limit_is_a_row() {
        for spec in ROWS {
            assert!(spec.limit.is_none_or(|limit| row_names().any(|name| name == limit)), "{}", spec.name);
        }
    }
}

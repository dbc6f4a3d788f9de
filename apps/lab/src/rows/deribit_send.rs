//! Time to write a Deribit order to a TLS socket, through a client link and through the shell.

use std::sync::atomic::{AtomicU64, Ordering};

use rustls::ClientConnection;
use tickpath_deribit::credits::CreditPlan;
use tickpath_deribit::envelope::{Id, Inbound, Visitor};
use tickpath_deribit::messages::{Order, OrderReply, PlaceOrder};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::{ScanError, Scanner};
use tickpath_deribit::session::{SessionConfig, SessionEvent};
use tickpath_deribit::text::Text;
use tickpath_deribit_link::{Link, LinkConfig, Listener, Received, Route};
use tickpath_shell::{Interrupt, Link as ShellLink, Shell, ShellConfig, Span};
use tickpath_web::TlsClient;

use super::prelude::*;
use crate::support::bare_tls::{BareTls, bare_tls};
use crate::support::deribit_venue::{Certificates, FRAME_HEAD, VenueEnd, key};

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_two_cores(
        &[
            row("tls_write", "ns").note(
                "as many bytes as the frame of deribit_send_buy has, by a bare TLS session into a loopback \
                 socket, p50",
            ),
            row("deribit_send_buy", "ns")
                .note(
                    "a buy order encoded, numbered, framed, encrypted and written to a loopback socket, in \
                     turns with the bare write; each is answered, and the answer read, before the next; p50",
                )
                .limit("tls_write")
                .goal(Goal::RatioAtMost(1.3))
                .reference("48 us published"),
        ],
        open_buy,
    ),
    on_two_cores(
        &[row("deribit_command_to_socket", "us")
            .note(
                "the shell's buy command from its text to the socket, TLS included, by the shell's own \
                 stop-watch; p50 of 19 a round",
            )
            .reference("150 to 220 us published; its login 131 us")],
        open_command,
    ),
];

/// Number of orders in a full round, including the warm-up.
const ORDERS: usize = 5_000;
/// Time between an answer and the next order.
const PAUSE: Nanos = Nanos::from_micros(20);
/// Label of the orders.
const LABEL: &str = "tp-19ab4c3d2e1-1f2e-12";
/// Buy commands of a round: as many as a new session's rate limit allows at once.
const COMMANDS: usize = 20;

/// Receives the events of the link.
#[derive(Default)]
struct LinkListener {
    unix_ms: u64,
    is_ready: bool,
    /// Number of answers with [`LABEL`].
    answers: u64,
    /// Error that ended the session.
    failure: Option<String>,
}

/// Parses each order reply in the same pass as its frame, and counts those with [`LABEL`].
struct ReplyVisitor<'o>(&'o mut u64);

impl<'a> Visitor<'a> for ReplyVisitor<'_> {
    fn on_result(&mut self, _: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        let mut order = Order::default();
        OrderReply::read_each(result, &mut order, |_| ())?;
        *self.0 += u64::from(order.label_text() == LABEL);
        Ok(())
    }
}

impl Listener for LinkListener {
    fn unix_ms(&mut self, _: Nanos) -> u64 {
        self.unix_ms
    }

    fn on_text<'f>(&mut self, _: Received, text: &'f str) -> Result<Inbound<'f>, ScanError> {
        if self.is_ready {
            Inbound::parse_with(text, &mut ReplyVisitor(&mut self.answers))
        } else {
            Inbound::parse(text.as_bytes())
        }
    }

    fn on_event(&mut self, _: Received, event: SessionEvent<'_>) {
        match event {
            SessionEvent::Ready => self.is_ready = true,
            SessionEvent::LoginRefused { method, error } => {
                self.failure = Some(format!("{method}: {error:?}"))
            }
            _ => {}
        }
    }
}

fn open_buy(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let certificates = Certificates::make()?;
    each_round(lab, move |context| buy(context, &certificates))
}

/// Measures orders through a [`Link`], each followed by a bare TLS write of the same length.
fn buy(context: &Context, certificates: &Certificates) -> anyhow::Result<[Sample; 2]> {
    let mut venue = VenueEnd::open(certificates)?;
    let route = Route::direct(venue.url().parse()?, Some(TlsClient::with_ca_file(&certificates.ca)?));
    let mut session = SessionConfig::new("tickpath-lab", env!("CARGO_PKG_VERSION"), Some(key()));
    // Disable the client's rate limiter: the laboratory's venue has no limit.
    session.matching = CreditPlan::rate(1_000_000_000, 1_000_000_000);
    let mut link = Link::new(LinkConfig::new(route, session));
    let (mut client, mut server) = bare_tls(certificates)?;
    let received = AtomicU64::new(0);
    let (len, mut bare, mut sent) = context.run_on_two_cores(
        |stop| {
            while !stop.is_stopped() {
                let came = server.read()?;
                received.fetch_add(came, Ordering::Release);
                if venue.work(context.clock.now())? == 0 && came == 0 {
                    std::hint::spin_loop();
                }
            }
            Ok(())
        },
        |stop| send(context, stop, &mut link, &mut client, &received),
    )?;
    let warm_up = bare.len() / 10;
    let p50 = |ticks: &mut Vec<u64>| context.quantile_ns(&mut ticks[warm_up..], 0.5);
    let note = format!("{} bytes of JSON", len - FRAME_HEAD);
    Ok([p50(&mut bare).into(), Sample::with_note(p50(&mut sent), note)])
}

/// Sends orders and bare writes in turn; returns a frame's length and the ticks of each write and each order.
fn send(
    context: &Context,
    stop: &StopSignal,
    link: &mut Link,
    client: &mut BareTls<ClientConnection>,
    received: &AtomicU64,
) -> anyhow::Result<(usize, Vec<u64>, Vec<u64>)> {
    let orders = context.effort.count(ORDERS);
    let now = || context.clock.now();
    let mut listener = LinkListener { unix_ms: 1_765_463_719_142, ..LinkListener::default() };
    link.connect(now());
    wait_for(stop, || {
        link.do_work(now(), &mut listener);
        ensure!(listener.failure.is_none(), "the login failed: {:?}", listener.failure);
        Ok(listener.is_ready.then_some(()))
    })?;
    let order = PlaceOrder {
        order_type: None,
        price: Decimal::new(500_005, 1),
        label: Some(Text::new(LABEL)),
        ..PlaceOrder::market("BTC-PERPETUAL", Decimal::from(10))
    };
    let (mut bare, mut sent) = (Vec::with_capacity(orders), Vec::with_capacity(orders));
    let (mut frame, mut written) = (Vec::new(), 0);
    for number in 0..orders as u64 {
        let start = now();
        sent.push(context.timed(|| Ok(link.request(start, Method::Buy, &order).map(drop)?))?);
        frame.clear();
        frame.resize(FRAME_HEAD, b'x');
        frame.extend_from_slice(link.sent().as_bytes());
        ensure!(link.sent().contains(LABEL), "the order was not what was sent last");
        wait_for(stop, || {
            link.do_work(now(), &mut listener);
            Ok((listener.answers > number).then_some(()))
        })?;
        context.spin(PAUSE);
        bare.push(context.timed(|| client.write(&frame))?);
        written += frame.len() as u64;
        wait_for(stop, || Ok((received.load(Ordering::Acquire) == written).then_some(())))?;
        context.spin(PAUSE);
    }
    Ok((frame.len(), bare, sent))
}

fn open_command(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let certificates = Certificates::make()?;
    each_round(lab, move |context| Ok([command(context, &certificates)?]))
}

/// Measures the shell's buy command, from its text to the socket.
fn command(context: &Context, certificates: &Certificates) -> anyhow::Result<Sample> {
    let mut venue = VenueEnd::open(certificates)?;
    let text = venue.shell_config(certificates, 10);
    let config: ShellConfig = tickpath_config::parse("shell.toml", &text)?;
    let url = config.checked_url()?;
    let (mut times, mut written, auth, buy) = context.run_on_two_cores(
        |stop| venue.serve_until(stop, &context.clock, std::hint::spin_loop),
        |_| {
            let mut shell =
                Shell::new(ShellLink::new(config, url, Some(key())), None, false, Interrupt::default());
            let (mut times, mut written) = (Vec::with_capacity(COMMANDS), Vec::with_capacity(COMMANDS));
            for number in 0..COMMANDS {
                let line = format!("buy BTC-PERPETUAL 10 50000.5 label={LABEL}-{number}");
                if number == 0 {
                    // Connect first. Order 0 is not measured, because it also requests the instrument.
                    shell.execute("connect").map_err(|failure| anyhow::anyhow!("connect: {failure}"))?;
                }
                let start = context.clock.ticks();
                let done = shell.execute(&line).map_err(|failure| anyhow::anyhow!("{line}: {failure}"))?;
                let elapsed = context.clock.ticks_to_nanos(context.clock.ticks() - start);
                ensure!(done.text.contains(LABEL) && done.text.contains("open"), "{line}: {}", done.text);
                let (send, total) = done.times.context("the venue was asked")?;
                if number > 0 {
                    // The shell measures `send` and `total` from its receipt of the command's text.
                    times.push(send.0);
                    written.push(elapsed.0.saturating_sub(total.0));
                }
            }
            let watches = &shell.link().watches;
            let p50 = |span: Span| {
                let found = watches.figures().find(|it| it.name == span.name());
                found.map(|it| it.p50_ns).context("it was timed")
            };
            Ok((times, written, p50(Span::E2eAuth)?, p50(Span::E2eBuyOrder)?))
        },
    )?;
    let micros = |nanos: u64| nanos as f64 / 1_000.0;
    let [p50, written] = [&mut times, &mut written].map(|times| micros(quantile(times, 0.5)));
    let note = format!(
        "what the answer is written as takes {written:.1} us more; login end to end {:.0} us, a buy order end to end {:.0} us",
        micros(auth),
        micros(buy)
    );
    Ok(Sample::with_note(p50, note))
}

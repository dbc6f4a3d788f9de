//! Orders in Deribit's dialect to a socket over TLS: by the client's session, and by the shell.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, ensure};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tickpath_agent::StopSignal;
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
use tickpath_types::Nanos;
use tickpath_web::TlsClient;

use super::{Round, Sample};
use crate::context::{Context, wait_for};
use crate::deribit_venue::{Certificates, VenueEnd, key};

/// Orders of a full round, those that warm up included.
const ORDERS: usize = 5_000;
/// Time between an answer and the next order.
const PAUSE: Nanos = Nanos::from_micros(20);
/// Bytes that a WebSocket frame of 126 to 65,535 bytes has before its text: head, length, mask.
const FRAME_HEAD: usize = 2 + 2 + 4;
/// The client's text.
const LABEL: &str = "tp-19ab4c3d2e1-1f2e-12";
/// Buy commands of a round: a session begins with so many at once.
const COMMANDS: usize = 20;

/// Takes what the link says.
#[derive(Default)]
struct Owner {
    unix_ms: u64,
    is_ready: bool,
    /// Answers, each with our label.
    answers: u64,
    /// What ended the session.
    failure: Option<String>,
}

/// Reads an order reply in the same pass as its frame.
struct Replies<'o>(&'o mut u64);

impl<'a> Visitor<'a> for Replies<'_> {
    fn on_result(&mut self, _: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        let mut order = Order::default();
        OrderReply::read_each(result, &mut order, |_| ())?;
        *self.0 += u64::from(order.label_text() == LABEL);
        Ok(())
    }
}

impl Listener for Owner {
    fn unix_ms(&mut self, _: Nanos) -> u64 {
        self.unix_ms
    }

    fn on_text<'f>(&mut self, _: Received, text: &'f str) -> Result<Inbound<'f>, ScanError> {
        if self.is_ready {
            Inbound::parse_with(text, &mut Replies(&mut self.answers))
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

/// Serves a venue until the signal is raised.
fn serve(context: &Context, venue: &mut VenueEnd, stop: &StopSignal) -> anyhow::Result<()> {
    while !stop.is_stopped() {
        if venue.work(context.clock.now())? == 0 {
            std::hint::spin_loop();
        }
    }
    Ok(())
}

/// Both ends of a bare TLS connection.
struct Bare {
    client: ClientConnection,
    client_socket: TcpStream,
    server: ServerConnection,
    server_socket: TcpStream,
}

impl Bare {
    fn open(certificates: &Certificates) -> anyhow::Result<Bare> {
        let provider = Arc::new(default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificates.ca())?)?;
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let chain = vec![CertificateDer::from_pem_file(certificates.certificate())?];
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_file(certificates.key())?)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let client_socket = TcpStream::connect(listener.local_addr()?)?;
        let (server_socket, _) = listener.accept()?;
        for socket in [&client_socket, &server_socket] {
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
        }
        let mut bare = Bare {
            client: ClientConnection::new(Arc::new(client), ServerName::try_from("localhost")?)?,
            client_socket,
            server: ServerConnection::new(Arc::new(server))?,
            server_socket,
        };
        let is_shaking = |bare: &Bare| bare.client.is_handshaking() || bare.server.is_handshaking();
        while is_shaking(&bare) || bare.client.wants_write() || bare.server.wants_write() {
            step_client(&mut bare.client, &mut bare.client_socket)?;
            step_server(&mut bare.server, &mut bare.server_socket)?;
        }
        Ok(bare)
    }
}

/// Ignores that nothing is there, or no room.
fn unless_blocked(done: std::io::Result<usize>) -> anyhow::Result<usize> {
    match done {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        other => Ok(other?),
    }
}

fn step_client(client: &mut ClientConnection, socket: &mut TcpStream) -> anyhow::Result<()> {
    while client.wants_write() && unless_blocked(client.write_tls(socket))? > 0 {}
    if unless_blocked(client.read_tls(socket))? > 0 {
        client.process_new_packets()?;
    }
    Ok(())
}

/// Reads what came; how many bytes of plain text.
fn step_server(server: &mut ServerConnection, socket: &mut TcpStream) -> anyhow::Result<u64> {
    while server.wants_write() && unless_blocked(server.write_tls(socket))? > 0 {}
    let mut len = 0;
    if unless_blocked(server.read_tls(socket))? > 0 {
        server.process_new_packets()?;
        let mut room = [0; 4_096];
        loop {
            match unless_blocked(server.reader().read(&mut room))? {
                0 => break,
                count => len += count as u64,
            }
        }
    }
    Ok(len)
}

pub(super) fn open_buy(context: Context) -> anyhow::Result<Round> {
    let certificates = Certificates::make()?;
    Ok(Box::new(move || buy(&context, &certificates)))
}

fn buy(context: &Context, certificates: &Certificates) -> anyhow::Result<Vec<Sample>> {
    let orders = context.effort.count(ORDERS);
    let mut venue = VenueEnd::open(certificates)?;
    let route = Route::direct(venue.url().parse()?, Some(TlsClient::with_ca_file(&certificates.ca())?));
    let Bare { mut client, mut client_socket, mut server, mut server_socket } = Bare::open(certificates)?;
    let mut session = SessionConfig::new("tickpath-lab", env!("CARGO_PKG_VERSION"), Some(key()));
    // The venue of the laboratory has no limit.
    session.matching = CreditPlan::rate(1_000_000_000, 1_000_000_000);
    let mut link = Link::new(LinkConfig::new(route, session));
    let received = AtomicU64::new(0);
    let order = PlaceOrder {
        instrument_name: Text::new("BTC-PERPETUAL"),
        amount: Some(Decimal::from(10)),
        contracts: None,
        order_type: None,
        price: Decimal::new(500_005, 1),
        label: Some(Text::new(LABEL)),
        time_in_force: None,
        post_only: false,
        reject_post_only: false,
        reduce_only: false,
        display_amount: None,
        trigger: None,
        trigger_price: None,
        trigger_offset: None,
        advanced: None,
        mmp: false,
        valid_until: None,
    };
    let (len, mut bare, mut sent) = context.beside(
        |stop| {
            while !stop.is_stopped() {
                let came = step_server(&mut server, &mut server_socket)?;
                received.fetch_add(came, Ordering::Release);
                if venue.work(context.clock.now())? == 0 && came == 0 {
                    std::hint::spin_loop();
                }
            }
            Ok(())
        },
        |stop| {
            let now = || context.clock.now();
            let mut owner = Owner { unix_ms: 1_765_463_719_142, ..Owner::default() };
            link.connect(now());
            wait_for(stop, || {
                link.do_work(now(), &mut owner);
                ensure!(owner.failure.is_none(), "the login failed: {:?}", owner.failure);
                Ok(owner.is_ready.then_some(()))
            })?;
            let (mut bare, mut sent) = (Vec::with_capacity(orders), Vec::with_capacity(orders));
            let (mut frame, mut written) = (Vec::new(), 0);
            for number in 0..orders as u64 {
                let start = now();
                let ticks = context.clock.ticks();
                link.request(start, Method::Buy, &order)?;
                sent.push(context.clock.ticks() - ticks);
                frame.clear();
                frame.resize(FRAME_HEAD, b'x');
                frame.extend_from_slice(link.sent().as_bytes());
                ensure!(link.sent().contains(LABEL), "the order was not what was sent last");
                wait_for(stop, || {
                    link.do_work(now(), &mut owner);
                    Ok((owner.answers > number).then_some(()))
                })?;
                context.spin(PAUSE);
                let ticks = context.clock.ticks();
                client.writer().write_all(&frame)?;
                while client.wants_write() {
                    client.write_tls(&mut client_socket)?;
                }
                bare.push(context.clock.ticks() - ticks);
                written += frame.len() as u64;
                wait_for(stop, || Ok((received.load(Ordering::Acquire) == written).then_some(())))?;
                context.spin(PAUSE);
            }
            Ok((frame.len(), bare, sent))
        },
    )?;
    let warm_up = orders / 10;
    let p50 = |ticks: &mut Vec<u64>| context.quantile_ns(&mut ticks[warm_up..], 0.5);
    let note = format!("{} bytes of JSON", len - FRAME_HEAD);
    Ok(vec![
        Sample::new("tls_write", p50(&mut bare)),
        Sample { note: Some(note), ..Sample::new("deribit_send_buy", p50(&mut sent)) },
    ])
}

pub(super) fn open_command(context: Context) -> anyhow::Result<Round> {
    let certificates = Certificates::make()?;
    Ok(Box::new(move || Ok(vec![command(&context, &certificates)?])))
}

/// The shell's buy command, from its text to the socket.
fn command(context: &Context, certificates: &Certificates) -> anyhow::Result<Sample> {
    let mut venue = VenueEnd::open(certificates)?;
    let text = format!("url = '{}'\nca_file = '{}'", venue.url(), certificates.ca().display());
    let config: ShellConfig = tickpath_config::parse("shell.toml", &text)?;
    let url = config.checked_url()?;
    let (mut times, mut written, auth, buy) = context.beside(
        |stop| serve(context, &mut venue, stop),
        |_| {
            let mut shell =
                Shell::new(ShellLink::new(config, url, Some(key())), None, false, Interrupt::default());
            let (mut times, mut written) = (Vec::with_capacity(COMMANDS), Vec::with_capacity(COMMANDS));
            for number in 0..COMMANDS {
                let line = format!("buy BTC-PERPETUAL 10 50000.5 label={LABEL}-{number}");
                if number == 0 {
                    // The instrument is asked for by the first order.
                    shell.execute("connect").map_err(|failure| anyhow::anyhow!("connect: {failure}"))?;
                }
                let start = context.clock.ticks();
                let done = shell.execute(&line).map_err(|failure| anyhow::anyhow!("{line}: {failure}"))?;
                let elapsed = context.clock.ticks_to_nanos(context.clock.ticks() - start);
                ensure!(done.text.contains(LABEL) && done.text.contains("open"), "{line}: {}", done.text);
                let (send, total) = done.times.context("the venue was asked")?;
                if number > 0 {
                    // The shell's own stop-watch, which begins with the command's text.
                    times.push(send.0);
                    written.push(elapsed.0.saturating_sub(total.0));
                }
            }
            let link = shell.link();
            let p50 = |span: Span| {
                link.watches
                    .figures()
                    .find(|it| it.name == span.name())
                    .map(|it| it.p50_ns)
                    .context("it was timed")
            };
            Ok((times, written, p50(Span::E2eAuth)?, p50(Span::E2eBuyOrder)?))
        },
    )?;
    let p50 = crate::statistics::quantile(&mut times, 0.5);
    let micros = |nanos: u64| nanos as f64 / 1_000.0;
    let written = micros(crate::statistics::quantile(&mut written, 0.5));
    let note = format!(
        "what the answer is written as takes {written:.1} us more; login end to end {:.0} us, a buy order end to end {:.0} us",
        micros(auth),
        micros(buy)
    );
    Ok(Sample { note: Some(note), ..Sample::new("deribit_command_to_socket", micros(p50)) })
}

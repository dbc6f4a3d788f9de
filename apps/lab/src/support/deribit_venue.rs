//! A Deribit venue for the measurements: it answers a client's requests at once, over a WebSocket with TLS.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tickpath_agent::{StopSignal, TscClock};
use tickpath_deribit::envelope::ServerTime;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::{Auth, PlaceOrder, Subscribe};
use tickpath_deribit::method::Method;
use tickpath_deribit::request::{Refusal, Request, write_notification, write_refusal, write_result};
use tickpath_deribit::scan::check;
use tickpath_deribit::session::Key;
use tickpath_deribit::sign::verify_client_signature;
use tickpath_net::{Kernel, SendOutcome};
use tickpath_types::Nanos;
use tickpath_web::{ServerEvent, TlsServer, WebAcceptor, WebConnection, WebEvent, WebLimits};

use super::loopback::ANY_PORT;

/// The client's credentials.
pub(crate) const CLIENT_ID: &str = "lab";
pub(crate) const SECRET: &str = "of the laboratory";
/// Bytes before the payload of a client's WebSocket frame with 126 to 65,535 bytes of payload: header, length,
/// mask.
pub(crate) const FRAME_HEAD: usize = 2 + 2 + 4;
/// Data of a book change notification; the whole notification has 350 bytes.
const CHANGE: &str = r#"{"type":"change","timestamp":1554373911330,"prev_change_id":297217,"instrument_name":"BTC-PERPETUAL","change_id":297218,"bids":[["delete",5041.94,0],["delete",5042.34,0]],"asks":[["new",5042.36,100],["change",5042.5,9580]]}"#;
/// Number of changes sent after a subscription to [`CHANNEL`].
pub(crate) const CHANGES: u64 = 500;
pub(crate) const CHANNEL: &str = "book.BTC-PERPETUAL.raw";
const INSTRUMENT: &str = r#"{"kind":"future","instrument_name":"BTC-PERPETUAL","is_active":true,"instrument_type":"reversed","tick_size":0.5,"contract_size":10.0,"min_trade_amount":10.0,"settlement_currency":"BTC","base_currency":"BTC","quote_currency":"USD"}"#;
const LOGIN: &str = r#"{"access_token":"TOKEN-ACCESS","token_type":"bearer","expires_in":900,"refresh_token":"TOKEN-REFRESH","scope":"connection trade:read_write"}"#;

/// The key that the venue accepts.
pub(crate) fn key() -> Key {
    Key::new(CLIENT_ID, SECRET)
}

/// Files of a certificate for `localhost`, of its key, and of its authority. Drop deletes them.
pub(crate) struct Certificates {
    _folder: TempDir,
    /// Certificate of the authority, which a client trusts.
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificates {
    pub(crate) fn make() -> anyhow::Result<Certificates> {
        let folder = tempfile::tempdir().context("certificates need a folder")?;
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let ca = authority.self_signed(&authority_key)?.pem();
        let params = CertificateParams::new(vec!["localhost".to_owned()])?;
        let certificate = params.signed_by(&key, &Issuer::new(authority, authority_key))?.pem();
        let [ca, certificate, key] =
            [("ca.pem", ca), ("cert.pem", certificate), ("key.pem", key.serialize_pem())].map(
                |(name, text)| {
                    let path = folder.path().join(name);
                    std::fs::write(&path, text).map(|()| path)
                },
            );
        Ok(Certificates { ca: ca?, certificate: certificate?, key: key?, _folder: folder })
    }
}

/// The text of the last buy order that the venue received, shared with other threads.
#[derive(Clone, Default)]
pub(crate) struct LastOrder(Arc<Mutex<String>>);

impl LastOrder {
    fn set(&self, text: &str) {
        text.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes a client's frame of the order, with a mask of zeros, into `frame`.
    pub(crate) fn write_frame(&self, frame: &mut Vec<u8>) {
        const FIN_TEXT: u8 = 0x81;
        const MASKED_LEN_OF_2: u8 = 0x80 | 126;
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [high, low] = (text.len() as u16).to_be_bytes();
        frame.clear();
        frame.extend_from_slice(&[FIN_TEXT, MASKED_LEN_OF_2, high, low, 0, 0, 0, 0]);
        debug_assert_eq!(frame.len(), FRAME_HEAD);
        frame.extend_from_slice(text.as_bytes());
    }
}

/// The venue: its acceptor and its clients.
pub(crate) struct VenueEnd {
    acceptor: WebAcceptor,
    /// Connections, and whether each has logged in.
    clients: Vec<(WebConnection, bool)>,
    /// Whether the client that is being answered has logged in.
    is_authenticated: bool,
    orders: u64,
    last_order: LastOrder,
    /// Time at which the current request was received, and time at which its answer is sent.
    time: ServerTime,
    /// Notifications to be sent after the answer.
    changes: Vec<String>,
    out: Vec<u8>,
}

impl VenueEnd {
    pub(crate) fn open(certificates: &Certificates) -> anyhow::Result<VenueEnd> {
        let tls = TlsServer::from_pem_files(&certificates.certificate, &certificates.key)?;
        Ok(VenueEnd {
            acceptor: WebAcceptor::bind(Kernel, ANY_PORT, Some(tls), WebLimits::server())?,
            clients: Vec::new(),
            is_authenticated: false,
            orders: 0,
            last_order: LastOrder::default(),
            time: ServerTime::default(),
            changes: Vec::new(),
            out: Vec::new(),
        })
    }

    pub(crate) fn last_order(&self) -> LastOrder {
        self.last_order.clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("wss://localhost:{}/ws/api/v2", self.acceptor.local_address().port())
    }

    /// Returns the configuration of a shell that connects to the venue; `timeout_s` is its request timeout.
    pub(crate) fn shell_config(&self, certificates: &Certificates, timeout_s: u32) -> String {
        let (url, ca) = (self.url(), certificates.ca.display());
        format!("url = '{url}'\nca_file = '{ca}'\nrequest_timeout = '{timeout_s}s'\n")
    }

    /// Runs `work` while another thread serves clients; that thread sleeps for `rest` when idle.
    pub(crate) fn serve_during<T>(
        &mut self,
        rest: Duration,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.serve_with(rest, || Ok(0), work)
    }

    /// As [`serve_during`](VenueEnd::serve_during). The thread that serves also calls `serve_other`, which
    /// returns the amount of its work.
    pub(crate) fn serve_with<T>(
        &mut self,
        rest: Duration,
        mut serve_other: impl FnMut() -> anyhow::Result<usize> + Send,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (stop, clock) = (StopSignal::new(), TscClock::shared());
        thread::scope(|scope| {
            let served = scope.spawn(|| {
                while !stop.is_stopped() {
                    if self.work(clock.now())? + serve_other()? == 0 {
                        thread::sleep(rest);
                    }
                }
                Ok(())
            });
            let done = work();
            stop.stop();
            let served = served.join().ok().context("the venue's end panicked")?;
            done.and_then(|done| served.map(|()| done))
        })
    }

    /// Serves clients until `stop` is raised; calls `rest` when idle.
    pub(crate) fn serve_until(
        &mut self,
        stop: &StopSignal,
        clock: &TscClock,
        rest: impl Fn(),
    ) -> anyhow::Result<()> {
        while !stop.is_stopped() {
            if self.work(clock.now())? == 0 {
                rest();
            }
        }
        Ok(())
    }

    /// Accepts a connection and serves all clients; returns the number of events handled.
    pub(crate) fn work(&mut self, now: Nanos) -> anyhow::Result<usize> {
        if let Some(connection) = self.acceptor.accept(now)? {
            self.clients.push((connection, false));
        }
        let micros = now.0 / 1_000;
        self.time = ServerTime { us_in: micros, us_out: micros };
        let mut work = 0;
        // Put each client back into the list, except when its connection has ended.
        for _ in 0..self.clients.len() {
            let (mut client, is_authenticated) = self.clients.remove(0);
            self.is_authenticated = is_authenticated;
            let (is_over, count) = self.serve(&mut client, now)?;
            work += count;
            if !is_over {
                self.clients.push((client, self.is_authenticated));
            }
        }
        Ok(work)
    }

    /// Answers one client's requests; returns whether its connection has ended, and the number of events.
    fn serve(&mut self, client: &mut WebConnection, now: Nanos) -> anyhow::Result<(bool, usize)> {
        let mut work = 0;
        while let Some(event) = client.receive(now) {
            work += 1;
            match event {
                ServerEvent::Upgrade(_) => client.accept_upgrade(),
                ServerEvent::Message(WebEvent::Text(text)) => {
                    self.out.clear();
                    self.answer(text)?;
                    let answer = std::str::from_utf8(&self.out).context("answers are text")?;
                    let _ = client.queue(answer);
                    for change in self.changes.drain(..) {
                        let sent = client.queue(&change);
                        ensure!(sent != SendOutcome::Backpressured, "the client reads nothing");
                    }
                }
                ServerEvent::End(_) => return Ok((true, work)),
                _ => {}
            }
        }
        let _ = client.flush();
        Ok((false, work))
    }

    fn answer(&mut self, text: &str) -> anyhow::Result<()> {
        let request = Request::parse(text.as_bytes());
        match request.and_then(|request| Ok((request.id, self.result(text, &request)?))) {
            Ok((id, json)) => write_result(id, &check(json.as_bytes())?, self.time, true, &mut self.out),
            Err(refusal) => write_refusal(&refusal, self.time, true, &mut self.out),
        }
        Ok(())
    }

    fn result<'a>(&mut self, text: &str, request: &Request<'a>) -> Result<String, Refusal<'a>> {
        if request.method.is_private() && !self.is_authenticated {
            return Err(Refusal::new(request.id, ErrorCode::Unauthorized));
        }
        Ok(match request.method {
            Method::Hello | Method::Test => r#"{"version":"1.2.26"}"#.to_owned(),
            Method::SetHeartbeat | Method::EnableCancelOnDisconnect => "\"ok\"".to_owned(),
            Method::Auth => self.log_in(request)?,
            Method::GetInstrument => INSTRUMENT.to_owned(),
            Method::Buy => {
                self.last_order.set(text);
                self.enter(&request.params()?)
            }
            Method::GetInstruments => format!("[{INSTRUMENT}]"),
            Method::GetOpenOrders | Method::GetPositions | Method::GetOrderStateByLabel => "[]".to_owned(),
            Method::GetAccountSummaries => r#"{"id":10580,"summaries":[]}"#.to_owned(),
            Method::CancelAll => "0".to_owned(),
            Method::PublicSubscribe | Method::PrivateSubscribe => self.subscribe(&request.params()?),
            Method::PublicUnsubscribe | Method::PrivateUnsubscribe => "[]".to_owned(),
            _ => return Err(Refusal::new(request.id, ErrorCode::NotImplemented)),
        })
    }

    fn log_in<'a>(&mut self, request: &Request<'a>) -> Result<String, Refusal<'a>> {
        let auth: Auth<'_> = request.params()?;
        let text = |text: Option<tickpath_deribit::text::Text<'_>>| text.map(|text| text.to_string());
        let signature = auth.signature.map(|signature| signature.expose().to_string()).unwrap_or_default();
        let nonce = text(auth.nonce).unwrap_or_default();
        let timestamp = auth.timestamp.unwrap_or_default();
        self.is_authenticated = text(auth.client_id).as_deref() == Some(CLIENT_ID)
            && verify_client_signature(SECRET.as_bytes(), timestamp, &nonce, "", &signature);
        if self.is_authenticated {
            Ok(LOGIN.to_owned())
        } else {
            Err(Refusal::new(request.id, ErrorCode::InvalidCredentials))
        }
    }

    fn enter(&mut self, order: &PlaceOrder<'_>) -> String {
        self.orders += 1;
        let (label, amount, price) = (
            order.label.map(|label| label.to_string()).unwrap_or_default(),
            order.amount.unwrap_or_default(),
            order.price.unwrap_or_default(),
        );
        format!(
            r#"{{"order":{{"label":"{label}","price":{price},"user_id":10580,"amount":{amount},"direction":"buy","time_in_force":"good_til_cancelled","instrument_name":"BTC-PERPETUAL","web":false,"api":true,"order_id":"{}","creation_timestamp":1765463719142,"replaced":false,"filled_amount":0.0,"last_update_timestamp":1765463719142,"post_only":false,"reduce_only":false,"average_price":0.0,"mmp":false,"contracts":1.0,"order_state":"open","order_type":"limit","is_liquidation":false,"risk_reducing":false}},"trades":[]}}"#,
            self.orders
        )
    }

    fn subscribe(&mut self, wanted: &Subscribe<'_>) -> String {
        let mut names = Vec::new();
        for channel in wanted.channels.iter().flatten().map(|channel| channel.to_string()) {
            // No changes are sent on other channels.
            let count = if channel == CHANNEL { CHANGES } else { 0 };
            for _ in 0..count {
                let (mut out, change) = (Vec::new(), check(CHANGE.as_bytes()).expect("the change is JSON"));
                write_notification(&channel, &change, None, &mut out);
                self.changes.extend(String::from_utf8(out));
            }
            names.push(format!("\"{channel}\""));
        }
        format!("[{}]", names.join(","))
    }
}

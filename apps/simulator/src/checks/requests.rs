//! The log has every request of a user exactly once, in the order in which the venue read the requests.

use std::collections::BTreeMap;

use tickpath_exchange::LogCommand;
use tickpath_matching::{Command, CommandKind};
use tickpath_nasdaq::ouch50::{RequestError, decode_request};
use tickpath_types::{InstrumentTable, Nanos, OrderRequest, SessionId};

use super::Case;
use super::views::{InstanceEnd, VenueInstance};
use super::wire::{is_refused, is_request as matches_request, soup_packet};
use crate::{ClientEventKind, ClientLog, LoginOutcome};

/// A client's request, as the venue read it.
#[derive(Clone, Debug)]
pub(super) struct ReadRequest {
    pub(super) connection: u32,
    at: Nanos,
    pub(super) kernel_ns: u64,
    bytes: Vec<u8>,
    /// True if the client was certainly logged in on this connection; else the venue may drop the request.
    is_certain: bool,
}

/// The request that became each command of the log; `None` for the venue's own commands.
pub(super) type Origins = Vec<Option<ReadRequest>>;

pub(super) fn check(case: &Case<'_>) {
    let (_, problems) = origins(case);
    problems.into_iter().for_each(|problem| case.fail(|| problem));
    check_unlogged(case);
}

/// Checks the number of new orders and queries that the venue refused without a record because the log was
/// full.
fn check_unlogged(case: &Case<'_>) {
    for unlogged in &case.observed.log.unlogged {
        let (mut certain, mut possible) = (0, 0);
        for client in &case.observed.clients {
            let reads = reads_of(client).into_iter();
            for read in reads.filter(|read| read.at == unlogged.at && is_unlogged(case, read)) {
                possible += 1;
                certain += u64::from(read.is_certain);
            }
        }
        case.expect(certain <= unlogged.value && unlogged.value <= possible, || {
            format!(
                "at {} ns {} requests were refused without a record, of {certain} to {possible} that may be",
                unlogged.at.0, unlogged.value
            )
        });
    }
}

/// Returns true for a new order or query read in a duty cycle that refused some requests without a record.
fn is_unlogged(case: &Case<'_>, read: &ReadRequest) -> bool {
    let is_of_cycle = case.observed.log.unlogged.binary_search_by_key(&read.at, |cycle| cycle.at).is_ok();
    is_of_cycle
        && matches!(
            decode_request(&read.bytes, |symbol| case.truth.table.find(symbol)),
            Ok(OrderRequest::Enter(_) | OrderRequest::Replace(_))
                | Err(RequestError::Refused { .. } | RequestError::AccountQuery)
        )
}

/// Returns the request that became each command, and the problems found while matching them.
pub(super) fn origins(case: &Case<'_>) -> (Origins, Vec<String>) {
    let mut origins = vec![None; case.observed.log.commands.len()];
    let mut problems = Vec::new();
    for client in &case.observed.clients {
        let reads = reads_of(client);
        for instance in &case.views.instances {
            problems.extend(match_instance(case, client.session, instance, &reads, &mut origins));
        }
    }
    (origins, problems)
}

/// Returns true if a client requested the command, false for the venue's own commands.
fn is_request(command: &Command) -> bool {
    matches!(
        command.kind,
        CommandKind::Order(_) | CommandKind::GatewayReject { .. } | CommandKind::AccountQuery
    )
}

fn match_instance(
    case: &Case<'_>,
    session: SessionId,
    instance: &VenueInstance,
    reads: &[ReadRequest],
    origins: &mut Origins,
) -> Option<String> {
    let table = &case.truth.table;
    let mut reads = reads
        .iter()
        .filter(|read| instance.started_at <= read.at && read.at <= instance.ended_at)
        .filter(|read| is_logged(table, &read.bytes) && !is_unlogged(case, read))
        .peekable();
    let first = instance.after.0 as usize;
    let commands = case.observed.log.commands.get(first..instance.last.0 as usize).unwrap_or_default();
    let executed = commands.iter().filter_map(LogCommand::engine);
    let own = executed.filter(|command| command.session == session && is_request(command));
    for command in own {
        // Skip requests that the venue may drop, since the client was not certainly logged in.
        while reads.next_if(|read| !read.is_certain && !is_same(table, &read.bytes, command)).is_some() {}
        match reads.next_if(|read| is_same(table, &read.bytes, command)) {
            Some(read) => origins[command.sequence.0 as usize - 1] = Some(read.clone()),
            None => {
                let next = reads.peek().map(|read| (read.connection, read.at.0, &read.bytes));
                return Some(format!(
                    "command {} of session {session} is not the next request that was read: {:?}; that is {next:?}",
                    command.sequence, command.kind
                ));
            }
        }
    }
    // A venue that crashed or failed may have read requests that it did not log, and one that stopped only
    // the latest ones.
    let must_log_until = match instance.end {
        _ if instance.has_failed => Nanos::ZERO,
        InstanceEnd::Crashed => Nanos::ZERO,
        InstanceEnd::Stopped => Nanos(instance.ended_at.0.saturating_sub(case.observed.setup.reaction_max.0)),
        InstanceEnd::Alive => Nanos::MAX,
    };
    let missing = reads.find(|read| read.is_certain && read.at < must_log_until)?;
    Some(format!(
        "session {session}: a request read at {} ns on connection {} is not in the log: {:?}",
        missing.at.0, missing.connection, missing.bytes
    ))
}

/// Returns true unless the request is malformed: the venue logs no malformed requests.
fn is_logged(table: &InstrumentTable, bytes: &[u8]) -> bool {
    !matches!(decode_request(bytes, |symbol| table.find(symbol)), Err(RequestError::Malformed(_)))
}

/// Returns true if the command is this request, or the gateway's rejection of it.
fn is_same(table: &InstrumentTable, bytes: &[u8], command: &Command) -> bool {
    match (decode_request(bytes, |symbol| table.find(symbol)), &command.kind) {
        (Ok(request), CommandKind::Order(logged)) => {
            request == *logged && matches_request(bytes, logged, |id| table.symbol(id))
        }
        (
            Ok(OrderRequest::Enter(_) | OrderRequest::Replace(_)) | Err(RequestError::Refused { .. }),
            CommandKind::GatewayReject { user_ref, client_order_id, .. },
        ) => is_refused(bytes, *user_ref, *client_order_id),
        (Err(RequestError::AccountQuery), CommandKind::AccountQuery) => true,
        _ => false,
    }
}

/// Returns the requests that the venue read from a client, in order.
pub(super) fn reads_of(client: &ClientLog) -> Vec<ReadRequest> {
    let is_accepted = |connection: u32| {
        client.events.iter().any(|event| {
            event.connection == connection
                && matches!(event.kind, ClientEventKind::LoginAnswered(LoginOutcome::Accepted { .. }))
        })
    };
    let mut reads = Vec::new();
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    for event in &client.events {
        let ClientEventKind::ReadByVenue { kernel_ns, bytes } = &event.kind else { continue };
        let connection = event.connection;
        let stream = streams.entry(connection).or_default();
        stream.bytes.extend_from_slice(bytes);
        while let Some(bytes) = stream.next_request() {
            let is_certain = is_accepted(connection);
            reads.push(ReadRequest { connection, at: event.at, kernel_ns: *kernel_ns, bytes, is_certain });
        }
    }
    reads
}

/// Bytes received on a connection and not yet consumed.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    /// True once the client logged out or sent invalid SoupBinTCP: later bytes are ignored.
    is_over: bool,
}

impl Stream {
    fn next_request(&mut self) -> Option<Vec<u8>> {
        while !self.is_over {
            // A packet of length 0 is invalid: it lacks its type.
            self.is_over = self.bytes.starts_with(&[0, 0]);
            let (kind, payload, used) = soup_packet(&self.bytes)?;
            self.is_over = !matches!((kind, payload.len()), (b'U' | b'+', _) | (b'L', 46) | (b'R', 0));
            let request = (kind == b'U').then(|| payload.to_vec());
            self.bytes.drain(..used);
            if request.is_some() {
                return request;
            }
        }
        None
    }
}

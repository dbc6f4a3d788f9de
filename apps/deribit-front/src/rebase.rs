//! Repair of records beyond the end of a log that lost commands.
//!
//! A record contains the number of commands before it. If the log is shorter at a start than it was, later
//! records have no place, and the order numbers in them are assigned again. Such records are moved to the end
//! of the log or dropped, before the venue accepts a command:
//!
//! - Decisions of the front itself are kept: prices, settlements, deliveries, transfers and untriggered
//!   orders. An untriggered order that was entered by a lost command waits again.
//! - Linked orders keep their state at the end of the log. Later ones are cancelled.
//! - Other records name lost orders and are dropped.

use std::collections::HashSet;

use crate::record::{Record, Stamped};

/// State of the log at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStart {
    /// Number of its commands.
    pub commands: u64,
    /// Number of starts before which acknowledged commands may have been lost.
    pub generation: u32,
}

/// The records after a possible loss of log commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebased {
    /// All records, as lines.
    pub lines: Vec<u8>,
    /// Message for the operator; none if there were no records.
    pub notice: Option<String>,
}

/// Moves records from beyond the end of the log and records its generation; returns none if nothing changes.
pub(crate) fn rebase(records: &mut Vec<Stamped>, log: LogStart, now_ms: u64) -> Option<Rebased> {
    let limits = limits(records, log.commands);
    let is_short = records.iter().zip(&limits).any(|(stamped, limit)| is_behind(stamped, *limit));
    if !is_short && generation_of(records) == log.generation {
        return None;
    }
    let had_any = !records.is_empty();
    // The start continues at the time of the latest record.
    let at_ms = records.iter().map(|stamped| stamped.at_ms).max().unwrap_or(now_ms);
    let mut moving = Moving::default();
    for (stamped, limit) in records.drain(..).zip(limits) {
        // Tokens end: clients must log in again, because their order ids may now name other orders.
        if !stamped.record.is_token() {
            moving.take(stamped, limit);
        }
    }
    let record = Record::LogLost { generation: log.generation };
    moving.kept.push(Stamped { after: log.commands, at_ms, record });
    let notice = had_any.then(|| moving.notice(log));
    *records = moving.kept;
    let mut lines = Vec::new();
    records.iter().for_each(|stamped| stamped.write(&mut lines));
    Some(Rebased { lines, notice })
}

/// Returns the log generation according to the records.
fn generation_of(records: &[Stamped]) -> u32 {
    let noted = records.iter().rev().find_map(|stamped| match stamped.record {
        Record::LogLost { generation } => Some(generation),
        _ => None,
    });
    noted.unwrap_or(0)
}

/// Returns the maximum place of each record. Files may contain records that were never moved: a later record
/// then has fewer commands before it, because the log lost its end between them.
fn limits(records: &[Stamped], commands: u64) -> Vec<u64> {
    let mut limit = commands;
    let limit_of = |stamped: &Stamped| {
        if !stamped.record.is_token() {
            limit = limit.min(stamped.after);
        }
        limit
    };
    let mut limits: Vec<u64> = records.iter().rev().map(limit_of).collect();
    limits.reverse();
    limits
}

fn is_behind(stamped: &Stamped, limit: u64) -> bool {
    stamped.after > limit && !stamped.record.is_token()
}

/// State of the move.
#[derive(Default)]
struct Moving {
    kept: Vec<Stamped>,
    /// Linked orders that wait at or before the end of the log.
    linked: HashSet<u64>,
    /// Linked orders from beyond the end.
    ended: HashSet<u64>,
    moved_count: usize,
    left_out_count: usize,
}

impl Moving {
    fn take(&mut self, stamped: Stamped, limit: u64) {
        if !is_behind(&stamped, limit) {
            if let Record::Waits(order) = &stamped.record
                && order.link.is_some()
            {
                self.linked.insert(order.number);
            }
            return self.kept.push(stamped);
        }
        let Stamped { at_ms, record, .. } = stamped;
        let keep = |record| Stamped { after: limit, at_ms, record };
        match record {
            Record::Waits(mut order) if order.link.is_some() => {
                let number = order.number;
                if self.linked.contains(&number) || !self.ended.insert(number) {
                    return self.left_out_count += 1;
                }
                // It is kept for display, and to reserve its number. Its links are removed, because their
                // numbers may belong to other orders.
                order.part_of = None;
                if let Some(link) = &mut order.link {
                    (link.primary_id, link.oco_ref) = (String::new(), String::new());
                }
                self.kept.extend([keep(Record::Waits(order)), keep(Record::LinkLost { number })]);
            }
            Record::Trails { number, .. }
            | Record::WaitsNoMore { number }
            | Record::HandedOver { number, .. }
                if self.linked.contains(&number) || self.ended.contains(&number) =>
            {
                self.left_out_count += 1;
            }
            Record::LinksAsked { .. }
            | Record::Linked { .. }
            | Record::EnteredAgain { .. }
            | Record::NeverAsked { .. } => self.left_out_count += 1,
            record => {
                self.moved_count += 1;
                self.kept.push(keep(record));
            }
        }
    }

    fn notice(&self, log: LogStart) -> String {
        let LogStart { commands, generation } = log;
        format!(
            "the journal ends with command {commands}, in generation {generation}, and commands after it may be lost: of the \
             Deribit front's records {} were moved there, {} about lost commands were left out, {} linked orders were \
             cancelled, and tokens were ended: clients must log in again and reconcile",
            self.moved_count,
            self.left_out_count,
            self.ended.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Link, WaitingOrder};

    const STOP: u64 = 1 << 63 | 1;
    const CHILD: u64 = 1 << 63 | 2;
    const ARMED: u64 = 1 << 63 | 3;

    fn waits(number: u64, is_linked: bool) -> Record {
        let link = is_linked.then(|| Box::new(Link { oco_ref: "OCO-9".to_owned(), ..Link::default() }));
        Record::Waits(WaitingOrder { number, link, ..WaitingOrder::default() })
    }

    fn handed_over(number: u64) -> Record {
        Record::HandedOver { number, qty: 1, user_ref: 1 }
    }

    fn linked(number: u64) -> Record {
        Record::Linked { account: "ANNA".to_owned(), number, link: Link::default() }
    }

    fn stamped(records: impl IntoIterator<Item = (u64, Record)>) -> Vec<Stamped> {
        let records = records.into_iter();
        records.map(|(after, record)| Stamped { after, at_ms: after, record }).collect()
    }

    /// Moves records; checks that the written lines are read back and are not moved again.
    fn check(records: &mut Vec<Stamped>, log: LogStart) -> String {
        let rebased = rebase(records, log, 0).expect("the log lost commands");
        assert_eq!(Stamped::read_all(&rebased.lines).unwrap(), *records);
        assert_eq!(rebase(&mut records.clone(), log, 0), None, "once");
        let later = LogStart { commands: log.commands + 7, ..log };
        assert_eq!(rebase(&mut records.clone(), later, 0), None, "nor when the log has more again");
        rebased.notice.unwrap()
    }

    #[test]
    fn what_the_front_decided_is_moved_and_what_names_lost_orders_is_not() {
        let log = LogStart { commands: 10, generation: 1 };
        let never_asked = Record::NeverAsked { account: "ANNA".to_owned(), user_ref: 1 };
        let mut records = stamped([
            (3, waits(STOP, false)),
            (9, waits(CHILD, true)),
            (9, linked(9)),
            (11, waits(ARMED, true)),
            (11, Record::WaitsNoMore { number: CHILD }),
            (12, Record::Trails { number: STOP, price: 7 }),
            (12, handed_over(STOP)),
            (12, Record::WaitsNoMore { number: STOP }),
            (13, handed_over(ARMED)),
            (13, Record::WaitsNoMore { number: ARMED }),
            (13, linked(13)),
            (14, never_asked),
            (15, Record::Settled),
        ]);
        let notice = check(&mut records, log);
        assert!(
            notice.contains("4 were moved there, 5 about lost commands were left out, 1 linked"),
            "{notice}"
        );
        let ended = Record::Waits(WaitingOrder {
            number: ARMED,
            link: Some(Box::default()),
            ..WaitingOrder::default()
        });
        let expected = [
            (3, 3, waits(STOP, false)),
            (9, 9, waits(CHILD, true)),
            (9, 9, linked(9)),
            (10, 11, ended),
            (10, 11, Record::LinkLost { number: ARMED }),
            (10, 12, Record::Trails { number: STOP, price: 7 }),
            (10, 12, handed_over(STOP)),
            (10, 12, Record::WaitsNoMore { number: STOP }),
            (10, 15, Record::Settled),
            (10, 15, Record::LogLost { generation: 1 }),
        ];
        assert_eq!(records, expected.map(|(after, at_ms, record)| Stamped { after, at_ms, record }));
    }

    #[test]
    fn a_loss_is_known_by_the_generation_alone() {
        let log = LogStart { commands: 10, generation: 2 };
        let digest = "d".to_owned();
        let mut records = stamped([(3, Record::Settled), (4, Record::TokenEnds { digest })]);
        check(&mut records, log);
        assert_eq!(records.len(), 2, "tokens are ended: {records:?}");
        assert_eq!(rebase(&mut stamped([(3, Record::Settled)]), LogStart { generation: 0, ..log }, 0), None);
        let first = rebase(&mut Vec::new(), log, 5).unwrap();
        assert_eq!(first.notice, None, "there was nothing before");
    }

    /// Files may contain records that were left in place, followed by others.
    #[test]
    fn a_file_in_which_places_go_back_is_put_in_order() {
        let log = LogStart { commands: 30, generation: 0 };
        let mut records = stamped([
            (20, linked(20)),
            (20, Record::Settled),
            (10, waits(STOP, false)),
            (25, handed_over(STOP)),
            (12, waits(STOP, false)),
        ]);
        check(&mut records, log);
        let places: Vec<u64> = records.iter().map(|stamped| stamped.after).collect();
        assert_eq!(places, [10, 10, 12, 12, 30]);
    }
}

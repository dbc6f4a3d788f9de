//! Compares the books with their reference model, and describes the first difference.

use tickpath_book::{BooksById, Indexed};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Side};

use crate::protocol::RecordedProtocol;
use crate::updates::Updates;

/// A function that returns the symbol of an instrument id.
pub(crate) type Names<'a> = dyn Fn(u16) -> String + 'a;

/// The result of the comparison of the books with their reference model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelReport {
    /// Number of messages between comparisons of all books.
    pub every: u64,
    /// Number of comparisons of all books, including that at the end.
    pub comparisons: u64,
    /// Digest of all books at the last comparison.
    pub state_hash: u64,
    /// The first difference, as text; `None` if there is none.
    pub difference: Option<String>,
}

/// The reference model of a recording's books, to which the same messages are applied.
///
/// After each part (up to `PART_LEN` messages), the updates of the books are compared with those of the
/// model. The digests of all books are compared every [`ModelReport::every`] messages and at the end. Nothing
/// is compared after the first difference, because it would cause further ones.
pub(crate) struct ReferenceModel<P: RecordedProtocol> {
    pub(crate) books: P::Books<Indexed<ReferenceBooks>>,
    updates: Updates,
    next_at: u64,
    report: ModelReport,
}

impl<P: RecordedProtocol> ReferenceModel<P> {
    pub(crate) fn new(books: P::Books<Indexed<ReferenceBooks>>, every: u64) -> ReferenceModel<P> {
        let report = ModelReport { every, ..ModelReport::default() };
        ReferenceModel { books, updates: Updates::of_reference(), next_at: every, report }
    }

    /// Number of messages that may be applied to the books after message `number` before the next comparison.
    pub(crate) fn messages_to_comparison(&self, number: u64) -> u64 {
        self.next_at.saturating_sub(number)
    }

    /// Applies to the reference model messages that were already applied to `books`, where they caused
    /// `updates`. Compares the updates of both, and all books if a comparison is due.
    pub(crate) fn apply_and_compare(
        &mut self,
        first: u64,
        messages: &[P::Message<'_>],
        updates: &Updates,
        books: &impl BooksById,
        names: &Names,
        place: impl Fn(usize) -> String,
    ) {
        if self.report.difference.is_some() || messages.is_empty() {
            return;
        }
        self.updates.start(messages.len());
        P::apply(&mut self.books, first, messages, &mut self.updates);
        if self.updates.list != updates.list {
            self.report.difference = Some(self.first_update_difference(first, updates, names, place));
            return;
        }
        let last = first + messages.len() as u64 - 1;
        if last >= self.next_at {
            self.next_at = last + self.report.every;
            self.compare(books, names, &format!("message {last} ({})", place(messages.len() - 1)));
        }
    }

    /// Makes the last comparison, and returns the report.
    pub(crate) fn finish(mut self, books: &impl BooksById, names: &Names) -> ModelReport {
        if self.report.difference.is_none() {
            self.compare(books, names, "the last message");
        }
        self.report
    }

    fn compare(&mut self, books: &impl BooksById, names: &Names, when: &str) {
        let reference = P::orders(&self.books);
        self.report.comparisons += 1;
        self.report.state_hash = books.state_hash();
        if self.report.state_hash != reference.state_hash() {
            let difference = first_difference(books, reference, names);
            let every = self.report.every;
            self.report.difference = Some(format!(
                "the books differ from the reference model after {when}, and agreed {every} messages earlier: {difference}"
            ));
        }
    }

    fn first_update_difference(
        &self,
        first: u64,
        updates: &Updates,
        names: &Names,
        place: impl Fn(usize) -> String,
    ) -> String {
        let (ours, reference) = (&updates.list, &self.updates.list);
        let index =
            ours.iter().zip(reference).position(|(a, b)| a != b).unwrap_or(ours.len().min(reference.len()));
        let (ours, reference) = (ours.get(index), reference.get(index));
        let number = ours.into_iter().chain(reference).map(|update| update.sequence).min().unwrap_or(first);
        let symbol = names(ours.or(reference).map_or(0, |update| update.instrument));
        format!(
            "message {number} ({}), {symbol}: the books say {ours:?} and the reference model {reference:?}",
            place((number - first) as usize)
        )
    }
}

/// Describes the first level or order in which two sets of books differ.
fn first_difference(ours: &impl BooksById, reference: &impl BooksById, names: &Names) -> String {
    for instrument in (0..=ours.limits().max_instrument.0).map(InstrumentId) {
        let symbol = || names(instrument.0);
        for side in Side::BOTH {
            let (mut a, mut b) = (ours.levels(instrument, side), reference.levels(instrument, side));
            let mut rank = 0;
            loop {
                rank += 1;
                match (a.next(), b.next()) {
                    (None, None) => break,
                    (a, b) if a == b => {}
                    (a, b) => {
                        return format!(
                            "{}, {side} level {rank}: {a:?} in the books, {b:?} in the reference model",
                            symbol()
                        );
                    }
                }
            }
            let orders = ours.orders(instrument, side);
            let reference_orders = reference.orders(instrument, side);
            if let Some((a, b)) = orders.zip(reference_orders).find(|(a, b)| a != b) {
                return format!(
                    "{}, {side} order {}: {a:?} in the books, {b:?} in the reference model",
                    symbol(),
                    a.id
                );
            }
        }
    }
    "only their digests differ".to_owned()
}

#[cfg(test)]
mod tests {
    use tickpath_book::{BookLimits, FastBooks};
    use tickpath_types::{Price, Qty};

    use super::*;
    use crate::protocols::event_books::EventBooks;
    use crate::protocols::events::Events;
    use crate::protocols::lobster::Lobster;
    use crate::{EventKind, Level, RecordedEvent, RecordingInfo};

    type Tested = Events<Lobster>;

    const LIMITS: BookLimits = BookLimits::new(InstrumentId(3), 100);

    fn books<B: BooksById>() -> EventBooks<B> {
        EventBooks::new(B::new(LIMITS), RecordingInfo::ORDER_BY_ORDER)
    }

    fn add(order_id: u64, price: i64, qty: u64) -> RecordedEvent {
        let level = Level { side: Side::Buy, price: Price(price) };
        let kind = EventKind::Add { order_id, level, qty: Qty(qty) };
        RecordedEvent { ts_ns: order_id, kind, ..RecordedEvent::NOTHING }
    }

    /// Feeds `ours` to the books and `theirs` to the model, one message at a time.
    fn check(ours: &[RecordedEvent], theirs: &[RecordedEvent], every: u64) -> ModelReport {
        let mut fast = books::<Indexed<FastBooks>>();
        let mut model = ReferenceModel::<Tested>::new(books::<Indexed<ReferenceBooks>>(), every);
        let names = |_| "ABC".to_owned();
        for (number, (our, their)) in (1..).zip(ours.iter().zip(theirs)) {
            let mut updates = Updates::default();
            Tested::apply(&mut fast, number, std::slice::from_ref(our), &mut updates);
            let place = |_| format!("byte {}", number * 10);
            model.apply_and_compare(
                number,
                std::slice::from_ref(their),
                &updates,
                fast.books(),
                &names,
                place,
            );
        }
        model.finish(fast.books(), &names)
    }

    #[test]
    fn equal_books_are_compared_every_so_often_and_at_the_end() {
        let events: Vec<_> = (1..=10).map(|id| add(id, 100 - id as i64, 5)).collect();
        let report = check(&events, &events, 4);
        assert_eq!((report.comparisons, report.difference), (3, None));
    }

    #[test]
    fn a_message_whose_effect_differs_is_named() {
        let ours: Vec<_> = (1..=10).map(|id| add(id, 100, 5)).collect();
        let mut theirs = ours.clone();
        theirs[6] = add(7, 100, 6);
        let difference = check(&ours, &theirs, 100).difference.unwrap();
        assert!(difference.contains("message 7 (byte 70), ABC"), "{difference}");
    }

    #[test]
    fn a_difference_that_no_update_shows_is_found_in_the_books() {
        // Swap the arrival of two orders below the best level: no update differs, as the best level is equal.
        let mut ours = vec![add(1, 100, 5), add(2, 90, 5), add(3, 90, 5)];
        let mut fast = books::<Indexed<FastBooks>>();
        let mut updates = Updates::default();
        Tested::apply(&mut fast, 1, &ours, &mut updates);
        ours.swap(1, 2);
        let mut reference = books::<Indexed<ReferenceBooks>>();
        Tested::apply(&mut reference, 1, &ours, &mut Updates::default());
        let model = ReferenceModel { next_at: 3, ..ReferenceModel::<Tested>::new(reference, 3) };
        let names = |_| "ABC".to_owned();
        let difference = model.finish(fast.books(), &names).difference.unwrap();
        assert!(difference.contains("ABC, buy order 2:"), "{difference}");
        let mut more = books::<Indexed<ReferenceBooks>>();
        Tested::apply(&mut more, 1, &[add(1, 100, 5), add(2, 90, 5), add(4, 80, 5)], &mut Updates::default());
        let difference =
            ReferenceModel::<Tested>::new(more, 3).finish(fast.books(), &names).difference.unwrap();
        assert!(difference.contains("ABC, buy level 2"), "{difference}");
    }
}

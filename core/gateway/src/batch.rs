//! Events that one venue message causes, marked as a batch: in each ring only the last one has the
//! last-in-batch flag.

use rustc_hash::{FxBuildHasher, FxHashMap};
use tickpath_gateway_protocol::Event;

use super::clients::CLIENTS_MAX;
use super::out::EventSink;

/// The latest event of each ring, held until it is known whether others follow.
#[derive(Debug)]
pub(super) struct Held {
    broadcast: Option<Event>,
    sent: Vec<(u32, Event)>,
    /// Index in `sent` for each client, used once there are more than [`FEW`].
    places: FxHashMap<u32, u32>,
}

/// Up to this number a linear search is fastest.
const FEW: usize = 8;

impl Held {
    pub(super) fn new() -> Held {
        let places = FxHashMap::with_capacity_and_hasher(CLIENTS_MAX, FxBuildHasher);
        Held { broadcast: None, sent: Vec::with_capacity(CLIENTS_MAX), places }
    }

    /// A placeholder without capacity while the real one is in use.
    pub(super) const fn none() -> Held {
        Held { broadcast: None, sent: Vec::new(), places: FxHashMap::with_hasher(FxBuildHasher) }
    }

    /// Returns the held event of a client.
    #[inline]
    fn of(&mut self, client: u32) -> Option<&mut Event> {
        if self.sent.len() <= FEW {
            return self.sent.iter_mut().find(|(known, _)| *known == client).map(|(_, event)| event);
        }
        let place = *self.places.get(&client)?;
        self.sent.get_mut(place as usize).map(|(_, event)| event)
    }

    /// Stores a client's first event.
    #[inline]
    fn push(&mut self, client: u32, event: Event) {
        self.sent.push((client, event));
        if self.sent.len() > FEW {
            self.note_places();
        }
    }

    #[cold]
    fn note_places(&mut self) {
        let places = self.places.len()..self.sent.len();
        self.places.extend(places.map(|place| (self.sent[place].0, place as u32)));
    }
}

/// An event sink that holds back the latest event of each ring. [`finish`](Batch::finish) sends them.
pub(super) struct Batch<'a, D> {
    door: &'a mut D,
    held: Held,
}

impl<'a, D: EventSink> Batch<'a, D> {
    pub(super) const fn new(door: &'a mut D, held: Held) -> Batch<'a, D> {
        Batch { door, held }
    }

    /// Sends the held events and returns the buffer.
    pub(super) fn finish(mut self) -> Held {
        if let Some(event) = self.held.broadcast.take() {
            self.door.broadcast(event);
        }
        for (client, event) in self.held.sent.drain(..) {
            self.door.send(client, event);
        }
        self.held.places.clear();
        self.held
    }
}

impl<D: EventSink> EventSink for Batch<'_, D> {
    #[inline]
    fn send(&mut self, client: u32, event: Event) {
        match self.held.of(client) {
            Some(held) => self.door.send(client, std::mem::replace(held, event).with_more()),
            None => self.held.push(client, event),
        }
    }

    #[inline]
    fn broadcast(&mut self, event: Event) {
        if let Some(earlier) = self.held.broadcast.replace(event) {
            self.door.broadcast(earlier.with_more());
        }
    }

    fn follow(&mut self, client: u32, symbol: u32) {
        self.door.follow(client, symbol);
    }

    fn room(&self, client: u32) -> usize {
        self.door.room(client)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_gateway_protocol::{MarketStatus, TopOfBook};

    use super::*;

    #[derive(Default)]
    struct Rings(Vec<(u32, Event)>);

    impl EventSink for Rings {
        fn send(&mut self, client: u32, event: Event) {
            self.0.push((client, event));
        }
        fn broadcast(&mut self, event: Event) {
            self.0.push((0, event));
        }
        fn follow(&mut self, _: u32, _: u32) {}
        fn room(&self, _: u32) -> usize {
            1
        }
    }

    #[test]
    fn of_each_ring_the_last_alone_is_the_last() {
        let mut rings = Rings::default();
        let (status, top) = (Event::of(&MarketStatus::default()), Event::of(&TopOfBook::default()));
        let mut batch = Batch::new(&mut rings, Held::new());
        batch.broadcast(status);
        batch.send(7, status);
        batch.broadcast(top);
        batch.send(8, top);
        batch.send(7, top);
        let held = batch.finish();
        assert!(held.broadcast.is_none() && held.sent.is_empty());
        let told: Vec<(u32, bool, bool)> = rings
            .0
            .iter()
            .map(|(ring, event)| (*ring, event.header.kind == top.header.kind, event.is_last_in_batch()))
            .collect();
        assert_eq!(
            told,
            [(0, false, false), (7, false, false), (0, true, true), (7, true, true), (8, true, true)]
        );
    }

    #[test]
    fn of_many_rings_each_is_found_again_and_none_is_left_for_the_next_message() {
        let mut held = Held::new();
        let room = (held.sent.capacity(), held.places.capacity());
        let event = Event::of(&TopOfBook::default());
        for clients in [CLIENTS_MAX as u32, 3, 9, 100] {
            let mut rings = Rings::default();
            let mut batch = Batch::new(&mut rings, held);
            for client in (1..=clients).chain(1..=clients) {
                batch.send(client * 7, event);
            }
            held = batch.finish();
            let ends: Vec<bool> = rings.0.iter().map(|(_, event)| event.is_last_in_batch()).collect();
            let half = clients as usize;
            assert!(ends.len() == 2 * half && ends[..half].iter().all(|is_last| !is_last), "{clients}");
            assert!(ends[half..].iter().all(|is_last| *is_last), "{clients}");
            let numbers: Vec<u32> = rings.0[..half].iter().map(|(client, _)| client / 7).collect();
            assert!(numbers.into_iter().eq(1..=clients), "{clients}");
            assert!(held.sent.is_empty() && held.places.is_empty());
        }
        assert_eq!((held.sent.capacity(), held.places.capacity()), room, "nothing was allocated");
    }
}

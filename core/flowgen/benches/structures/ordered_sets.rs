//! Books with one set of orders per side, sorted by price and arrival, and a map from order references to
//! copies of the orders, or to their nodes in the set.

use std::collections::{BTreeMap, HashMap};

use tickpath_book::{Level, Order, OrderHandle};
use tickpath_types::{InstrumentId, Price, Qty, Side};

use crate::books::{Books, HandleBooks, Limits, Resting, key, levels_of, order_of, price, side_index};
use crate::red_black::{NIL, Place, Set, Sets};

/// Data of an order in a set.
#[derive(Clone, Copy, Default)]
pub struct Element {
    id: u64,
    qty: u64,
}

/// One ordered set of orders per side, searched by [`Place`].
pub trait OrderedSets {
    /// Creates empty sets.
    fn new(limits: Limits) -> Self;
    /// Adds an order.
    fn insert(&mut self, side: usize, place: Place, element: Element);
    /// The order at a place.
    fn find_mut(&mut self, side: usize, place: Place) -> &mut Element;
    /// Removes an order.
    fn remove(&mut self, side: usize, place: Place);
    /// Key of the best order.
    fn first_key(&self, side: usize) -> Option<i64>;
    /// Orders of a side from the best.
    fn iter(&self, side: usize) -> impl Iterator<Item = (i64, Element)>;
}

const KEPT: &str = "an order of which there is a copy is in its set";

/// Red-black trees.
pub struct RedBlack {
    sets: Vec<Set>,
    nodes: Sets<Element>,
}

impl RedBlack {
    fn find(&self, side: usize, place: Place) -> u32 {
        let node = self.nodes.find(self.sets[side], place);
        assert!(node != NIL, "{KEPT}");
        node
    }
}

impl OrderedSets for RedBlack {
    fn new(limits: Limits) -> Self {
        RedBlack { sets: vec![Set::EMPTY; limits.sides()], nodes: Sets::new(limits.max_orders) }
    }

    fn insert(&mut self, side: usize, place: Place, element: Element) {
        self.nodes.insert(&mut self.sets[side], place, element);
    }

    fn find_mut(&mut self, side: usize, place: Place) -> &mut Element {
        let node = self.find(side, place);
        self.nodes.value_mut(node)
    }

    fn remove(&mut self, side: usize, place: Place) {
        let node = self.find(side, place);
        self.nodes.remove(&mut self.sets[side], node);
    }

    #[inline]
    fn first_key(&self, side: usize) -> Option<i64> {
        let first = self.sets[side].first();
        (first != NIL).then(|| self.nodes.place(first).key)
    }

    fn iter(&self, side: usize) -> impl Iterator<Item = (i64, Element)> {
        self.nodes.iter(self.sets[side]).map(|(place, element)| (place.key, element))
    }
}

/// The B-trees of Rust's standard library.
pub struct BTrees(Vec<BTreeMap<(i64, u64), Element>>);

/// Negates the key, because the first element of a B-tree is its smallest.
const fn ascending(place: Place) -> (i64, u64) {
    (-place.key, place.arrival)
}

impl OrderedSets for BTrees {
    fn new(limits: Limits) -> Self {
        BTrees(vec![BTreeMap::new(); limits.sides()])
    }

    fn insert(&mut self, side: usize, place: Place, element: Element) {
        self.0[side].insert(ascending(place), element);
    }

    fn find_mut(&mut self, side: usize, place: Place) -> &mut Element {
        self.0[side].get_mut(&ascending(place)).expect(KEPT)
    }

    fn remove(&mut self, side: usize, place: Place) {
        self.0[side].remove(&ascending(place)).expect(KEPT);
    }

    #[inline]
    fn first_key(&self, side: usize) -> Option<i64> {
        self.0[side].first_key_value().map(|((key, _), _)| -key)
    }

    fn iter(&self, side: usize) -> impl Iterator<Item = (i64, Element)> {
        self.0[side].iter().map(|((key, _), element)| (-key, *element))
    }
}

/// Data of an order in the map, enough to find the order in its set.
#[derive(Clone, Copy)]
struct Copied {
    side: u32,
    place: Place,
    qty: u64,
}

/// Ordered sets, and a map from order references to copies of the orders.
pub struct Copies<S> {
    sets: S,
    copies: HashMap<u64, Copied>,
    arrivals: u64,
}

const RESTS: &str = "the day names only orders that rest";

impl<S: OrderedSets> Books for Copies<S> {
    fn new(limits: Limits) -> Self {
        let copies = HashMap::with_capacity(limits.max_orders as usize);
        Copies { sets: S::new(limits), copies, arrivals: 0 }
    }

    #[inline]
    fn add(&mut self, order: Order<()>) {
        self.arrivals += 1;
        let side = side_index(order.instrument, order.side);
        let place = Place { key: key(order.side, order.price), arrival: self.arrivals };
        self.sets.insert(side, place, Element { id: order.id.0, qty: order.qty.0 });
        self.copies.insert(order.id.0, Copied { side: side as u32, place, qty: order.qty.0 });
    }

    #[inline]
    fn reduce(&mut self, id: u64, qty: Qty) {
        let copy = self.copies.get_mut(&id).expect(RESTS);
        if copy.qty == qty.0 {
            self.remove(id);
            return;
        }
        copy.qty -= qty.0;
        self.sets.find_mut(copy.side as usize, copy.place).qty = copy.qty;
    }

    #[inline]
    fn remove(&mut self, id: u64) -> Order<()> {
        let copy = self.copies.remove(&id).expect(RESTS);
        self.sets.remove(copy.side as usize, copy.place);
        order_of(copy.side as usize, id, copy.place.key, copy.qty)
    }

    #[inline]
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        self.sets.first_key(side_index(instrument, side)).map(|key| price(side, key))
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level> {
        levels_of(&self.orders(instrument, side))
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting> {
        let view = |(key, Element { id, qty })| Resting { id, price: price(side, key), qty };
        self.sets.iter(side_index(instrument, side)).map(view).collect()
    }
}

/// Data of an order in a set. The order's node is its handle, which the `IdMap` of `Indexed` keeps.
#[derive(Clone, Copy, Default)]
struct Placed {
    id: u64,
    qty: u64,
    side: u32,
}

/// Red-black trees of orders; a handle is a node. Used with an `IdMap`, so only adding an order searches a
/// tree.
pub struct Handles {
    sets: Vec<Set>,
    nodes: Sets<Placed>,
    arrivals: u64,
}

impl HandleBooks for Handles {
    fn new(limits: Limits) -> Self {
        Handles { sets: vec![Set::EMPTY; limits.sides()], nodes: Sets::new(limits.max_orders), arrivals: 0 }
    }

    #[inline]
    fn add(&mut self, order: Order<()>) -> OrderHandle {
        self.arrivals += 1;
        let side = side_index(order.instrument, order.side);
        let place = Place { key: key(order.side, order.price), arrival: self.arrivals };
        let element = Placed { id: order.id.0, qty: order.qty.0, side: side as u32 };
        let node = self.nodes.insert(&mut self.sets[side], place, element);
        OrderHandle::new(node).expect("no element is the empty handle")
    }

    #[inline]
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty {
        let placed = self.nodes.value_mut(handle.slot());
        placed.qty -= qty.0;
        let left = Qty(placed.qty);
        if left.is_zero() {
            self.remove(handle);
        }
        left
    }

    #[inline]
    fn remove(&mut self, handle: OrderHandle) -> Order<()> {
        let node = handle.slot();
        let Placed { id, qty, side } = *self.nodes.value(node);
        let order = order_of(side as usize, id, self.nodes.place(node).key, qty);
        self.nodes.remove(&mut self.sets[side as usize], node);
        order
    }

    #[inline]
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        let first = self.sets[side_index(instrument, side)].first();
        (first != NIL).then(|| price(side, self.nodes.place(first).key))
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level> {
        levels_of(&self.orders(instrument, side))
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting> {
        let view =
            |(place, Placed { id, qty, .. }): (Place, _)| Resting { id, price: price(side, place.key), qty };
        self.nodes.iter(self.sets[side_index(instrument, side)]).map(view).collect()
    }
}

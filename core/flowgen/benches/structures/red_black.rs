//! Ordered sets as in the C++ standard library: red-black trees whose elements never move.
//!
//! All sets share one array of nodes that are linked by index, which uses caches better than an allocation
//! per element. As in C++, the first element is known without a search.

/// The null node below every leaf. A removal stores a parent in it, which only the same removal reads.
pub const NIL: u32 = 0;

const LEFT: usize = 0;

/// Position of an element in its set: by descending key, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Key; the greater one is better.
    pub key: i64,
    /// Arrival number; the smaller one is better.
    pub arrival: u64,
}

impl Place {
    #[inline]
    fn is_before(self, other: Place) -> bool {
        self.key > other.key || (self.key == other.key && self.arrival < other.arrival)
    }
}

struct Node<V> {
    place: Place,
    value: V,
    parent: u32,
    children: [u32; 2],
    is_red: bool,
}

/// One ordered set: its root node and its first element.
#[derive(Clone, Copy)]
pub struct Set {
    root: u32,
    first: u32,
}

impl Set {
    /// The empty set.
    pub const EMPTY: Set = Set { root: NIL, first: NIL };

    /// The first element, or `NIL`.
    #[inline]
    pub fn first(self) -> u32 {
        self.first
    }
}

/// The elements of all sets.
pub struct Sets<V> {
    nodes: Vec<Node<V>>,
    /// Free nodes, linked by `parent`.
    free: u32,
}

impl<V: Copy + Default> Sets<V> {
    /// Creates the shared array of nodes, with capacity for this many elements.
    pub fn new(capacity: u32) -> Sets<V> {
        let mut nodes = Vec::with_capacity(capacity as usize + 1);
        nodes.push(Node {
            place: Place { key: 0, arrival: 0 },
            value: V::default(),
            parent: NIL,
            children: [NIL; 2],
            is_red: false,
        });
        Sets { nodes, free: NIL }
    }

    /// Returns the value of an element.
    #[inline]
    pub fn value(&self, node: u32) -> &V {
        &self.node(node).value
    }

    /// Returns the mutable value of an element.
    #[inline]
    pub fn value_mut(&mut self, node: u32) -> &mut V {
        &mut self.nodes[node as usize].value
    }

    /// Returns the position of an element.
    #[inline]
    pub fn place(&self, node: u32) -> Place {
        self.node(node).place
    }

    /// Returns the element at a position, or `NIL`.
    pub fn find(&self, set: Set, place: Place) -> u32 {
        let mut node = set.root;
        while node != NIL && self.place(node) != place {
            node = self.child(node, usize::from(!place.is_before(self.place(node))));
        }
        node
    }

    /// Adds an element, and returns the node that holds it until its removal.
    pub fn insert(&mut self, set: &mut Set, place: Place, value: V) -> u32 {
        let (mut parent, mut direction, mut is_first) = (NIL, LEFT, true);
        let mut below = set.root;
        while below != NIL {
            parent = below;
            direction = usize::from(!place.is_before(self.place(below)));
            is_first &= direction == LEFT;
            below = self.child(below, direction);
        }
        let node = self.allocate(Node { place, value, parent, children: [NIL; 2], is_red: true });
        if parent == NIL {
            set.root = node;
        } else {
            self.node_mut(parent).children[direction] = node;
        }
        if is_first {
            set.first = node;
        }
        self.balance_inserted(set, node);
        node
    }

    /// Removes an element.
    pub fn remove(&mut self, set: &mut Set, node: u32) {
        if set.first == node {
            set.first = self.next(node);
        }
        let [left, right] = self.node(node).children;
        let (lost_black, moved_up) = if left == NIL || right == NIL {
            let child = if left == NIL { right } else { left };
            self.put_in_place(set, node, child);
            (!self.node(node).is_red, child)
        } else {
            self.replace_by_next(set, node)
        };
        if lost_black {
            self.balance_removed(set, moved_up);
        }
        self.node_mut(node).parent = self.free;
        self.free = node;
    }

    /// Returns the element after `node` in its set, or `NIL`.
    pub fn next(&self, node: u32) -> u32 {
        let right = self.child(node, 1 - LEFT);
        if right != NIL {
            return self.leftmost(right);
        }
        let (mut below, mut above) = (node, self.node(node).parent);
        while above != NIL && self.child(above, 1 - LEFT) == below {
            (below, above) = (above, self.node(above).parent);
        }
        above
    }

    /// Elements of a set in order.
    pub fn iter(&self, set: Set) -> impl Iterator<Item = (Place, V)> {
        let some = |node: u32| Some(node).filter(|node| *node != NIL);
        let nodes = std::iter::successors(some(set.first), move |node| some(self.next(*node)));
        nodes.map(|node| (self.place(node), *self.value(node)))
    }

    #[inline]
    fn node(&self, node: u32) -> &Node<V> {
        &self.nodes[node as usize]
    }

    #[inline]
    fn node_mut(&mut self, node: u32) -> &mut Node<V> {
        &mut self.nodes[node as usize]
    }

    #[inline]
    fn child(&self, node: u32, direction: usize) -> u32 {
        self.node(node).children[direction]
    }

    fn allocate(&mut self, node: Node<V>) -> u32 {
        if self.free == NIL {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        let index = self.free;
        self.free = self.node(index).parent;
        *self.node_mut(index) = node;
        index
    }

    fn leftmost(&self, mut node: u32) -> u32 {
        while self.child(node, LEFT) != NIL {
            node = self.child(node, LEFT);
        }
        node
    }

    /// Index of a node among the children of its parent.
    fn direction(&self, node: u32, parent: u32) -> usize {
        usize::from(self.child(parent, LEFT) != node)
    }

    /// Replaces the subtree `node` by `child`, which may be `NIL`.
    fn put_in_place(&mut self, set: &mut Set, node: u32, child: u32) {
        let parent = self.node(node).parent;
        if parent == NIL {
            set.root = child;
        } else {
            let direction = self.direction(node, parent);
            self.node_mut(parent).children[direction] = child;
        }
        self.node_mut(child).parent = parent;
    }

    /// Replaces a node that has two children by the next element of the set. Returns whether a black node is
    /// missing at the former position of the next element, and the node that moved up there.
    fn replace_by_next(&mut self, set: &mut Set, node: u32) -> (bool, u32) {
        let [left, right] = self.node(node).children;
        let next = self.leftmost(right);
        let lost_black = !self.node(next).is_red;
        let moved_up = self.child(next, 1 - LEFT);
        if next == right {
            self.node_mut(moved_up).parent = next;
        } else {
            self.put_in_place(set, next, moved_up);
            self.node_mut(next).children[1 - LEFT] = right;
            self.node_mut(right).parent = next;
        }
        self.put_in_place(set, node, next);
        self.node_mut(next).children[LEFT] = left;
        self.node_mut(left).parent = next;
        self.node_mut(next).is_red = self.node(node).is_red;
        (lost_black, moved_up)
    }

    /// Rotates the edge between a node and its child, so that the node moves down in `direction`.
    fn rotate(&mut self, set: &mut Set, node: u32, direction: usize) {
        let up = self.child(node, 1 - direction);
        let inner = self.child(up, direction);
        self.node_mut(node).children[1 - direction] = inner;
        if inner != NIL {
            self.node_mut(inner).parent = node;
        }
        self.put_in_place(set, node, up);
        self.node_mut(up).children[direction] = node;
        self.node_mut(node).parent = up;
    }

    fn balance_inserted(&mut self, set: &mut Set, mut node: u32) {
        while self.node(self.node(node).parent).is_red {
            let mut parent = self.node(node).parent;
            let grandparent = self.node(parent).parent;
            let direction = self.direction(parent, grandparent);
            let uncle = self.child(grandparent, 1 - direction);
            self.node_mut(grandparent).is_red = true;
            if self.node(uncle).is_red {
                self.node_mut(parent).is_red = false;
                self.node_mut(uncle).is_red = false;
                node = grandparent;
                continue;
            }
            if self.child(parent, 1 - direction) == node {
                self.rotate(set, parent, direction);
                (node, parent) = (parent, node);
            }
            self.node_mut(parent).is_red = false;
            self.rotate(set, grandparent, 1 - direction);
        }
        self.node_mut(set.root).is_red = false;
    }

    /// Rebalances after a removal: the paths through `node`, which may be `NIL`, lack one black node.
    fn balance_removed(&mut self, set: &mut Set, mut node: u32) {
        while node != set.root && !self.node(node).is_red {
            let parent = self.node(node).parent;
            let direction = self.direction(node, parent);
            let mut sibling = self.child(parent, 1 - direction);
            if self.node(sibling).is_red {
                self.node_mut(sibling).is_red = false;
                self.node_mut(parent).is_red = true;
                self.rotate(set, parent, direction);
                sibling = self.child(parent, 1 - direction);
            }
            let (near, far) = (self.child(sibling, direction), self.child(sibling, 1 - direction));
            if !self.node(near).is_red && !self.node(far).is_red {
                self.node_mut(sibling).is_red = true;
                node = parent;
                continue;
            }
            if !self.node(far).is_red {
                self.node_mut(near).is_red = false;
                self.node_mut(sibling).is_red = true;
                self.rotate(set, sibling, 1 - direction);
                sibling = near;
            }
            self.node_mut(sibling).is_red = self.node(parent).is_red;
            self.node_mut(parent).is_red = false;
            let far = self.child(sibling, 1 - direction);
            self.node_mut(far).is_red = false;
            self.rotate(set, parent, direction);
            node = set.root;
        }
        self.node_mut(node).is_red = false;
    }
}

//! List of the structures by name.

use tickpath_book::{DirectBooks, FastBooks};
use tickpath_reference::ReferenceBooks;

use crate::books::{Hashed, Indexed, Limits, Tickpath};
use crate::dense_ladder::DenseLadder;
use crate::driver::{LookAhead, Runner, Sequential};
use crate::id_map::Std;
use crate::ordered_sets::{BTrees, Copies, Handles, RedBlack};

/// A measured structure: its names, and its constructor.
pub struct Entry {
    /// Name for `--structure`.
    pub name: &'static str,
    /// Description of the books.
    pub books: &'static str,
    /// Description of the map from order references to orders.
    pub index: &'static str,
    /// Creates empty books.
    pub open: fn(Limits) -> Box<dyn Runner>,
}

macro_rules! entry {
    ($name:literal, $books:literal, $index:literal, $runner:ty) => {
        Entry { name: $name, books: $books, index: $index, open: |limits| Box::new(<$runner>::new(limits)) }
    };
}

/// All measured structures, the simplest first.
pub const ALL: &[Entry] = &[
    entry!(
        "set-copy",
        "red-black set of orders per side",
        "std HashMap to a copy",
        Sequential<Copies<RedBlack>>
    ),
    entry!("btree-copy", "B-tree of orders per side", "std HashMap to a copy", Sequential<Copies<BTrees>>),
    entry!(
        "set-handle",
        "red-black set of orders per side",
        "std HashMap to the node",
        Sequential<Indexed<Handles, Std>>
    ),
    entry!(
        "dense-ladder",
        "array by tick around the best prices",
        "OrderIndex, hashed",
        Sequential<Indexed<DenseLadder, Hashed>>
    ),
    entry!("fast", "FastBooks", "OrderIndex, hashed", Sequential<Indexed<Tickpath, Hashed>>),
    entry!(
        "fast-look-ahead",
        "FastBooks by BookBuilder::handle_batch",
        "OrderIndex, hashed",
        LookAhead<tickpath_book::Indexed<FastBooks>>
    ),
    entry!(
        "direct-look-ahead",
        "DirectBooks by BookBuilder::handle_batch",
        "the index holds the orders",
        LookAhead<DirectBooks>
    ),
];

/// The reference model: simple and slow, used only in tests.
pub const REFERENCE: Entry = entry!(
    "plain-twin",
    "ReferenceBooks",
    "OrderIndex, hashed",
    Sequential<Indexed<Tickpath<ReferenceBooks>, Hashed>>
);

/// Returns the structures with these names, or all if there are no names.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Entry>, String> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    names.iter().map(|name| by_name(name)).collect()
}

/// Returns the structure with a name.
pub fn by_name(name: &str) -> Result<&'static Entry, String> {
    ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        format!("there is no structure '{name}': choose one of {}", names.join(", "))
    })
}

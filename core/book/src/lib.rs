//! Limit order books, order by order, in price-time priority: for a venue and for feeds.
//!
//! [`OrderBooks`] is the common trait; [`FastBooks`] is for the hot path, and `tickpath-reference` has the
//! reference model that tests compare it with. [`OrderIndex`] finds an order by the venue's id, [`PageIndex`]
//! by the client's.
//!
//! [`BooksById`] are books whose orders are identified by the venue's id alone, for feed handlers:
//! [`PackedBooks`] store each order in the look-up table itself, in few bytes, and apply messages in groups.
//! [`DirectBooks`] are the same with plain records, and [`Indexed`] adds an index to any other books.
//!
//! ```
//! use tickpath_book::{BookLimits, FastBooks, Order, OrderBooks, OrderIndex};
//! use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};
//!
//! let mut books: FastBooks = FastBooks::new(BookLimits::new(InstrumentId(8), 1_000));
//! let mut index = OrderIndex::new(1_000);
//! let bid = |id, price, qty| Order {
//!     id: OrderId(id),
//!     instrument: InstrumentId(1),
//!     side: Side::Buy,
//!     price: Price(price),
//!     qty: Qty(qty),
//!     data: (),
//! };
//! for order in [bid(1, 99, 10), bid(2, 100, 20), bid(3, 100, 30)] {
//!     let handle = books.add(order).unwrap();
//!     index.insert(order.id.0, handle).unwrap();
//! }
//!
//! let best = books.best(InstrumentId(1), Side::Buy).unwrap();
//! assert_eq!((best.price, best.qty, best.order_count), (Price(100), Qty(50), 2));
//!
//! let third = index.find(3).unwrap();
//! assert_eq!(books.queue_position(third).qty_ahead, Qty(20));
//! assert_eq!(books.reduce(third, Qty(5)), Qty(25));
//!
//! books.remove(index.remove(2).unwrap());
//! assert_eq!(books.front(InstrumentId(1), Side::Buy), Some(third));
//! ```

mod books;
mod by_id;
mod digest;
mod direct;
mod fast;
mod feed_books;
mod grid;
mod group;
mod index;
mod indexed;
mod ladder;
mod levels;
mod order;
mod packed;
mod pages;
mod record;
mod table;

pub use books::{OrderBooks, state_hash};
pub use by_id::{BooksById, PrefetchRequest};
pub use direct::DirectBooks;
pub use fast::FastBooks;
pub use feed_books::FeedBooks;
pub use group::{ChangeKind, OrderChange, OrderGroup, OrderMessages, Step};
pub use index::{InsertError, OrderIndex};
pub use indexed::Indexed;
pub use order::{AddError, BookLimits, Hint, Level, Order, OrderHandle, QueuePosition};
pub use packed::PackedBooks;
pub use pages::{PageIndex, PageLimits};

//! Limit order books, order by order, in price-time priority: a fast version and its plain twin.

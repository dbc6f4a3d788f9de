//! The most severe state of the market's books and feed, as a short text.

use ratatui::style::Style;
use tickpath_types::BookHealth;

use crate::data::MarketView;
use crate::{format, palette};

/// Returns text and style of the most severe state among the books and the feed.
pub fn of(view: &MarketView) -> (String, Style) {
    let with = |health: BookHealth| view.instruments.iter().filter(|it| it.health == health).count();
    let books = |count: usize| if count == 1 { "1 book".to_owned() } else { format!("{count} books") };
    if view.feed.lost_messages > 0 {
        (format!("{} messages lost", format::count(view.feed.lost_messages)), palette::BAD)
    } else if with(BookHealth::Suspect) > 0 {
        (format!("{} suspect", books(with(BookHealth::Suspect))), palette::BAD)
    } else if with(BookHealth::Stale) > 0 {
        (format!("{} stale", books(with(BookHealth::Stale))), palette::BAD)
    } else if view.feed.gap_open || with(BookHealth::Recovering) > 0 {
        ("gap open, recovering".to_owned(), palette::WARN)
    } else if view.instruments.is_empty() {
        ("no instruments yet".to_owned(), palette::LABEL)
    } else {
        ("all books live, no gap open".to_owned(), palette::GOOD)
    }
}

//! Messages that are not about orders: system events, the stock directory, imbalances and crosses.

use tickpath_nasdaq::itch50::{
    Authenticity, CrossTrade, CrossType, EventCode, FinancialStatus, ImbalanceDirection, IpoFlag, LuldTier,
    MarketCategory, MarketMakerMode, MarketParticipantPosition, MwcbDeclineLevel, NetOrderImbalance,
    ParticipantState, PriceVariation, RegShoAction, RegShoRestriction, StockDirectory, StockTradingAction,
    StockTradingState, SystemEvent, YesNo,
};
use tickpath_nasdaq::wire::{Alpha, Stock};
use tickpath_types::{MatchId, Nanos, Price, Rng};

use super::message::{At, Buffer, NO_TRACKING, locate, put, put_message, wire_price};
use super::symbol::{Security, TICK};
use super::weights::qty;

/// Number of messages per security before system hours, besides market maker positions: directory, trading
/// action, Reg SHO.
const ENTRIES: u64 = 3;
/// Number of market maker positions per security before system hours.
const MAKERS: u64 = 4;
/// Number of distinct market makers (MPIDs) of the day.
const MPIDS: u64 = 40;

/// Times of day: the first message, the start of the directory and its duration, the start of system hours.
const START_OF_MESSAGES: Nanos = Nanos::from_secs(3 * 3_600 + 4 * 60);
const DIRECTORY_START: Nanos = Nanos::from_secs(3 * 3_600 + 5 * 60);
const DIRECTORY_TIME: Nanos = Nanos::from_secs(50 * 60);
const START_OF_SYSTEM_HOURS: Nanos = Nanos::from_secs(4 * 3_600);

/// Market-wide circuit breaker levels in units of 10^-8: 7, 13 and 20 percent below an index of 4000.
const DECLINE_LEVELS: [u64; 3] = [372_000_000_000, 348_000_000_000, 320_000_000_000];

/// One security in this many starts the day under the short sale price test.
const RESTRICTED_ONE_IN: u64 = 64;
/// One cross in this many does not take place.
const NO_CROSS_ONE_IN: u64 = 4;
/// Ratio of the quantity of a cross to that of a random order.
const CROSS_QTY_FACTOR: u64 = 64;
/// Clearing prices of imbalances deviate by at most the reference price divided by this.
const NEAR_PRICES_PER_REFERENCE: u64 = 32;

/// Number of messages outside the order flow: prologue, opening, close, and end.
pub(super) const fn announcements(securities: u64) -> u64 {
    prologue_len(securities) + 2 * (1 + securities) + 2
}

/// Number of messages before system hours.
pub(super) const fn prologue_len(securities: u64) -> u64 {
    // Start of messages, messages about securities, decline levels, start of system hours.
    1 + (ENTRIES + MAKERS) * securities + 1 + 1
}

pub(super) fn system_event(code: EventCode, ts: Nanos, out: &mut Buffer) -> usize {
    put(out, &SystemEvent::new(0, NO_TRACKING, ts, code))
}

/// Writes message `index` of the prologue, the messages before system hours, and returns its length.
pub(super) fn prologue(index: u64, list: &[Security], rng: &mut Rng, out: &mut Buffer) -> usize {
    let count = list.len() as u64;
    if index == 0 {
        return system_event(EventCode::START_OF_MESSAGES, START_OF_MESSAGES, out);
    }
    let index = index - 1;
    let spread = u128::from(DIRECTORY_TIME.0) * u128::from(index) / u128::from((ENTRIES + MAKERS) * count);
    let ts = Nanos(DIRECTORY_START.0 + spread as u64);
    if index < ENTRIES * count {
        let at = At { ts, security: (index / ENTRIES) as usize };
        return entry(index % ENTRIES, at, list[at.security].stock, rng, out);
    }
    let index = index - ENTRIES * count;
    if index < MAKERS * count {
        let at = At { ts, security: (index / MAKERS) as usize };
        return position(index, at, list[at.security].stock, out);
    }
    if index == MAKERS * count {
        let [first, second, third] = DECLINE_LEVELS;
        return put(out, &MwcbDeclineLevel::new(0, NO_TRACKING, ts, first, second, third));
    }
    system_event(EventCode::START_OF_SYSTEM_HOURS, START_OF_SYSTEM_HOURS, out)
}

fn entry(kind: u64, at: At, stock: Stock, rng: &mut Rng, out: &mut Buffer) -> usize {
    match kind {
        0 => put_message!(
            out,
            at,
            StockDirectory(
                stock,
                MarketCategory::GLOBAL_SELECT,
                FinancialStatus::NORMAL,
                100_u32,
                YesNo::NO,
                Alpha(*b"C"),
                Alpha(*b"Z "),
                Authenticity::LIVE,
                YesNo::NO,
                IpoFlag::NOT_NEW_ISSUE,
                LuldTier::TIER_1,
                YesNo::NO,
                0,
                YesNo::NO,
            )
        ),
        1 => {
            let (state, reason) = (StockTradingState::TRADING, Alpha::<4>::BLANK);
            put_message!(out, at, StockTradingAction(stock, state, Alpha::<1>::BLANK, reason))
        }
        _ => {
            let is_restricted = rng.below(RESTRICTED_ONE_IN) == 0;
            let action = if is_restricted { RegShoAction::REMAINS } else { RegShoAction::NONE };
            put_message!(out, at, RegShoRestriction(stock, action))
        }
    }
}

/// Writes a market maker position. The makers of a security all differ; its first one is the primary.
fn position(maker: u64, at: At, stock: Stock, out: &mut Buffer) -> usize {
    let is_primary = if maker.is_multiple_of(MAKERS) { YesNo::YES } else { YesNo::NO };
    let (mode, state) = (MarketMakerMode::NORMAL, ParticipantState::ACTIVE);
    put_message!(out, at, MarketParticipantPosition(mpid(maker), stock, is_primary, mode, state))
}

pub(super) fn mpid(number: u64) -> Alpha<4> {
    let number = (number % MPIDS) as u8;
    Alpha([b'T', b'P', b'A' + number / 26, b'A' + number % 26])
}

/// Writes the cross trade message, the bulk print of a cross.
pub(super) fn cross(
    at: At,
    security: &Security,
    cross_type: CrossType,
    match_id: MatchId,
    rng: &mut Rng,
    out: &mut Buffer,
) -> usize {
    let (shares, price) = if rng.below(NO_CROSS_ONE_IN) == 0 {
        (0, 0)
    } else {
        (qty(rng) * CROSS_QTY_FACTOR, wire_price(security.reference_price()))
    };
    put_message!(out, at, CrossTrade(shares, security.stock, price, match_id, cross_type))
}

/// Writes the imbalance message with the indicative result of the next cross.
pub(super) fn imbalance(
    at: At,
    security: &Security,
    cross_type: CrossType,
    rng: &mut Rng,
    out: &mut Buffer,
) -> usize {
    let reference = security.reference_price();
    let paired = qty(rng) * CROSS_QTY_FACTOR;
    let (direction, left) = match rng.below(8) {
        0 => (ImbalanceDirection::NONE, 0),
        1..=4 => (ImbalanceDirection::BUY, qty(rng)),
        _ => (ImbalanceDirection::SELL, qty(rng)),
    };
    let [near, far] = [(); 2].map(|()| clearing_price(reference, rng));
    let variation = variation(near, reference);
    let [near, far, reference] = [near, far, reference].map(wire_price);
    let (stock, kind) = (security.stock, cross_type);
    put_message!(
        out,
        at,
        NetOrderImbalance(paired, left, direction, stock, far, near, reference, kind, variation)
    )
}

fn clearing_price(reference: Price, rng: &mut Rng) -> Price {
    let ticks_max = (reference.0 / TICK) as u64 / NEAR_PRICES_PER_REFERENCE;
    let ticks = rng.below(2 * ticks_max + 1) as i64 - ticks_max as i64;
    Price(reference.0 + ticks * TICK)
}

fn variation(near: Price, reference: Price) -> PriceVariation {
    match near.0.abs_diff(reference.0) * 100 / reference.0.unsigned_abs() {
        0 => PriceVariation::BELOW_1,
        1 => PriceVariation::FROM_1,
        2 => PriceVariation::FROM_2,
        _ => PriceVariation::FROM_3,
    }
}

//! Order entry and order edits.

use tickpath_deribit::codes::{OrderState, OrderType, TimeInForce};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::{EditByLabel, EditOrder, PlaceOrder};
use tickpath_deribit::number::Decimal;
use tickpath_deribit::request::Request;
use tickpath_exchange::{FrontRequest, FrontRequestKind};
use tickpath_types::{
    CancelOrder as EngineCancel, EnterOrder, OrderInstructions, OrderRequest, Price, Qty, Side,
    TimeInForce as EngineTime, UserRefNum,
};

use super::account::Wanted;
use super::triggers::{TriggerChange, waits};
use super::{ACCOUNT_REQUESTS_MAX, Answer, ELEMENTS_MAX, Front, REQUESTS_MAX};
use crate::config::BeyondBand;
use crate::fault::Fault;
use crate::json::{Json, Object, list};
use crate::labels::LABEL_LEN_MAX;
use crate::order::{Extra, TRIGGER_BIT, Terms};
use crate::pending::{Done, Intent, Origin, Pending, ReplyTo, Work};
use crate::record::Record;

/// Minimum displayed amount: this many minimum amounts, and this fraction of the order.
const SHOWN_STEPS_MIN: u64 = 100;
const SHOWN_PART_MIN: u64 = 100;

/// New parameters of an open order.
pub(super) struct NewTerms {
    pub(super) number: u64,
    /// Total quantity, including the executed part.
    pub(super) qty: Qty,
    pub(super) price: Price,
    pub(super) terms: Terms,
    /// Displayed quantity; none if it is unchanged.
    pub(super) display: Option<Qty>,
}

impl Front {
    pub(super) fn place(
        &mut self,
        account: usize,
        side: Side,
        request: &Request<'_>,
        to: &ReplyTo,
    ) -> Answer {
        let order: PlaceOrder<'_> = request.params()?;
        let links = self.links_of(account, &order, &request.params()?)?;
        let done = self.place_linked(account, side, &order, links, to)?;
        Ok(self.shown_order(account, done))
    }

    /// Writes the reply for an order that is done at once; none while the log must confirm it.
    fn shown_order(&self, account: usize, done: Done) -> Option<Vec<u8>> {
        match done {
            Done::Later => None,
            Done::Order(number) => Some(self.order_reply(account, number, &[])),
        }
    }

    /// Enters an order for JSON-RPC or FIX.
    pub(super) fn place_order(
        &mut self,
        account: usize,
        side: Side,
        order: &PlaceOrder<'_>,
        to: &ReplyTo,
    ) -> Result<Done, Fault> {
        self.place_linked(account, side, order, None, to)
    }

    /// Enters an order together with its linked orders.
    fn place_linked(
        &mut self,
        account: usize,
        side: Side,
        order: &PlaceOrder<'_>,
        extra: Option<Box<Extra>>,
        to: &ReplyTo,
    ) -> Result<Done, Fault> {
        self.check_deadline(order.valid_until)?;
        let listing = self.find_traded(&order.instrument_name.to_cow())?;
        let order_type = order.order_type.unwrap_or(OrderType::Limit);
        let time_in_force = order.time_in_force.unwrap_or(TimeInForce::GoodTilCancelled);
        check_terms(order, order_type, time_in_force)?;
        if waits(order_type) || extra.is_some() {
            self.check_storage()?;
        }
        let label = order.label.map(|label| label.to_cow().into_owned()).unwrap_or_default();
        if label.chars().count() > LABEL_LEN_MAX {
            return Err(Fault::param("label", "at most 64 characters"));
        }
        let (price, advanced) = self.priced(listing, side, order.advanced, order.price)?;
        let qty = self.qty_of(listing, order.amount, order.contracts)?;
        let qty = if order.reduce_only && !waits(order_type) {
            self.reducing(account, listing, side, qty)?
        } else {
            qty
        };
        let terms = Terms {
            order_type,
            time_in_force,
            is_post_only: order.post_only,
            rejects_post_only: order.post_only && order.reject_post_only,
            is_reduce_only: order.reduce_only,
            is_protected: order.mmp,
            is_quote: false,
            label: self.label_number(account, &label, to.id.client_order_id())?,
            trigger: 0,
            advanced,
            is_auto_replaced: false,
        };
        if waits(order_type) {
            return self.place_trigger(account, listing, side, order, (qty, terms), to).map(Done::Order);
        }
        if order.mmp {
            self.check_protection(account, self.settings.listings[listing].index, "")?;
        }
        let price = self.price_of(listing, side, order_type, price)?;
        let display = self.shown(listing, qty, order.display_amount)?;
        let mut intent = Intent { listing, side, qty, price, terms, display, moves: 0 };
        self.keep_off_the_book(&mut intent)?;
        self.check_funds(account, &intent, qty, None)?;
        let (connection, reply) = (Some(to.connection), Some(to.clone()));
        self.enter_as(account, intent, Origin { connection, reply, extra, ..Origin::default() })?;
        Ok(Done::Later)
    }

    pub(super) fn check_deadline(&self, valid_until: Option<u64>) -> Result<(), Fault> {
        match valid_until {
            Some(deadline) if deadline < self.now_ms() => Err(ErrorCode::TimedOut.into()),
            _ => Ok(()),
        }
    }

    pub(super) fn qty_of(
        &self,
        listing: usize,
        amount: Option<Decimal>,
        contracts: Option<Decimal>,
    ) -> Result<Qty, Fault> {
        let listing = &self.settings.listings[listing];
        let of_contracts = match contracts {
            Some(contracts) => Some(listing.amount_of_contracts(contracts).ok_or(ErrorCode::InvalidAmount)?),
            None => None,
        };
        let amount = match (amount, of_contracts) {
            (Some(amount), Some(same)) if amount != same => return Err(ErrorCode::InvalidAmount.into()),
            (Some(amount), _) | (None, Some(amount)) => amount,
            (None, None) => return Err(Fault::param("amount", "value required")),
        };
        Ok(listing.qty(amount)?)
    }

    /// Returns the price for the engine: for a market order the limit of the band, where its remainder rests.
    pub(super) fn price_of(
        &self,
        place: usize,
        side: Side,
        order_type: OrderType,
        price: Option<Decimal>,
    ) -> Result<Price, Fault> {
        let (listing, market) = self.listed(place);
        let (min, max) = market.band(listing, self.settings.band_ppm);
        match order_type {
            OrderType::Market => Ok(if side == Side::Buy { max } else { min }),
            OrderType::MarketLimit => {
                let best = market.best(side.opposite());
                best.map(|(price, _)| price)
                    .ok_or(Fault::because(ErrorCode::OtherReject, "the book is empty"))
            }
            _ => {
                let price = price.ok_or(Fault::param("price", "value required"))?;
                let price = listing.parse_price(price)?;
                let is_clamped = self.settings.beyond_band == BeyondBand::Clamp;
                match side {
                    Side::Buy if price > max && is_clamped => Ok(max),
                    Side::Sell if price < min && is_clamped => Ok(min),
                    Side::Buy if price > max => {
                        Err(Fault::beyond(ErrorCode::PriceTooHigh, listing.price(max)))
                    }
                    Side::Sell if price < min => {
                        Err(Fault::beyond(ErrorCode::PriceTooLow, listing.price(min)))
                    }
                    _ => Ok(price),
                }
            }
        }
    }

    /// Limits a quantity to the opposite position.
    pub(super) fn reducing(
        &self,
        account: usize,
        listing: usize,
        side: Side,
        qty: Qty,
    ) -> Result<Qty, Fault> {
        let size = self.accounts[account].position(listing).size;
        if size.signum() == -side.sign() {
            Ok(qty.min(Qty(size.unsigned_abs())))
        } else {
            Err(Fault::because(ErrorCode::OtherReject, "reduce_only order would increase the position"))
        }
    }

    pub(super) fn shown(&self, place: usize, qty: Qty, display: Option<Decimal>) -> Result<Qty, Fault> {
        let Some(display) = display else { return Ok(Qty::ZERO) };
        let listing = &self.settings.listings[place];
        let shown = listing.qty(display).map_err(|_| ErrorCode::InvalidMaxShowAmount)?;
        let is_good = shown <= qty && shown.0 >= SHOWN_STEPS_MIN && shown.0 >= qty.0 / SHOWN_PART_MIN;
        if is_good { Ok(shown) } else { Err(ErrorCode::InvalidMaxShowAmount.into()) }
    }

    /// Moves a post-only order that would take to the tick before the best price, or rejects it.
    pub(super) fn keep_off_the_book(&self, intent: &mut Intent) -> Result<(), Fault> {
        let (listing, market) = self.listed(intent.listing);
        let Some((best, _)) = market.best(intent.side.opposite()) else { return Ok(()) };
        if !intent.terms.is_post_only || !intent.side.crosses(intent.price, best) {
            return Ok(());
        }
        if intent.terms.rejects_post_only {
            return Err(ErrorCode::PostOnlyReject.into());
        }
        intent.price = listing.before(best, intent.side);
        let is_possible = intent.price.0 > 0;
        if is_possible { Ok(()) } else { Err(ErrorCode::PostOnlyPriceModificationNotPossible.into()) }
    }

    /// Checks the funds for an order; `but` is the order that it replaces.
    pub(super) fn check_funds(
        &self,
        account: usize,
        intent: &Intent,
        leaves: Qty,
        but: Option<u64>,
    ) -> Result<(), Fault> {
        self.check_not_liquidated(account, intent.listing)?;
        self.check_held(account, intent, leaves, but)
    }

    /// The same without the liquidation check, for closing orders; only a part that opens needs margin.
    pub(super) fn check_held(
        &self,
        account: usize,
        intent: &Intent,
        leaves: Qty,
        but: Option<u64>,
    ) -> Result<(), Fault> {
        let listing = &self.settings.listings[intent.listing];
        let is_pair = listing.contract.style == tickpath_derivatives::Style::Spot;
        let is_pair_sale = is_pair && intent.side == Side::Sell;
        let currency = if is_pair_sale { &listing.base } else { &listing.settlement };
        let figures = self.figures_of(account, currency, but);
        let with = self.held_by_orders(account, currency, but, Some(Wanted::of(intent, leaves)));
        let needed = with - figures.open_orders;
        let is_enough = needed.0 == 0 || figures.available() >= needed;
        if is_enough { Ok(()) } else { Err(ErrorCode::NotEnoughFunds.into()) }
    }

    /// Rejects orders during a liquidation. Otherwise repeated orders, resting or in flight, could keep the
    /// position from being closed.
    pub(super) fn check_not_liquidated(&self, account: usize, listing: usize) -> Result<(), Fault> {
        let listing = &self.settings.listings[listing];
        let is_pair = listing.contract.style == tickpath_derivatives::Style::Spot;
        match !is_pair && self.is_short_of_margin(account, &listing.settlement) {
            true => Err(Fault::because(ErrorCode::NotEnoughFunds, "the position is being closed")),
            false => Ok(()),
        }
    }

    /// Sends a new order.
    pub(super) fn enter(
        &mut self,
        account: usize,
        intent: Intent,
        connection: Option<u64>,
        reply: Option<ReplyTo>,
    ) -> Result<(), Fault> {
        self.enter_as(account, intent, Origin { connection, reply, ..Origin::default() })
    }

    pub(super) fn enter_as(&mut self, account: usize, intent: Intent, origin: Origin) -> Result<(), Fault> {
        let order = self.engine_order(account, &intent);
        let Origin { connection, reply, group, extra, turn, is_forced } = origin;
        let sent_us = self.now_us;
        if let Some(extra) = extra.as_ref().filter(|extra| !extra.linked.is_empty()) {
            self.write_links_asked(account, order.user_ref.0, extra);
        }
        let ask = match is_forced {
            true => FrontRequestKind::Force(order),
            false => FrontRequestKind::Order(OrderRequest::Enter(order)),
        };
        self.send_as(
            account,
            ask,
            Pending {
                request: OrderRequest::Enter(order),
                work: Work::Place(intent),
                connection,
                reply,
                group,
                sent_us,
                turn,
                extra,
            },
        )
    }

    /// Sends an order again that an edit removed from the book; it keeps its number.
    pub(super) fn enter_again(
        &mut self,
        account: usize,
        number: u64,
        intent: Intent,
        before: Pending,
    ) -> Result<(), Fault> {
        let order = self.accounts[account].order(number).ok_or(Fault::new(ErrorCode::OrderNotFound))?;
        let (connection, filled) = (order.connection, order.filled);
        let qty = Qty(intent.qty.0.saturating_sub(filled.0));
        let left = Intent { qty, display: intent.display.min(qty), ..intent };
        let order = self.engine_order(account, &left);
        let (request, work) = (OrderRequest::Enter(order), Work::Edit { number, intent });
        let sent_us = self.now_us;
        self.send(account, Pending { request, work, connection, sent_us, ..before })?;
        let (account, user_ref) = (self.accounts[account].name.clone(), order.user_ref.0);
        self.decide(&Record::EnteredAgain { account, number, user_ref });
        Ok(())
    }

    fn engine_order(&mut self, account: usize, intent: &Intent) -> EnterOrder {
        // The venue rejects 0, which is sent once all numbers are used.
        let user_ref = UserRefNum(u32::try_from(self.accounts[account].next_ref).unwrap_or(0));
        self.accounts[account].next_ref += 1;
        let time_in_force = match intent.terms.time_in_force {
            TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill => EngineTime::Ioc,
            _ => EngineTime::Day,
        };
        let is_whole = intent.terms.time_in_force == TimeInForce::FillOrKill;
        let instrument = self.settings.listings[intent.listing].id;
        EnterOrder {
            time_in_force,
            post_only: intent.terms.is_post_only,
            min_qty: if is_whole { intent.qty } else { Qty::ZERO },
            special: (!intent.display.is_zero())
                .then_some(OrderInstructions { display_qty: intent.display, ..OrderInstructions::default() }),
            client_order_id: intent.terms.encode(),
            ..EnterOrder::limit(user_ref, instrument, intent.side, intent.qty, intent.price)
        }
    }

    /// Sends a user's request to the venue, and stores it until the log confirms it.
    pub(super) fn send(&mut self, account: usize, pending: Pending) -> Result<(), Fault> {
        self.send_as(account, FrontRequestKind::Order(pending.request), pending)
    }

    fn send_as(&mut self, account: usize, kind: FrontRequestKind, mut pending: Pending) -> Result<(), Fault> {
        // One account cannot fill the shared queue; cancels may use all of it.
        let is_crowded = self.accounts[account].pending.len() >= ACCOUNT_REQUESTS_MAX
            && !matches!(pending.work, Work::Cancel { .. });
        if is_crowded || self.requests.len() >= REQUESTS_MAX {
            return Err(ErrorCode::MatchingEngineQueueFull.into());
        }
        if pending.turn == 0 {
            self.turns += 1;
            pending.turn = self.turns;
        }
        let known = &mut self.accounts[account];
        let (session, received_ns) = (known.session, self.now_us * 1_000);
        self.requests.push_back(FrontRequest { session, received_ns, kind });
        known.add_pending(pending);
        Ok(())
    }

    pub(super) fn edit(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let edit: EditOrder<'_> = request.params()?;
        let number = self.order_number(account, &edit.order_id.to_cow())?;
        let done = self.edit_order(account, number, &edit, to)?;
        Ok(self.shown_order(account, done))
    }

    /// Changes an order for JSON-RPC or FIX.
    pub(super) fn edit_order(
        &mut self,
        account: usize,
        number: u64,
        edit: &EditOrder<'_>,
        to: &ReplyTo,
    ) -> Result<Done, Fault> {
        self.check_deadline(edit.valid_until)?;
        if number & TRIGGER_BIT != 0 {
            self.edit_waiting(account, number, edit)?;
            return Ok(Done::Order(number));
        }
        if edit.trigger_price.is_some() || edit.trigger_offset.is_some() {
            return Err(Fault::because(ErrorCode::UnsupportedArgCombination, "the order has no trigger"));
        }
        self.change(account, number, edit, to)
    }

    /// Changes an untriggered order.
    fn edit_waiting(&mut self, account: usize, number: u64, edit: &EditOrder<'_>) -> Result<(), Fault> {
        self.check_storage()?;
        let order = self.accounts[account].waiting.get(&number);
        let order = order.ok_or(Fault::new(ErrorCode::NotOpenOrder))?;
        if edit.advanced.is_some() {
            return Err(ErrorCode::NotAdvOrder.into());
        }
        if edit.mmp || edit.display_amount.is_some() {
            return Err(Fault::because(
                ErrorCode::UnsupportedArgCombination,
                "an order that waits has neither mmp nor display_amount",
            ));
        }
        let qty = match (edit.amount, edit.contracts) {
            (None, None) => None,
            (amount, contracts) => Some(self.qty_of(order.listing, amount, contracts)?),
        };
        let has_limit = matches!(order.terms.order_type, OrderType::StopLimit | OrderType::TakeLimit);
        let change = TriggerChange {
            qty,
            price: edit.trigger_price,
            limit: edit.price.filter(|_| has_limit),
            offset: edit.trigger_offset,
            is_reduce_only: edit.reduce_only,
        };
        self.edit_trigger(account, number, &change)
    }

    pub(super) fn edit_by_label(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let edit: EditByLabel<'_> = request.params()?;
        let listing = self.find_listing(&edit.instrument_name.to_cow())?;
        let label = edit.label.to_cow();
        let (labels, known) = (&self.labels, &self.accounts[account]);
        let orders = known.open.values().chain(known.waiting.values());
        let mut found =
            orders.filter(|order| order.listing == listing && labels.name(order.terms.label) == label);
        let number = found.next().ok_or(Fault::new(ErrorCode::OrderNotFound))?.number;
        if found.next().is_some() {
            return Err(ErrorCode::NonUniqueOrderLabel.into());
        }
        let done = self.edit_order(account, number, &edit.of_order(""), to)?;
        Ok(self.shown_order(account, done))
    }

    /// Changes an order in the book.
    fn change(
        &mut self,
        account: usize,
        number: u64,
        edit: &EditOrder<'_>,
        to: &ReplyTo,
    ) -> Result<Done, Fault> {
        let order = self.open_order(account, number)?.clone();
        let listing = order.listing;
        let qty = match (edit.amount, edit.contracts) {
            (None, None) => order.qty,
            (amount, contracts) => self.qty_of(listing, amount, contracts)?,
        };
        if qty <= order.filled {
            return Err(Fault::because(ErrorCode::InvalidAmount, "as much is executed already"));
        }
        let is_reduce_only = edit.reduce_only || order.terms.is_reduce_only;
        let qty = match is_reduce_only {
            true => {
                let leaves = Qty(qty.0 - order.filled.0);
                Qty(order.filled.0 + self.reducing(account, listing, order.side, leaves)?.0)
            }
            false => qty,
        };
        if edit.advanced.is_some() && order.terms.advanced.is_none() {
            return Err(ErrorCode::NotAdvOrder.into());
        }
        let (price, advanced) = match edit.price {
            None => (order.price, order.terms.advanced),
            given => {
                let (price, advanced) = self.priced(listing, order.side, edit.advanced, given)?;
                (self.price_of(listing, order.side, OrderType::Limit, price)?, advanced)
            }
        };
        if advanced.is_some() && edit.post_only {
            return Err(ErrorCode::NoAdvPostonly.into());
        }
        if edit.mmp && !order.terms.is_protected {
            self.check_protection(account, self.settings.listings[listing].index, "")?;
        }
        let display = match edit.display_amount {
            None => None,
            shown => Some(self.shown(listing, qty, shown)?),
        };
        let terms = Terms {
            is_post_only: edit.post_only || order.terms.is_post_only,
            rejects_post_only: edit.reject_post_only,
            is_reduce_only,
            is_protected: edit.mmp || order.terms.is_protected,
            advanced,
            is_auto_replaced: false,
            ..order.terms
        };
        let new = NewTerms { number, qty, price, terms, display };
        let origin = Origin { connection: Some(to.connection), reply: Some(to.clone()), ..Origin::default() };
        match self.send_change(account, new, origin)? {
            true => Ok(Done::Later),
            false => Ok(Done::Order(number)),
        }
    }

    /// Sends the change of an open order; returns false if nothing changes.
    pub(super) fn send_change(
        &mut self,
        account: usize,
        new: NewTerms,
        origin: Origin,
    ) -> Result<bool, Fault> {
        let NewTerms { number, qty, price, terms, display } = new;
        let order = self.open_order(account, number)?.clone();
        let shown = order.display.unwrap_or(Qty::ZERO);
        let (listing, display) = (order.listing, display.unwrap_or(shown));
        // A different originator alone is no change.
        let is_auto_replaced = order.terms.is_auto_replaced;
        let same = Terms { is_auto_replaced, ..terms } == order.terms;
        let is_as_it_was = price == order.price && display == shown && same;
        if is_as_it_was && qty == order.qty {
            return Ok(false);
        }
        let mut intent = Intent { listing, side: order.side, qty, price, terms, display, moves: 0 };
        let sent_us = self.now_us;
        // A smaller quantity at the same price keeps its queue priority.
        let request = if is_as_it_was && qty < order.qty {
            OrderRequest::Cancel(EngineCancel { user_ref: UserRefNum(order.user_ref), qty })
        } else {
            match self.keep_off_the_book(&mut intent) {
                // A post-only edit that would take is not rejected: the order is cancelled.
                Err(fault) if fault.code == ErrorCode::PostOnlyReject && origin.group.is_none() => {
                    OrderRequest::Cancel(EngineCancel {
                        user_ref: UserRefNum(order.user_ref),
                        qty: Qty::ZERO,
                    })
                }
                kept => {
                    kept?;
                    self.check_funds(account, &intent, Qty(qty.0 - order.filled.0), Some(number))?;
                    let replacement = self.engine_order(account, &intent);
                    OrderRequest::Replace(replacement.replacing(UserRefNum(order.user_ref)))
                }
            }
        };
        let Origin { connection, reply, group, extra, turn, .. } = origin;
        let work = Work::Edit { number, intent };
        self.send(account, Pending { request, work, connection, reply, group, sent_us, turn, extra })?;
        Ok(true)
    }

    /// Returns an open order, or the reason why it is not open.
    pub(super) fn open_order(&self, account: usize, number: u64) -> Result<&crate::order::Order, Fault> {
        let account = &self.accounts[account];
        if let Some(order) = account.open.get(&number) {
            return Ok(order);
        }
        Err(match account.order(number) {
            Some(order) if order.state == OrderState::Filled => ErrorCode::AlreadyFilled.into(),
            Some(_) => ErrorCode::NotOpenOrder.into(),
            None => ErrorCode::OrderNotFound.into(),
        })
    }

    /// Writes an order and its immediate trades.
    pub(super) fn order_reply(
        &self,
        account: usize,
        number: u64,
        trades: &[crate::order::UserTrade],
    ) -> Vec<u8> {
        let mut order = Vec::new();
        if let Some(known) = self.accounts[account].order(number) {
            self.write_order(known, &mut order);
        }
        let shown = trades.iter().take(ELEMENTS_MAX);
        let trades = list(shown, |trade, out| self.write_user_trade(trade, out));
        Object::new().with("order", Json(order)).with("trades", Json(trades)).end()
    }
}

pub(super) fn check_terms(
    order: &PlaceOrder<'_>,
    order_type: OrderType,
    time: TimeInForce,
) -> Result<(), Fault> {
    // Only the venue itself may send liquidation orders, which no limit applies to.
    if order_type == OrderType::Liquidation {
        return Err(Fault::param("type", "liquidation is the venue's own"));
    }
    let has_trigger =
        order.trigger.is_some() || order.trigger_price.is_some() || order.trigger_offset.is_some();
    if has_trigger && !waits(order_type) {
        return Err(Fault::because(
            ErrorCode::UnsupportedArgCombination,
            "only trigger orders have triggers",
        ));
    }
    if order.advanced.is_some() && order_type != OrderType::Limit {
        return Err(Fault::because(ErrorCode::UnsupportedArgCombination, "only limit orders are advanced"));
    }
    if order.advanced.is_some() && order.post_only {
        return Err(ErrorCode::NoAdvPostonly.into());
    }
    if order.mmp && order_type != OrderType::Limit {
        return Err(Fault::because(ErrorCode::UnsupportedArgCombination, "only limit orders have mmp"));
    }
    let rests = matches!(time, TimeInForce::GoodTilCancelled | TimeInForce::GoodTilDay);
    let is_limit = matches!(order_type, OrderType::Limit | OrderType::StopLimit | OrderType::TakeLimit);
    if !is_limit && time != TimeInForce::GoodTilCancelled {
        return Err(Fault::because(ErrorCode::InvalidArguments, "market orders have no time_in_force"));
    }
    if order.reject_post_only && !order.post_only {
        return Err(Fault::param("reject_post_only", "only with post_only"));
    }
    if order.post_only && (!rests || !is_limit) {
        return Err(ErrorCode::PostOnlyNotAllowed.into());
    }
    if order.display_amount.is_some() && (!rests || order_type != OrderType::Limit) {
        return Err(ErrorCode::InvalidMaxShow.into());
    }
    Ok(())
}

//! Orders that are entered, changed and cancelled.

use tickpath_deribit::codes::{CancelReason, OrderState, OrderType, TimeInForce};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::{CancelOrder, ClosePosition, EditByLabel, EditOrder, PlaceOrder};
use tickpath_deribit::number::Decimal;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_exchange::{DoorAsk, DoorRequest};
use tickpath_types::{
    CancelOrder as EngineCancel, EnterOrder, OrderRequest, Price, Qty, Side, SpecialTerms,
    TimeInForce as EngineTime, UserRefNum,
};

use super::account::Wanted;
use super::fix::FixDone;
use super::orders::Selection;
use super::triggers::{TriggerChange, waits};
use super::{ACCOUNT_REQUESTS_MAX, ANSWER_MAX, Answer, ELEMENTS_MAX, Front, REQUESTS_MAX};
use crate::config::BeyondBand;
use crate::fault::Fault;
use crate::json::{Json, Object, json, list, param};
use crate::labels::LABEL_LEN_MAX;
use crate::order::{Extra, TRIGGER_BIT, Terms};
use crate::pending::{Done, Group, Intent, Origin, Pending, ReplyTo, RequestId, Work};
use crate::record::Record;

/// Shown amounts are at least so many times the least amount, and this part of the whole.
const SHOWN_STEPS_MIN: u64 = 100;
const SHOWN_PART_MIN: u64 = 100;
/// Cancels that may wait for room in the queue, as many as the orders of two accounts.
const UNSENT_MAX: usize = 1 << 18;

/// An open order as it is to be.
pub(super) struct NewTerms {
    pub(super) number: u64,
    /// In all, with what is executed.
    pub(super) qty: Qty,
    pub(super) price: Price,
    pub(super) terms: Terms,
    /// What the book shows; none where that stays as it is.
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

    /// An order that was done at once, for its reply; none where the log is waited for.
    fn shown_order(&self, account: usize, done: Done) -> Option<Vec<u8>> {
        match done {
            Done::Later => None,
            Done::Order(number) => Some(self.order_reply(account, number, &[])),
        }
    }

    /// Enters an order, however it was asked for.
    pub(super) fn place_order(
        &mut self,
        account: usize,
        side: Side,
        order: &PlaceOrder<'_>,
        to: &ReplyTo,
    ) -> Result<Done, Fault> {
        self.place_linked(account, side, order, None, to)
    }

    /// The same with what is linked with it.
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

    /// The price for the engine: of a market order the end of the band, where what is left of it rests.
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

    /// As much of a quantity as the position has on the other side.
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

    /// Moves a post-only order that would take to the tick before the best price, or refuses it.
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

    /// Whether the account has what the order holds; `but` is the order that it takes the place of.
    pub(super) fn check_funds(
        &self,
        account: usize,
        intent: &Intent,
        leaves: Qty,
        but: Option<u64>,
    ) -> Result<(), Fault> {
        let listing = &self.settings.listings[intent.listing];
        let is_pair = listing.contract.style == tickpath_derivatives::Style::Spot;
        if !is_pair {
            self.check_not_liquidated(account, intent.listing)?;
        }
        self.check_held(account, intent, leaves, but)
    }

    /// The same of what is being closed too: an order that lowers nothing needs its margin.
    fn check_held(
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

    /// No order may come before the forced ones: with one in the book, or on its way, again and again the position would never
    /// be closed.
    fn check_not_liquidated(&self, account: usize, listing: usize) -> Result<(), Fault> {
        match self.is_short_of_margin(account, &self.settings.listings[listing].settlement) {
            true => Err(Fault::because(ErrorCode::NotEnoughFunds, "the position is being closed")),
            false => Ok(()),
        }
    }

    /// Sends a new order on its way.
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
            true => DoorAsk::Force(order),
            false => DoorAsk::Order(OrderRequest::Enter(order)),
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

    /// Sends an order on its way once more that a change took out of the book; it keeps its number.
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
        let user_ref = UserRefNum(self.accounts[account].next_ref);
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
                .then_some(SpecialTerms { display_qty: intent.display, ..SpecialTerms::default() }),
            client_order_id: intent.terms.encode(),
            ..EnterOrder::limit(user_ref, instrument, intent.side, intent.qty, intent.price)
        }
    }

    /// Hands a user's request to the venue, and remembers it until the log has it.
    fn send(&mut self, account: usize, pending: Pending) -> Result<(), Fault> {
        self.send_as(account, DoorAsk::Order(pending.request), pending)
    }

    fn send_as(&mut self, account: usize, ask: DoorAsk, mut pending: Pending) -> Result<(), Fault> {
        // Nobody fills the queue of all; what takes orders away has the room of all.
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
        self.requests.push_back(DoorRequest { session, received_ns, ask });
        known.pending.push_back(pending);
        Ok(())
    }

    pub(super) fn edit(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let edit: EditOrder<'_> = request.params()?;
        let number = self.order_number(account, &edit.order_id.to_cow())?;
        let done = self.edit_order(account, number, &edit, to)?;
        Ok(self.shown_order(account, done))
    }

    /// Changes an order, however it was asked for.
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

    /// Changes an order that waits for a price.
    fn edit_waiting(&mut self, account: usize, number: u64, edit: &EditOrder<'_>) -> Result<(), Fault> {
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

    /// Changes an order of the book.
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

    /// Sends the change of an open order on its way; false where there is nothing to change.
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
        // Who moved it last is no change by itself.
        let is_auto_replaced = order.terms.is_auto_replaced;
        let same = Terms { is_auto_replaced, ..terms } == order.terms;
        let is_as_it_was = price == order.price && display == shown && same;
        if is_as_it_was && qty == order.qty {
            return Ok(false);
        }
        let mut intent = Intent { listing, side: order.side, qty, price, terms, display, moves: 0 };
        let sent_us = self.now_us;
        // At the same price less keeps its place in the queue.
        let request = if is_as_it_was && qty < order.qty {
            OrderRequest::Cancel(EngineCancel { user_ref: UserRefNum(order.user_ref), qty })
        } else {
            match self.keep_off_the_book(&mut intent) {
                // An edit that would take is not refused: the order goes.
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

    /// An order that is open, or why it is not.
    fn open_order(&self, account: usize, number: u64) -> Result<&crate::order::Order, Fault> {
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

    pub(super) fn cancel(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let CancelOrder { order_id } = request.params()?;
        let number = self.order_number(account, &order_id.to_cow())?;
        match self.cancel_order(account, number, to)? {
            Done::Later => Ok(None),
            Done::Order(number) => {
                let mut order = Vec::new();
                if let Some(known) = self.accounts[account].order(number) {
                    self.write_order(known, &mut order);
                }
                Ok(Some(order))
            }
        }
    }

    /// Cancels an order, however it was asked for.
    pub(super) fn cancel_order(&mut self, account: usize, number: u64, to: &ReplyTo) -> Result<Done, Fault> {
        if self.accounts[account].waiting.contains_key(&number) {
            self.end_trigger(account, number, OrderState::Cancelled, Some(CancelReason::UserRequest));
            return Ok(Done::Order(number));
        }
        self.open_order(account, number)?;
        self.send_cancel(account, number, Some(to.clone()), None, CancelReason::UserRequest)?;
        Ok(Done::Later)
    }

    pub(super) fn send_cancel(
        &mut self,
        account: usize,
        number: u64,
        reply: Option<ReplyTo>,
        group: Option<u64>,
        reason: CancelReason,
    ) -> Result<(), Fault> {
        let user_ref = UserRefNum(self.open_order(account, number)?.user_ref);
        let sent_us = self.now_us;
        self.send(
            account,
            Pending {
                request: OrderRequest::Cancel(EngineCancel { user_ref, qty: Qty::ZERO }),
                work: Work::Cancel { number, reason },
                connection: None,
                reply,
                group,
                sent_us,
                turn: 0,
                extra: None,
            },
        )
    }

    /// Cancels all that is meant; answered once the log has all of it.
    pub(super) fn cancel_many(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let params: Value<'_> = request.params()?;
        let is_detailed = param(&params, "detailed")?.unwrap_or(false);
        let selection = self.selection(request)?;
        self.freeze_quotes(account, &params)?;
        let group = self.cancel_selected(account, &selection, is_detailed, to)?;
        Ok(group.map(|group| self.group_result(&group)))
    }

    /// Cancels what is selected, however it was asked for. What is given is done; nothing where the log is waited for.
    pub(super) fn cancel_selected(
        &mut self,
        account: usize,
        selection: &Selection,
        is_detailed: bool,
        to: &ReplyTo,
    ) -> Result<Option<Group>, Fault> {
        let orders = self.accounts[account].open.values();
        let numbers: Vec<u64> =
            orders.filter(|order| self.is_selected(selection, order)).map(|order| order.number).collect();
        let waiting = self.accounts[account].waiting.values();
        let waiting: Vec<u64> =
            waiting.filter(|order| self.is_selected(selection, order)).map(|order| order.number).collect();
        for number in &waiting {
            self.end_trigger(account, *number, OrderState::Cancelled, Some(CancelReason::UserRequest));
        }
        self.cancel_all_of(account, &numbers, waiting, is_detailed, to)
    }

    /// Cancels open orders; those that `waited` are cancelled already. What is given is done.
    pub(super) fn cancel_all_of(
        &mut self,
        account: usize,
        numbers: &[u64],
        waited: Vec<u64>,
        is_detailed: bool,
        to: &ReplyTo,
    ) -> Result<Option<Group>, Fault> {
        let mut group =
            Group { reply: to.clone(), waiting: 0, cancelled: waited, is_detailed, account, quoting: None };
        if numbers.is_empty() {
            return Ok(Some(group));
        }
        // All of them or none: nobody is to believe that he has no orders left.
        if self.unsent.len() + numbers.len() > UNSENT_MAX {
            return Err(ErrorCode::MatchingEngineQueueFull.into());
        }
        let number_of_group = self.next_group;
        self.next_group += 1;
        group.waiting = numbers.len();
        self.groups.insert(number_of_group, group);
        self.unsent.extend(numbers.iter().map(|number| (account, *number, number_of_group)));
        self.send_unsent();
        Ok(None)
    }

    /// Sends cancels that waited for room, as far as there is some: the other half of the queue is for other requests.
    pub(super) fn send_unsent(&mut self) {
        while self.requests.len() < REQUESTS_MAX / 2
            && let Some((account, number, group)) = self.unsent.pop_front()
        {
            if self.send_cancel(account, number, None, Some(group), CancelReason::UserRequest).is_err() {
                // It has ended meanwhile.
                self.finish_of_group(group, None);
            }
        }
    }

    /// One of many is in the log, or is given up; the last of them answers.
    pub(super) fn finish_of_group(&mut self, number: u64, cancelled: Option<u64>) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.cancelled.extend(cancelled);
        group.waiting -= 1;
        if group.waiting > 0 {
            return;
        }
        let Some(group) = self.groups.remove(&number) else { return };
        if let RequestId::Fix(asked) = &group.reply.id {
            return self.answer_fix(group.account, &group.reply, asked, Ok(FixDone::of(&group)));
        }
        let result = match group.quoting {
            Some(_) => self.quoting_result(&group),
            None => self.group_result(&group),
        };
        self.reply(&group.reply, Ok(result));
    }

    pub(super) fn group_result(&self, group: &Group) -> Vec<u8> {
        let detailed = group.is_detailed.then(|| self.detailed(group));
        // What is done is done: where the reports are too many, their number is told.
        let detailed = detailed.filter(|detailed| detailed.len() <= ANSWER_MAX);
        detailed.unwrap_or_else(|| json(&(group.cancelled.len() as u64)))
    }

    /// The cancelled orders by their instruments.
    fn detailed(&self, group: &Group) -> Vec<u8> {
        let account = &self.accounts[group.account];
        let orders = account.orders(&group.cancelled);
        let mut places: Vec<usize> = orders.iter().map(|order| order.listing).collect();
        places.sort_unstable();
        places.dedup();
        list(places, |place, out| {
            let listing = &self.settings.listings[place];
            let own = orders.iter().filter(|order| order.listing == place);
            let result = Json(list(own, |order, out| self.write_order(order, out)));
            let report = Object::new()
                .with("instrument_name", tickpath_deribit::text::Text::new(&listing.name))
                .with("currency", tickpath_deribit::text::Text::new(listing.currency()))
                .with("type", tickpath_deribit::text::Text::new("limit"))
                .with("result", result);
            out.extend_from_slice(&report.end());
        })
    }

    pub(super) fn close_position(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let close: ClosePosition<'_> = request.params()?;
        let listing = self.find_traded(&close.instrument_name.to_cow())?;
        let size = self.accounts[account].position(listing).size;
        let side = match size.signum() {
            1 => Side::Sell,
            -1 => Side::Buy,
            _ => return Err(Fault::because(ErrorCode::AlreadyClosed, "there is no position")),
        };
        if !matches!(close.order_type, OrderType::Limit | OrderType::Market) {
            return Err(Fault::param("type", "value must be limit or market"));
        }
        if close.order_type == OrderType::Limit {
            self.check_not_liquidated(account, listing)?;
        }
        let price = self.price_of(listing, side, close.order_type, close.price)?;
        let terms = Terms { order_type: close.order_type, is_reduce_only: true, ..Terms::default() };
        let left = size.unsigned_abs().saturating_sub(self.closing(account, listing, side));
        if left == 0 {
            return Err(Fault::because(ErrorCode::AlreadyClosed, "open orders close the whole position"));
        }
        // Of a position above the largest order a further request closes the rest.
        let qty = Qty(left).min(self.settings.listings[listing].max_qty);
        let intent = Intent { listing, side, qty, price, terms, display: Qty::ZERO, moves: 0 };
        self.check_held(account, &intent, qty, None)?;
        self.enter(account, intent, Some(to.connection), Some(to.clone()))?;
        Ok(None)
    }

    /// As much as open orders, and those on their way, close of a position and do nothing else.
    fn closing(&self, account: usize, listing: usize, side: Side) -> u64 {
        let known = &self.accounts[account];
        let is_meant =
            |place: usize, own: Side, terms: &Terms| (place, own) == (listing, side) && terms.is_reduce_only;
        let open = known.open.values().filter(|order| is_meant(order.listing, order.side, &order.terms));
        let pending = known.pending.iter().filter_map(|pending| match pending.work {
            Work::Place(intent) if is_meant(intent.listing, intent.side, &intent.terms) => Some(intent.qty.0),
            _ => None,
        });
        open.map(|order| order.leaves().0).chain(pending).fold(0, u64::saturating_add)
    }

    /// Cancels the orders whose connections are gone: those that were open then, and those that were on their way.
    pub(super) fn cancel_for_gone(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let orders = self.accounts.iter().flat_map(|known| known.open.values().chain(known.waiting.values()));
        let pending = self.accounts.iter().flat_map(|known| known.pending.iter().chain(&known.late));
        let owners: std::collections::HashSet<u64> = orders
            .filter_map(|order| order.connection)
            .chain(pending.filter_map(|pending| pending.connection))
            .chain(self.queued.keys().copied())
            .collect();
        // One that owns nothing any more need not be known.
        self.gone.retain(|connection| owners.contains(connection));
        for account in 0..self.accounts.len() {
            let known = &self.accounts[account];
            let is_gone = |order: &&crate::order::Order| {
                order.connection.is_some_and(|connection| self.gone.contains(&connection))
                    && !known.is_cancelling(order.number)
            };
            let own: Vec<u64> = known.open.values().filter(is_gone).map(|order| order.number).collect();
            let waiting: Vec<u64> =
                known.waiting.values().filter(is_gone).map(|order| order.number).collect();
            for order in waiting {
                let reason = Some(CancelReason::CancelOnDisconnect);
                self.end_trigger(account, order, OrderState::Cancelled, reason);
            }
            for order in own {
                // Where the queue is full it is tried again a little later.
                let _ = self.send_cancel(account, order, None, None, CancelReason::CancelOnDisconnect);
            }
        }
    }

    /// Orders that are good till the end of the day end at 08:00 UTC.
    pub(super) fn end_day_orders(&mut self) {
        const DAY_MS: u64 = 86_400_000;
        const END_MS: u64 = 8 * 3_600_000;
        let now_ms = self.now_ms();
        let last_end = now_ms.saturating_sub(END_MS) / DAY_MS * DAY_MS + END_MS;
        for account in 0..self.accounts.len() {
            let known = &self.accounts[account];
            let is_over = |order: &&crate::order::Order| {
                order.terms.time_in_force == TimeInForce::GoodTilDay && order.created_ms < last_end
            };
            let waiting: Vec<u64> =
                known.waiting.values().filter(is_over).map(|order| order.number).collect();
            let open = known.open.values().filter(is_over);
            let over: Vec<u64> =
                open.map(|order| order.number).filter(|number| !known.is_cancelling(*number)).collect();
            for number in waiting {
                self.end_trigger(account, number, OrderState::Cancelled, Some(CancelReason::Settlement));
            }
            for number in over {
                let _ = self.send_cancel(account, number, None, None, CancelReason::Settlement);
            }
        }
    }

    /// An order and what it traded at once.
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
    // Of the venue's own orders, which no limit holds back: it is nobody else's to ask for.
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

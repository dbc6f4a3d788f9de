//! Orders over FIX: requests are converted to the JSON-RPC form.

use tickpath_deribit::codes::{Advanced, Kind, OrderType, TimeInForce, Trigger};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::{EditOrder, PlaceOrder};
use tickpath_deribit::text::Text;
use tickpath_fix::deribit::{
    NewOrderSingle, OrdType, OrderCancelReplaceRequest, OrderCancelRequest, OrderMassCancelRequest,
    PegPriceType, QtyType, SideCode, TimeInForceCode, Trigger as TriggerCode,
};
use tickpath_fix::session::Refusal;
use tickpath_fix::{Body, Decimal as FixDecimal, FieldError, Message, MsgType, tag};
use tickpath_types::Side;

use super::{Caller, FixDone, Front, missing, number_of, out_of_range};
use crate::fault::Fault;
use crate::front::history::number_of as number_of_order;
use crate::front::in_order::Look;
use crate::front::orders::Selection;
use crate::labels::LABEL_LEN_MAX;
use crate::order::Order;
use crate::pending::{Done, FixKind, FixRequest, Group, ReplyTo, RequestId};

/// MassCancelRequestType (530).
const OF_SYMBOL: u64 = 1;
const OF_SECURITY_TYPE: u64 = 5;
const ALL: u64 = 7;
const OF_LABEL: u64 = 10;

/// Reject text for a SecurityType.
pub(super) const UNKNOWN_KIND: &str = "no such kind";
/// Reject text for a ClOrdID.
pub(super) const DUPLICATE: &str = "an open order has this ClOrdID (11)";

/// Names by which a client identifies an order.
#[derive(Default)]
pub(super) struct Name<'a> {
    pub(super) order_id: Option<&'a str>,
    pub(super) client_id: Option<&'a str>,
    pub(super) label: Option<&'a str>,
    pub(super) symbol: Option<&'a str>,
    pub(super) currency: Option<&'a str>,
}

impl Name<'_> {
    /// Returns true if the order has the given instrument and currency.
    pub(super) fn has(&self, front: &Front, order: &Order) -> bool {
        let listing = &front.settings.listings[order.listing];
        self.symbol.is_none_or(|symbol| symbol == listing.name)
            && self.currency.is_none_or(|currency| listing.is_of(None, currency))
    }

    /// Describes a request about the order.
    fn request(&self, caller: Caller, kind: FixKind) -> FixRequest {
        let own = |text: Option<&str>| text.unwrap_or_default().to_owned();
        FixRequest {
            client_id: own(self.client_id),
            order_id: own(self.order_id),
            label: own(self.label),
            symbol: own(self.symbol),
            ..FixRequest::of(caller.sequence, kind)
        }
    }
}

/// Immediate outcome of a request.
pub(super) enum Outcome {
    /// The reply follows once the log confirms the request.
    Later,
    /// Done; the number of the order.
    Order(u64),
    /// A bulk request is done.
    Group(Group),
}

impl From<Done> for Outcome {
    fn from(done: Done) -> Outcome {
        match done {
            Done::Later => Outcome::Later,
            Done::Order(number) => Outcome::Order(number),
        }
    }
}

impl From<Option<Group>> for Outcome {
    fn from(group: Option<Group>) -> Outcome {
        group.map_or(Outcome::Later, Outcome::Group)
    }
}

/// Returns the orders whose in-flight requests a request must wait for.
pub(super) fn look_of(message: &Message<'_>) -> Look {
    let of = |order_id: Option<&str>, client_id: Option<&str>, label: Option<&str>| match (
        order_id, client_id, label,
    ) {
        (Some(id), ..) => number_of_order(id).map_or(Look::Nothing, Look::Order),
        (None, Some(id), _) => Look::ClientId(id.to_owned()),
        (None, None, Some(label)) => Look::Label(label.to_owned()),
        (None, None, None) => Look::Nothing,
    };
    let look = match message.msg_type() {
        // A ClOrdID may be reused once its order is closed.
        MsgType::NEW_ORDER_SINGLE => NewOrderSingle::decode(message).map(|order| {
            let reduces = order.exec_inst.is_some_and(|text| text.contains('E'));
            if reduces { Look::All } else { Look::ClientId(order.cl_ord_id.to_owned()) }
        }),
        MsgType::ORDER_CANCEL_REPLACE_REQUEST => OrderCancelReplaceRequest::decode(message).map(|replace| {
            let reduces = replace.exec_inst.is_some_and(|text| text.contains('E'));
            if reduces { Look::All } else { of(replace.orig_cl_ord_id, replace.cl_ord_id, replace.label) }
        }),
        MsgType::ORDER_CANCEL_REQUEST => OrderCancelRequest::decode(message)
            .map(|cancel| of(cancel.orig_cl_ord_id, cancel.cl_ord_id, cancel.label)),
        MsgType::ORDER_MASS_CANCEL_REQUEST | MsgType::QUOTE_CANCEL | MsgType::ORDER_MASS_STATUS_REQUEST => {
            Ok(Look::All)
        }
        _ => Ok(Look::Nothing),
    };
    // A message that cannot be decoded is rejected later for that reason.
    look.unwrap_or(Look::Nothing)
}

impl Front {
    /// Executes an order request and sends its reply if it is done or rejected at once.
    pub(super) fn do_by_fix<T: Into<Outcome>>(
        &mut self,
        caller: Caller,
        asked: FixRequest,
        act: impl FnOnce(&mut Front, &ReplyTo) -> Result<T, Fault>,
    ) {
        let id = RequestId::Fix(Box::new(asked));
        let to = ReplyTo { connection: caller.number, id, us_in: self.now_us };
        let outcome = match self.disturb_order(&to) {
            None => act(self, &to).map(T::into),
            Some(lost) => lost.map(|()| Outcome::Later),
        };
        let RequestId::Fix(asked) = &to.id else { return };
        let done = match &outcome {
            Ok(Outcome::Later) => return,
            Ok(Outcome::Order(number)) => Ok(FixDone::Order { number: *number, trades: &[] }),
            Ok(Outcome::Group(group)) => Ok(FixDone::of(group)),
            Err(fault) => Err(*fault),
        };
        self.answer_fix(caller.account, &to, asked, done);
        // No log command reports this request again.
        self.fix.answered = None;
    }

    pub(super) fn enter_by_fix(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let order = NewOrderSingle::decode(message)?;
        let side = side_of(order.side)?;
        let place = self.place_of(&order)?;
        let asked = FixRequest {
            client_id: order.cl_ord_id.to_owned(),
            label: order.label.unwrap_or_default().to_owned(),
            symbol: order.symbol.to_owned(),
            side: order.side,
            qty: order.order_qty,
            price: order.price,
            ..FixRequest::of(caller.sequence, FixKind::Enter)
        };
        self.do_by_fix(caller, asked, |front, to| {
            front.check_client_id(caller.account, order.cl_ord_id)?;
            front.place_order(caller.account, side, &place, to)
        });
        Ok(())
    }

    /// Converts a new order to its JSON-RPC form.
    fn place_of<'a>(&self, order: &NewOrderSingle<'a>) -> Result<PlaceOrder<'a>, FieldError> {
        let qty = number_of(order.order_qty, tag::ORDER_QTY)?;
        let is_units = is_in_units(order.qty_type)?;
        let number =
            |decimal: Option<FixDecimal>, tag| decimal.map(|decimal| number_of(decimal, tag)).transpose();
        let instructions = Instructions::read(order.exec_inst)?;
        let order_type = type_of(order)?;
        check_shape(order, order_type)?;
        Ok(PlaceOrder {
            amount: Some(qty).filter(|_| is_units),
            contracts: Some(qty).filter(|_| !is_units),
            order_type: Some(order_type),
            price: number(order.price, tag::PRICE)?,
            label: order.label.map(Text::new),
            advanced: order.adv_order_type.map(advanced_of).transpose()?,
            time_in_force: Some(time_of(order.time_in_force)?),
            post_only: instructions.is_post_only,
            reject_post_only: instructions.rejects_post_only,
            reduce_only: instructions.is_reduce_only,
            display_amount: order
                .display_qty
                .filter(|shown| shown.normalized().mantissa() != 0)
                .map(|shown| self.display_amount(order.symbol, shown, is_units))
                .transpose()?,
            trigger: order.trigger.map(trigger_of).transpose()?,
            trigger_price: number(order.stop_px, tag::STOP_PX)?,
            trigger_offset: number(order.peg_offset_value, tag::PEG_OFFSET_VALUE)?,
            mmp: order.mm_protection == Some(true),
            valid_until: order.valid_until_time.map(|time| time.0 / 1_000_000),
            ..PlaceOrder::market(order.symbol, qty)
        })
    }

    /// Rejects a ClOrdID that is too long or belongs to an open order of the account.
    fn check_client_id(&self, account: usize, client_id: &str) -> Result<(), Fault> {
        if client_id.chars().count() > LABEL_LEN_MAX {
            return Err(Fault::because(ErrorCode::BadArgument, "ClOrdID (11) has more than 64 characters"));
        }
        match self.live(account).any(|order| self.labels.client_id(order.terms.label) == client_id) {
            true => Err(Fault::because(ErrorCode::BadArgument, DUPLICATE)),
            false => Ok(()),
        }
    }

    pub(super) fn live(&self, account: usize) -> impl Iterator<Item = &Order> {
        let account = &self.accounts[account];
        account.open.values().chain(account.waiting.values())
    }

    pub(super) fn replace_by_fix(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let replace = OrderCancelReplaceRequest::decode(message)?;
        let side = side_of(replace.side)?;
        let qty = number_of(replace.order_qty, tag::ORDER_QTY)?;
        let is_units = is_in_units(replace.qty_type)?;
        let price = replace.price.map(|price| number_of(price, tag::PRICE)).transpose()?;
        if replace.ord_type.is_some_and(|ord_type| ord_type != OrdType::LIMIT) {
            return Err(out_of_range(tag::ORD_TYPE).into());
        }
        let instructions = Instructions::read(replace.exec_inst)?;
        let edit = EditOrder {
            amount: Some(qty).filter(|_| is_units),
            contracts: Some(qty).filter(|_| !is_units),
            price,
            post_only: instructions.is_post_only,
            reject_post_only: instructions.rejects_post_only,
            reduce_only: instructions.is_reduce_only,
            valid_until: replace.valid_until_time.map(|time| time.0 / 1_000_000),
            display_amount: replace
                .display_qty
                .filter(|shown| shown.normalized().mantissa() != 0)
                .map(|shown| self.display_amount(replace.symbol, shown, is_units))
                .transpose()?,
            mmp: replace.mm_protection == Some(true),
            ..EditOrder::of("")
        };
        let name = Name {
            order_id: replace.orig_cl_ord_id,
            client_id: replace.cl_ord_id,
            label: replace.label,
            symbol: Some(replace.symbol),
            currency: replace.currency,
        };
        let asked = FixRequest {
            side: replace.side,
            qty: replace.order_qty,
            price: replace.price,
            ..name.request(caller, FixKind::Replace)
        };
        self.do_by_fix(caller, asked, |front, to| {
            let order = front.find_order(caller.account, &name)?;
            let known = front.accounts[caller.account].order(order).ok_or(ErrorCode::OrderNotFound)?;
            if known.side != side {
                return Err(Fault::because(ErrorCode::BadArgument, "Side (54) is not the order's"));
            }
            // A value that the order already has is no change.
            let listing = &front.settings.listings[known.listing];
            let has = |shown| known.display.is_some_and(|display| listing.amount(display) == shown);
            let edit = EditOrder {
                mmp: edit.mmp && !known.terms.is_protected,
                display_amount: edit.display_amount.filter(|shown| !has(*shown)),
                ..edit
            };
            front.edit_order(caller.account, order, &edit, to)
        });
        Ok(())
    }

    pub(super) fn cancel_by_fix(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let cancel = OrderCancelRequest::decode(message)?;
        if cancel.orig_cl_ord_id.is_none() && cancel.symbol.is_none() {
            return Err(missing(tag::SYMBOL).into());
        }
        let name = Name {
            order_id: cancel.orig_cl_ord_id,
            client_id: cancel.cl_ord_id,
            label: cancel.label,
            symbol: cancel.symbol,
            currency: cancel.currency,
        };
        self.do_by_fix(caller, name.request(caller, FixKind::Cancel), |front, to| {
            let order = front.find_order(caller.account, &name)?;
            front.cancel_order(caller.account, order, to)
        });
        Ok(())
    }

    /// Finds an order by the venue's id, by its ClOrdID, or by a label that only one order has.
    pub(super) fn find_order(&self, account: usize, name: &Name<'_>) -> Result<u64, Fault> {
        let not_found = || Fault::new(ErrorCode::OrderNotFound);
        let is_meant = |order: &&Order| name.has(self, order);
        if let Some(id) = name.order_id {
            let number = self.order_number(account, id)?;
            let order = self.accounts[account].order(number).filter(is_meant);
            return order.map(|order| order.number).ok_or_else(not_found);
        }
        if let Some(id) = name.client_id {
            let mut found = self
                .live(account)
                .chain(self.accounts[account].closed.iter().rev())
                .filter(is_meant)
                .filter(|order| self.labels.client_id(order.terms.label) == id);
            return found.next().map(|order| order.number).ok_or_else(not_found);
        }
        let label = name.label.ok_or(Fault::because(ErrorCode::BadArguments, "no id and no label"))?;
        let mut found =
            self.live(account).filter(is_meant).filter(|order| self.labels.name(order.terms.label) == label);
        let order = found.next().ok_or_else(not_found)?.number;
        if found.next().is_some() { Err(ErrorCode::NonUniqueOrderLabel.into()) } else { Ok(order) }
    }

    pub(super) fn mass_cancel_by_fix(
        &mut self,
        caller: Caller,
        message: &Message<'_>,
    ) -> Result<(), Refusal> {
        let cancel = OrderMassCancelRequest::decode(message)?;
        let asked = FixRequest {
            client_id: cancel.cl_ord_id.to_owned(),
            label: cancel.label.unwrap_or_default().to_owned(),
            symbol: cancel.symbol.unwrap_or_default().to_owned(),
            ..FixRequest::of(caller.sequence, FixKind::MassCancel(cancel.request_type))
        };
        let selection = self.mass_selection(&cancel)?;
        self.do_by_fix(caller, asked, |front, to| {
            let selection = selection?;
            front.freeze_quotes_where(caller.account, cancel.freeze_quotes == Some(true));
            // The reply is built from the list of orders.
            front.cancel_selected(caller.account, &selection, true, to)
        });
        Ok(())
    }

    fn mass_selection(
        &self,
        cancel: &OrderMassCancelRequest<'_>,
    ) -> Result<Result<Selection, Fault>, FieldError> {
        let mut selection = Selection::default();
        match cancel.request_type {
            ALL => {}
            OF_SYMBOL => {
                let symbol = cancel.symbol.ok_or(missing(tag::SYMBOL))?;
                match self.listing(symbol) {
                    Some(listing) => selection.listing = Some(listing),
                    None => return Ok(Err(ErrorCode::InvalidOrUnsupportedInstrument.into())),
                }
            }
            OF_SECURITY_TYPE => {
                let security_type = cancel.security_type.ok_or(missing(tag::SECURITY_TYPE))?;
                match kind_of(security_type) {
                    Some(kind) => selection.kind = Some(kind),
                    None => return Ok(Err(Fault::param("kind", UNKNOWN_KIND))),
                }
            }
            OF_LABEL => {
                let label = cancel.label.ok_or(missing(tag::DERIBIT_LABEL))?;
                selection.label = Some(label.to_owned());
            }
            _ => return Err(out_of_range(tag::MASS_CANCEL_REQUEST_TYPE)),
        }
        selection.currencies.extend(cancel.currency.map(str::to_owned));
        Ok(Ok(selection))
    }

    /// Converts a displayed quantity to an amount.
    fn display_amount(
        &self,
        symbol: &str,
        shown: FixDecimal,
        is_units: bool,
    ) -> Result<tickpath_deribit::number::Decimal, FieldError> {
        let shown = number_of(shown, tag::DISPLAY_QTY)?;
        let listing = self.listing(symbol).filter(|_| !is_units);
        let amount = match listing {
            Some(listing) => self.settings.listings[listing].amount_of_contracts(shown),
            None => Some(shown),
        };
        amount.ok_or(out_of_range(tag::DISPLAY_QTY))
    }
}

/// ExecInst (18): `6` post only, `6A` post only or reject, `E` reduce only; blanks between them are optional.
#[derive(Default)]
pub(super) struct Instructions {
    pub(super) is_post_only: bool,
    pub(super) rejects_post_only: bool,
    is_reduce_only: bool,
}

impl Instructions {
    pub(super) fn read(exec_inst: Option<&str>) -> Result<Instructions, FieldError> {
        let exec_inst = exec_inst.unwrap_or_default();
        let has = |letter| exec_inst.contains(letter);
        let is_known = exec_inst.chars().all(|letter| "6AE ".contains(letter));
        if !is_known || (has('A') && !has('6')) {
            return Err(out_of_range(tag::EXEC_INST));
        }
        Ok(Instructions { is_post_only: has('6'), rejects_post_only: has('A'), is_reduce_only: has('E') })
    }
}

fn side_of(side: SideCode) -> Result<Side, FieldError> {
    match side {
        SideCode::BUY => Ok(Side::Buy),
        SideCode::SELL => Ok(Side::Sell),
        _ => Err(out_of_range(tag::SIDE)),
    }
}

/// Returns true for a quantity in units, false for contracts.
fn is_in_units(qty_type: Option<QtyType>) -> Result<bool, FieldError> {
    match qty_type {
        None | Some(QtyType::CONTRACTS) => Ok(false),
        Some(QtyType::UNITS) => Ok(true),
        Some(_) => Err(out_of_range(tag::QTY_TYPE)),
    }
}

/// `J` is a stop limit, which has a stop price, and `S` a stop market. Deribit's FIX has no take orders.
fn type_of(order: &NewOrderSingle<'_>) -> Result<OrderType, FieldError> {
    Ok(match order.ord_type.unwrap_or(OrdType::LIMIT) {
        OrdType::MARKET => OrderType::Market,
        OrdType::LIMIT => OrderType::Limit,
        OrdType::TRAILING_STOP => OrderType::TrailingStop,
        OrdType::MARKET_LIMIT => OrderType::MarketLimit,
        OrdType::MARKET_IF_TOUCHED => OrderType::StopLimit,
        OrdType::STOP_MARKET => OrderType::StopMarket,
        _ => return Err(out_of_range(tag::ORD_TYPE)),
    })
}

/// Checks that dependent fields are present together.
fn check_shape(order: &NewOrderSingle<'_>, order_type: OrderType) -> Result<(), FieldError> {
    let trails = order_type == OrderType::TrailingStop;
    let is_stop = matches!(order_type, OrderType::StopLimit | OrderType::StopMarket);
    if order.stop_px.is_some() != is_stop {
        return Err(if is_stop { missing(tag::STOP_PX) } else { out_of_range(tag::STOP_PX) });
    }
    if order_type == OrderType::StopLimit && order.price.is_none() {
        return Err(missing(tag::PRICE));
    }
    if order.peg_offset_value.is_some() != trails {
        return Err(if trails {
            missing(tag::PEG_OFFSET_VALUE)
        } else {
            out_of_range(tag::PEG_OFFSET_VALUE)
        });
    }
    if order.peg_price_type.is_some_and(|kind| kind != PegPriceType::TRAILING_STOP || !trails) {
        return Err(out_of_range(tag::PEG_PRICE_TYPE));
    }
    // The refresh quantity must equal the displayed quantity.
    if order.refresh_qty.is_some_and(|refresh| order.display_qty.is_none_or(|shown| !is_same(shown, refresh)))
    {
        return Err(out_of_range(tag::REFRESH_QTY));
    }
    Ok(())
}

fn is_same(one: FixDecimal, other: FixDecimal) -> bool {
    let (one, other) = (one.normalized(), other.normalized());
    (one.mantissa(), one.scale()) == (other.mantissa(), other.scale())
}

/// DeribitAdvOrderType (100012).
fn advanced_of(code: &str) -> Result<Advanced, FieldError> {
    match code {
        "0" => Ok(Advanced::ImpliedVolatility),
        "1" => Ok(Advanced::Usd),
        _ => Err(out_of_range(tag::DERIBIT_ADV_ORDER_TYPE)),
    }
}

fn time_of(code: Option<TimeInForceCode>) -> Result<TimeInForce, FieldError> {
    match code {
        None | Some(TimeInForceCode::GOOD_TIL_CANCEL) => Ok(TimeInForce::GoodTilCancelled),
        Some(TimeInForceCode::GOOD_TIL_DAY) => Ok(TimeInForce::GoodTilDay),
        Some(TimeInForceCode::IMMEDIATE_OR_CANCEL) => Ok(TimeInForce::ImmediateOrCancel),
        Some(TimeInForceCode::FILL_OR_KILL) => Ok(TimeInForce::FillOrKill),
        Some(_) => Err(out_of_range(tag::TIME_IN_FORCE)),
    }
}

fn trigger_of(code: TriggerCode) -> Result<Trigger, FieldError> {
    match code {
        TriggerCode::MARK => Ok(Trigger::MarkPrice),
        TriggerCode::LAST => Ok(Trigger::LastPrice),
        TriggerCode::INDEX => Ok(Trigger::IndexPrice),
        _ => Err(out_of_range(tag::CONDITION_TRIGGER_METHOD)),
    }
}

/// Returns the kind of a SecurityType (167).
pub(super) fn kind_of(security_type: &str) -> Option<Kind> {
    match security_type {
        "FUT" => Some(Kind::Future),
        "OPT" => Some(Kind::Option),
        "FXSPOT" | "SPOT" => Some(Kind::Spot),
        "FUTCO" => Some(Kind::FutureCombo),
        "OPTCO" => Some(Kind::OptionCombo),
        _ => None,
    }
}

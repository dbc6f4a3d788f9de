//! Requests: the messages to send for each, and the outcome by the drop copies.

use tickpath_types::{
    CancelOrder, ClientOrderId, EnterOrder, InstrumentId, MassCancel, OrderRequest, Price, Qty, RejectReason,
    Side, TimeInForce, UserRefNum,
};

use super::account::{Account, OwnOrder};
use super::link::{NativeLink, Pending};
use super::plan::{self, Ask, Edit};
use super::{answers, words};
use crate::link::Answer;

/// Number of account queries after which a request without a trace in the copies was not accepted. One is not
/// enough, since the answer to a query of an earlier connection may arrive late.
const CHECKS: u8 = 2;
/// The client order id of orders that only consume a number.
const VOID: ClientOrderId = ClientOrderId(*b"VOID          ");

/// The outcome of a request.
pub(super) enum Conclusion {
    Answer(Answer),
    /// This request must follow.
    Next(Ask),
    AskAgain,
}

impl NativeLink {
    /// An order of quantity zero: the venue refuses it, which consumes its number. If the number was used
    /// before, it has no effect.
    pub(super) fn void(&self, number: u32) -> OrderRequest {
        let first = self.settings.instruments.iter().next();
        let (instrument, price) =
            first.map_or((InstrumentId(1), Price(100)), |first| (first.id, first.reference_price));
        let order = EnterOrder::limit(UserRefNum(number), instrument, Side::Buy, Qty::ZERO, price);
        OrderRequest::Enter(EnterOrder { client_order_id: VOID, ..order })
    }

    /// Whether an order already has the quantity of a change.
    pub(super) fn is_reduced(&self, edit: &Edit) -> bool {
        open_order(&self.account, edit.id).is_ok_and(|own| edit.qty == Some(own.order.qty))
    }

    /// The messages to send for a request.
    pub(super) fn requests(&mut self, pending: &mut Pending) -> Result<Vec<OrderRequest>, String> {
        let cancel = |own: &OwnOrder, qty: u64| {
            OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(own.user_ref), qty: Qty(qty) })
        };
        Ok(match &mut pending.ask {
            Ask::Enter(order) => {
                let number = take_number(&mut self.next_ref)?;
                (order.user_ref, pending.number) = (UserRefNum(number), Some(number));
                vec![OrderRequest::Enter(*order)]
            }
            Ask::Edit(edit) => {
                let own = *open_order(&self.account, edit.id)?;
                let qty = edit.qty.unwrap_or(own.order.qty);
                pending.targets = vec![own.id];
                if edit.is_reduction_of(&own) {
                    // A reduction keeps the place in the queue.
                    vec![cancel(&own, qty.0)]
                } else {
                    let number = take_number(&mut self.next_ref)?;
                    pending.number = Some(number);
                    vec![OrderRequest::Replace(edit.order(&own, number).replacing(UserRefNum(own.user_ref)))]
                }
            }
            Ask::Cancel { id } => {
                let own = open_order(&self.account, *id)?;
                pending.targets = vec![own.id];
                vec![cancel(own, 0)]
            }
            Ask::CancelLabel { label } => {
                let is_meant = |own: &&OwnOrder| own.is_open() && answers::label_of(own) == *label;
                let orders: Vec<&OwnOrder> = self.account.orders().filter(is_meant).collect();
                pending.targets = orders.iter().map(|own| own.id).collect();
                orders.into_iter().map(|own| cancel(own, 0)).collect()
            }
            Ask::CancelAll { instrument } => {
                let number = take_number(&mut self.next_ref)?;
                pending.number = Some(number);
                let request = MassCancel {
                    user_ref: UserRefNum(number),
                    instrument: *instrument,
                    side: None,
                    firm: *b"    ",
                };
                vec![OrderRequest::MassCancel(request)]
            }
            _ => Vec::new(),
        })
    }

    /// Judges a request by the copies received so far.
    pub(super) fn conclude(&self, pending: &Pending) -> Conclusion {
        let (account, instruments) = (&self.account, &self.settings.instruments);
        let reply = |own: &OwnOrder| {
            Answer::Done(answers::order_reply(own, pending.trades_before, account, instruments))
        };
        let answer = match &pending.ask {
            Ask::Enter(sent) => match pending.number.and_then(|number| account.order(number)) {
                Some(own) if is_as_sent(own, sent) => reply(own),
                Some(_) => Answer::NotDone(
                    "another program of this user took the order's number: it was not entered".to_owned(),
                ),
                None => return self.refused_or_not_there(pending),
            },
            Ask::Edit(edit) => match pending.number {
                Some(number) => match account.order(number) {
                    Some(own) => reply(own),
                    None if account.refusal(number).is_some() => return self.refused_or_not_there(pending),
                    // The order had executed as much, or ended before.
                    None => match account.order(edit.id).filter(|own| !own.is_open()) {
                        Some(own) => reply(own),
                        None => return self.refused_or_not_there(pending),
                    },
                },
                None => match account.order(edit.id) {
                    Some(own) if !own.is_open() || Some(own.order.qty) == edit.qty => reply(own),
                    _ => return self.refused_or_not_there(pending),
                },
            },
            Ask::Cancel { id } => match account.order(*id) {
                Some(own) if own.cancelled.is_some() => Answer::Done(answers::order(own, instruments)),
                Some(own) if !own.is_open() => {
                    Answer::NotDone(format!("order {id} was filled before it could be cancelled"))
                }
                _ => return self.refused_or_not_there(pending),
            },
            Ask::CancelLabel { .. } => {
                let is_over = |id: &&u32| account.order(**id).is_some_and(|own| own.cancelled.is_some());
                Answer::Done(pending.targets.iter().filter(is_over).count().to_string())
            }
            Ask::CancelAll { .. } => match pending.number.and_then(|number| account.mass_cancelled(number)) {
                Some(count) => Answer::Done(count.to_string()),
                None => return self.refused_or_not_there(pending),
            },
            Ask::Time => Answer::Done(answers::unix_ms(self.venue_time).to_string()),
            _ if let Some(why) = account.incomplete => Answer::NotDone(why.to_owned()),
            Ask::Close { instrument, price } => return self.close_position(*instrument, *price),
            other => self.read(other),
        };
        Conclusion::Answer(answer)
    }

    /// Judges a request without a trace in the copies: refused, or not accepted.
    fn refused_or_not_there(&self, pending: &Pending) -> Conclusion {
        if let Some(refusal) = pending.number.and_then(|number| self.account.refusal(number)) {
            return Conclusion::Answer(if refusal.text == VOID {
                Answer::NotDone(
                    "the connection was lost before the venue got it: it was not entered, and will not be"
                        .to_owned(),
                )
            } else {
                let message = words::reject_reason(refusal.reason).to_owned();
                Answer::Refused { code: refusal.code.into(), message, data: None }
            });
        }
        if pending.checks < CHECKS {
            return Conclusion::AskAgain;
        }
        Conclusion::Answer(Answer::NotDone(
            "the venue did not take it and does not say why: orders shows what is there".to_owned(),
        ))
    }

    fn close_position(&self, instrument: InstrumentId, price: Price) -> Conclusion {
        let name = self.settings.instruments.symbol(instrument).map(|symbol| symbol.to_string());
        let Some((side, qty)) = plan::closing(self.account.position(instrument).net_qty()) else {
            let name = name.unwrap_or_default();
            return Conclusion::Answer(Answer::NotDone(format!("there is no position in {name}")));
        };
        let order = EnterOrder::limit(UserRefNum(0), instrument, side, qty, price);
        let time_in_force = if price == Price::MARKET { TimeInForce::Ioc } else { TimeInForce::Day };
        Conclusion::Next(Ask::Enter(EnterOrder { time_in_force, ..order }))
    }

    /// Answers a query from the copies.
    fn read(&self, ask: &Ask) -> Answer {
        let (account, instruments) = (&self.account, &self.settings.instruments);
        let of = |id: InstrumentId, own: &OwnOrder| id == InstrumentId(0) || own.order.instrument == id;
        Answer::Done(match ask {
            Ask::OpenOrders { instrument, is_any } => {
                let open = account.orders().filter(|own| *is_any && own.is_open() && of(*instrument, own));
                answers::orders(open, instruments)
            }
            Ask::OrdersOfLabel { label } => {
                answers::orders(account.orders().filter(|own| answers::label_of(own) == *label), instruments)
            }
            Ask::Order { id } => match account.order(*id) {
                Some(own) => answers::order(own, instruments),
                None => return Answer::NotDone(no_order(account, *id)),
            },
            Ask::Trades { instrument, count, is_newest_first } => {
                let mut list: Vec<_> = account
                    .trades()
                    .filter(|trade| trade.instrument == *instrument && !trade.is_broken)
                    .collect();
                let has_more = list.len() > *count;
                if *is_newest_first {
                    list.reverse();
                }
                list.truncate(*count);
                answers::trades(&list, has_more, account, instruments)
            }
            Ask::Position { instrument } => match instruments.get(*instrument) {
                Some(known) => answers::position(known, &account.position(*instrument)),
                None => return Answer::NotDone("there is no such instrument".to_owned()),
            },
            Ask::Positions { is_any } => {
                let held = account.positions().filter(|_| *is_any);
                let texts: Vec<String> = held
                    .filter_map(|(id, position)| Some(answers::position(instruments.get(id)?, position)))
                    .collect();
                format!("[{}]", texts.join(","))
            }
            other => return Answer::Impossible(format!("{other:?} is no question")),
        })
    }
}

impl Edit {
    /// Whether the change only reduces the order, which then keeps its place in the queue.
    fn is_reduction_of(&self, own: &OwnOrder) -> bool {
        let is_smaller = self.qty.is_some_and(|qty| qty < own.order.qty && !qty.is_zero());
        let is_price = self.price.is_none_or(|price| price == own.order.price);
        is_smaller && is_price && !self.is_post_only && self.display.is_none()
    }

    /// The order that replaces another.
    fn order(&self, own: &OwnOrder, number: u32) -> EnterOrder {
        let mut order = own.order;
        order.user_ref = UserRefNum(number);
        order.qty = self.qty.unwrap_or(order.qty);
        order.price = self.price.unwrap_or(order.price);
        order.post_only = self.is_post_only;
        if let Some(display_qty) = self.display {
            order.special =
                Some(tickpath_types::OrderInstructions { display_qty, ..order.special.unwrap_or_default() });
        }
        order
    }
}

fn take_number(next: &mut u64) -> Result<u32, String> {
    let number = u32::try_from(*next).map_err(|_| words::reject_reason(RejectReason::UserRefsExhausted))?;
    *next += 1;
    Ok(number)
}

fn no_order(account: &Account, id: u32) -> String {
    let kept = if account.has_forgotten { ", and old ones that are over are not kept" } else { "" };
    format!("there is no order {id}: orders shows those that are open{kept}")
}

fn open_order(account: &Account, id: u32) -> Result<&OwnOrder, String> {
    let own = account.order(id).ok_or_else(|| no_order(account, id))?;
    match own.is_open() {
        true => Ok(own),
        false => Err(match own.cancelled {
            Some(reason) => format!("order {id} is not open: {}", words::cancel_reason(reason)),
            None => format!("order {id} is not open: it is filled"),
        }),
    }
}

/// Whether an order is the one sent, and not that of another program under the same number.
fn is_as_sent(own: &OwnOrder, sent: &EnterOrder) -> bool {
    let key = |order: &EnterOrder| (order.instrument, order.side, order.client_order_id);
    key(&own.order) == key(sent)
}

//! The binary encoding of orders and of requests about them.

use std::marker::PhantomData;

use tickpath_types::{
    CancelOrder, ClientOrderId, EnterOrder, Instrument, InstrumentId, MassCancel, ModifyOrder,
    OrderAttributes, OrderInstructions, OrderRequest, Price, Qty, ReplaceOrder, SetOrderEntry, Side, Symbol,
    TimeInForce, UserRefNum,
};

use super::CodecError;
use super::field::{Field, FieldReader, FieldWriter, Spaced};
use crate::command_layouts;

/// Tags of new orders and cancels, the most frequent commands.
pub(crate) const ENTER: u8 = 1;
pub(crate) const CANCEL: u8 = 3;

command_layouts! {
    OrderRequest {
        ENTER = Enter(order: EnterOrder) if order.special.is_none(),
        2 = Replace(order: ReplaceOrder) if order.special.is_none(),
        CANCEL = Cancel(request: CancelOrder),
        4 = Modify(request: ModifyOrder),
        11 = Enter(order: WithSpecial<EnterOrder>),
        12 = Replace(order: WithSpecial<ReplaceOrder>),
        13 = MassCancel(request: MassCancel),
        14 = SetOrderEntry(request: SetOrderEntry),
    }
}

/// Implements `Field` for a structure from its fields, in the order in which they are written. The field
/// after `without` is not written; reading a structure sets it to the value given there.
macro_rules! layout {
    ($Type:ident { $($field:ident: $type:ty),* $(,)? } $(without $rest:ident = $value:expr)?) => {
        impl $crate::codec::Field for $Type {
            type Value = $Type;
            const LEN: usize = 0 $(+ <$type as $crate::codec::Field>::LEN)*;

            #[inline(always)]
            fn write(value: $Type, out: &mut $crate::codec::FieldWriter<'_>) {
                let $Type { $($field,)* $($rest: _)? } = value;
                $(<$type as $crate::codec::Field>::write($field, out);)*
            }

            #[inline(always)]
            fn read(
                _: &'static str,
                bytes: &mut $crate::codec::FieldReader<'_>,
            ) -> Result<$Type, $crate::codec::CodecError> {
                $(let $field = <$type as $crate::codec::Field>::read(stringify!($field), bytes)?;)*
                Ok($Type { $($field,)* $($rest: $value)? })
            }
        }
    };
}
pub(crate) use layout;

layout! {
    EnterOrder {
        user_ref: UserRefNum,
        instrument: InstrumentId,
        side: Side,
        time_in_force: TimeInForce,
        qty: Qty,
        price: Price,
        min_qty: Qty,
        attributes: OrderAttributes,
        post_only: Spaced<bool>,
        client_order_id: ClientOrderId,
    }
    without special = None
}

layout! {
    ReplaceOrder {
        orig_user_ref: UserRefNum,
        user_ref: UserRefNum,
        qty: Qty,
        price: Price,
        min_qty: Qty,
        attributes: OrderAttributes,
        time_in_force: TimeInForce,
        post_only: bool,
        client_order_id: ClientOrderId,
    }
    without special = None
}

layout! { OrderAttributes { display: u8, capacity: u8, intermarket_sweep: u8, cross_type: u8 } }

/// Version of the engine's snapshots, the only one so far; a change in any stored layout requires a new one.
pub(crate) const SNAPSHOT_VERSION: u32 = 1;

layout! { OrderInstructions { stop_price: Price, display_qty: Qty, expire_at: u32, is_hidden: bool } }

layout! { CancelOrder { user_ref: UserRefNum, qty: Qty } }

layout! { ModifyOrder { user_ref: UserRefNum, qty: Qty, side_marking: u8 } }

layout! { MassCancel { user_ref: UserRefNum, instrument: InstrumentId, side: Option<Side>, firm: [u8; 4] } }

layout! { SetOrderEntry { user_ref: UserRefNum, is_enabled: bool, firm: [u8; 4] } }

layout! {
    Instrument {
        id: InstrumentId,
        symbol: Symbol,
        tick_size: Price,
        lot_size: Qty,
        max_qty: Qty,
        reference_price: Price,
        collar_low: Price,
        collar_high: Price,
    }
}

/// Encoding of an order `O` followed by its order instructions.
pub(super) struct WithSpecial<O>(PhantomData<O>);

trait SpecialOf: Field<Value = Self> + Copy {
    fn special(&mut self) -> &mut Option<OrderInstructions>;
}

impl SpecialOf for EnterOrder {
    fn special(&mut self) -> &mut Option<OrderInstructions> {
        &mut self.special
    }
}

impl SpecialOf for ReplaceOrder {
    fn special(&mut self) -> &mut Option<OrderInstructions> {
        &mut self.special
    }
}

impl<O: SpecialOf> Field for WithSpecial<O> {
    type Value = O;
    const LEN: usize = O::LEN + OrderInstructions::LEN;

    fn write(mut order: O, out: &mut FieldWriter<'_>) {
        O::write(order, out);
        OrderInstructions::write(order.special().unwrap_or_default(), out);
    }

    fn read(name: &'static str, bytes: &mut FieldReader<'_>) -> Result<O, CodecError> {
        let mut order = O::read(name, bytes)?;
        *order.special() = Some(OrderInstructions::read(name, bytes)?);
        Ok(order)
    }
}

/// Encoding of the order in [`CommandKind::Force`](crate::CommandKind::Force). It always contains order
/// instructions, which are zero for a plain order.
pub(crate) struct Forced;

impl Field for Forced {
    type Value = EnterOrder;
    const LEN: usize = WithSpecial::<EnterOrder>::LEN;

    fn write(order: EnterOrder, out: &mut FieldWriter<'_>) {
        WithSpecial::<EnterOrder>::write(order, out);
    }

    fn read(name: &'static str, bytes: &mut FieldReader<'_>) -> Result<EnterOrder, CodecError> {
        let order = WithSpecial::<EnterOrder>::read(name, bytes)?;
        Ok(EnterOrder {
            special: order.special.filter(|instructions| *instructions != OrderInstructions::default()),
            ..order
        })
    }
}

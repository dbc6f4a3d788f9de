package tickpath.interop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Lets two users trade, and records the market data messages that must result. */
final class Trading {
    /** Number of orders whose messages fill more than one packet of market data. */
    private static final int MANY = 60;
    private static final long TICK = 100;
    /** Price of 100.00, in units of a ten-thousandth. */
    private static final long PAR = 1_000_000;
    private static final int BAD_SYMBOL = 0x17;
    private static final int BAD_PRICE = 0x1d;
    private static final int BAD_QUANTITY = 0x13;
    private static final int REPLACE_NOT_ALLOWED = 0x15;

    private final Trader maker;
    private final Trader taker;
    private final String stock;
    private final int locate;
    private final List<Itch.Event> market = new ArrayList<>();

    Trading(Trader maker, Trader taker, String stock, int locate) {
        this.maker = maker;
        this.taker = taker;
        this.stock = stock;
        this.locate = locate;
    }

    /** Returns the messages that every reader of the market data must receive, in order. */
    List<Itch.Event> market() {
        return market;
    }

    /** Enters an order that is partly filled, replaced, reduced, and then filled completely. */
    String tradeAndReplace() throws IOException {
        Ouch.Order offer = Ouch.Order.day(maker.nextUserRef(), 'S', 300, stock, PAR);
        Trader.Taken resting = maker.enter(offer);
        add(resting, offer);

        Ouch.Order lift = Ouch.Order.day(taker.nextUserRef(), 'B', 100, stock, PAR + TICK);
        Trader.Taken first = taker.enter(lift);
        executed(first, resting.reference(), offer.userRef(), lift.userRef(), 100, PAR);

        // 500 intended, 100 of them executed: 400 rest.
        Ouch.Order better = Ouch.Order.day(maker.nextUserRef(), 'S', 500, stock, PAR + TICK);
        Trader.Taken replaced = maker.replace(offer.userRef(), better);
        event(
            "orderReplace", replaced.time(), "originalOrderReferenceNumber", resting.reference(),
            "newOrderReferenceNumber", replaced.reference(), "shares", 400, "price", better.price());

        // 300 intended, 100 of them executed: 200 rest.
        maker.send(Ouch.cancel(better.userRef(), 300));
        long reduced = maker.canceled(better.userRef(), 200, 'U');
        event("orderCancel", reduced, "orderReferenceNumber", replaced.reference(), "canceledShares", 200);

        Ouch.Order sweep = Ouch.Order.day(taker.nextUserRef(), 'B', 500, stock, better.price())
            .with(Ouch.IMMEDIATE_OR_CANCEL);
        Trader.Taken second = taker.enter(sweep);
        executed(second, replaced.reference(), better.userRef(), sweep.userRef(), 200, better.price());
        Steps.equal("time of the rest", second.time(), taker.canceled(sweep.userRef(), 300, 'I'));
        return "100 and 200 shares traded, 200 cancelled, 300 of an IOC order too";
    }

    /** Modifies a resting order, then enters a post-only, a minimum-quantity and a market order against it. */
    String modifyAndOptions() throws IOException {
        Ouch.Order offer = Ouch.Order.day(maker.nextUserRef(), 'S', 150, stock, PAR + 5 * TICK);
        Trader.Taken resting = maker.enter(offer);
        add(resting, offer);
        maker.send(Ouch.modify(offer.userRef(), 'T', 120));
        long modified = maker.modified(offer.userRef(), 'T', 120);
        event("orderCancel", modified, "orderReferenceNumber", resting.reference(), "canceledShares", 30);

        Ouch.Order postOnly =
            Ouch.Order.day(taker.nextUserRef(), 'B', 10, stock, offer.price()).with(Ouch.POST_ONLY);
        Trader.Taken refused = taker.enter(postOnly);
        Steps.equal("time of the cancel", refused.time(), taker.canceled(postOnly.userRef(), 10, 'F'));

        Ouch.Order large = Ouch.Order.day(taker.nextUserRef(), 'B', 110, stock, offer.price())
            .with(Ouch.IMMEDIATE_OR_CANCEL).with(Ouch.AT_LEAST_100);
        executed(taker.enter(large), resting.reference(), offer.userRef(), large.userRef(), 110, offer.price());

        Ouch.Order market = Ouch.Order.day(taker.nextUserRef(), 'B', 10, stock, Ouch.MARKET)
            .with(Ouch.IMMEDIATE_OR_CANCEL);
        executed(taker.enter(market), resting.reference(), offer.userRef(), market.userRef(), 10, offer.price());
        return "post-only, minimum quantity and no limit honoured";
    }

    /** Sends requests that the venue must refuse and that change nothing. */
    String refusals() throws IOException {
        Ouch.Order elsewhere = Ouch.Order.day(maker.nextUserRef(), 'B', 1, "NOWHERE", PAR);
        maker.send(Ouch.enter(elsewhere));
        maker.rejected(elsewhere.userRef(), BAD_SYMBOL, elsewhere.clientOrderId());
        Ouch.Order offTick = Ouch.Order.day(maker.nextUserRef(), 'B', 1, stock, PAR + 1);
        maker.send(Ouch.enter(offTick));
        maker.rejected(offTick.userRef(), BAD_PRICE, offTick.clientOrderId());
        Ouch.Order nothing = Ouch.Order.day(maker.nextUserRef(), 'B', 0, stock, PAR);
        maker.send(Ouch.enter(nothing));
        maker.rejected(nothing.userRef(), BAD_QUANTITY, nothing.clientOrderId());
        Ouch.Order heir = Ouch.Order.day(maker.nextUserRef(), 'B', 1, stock, PAR);
        maker.send(Ouch.replace(nothing.userRef(), heir));
        maker.rejected(heir.userRef(), REPLACE_NOT_ALLOWED, heir.clientOrderId());
        // A cancel of an unknown order has no answer, so the next answer is the query's.
        maker.send(Ouch.cancel(1, 0));
        maker.send(Ouch.accountQuery());
        maker.nextUserRefIs(maker.lastUserRef() + 1);
        return "symbol, price, quantity, replacement; the next number is " + (maker.lastUserRef() + 1);
    }

    /** Enters and cancels many orders, so that their messages need more than one packet. */
    String manyOrders() throws IOException {
        List<Ouch.Order> orders = new ArrayList<>();
        List<Trader.Taken> resting = new ArrayList<>();
        for (int index = 0; index < MANY; index++) {
            Ouch.Order order = Ouch.Order.day(maker.nextUserRef(), 'B', 1 + index, stock, PAR - index * TICK);
            orders.add(order);
            resting.add(maker.enter(order));
            add(resting.get(index), order);
        }
        for (int index = 0; index < MANY; index++) {
            Ouch.Order order = orders.get(index);
            maker.send(Ouch.cancel(order.userRef(), 0));
            long canceled = maker.canceled(order.userRef(), order.shares(), 'U');
            event("orderDelete", canceled, "orderReferenceNumber", resting.get(index).reference());
        }
        return MANY + " orders entered and cancelled";
    }

    private void add(Trader.Taken taken, Ouch.Order order) {
        event(
            "addOrder", taken.time(), "orderReferenceNumber", taken.reference(), "buySellIndicator", order.side(),
            "shares", order.shares(), "stock", String.format("%-8s", order.stock()), "price", order.price());
    }

    /** Expects an execution report to each side, and records its market data message. */
    private void executed(
            Trader.Taken incoming, long reference, int makerRef, int takerRef, int shares, long price)
            throws IOException {
        long match = taker.executed(incoming.time(), takerRef, shares, price, 'R');
        Steps.equal(
            "number of the execution", match, maker.executed(incoming.time(), makerRef, shares, price, 'A'));
        event(
            "orderExecuted", incoming.time(), "orderReferenceNumber", reference, "executedShares", shares,
            "matchNumber", match);
    }

    private void event(String name, long time, Object... namesAndValues) {
        Itch.Event event = Itch.Event.of(name, namesAndValues);
        event.fields().putAll(Itch.Event.of(name, "time", time, "stockLocate", locate, "trackingNumber", 0).fields());
        market.add(event);
    }
}

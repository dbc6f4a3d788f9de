package tickpath.interop;

import java.io.IOException;

/** A user of the venue: sends requests, and compares every byte of the answers. */
final class Trader {
    private static final char LIVE = 'L';

    private final OrderSession session;
    private final String name;
    private int lastUserRef;
    private long lastTime;

    Trader(OrderSession session, String name, int lastUserRef) {
        this.session = session;
        this.name = name;
        this.lastUserRef = lastUserRef;
    }

    /** The venue's time stamp and reference number of an order that it accepted. */
    record Taken(long time, long reference) {}

    int nextUserRef() {
        return ++lastUserRef;
    }

    int lastUserRef() {
        return lastUserRef;
    }

    OrderSession session() {
        return session;
    }

    void send(byte[] request) throws IOException {
        session.send(request);
    }

    Taken enter(Ouch.Order order) throws IOException {
        send(Ouch.enter(order));
        byte[] answer = next();
        Taken taken = new Taken(Ouch.time(answer), Ouch.reference(answer));
        byte[] expected = Ouch.accepted(taken.time, order, taken.reference, LIVE);
        Steps.equalBytes(name + " entered " + order, expected, answer);
        return taken;
    }

    Taken replace(int origUserRef, Ouch.Order order) throws IOException {
        send(Ouch.replace(origUserRef, order));
        byte[] answer = next();
        Taken taken = new Taken(Ouch.time(answer), Ouch.reference(answer));
        byte[] expected = Ouch.replaced(taken.time, origUserRef, order, taken.reference, LIVE);
        Steps.equalBytes(name + " replaced " + origUserRef + " by " + order, expected, answer);
        return taken;
    }

    /** Expects a cancel of shares of an order; returns its time. */
    long canceled(int userRef, int shares, char reason) throws IOException {
        byte[] answer = next();
        long time = Ouch.time(answer);
        byte[] expected = Ouch.canceled(time, userRef, shares, reason);
        Steps.equalBytes(name + ": order " + userRef + " canceled", expected, answer);
        return time;
    }

    /** Expects an execution with the given time; returns its match number. */
    long executed(long time, int userRef, int shares, long price, char liquidity) throws IOException {
        byte[] answer = next();
        long match = Ouch.match(answer);
        byte[] expected = Ouch.executed(time, userRef, shares, price, liquidity, match);
        Steps.equalBytes(name + ": order " + userRef + " executed", expected, answer);
        return match;
    }

    long modified(int userRef, char side, int shares) throws IOException {
        byte[] answer = next();
        long time = Ouch.time(answer);
        byte[] expected = Ouch.modified(time, userRef, side, shares);
        Steps.equalBytes(name + ": order " + userRef + " modified", expected, answer);
        return time;
    }

    void rejected(int userRef, int reason, String clientOrderId) throws IOException {
        byte[] answer = next();
        byte[] expected = Ouch.rejected(Ouch.time(answer), userRef, reason, clientOrderId);
        Steps.equalBytes(name + ": request " + userRef + " rejected", expected, answer);
    }

    void nextUserRefIs(int userRef) throws IOException {
        byte[] answer = next();
        Steps.equalBytes(name + ": account query", Ouch.queryResponse(Ouch.time(answer), userRef), answer);
    }

    private byte[] next() throws IOException {
        byte[] answer = session.next();
        long time = Ouch.time(answer);
        Steps.check(time >= lastTime, name + ": an answer of " + time + " after one of " + lastTime);
        lastTime = time;
        return answer;
    }
}

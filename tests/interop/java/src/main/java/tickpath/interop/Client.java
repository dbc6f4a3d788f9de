package tickpath.interop;

import com.paritytrading.nassau.util.MoldUDP64;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A client of a running venue, from its first login to the end of the session.
 *
 * <p>Arguments: order entry, retransmission, line A, line B (each {@code address:port}), address of the interface,
 * name of the session, symbol, its stock locate, and the venue's end: {@code stopped}, or {@code killed} and then
 * started again. Two users, TEST01 and TEST02, have the password "test".
 */
public final class Client {
    /** Line by which this client asks the test to stop or kill the venue. */
    private static final String READY = "ready for the end of the venue";
    /** Line that this client reads when the killed venue has been started again. */
    private static final String RESTARTED = "restarted";
    private static final String PASSWORD = "test";
    private static final String ANY_SESSION = "";
    private static final long PATIENCE_SECONDS = 20;
    private static final int LOST_PACKETS = 3;

    private final Steps steps = new Steps();
    private final EventLoop loop = new EventLoop();
    private final Itch itch = new Itch();
    private final InetSocketAddress orderEntry;
    private final InetSocketAddress retransmission;
    private final InetSocketAddress[] groups;
    private final NetworkInterface network;
    private final String session;
    private final String stock;
    private final int locate;
    private final boolean isKilled;
    private final MarketLine lineA;
    private final MarketLine lineB;
    /** A reader of line B that loses packets. */
    private final MarketLine lossy;
    private final Trader maker;
    private final Trader taker;

    private Client(String[] args) throws IOException {
        orderEntry = address(args[0]);
        retransmission = address(args[1]);
        groups = new InetSocketAddress[] {address(args[2]), address(args[3])};
        network = NetworkInterface.getByInetAddress(InetAddress.getByName(args[4]));
        session = args[5];
        stock = args[6];
        locate = Integer.parseInt(args[7]);
        isKilled = args[8].equals("killed");
        lineA = line(0, MarketLine.FROM_NOW_ON);
        lineB = line(1, MarketLine.FROM_NOW_ON);
        lossy = line(1, MarketLine.FROM_NOW_ON);
        maker = new Trader(connect("TEST01"), "TEST01", 0);
        taker = new Trader(connect("TEST02"), "TEST02", 0);
    }

    public static void main(String[] args) throws IOException {
        new Client(args).run();
    }

    private void run() throws IOException {
        logIn();
        // The opening is over: the venue's heartbeats above came after a second of silence.
        long start = lineA.nextSequence();
        List<Itch.Event> market = trade();
        readLines(start, market);
        MarketLine late = joinLate(start);
        List<byte[]> thirdPartyMessages = Collections.synchronizedList(new ArrayList<>());
        Thread thirdParty = joinThirdParty(thirdPartyMessages, late.messages());
        List<byte[]> more = logOutAndReconnect();
        OrderSession last = reconnectPartially(more);
        if (isKilled) {
            List<byte[]> ofMaker = Stream.of(more, last.messages()).flatMap(List::stream).toList();
            resumeAfterKill(maker.lastUserRef() + 1, late, List.of(last, taker.session()), ofMaker);
        } else {
            endOfSession(List.of(last, taker.session()), List.of(lineA, lineB, late), thirdParty);
            steps.run("the whole program of others missed nothing", () -> {
                sameMessages("Nassau's own receiver", late.messages(), thirdPartyMessages);
                return thirdPartyMessages.size() + " messages";
            });
        }
        System.out.println("all " + steps.count() + " steps passed");
    }

    /** Checks that both lines are live, wrong logins are refused, and two users log in and exchange heartbeats. */
    private void logIn() {
        steps.run("a line says where it is before anything happens", () -> {
            loop.until("a packet on line A", lineA::isSynchronized);
            loop.until("a packet on line B", () -> lineB.isSynchronized() && lossy.isSynchronized());
            loop.until("the same number on both lines", () -> lineA.nextSequence() == lineB.nextSequence());
            return "the next message is " + lineA.nextSequence();
        });
        steps.run("a wrong password is refused", () -> {
            char reason = connect("TEST01").refusedLogin("wrong", ANY_SESSION, 1);
            Steps.equal("reason", 'A', reason);
            return "Login Rejected " + reason;
        });
        steps.run("a wrong session is refused", () -> {
            char reason = connect("TEST01").refusedLogin(PASSWORD, "ELSEWHERE", 1);
            Steps.equal("reason", 'S', reason);
            return "Login Rejected " + reason;
        });
        steps.run("two users log in", () -> {
            for (Trader trader : List.of(maker, taker)) {
                trader.session().login(PASSWORD, ANY_SESSION, 1);
                Steps.equal("session", session, trader.session().session());
                Steps.equal("number of the first message", 1L, trader.session().firstSequence());
                byte[] start = trader.session().next();
                Steps.equalBytes("start of day", Ouch.systemEvent(Ouch.time(start), 'S'), start);
            }
            return "session " + session;
        });
        steps.run("heartbeats go both ways", () -> {
            for (Trader trader : List.of(maker, taker)) {
                trader.session().sendHeartbeat();
            }
            loop.until(
                "a heartbeat to each user",
                () -> maker.session().heartbeats() > 0 && taker.session().heartbeats() > 0);
            return "one of the venue's after its silence, one of the client's each";
        });
    }

    /** Lets two users trade; returns the market data messages that must result. */
    private List<Itch.Event> trade() {
        Trading trading = new Trading(maker, taker, stock, locate);
        steps.run("orders are traded, replaced and cancelled", trading::tradeAndReplace);
        steps.run("orders are modified and their options honoured", trading::modifyAndOptions);
        steps.run("what cannot be is refused with its code", trading::refusals);
        lossy.dropPackets(LOST_PACKETS);
        steps.run("many orders", trading::manyOrders);
        steps.run("nothing came that was not expected", () -> {
            maker.session().expectNoMore();
            taker.session().expectNoMore();
            return maker.session().messages().size() + " and " + taker.session().messages().size() + " messages";
        });
        return trading.market();
    }

    /** Checks the messages of the lines from {@code start} on, with and without losses. */
    private void readLines(long start, List<Itch.Event> market) {
        steps.run("both lines tell the same story", () -> {
            long end = start + market.size();
            loop.until(
                "message " + (end - 1) + " on both lines",
                () -> lineA.nextSequence() >= end && lineB.nextSequence() >= end);
            sameEvents("line A", market, itch.parse(lineA.messagesFrom(start)));
            sameMessages("line B", lineA.messagesFrom(start), lineB.messagesFrom(start));
            Steps.equal("requests for retransmission", 0, lineA.requests() + lineB.requests());
            return market.size() + " messages parsed";
        });
        steps.run("lost packets are requested", () -> {
            loop.until(
                "the lost messages by retransmission",
                () -> lossy.isSynchronized() && lossy.nextSequence() == lineB.nextSequence());
            Steps.check(lossy.requests() > 0, "none was requested");
            sameMessages("the line with losses", lineB.messagesFrom(start), lossy.messagesFrom(start));
            return LOST_PACKETS + " packets lost";
        });
    }

    /** Starts a reader after the trading, which requests all messages from the first on. */
    private MarketLine joinLate(long start) throws IOException {
        MarketLine late = line(0, 1);
        steps.run("a late reader asks for everything", () -> {
            loop.until("all messages by retransmission", () -> late.isSynchronized());
            Steps.equal("next number", lineA.nextSequence(), late.nextSequence());
            Steps.equal("number of messages", lineA.nextSequence() - 1, (long) late.messages().size());
            sameMessages("retransmission", lineA.messagesFrom(start), late.messagesFrom(start));
            List<Itch.Event> opening = itch.parse(late.messages()).subList(0, (int) (start - 1));
            checkOpening(opening);
            return late.messages().size() + " messages by " + late.requests() + " requests in " + late.answers()
                + " packets; the day began with " + opening.stream().map(Client::eventCode).toList();
        });
        return late;
    }

    /** Reads all messages with Nassau's own receiver too, in a thread that runs until the end of the session. */
    private Thread joinThirdParty(List<byte[]> thirdPartyMessages, List<byte[]> expected) {
        CountDownLatch arrivals = new CountDownLatch(expected.size());
        Thread thirdParty = startThirdParty(thirdPartyMessages, arrivals);
        steps.run("so does a whole program of others", () -> {
            Steps.check(arrivals.await(PATIENCE_SECONDS, TimeUnit.SECONDS), "it waits for messages in vain");
            sameMessages("Nassau's own receiver", expected, thirdPartyMessages);
            return thirdPartyMessages.size() + " messages";
        });
        return thirdParty;
    }

    /** Logs the maker out, and in again from message 1; returns all messages to it until its next logout. */
    private List<byte[]> logOutAndReconnect() throws IOException {
        List<byte[]> all = maker.session().messages();
        steps.run("a logout ends the connection", () -> {
            maker.session().logout();
            return "closed";
        });
        OrderSession fromStart = connect("TEST01");
        steps.run("a login from message 1 brings the same bytes again", () -> {
            resume(fromStart, session, 1, all);
            return all.size() + " messages, none twice";
        });
        steps.run("what is new follows them", () -> {
            Trader resumed = new Trader(fromStart, "TEST01", maker.lastUserRef());
            Ouch.Order order = Ouch.Order.day(resumed.nextUserRef(), 'B', 1, stock, 990_000);
            resumed.enter(order);
            resumed.send(Ouch.cancel(order.userRef(), 0));
            resumed.canceled(order.userRef(), 1, 'U');
            Steps.equal("messages", all.size() + 2, fromStart.messages().size());
            fromStart.logout();
            return "numbers continue";
        });
        return fromStart.messages();
    }

    /** Logs the maker in from the middle of its messages {@code more}, then from their end; returns the last session. */
    private OrderSession reconnectPartially(List<byte[]> more) throws IOException {
        OrderSession fromMiddle = connect("TEST01");
        steps.run("a login from the middle brings the rest", () -> {
            int middle = more.size() / 2;
            resume(fromMiddle, ANY_SESSION, middle, more.subList(middle - 1, more.size()));
            fromMiddle.logout();
            return "from message " + middle;
        });
        OrderSession onlyNew = connect("TEST01");
        steps.run("a login without a number brings only what is new", () -> {
            onlyNew.login(PASSWORD, ANY_SESSION, 0);
            Steps.equal("number of the first message", more.size() + 1L, onlyNew.firstSequence());
            onlyNew.send(Ouch.accountQuery());
            new Trader(onlyNew, "TEST01", 0).nextUserRefIs(maker.lastUserRef() + 2);
            return "the next number is " + (more.size() + 1);
        });
        return onlyNew;
    }

    /** Checks that a stopped venue announces the end of the session at every endpoint. */
    private void endOfSession(List<OrderSession> sessions, List<MarketLine> lines, Thread thirdParty) {
        steps.run("every endpoint announces the end of the session", () -> {
            System.out.println(READY);
            loop.until("End of Session to both users", () -> sessions.stream().allMatch(OrderSession::isEnded));
            loop.until("End of Session on the lines", () -> lines.stream().allMatch(MarketLine::isEnded));
            loop.until("the connections to be closed", () -> sessions.stream().allMatch(OrderSession::isClosed));
            thirdParty.join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
            Steps.check(!thirdParty.isAlive(), "Nassau's own receiver still waits for it");
            return "SoupBinTCP, MoldUDP64";
        });
    }

    /** Checks that a venue, killed and started again, has every message and continues its sequence numbers. */
    private void resumeAfterKill(int lastUserRef, MarketLine reader, List<OrderSession> sessions, List<byte[]> ofMaker)
            throws IOException {
        steps.run("a venue is killed and started again", () -> {
            System.out.println(READY);
            String cue = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII)).readLine();
            Steps.equal("cue", RESTARTED, cue);
            loop.until("the connections to be gone", () -> sessions.stream().allMatch(OrderSession::isClosed));
            Steps.check(sessions.stream().noneMatch(OrderSession::isEnded), "a session that continues was ended");
            return "the connections are gone, the sessions not ended";
        });
        OrderSession resumed = connect("TEST01");
        steps.run("it brings the same bytes again", () -> {
            resume(resumed, session, 1, ofMaker);
            List<byte[]> ofTaker = sessions.get(1).messages();
            resume(connect("TEST02"), session, 1, ofTaker);
            return ofMaker.size() + " and " + ofTaker.size() + " messages, none twice";
        });
        steps.run("numbers continue after them", () -> {
            Trader trader = new Trader(resumed, "TEST01", lastUserRef);
            trader.send(Ouch.accountQuery());
            trader.nextUserRefIs(lastUserRef + 1);
            Ouch.Order order = Ouch.Order.day(trader.nextUserRef(), 'B', 1, stock, 990_000);
            long next = reader.nextSequence();
            trader.enter(order);
            loop.until("the order on the line", () -> reader.nextSequence() > next);
            return "order " + order.userRef() + " is message " + next + " of the line";
        });
        MarketLine late = line(0, 1);
        steps.run("its market data continues too", () -> {
            loop.until("all messages by retransmission", late::isSynchronized);
            sameMessages("retransmission", reader.messages(), late.messages());
            return late.messages().size() + " messages from before and after";
        });
    }

    private OrderSession connect(String user) throws IOException {
        return new OrderSession(loop, orderEntry, user);
    }

    private MarketLine line(int index, long requestedSequence) throws IOException {
        return new MarketLine(loop, groups[index], network, retransmission, requestedSequence);
    }

    /** Runs Nassau's own receiver of a line and its retransmission in a thread until the session ends. */
    private Thread startThirdParty(List<byte[]> messages, CountDownLatch arrivals) {
        Thread thread = new Thread(() -> {
            try {
                MoldUDP64.receive(network, groups[0], retransmission, (ByteBuffer buffer) -> {
                    byte[] message = new byte[buffer.remaining()];
                    buffer.get(message);
                    messages.add(message);
                    arrivals.countDown();
                });
            } catch (IOException error) {
                System.out.println("Nassau's own receiver: " + error);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void resume(OrderSession connection, String requestedSession, int sequence, List<byte[]> expected)
            throws IOException {
        connection.login(PASSWORD, requestedSession, sequence);
        Steps.equal("number of the first message", (long) sequence, connection.firstSequence());
        for (byte[] message : expected) {
            Steps.equalBytes("a message again", message, connection.next());
        }
        connection.expectNoMore();
    }

    /** Checks the messages before the first order, from the start of messages to the start of market hours. */
    private void checkOpening(List<Itch.Event> events) {
        Steps.equal("first message", "systemEvent O", eventCode(events.get(0)));
        Steps.equal("last message before trading", "systemEvent Q", eventCode(events.get(events.size() - 1)));
        String symbol = String.format("%-8s", stock);
        List<Itch.Event> ours = events.stream().filter(event -> symbol.equals(event.fields().get("stock"))).toList();
        Itch.Event directory = ours.get(0);
        Steps.equal("first message of " + stock, "stockDirectory", eventCode(directory));
        Steps.equal("locate of " + stock, Integer.toString(locate), directory.fields().get("stockLocate"));
        Steps.equal("round lot of " + stock, "1", directory.fields().get("roundLotSize"));
        Steps.equal("authenticity of " + stock, "P", directory.fields().get("authenticity"));
        Steps.equal("last message of " + stock, "stockTradingAction T", eventCode(ours.get(ours.size() - 1)));
        for (int index = 1; index < events.size(); index++) {
            Steps.check(events.get(index).time() >= events.get(index - 1).time(), "time runs backwards");
        }
    }

    /** Returns the message's name and its event code or trading state, if any. */
    private static String eventCode(Itch.Event event) {
        String code = event.fields().getOrDefault("eventCode", event.fields().get("tradingState"));
        return code == null ? event.name() : event.name() + " " + code;
    }

    private static void sameEvents(String where, List<Itch.Event> expected, List<Itch.Event> found) {
        for (int index = 0; index < Math.min(expected.size(), found.size()); index++) {
            Steps.equal(where + ", message " + index, expected.get(index), found.get(index));
        }
        Steps.equal(where + ", number of messages", expected.size(), found.size());
    }

    private static void sameMessages(String where, List<byte[]> expected, List<byte[]> found) {
        for (int index = 0; index < Math.min(expected.size(), found.size()); index++) {
            Steps.equalBytes(where + ", message " + index, expected.get(index), found.get(index));
        }
        Steps.equal(where + ", number of messages", expected.size(), found.size());
    }

    private static InetSocketAddress address(String text) {
        int colon = text.lastIndexOf(':');
        return new InetSocketAddress(text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
    }
}

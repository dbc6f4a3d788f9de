package tickpath.interop;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import quickfix.DefaultMessageFactory;
import quickfix.FieldMap;
import quickfix.Group;
import quickfix.MemoryStoreFactory;
import quickfix.Message;
import quickfix.SLF4JLogFactory;
import quickfix.SessionSettings;
import quickfix.SocketInitiator;

/**
 * Two clients of the venue's Deribit front by QuickFIX/J, from their logon to the end of their orders.
 *
 * <p>Argument: {@code address:port}. Users {@code anna} and {@code bert} have the secret "test".
 */
public final class FixClient {
    private static final String PERPETUAL = "BTC-PERPETUAL";
    private static final String BUY = "1";
    private static final String SELL = "2";
    private static final String BID = "0";
    private static final String OFFER = "1";
    private static final String TRADE = "2";
    private static final int READY = 7;
    private static final long PATIENCE_NANOS = 60_000_000_000L;
    private static final long POLL_MILLIS = 100;

    private final Steps steps = new Steps();
    private final String[] address;
    private final FixSession anna = new FixSession("anna", "test");
    private final FixSession bert = new FixSession("bert", "test");

    private FixClient(String address) {
        this.address = address.split(":");
    }

    public static void main(String[] args) throws Exception {
        new FixClient(args[0]).run();
    }

    private void run() throws Exception {
        refuse();
        SocketInitiator ofAnna = start(anna, "ANNA");
        SocketInitiator ofBert = start(bert, "BERT");
        steps.run("logon", () -> {
            anna.expect("up");
            bert.expect("up");
            return "two users";
        });
        steps.run("test request", () -> {
            anna.session().generateTestRequest("are-you-there");
            Message heartbeat = anna.next("0");
            while (!heartbeat.isSetField(112)) {
                heartbeat = anna.next("0");
            }
            return heartbeat.getString(112);
        });
        instruments();
        marketData();
        String resting = enter();
        fill(resting);
        replace(resting);
        cancel(resting);
        status();
        refusals();
        leave(ofAnna);
        ofBert.stop();
        System.out.println(steps.count() + " steps passed");
        System.exit(0);
    }

    private SocketInitiator start(FixSession session, String name) throws Exception {
        String text = String.join("\n", List.of(
            "[default]", "ConnectionType=initiator", "BeginString=FIX.4.4", "StartTime=00:00:00", "EndTime=00:00:00",
            "HeartBtInt=1", "ReconnectInterval=1", "ResetOnLogon=Y", "UseDataDictionary=Y",
            "DataDictionary=deribit.xml", "ValidateUserDefinedFields=Y", "SocketConnectHost=" + address[0],
            "SocketConnectPort=" + address[1], "TargetCompID=DERIBITSERVER", "[session]", "SenderCompID=" + name));
        SessionSettings settings =
            new SessionSettings(new ByteArrayInputStream(text.getBytes(StandardCharsets.US_ASCII)));
        SocketInitiator initiator = new SocketInitiator(session, new MemoryStoreFactory(), settings,
            new SLF4JLogFactory(settings), new DefaultMessageFactory());
        initiator.start();
        return initiator;
    }

    private void refuse() throws Exception {
        FixSession stranger = new FixSession("anna", "guessed");
        SocketInitiator initiator = start(stranger, "STRANGER");
        steps.run("wrong secret", () -> {
            String text = stranger.logoutText();
            Steps.equal("reason", "invalid_credentials", text);
            return text;
        });
        initiator.stop(true);
    }

    private void instruments() {
        steps.run("security list", () -> {
            bert.send(message("x", 320, "list", 559, "0"));
            Message list = bert.next("y");
            Map<String, FieldMap> found = new TreeMap<>();
            for (Group security : list.getGroups(146)) {
                found.put(security.getString(55), security);
            }
            FieldMap perpetual = found.get(PERPETUAL);
            Steps.check(perpetual != null, "no " + PERPETUAL + " in " + found.keySet());
            Steps.equal("contract multiplier", 10.0, perpetual.getDouble(231));
            Steps.equal("tick", 0.5, perpetual.getDouble(969));
            return found.size() + " instruments";
        });
        // A venue opens its instruments a moment after its doors.
        steps.run("security status", () -> {
            long deadline = System.nanoTime() + PATIENCE_NANOS;
            while (true) {
                bert.send(message("e", 324, "status", 55, PERPETUAL, 263, "0"));
                if (bert.next("f").getInt(326) == READY) {
                    return PERPETUAL + " is open";
                }
                Steps.check(System.nanoTime() < deadline, PERPETUAL + " does not open");
                Thread.sleep(POLL_MILLIS);
            }
        });
    }

    private void marketData() {
        steps.run("market data", () -> {
            Message request = message("V", 262, "book", 263, "1", 264, "0", 265, "1");
            for (String kind : List.of(BID, OFFER, TRADE)) {
                Group group = new Group(267, 269);
                group.setString(269, kind);
                request.addGroup(group);
            }
            Group symbol = new Group(146, 55);
            symbol.setString(55, PERPETUAL);
            request.addGroup(symbol);
            bert.send(request);
            Message snapshot = bert.next("W");
            Steps.equal("symbol", PERPETUAL, snapshot.getString(55));
            return snapshot.getGroups(268).size() + " entries";
        });
    }

    private String enter() {
        String[] id = new String[1];
        steps.run("order", () -> {
            anna.send(message("D", 11, "anna-1", 54, SELL, 38, "100", 40, "2", 44, "60000.5", 55, PERPETUAL));
            Message report = anna.next("8");
            id[0] = report.getString(37);
            expect(report, 41, "anna-1", 11, id[0], 39, "0", 151, "100", 58, "success");
            Steps.equal("changes", List.of("0 1 60000.5 100"), changes(bert.next("X")));
            return "order " + id[0];
        });
        return id[0];
    }

    private void fill(String resting) {
        steps.run("fill", () -> {
            bert.send(message("D", 11, "bert-1", 54, BUY, 38, "40", 40, "2", 44, "60100", 55, PERPETUAL));
            Message taken = bert.next("8");
            expect(taken, 41, "bert-1", 39, "2", 14, "40", 151, "0", 58, "success");
            List<Group> fills = taken.getGroups(1362);
            Steps.equal("fills", 1, fills.size());
            Steps.equal("price of the fill", 60000.5, fills.get(0).getDouble(1364));
            Steps.equal("side of the fill", 2, fills.get(0).getInt(1443));
            Message report = anna.next("8");
            expect(report, 37, resting, 39, "1", 14, "40", 151, "60", 58, "notification");
            return "40 contracts at " + report.getString(31);
        });
        steps.run("market data of the fill", () -> {
            List<String> changes = changes(bert.next("X"));
            Steps.equal("changes", List.of("1 1 60000.5 60", "0 2 60000.5 40"), changes);
            return changes.toString();
        });
        steps.run("positions", () -> {
            bert.send(message("AN", 710, "positions", 724, "0"));
            Group position = bert.next("AP").getGroups(702).get(0);
            Steps.equal("bought", 40.0, position.getDouble(704));
            return position.getString(55);
        });
        steps.run("account", () -> {
            bert.send(message("BE", 923, "account", 924, "4", 553, "bert", 15, "BTC"));
            Message response = bert.next("BF");
            Steps.check(response.getDouble(100002) < 10.0, "a fee was paid");
            return "equity " + response.getString(100001);
        });
    }

    private void replace(String resting) {
        steps.run("replace", () -> {
            anna.send(message("G", 41, resting, 55, PERPETUAL, 54, SELL, 38, "120", 40, "2", 44, "60001"));
            Message report = anna.next("8");
            expect(report, 37, resting, 41, "anna-1", 38, "120", 14, "40", 151, "80", 44, "60001");
            List<String> changes = changes(bert.next("X"));
            Steps.equal("changes", List.of("2 1 60000.5 0", "0 1 60001 80"), changes);
            return changes.toString();
        });
    }

    private void cancel(String resting) {
        steps.run("cancel", () -> {
            anna.send(message("F", 41, resting));
            Message brief = anna.next("8");
            expect(brief, 11, resting, 39, "4", 150, "4", 58, "success");
            Message full = anna.next("8");
            expect(full, 37, resting, 39, "4", 14, "40", 151, "0", 58, "notification");
            Steps.equal("changes", List.of("2 1 60001 0"), changes(bert.next("X")));
            return "order " + resting;
        });
    }

    private void status() {
        steps.run("mass status and mass cancel", () -> {
            for (String id : List.of("anna-2", "anna-3")) {
                anna.send(message("D", 11, id, 54, BUY, 38, "1", 44, "59000", 55, PERPETUAL, 100010, "desk"));
                expect(anna.next("8"), 41, id, 39, "0");
            }
            anna.send(message("AF", 584, "orders", 585, "7"));
            expect(anna.next("8"), 584, "orders", 911, "2");
            expect(anna.next("8"), 584, "orders", 41, "anna-2");
            expect(anna.next("8"), 584, "orders", 41, "anna-3");
            anna.send(message("q", 11, "all", 530, "10", 100010, "desk"));
            Message report = anna.next("r");
            expect(report, 11, "all", 531, "10", 533, "2");
            Steps.equal("orders named", 2, report.getGroups(534).size());
            return "2 orders";
        });
    }

    private void refusals() {
        steps.run("refusals", () -> {
            anna.send(message("D", 11, "anna-4", 54, BUY, 38, "1", 44, "59000.3", 55, PERPETUAL));
            Message report = anna.next("8");
            while (!report.getString(39).equals("8")) {
                report = anna.next("8");
            }
            expect(report, 41, "anna-4", 150, "8", 103, "18", 58, "price_wrong_tick");
            anna.send(message("F", 41, "999999"));
            expect(anna.next("9"), 41, "999999", 102, "1", 58, "order_not_found");
            anna.send(message("V", 262, "none", 263, "0", 55, "NONE"));
            expect(anna.next("Y"), 262, "none");
            return "order, cancel, market data";
        });
    }

    /** With CancelOnDisconnect the logout takes the orders along. */
    private void leave(SocketInitiator ofAnna) {
        steps.run("logout", () -> {
            anna.send(message("D", 11, "anna-5", 54, BUY, 38, "7", 44, "58000", 55, PERPETUAL));
            expect(anna.next("8"), 41, "anna-5", 39, "0");
            while (!changes(bert.next("X")).contains("0 0 58000 7")) {
                continue;
            }
            ofAnna.stop();
            anna.expect("down");
            Steps.equal("changes", List.of("2 0 58000 0"), changes(bert.next("X")));
            return "her order is gone";
        });
    }

    /** A message of a type with fields: tag, value, tag, value. */
    private static Message message(String type, Object... fields) {
        Message message = new Message();
        message.getHeader().setString(35, type);
        for (int place = 0; place < fields.length; place += 2) {
            message.setString((Integer) fields[place], (String) fields[place + 1]);
        }
        return message;
    }

    private static void expect(Message message, Object... fields) throws Exception {
        for (int place = 0; place < fields.length; place += 2) {
            int tag = (Integer) fields[place];
            String found = message.isSetField(tag) ? message.getString(tag) : "nothing";
            Steps.equal("tag " + tag + " of " + message, fields[place + 1], found);
        }
    }

    /** What changed: action, type, price, size of each. */
    private static List<String> changes(Message message) throws Exception {
        List<String> changes = new ArrayList<>();
        for (Group change : message.getGroups(268)) {
            changes.add(String.join(" ", change.getString(279), change.getString(269),
                change.getDecimal(270).stripTrailingZeros().toPlainString(), change.getString(271)));
        }
        return changes;
    }
}

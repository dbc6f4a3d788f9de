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
        rejectLogin();
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
        stop();
        trades();
        quotes();
        status();
        refusals();
        logOut(ofAnna);
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

    private void rejectLogin() throws Exception {
        FixSession unauthorised = new FixSession("anna", "guessed");
        SocketInitiator initiator = start(unauthorised, "UNKNOWN");
        steps.run("wrong secret", () -> {
            String text = unauthorised.logoutText();
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
        // A venue opens its instruments a moment after its endpoints.
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

    private void stop() {
        steps.run("stop order in units", () -> {
            anna.send(message("D", 11, "anna-stop", 54, BUY, 38, "20", 854, "0", 40, "S", 99, "61000", 5127, "3",
                55, PERPETUAL, 100010, "stops"));
            Message report = answer(anna);
            expect(report, 41, "anna-stop", 39, "0", 38, "2", 40, "S", 5127, "3", 58, "success");
            anna.send(message("AF", 584, "anna-stop", 585, "1", 9014, "1"));
            expect(report(anna, "1"), 584, "anna-stop", 911, "1");
            expect(answer(anna), 584, "anna-stop", 41, "anna-stop", 39, "0");
            anna.send(message("F", 100010, "stops", 55, PERPETUAL));
            expect(answer(anna), 41, "anna-stop", 39, "4", 150, "4");
            return "order " + report.getString(37);
        });
        steps.run("stop limit order", () -> {
            anna.send(message("D", 11, "anna-limit", 54, BUY, 38, "2", 40, "J", 44, "61500", 99, "61000", 5127, "1",
                55, PERPETUAL));
            Message report = answer(anna);
            expect(report, 41, "anna-limit", 39, "0", 40, "J", 44, "61500", 99, "61000", 58, "success");
            anna.send(message("F", 11, "anna-limit", 55, PERPETUAL));
            expect(answer(anna), 41, "anna-limit", 39, "4", 150, "4");
            return "order " + report.getString(37);
        });
    }

    /** Returns the next report that answers a request; skips unsolicited reports before it. */
    private static Message answer(FixSession session) throws Exception {
        return report(session, "success");
    }

    /** Returns the next report with this text. */
    private static Message report(FixSession session, String text) throws Exception {
        Message report = session.next("8");
        while (!report.getString(58).equals(text)) {
            report = session.next("8");
        }
        return report;
    }

    private void trades() {
        steps.run("own trades", () -> {
            bert.send(message("AD", 568, "trades", 569, "0", 55, PERPETUAL));
            expect(bert.next("AQ"), 568, "trades", 571, "0", 750, "0");
            anna.send(message("D", 11, "anna-t", 54, SELL, 38, "10", 44, "60010", 55, PERPETUAL));
            expect(anna.next("8"), 41, "anna-t", 39, "0");
            bert.send(message("D", 11, "bert-t", 54, BUY, 38, "10", 44, "60010", 55, PERPETUAL));
            Message trade = bert.next("AE");
            expect(trade, 568, "trades", 55, PERPETUAL, 32, "10", 570, "N");
            Steps.equal("price of the trade", 60010.0, trade.getDouble(31));
            Steps.equal("side of the trade", BUY, trade.getGroups(552).get(0).getString(54));
            expect(anna.next("8"), 41, "anna-t", 39, "2", 58, "notification");
            return "trade " + trade.getString(1003);
        });
    }

    private void quotes() {
        steps.run("mass quote", () -> {
            anna.send(message("MM", 20114, "limits", 15, "BTC", 9019, "desk", 20110, "5", 20112, "1", 20116, "1"));
            expect(anna.next("MR"), 20114, "limits", 20117, "Y");
            anna.send(quote("q-1", "59500", "60500"));
            Steps.equal("quotes", List.of("0 1 59500 10 open", "0 1 60500 10 open"), quoted(anna.next("b")));
            while (!changes(bert.next("X")).contains("0 1 60500 10")) {
                continue;
            }
            anna.send(quote("q-2", "59600", "60400"));
            Steps.equal("quotes", List.of("0 1 59600 10 moved", "0 1 60400 10 moved"), quoted(anna.next("b")));
            anna.send(message("Z", 1166, "all-quotes", 298, "4"));
            expect(anna.next("r"), 11, "all-quotes", 530, "11", 531, "11", 298, "4", 533, "2");
            // The report of the cancelled quotes follows the answer to the request.
            expect(anna.next("8"), 39, "4", 9019, "desk", 302, "set");
            return "2 quotes";
        });
    }

    private static Message quote(String id, String bid, String offer) {
        Message message = message("i", 117, id, 9019, "desk");
        Group set = new Group(296, 302);
        set.setString(302, "set");
        set.setString(304, "1");
        Group entry = new Group(295, 299);
        String[] fields = {"299", "1", "55", PERPETUAL, "132", bid, "133", offer, "134", "10", "135", "10"};
        for (int place = 0; place < fields.length; place += 2) {
            entry.setString(Integer.parseInt(fields[place]), fields[place + 1]);
        }
        set.addGroup(entry);
        message.addGroup(set);
        return message;
    }

    /** Returns the state of each side of the quotes: kind, id, price, size, state. */
    private static List<String> quoted(Message ack) throws Exception {
        expect(ack, 297, "0");
        List<String> quoted = new ArrayList<>();
        for (Group entry : ack.getGroups(295)) {
            boolean isBid = entry.getString(54).equals(BUY);
            String price = entry.getDecimal(isBid ? 132 : 133).stripTrailingZeros().toPlainString();
            String state = Map.of("19", "moved", "21", "open").get(entry.getString(1167));
            quoted.add(String.join(" ", entry.getString(9020), entry.getString(299), price,
                entry.getString(isBid ? 134 : 135), state));
        }
        return quoted;
    }

    private void status() {
        steps.run("mass status and mass cancel", () -> {
            for (String id : List.of("anna-2", "anna-3")) {
                anna.send(message("D", 11, id, 54, BUY, 38, "1", 44, "59000", 55, PERPETUAL, 100010, "desk"));
                expect(anna.next("8"), 41, id, 39, "0");
            }
            anna.send(message("AF", 584, "orders", 585, "7"));
            expect(anna.next("8"), 584, "orders", 911, "2", 58, "2");
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

    /** Checks that a logout cancels the orders of a session with CancelOnDisconnect. */
    private void logOut(SocketInitiator ofAnna) {
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

    /** Builds a message of a type with fields: tag, value, tag, value. */
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

    /** Returns the changes of a market data message: action, type, price, size of each. */
    private static List<String> changes(Message message) throws Exception {
        List<String> changes = new ArrayList<>();
        for (Group change : message.getGroups(268)) {
            changes.add(String.join(" ", change.getString(279), change.getString(269),
                change.getDecimal(270).stripTrailingZeros().toPlainString(), change.getString(271)));
        }
        return changes;
    }
}

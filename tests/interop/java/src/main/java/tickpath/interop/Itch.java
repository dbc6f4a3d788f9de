package tickpath.interop;

import com.paritytrading.foundation.ASCII;
import com.paritytrading.juncture.nasdaq.itch50.ITCH50Listener;
import com.paritytrading.juncture.nasdaq.itch50.ITCH50Parser;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Parses ITCH messages by Juncture's parser. */
final class Itch {
    private static final byte CROSS_TRADE = 'Q';
    /** Offset of the shares in a cross trade, which have 8 bytes. */
    private static final int CROSS_SHARES_AT = 11;

    private final List<Event> events = new ArrayList<>();
    private final ITCH50Parser parser;

    /** A message with Juncture's names: its type and its fields; {@code time} joins the two parts of the time stamp. */
    record Event(String name, Map<String, String> fields) {
        /** Creates a message from alternating names and values of its fields. */
        static Event of(String name, Object... namesAndValues) {
            Map<String, String> fields = new TreeMap<>();
            for (int index = 0; index < namesAndValues.length; index += 2) {
                fields.put((String) namesAndValues[index], namesAndValues[index + 1].toString());
            }
            return new Event(name, fields);
        }

        long time() {
            return Long.parseLong(fields.get("time"));
        }
    }

    Itch() {
        // The listener has a method for each message type, whose only argument is the message. One proxy handles all.
        ITCH50Listener listener = (ITCH50Listener) Proxy.newProxyInstance(
            Itch.class.getClassLoader(), new Class<?>[] {ITCH50Listener.class}, (proxy, method, arguments) -> {
                events.add(new Event(method.getName(), fields(arguments[0])));
                return null;
            });
        parser = new ITCH50Parser(listener);
    }

    /** Parses one message; checks that Juncture reads all of its bytes. */
    Event parse(ByteBuffer buffer) throws IOException {
        ByteBuffer message = buffer.get(buffer.position()) == CROSS_TRADE ? crossTrade(buffer) : buffer;
        int length = message.remaining();
        parser.message(message);
        Event event = events.remove(0);
        Steps.check(
            !message.hasRemaining(),
            event + " has " + length + " bytes, and Juncture reads " + (length - message.remaining()));
        return event;
    }

    /**
     * Converts a cross trade for Juncture 1.0.0, which reads 4 bytes of shares, while Nasdaq's specification has
     * 8. Leaves out the upper half, which must be zero.
     */
    private static ByteBuffer crossTrade(ByteBuffer buffer) {
        byte[] message = new byte[buffer.remaining()];
        buffer.get(message);
        Steps.check(message.length == 40, "a cross trade of " + message.length + " bytes");
        Steps.equal("upper half of the shares of a cross trade", 0, ByteBuffer.wrap(message).getInt(CROSS_SHARES_AT));
        ByteBuffer shorter = ByteBuffer.allocate(message.length - Integer.BYTES);
        shorter.put(message, 0, CROSS_SHARES_AT);
        shorter.put(message, CROSS_SHARES_AT + Integer.BYTES, shorter.remaining());
        return shorter.flip();
    }

    List<Event> parse(List<byte[]> messages) throws IOException {
        List<Event> parsed = new ArrayList<>();
        for (byte[] message : messages) {
            parsed.add(parse(ByteBuffer.wrap(message)));
        }
        return parsed;
    }

    private static Map<String, String> fields(Object message) throws IllegalAccessException {
        Map<String, String> fields = new TreeMap<>();
        long timeHigh = 0;
        long timeLow = 0;
        for (Field field : message.getClass().getFields()) {
            if (Modifier.isStatic(field.getModifiers())) {
                continue;
            }
            switch (field.getName()) {
                case "timestampHigh" -> timeHigh = field.getLong(message);
                case "timestampLow" -> timeLow = field.getLong(message);
                default -> fields.put(field.getName(), text(field.getName(), field.get(message)));
            }
        }
        fields.put("time", Long.toString(timeHigh << 32 | timeLow));
        return fields;
    }

    /** Formats codes and symbols as characters, everything else as a number. */
    private static String text(String name, Object value) {
        if (value instanceof Byte code) {
            return String.valueOf((char) code.byteValue());
        }
        return switch (name) {
            case "stock" -> ASCII.unpackLong((Long) value);
            case "issueSubType" -> ASCII.unpackShort((Short) value);
            case "reason" -> ASCII.unpackInt((Integer) value);
            default -> value.toString();
        };
    }
}

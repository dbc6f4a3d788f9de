package tickpath.interop;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * OUCH 5.0 byte by byte, as Nasdaq's specification has it: requests of a client, and what a venue must answer.
 *
 * <p>There is no library for it: Juncture knows OUCH 4. Nothing here is shared with the venue's own codec.
 */
final class Ouch {
    /** Price of an order without a limit. */
    static final long MARKET = 0x7fffffffL;
    static final char DAY = '0';
    static final char IMMEDIATE_OR_CANCEL = '3';
    static final byte[] NO_OPTIONS = {};
    /** Option 12, a length of 2 before it: the order must not take. */
    static final byte[] POST_ONLY = {2, 12, 'P'};
    /** Option 3, a length of 5 before it: at least 100 shares at once. */
    static final byte[] AT_LEAST_100 = {5, 3, 0, 0, 0, 100};

    private static final int ACCEPTED_REFERENCE_AT = 36;
    private static final int REPLACED_REFERENCE_AT = 40;
    private static final int EXECUTED_MATCH_AT = 26;

    private Ouch() {}

    /** An order as a client enters it and as the venue repeats it. */
    record Order(
            int userRef, char side, int shares, String stock, long price, char timeInForce, byte[] options,
            String clientOrderId) {
        static Order day(int userRef, char side, int shares, String stock, long price) {
            return new Order(userRef, side, shares, stock, price, DAY, NO_OPTIONS, "order " + userRef);
        }

        Order with(char newTimeInForce) {
            return new Order(userRef, side, shares, stock, price, newTimeInForce, options, clientOrderId);
        }

        Order with(byte[] newOptions) {
            return new Order(userRef, side, shares, stock, price, timeInForce, newOptions, clientOrderId);
        }
    }

    static byte[] enter(Order order) {
        return new Message('O').u32(order.userRef).code(order.side).u32(order.shares).text(order.stock, 8)
            .u64(order.price).code(order.timeInForce).code('Y').code('P').code('N').code('N')
            .text(order.clientOrderId, 14).options(order.options).bytes();
    }

    /** Side and symbol are those of the order that is replaced. */
    static byte[] replace(int origUserRef, Order order) {
        return new Message('U').u32(origUserRef).u32(order.userRef).u32(order.shares).u64(order.price)
            .code(order.timeInForce).code('Y').code('N').text(order.clientOrderId, 14).options(order.options).bytes();
    }

    /** The shares are the new intended ones, counting those that were executed. */
    static byte[] cancel(int userRef, int shares) {
        return new Message('X').u32(userRef).u32(shares).bytes();
    }

    static byte[] modify(int userRef, char side, int shares) {
        return new Message('M').u32(userRef).code(side).u32(shares).bytes();
    }

    static byte[] accountQuery() {
        return new Message('Q').bytes();
    }

    static byte[] accepted(long time, Order order, long reference, char state) {
        return new Message('A').u64(time).u32(order.userRef).order(order, reference, state).bytes();
    }

    static byte[] replaced(long time, int origUserRef, Order order, long reference, char state) {
        return new Message('U').u64(time).u32(origUserRef).u32(order.userRef).order(order, reference, state).bytes();
    }

    static byte[] canceled(long time, int userRef, int shares, char reason) {
        return new Message('C').u64(time).u32(userRef).u32(shares).code(reason).bytes();
    }

    static byte[] executed(long time, int userRef, int shares, long price, char liquidity, long match) {
        return new Message('E').u64(time).u32(userRef).u32(shares).u64(price).code(liquidity).u64(match)
            .options(NO_OPTIONS).bytes();
    }

    static byte[] modified(long time, int userRef, char side, int shares) {
        return new Message('M').u64(time).u32(userRef).code(side).u32(shares).bytes();
    }

    static byte[] rejected(long time, int userRef, int reason, String clientOrderId) {
        return new Message('J').u64(time).u32(userRef).u16(reason).text(clientOrderId, 14).bytes();
    }

    static byte[] queryResponse(long time, int nextUserRef) {
        return new Message('Q').u64(time).u32(nextUserRef).bytes();
    }

    /** The day starts ({@code S}) or ends ({@code E}). */
    static byte[] systemEvent(long time, char code) {
        return new Message('S').u64(time).code(code).bytes();
    }

    /** When the venue says that it happened, in nanoseconds since midnight; every answer has it behind its type. */
    static long time(byte[] answer) {
        return longAt(answer, 1);
    }

    /** The venue's reference of an order that it accepted or replaced. */
    static long reference(byte[] answer) {
        return longAt(answer, answer[0] == 'A' ? ACCEPTED_REFERENCE_AT : REPLACED_REFERENCE_AT);
    }

    /** Number of an execution. */
    static long match(byte[] executed) {
        return longAt(executed, EXECUTED_MATCH_AT);
    }

    private static long longAt(byte[] message, int offset) {
        Steps.check(
            message.length >= offset + Long.BYTES,
            "an answer '" + (char) message[0] + "' of " + message.length + " bytes ends too early");
        return ByteBuffer.wrap(message).getLong(offset);
    }

    /** A message under construction. */
    private static final class Message {
        private final ByteBuffer buffer = ByteBuffer.allocate(256);

        Message(char type) {
            code(type);
        }

        Message code(char code) {
            buffer.put((byte) code);
            return this;
        }

        Message u16(int value) {
            buffer.putShort((short) value);
            return this;
        }

        Message u32(int value) {
            buffer.putInt(value);
            return this;
        }

        Message u64(long value) {
            buffer.putLong(value);
            return this;
        }

        Message text(String text, int length) {
            buffer.put(String.format("%-" + length + "s", text).getBytes(StandardCharsets.US_ASCII));
            return this;
        }

        Message options(byte[] options) {
            buffer.putShort((short) options.length).put(options);
            return this;
        }

        /** What an accepted and a replaced message end with. */
        Message order(Order order, long reference, char state) {
            return code(order.side).u32(order.shares).text(order.stock, 8).u64(order.price).code(order.timeInForce)
                .code('Y').u64(reference).code('P').code('N').code('N').code(state).text(order.clientOrderId, 14)
                .options(order.options);
        }

        byte[] bytes() {
            byte[] bytes = new byte[buffer.position()];
            buffer.get(0, bytes);
            return bytes;
        }
    }
}

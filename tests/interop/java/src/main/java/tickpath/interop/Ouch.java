package tickpath.interop;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * OUCH 5.0 byte by byte, from Nasdaq's specification: requests of a client, and the answers that a venue must give.
 *
 * <p>No library supports it: Juncture implements OUCH 4. Nothing here is shared with the venue's own codec.
 */
final class Ouch {
    /** Price of an order without a limit. */
    static final long MARKET = 0x7fffffffL;
    static final char DAY = '0';
    static final char IMMEDIATE_OR_CANCEL = '3';
    static final byte[] NO_OPTIONS = {};
    /** Option 12, preceded by its length of 2: the order must not take liquidity. */
    static final byte[] POST_ONLY = {2, 12, 'P'};
    /** Option 3, preceded by its length of 5: at least 100 shares must trade at once. */
    static final byte[] AT_LEAST_100 = {5, 3, 0, 0, 0, 100};

    private static final int ACCEPTED_REFERENCE_AT = 36;
    private static final int REPLACED_REFERENCE_AT = 40;
    private static final int EXECUTED_MATCH_AT = 26;

    private Ouch() {}

    /** An order as a client enters it and as the venue repeats it in its answer. */
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

    /** Builds a replace request; side and symbol remain those of the replaced order. */
    static byte[] replace(int origUserRef, Order order) {
        return new Message('U').u32(origUserRef).u32(order.userRef).u32(order.shares).u64(order.price)
            .code(order.timeInForce).code('Y').code('N').text(order.clientOrderId, 14).options(order.options).bytes();
    }

    /** Builds a cancel request; {@code shares} is the new intended quantity, including executed shares. */
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

    /** Builds a system event: {@code S} for the start of the day, {@code E} for its end. */
    static byte[] systemEvent(long time, char code) {
        return new Message('S').u64(time).code(code).bytes();
    }

    /** Returns the time stamp of an answer, in nanoseconds since midnight, which follows the type. */
    static long time(byte[] answer) {
        return longAt(answer, 1);
    }

    /** Returns the order reference number in an accepted or replaced message. */
    static long reference(byte[] answer) {
        return longAt(answer, answer[0] == 'A' ? ACCEPTED_REFERENCE_AT : REPLACED_REFERENCE_AT);
    }

    /** Returns the match number of an execution. */
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

        /** Appends the fields with which accepted and replaced messages end. */
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

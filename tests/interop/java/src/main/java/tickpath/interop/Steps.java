package tickpath.interop;

import java.util.Arrays;
import java.util.HexFormat;

/** Runs the steps of a test, prints a line for each, and checks their expectations. */
final class Steps {
    private int count;

    /** The work of a step; returns a text for its line. */
    interface Body {
        String run() throws Exception;
    }

    /** A step's expectation was not met. */
    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failure(String message) {
            super(message);
        }
    }

    /** Runs one step; if it fails, prints the expectation and ends the program. */
    void run(String name, Body body) {
        count++;
        try {
            System.out.printf("ok %2d %s: %s%n", count, name, body.run());
        } catch (Exception | AssertionError error) {
            boolean isExpected = error instanceof Failure;
            System.out.printf("FAILED %d %s: %s%n", count, name, isExpected ? error.getMessage() : error);
            if (!isExpected) {
                error.printStackTrace(System.out);
            }
            // Exit explicitly: other threads may still be waiting for packets.
            System.exit(1);
        }
    }

    int count() {
        return count;
    }

    static void equal(String what, Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new Failure(what + "\n  expected " + expected + "\n  found    " + found);
        }
    }

    static void equalBytes(String what, byte[] expected, byte[] found) {
        if (!Arrays.equals(expected, found)) {
            HexFormat hex = HexFormat.of();
            throw new Failure(
                what + "\n  expected " + hex.formatHex(expected) + "\n  found    " + hex.formatHex(found));
        }
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new Failure(what);
        }
    }
}

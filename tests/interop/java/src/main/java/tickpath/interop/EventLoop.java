package tickpath.interop;

import java.io.IOException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;

/** Reads all sockets of the client in one thread, also those that no step waits for. */
final class EventLoop {
    /** Time limit of a wait. Counts only time in which this process runs, not time in which it is suspended. */
    private static final long PATIENCE_NANOS = 20_000_000_000L;
    /** Maximum time that one round of the loop counts for, even if it took longer. */
    private static final long ROUND_NANOS_MAX = 200_000_000L;
    /** Interval of the ticks, in which sessions check whether a heartbeat is due. */
    private static final long TICK_MILLIS = 50;

    private final Selector selector = Selector.open();
    private final List<Task> ticks = new ArrayList<>();

    EventLoop() throws IOException {}

    interface Task {
        void run() throws IOException;
    }

    /** Makes a channel non-blocking, and runs {@code read} whenever it is readable. */
    void read(SelectableChannel channel, Task read) throws IOException {
        channel.configureBlocking(false);
        channel.register(selector, SelectionKey.OP_READ, read);
    }

    /** Runs a task at least every {@link #TICK_MILLIS} while the loop waits. */
    void tick(Task task) {
        ticks.add(task);
    }

    void forget(Task task) {
        ticks.remove(task);
    }

    /** Reads until a condition is true; fails with {@code what} after the time limit. */
    void until(String what, BooleanSupplier condition) throws IOException {
        long waited = 0;
        while (!condition.getAsBoolean()) {
            Steps.check(waited < PATIENCE_NANOS, "waited in vain for " + what);
            long start = System.nanoTime();
            selector.select(TICK_MILLIS);
            for (SelectionKey key : selector.selectedKeys()) {
                if (key.isValid()) {
                    ((Task) key.attachment()).run();
                }
            }
            selector.selectedKeys().clear();
            for (Task task : List.copyOf(ticks)) {
                task.run();
            }
            waited += Math.min(System.nanoTime() - start, ROUND_NANOS_MAX);
        }
    }
}

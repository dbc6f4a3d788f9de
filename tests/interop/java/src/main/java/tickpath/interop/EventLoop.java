package tickpath.interop;

import java.io.IOException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;

/** All sockets of the client in one thread: whatever is awaited, all are read. */
final class EventLoop {
    /** How long anything may take, of the time that this process runs: one that was stopped meanwhile goes on. */
    private static final long PATIENCE_NANOS = 20_000_000_000L;
    /** A round of the loop that took longer counts for this much. */
    private static final long ROUND_NANOS_MAX = 200_000_000L;
    /** How often the sessions are asked whether a heartbeat is due. */
    private static final long TICK_MILLIS = 50;

    private final Selector selector = Selector.open();
    private final List<Task> ticks = new ArrayList<>();

    EventLoop() throws IOException {}

    interface Task {
        void run() throws IOException;
    }

    /** Reads a channel, which is not blocking from now on, whenever it has something. */
    void read(SelectableChannel channel, Task read) throws IOException {
        channel.configureBlocking(false);
        channel.register(selector, SelectionKey.OP_READ, read);
    }

    /** Does something several times a second. */
    void tick(Task task) {
        ticks.add(task);
    }

    void forget(Task task) {
        ticks.remove(task);
    }

    /** Reads until something is there. */
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

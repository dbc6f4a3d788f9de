package tickpath.interop;

import com.paritytrading.nassau.ProtocolException;
import com.paritytrading.nassau.soupbintcp.SoupBinTCP;
import com.paritytrading.nassau.soupbintcp.SoupBinTCPClient;
import com.paritytrading.nassau.soupbintcp.SoupBinTCPClientStatusListener;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** One connection to the order entry port, by Nassau's SoupBinTCP client. */
final class OrderSession implements SoupBinTCPClientStatusListener {
    /** Length of a heartbeat on the wire: the packet's length and its type. */
    private static final int HEARTBEAT_LEN = 3;
    /** Time without a sent packet after which Nassau sends a heartbeat. */
    private static final long HEARTBEAT_INTERVAL_MILLIS = 1000;
    private static final int MESSAGE_LEN_MAX = 1024;

    private final EventLoop loop;
    private final String user;
    private final SoupBinTCPClient client;
    private final EventLoop.Task keepAlive;
    private final List<byte[]> messages = new ArrayList<>();
    /** Number of messages that the test has checked. */
    private int checked;
    private int events;
    private int heartbeats;
    private String session;
    private long firstSequence;
    private char rejected;
    private boolean isEnded;
    private boolean isClosed;
    private boolean isLost;
    private long clockAhead;

    OrderSession(EventLoop loop, InetSocketAddress address, String user) throws IOException {
        this.loop = loop;
        this.user = user;
        SocketChannel channel = SocketChannel.open(address);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        client = new SoupBinTCPClient(
            () -> System.currentTimeMillis() + clockAhead, channel, MESSAGE_LEN_MAX, this::message, this);
        loop.read(channel, this::receive);
        keepAlive = this::keepAlive;
    }

    private void receive() throws IOException {
        int eventsBefore = events;
        int bytes;
        try {
            bytes = client.receive();
        } catch (SocketException error) {
            onConnectionLost();
            return;
        }
        if (bytes < 0) {
            close();
        } else if (bytes == HEARTBEAT_LEN && events == eventsBefore) {
            // A heartbeat: Nassau reports no event for it, and fails for unknown types.
            heartbeats++;
        }
    }

    private void keepAlive() throws IOException {
        try {
            client.keepAlive();
        } catch (ProtocolException error) {
            throw error;
        } catch (IOException error) {
            onConnectionLost();
        }
    }

    /** Handles a connection that was lost without being closed by the venue. */
    private void onConnectionLost() throws IOException {
        isLost = true;
        close();
    }

    private void message(ByteBuffer buffer) {
        byte[] message = new byte[buffer.remaining()];
        buffer.get(message);
        messages.add(message);
        events++;
    }

    private void close() throws IOException {
        isClosed = true;
        loop.forget(keepAlive);
        client.close();
    }

    @Override
    public void heartbeatTimeout(SoupBinTCPClient client) {
        throw new Steps.Failure(user + ": the venue was silent for so long that Nassau gives it up");
    }

    @Override
    public void loginAccepted(SoupBinTCPClient client, SoupBinTCP.LoginAccepted accepted) {
        events++;
        session = accepted.getSession().trim();
        firstSequence = accepted.getSequenceNumber();
        // Before its login is accepted, a client may send nothing but the login.
        loop.tick(keepAlive);
    }

    @Override
    public void loginRejected(SoupBinTCPClient client, SoupBinTCP.LoginRejected answer) {
        events++;
        rejected = (char) answer.getRejectReasonCode();
    }

    @Override
    public void endOfSession(SoupBinTCPClient client) {
        events++;
        isEnded = true;
    }

    private void requestLogin(String password, String requestedSession, long sequence) throws IOException {
        SoupBinTCP.LoginRequest request = new SoupBinTCP.LoginRequest();
        request.setUsername(user);
        request.setPassword(password);
        request.setRequestedSession(requestedSession);
        request.setRequestedSequenceNumber(sequence);
        client.login(request);
        loop.until("an answer to the login of " + user, () -> session != null || rejected != 0 || isClosed);
    }

    /** Logs in; a blank session requests the venue's current one. */
    void login(String password, String requestedSession, long sequence) throws IOException {
        requestLogin(password, requestedSession, sequence);
        Steps.check(session != null, user + " was not let in: " + (rejected == 0 ? "closed" : rejected));
    }

    /** Sends a login that the venue must refuse; returns the reason once the venue has closed the connection. */
    char refusedLogin(String password, String requestedSession, long sequence) throws IOException {
        requestLogin(password, requestedSession, sequence);
        Steps.check(rejected != 0, user + " was not refused");
        loop.until("the venue to close the connection of a login that it refused", () -> isClosed);
        Steps.check(!isLost, "the connection of a refused login was reset in place of being closed");
        return rejected;
    }

    void send(byte[] message) throws IOException {
        client.send(ByteBuffer.wrap(message));
    }

    /** Returns the next message of the venue. */
    byte[] next() throws IOException {
        loop.until("message " + (firstSequence + checked) + " to " + user, () -> messages.size() > checked || isClosed);
        Steps.check(messages.size() > checked, user + ": the venue closed the connection in place of a message");
        return messages.get(checked++);
    }

    /** Checks that the test has checked every message received. */
    void expectNoMore() {
        List<String> left =
            messages.subList(checked, messages.size()).stream().map(HexFormat.of()::formatHex).toList();
        Steps.equal("messages to " + user + " that were not expected", List.of(), left);
    }

    List<byte[]> messages() {
        return messages;
    }

    String session() {
        return session;
    }

    /** Returns the sequence number of this connection's first message, from the answer to the login. */
    long firstSequence() {
        return firstSequence;
    }

    int heartbeats() {
        return heartbeats;
    }

    /** Sends a heartbeat: moves Nassau's clock past the time at which one is due. */
    void sendHeartbeat() throws IOException {
        clockAhead += HEARTBEAT_INTERVAL_MILLIS + 1;
        client.keepAlive();
    }

    void logout() throws IOException {
        client.logout();
        loop.until("the venue to close the connection of " + user + " after its logout", () -> isClosed);
        Steps.check(!isLost, "the connection of " + user + " was reset in place of being closed");
    }

    boolean isEnded() {
        return isEnded;
    }

    boolean isClosed() {
        return isClosed;
    }
}

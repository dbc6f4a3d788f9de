package tickpath.interop;

import com.paritytrading.nassau.moldudp64.MoldUDP64Client;
import com.paritytrading.nassau.moldudp64.MoldUDP64ClientState;
import com.paritytrading.nassau.moldudp64.MoldUDP64ClientStatusListener;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.DatagramChannel;
import java.util.ArrayList;
import java.util.List;

/** One multicast line and its retransmission, read by Nassau's MoldUDP64 client. */
final class MarketLine implements MoldUDP64ClientStatusListener {
    /** Makes Nassau's client begin with the first message received, and request none before it. */
    static final long FROM_NOW_ON = 0;
    private static final int DATAGRAM_LEN_MAX = 65_507;
    /** Offset of the message count in a packet's header; the count of a heartbeat is 0. */
    private static final int MESSAGE_COUNT_AT = 18;

    private final List<byte[]> messages = new ArrayList<>();
    private long firstSequence;
    private long nextSequence;
    private int requests;
    private int answers;
    private int packetsToDrop;
    private boolean isSynchronized;
    private boolean isEnded;

    MarketLine(
            EventLoop loop, InetSocketAddress group, NetworkInterface network, InetSocketAddress retransmission,
            long requestedSequence) throws IOException {
        DatagramChannel line = DatagramChannel.open(StandardProtocolFamily.INET);
        line.setOption(StandardSocketOptions.SO_REUSEADDR, true);
        // Bind to the group, so that packets of other groups on the same port do not arrive here.
        line.bind(group);
        line.join(group.getAddress(), network);
        DatagramChannel requestChannel = DatagramChannel.open(StandardProtocolFamily.INET);
        MoldUDP64Client client =
            new MoldUDP64Client(line, requestChannel, retransmission, this::message, this, requestedSequence);
        firstSequence = requestedSequence;
        loop.read(line, () -> {
            if (packetsToDrop == 0) {
                client.receive();
            } else if (isLost(line)) {
                packetsToDrop--;
            }
        });
        loop.read(requestChannel, () -> {
            if (client.receiveResponse()) {
                answers++;
            }
        });
    }

    /** Reads a packet and drops it; returns whether it had messages. */
    private static boolean isLost(DatagramChannel line) throws IOException {
        ByteBuffer packet = ByteBuffer.allocate(DATAGRAM_LEN_MAX);
        return line.receive(packet) != null && packet.getShort(MESSAGE_COUNT_AT) != 0;
    }

    private void message(ByteBuffer buffer) {
        byte[] message = new byte[buffer.remaining()];
        buffer.get(message);
        messages.add(message);
    }

    @Override
    public void state(MoldUDP64Client client, MoldUDP64ClientState next) {
        isSynchronized = next == MoldUDP64ClientState.SYNCHRONIZED;
    }

    @Override
    public void downstream(MoldUDP64Client client, long sequence, int messageCount) {
        if (firstSequence == FROM_NOW_ON) {
            firstSequence = sequence;
        }
        nextSequence = Math.max(nextSequence, sequence + messageCount);
    }

    @Override
    public void request(MoldUDP64Client client, long sequence, int messageCount) {
        requests++;
    }

    @Override
    public void endOfSession(MoldUDP64Client client) {
        isEnded = true;
    }

    /** Drops the next {@code packets} packets that have messages, and the heartbeats between them. */
    void dropPackets(int packets) {
        packetsToDrop = packets;
    }

    boolean isSynchronized() {
        return isSynchronized;
    }

    boolean isEnded() {
        return isEnded;
    }

    /** Returns the sequence number of the next message. */
    long nextSequence() {
        return nextSequence;
    }

    List<byte[]> messages() {
        return messages;
    }

    List<byte[]> messagesFrom(long sequence) {
        return messages.subList((int) (sequence - firstSequence), messages.size());
    }

    /** Returns the number of requests for retransmission. */
    int requests() {
        return requests;
    }

    /** Returns the number of packets that answered these requests. */
    int answers() {
        return answers;
    }
}

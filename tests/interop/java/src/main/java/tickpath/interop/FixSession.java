package tickpath.interop;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import quickfix.Application;
import quickfix.FieldNotFound;
import quickfix.Message;
import quickfix.Session;
import quickfix.SessionID;

/** The session of one user: logs on with the signature that Deribit requires, and keeps the received messages. */
final class FixSession implements Application {
    private static final int USERNAME = 553;
    private static final int PASSWORD = 554;
    private static final int RAW_DATA = 96;
    private static final int TEXT = 58;
    private static final int CANCEL_ON_DISCONNECT = 9001;
    private static final int NONCE_BYTES = 32;
    private static final long PATIENCE_SECONDS = 60;
    /** Time stamp of the last logon; those of later logons must be higher. */
    private static final AtomicLong LAST_LOGON_MS = new AtomicLong();

    private final String user;
    private final String secret;
    private final LinkedBlockingQueue<Message> received = new LinkedBlockingQueue<>();
    private final LinkedBlockingQueue<String> states = new LinkedBlockingQueue<>();
    private SessionID id;

    FixSession(String user, String secret) {
        this.user = user;
        this.secret = secret;
    }

    @Override
    public void onCreate(SessionID sessionId) {
        id = sessionId;
    }

    @Override
    public void onLogon(SessionID sessionId) {
        states.add("up");
    }

    @Override
    public void onLogout(SessionID sessionId) {
        states.add("down");
    }

    @Override
    public void toAdmin(Message message, SessionID sessionId) {
        switch (type(message)) {
            case "A" -> sign(message);
            // The engine rejected a message of the venue: fail the next step.
            case "3" -> states.add("rejected " + message);
            default -> {
            }
        }
    }

    @Override
    public void fromAdmin(Message message, SessionID sessionId) {
        received.add(message);
    }

    @Override
    public void toApp(Message message, SessionID sessionId) {
        // Nothing to add.
    }

    @Override
    public void fromApp(Message message, SessionID sessionId) {
        received.add(message);
    }

    private void sign(Message logon) {
        long now = LAST_LOGON_MS.updateAndGet(last -> Math.max(last + 1, System.currentTimeMillis()));
        byte[] nonce = new byte[NONCE_BYTES];
        new SecureRandom().nextBytes(nonce);
        String raw = now + "." + Base64.getEncoder().encodeToString(nonce);
        logon.setString(RAW_DATA, raw);
        logon.setString(USERNAME, user);
        logon.setString(PASSWORD, password(raw));
        logon.setBoolean(CANCEL_ON_DISCONNECT, true);
    }

    private String password(String raw) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(raw.getBytes(StandardCharsets.US_ASCII));
            return Base64.getEncoder().encodeToString(digest.digest(secret.getBytes(StandardCharsets.US_ASCII)));
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Waits until the session is {@code up} or {@code down}. */
    void expect(String state) throws InterruptedException {
        Steps.equal(user + "'s session", state, String.valueOf(states.poll(PATIENCE_SECONDS, TimeUnit.SECONDS)));
    }

    void send(Message message) {
        Steps.check(Session.lookupSession(id).send(message), user + " cannot send " + message);
    }

    Session session() {
        return Session.lookupSession(id);
    }

    /** Returns the next message of a type; drops messages of other types before it, but fails on a reject. */
    Message next(String type) throws InterruptedException {
        while (true) {
            Message message = received.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            Steps.check(message != null, user + " waits for a message of type " + type);
            // The engine reports the session as down as soon as it receives a logout.
            Steps.check(states.isEmpty() || type(message).equals("5"), user + ": " + states);
            if (type(message).equals(type)) {
                return message;
            }
            boolean isRefusal = "3 j 9 Y".contains(type(message));
            Steps.check(!isRefusal, user + " waits for " + type + ", and receives " + message);
        }
    }

    /** Returns the venue's reason for the logout. */
    String logoutText() throws InterruptedException, FieldNotFound {
        return next("5").getString(TEXT);
    }

    static String type(Message message) {
        try {
            return message.getHeader().getString(35);
        } catch (FieldNotFound error) {
            throw new IllegalStateException(error);
        }
    }
}

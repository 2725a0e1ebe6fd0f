import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** A way to the server that can be cut: faults are made at the socket, not inside a client. */
final class Relay implements AutoCloseable {
    private final String host;
    private final int port;
    private final ServerSocket listener;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean losing = new AtomicBoolean();
    private volatile boolean down;

    /** Leads to the last of these servers. */
    Relay(String addresses) throws IOException {
        String address = addresses.substring(addresses.lastIndexOf(',') + 1);
        int colon = address.lastIndexOf(':');
        host = address.substring(0, colon);
        port = Integer.parseInt(address.substring(colon + 1));
        listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        start(this::accept);
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    /** Cuts every connection; clients may come back at once. */
    void cut() {
        for (Socket socket : open) {
            shut(socket);
        }
    }

    /** Cuts every connection, and each new one too, until it is {@link #up}. */
    void down() {
        down = true;
        cut();
    }

    void up() {
        down = false;
    }

    /** Lets the next request through, and cuts its connection in place of the reply. */
    void loseNextReply() {
        losing.set(true);
    }

    /** True while the reply is not lost yet. */
    boolean losing() {
        return losing.get();
    }

    @Override
    public void close() throws IOException {
        listener.close();
        down();
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = listener.accept();
            open.add(client);
            if (down) {
                shut(client);
                continue;
            }
            Socket server = new Socket(host, port);
            client.setTcpNoDelay(true);
            server.setTcpNoDelay(true);
            open.add(server);
            start(() -> forwardRequests(client, server));
            start(() -> forwardReplies(server, client));
            if (down) {
                cut();
            }
        }
    }

    private void forwardRequests(Socket client, Socket server) throws IOException {
        try (client;
                server) {
            InputStream input = client.getInputStream();
            input.transferTo(server.getOutputStream());
        } finally {
            open.remove(client);
        }
    }

    /** Forwards frame by frame, so that one of them can be lost. */
    private void forwardReplies(Socket server, Socket client) throws IOException {
        try (client;
                server) {
            DataInputStream input = new DataInputStream(server.getInputStream());
            DataOutputStream output = new DataOutputStream(client.getOutputStream());
            boolean shaken = false;
            while (true) {
                byte[] frame = new byte[input.readInt()];
                input.readFully(frame);
                // Replies to requests have a positive xid; pings, events and the like do not.
                if (shaken && ByteBuffer.wrap(frame).getInt() > 0 && losing.getAndSet(false)) {
                    return;
                }
                shaken = true;
                output.writeInt(frame.length);
                output.write(frame);
                output.flush();
            }
        } finally {
            open.remove(server);
        }
    }

    private static void shut(Socket socket) {
        try {
            socket.close();
        } catch (IOException alreadyBroken) {
            // It is as cut as it can be.
        }
    }

    private static void start(Expect.Action action) {
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                action.run();
                            } catch (Exception ended) {
                                // A broken connection, or the relay's end: what it is here for.
                            }
                        },
                        "relay");
        thread.setDaemon(true);
        thread.start();
    }
}

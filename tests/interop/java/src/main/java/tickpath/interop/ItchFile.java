package tickpath.interop;

import com.paritytrading.nassau.binaryfile.BinaryFILEReader;
import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;

/**
 * Counts the messages of a BinaryFILE of ITCH by Nassau's reader and Juncture's parser. Prints a line for each type:
 * its code and its number of messages. Argument: the file.
 */
public final class ItchFile {
    private ItchFile() {}

    public static void main(String[] args) throws IOException {
        Itch itch = new Itch();
        Map<Character, Long> counts = new TreeMap<>();
        try (BinaryFILEReader reader = BinaryFILEReader.open(new File(args[0]), message -> {
            char type = (char) message.get(message.position());
            itch.parse(message);
            counts.merge(type, 1L, Long::sum);
        })) {
            while (reader.read() >= 0) {
                // Each read passes one message to the listener.
            }
        }
        counts.forEach((type, count) -> System.out.println(type + " " + count));
    }
}

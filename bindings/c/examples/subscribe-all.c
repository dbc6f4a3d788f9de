/* Shows every event that a gateway tells, each in a line: subscribe-all SOCKET USER [COUNT].
 * The gateway's pings are answered by the library. */
#include "common.h"

int main(int argc, char **argv) {
    tp_gateway_client *client = connect_by(argc, argv, "subscribe-all-c", 0);
    long left = argc > 3 ? atol(argv[3]) : -1;
    tp_event event;
    while (left != 0) {
        int32_t found = tp_gateway_client_poll(client, &event);
        if (found < 0)
            fail("");
        if (found != TP_EVENT || event.header.kind == TP_EVENT_PING)
            continue;
        show(&event);
        if (left > 0)
            left--;
    }
    tp_gateway_client_free(client);
    return 0;
}

/* Shows every event of a gateway, one per line: subscribe-all SOCKET USER [COUNT] [--name NAME]
 * [--exchange NAME].
 * The library answers the gateway's pings. */
#include "common.h"

int main(int argc, char **argv) {
    options by = read_options(argc, argv, "subscribe-all-c", "[COUNT]", 2);
    by.enable_trading = 0;
    tp_gateway_client *client = connect_by(&by);
    long left = by.count > 2 ? atol(by.places[2]) : -1;
    tp_event event;
    while (left != 0) {
        int32_t found = tp_gateway_client_poll(client, &event);
        if (found < 0)
            fail("");
        if (found != TP_EVENT || event.header.kind == TP_EVENT_PING)
            continue;
        show(&event);
        check_exchange(&by, &event);
        if (left > 0)
            left--;
    }
    tp_gateway_client_free(client);
    return 0;
}

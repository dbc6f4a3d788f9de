/* Common parts of the two examples: flags, and one line for an error. */
#ifndef TICKPATH_EXAMPLE_COMMON_H
#define TICKPATH_EXAMPLE_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tickpath_gateway.h"

static void fail(const char *what) {
    char text[256];
    tp_error_text(text, sizeof text);
    fprintf(stderr, "error: %s%s\n", what, text);
    exit(1);
}

static void show(const tp_event *event) {
    char text[1024];
    tp_event_text(event, text, sizeof text);
    puts(text);
}

/* The command line. Flags, anywhere: --name NAME, --exchange NAME, --enable_trading. All other arguments are
 * positional: SOCKET USER and those of the program. */
typedef struct {
    const char *name, *exchange;
    int enable_trading, count;
    char *places[4];
} options;

static void usage(const char *program, const char *more) {
    fprintf(stderr, "usage: TICKPATH_GATEWAY_PASSWORD=... %s SOCKET USER %s [--name NAME] [--exchange NAME]\n", program, more);
    exit(2);
}

static options read_options(int argc, char **argv, const char *name, const char *more, int places_min) {
    options found = {0};
    found.name = name;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--enable_trading") == 0)
            found.enable_trading = 1;
        else if (strcmp(argv[i], "--name") == 0 && i + 1 < argc)
            found.name = argv[++i];
        else if (strcmp(argv[i], "--exchange") == 0 && i + 1 < argc)
            found.exchange = argv[++i];
        else if (strncmp(argv[i], "--", 2) == 0 || found.count == 4)
            usage(argv[0], more);
        else
            found.places[found.count++] = argv[i];
    }
    if (found.count < places_min || getenv("TICKPATH_GATEWAY_PASSWORD") == NULL)
        usage(argv[0], more);
    return found;
}

/* The password comes from the environment, never from the command line. */
static tp_gateway_client *connect_by(const options *by) {
    if (tp_gateway_version() != TP_GATEWAY_VERSION) {
        fprintf(stderr, "error: the library has another version than the header: build again\n");
        exit(1);
    }
    tp_gateway_config config = {0};
    config.socket = by->places[0];
    config.user = by->places[1];
    config.name = by->name;
    config.password = getenv("TICKPATH_GATEWAY_PASSWORD");
    config.is_trading = (uint8_t)by->enable_trading;
    tp_gateway_client *client = NULL;
    if (tp_gateway_client_new(&config, &client) != TP_OK)
        fail("");
    return client;
}

/* Ends the program if the gateway is connected to another venue than the requested one. */
static void check_exchange(const options *by, const tp_event *event) {
    if (by->exchange == NULL || event->header.kind != TP_EVENT_CONNECTED)
        return;
    const char *found = event->body.connected.exchange;
    int most = (int)sizeof event->body.connected.exchange;
    if (strncmp(found, by->exchange, (size_t)most) != 0) {
        fprintf(stderr, "error: the gateway is connected with '%.*s', and not with '%s'\n", most, found, by->exchange);
        exit(1);
    }
}

#endif

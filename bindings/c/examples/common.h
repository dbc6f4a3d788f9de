/* What the two examples have in common: flags and one line for what goes wrong. */
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

/* SOCKET USER; the password comes from the environment, never from the command line. */
static tp_gateway_client *connect_by(int argc, char **argv, const char *name, uint8_t is_trading) {
    const char *password = getenv("TICKPATH_GATEWAY_PASSWORD");
    if (argc < 3 || password == NULL) {
        fprintf(stderr, "usage: TICKPATH_GATEWAY_PASSWORD=... %s SOCKET USER [...]\n", argv[0]);
        exit(2);
    }
    if (tp_gateway_version() != TP_GATEWAY_VERSION) {
        fprintf(stderr, "error: the library has another version than the header: build anew\n");
        exit(1);
    }
    tp_gateway_config config = {0};
    config.socket = argv[1];
    config.user = argv[2];
    config.name = name;
    config.password = password;
    config.is_trading = is_trading;
    tp_gateway_client *client = NULL;
    if (tp_gateway_client_new(&config, &client) != TP_OK)
        fail("");
    return client;
}

#endif

/* One order's lifecycle: order-test SOCKET USER SYMBOL [REST_MS] --enable_trading [--name NAME]
 * [--exchange NAME]. Without --enable_trading it prints what it would do. It enters a bid 5 ticks below the
 * best, moves it to the best, lets it rest, cancels it, and ends when the cancel is confirmed. The order is
 * post-only, and can be filled. */
#include "common.h"

enum step { WAITING, CREATING, MODIFYING, RESTING, CANCELLING };

static uint16_t account;
static uint32_t symbol;
static int64_t tick, quantity, best_bid;
static int is_account_ready;
/* Whether all instruments were received, and pings since then: they come in the same ring as accounts. */
static int is_market_told, pings;

static void learn(const tp_event *event, const char *name) {
    const tp_event_header *header = &event->header;
    switch (header->kind) {
    case TP_EVENT_REFERENCE_DATA:
        /* A text that fills its field has no terminating zero. */
        if (strncmp(event->body.reference_data.name, name, sizeof event->body.reference_data.name) == 0) {
            symbol = header->symbol;
            tick = event->body.reference_data.tick_size;
            quantity = event->body.reference_data.min_quantity;
        }
        break;
    case TP_EVENT_ACCOUNT_REFERENCE:
        if (account == 0 && event->body.account_reference.may_trade)
            account = header->account;
        break;
    case TP_EVENT_DOWNLOAD_END:
        if (event->body.download_end.scope == TP_READY_SCOPE_MARKET_DATA)
            is_market_told = 1;
        break;
    case TP_EVENT_PING:
        pings += is_market_told;
        break;
    case TP_EVENT_READY:
        if (event->body.ready.scope == TP_READY_SCOPE_ACCOUNT && header->account == account)
            is_account_ready = 1;
        break;
    case TP_EVENT_TOP_OF_BOOK:
        if (header->symbol == symbol && event->body.top_of_book.bid_quantity > 0)
            best_bid = event->body.top_of_book.bid_price;
        break;
    }
}

/* Missing items are an error. Two pings after the instruments, all accounts have been received. */
static void check_known(const options *by) {
    if (is_market_told && symbol == 0) {
        fprintf(stderr, "error: the gateway has no instrument %s\n", by->places[2]);
        exit(1);
    }
    if (pings >= 2 && account == 0 && by->enable_trading) {
        fprintf(stderr, "error: the user %s has no account that it may trade with\n", by->places[1]);
        exit(1);
    }
}

/* Prints a non-negative number of units of 10^-8. */
static void print_fixed(int64_t units) {
    int64_t rest = units % 100000000;
    int places = 8;
    printf("%lld", (long long)(units / 100000000));
    if (rest == 0)
        return;
    for (; rest % 10 == 0; rest /= 10)
        places--;
    printf(".%0*lld", places, (long long)rest);
}

static tp_request request_of(uint16_t kind, uint64_t order) {
    tp_request request;
    memset(&request, 0, sizeof request);
    request.header.kind = kind;
    request.header.account = account;
    request.header.symbol = symbol;
    request.header.client_order_id = order;
    return request;
}

static void send_it(tp_gateway_client *client, tp_request *request) {
    if (tp_gateway_client_send(client, request) != TP_OK)
        fail("");
}

static void create(tp_gateway_client *client, uint64_t order) {
    tp_request request = request_of(TP_REQUEST_CREATE_ORDER, order);
    request.body.create_order.price = best_bid - 5 * tick;
    request.body.create_order.quantity = quantity;
    request.body.create_order.side = TP_SIDE_BUY;
    request.body.create_order.order_type = TP_ORDER_TYPE_LIMIT;
    request.body.create_order.time_in_force = TP_TIME_IN_FORCE_GTC;
    request.body.create_order.execution = TP_EXECUTION_POST_ONLY;
    send_it(client, &request);
}

static void modify(tp_gateway_client *client, uint64_t order) {
    tp_request request = request_of(TP_REQUEST_MODIFY_ORDER, order);
    request.body.modify_order.price = best_bid;
    request.body.modify_order.quantity = quantity;
    request.body.modify_order.execution = TP_EXECUTION_POST_ONLY;
    send_it(client, &request);
}

/* Quotes have client order id 0, which this program does not use. */
static int is_it(uint64_t client_order_id, uint64_t order) { return order > 0 && client_order_id == order; }

int main(int argc, char **argv) {
    options by = read_options(argc, argv, "order-test-c", "SYMBOL [REST_MS] [--enable_trading]", 3);
    tp_gateway_client *client = connect_by(&by);
    uint64_t rest_ns = (by.count > 3 ? strtoull(by.places[3], NULL, 10) : 30000) * UINT64_C(1000000);
    enum step step = WAITING;
    uint64_t order = 0, until = 0;
    tp_event event;
    for (;;) {
        int32_t found = tp_gateway_client_poll(client, &event);
        if (found < 0)
            fail("");
        if (step == RESTING && tp_monotonic_ns() >= until) {
            tp_request request = request_of(TP_REQUEST_CANCEL_ORDER, order);
            send_it(client, &request);
            step = CANCELLING;
        }
        if (found != TP_EVENT)
            continue;
        check_exchange(&by, &event);
        learn(&event, by.places[2]);
        check_known(&by);
        if (step == WAITING && best_bid > 0 && !by.enable_trading) {
            printf("would buy ");
            print_fixed(quantity);
            printf(" at ");
            print_fixed(best_bid - 5 * tick);
            printf(": give --enable_trading\n");
            break;
        }
        if (step == WAITING && is_account_ready && best_bid > 0) {
            order = tp_gateway_client_next_order_id(client);
            create(client, order);
            step = CREATING;
        } else if (event.header.kind == TP_EVENT_ORDER_ACK && is_it(event.body.order_ack.client_order_id, order)) {
            const tp_order_ack *ack = &event.body.order_ack;
            show(&event);
            if (ack->status == TP_ACK_STATUS_REJECTED)
                return 1;
            /* The ack of the new order may arrive after the update that it is working. */
            int is_change = step == MODIFYING && ack->request == TP_ACK_TYPE_MODIFY;
            if (is_change && ack->status == TP_ACK_STATUS_ACCEPTED) {
                until = tp_monotonic_ns() + rest_ns;
                step = RESTING;
            } else if (is_change && ack->status == TP_ACK_STATUS_TIMEOUT) {
                /* The result of the change is unknown, so the order is cancelled. */
                until = tp_monotonic_ns();
                step = RESTING;
            }
        } else if (event.header.kind == TP_EVENT_ORDER_UPDATE &&
                   is_it(event.body.order_update.client_order_id, order)) {
            uint8_t status = event.body.order_update.status;
            show(&event);
            if (step == CREATING && status == TP_ORDER_STATUS_WORKING) {
                modify(client, order);
                step = MODIFYING;
            } else if (step == CANCELLING && status == TP_ORDER_STATUS_CANCELED) {
                break;
            } else if (status == TP_ORDER_STATUS_COMPLETED || status == TP_ORDER_STATUS_CANCELED ||
                       status == TP_ORDER_STATUS_REJECTED || status == TP_ORDER_STATUS_EXPIRED) {
                fprintf(stderr, "error: the order has ended and was not to\n");
                return 1;
            }
        } else if (event.header.kind == TP_EVENT_DISCONNECTED) {
            fprintf(stderr, "error: the gateway is gone; the order may still rest\n");
            return 1;
        }
    }
    tp_gateway_client_free(client);
    return 0;
}

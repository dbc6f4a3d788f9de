"""A client of the venue that knows its messages from docs/protocols/layouts.md alone.

from_page.py PAGE ORDER_ENTRY LINE_A RETRANSMISSION SYMBOL: two users trade one share, then every market data message
of the day is requested from the retransmission server. Prints the received messages, one per line.
"""
import re
import socket
import struct
import sys

PRICE = 1_000_000  # 100.0000


class Layouts:
    """The tables of the page: the fields and the length of the fixed part, by section and message code."""

    def __init__(self, page):
        self.messages = {}
        section = None
        for line in page.splitlines():
            if line.startswith("## "):
                section = line[3:].split(":")[0]
            elif line.startswith("### From the venue"):
                section += " from the venue"
            elif heading := re.match(r"### (?:`(.)` )?(.+), (\d+) bytes", line):
                key = (section, heading[1] or heading[2])
                fields = []
                self.messages[key] = (fields, int(heading[3]))
            elif section and (row := re.match(r"\| (\d+) \| (\d+) \| (\w+) \| ([\w ]+) \|", line)):
                fields.append((int(row[1]), int(row[2]), row[3], row[4]))

    def encode(self, section, code, **values):
        fields, length = self.messages[section, code]
        out = bytearray(length)
        for offset, size, name, kind in fields:
            value = values.pop(name, code if kind == "code" else "" if "text" in kind else 0)
            if kind == "number text":
                data = str(value).encode().rjust(size)
            elif kind in ("text", "code"):
                data = value.encode().ljust(size)
            else:
                data = value.to_bytes(size, "big")
            assert len(data) == size, (code, name, value)
            out[offset:offset + size] = data
        assert not values, f"{code} has no fields {values}"
        return bytes(out)

    def decode(self, section, data, code=None):
        code = code or chr(data[0])
        fields, length = self.messages[section, code]
        assert len(data) >= length, f"{code} has {len(data)} bytes, the page says {length}"
        read = {}
        for offset, size, name, kind in fields:
            part = data[offset:offset + size]
            if kind == "number text":
                read[name] = int(part)
            elif kind in ("text", "code"):
                read[name] = part.decode().strip()
            else:
                read[name] = int.from_bytes(part, "big")
        return read


class Client:
    """The order entry connection of a user."""

    def __init__(self, layouts, address, user, password):
        self.layouts, self.buffer = layouts, b""
        self.socket = socket.create_connection(address, timeout=30)
        self.send("L", layouts.encode("SoupBinTCP", "L", username=user, password=password, sequence=1))
        kind, payload = self.packet()
        assert kind == "A", f"the login was answered by {kind}"
        self.session = layouts.decode("SoupBinTCP", payload, "A")["session"]

    def send(self, kind, payload):
        header = self.layouts.encode("SoupBinTCP", "SoupBinTCP packet", length=len(payload) + 1, type=kind)
        self.socket.sendall(header + payload)

    def packet(self):
        while True:
            if len(self.buffer) >= 3:
                header = self.layouts.decode("SoupBinTCP", self.buffer, "SoupBinTCP packet")
                end = 2 + header["length"]
                if len(self.buffer) >= end:
                    payload, self.buffer = self.buffer[3:end], self.buffer[end:]
                    return header["type"], payload
            received = self.socket.recv(65536)
            assert received, "the venue closed the connection"
            self.buffer += received

    def response(self, code):
        """Returns the next OUCH message of the venue, whose code must be `code`."""
        while True:
            kind, payload = self.packet()
            if kind == "S" and chr(payload[0]) == code:
                return self.layouts.decode("OUCH 5.0 from the venue", payload)
            assert kind in "SH+", f"instead of {code} came a packet {kind}"

    def enter(self, number, side, symbol, quantity):
        order = self.layouts.encode(
            "OUCH 5.0", "O", user_ref=number, side=side, quantity=quantity, symbol=symbol, price=PRICE,
            time_in_force="0", display="Y", capacity="P", intermarket_sweep="N", cross_type="N",
            client_order_id=f"page {number}",
        )
        self.send("U", order + struct.pack(">H", 0))


def recovered(layouts, session, retransmission, last):
    """Returns all market data messages up to sequence number `last`, from the retransmission server."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.settimeout(5)
    messages = []
    while len(messages) < last:
        missing = last - len(messages)
        server.sendto(
            layouts.encode("MoldUDP64", "Header", session=session, sequence=len(messages) + 1, message_count=missing),
            retransmission,
        )
        packet = server.recv(65536)
        header = layouts.decode("MoldUDP64", packet, "Header")
        if header["sequence"] != len(messages) + 1:
            continue  # a second answer to the same request
        at = 20
        for _ in range(header["message_count"]):
            length = int.from_bytes(packet[at:at + 2], "big")
            messages.append(packet[at + 2:at + 2 + length])
            at += 2 + length
    return messages


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def main():
    page, order_entry, line, retransmission, symbol = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        layouts = Layouts(file.read())
    group, port = address(line)
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((group, port))
    join = socket.inet_aton(group) + socket.inet_aton("127.0.0.1")
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, join)
    listener.settimeout(30)

    buyer = Client(layouts, address(order_entry), "TEST01", "test")
    seller = Client(layouts, address(order_entry), "TEST02", "test")
    buyer.enter(1, "B", symbol, 5)
    accepted = buyer.response("A")
    print(f"accepted {accepted['user_ref']} {accepted['symbol']} {accepted['quantity']} at {accepted['price']}")
    seller.enter(1, "S", symbol, 2)
    fill = buyer.response("E")
    assert fill["match_number"] == seller.response("E")["match_number"]
    print(f"filled {fill['quantity']} at {fill['price']} as {fill['liquidity_flag']}")
    cancel = layouts.encode("OUCH 5.0", "X", user_ref=1, quantity=0)
    buyer.send("U", cancel)
    print(f"canceled {buyer.response('C')['quantity']}")
    seller.enter(2, "B", "NOSUCH", 1)
    print(f"rejected {hex(seller.response('J')['reason'])}")

    # Wait for the last message of interest: the cancel deletes the order.
    while True:
        packet = listener.recv(65536)
        header = layouts.decode("MoldUDP64", packet, "Header")
        last = header["sequence"] + header["message_count"] - 1
        at, codes = 20, []
        for _ in range(header["message_count"]):
            codes.append(chr(packet[at + 2]))
            at += 2 + int.from_bytes(packet[at:at + 2], "big")
        if "D" in codes:
            break
    messages = recovered(layouts, header["session"], address(retransmission), last)
    read = [(chr(message[0]), layouts.decode("ITCH 5.0", message)) for message in messages]
    add = next(fields for code, fields in read if code == "A" and fields["price"] == PRICE)
    executed = next(fields for code, fields in read if code == "E")
    assert add["order_ref"] == executed["order_ref"] == accepted["order_ref"]
    print(f"recovered {add['side']} {add['shares']} {add['stock']}, executed {executed['executed_shares']}")
    for client in (buyer, seller):
        client.send("O", b"")


main()

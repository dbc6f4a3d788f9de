"""A client of a Tickpath gateway.

The library ``libtickpath_gateway_client.so`` does the work (``cargo build --release -p tickpath-gateway-c``); it is
looked for where ``TICKPATH_GATEWAY_LIBRARY`` says, beside this module, and among the system's libraries.

Prices and quantities are :class:`decimal.Decimal`, exactly; times are nanoseconds of ``time.monotonic_ns()`` unless
their name says utc. No thread is started: events come when they are polled for.

>>> from tickpath_gateway import Client, EventKind
>>> with Client("/run/deribit.sock", "alice", password) as client:   # doctest: +SKIP
...     for event in client:
...         if event.kind == EventKind.TOP_OF_BOOK:
...             print(event.symbol, event.body.bid_price)
"""

import ctypes
import os
from decimal import Decimal
from pathlib import Path

from ._codes import *  # noqa: F401,F403
from ._codes import Event as EventKind
from ._codes import Request as RequestKind
from ._layout import *  # noqa: F401,F403
from ._layout import BODIES, REQUESTS, EventHeader, RequestHeader

VERSION = 1

_OK, _EVENT, _CONNECT, _NOT_CONNECTED, _FULL, _FINISHED = 0, 1, -2, -3, -4, -5
_BODY_LEN, _REQUEST_BODY_LEN = 112, 72


class GatewayError(Exception):
    """The gateway cannot be reached, said no, or is gone; the text says what to do."""


class NotConnected(GatewayError):
    """There is no connection now; poll until there is."""


class Full(GatewayError):
    """The ring to the gateway is full; try again later."""


class _Event(ctypes.Structure):
    _fields_ = [("header", EventHeader), ("raw", ctypes.c_uint8 * _BODY_LEN)]


class _Request(ctypes.Structure):
    _fields_ = [("header", RequestHeader), ("raw", ctypes.c_uint8 * _REQUEST_BODY_LEN)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("socket", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("user", ctypes.c_char_p),
        ("password", ctypes.c_char_p),
        ("timeout_ms", ctypes.c_uint32),
        ("timer_ms", ctypes.c_uint32),
        ("is_trading", ctypes.c_uint8),
        ("is_persistent", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 6),
    ]


def _load() -> ctypes.CDLL:
    name = "libtickpath_gateway_client.so"
    beside = Path(__file__).with_name(name)
    path = os.environ.get("TICKPATH_GATEWAY_LIBRARY") or (str(beside) if beside.exists() else name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{error}: build it, and name it by TICKPATH_GATEWAY_LIBRARY") from None
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for function, result, arguments in [
        ("tp_gateway_client_new", ctypes.c_int32, [ctypes.POINTER(_Config), ctypes.POINTER(pointer)]),
        ("tp_gateway_client_free", None, [pointer]),
        ("tp_gateway_client_poll", ctypes.c_int32, [pointer, ctypes.POINTER(_Event)]),
        ("tp_gateway_client_send", ctypes.c_int32, [pointer, ctypes.POINTER(_Request)]),
        ("tp_gateway_client_next_order_id", ctypes.c_uint64, [pointer]),
        ("tp_gateway_client_is_connected", ctypes.c_int32, [pointer]),
        ("tp_error_text", size, [ctypes.c_char_p, size]),
        ("tp_event_text", size, [ctypes.POINTER(_Event), ctypes.c_char_p, size]),
        ("tp_gateway_version", ctypes.c_uint32, []),
    ]:
        found = getattr(library, function)
        found.restype, found.argtypes = result, arguments
    if library.tp_gateway_version() != VERSION:
        raise ImportError(f"{path} has version {library.tp_gateway_version()}, this module {VERSION}")
    if (ctypes.sizeof(_Event), ctypes.sizeof(_Request)) != (184, 120):
        raise ImportError("structures have another length here than in the library")
    return library


_library = _load()


def _text(function, *arguments) -> str:
    room = ctypes.create_string_buffer(1024)
    function(*arguments, room, len(room))
    return room.value.decode()


def _error() -> str:
    return _text(_library.tp_error_text)


class Event:
    """One event: ``header``, and ``body``, a structure of its kind (``None`` for a kind that is not known)."""

    __slots__ = ("_raw", "header", "body")

    def __init__(self, raw: _Event):
        self._raw = raw
        self.header = raw.header
        kind = BODIES.get(raw.header.kind)
        self.body = kind.from_buffer(raw, ctypes.sizeof(EventHeader)) if kind else None

    @property
    def kind(self) -> int:
        """One of :class:`EventKind`."""
        return self.header.kind

    @property
    def symbol(self) -> int:
        """Number of the instrument; 0 when it is about none."""
        return self.header.symbol

    @property
    def account(self) -> int:
        """Number of the account; 0 when it is about none."""
        return self.header.account

    def __str__(self) -> str:
        return _text(_library.tp_event_text, ctypes.byref(self._raw))


class Client:
    """A connection with a gateway; a context, and an iterator over events that ends when the connection does."""

    def __init__(
        self,
        socket,
        user: str,
        password: str,
        *,
        name: str = "python",
        trading: bool = False,
        persistent: bool = True,
        timeout: float = 5.0,
        timer: float = 0.0,
    ):
        """Connects, and waits up to ``timeout`` seconds; raises :class:`GatewayError` when it fails."""
        self._handle = ctypes.c_void_p()
        config = _Config(
            os.fsencode(socket),
            name.encode(),
            user.encode(),
            password.encode(),
            int(timeout * 1000),
            int(timer * 1000),
            int(trading),
            int(persistent),
        )
        if _library.tp_gateway_client_new(ctypes.byref(config), ctypes.byref(self._handle)) != _OK:
            raise GatewayError(_error())

    def poll(self):
        """The next :class:`Event`; ``None`` when there is none now. :class:`GatewayError` when none will come."""
        raw = _Event()
        result = _library.tp_gateway_client_poll(self._open(), ctypes.byref(raw))
        if result == _EVENT:
            return Event(raw)
        if result < 0:
            raise GatewayError(_error())
        return None

    def send(self, body, *, account: int = 0, symbol: int = 0, client_order_id: int = 0, order_id: int = 0) -> int:
        """Sends a request, such as ``CreateOrderRequest(...)``; its id, which acks have."""
        raw = _Request()
        raw.header.kind = REQUESTS[type(body)]
        raw.header.account, raw.header.symbol = account, symbol
        raw.header.client_order_id, raw.header.order_id = client_order_id, order_id
        ctypes.memmove(raw.raw, ctypes.byref(body), ctypes.sizeof(body))
        result = _library.tp_gateway_client_send(self._open(), ctypes.byref(raw))
        if result != _OK:
            raise {_FULL: Full, _NOT_CONNECTED: NotConnected}.get(result, GatewayError)(_error())
        return raw.header.request_id

    def next_order_id(self) -> int:
        """A client order id that no client of this user has used: ask once the account is ready."""
        return _library.tp_gateway_client_next_order_id(self._open())

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return bool(self._handle) and _library.tp_gateway_client_is_connected(self._handle) == 1

    def close(self) -> None:
        """Closes the connection; the gateway does with the orders what it does when a client goes."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            _library.tp_gateway_client_free(handle)

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise GatewayError("the client is closed")
        return self._handle

    def __iter__(self):
        """Events as they come, spinning between them; ends when no more will come."""
        while self._handle:
            try:
                event = self.poll()
            except GatewayError:
                return
            if event is not None:
                yield event

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()


def record(kind, **fields):
    """A structure with fields by name; prices and quantities as Decimal, int or text, exactly."""
    made = kind()
    for name, value in fields.items():
        setattr(made, name, Decimal(value) if name in kind.fixed else value)
    return made

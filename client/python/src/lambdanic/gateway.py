# SPDX-License-Identifier: Apache-2.0
"""Where functions are: a gateway knows their workload IDs and addresses by their names."""

import base64
import json
import socket
import threading
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import quote

from .arguments import seconds, text
from .endpoint import split_address
from .errors import GatewayError, NoSuchFunction


@dataclass(frozen=True, slots=True)
class Function:
    """A gateway's answer about a function: its workload ID, its wanted revision, and where its requests go."""

    name: str
    workload: int
    revision: int
    address: str


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("gateway", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Gateway:
    """A gateway and its answers. gateway is unix:PATH, HOST:PORT, [IPv6]:PORT, or the URL that `lambdanic up` prints, whose path
    does not matter; credentials, "USER:PASSWORD", are what a TCP gateway asks for. Its methods may be called from any thread."""

    def __init__(self, gateway: str, *, credentials: str | None = None, namespace: str | None = None, timeout: float = 5.0) -> None:
        text("gateway", gateway)
        scheme, of_url, address = gateway.partition("://")
        if of_url and not gateway.startswith("unix:"):
            if scheme.lower() != "http":
                raise ValueError(f"no such address: {gateway!r}: a gateway speaks HTTP: give http://HOST:PORT")
            gateway = address.partition("/")[0]
        if not gateway.startswith("unix:"):
            split_address(gateway, 8080)
        elif gateway == "unix:":
            raise ValueError("the gateway's path is empty: give unix:PATH, HOST:PORT or [IPv6]:PORT")
        for name, value in (("credentials", credentials), ("namespace", namespace)):
            if value is not None:
                text(name, value)
        seconds("timeout", timeout)
        self._gateway = gateway
        self._headers = {}
        if credentials is not None:
            self._headers["Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()
        self._query = f"?namespace={quote(namespace, safe='')}" if namespace else ""
        self._timeout = timeout
        self._asking = threading.Lock()  # others with the same question wait; known answers stay available
        self._lock = threading.Lock()
        self._known: dict[str, Function] = {}

    def find(self, name: str, stale: Function | None = None) -> Function:
        """The function, from memory where it was asked for before. stale is an answer that was wrong: then the gateway is asked again."""
        known = self._known.get(name)
        if known is not None and known is not stale:
            return known
        with self._asking:
            known = self._known.get(name)
            if known is None or known is stale:
                known = self.look_up(name)
                with self._lock:
                    self._known[name] = known
            return known

    def known(self, name: str) -> Function | None:
        """The function, where it was asked for before."""
        return self._known.get(name)

    def forget(self, function: Function) -> None:
        """Has the function asked for again when it is next wanted."""
        with self._lock:
            if self._known.get(function.name) is function:
                del self._known[function.name]

    def look_up(self, name: str) -> Function:
        """Asks the gateway."""
        text("name", name)
        try:
            connection = self._connect()
            try:
                connection.request("GET", f"/system/function/{quote(name, safe='')}{self._query}", headers=self._headers)
                answer = connection.getresponse()
                status, said = answer.status, answer.read()
            finally:
                connection.close()
        except (OSError, HTTPException) as e:
            raise GatewayError(f"ask {self._gateway} for {name!r}: {e}: check its address") from e
        if status == 404:
            raise NoSuchFunction(f"{self._gateway} knows no function {name!r}: deploy it first")
        if status != 200:
            raise GatewayError(f"{self._gateway} refuses to say where {name!r} is: HTTP status {status}: check the credentials")
        return self._read(name, said)

    def _connect(self) -> HTTPConnection:
        if self._gateway.startswith("unix:"):
            return _UnixConnection(self._gateway.removeprefix("unix:"), self._timeout)
        host, port = split_address(self._gateway, 8080)
        return HTTPConnection(host, port, timeout=self._timeout)

    def _read(self, name: str, text: bytes) -> Function:
        try:
            answer = json.loads(text)
            workload, revision, address = answer["workload"], answer["revision"], answer["endpoint"]
        except (ValueError, KeyError, TypeError) as e:
            raise GatewayError(f"{self._gateway} is no gateway: its answer lacks what a function has") from e
        if not isinstance(workload, int) or not 0 <= workload < 1 << 32 or not isinstance(revision, int) or not isinstance(address, str):
            raise GatewayError(f"{self._gateway} is no gateway: it says that {name!r} has workload ID {workload!r} at {address!r}")
        return Function(name, workload, revision, address)

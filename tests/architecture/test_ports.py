"""Shows that a port which a test was given stays its own."""

import errno
import socket

import pytest

from tests.ports import free_port


def test_a_kept_port_refuses_connections_until_its_server_listens_and_after_it_has_ended() -> None:
    address = ("127.0.0.1", free_port())

    for _ in range(2):
        with socket.socket() as client:
            assert client.connect_ex(address) == errno.ECONNREFUSED
        with socket.create_server(address), socket.create_connection(address):
            pass


def test_a_kept_port_is_given_to_nobody_else() -> None:
    port = free_port()

    with socket.socket() as other, pytest.raises(OSError, match="already in use"):
        other.bind(("127.0.0.1", port))

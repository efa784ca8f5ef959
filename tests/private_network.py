"""Hosts of a private network on this machine, for tests of several machines.

Each host is a network namespace with its own address and host name. A bridge in
another namespace connects them. It needs root and Linux.
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess

# Runs a command with a hosts file and a host name of its own.
ON_HOST = 'mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"'


def why_not():
    """Return why it cannot run here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [name for name in ("ip", "unshare", "mount") if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} is missing (Debian: apt install iproute2)"
    tried = subprocess.run(["unshare", "-n", "-u", "-m", "true"], capture_output=True)
    return "this system allows no namespaces" if tried.returncode else None


def _ip(*words):
    subprocess.run(["ip", *words], check=True)


@dataclasses.dataclass(frozen=True)
class Network:
    """Hosts that a bridge connects, named `host0`, `host1`, ….

    Attributes:
      name: begins the names of all namespaces.
      hosts_file: what every host sees as `/etc/hosts`.
    """

    name: str
    hosts_file: pathlib.Path

    def command(self, host, command):
        """Return what runs a command on a host."""
        inside = ["sh", "-c", ON_HOST, self.hosts_file, f"host{host}", *command]
        there = ["ip", "netns", "exec", f"{self.name}-{host}", "unshare", "-m", "-u"]
        return [str(word) for word in [*there, *inside]]

    def set_link(self, host, state):
        """Cut ("down") or repair ("up") the link between a host and the bridge."""
        _ip("-n", f"{self.name}-b", "link", "set", f"port{host}", state)


@contextlib.contextmanager
def network(folder, count):
    """Yield a `Network` of `count` hosts; nothing of it is left at the end."""
    name = f"bert{os.getpid()}"
    spaces = [f"{name}-b", *[f"{name}-{host}" for host in range(count)]]
    hosts_file = folder / "hosts"
    lines = [f"10.77.0.{host + 1} host{host}" for host in range(count)]
    hosts_file.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
    try:
        for space in spaces:
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
        bridge = spaces[0]
        _ip("-n", bridge, "link", "add", "bridge", "type", "bridge")
        _ip("-n", bridge, "link", "set", "bridge", "up")
        for host, space in enumerate(spaces[1:]):
            port = f"port{host}"
            _ip(
                *("-n", bridge, "link", "add", port, "type", "veth"),
                *("peer", "name", "eth0", "netns", space),
            )
            _ip("-n", bridge, "link", "set", port, "master", "bridge", "up")
            _ip("-n", space, "address", "add", f"10.77.0.{host + 1}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
        yield Network(name, hosts_file)
    finally:
        for space in spaces:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)

"""How names of hosts and users, and serial numbers, stand in what machines print: a label, a place in a line, a form.

Sources: passwd(5), group(5), hosts(5); RFC 3164 and RFC 5424 (syslog); id(1); Linux kernel documentation,
ABI/testing/sysfs-class-dmi (dmi/id).
"""

from __future__ import annotations

import re

NAME = r"[A-Za-z0-9_](?:[\w.-]{0,62}[\w])?"

SYSLOG = re.compile(
    r"(?m)^((?:<\d{1,3}>)?(?:\d{1,3} )?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?(?: \d{4})?"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) )"
    r"([A-Za-z0-9][\w.-]{0,254})(?= (?:kernel|[\w./@-]{1,80}\[\d{1,10}\]|[a-z][\w./@-]{1,80}): )",
    re.ASCII,
)
HOST_BEHIND = re.compile(
    r"(?i)((?<![A-Za-z])(?:(?:server|host|node|pod|machine|nick)[_ -]?name|server[_-]?id|node[_-]?id|nodename|fqdn"
    r"|(?:local|remote|peer|dst|src|target)[_-]?host|hostname)"
    r"[\"']?(?:\s{0,20}[:=]\s{0,20}|\[|\s)[\"']?)([A-Za-z0-9][\w.-]{0,62}\w)(?![\w(])",
    re.ASCII,
)
USER_BEHIND = re.compile(
    r"(?i)((?<![A-Za-z])(?:(?:user(?:[_ -]?name)?|login|logname|owner|ruser|acct|sudo)[\"']?"
    r"(?:\s{0,20}[:=]\s{0,20}[\"']?|\[)|user\s(?=[\w.-]+(?: from |\(uid=| by )))|(?<=用户) ?)"
    r"([A-Za-z_][\w.-]{0,30}\w)(?![\w(@/-])",
    re.ASCII,
)
UID = re.compile(r"([ug]id=\d{1,10}\()([A-Za-z_][\w.-]{0,31})(?=\))", re.ASCII)
PROMPT = re.compile(r"(?<![\w.-])([a-z_][\w.-]{0,31})@([a-z0-9][\w-]{0,62})(?=[: ][~/][^\s#$]{0,200}\]?[#$])", re.ASCII)
HOME = re.compile(r"(/home/)([^/\s:;,\"'()<>\[\]{}|&*?\0\\]{1,255})")
ACCOUNT = re.compile(
    r"(?m)^([A-Za-z_][\w.-]{0,31}\$?)(:[x*!]{0,2}:\d{1,10}:\d{1,10}:)([^:\n]{0,200})(?=:[^:\n]{0,4096}:[^:\n]{0,4096}$)",
    re.ASCII,
)
GROUP = re.compile(r"(?m)^([A-Za-z_][\w.-]{0,31})(:[x*!]{0,2}:\d{1,10}:)([\w.,-]*)$", re.ASCII)
URL = re.compile(
    r"(?i)(?<![a-z0-9])((?:https?|ftp|tcp|udp|grpc|rpc|ssh|git|rediss?|etcd|amqp|wss?|nfs|kafka|mysql|postgresql)://"
    r"(?:[^\s/@\"']{1,200}@)?)([A-Za-z0-9][\w.-]{0,253})",
    re.ASCII,
)
WHOLE_HOST = re.compile(
    r"(?<![\w.@/-])((?:[a-z0-9][a-z0-9-]{0,62}\.){1,5}(?:(?:com|cn|lan|corp|intranet|internal|localdomain)(?![\w.-])"
    r"|[a-z]{2,12}(?=:\d{2,5}/)))",
    re.ASCII,
)
"""``registry.corp.cn``, ``registry.corp.io:5000/image``; a file or a module has no such end."""

EMAIL = re.compile(r"(?<![\w.+-])([\w.+-]{1,64})@((?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24})(?![\w-])", re.ASCII)

CUT = re.compile(r"(?<![A-Za-z0-9.:])([A-Za-z0-9_][\w.:@-]{2,80})…$", re.ASCII)

HOST_STEMS = ("name", "host", "server", "node", "fqdn")
USER_STEMS = ("user", "login", "logname", "owner", "acct", "sudo", "用户")
"""In lower case; one of them stands in every text in which HOST_BEHIND and USER_BEHIND find anything."""

SERIAL = re.compile(
    r"(?i)((?<![A-Za-z])(?:(?:(?:product|board|chassis|system|vendor|module|device)[_ ])?"
    r"(?:serial(?:[_ -]?(?:number|num|no))?|sn)"
    r"|[vndu]?die ?id|asset[_ ]tag|service[_ ]tag|machine[_-]?id|wwn)[\"']?\s{0,40}[:=]\s{0,20}[\"']?)"
    r"([0-9A-F]{8}(?: [0-9A-F]{8}){1,7}|[A-Z0-9](?:[\w./-]{3,62})[A-Z0-9])(?![\w.-])",
    re.ASCII,
)
UUID = re.compile(r"(?i)(?<![0-9a-z-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z-])", re.ASCII)
SERIAL_STEMS = (
    *("serial", "sn:", "sn=", "sn ", "sn\t", 'sn"', "sn'", "die id", "dieid", "asset", "service", "machine"),
    "wwn",
)
"""As above, for SERIAL."""

SERIAL_FILES = re.compile(
    r"/sys/(?:class|devices/virtual)/dmi/id/(?:\w+_serial|\w+_asset_tag|product_uuid)|/etc/machine-id"
    r"|/var/lib/dbus/machine-id|/proc/sys/kernel/random/boot_id|/proc/device-tree/serial-number"
)
HOST_FILES = ("/etc/hostname", "/proc/sys/kernel/hostname")


def is_sure(found: re.Match[str]) -> bool:
    """``hostname gz07`` is a name, ``server name resolution`` is not."""
    return not found[1][-1].isspace() or found[1].rstrip()[-1] in ":=" or bool(re.search(r"[\d.-]", found[2]))

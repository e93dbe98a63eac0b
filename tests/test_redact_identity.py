"""What pseudonyms look like, what they keep, and what is left as it is."""

from __future__ import annotations

import time
from ipaddress import IPv4Address, IPv4Network, ip_address
from pathlib import Path

import pytest
from hosts import host
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_doctor.facts.interfaces import ipv6_addresses, local_addresses
from ascend_doctor.facts.npu import npu_smi_info
from ascend_doctor.facts.user import accounts
from ascend_doctor.host.identities import Found, of_host
from ascend_doctor.host.pseudonyms import Pseudonyms
from ascend_doctor.host.redact_identity import Redactor
from ascend_doctor.knowledge.redaction import PublicNames
from ascend_doctor.paths import data_folder

HOSTS = Path(__file__).parent / "hosts"
PUBLIC = PublicNames([data_folder("rules")])
GIVEN = IPv4Network("198.18.0.0/15")


def redactor(key: bytes = b"k" * 32, hosts: tuple[str, ...] = (), users: tuple[str, ...] = ()) -> Redactor:
    made = Redactor(Pseudonyms(key), PUBLIC)
    made.add(Found(frozenset(hosts), frozenset(users)))
    return made


def redacted(text: str, **names: tuple[str, ...]) -> str:
    made = redactor(**names)  # type: ignore[arg-type]
    made.learn([text])
    return made.text(text)


@pytest.mark.parametrize(
    "text",
    [
        "CANN 8.5.0.1, driver 25.5.1.0, firmware 7.8.0.5.216, Version=10.0.0.1",
        "5.10.0-216.0.0.115.oe2203sp4.aarch64",
        "opencv-python 4.10.0.84 opencv_python-4.10.0.84.dist-info libx.so.1.84.15.2",
        "netmask 255.255.254.0 0.0.0.0 127.0.0.1 ::1 :: 255.255.255.255 224.0.0.251 ff02::1",
        "198.18.4.5 host-123456 user-123456 host-123456.domain-123456.example /home/user-123456/x",
        "00:00:00:00:00:00 ff:ff:ff:ff:ff:ff 01:00:5e:00:00:fb 33:33:00:00:00:01",
        "0000:c1:00.0 12:30:45 2026-11-30T09:00:00Z std::dec::face torch.ops.npu.npu_rms_norm",
        "The error from device(chipId:6, dieId:0), serial number is 8, there is an exception",
        "/home/HwHiAiUser/log root@localhost https://www.hiascend.com/x git@github.com:a/b",
        "user input is empty; host name resolution failed; login timeout, worker process died",
        "KeyError: 'model.layers.0.weight'",
        "  Serial Number                  : NA",
    ],
)
def test_what_is_nobodys_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (
            "remote_ip[192.168.7.9] 10.20.0.29(27) AllReduce_172.17.0.3%eth0",
            ("192.168.7.9", "10.20.0.29", "172.17.0.3"),
        ),
        ("connect to 8.8.4.4:53, ip[7.1.2.3], dns 9.9.9.9", ("8.8.4.4", "7.1.2.3", "9.9.9.9")),
        ("inet6 fe80::42:acff:fe11:2/64 scope link, [2408:1::5]:80", ("fe80::42:", "2408:1::5")),
        ("link/ether 02:42:ac:11:00:02 brd, 00-1B-2C-3d-4e-5f, enx001b2c3d4e5f", ("02:42:ac", "1B-2C", "001b2c")),
        ("May  1 08:20:11 gz07 kernel: [1.0] x\ngz07 again", ("gz07",)),
        ("hostname=gz07, server_id: gz08, {'node_name': 'gz09'}", ("gz07", "gz08", "gz09")),
        ("[zhang@gz07 ~]# npu-smi info; ssh zhang", ("zhang", "gz07")),
        ('File "/home/zhang/x.py"; user=zhang; uid=1002(zhang)', ("zhang",)),
        ("mail li.si@corp-x.cn or see http://wiki.corp-x.cn/npu, harbor.corp-x.cn:5000/img", ("li.si", "corp-x")),
        ("Serial Number : 2102312NPU10A; VDie ID : 1A2B3C4D 11112222 3A3B3C3D", ("2102312", "1A2B3C4D", "3A3B3C3D")),
        ("root=UUID=3b0f3a2c-71af-4c57-9d01-57bb15701f0a", ("3b0f3a2c", "57bb15701f0a")),
        ("token hf_abcdefghijklmnopqrstuv, Bearer abcdefgh12345", ("hf_abc", "abcdefgh12345")),
    ],
)
def test_what_names_somebody_goes(text: str, gone: tuple[str, ...]) -> None:
    found = redacted(text)
    assert [name for name in gone if name in found] == []


def test_a_name_that_is_a_word_goes_only_where_it_stands_as_a_name() -> None:
    text = "worker:x:1001:1001::/home/worker:/bin/bash\nvllm worker died, user=worker"
    found = redacted(text, users=("worker",))
    assert "vllm worker died" in found
    assert found.count("worker") == 1


def test_a_real_name_behind_the_account_goes() -> None:
    found = redacted("zhang:x:1001:1001:Zhang San,,,:/home/zhang:/bin/bash\n", users=("zhang",))
    name, home, _ = accounts(found.encode())[1001]
    assert (home, "San" in found) == (f"/home/{name}", False)


def test_columns_of_a_table_stay() -> None:
    before = "| gz07-npu      | 10.1.2.3        | 2102312NPU10A | x |"
    after = redacted(before, hosts=("gz07-npu",))
    assert [n for n, sign in enumerate(after) if sign == "|"] == [n for n, sign in enumerate(before) if sign == "|"]


def test_the_table_of_npu_smi_is_read_as_before() -> None:
    for path in HOSTS.glob("*/commands/npu-smi-info.out"):
        made = redactor()
        made.learn([path.read_text()])
        assert npu_smi_info(made.data(path.read_bytes())).value == npu_smi_info(path.read_bytes()).value


def test_a_host_in_many_places_has_one_pseudonym() -> None:
    made = redactor(hosts=("gz07.corp-x.cn",))
    table = made.file("/etc/hosts", b"10.1.2.3\tgz07.corp-x.cn gz07 # gz07\n").decode()
    assert made.file("/etc/hostname", b"gz07\n").decode().strip() == table.split()[2] == made.host("gz07")
    assert table.split()[1].startswith(f"{made.host('gz07')}.domain-")
    assert made.variable("HOSTNAME", "gz07") == made.text("gz07")


def test_tables_of_the_kernel_are_the_same_addresses() -> None:
    made = redactor()
    trie = made.file("/proc/net/fib_trie", b"     |-- 10.1.2.3\n        /32 host LOCAL\n")
    sockets = made.data(b"   0: 0302010A:EA60 00000000:0000 0A 0:0\n").decode()
    address = ip_address(local_addresses(trie)[0])  # type: ignore[index]
    assert sockets.split()[1] == f"{int.from_bytes(address.packed, 'little'):08X}:EA60"
    six = made.data(b"24088207008300710000000000000057 02 40 00 80     eth0\n")
    assert ip_address(ipv6_addresses(six)[0]) == ip_address(made.text("2408:8207:83:71::57"))  # type: ignore[index]


def test_half_a_name_at_the_end_of_a_cut_text_goes() -> None:
    made = redactor(hosts=("gz07-npu",))
    assert made.text("see gz07…") == "see …"
    assert made.text("from 10.83.7…") == "from …"
    assert made.text("NPU 0, 1, …") == "NPU 0, 1, …"
    assert made.text("out of mem…") == "out of mem…"


def test_other_hosts_of_a_cluster_are_known_by_what_they_share() -> None:
    made = redactor(hosts=("gz-a2-07",))
    assert "gz-a2" not in made.text("no answer from gz-a2-08 (gz-a2-113.x)")
    assert redactor(hosts=("node4",)).text("node5 of node4") == "node5 of node4"


def test_other_encodings_are_read() -> None:
    made = redactor(hosts=("gz07",))
    assert b"gz07" not in made.data("主机 gz07 故障".encode("gb18030"))
    for cut in (None, -1):  # a log may end in the middle of a character
        assert "gz07" not in made.data("主机 gz07\n".encode("utf-16")[:cut]).decode("utf-16", "ignore")
    program = b"\x7fELF/home/zhang/lib"
    assert made.file("/lib/x.so", program) == program


def test_a_hosts_own_low_address_is_known_for_one() -> None:
    asked = host("a2-healthy", set={"files": {"/etc/hosts": "7.1.2.3 gz07\n"}})
    made = redactor()
    made.add(of_host(asked))
    assert "7.1.2.3" not in made.text("7.1.2.3 is silent")
    assert made.text("firmware version: 7.1.2.3") == "firmware version: 7.1.2.3"


def test_one_key_is_one_set_of_pseudonyms_and_another_key_another() -> None:
    text = "May  1 08:20:11 gz07 kernel: 10.1.2.3 a4:83:71:57:0b:c1 /home/zhang"
    assert redacted(text) == redacted(text)
    made = redactor(b"another key of many bytes")
    made.learn([text])
    assert set(made.text(text).split()) & set(redacted(text).split()) == {"May", "1", "08:20:11", "kernel:"}


addresses = st.integers(0x0A000000, 0x0AFFFFFF)


@settings(deadline=None)
@given(st.lists(addresses, min_size=2, max_size=30, unique=True), st.integers(15, 32))
def test_addresses_of_one_subnet_stay_in_one_subnet(found: list[int], length: int) -> None:
    made = Pseudonyms(b"k" * 32)
    given_ = {a: int(IPv4Address(made.ipv4(a))) for a in found if a >> 17 == found[0] >> 17}
    assert len(set(given_.values())) == len(given_)
    for a in given_:
        assert IPv4Address(given_[a]) in GIVEN
        assert (a >> 32 - length == found[0] >> 32 - length) == (
            given_[a] >> 32 - length == given_[found[0]] >> 32 - length
        )


@settings(deadline=None)
@given(st.lists(st.integers(1 << 24, (1 << 32) - 1), min_size=2, max_size=200, unique=True))
def test_no_two_addresses_become_one(found: list[int]) -> None:
    made = Pseudonyms(b"k" * 32)
    assert len({made.ipv4(address) for address in found}) == len(found)


def test_many_hosts_have_as_many_pseudonyms() -> None:
    made = Pseudonyms(b"k" * 32)
    assert len({made.host(f"gz{number}") for number in range(5000)}) == 5000


@settings(deadline=None)
@given(st.text("0123456789ABCDEFabcdef-", min_size=4, max_size=40))
def test_a_serial_number_keeps_its_width(text: str) -> None:
    made = Pseudonyms(b"k" * 32)
    assert len(made.serial(text)) == len(text)
    assert made.serial(made.serial(text)) == made.serial(text)


WORDS = """10.1.2.3 10.1.2.0/24 8.5.0.1 fe80::1 2408:1::5 a4:83:71:57:0b:c1 gz07 zhang gz07.corp-x.cn /home/zhang
user=zhang hostname=gz07 Serial Number : 2102312NPU10A token=x zhang@corp-x.cn http://gz07:80/ ip[10.1.2.4] = | #
198.18.0.1 host-123456 --token x uid=1(zhang) zhang@gz07:~# 7.1.2.3"""
parts = st.tuples(st.sampled_from(WORDS.split()), st.sampled_from([" ", "  ", "\n", "\0", ", ", " 中 "]))
texts = st.lists(parts, max_size=12).map(lambda found: "".join(map("".join, found)))


@settings(deadline=None)
@given(texts | st.text(max_size=60))
def test_a_second_time_changes_nothing(text: str) -> None:
    made = redactor(hosts=("gz07",), users=("zhang",))
    made.learn([text])
    once = made.text(text)
    again = redactor(hosts=("gz07",), users=("zhang",))
    again.learn([once])
    assert again.text(once) == once


@settings(deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=20).map(lambda data: b"\xff\xfe" + data))
def test_any_bytes_can_be_redacted(data: bytes) -> None:
    made = redactor(hosts=("gz07",))
    made.learn([data.decode("utf-8", "surrogateescape")])
    assert isinstance(made.file("/x", data), bytes)


def test_large_files_take_little_time() -> None:
    parts = ["x" * 200_000, "a.b-c_" * 30_000, "1.2.3." * 30_000, "ab:" * 60_000]
    parts += ["user=host:" * 20_000, "@/home/" * 20_000]
    made = redactor(hosts=("gz07",))
    begin = time.process_time()
    for text in (*parts, "\n".join(parts)):
        made.learn([text])
        made.data(text.encode())
    assert time.process_time() - begin < 20

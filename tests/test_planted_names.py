"""Names and secrets planted wherever a machine or a log may have them: none leaves in any report or bundle."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command
from hosts import FOLDER, host

from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts import AREAS
from ascend_doctor.host.recorder import Recorder
from ascend_doctor.host.redact import Hiding
from ascend_doctor.paths import data_folder

HOST, DOMAIN, PEER, USER, MAIL = "gzplant07", "plantcorp.cn", "gzplant08", "plantuser", "plant.person"
IP, PEER_IP, PUBLIC_IP, LOW_IP = "10.83.71.57", "10.83.71.58", "36.83.71.57", "7.83.71.57"
IP6, MAC, SERIAL, UUID = (
    "2408:8207:83:71::57",
    "a4:83:71:57:0b:c1",
    "2102PLNT83715701",
    "83715701-71af-4c57-9d01-5783715701aa",
)
TOKEN, PASSWORD, KEY = "hf_PlAnTeDtOkEnPlAnTeDtOkEn", "Pl4nt-Passw0rd", "sk-plantedkeyplantedkey"
PLANTED = (
    *(HOST, "plantcorp", PEER, USER, MAIL, "Plant Person"),
    *(IP, PEER_IP, PUBLIC_IP, LOW_IP, "3947530A"),
    *(IP6, "2408820700830071", MAC, "a48371570bc1", SERIAL, UUID),
    *(TOKEN, PASSWORD, KEY),
)
FORMATS = ("json", "html", "md", "xml", "txt")

SYSLOG = f"""\
May 15 23:09:28 {HOST} kernel: [34121.040011] python3 invoked oom-killer: gfp_mask=0x100cca, order=0
May 15 23:09:30 {HOST} kernel: [34123.4] oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/u/{USER},task=python3
May 15 23:09:30 {HOST} kernel: [34123.491542] Out of memory: Killed process 25315 (python3) total-vm:1kB, token={TOKEN}
May 15 23:09:31 {HOST} sshd[811]: Accepted password for {USER} from {PEER_IP} port 52114 ssh2
May 15 23:09:32 {PEER} sudo[812]: {USER} : TTY=pts/0 ; PWD=/home/{USER} ; USER=root ; COMMAND=/usr/bin/npu-smi info
"""
PLOG = f"""\
[ERROR] HCCL(60570,):2025-12-04-14:46:07.911.312 [hccl_socket.cc:106] [60570][Listen] socket type[0], listen \
on ip[{IP}] and specific port[16666] fail. Peer {PEER_IP}(0) [{PUBLIC_IP}] [{IP6}] mac {MAC} group[{LOW_IP}%eth0_60000]
[ERROR] HCCL(60570,):2025-12-04-14:46:07.911.316 [hccl_socket_manager.cc:54] [60570][ServerInit]call trace: hcclRet -> 7
"""
FRAMEWORK = f"""\
INFO 12-04 14:46:07 [api_server.py:1] Namespace(api_key='{KEY}', host='{HOST}.{DOMAIN}', model='/home/{USER}/x')
ERROR 12-04 14:46:08 [core.py:824] RuntimeError: tcp://{PEER}.{DOMAIN}:295, password={PASSWORD}, ask {MAIL}@{DOMAIN}
ERROR 12-04 14:46:08 [core.py:824] RuntimeError: NPU out of memory. Tried to allocate 5 GiB (Serial Number : {SERIAL})
ERROR 12-04 14:46:09 [core.py:825] RuntimeError: http://{USER}:{PASSWORD}@{PUBLIC_IP}:3128/ {UUID} {TOKEN} http://{PEER}:80
"""


class Nothing(Hiding):
    """A snapshot that a careless tool took."""

    state = "none"

    def data(self, data: bytes) -> bytes:
        return data

    def text(self, text: str) -> str:
        return text


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine that says all of it, as it is."""
    base = host("a2-deep-healthy")
    files = {
        path: _text(base.read(path).value) for path in ("/etc/passwd", "/proc/self/mountinfo", "/proc/net/fib_trie")
    }
    dmesg = _text(base.run(["dmesg"]).value)
    board = _text(base.run(["npu-smi", "info", "-t", "board", "-i", "0"]).value)
    asked = host(
        "a2-deep-healthy",
        set={
            "identity": {"hostname": f"{HOST}.{DOMAIN}", "uid": 1002, "gids": [1002]},
            "env": {
                "LD_LIBRARY_PATH": f"/home/{USER}/ops/lib:/usr/local/Ascend/driver/lib64",
                "HCCL_IF_IP": LOW_IP,
                "VLLM_HOST_IP": IP,
                "MASTER_ADDR": f"{PEER}.{DOMAIN}",
                "HCCL_SOCKET_IFNAME": "enxa48371570bc1",
                "ASCEND_PROCESS_LOG_PATH": f"/data/home/{USER}/log",
                "ASCEND_MEM_SIZE": f"token={TOKEN}",
            },
            "files": {
                "/etc/hostname": f"{HOST}\n",
                "/etc/hosts": f"127.0.0.1 localhost\n{IP} {HOST}.{DOMAIN} {HOST}\n{PEER_IP} {PEER}\n{IP6} {HOST}\n",
                "/etc/passwd": files["/etc/passwd"]
                + f"{USER}:x:1002:1002:Plant Person,,{MAIL}@{DOMAIN}:/home/{USER}:/bin/bash\n",
                "/etc/hccn.conf": f"address_0={IP}\nnetmask_0=255.255.255.0\naddress_1={PUBLIC_IP}\n",
                "/proc/net/fib_trie": files["/proc/net/fib_trie"]
                + f"           |-- {IP}\n              /32 host LOCAL\n",
                "/proc/net/if_inet6": "24088207008300710000000000000057 02 40 00 80     eth0\n",
                "/proc/net/tcp": "  sl  local_address rem_address   st\n"
                "   0: 3947530A:EA60 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n",
                "/proc/self/mountinfo": files["/proc/self/mountinfo"]
                + f"99 22 0:55 / /home/{USER} rw shared:9 - nfs4 {PEER}.{DOMAIN}:/export/{USER} rw,addr={PEER_IP}\n",
                "/etc/docker/daemon.json": json.dumps({"insecure-registries": [f"harbor.{DOMAIN}:5000"]}),
                "/proc/cmdline": f"root=UUID={UUID} ro ip={IP} password={PASSWORD}\n",
            },
            "commands": [
                {
                    "argv": ["dmesg"],
                    "stdout": f"{dmesg}[ 9999.5] eth0: {MAC} {SERIAL} token={TOKEN} {IP} {HOST} {USER}\n",
                },
                {
                    "argv": ["npu-smi", "info", "-t", "board", "-i", "0"],
                    "stdout": f"{board}\tSerial Number                  : {SERIAL}\n\tOwner : {USER}@{DOMAIN} {KEY}\n",
                },
            ],
        },
    )
    recorder = Recorder(asked)
    Situation(recorder, [data_folder("rules")], workers=1).collect(AREAS)
    place = tmp_path_factory.mktemp("careless") / "snapshot"
    recorder.save(place, Nothing())
    return place


def _text(value: Any) -> str:
    data: bytes = value if isinstance(value, bytes) else value.stdout
    return data.decode()


@pytest.fixture(scope="module")
def doctor(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return Command(tmp_path_factory.mktemp("doctor"))


def leaks(name: str, data: bytes) -> list[str]:
    lower = name.encode() + b"\0" + data.lower()
    return [f"{name}: {planted}" for planted in PLANTED if planted.lower().encode() in lower]


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of all that a folder or an archive holds."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            yield str(file.relative_to(path)), file.read_bytes() if file.is_file() else b""
        return
    assert gzip.decompress(path.read_bytes())
    with tarfile.open(path) as bundle:
        for entry in bundle:
            file_ = bundle.extractfile(entry)
            yield entry.name, file_.read() if file_ else b""


def test_the_machine_says_all_of_it(careless: Path) -> None:
    """But for the colons of its IPv6 address, which its tables do without."""
    whole = b"".join(data + name.encode() for name, data in members(careless)).lower()
    assert [planted for planted in PLANTED if planted.lower().encode() not in whole] == [IP6]


@pytest.mark.parametrize("name", ["bundle", "bundle.tar.gz"])
def test_no_bundle_has_any(name: str, careless: Path, doctor: Command) -> None:
    done = doctor("collect", "--snapshot", careless, name)
    assert done.returncode == 0, done.stderr
    found = [leak for member, data in members(doctor.folder / name) for leak in leaks(member, data)]
    assert found == []


def test_no_report_of_the_machine_has_any(careless: Path, doctor: Command) -> None:
    outputs = [word for suffix in FORMATS for word in ("-o", f"machine.{suffix}")]
    launch = ["--", "env", f"HF_TOKEN={TOKEN}", "vllm", "serve", f"/home/{USER}/m", "--api-key", KEY, "--host", IP]
    done = doctor("preflight", "--snapshot", careless, "--facts", "--verbose", *outputs, *launch)
    assert done.returncode in (0, 1, 3), done.stderr
    for suffix in FORMATS:
        assert leaks(suffix, (doctor.folder / f"machine.{suffix}").read_bytes()) == []
    assert USER in done.stdout  # the user himself reads what his machine says
    assert [leak for leak in leaks("stdout", done.stdout.encode()) if leak.endswith((TOKEN, PASSWORD, KEY))] == []


@pytest.fixture(scope="module")
def logs(doctor: Command) -> str:
    """A folder of logs, as it is called in the doctor's."""
    folder = doctor.folder / f"{HOST}-logs" / "home" / USER
    folder.mkdir(parents=True)
    for name, text in (
        ("messages", SYSLOG),
        ("plog-60570_20251204144607911.log", PLOG),
        (f"serve-{USER}.log", FRAMEWORK),
    ):
        (folder / name).write_text(text)
    return f"{HOST}-logs"


def test_no_report_of_the_logs_has_any(logs: str, doctor: Command) -> None:
    outputs = [word for suffix in FORMATS for word in ("-o", f"logs.{suffix}")]
    done = doctor("logs", logs, "--verbose", *outputs)
    assert done.returncode in (0, 1, 3), done.stderr
    for suffix in FORMATS:
        assert leaks(suffix, (doctor.folder / f"logs.{suffix}").read_bytes()) == []
    redacted = doctor("logs", logs, "--verbose", "--redact").stdout
    assert leaks("stdout", redacted.encode()) == []
    assert "198.1" in redacted


def test_no_triage_and_no_comparison_has_any(careless: Path, logs: str, doctor: Command) -> None:
    outputs = [word for suffix in FORMATS for word in ("-o", f"triage.{suffix}")]
    launch = ["--command", f"vllm serve /home/{USER}/m --api-key {KEY} --host {IP}"]
    done = doctor("triage", logs, "--snapshot", careless, "--format", "markdown", *launch, *outputs)
    assert done.returncode in (1, 3), done.stderr
    assert leaks("stdout", done.stdout.encode()) == []
    changes = [word for suffix in ("json", "html", "md", "txt") for word in ("-o", f"diff.{suffix}")]
    done = doctor("diff", FOLDER / "a2-deep-healthy", careless, *changes)
    assert done.returncode in (0, 1), done.stderr
    for place in (*doctor.folder.glob("triage.*"), *doctor.folder.glob("diff.*")):
        assert leaks(place.name, place.read_bytes()) == []


def test_the_map_alone_gives_the_names_back(careless: Path, doctor: Command) -> None:
    done = doctor("preflight", "--snapshot", careless, "-o", "mapped.json", "--redact-map", "who.json", "--facts")
    assert "who.json" in done.stderr
    place = doctor.folder / "who.json"
    assert place.stat().st_mode & 0o777 == 0o600
    names = {entry["name"]: entry["pseudonym"] for entry in json.loads(place.read_text())["names"]}
    report = (doctor.folder / "mapped.json").read_text()
    assert {HOST, USER, IP} <= names.keys()
    assert all(names[name] in report for name in (HOST, USER, IP))
    assert doctor("preflight", "--snapshot", careless, "-o", "x.json", "--redact-map", "who.json").returncode == 2


def test_no_map_goes_into_the_bundle(careless: Path, doctor: Command) -> None:
    (doctor.folder / "given").mkdir()
    done = doctor("collect", "--snapshot", careless, "given", "--redact-map", "given/who.json")
    assert (done.returncode, list((doctor.folder / "given").iterdir())) == (2, [])


def test_names_that_are_kept_are_said_to_be_kept(careless: Path, doctor: Command) -> None:
    assert doctor(
        "preflight", "--snapshot", careless, "--no-redact", "-o", "kept.json", "-o", "kept.html"
    ).returncode in (1, 3)
    report = json.loads((doctor.folder / "kept.UNREDACTED.json").read_text())
    assert report["redacted"] == "secrets"
    assert report["notes"][0]["kind"] == "unredacted"
    assert report["host"]["hostname"] == f"{HOST}.{DOMAIN}"
    assert "UNREDACTED" in (doctor.folder / "kept.UNREDACTED.html").read_text()
    assert doctor("collect", "--snapshot", careless, "--no-redact", "kept.tar.gz").returncode == 0
    whole = b"".join(data for _, data in members(doctor.folder / "kept.UNREDACTED.tar.gz"))
    assert HOST.encode() in whole
    assert TOKEN.encode() not in whole


def test_one_key_gives_several_hosts_the_same_pseudonyms(careless: Path, doctor: Command) -> None:
    (doctor.folder / "key").write_text("the key of this cluster, 32 bytes")
    for name, source in (("one.json", careless), ("two.json", FOLDER / "a2-healthy")):
        doctor("preflight", "--snapshot", source, "--redact-key", "key", "-o", name, env={"USER": USER})
    doctor("preflight", "--snapshot", careless, "-o", "other.json")
    first, other = (json.loads((doctor.folder / name).read_text()) for name in ("one.json", "other.json"))
    assert first["host"]["hostname"] != other["host"]["hostname"]
    doctor("collect", "--snapshot", careless, "--redact-key", "key", "same")
    same = json.loads((doctor.folder / "same/snapshot.json").read_text())
    assert same["identity"]["hostname"] == first["host"]["hostname"]
    (doctor.folder / "site.yaml").write_text(f"redact-key: {doctor.folder}/key\nredact: true\n")
    printed = doctor("preflight", "--snapshot", careless, "--config", "site.yaml", "--format", "json").stdout
    assert json.loads(printed)["host"] == first["host"]
    (doctor.folder / "short").write_text("key")
    refused = doctor("preflight", "--snapshot", careless, "--redact-key", "short")
    assert (refused.returncode, "head -c 32 /dev/urandom" in refused.stderr) == (2, True)

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.host.redact import is_secret, secrets

HOSTS = Path(__file__).parent / "hosts"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (b"vllm serve m --api-key sk-123 --port 80", b"vllm serve m --api-key *** --port 80"),
        (b"vllm serve m --api-key=sk-123 --port 80", b"vllm serve m --api-key=*** --port 80"),
        (b"python\0-m\0x\0--api-key\0sk-123\0--port\x0080\0", b"python\0-m\0x\0--api-key\0***\0--port\x0080\0"),
        (b"--password 'two words' -v", b"--password '***' -v"),
        (b"HF_TOKEN=hf_abc vllm serve", b"HF_TOKEN=*** vllm serve"),
        (b'export MODELSCOPE_API_TOKEN="a b"\n', b'export MODELSCOPE_API_TOKEN="***"\n'),
        (b"AWS_SECRET_ACCESS_KEY=x/y+z==\n", b"AWS_SECRET_ACCESS_KEY=***\n"),
        (b"tlsPkPwd=abc", b"tlsPkPwd=***"),
        (b"key=abc", b"key=***"),
        (b"DB_PASSWD=p&w", b"DB_PASSWD=***&w"),
        (b'curl -H "Authorization: Bearer abc.def" x', b'curl -H "Authorization: Bearer ***" x'),
        (b"Authorization: Basic dTpw\r\n", b"Authorization: Basic ***\r\n"),
        (b"authorization: abc", b"authorization: ***"),
        (b'-H "x-api-key: abc"', b'-H "x-api-key: ***"'),
        (b"https://user:pa@ss@proxy:3128/x", b"https://user:***@proxy:3128/x"),
        (b"http_proxy=http://u:p@10.0.0.1:80", b"http_proxy=http://u:***@10.0.0.1:80"),
        (b"Namespace(api_key='sk-1', port=80)", b"Namespace(api_key='***', port=80)"),
        (b"{'api_key': 'sk-1', 'port': 80}", b"{'api_key': '***', 'port': 80}"),
        (b'{"apiKey": "sk-1", "port": 80}', b'{"apiKey": "***", "port": 80}'),
        (b'["--api-key", "sk-1", "--port", "80"]', b'["--api-key", "***", "--port", "80"]'),
        (b"password: abc\nuser: me\n", b"password: ***\nuser: me\n"),
        (b"secret = abc\n", b"secret = ***\n"),
        (b"passwd: abc files\npasswd=files", b"passwd: *** files\npasswd=***"),
        ("密码 HF_TOKEN=密\n".encode("gb18030"), "密码 HF_TOKEN=".encode("gb18030") + b"***\n"),
    ],
)
def test_what_stands_behind_a_secret_name_is_hidden(text: bytes, redacted: bytes) -> None:
    assert secrets(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        b"--max-num-batched-tokens 8192 --max-model-len 4096",
        b"--max-num-batched-tokens=8192",
        b"--tokenizer /models/x --skip-tokenizer-init",
        b"--enable-api-key --port 80",
        b"--hf-token-file /run/secrets/hf",
        b'"tokenTimeout" : 600,',
        b"tokenTimeout = 600",
        b"Token",
        b"    Key                            : NA\n",
        b"PWD=/root\nOLDPWD=/\n",
        b"Namespace(api_key=None, hf_token=None)",
        b"--api-key ''",
        b"HF_TOKEN=\nX=1",
        b"Version=25.5.1\npackage_version=25.5.1\n",
        b"monkey=1 keyboard=2 turkey: 3",
        b"https://www.hiascend.com/document?x=1",
        b"git@github.com:a/b",
        b"passwd:         files systemd\ngroup:          files [SUCCESS=merge] systemd\n",
        b"passwd:\tsss files\n",
        b"[always] madvise never",
        b"\xff\xfe\x00\x01 binary \x00",
    ],
)
def test_everything_else_stays_byte_for_byte(text: bytes) -> None:
    assert secrets(text) == text


def test_healthy_machines_have_no_secret() -> None:
    for path in HOSTS.glob("*/*/**/*"):
        if path.is_file():
            assert secrets(path.read_bytes()) == path.read_bytes(), path


def test_the_faults_of_machines_are_no_secrets() -> None:
    for path in HOSTS.glob("*/host.yaml"):
        changes = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)).get("set") or {}
        texts = [text for text in changes.get("files", {}).values() if isinstance(text, str)]
        texts += [text for command in changes.get("commands", []) for text in command.values() if isinstance(text, str)]
        for text in texts:
            assert secrets(text.encode()) == text.encode(), path


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("HF_TOKEN", True),
        ("--api-key", True),
        ("accessKey", True),
        ("OPENAI_APIKEY", True),
        ("HFToken", True),
        ("TOKEN_2", True),
        ("max_tokens", False),
        ("TOKENIZERS_PARALLELISM", False),
        ("LD_LIBRARY_PATH", False),
        ("token_timeout", False),
        ("PWD", False),
    ],
)
def test_a_name_is_secret_by_its_words(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


WORDS = b"--api-key HF_TOKEN password token key Authorization Bearer u x 80 *** = : :// @ , - & [ ]".split()
words = st.sampled_from([*WORDS, b" ", b"\0", b"\n", b'"', b"'", b"\\", b"\xe5"])


@given(st.lists(words, max_size=14).map(b"".join) | st.binary(max_size=60))
def test_a_second_time_changes_nothing(text: bytes) -> None:
    assert secrets(secrets(text)) == secrets(text)


@given(st.text("abcdefghij0123456789+/._", min_size=1, max_size=40))
def test_no_secret_of_a_command_line_is_left(value: str) -> None:
    secret = f"S{value}T"
    for form in (
        "--token {}",
        "--token={}",
        "API_KEY={}",
        '"password": "{}"',
        "http://u:{}@h/",
        "-x --secret\0{}",
    ):
        if "@" in form and "/" in secret:
            continue
        assert secret.encode() not in secrets(form.format(secret).encode())


def test_large_files_take_little_time() -> None:
    text = b"x" * 2_000_000 + b" key " + b"a.b-c_" * 300_000 + b"token=" * 100_000 + b"\0" * 1_000_000
    begin = time.perf_counter()
    secrets(text)
    assert time.perf_counter() - begin < 3

from __future__ import annotations

from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.disks import collect, mount_of, mounts
from ascend_doctor.host import Missing, Reason

CONTAINER = b"""\
1204 1033 0:98 / / rw,relatime - overlay overlay rw,lowerdir=/l/QX3T
1211 1206 0:106 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=65536k
1300 1204 8:1 /data /root/my\\040logs rw,relatime shared:1 master:2 - ext4 /dev/sda1 ro
1301 1204 0:55 / /root/my\\040logs rw,relatime - tmpfs tmpfs rw
"""


def test_a_path_is_on_the_mount_with_the_longest_point_and_of_two_the_later() -> None:
    known = mounts(CONTAINER)
    found = [mount_of(path, known) for path in ("/tmp", "/dev/shm", "/dev/shmem", "/root/my logs/ascend")]
    assert [mount.filesystem for mount in found if mount] == ["overlay", "tmpfs", "overlay", "tmpfs"]


def test_a_file_system_that_is_read_only_below_a_writable_mount_is_read_only() -> None:
    assert [mount.read_only for mount in mounts(CONTAINER)] == [False, False, True, False]


def test_room_is_that_of_the_nearest_folder_that_is_there() -> None:
    spaces = collect(host("a2-healthy")).facts.spaces
    assert (spaces["logs"].path, spaces["logs"].at) == ("/root/ascend/log", "/")
    assert (spaces["shared_memory"].filesystem, spaces["temporary"].filesystem) == ("tmpfs", "ext4")


def test_the_variables_of_cann_move_logs_and_caches() -> None:
    env = {"ASCEND_WORK_PATH": "/data/work/", "ASCEND_CACHE_PATH": "/data/cache"}
    spaces = collect(host("a2-healthy", set={"env": env})).facts.spaces
    assert (spaces["logs"].path, spaces["caches"].path) == ("/data/work/log", "/data/cache")
    moved = collect(host("a2-healthy", set={"env": {**env, "ASCEND_PROCESS_LOG_PATH": "/logs"}})).facts.spaces
    assert moved["logs"].path == "/logs"


def test_a_user_without_a_home_has_no_known_place_for_logs() -> None:
    spaces = collect(host("a2-container-user-without-name")).facts.spaces
    assert isinstance(spaces["logs"].path, Missing)
    assert spaces["temporary"].free_mib == 379904


def test_a_variable_that_was_not_collected_is_not_taken_for_unset() -> None:
    unseen = host("a2-healthy", set={"env": {"ASCEND_PROCESS_LOG_PATH": {"missing": "not_collected"}}})
    path = collect(unseen).facts.spaces["logs"].path
    assert isinstance(path, Missing)
    assert path.reason is Reason.NOT_COLLECTED


@given(st.binary(max_size=300))
def test_any_bytes_give_mounts(text: bytes) -> None:
    assert isinstance(mounts(text), tuple)

"""What is made of the `.proto` is what it makes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
PROTO = Path("zq/doors/queue_ti/http/rpc/queue.proto")


def test_the_module_is_made_of_the_proto_beside_it(tmp_path: Path) -> None:
    comment = (ROOT / PROTO).read_text("utf-8")
    assert f"python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. {PROTO}" in comment
    made = [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", *made, str(PROTO)]
    subprocess.run(command, cwd=ROOT, check=True)
    for name in ("queue_pb2.py", "queue_pb2.pyi"):
        kept = (ROOT / PROTO).with_name(name)
        fresh = tmp_path / PROTO.with_name(name)
        assert fresh.read_text("utf-8") == kept.read_text("utf-8"), f"make {name} anew"

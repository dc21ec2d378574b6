"""Write the data file with the protobuf fields of the built-in kinds, from the Go types of Kubernetes.

`python -m sandbox.apiserver.data.capture_protobuf` runs `protobuf_fields.go` with the version of Kubernetes that
`kubernetes.json.xz` was captured from, and writes `protobuf.json.xz`. It needs Go and its module proxy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import orjson

from sandbox.apiserver.data.bundle import PROTOBUF_FILE, bundle
from sandbox.apiserver.data.capture import GANG_GROUP_VERSIONS, GROUP_VERSIONS, write

SOURCE = Path(__file__).with_name("protobuf_fields.go")
#: Group versions of subresources, which discovery does not list by themselves.
SUBRESOURCES = ("autoscaling/v1",)


def main() -> None:
    version = bundle().version["gitVersion"].replace("v1.", "v0.", 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(SOURCE, folder)
        modules = "".join(f"require k8s.io/{m} {version}\n" for m in ("apimachinery", "client-go"))
        (folder / "go.mod").write_text(f"module kaiweb/protobuf-fields\n\ngo 1.25.0\n\n{modules}")
        output = subprocess.run(
            ["go", "run", ".", *GROUP_VERSIONS, *GANG_GROUP_VERSIONS, *SUBRESOURCES],
            cwd=folder,
            env=os.environ | {"GOFLAGS": "-mod=mod"},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    size = write(orjson.loads(output), PROTOBUF_FILE)
    print(f"{PROTOBUF_FILE}: {size} bytes")


if __name__ == "__main__":
    main()

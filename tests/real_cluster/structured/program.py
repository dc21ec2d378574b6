"""Build the program around Kubernetes' structured allocator and ask it questions.

`main.go` beside this file is built once into the cache of the real cluster; its name there carries a digest of
the source, so that a changed source is built again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.real_cluster.build import (
    STAGING_VERSION,
    ClusterUnavailableError,
    cache_folder,
    go_command,
)

SOURCE = Path(__file__).with_name("main.go")
GO_MOD = f"""module kaiweb/real-cluster/structured

go 1.25.0

require k8s.io/dynamic-resource-allocation {STAGING_VERSION}
"""

Json = dict[str, Any]


def ensure_program() -> Path:
    """Return the built program.

    Raises
    ------
    ClusterUnavailableError : no Go on PATH, or the build failed
    """
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    target = cache_folder() / "bin" / f"structured-{STAGING_VERSION}-{digest}"
    if target.exists():
        return target
    if shutil.which("go") is None:
        raise ClusterUnavailableError("Kubernetes' allocator needs the Go toolchain on PATH")
    module = cache_folder() / "module-structured"
    module.mkdir(parents=True, exist_ok=True)
    (module / "go.mod").write_text(GO_MOD)
    shutil.copy(SOURCE, module)
    target.parent.mkdir(parents=True, exist_ok=True)
    go_command("build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), ".", cwd=module)
    return target


@contextmanager
def kubernetes_allocator() -> Iterator[Callable[[Json], Json]]:
    """Run the program; the value is a function from a question to its answer."""
    with subprocess.Popen(
        [str(ensure_program())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def ask(question: Json) -> Json:
            requests.write(json.dumps(question) + "\n")
            requests.flush()
            answer: Json = json.loads(answers.readline())
            return answer

        yield ask
        process.stdin.close()

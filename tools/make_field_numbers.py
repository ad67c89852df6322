"""Writes `tools/field_numbers.json`: the protobuf field numbers of the Kubernetes types, which `make_schema.py` adds to
the reduced schema, so that typed clients that send protobuf are understood.

Needed once a Kubernetes release. Reads the struct tags of the Go modules k8s.io/api and k8s.io/apimachinery, as
`go mod download` leaves them:

    python tools/make_field_numbers.py API_DIRECTORY APIMACHINERY_DIRECTORY

A type is a mapping from field number to `name:type`. The name is empty for fields that JSON has at the level above.
Types: s text, i integer, t true or false, y bytes, d float, T time, U time with microseconds, Q quantity, I integer or
string, R and F anything, @NAME another type; after [] a list of it, after {} a mapping to it, after ? one for which
zero is not the same as absent.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent / "field_numbers.json"
SPECIAL = {
    "string": "s", "int": "i", "int32": "i", "int64": "i", "uint32": "i", "uint64": "i", "bool": "t", "byte": "y",
    "float64": "d", "float32": "d", "meta.v1.Time": "T", "meta.v1.MicroTime": "U", "api.resource.Quantity": "Q",
    "util.intstr.IntOrString": "I", "runtime.RawExtension": "R", "meta.v1.FieldsV1": "F", "runtime.Object": "R",
    "types.UID": "s", "types.NodeName": "s", "meta.v1.Duration": "R",
}  # fmt: skip
BEYOND_V1 = ("autoscaling.v2", "scheduling.v1beta1", "scheduling.v1alpha3")
STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.M | re.S)
NAMED = re.compile(r"^(?:type )?\t?(\w+) (\*?(?:\[\]|map\[)?[\w.\]*\[]+)$", re.M)
FIELD = re.compile(r'^\s*(?:(\w+)\s+)?(\S+)\s+`json:"([\w,$]*)"[^`\n]*?\bprotobuf:"\w+,(\d+),', re.M)
IMPORT = re.compile(r'^\s*(?:(\w+) )?"k8s\.io/(api|apimachinery/pkg)/([\w/]+)"$', re.M)


class Package:
    """The types of one directory."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        text = "\n".join(path.read_text() for path in sorted(directory.glob("*.go")) if "_test" not in path.name)
        text = re.sub(r"^\s*//.*\n", "", text, flags=re.M)
        self.structs = dict(STRUCT.findall(text))
        self.named = {name: of for name, of in NAMED.findall(text) if name not in self.structs}
        self.imports: dict[str, str] = {}
        for alias, root, path in IMPORT.findall(text):
            full = path if root == "api" else path.removeprefix("apis/")
            self.imports[alias or path.rpartition("/")[2]] = full.replace("/", ".")


def packages(roots: list[Path]) -> dict[str, Package]:
    found = {}
    api, machinery = roots
    for path in sorted(api.glob("*/v*/types.go")):
        name = ".".join(path.parent.relative_to(api).parts)
        if name.endswith(".v1") or name in BEYOND_V1:
            found[name] = Package(name, path.parent)
    found["meta.v1"] = Package("meta.v1", machinery / "pkg/apis/meta/v1")
    return found


class Reader:
    def __init__(self, found: dict[str, Package]) -> None:
        self.packages = found
        self.types: dict[str, dict[str, str]] = {}

    def code(self, package: Package, go: str) -> str:
        if go.startswith("*"):
            inner = self.code(package, go[1:])
            return inner if inner[0] in "TURF?[{" else f"?{inner}"
        if go == "[]byte":
            return "y"
        if go.startswith("[]"):
            return "[]" + self.code(package, go[2:]).lstrip("?")
        if go.startswith("map["):
            return "{}" + self.code(package, go.partition("]")[2])
        prefix, _, name = go.rpartition(".")
        full = f"{package.imports.get(prefix, prefix) if prefix else package.name}.{name}"
        if go in SPECIAL or full in SPECIAL:
            return SPECIAL.get(go) or SPECIAL[full]
        home = self.packages.get(full.rpartition(".")[0])
        if home is not None and name in home.named:
            return self.code(home, home.named[name])
        if home is None or name not in home.structs:
            return "R"
        self.read(home, name)
        return f"@{full}"

    def read(self, package: Package, name: str) -> None:
        full = f"{package.name}.{name}"
        if full in self.types:
            return
        made = self.types[full] = {}
        for _, go, tag, number in FIELD.findall(package.structs[name]):
            shown, _, options = tag.partition(",")
            if go in ("TypeMeta", "metav1.TypeMeta"):
                continue
            made[number] = f"{'' if options == 'inline' else shown}:{self.code(package, go)}"


def main() -> int:
    reader = Reader(packages([Path(given) for given in sys.argv[1:3]]))
    for package in reader.packages.values():
        for name in package.structs:
            reader.read(package, name)
    made = dict(sorted(reader.types.items()))
    TARGET.write_text(json.dumps(made, indent=0, separators=(",", ":"), sort_keys=True).replace(',\n"', ',"') + "\n")
    print(f"{TARGET.name}: {len(made)} types")
    return 0


if __name__ == "__main__":
    sys.exit(main())

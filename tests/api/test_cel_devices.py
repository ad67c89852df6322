"""Expressions as drivers' classes and their users write them, over devices as drivers publish them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from muster.api import quantity
from muster.api.cel.devices import DeviceFacts, DeviceProgram, Version, device_program
from muster.api.cel.programs import CompileError, EvaluationError


def device(
    driver: str, attributes: Mapping[str, Any], capacity: Mapping[str, str], shared: bool = False
) -> DeviceFacts:
    def named(text: str) -> tuple[str, str]:
        domain, slash, name = text.partition("/")
        return (domain, name) if slash else (driver, text)

    amounts = {named(name): quantity.nanos(amount) for name, amount in capacity.items()}
    return DeviceFacts(driver, {named(name): value for name, value in attributes.items()}, amounts, shared)


def _gpu(product: str, architecture: str, compute: str, memory: str, **more: Any) -> DeviceFacts:
    attributes = {
        "type": "gpu",
        "uuid": "GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c",
        "productName": product,
        "brand": "Nvidia",
        "architecture": architecture,
        "cudaComputeCapability": Version(compute),
        "driverVersion": Version("570.86.15"),
        "cudaDriverVersion": Version("12.8.0"),
        "index": 3,
        "resource.kubernetes.io/pcieRoot": "pci0000:17",
        **more,
    }
    return device("gpu.nvidia.com", attributes, {"memory": memory})


DEVICES: Mapping[str, DeviceFacts] = {
    "h100": _gpu("NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi", addressingMode="HMM"),
    "a100": _gpu("NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", "40Gi"),
    "t4": _gpu("Tesla T4", "Turing", "7.5.0", "15Gi"),
    "mig": device(
        "gpu.nvidia.com",
        {
            "type": "mig",
            "profile": "1g.5gb",
            "parentUUID": "GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c",
            "productName": "NVIDIA A100-SXM4-40GB",
            "architecture": "Ampere",
            "cudaComputeCapability": Version("8.0.0"),
            "driverVersion": Version("570.86.15"),
        },
        {"memory": "4864Mi", "multiprocessors": "14", "memorySlice0": "1", "copyEngines": "1"},
    ),
    "flex": device(
        "gpu.intel.com",
        {"model": "Flex 170", "family": "Data Center Flex", "type": "gpu", "healthy": True, "pciId": "0x56c0"},
        {"memory": "16225243136", "millicores": "1k"},
    ),
    "nic": device(
        "dra.net",
        {
            "ifName": "eth1",
            "rdma": True,
            "virtual": False,
            "mtu": 9000,
            "numaNode": 1,
            "pciVendor": "Mellanox Technologies",
            "resource.kubernetes.io/pcieRoot": "pci0000:17",
            "cloud.example.com/fabric": "rail-3",
        },
        {"bandwidth": "400G"},
        shared=True,
    ),
    "cpu": device(
        "dra.cpu",
        {"cpuID": 12, "coreType": "performance", "numaNodeID": 0, "smtEnabled": True, "pcieRoots": ["pci0", "pci1"]},
        {},
    ),
}

SELECTED: tuple[tuple[str, str], ...] = (
    # device classes
    ('device.driver == "gpu.nvidia.com"', "h100 a100 t4 mig"),
    ("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'", "h100 a100 t4"),
    ("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'", "mig"),
    ('device.driver == "gpu.intel.com"', "flex"),
    ("device.driver in ['gpu.nvidia.com', 'gpu.intel.com']", "h100 a100 t4 mig flex"),
    ('device.driver.endsWith("nvidia.com")', "h100 a100 t4 mig"),
    ("true", "h100 a100 t4 mig flex nic cpu"),
    # strings, and what comes of a driver that says nothing of a domain
    ("device.attributes['gpu.nvidia.com'].?productName.orValue('').matches('^NVIDIA.*H100.*$')", "h100"),
    ("device.attributes['gpu.nvidia.com'].?productName.orValue('').lowerAscii().contains('a100')", "a100 mig"),
    ("device.attributes['gpu.nvidia.com'].?profile.orValue('') == '1g.5gb'", "mig"),
    ("'profile' in device.attributes['gpu.nvidia.com']", "mig"),
    ("has(device.attributes['gpu.nvidia.com'].profile)", "mig"),
    ("!has(device.attributes['gpu.nvidia.com'].profile) && device.driver == 'gpu.nvidia.com'", "h100 a100 t4"),
    ('"uuid" in device.attributes["gpu.nvidia.com"]', "h100 a100 t4"),
    ('device.attributes["gpu.nvidia.com"].?architecture.orValue("none") in ["Hopper", "Blackwell"]', "h100"),
    ("device.attributes['gpu.nvidia.com'][?'architecture'].orValue('') == 'Turing'", "t4"),
    ("device.attributes['gpu.intel.com'].?model.orValue('').startsWith('Flex')", "flex"),
    ("device.attributes['gpu.intel.com'].?healthy.orValue(false)", "flex"),
    ("device.attributes['gpu.intel.com'].?pciId == optional.of('0x56c0')", "flex"),
    ("device.attributes[?'gpu.nvidia.com'].hasValue()", "h100 a100 t4 mig flex nic cpu"),
    # numbers
    ("device.attributes['dra.net'].?mtu.orValue(0) >= 9000", "nic"),
    ("device.attributes['dra.net'].?numaNode.orValue(-1) == 1", "nic"),
    ("device.attributes['gpu.nvidia.com'].?index.orValue(-1) in [0, 1, 2, 3]", "h100 a100 t4"),
    ("device.attributes['dra.cpu'].?cpuID.orValue(99) < 16 && device.attributes['dra.cpu'].smtEnabled", "cpu"),
    # versions
    (
        "'cudaComputeCapability' in device.attributes['gpu.nvidia.com'] && "
        "device.attributes['gpu.nvidia.com'].cudaComputeCapability.compareTo(semver('8.0.0')) >= 0",
        "h100 a100 mig",
    ),
    (
        "device.driver == 'gpu.nvidia.com' && "
        "device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('565.0.0'))",
        "h100 a100 t4 mig",
    ),
    (
        "device.driver == 'gpu.nvidia.com' && "
        "device.attributes['gpu.nvidia.com'].cudaComputeCapability.isLessThan(semver('v8', true))",
        "t4",
    ),
    (
        "cel.bind(nv, device.attributes['gpu.nvidia.com'], "
        "'cudaDriverVersion' in nv && nv.cudaDriverVersion.major() >= 12 && nv.productName.contains('H100'))",
        "h100",
    ),
    ("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].driverVersion == semver('570.86.15')",
     "h100 a100 t4 mig"),
    # capacities
    ("device.driver == 'gpu.nvidia.com' && device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
     "h100 a100"),
    ("device.driver == 'gpu.nvidia.com' && device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('40Gi'))",
     "h100"),
    ("'memory' in device.capacity['gpu.intel.com'] && "
     "device.capacity['gpu.intel.com'].memory.compareTo(quantity('8Gi')) > 0", "flex"),
    ("device.capacity['gpu.nvidia.com'].?multiprocessors.orValue(quantity('0')).asInteger() >= 14", "mig"),
    ("device.capacity['gpu.nvidia.com'].?memory.orValue(quantity('0')).isLessThan(quantity('16Gi')) && "
     "device.driver.startsWith('gpu.n')", "t4 mig"),
    ("device.capacity['dra.net'].?bandwidth.orValue(quantity('0')) == quantity('400G')", "nic"),
    ("device.capacity['dra.net'].?bandwidth.orValue(quantity('0')).isGreaterThan(quantity('100G'))", "nic"),
    ("quantity('1Gi').add(quantity('1Gi')).compareTo(quantity('2Gi')) == 0 && device.driver == 'dra.cpu'", "cpu"),
    # attributes of other domains
    ("device.attributes['resource.kubernetes.io'].?pcieRoot.orValue('') == 'pci0000:17'", "h100 a100 t4 nic"),
    ("'pcieRoot' in device.attributes['resource.kubernetes.io'] && device.driver == 'dra.net'", "nic"),
    ("device.attributes['cloud.example.com'].?fabric.orValue('').matches('rail-[0-3]')", "nic"),
    ("device.attributes['dra.net'].?rdma.orValue(false) && !device.attributes['dra.net'].virtual", "nic"),
    ("device.attributes['dra.net'].?ifName.orValue('') == 'eth1' || device.attributes['dra.cpu'].?coreType == "
     "optional.of('performance')", "nic cpu"),
    # lists, sharing, whole maps
    ("device.attributes['dra.cpu'].?pcieRoots.orValue([]).exists(root, root == 'pci1')", "cpu"),
    ("'pcieRoots' in device.attributes['dra.cpu'] && device.attributes['dra.cpu'].pcieRoots.includes('pci0')", "cpu"),
    ("'coreType' in device.attributes['dra.cpu'] && device.attributes['dra.cpu'].coreType.includes('performance')",
     "cpu"),
    ("device.allowMultipleAllocations == true", "nic"),
    ("device.attributes['dra.net'].exists(name, name == 'rdma')", "nic"),
    ("size(device.attributes['gpu.nvidia.com']) > 8", "h100 a100 t4"),
    ("device.attributes.exists(domain, domain == 'cloud.example.com')", "nic"),
    ("device.driver == 'gpu.nvidia.com' ? device.attributes['gpu.nvidia.com'].type == 'mig' : false", "mig"),
)  # fmt: skip


@pytest.mark.parametrize(("expression", "names"), SELECTED)
def test_an_expression_selects_the_devices_that_it_means(expression: str, names: str) -> None:
    program = device_program(expression)
    assert [name for name, facts in DEVICES.items() if program.matches(facts)] == names.split()


def test_there_are_at_least_forty_of_them() -> None:
    assert len(SELECTED) >= 40


@pytest.mark.parametrize(("expression", "_names"), SELECTED)
def test_an_expression_sees_only_what_it_reads(expression: str, _names: str) -> None:
    """Whatever it does not read may be left out of the device, or be anything else."""
    program = device_program(expression)
    if program.reads is None:
        return
    for facts in DEVICES.values():
        attributes = {key: value for key, value in facts.attributes.items() if key[1] in program.reads}
        capacity = {key: value for key, value in facts.capacity.items() if key[1] in program.reads}
        bare = facts._replace(attributes=attributes, capacity=capacity)
        assert program.matches(bare) == program.matches(facts)


def test_maps_that_are_used_as_a_whole_may_be_read_whole() -> None:
    whole = [text for text, _ in SELECTED if device_program(text).reads is None]
    assert whole == [
        "device.attributes[?'gpu.nvidia.com'].hasValue()",
        "device.attributes['dra.net'].exists(name, name == 'rdma')",
        "size(device.attributes['gpu.nvidia.com']) > 8",
        "device.attributes.exists(domain, domain == 'cloud.example.com')",
    ]
    for sly in (
        "device == device",
        "[device].exists(d, d.attributes['x'].y == 1)",
        "cel.bind(d, device, d.attributes['x'].y == 1)",
        "cel.bind(m, device.attributes['x'], m.all(k, k != 'y'))",
        "cel.bind(m, device.attributes['x'], m['a' + 'b'] == 1)",
        "device.attributes['x']['a' + 'b'] == 1",
        "device.attributes['x' + 'y'].z == 1",
        "device.attributes['x'] == {'y': 1}",
    ):
        assert device_program(sly).reads is None, sly


def test_an_attribute_that_is_not_there_is_an_error_and_not_false() -> None:
    with pytest.raises(EvaluationError, match="no such key: profile"):
        device_program("device.attributes['gpu.nvidia.com'].profile == '1g.5gb'").matches(DEVICES["h100"])


def test_a_value_that_is_neither_true_nor_false_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="not true or false"):
        device_program("device.attributes['gpu.nvidia.com'].type").matches(DEVICES["h100"])


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("device.driver ==", "1:17"),
        ("devices.driver == 'x'", "undeclared reference to 'devices"),
        ("device.driver", None),
        ("'a'", "must evaluate to bool, not string"),
        ("1 + 1", "must evaluate to bool, not int"),
        ("device.driver.frobnicate()", "frobnicate"),
        ("true || " * 2_000 + "true", "at most 10240 characters"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_place_and_the_reason(expression: str, said: str | None) -> None:
    if said is None:
        assert isinstance(device_program(expression), DeviceProgram)  # dyn: only a device can tell
        return
    with pytest.raises(CompileError) as failure:
        device_program(expression)
    assert said in str(failure.value)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", True),
        ("semver('1.0.0-alpha.2').compareTo(semver('1.0.0-alpha.10')) == -1", True),
        ("semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))", True),
        ("semver('1.0.0-1').isLessThan(semver('1.0.0-a'))", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.9'))", True),
        ("semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3", True),
        ("semver('1.2.3+b').compareTo(semver('1.2.3')) == 0", True),
        ("isSemver('1.2')", False),
        ("isSemver('v01.2', true)", True),
        ("isSemver('1.2.3-01')", False),
        ("semver('v01.2', true) == semver('1.2.0')", True),
    ],
)
def test_versions_compare_as_semver_says(expression: str, holds: bool) -> None:
    assert device_program(expression).matches(DEVICES["cpu"]) is holds

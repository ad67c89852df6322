"""Short lives of preemptors: whatever happens, each eviction ends in a binding or in a recorded reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from muster.api import writes
from muster.api.calls import Response
from muster.api.instant import SECOND
from muster.model.accounts import Account, Ending
from muster.model.records import EntryKind
from muster.sim.cluster import cluster
from muster.sim.crashes import GATES, SPACE, Ledger
from muster.sim.faults import CALM, Rates
from muster.sim.world import HOLLOW, SCHEDULER, World
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest

Json = Mapping[str, Any]
HEALING = 75 * SECOND
ROUGH = Rates(
    late=0.3, latest=3 * SECOND, conflict=0.03, refused_bind=0.05, unanswered=0.03, lost_watch=0.01, killed=0.002
)
AS_MEANT = frozenset({Ending.BOUND, Ending.GONE, Ending.CHANGED, Ending.NODE_LOST, Ending.ROOM_TAKEN})


@dataclass(slots=True)
class Evictions:
    """One life. `live` returns what is wrong, after a story of what happened."""

    seed: int
    random: Random = field(init=False)
    world: World = field(init=False)
    ledger: Ledger = field(init=False)
    history: list[str] = field(default_factory=list)
    accounts: dict[tuple[object, ...], Account] = field(default_factory=dict)
    """Of all schedulers that there were, as last seen."""
    endings: Counter[str] = field(default_factory=Counter)
    _made: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.world = cluster(GATES, seed=self.seed, priority_admission=False, volumes=False, apps=False, only=(HOLLOW,))
        self.ledger = Ledger(self.world.server)
        self.world.server = self.ledger  # type: ignore[assignment]
        self.world.overhear = self._overhear

    def live(self) -> list[str]:
        pick = self.random
        for number in range(pick.randint(2, 3)):
            self._create(node_manifest(f"n{number}", gpus=pick.choice((2, 3))))
        for number in range(6):
            self._create(pod_manifest(f"low{number}", gpus=1, priority=0))
        self.world.quiesce()
        self.world.faults.rates = pick.choice((CALM, ROUGH))
        for _ in range(pick.randint(3, 7)):
            self._something()
            for _ in range(pick.choice((0, 2, 8, 30))):
                self.world.step(3 * SECOND)
        self.world.hold_terminations(False)
        self.world.faults.rates = CALM
        self.world.advance(HEALING)
        self.world.quiesce()
        self.world.step(0)
        wrong = self._wrong()
        return [*self.history, *wrong] if wrong else []

    # -- what happens

    def _something(self) -> None:
        actions = (self._preemptor, self._rival, self._leave, self._change_node, self._raise, self._hold)
        self.random.choices(actions, (6, 3, 3, 2, 1, 1))[0]()

    def _preemptor(self) -> None:
        name, priority = self._name("p"), self.random.choice((5, 10))
        if self.random.random() < 0.5:
            self._create(pod_manifest(name, gpus=self.random.choice((1, 2)), priority=priority))
            return
        size = self.random.randint(2, 3)
        self._create(gang_manifest(name, size, priority=priority))
        for rank in range(size):
            self._create(pod_manifest(f"{name}-{rank}", group=name, gpus=1, priority=priority))

    def _rival(self) -> None:
        """More important, and does not evict by itself: it takes what others have freed."""
        name = self._name("rival")
        self._create(pod_manifest(name, gpus=1, priority=100, preemptionPolicy="Never"))

    def _leave(self) -> None:
        """A preemptor is deleted, or one pod of it."""
        pods = [it for it in self._pods() if it["metadata"]["name"].startswith("p")]
        if pods:
            name = self.random.choice(pods)["metadata"]["name"]
            self._do(writes.delete("pods", SPACE, name))

    def _change_node(self) -> None:
        names = [it["metadata"]["name"] for it in self._items("nodes")]
        if names:
            name = self.random.choice(names)
            change = writes.patch("nodes", "", name, {"spec": {"unschedulable": self.random.choice((True, None))}})
            self._do(writes.delete("nodes", "", name) if self.random.random() < 0.4 else change)

    def _raise(self) -> None:
        groups = self._items("podgroups")
        if groups:
            name = self.random.choice(groups)["metadata"]["name"]
            body = {"spec": {"schedulingPolicy": {"gang": {"minCount": self.random.choice((1, 4))}}}}
            self._do(writes.patch("podgroups", SPACE, name, body))

    def _hold(self) -> None:
        """Evicted pods take their time."""
        self.history.append("terminations take long")
        self.world.hold_terminations(True)

    # -- what must hold

    def _overhear(self, name: str, event: object, effects: Sequence[Any]) -> None:
        if name == SCHEDULER:
            kept = self.world.machine().accounts
            for account in (*kept.open, *list(kept.closed)[-3:]):
                self.accounts[account.preemptor, account.at, account.victims] = account

    def _wrong(self) -> list[str]:
        wrong = [f"{name} was evicted although it was being deleted" for name in self.ledger.twice]
        of = {victim.uid: account for account in self.accounts.values() for victim in account.victims}
        wrong += [f"{uid} was evicted for nobody" for uid in self.ledger.evicted if uid not in of]
        for account in self.accounts.values():
            if not any(victim.uid in self.ledger.evicted for victim in account.victims):
                continue
            ending = self._ending(account)
            self.endings[ending.name if ending else "lost"] += 1
            if ending in (None, Ending.ELSEWHERE) and "killed" in self.world.faults.counts:
                continue  # Who started since knows of nominations at most, not of victims and what the nodes were like.
            if ending is Ending.ELSEWHERE and sum("/nodes/" in line for line in self.history) > 1:
                continue  # A node that was closed and opened again is as it was by the time that somebody asks.
            if ending not in AS_MEANT:
                wrong.append(f"for {account.preemptor.key} {[v.pod.name for v in account.victims]} left: {ending}")
            elif ending is Ending.BOUND and not self._is_bound(account):
                wrong.append(f"{account.preemptor.key} is said to have been bound and was not")
        return wrong

    def _ending(self, account: Account) -> Ending | None:
        """Of a scheduler that died, by what its successor found, or by what is plain to see."""
        if account.ending is not None:
            return account.ending
        later = [it for it in self.accounts.values() if it.preemptor == account.preemptor and it.at > account.at]
        for it in sorted(later, key=lambda it: it.at):
            if it.ending is not None:
                return it.ending
        if self._is_bound(account):
            return Ending.BOUND
        return None if self._waits(account) else Ending.GONE

    def _waits(self, account: Account) -> bool:
        """Whether the preemptor is there and could still be placed."""
        return any(_is_of(account, pod) and not pod["spec"].get("nodeName") for pod in self._pods())

    def _is_bound(self, account: Account) -> bool:
        """Whether any pod of the preemptor was ever bound."""
        return any(_is_named(account, name) for name in self.ledger.names)

    def _pods(self) -> Sequence[Json]:
        return self._items("pods")

    def _items(self, resource: str) -> Sequence[Json]:
        answer = self.world.call(writes.list_all(resource))
        assert isinstance(answer, Response)
        items: Sequence[Json] = answer.body["items"]
        return items

    def _name(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}{self._made}"

    def _create(self, manifest: Json) -> None:
        self._do(writes.create(manifest), manifest["metadata"]["name"])

    def _do(self, request: Any, name: str = "") -> None:
        answer = self.world.call(request)
        self.history.append(f"{request.method} {request.path} {name} -> {answer.status}")


def _is_of(account: Account, pod: Json) -> bool:
    return _is_named(account, pod["metadata"]["name"])


def _is_named(account: Account, pod: str) -> bool:
    """Pods of a group are called after it here."""
    name = account.preemptor.key.name
    return pod == name if account.preemptor.kind is EntryKind.POD else pod.startswith(f"{name}-")

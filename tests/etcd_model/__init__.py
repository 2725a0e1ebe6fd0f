"""The model of etcd, compared with a real etcd of three members.

Random scripts of calls are played on real stores, and what was called and answered is kept as a
history (`history.py`). A judge then follows all that could have happened by the model (`worlds.py`)
and says at which answer nothing is left. The rules:

* The transactions are those of `KeySpace`, which the simulation uses. The judge adds only what is
  open in the real world: in which order calls took effect that were under way together, and what
  became of a call without an answer.
* A call takes effect between its beginning and its answer, all at once. One that ended with an
  unknown outcome may take effect later, or never. So may each further attempt of a call that is
  sent again: an append that is not answered in 0.1 s, and a deletion or a compaction that met a
  member which cannot be reached.
* An unknown outcome is allowed only to a call that was under way while the cluster was in trouble:
  a member was killed, paused or restored. So is the end of a tail.
* A tail shows each batch once, in order, without a gap. It may be told that its place is compacted
  while it has not caught up with the compaction.
* When etcd notices that it is full is open as soon as a script fills it: the write that crosses the
  quota is refused, carried out or not. From then on puts are refused until the alarm is disarmed.
* Revisions are those of etcd. A script begins by compacting all that was before it.

The other way round, a model that allows everything must fail. So for each answer it is counted how
many answers the judge allowed, and which kinds of answers it ever allowed in which scene; the share
of them that etcd gave has a floor (`share.py`). `status` is not compared: it tells how one member
is, and members differ.

The simulation's own `EtcdModel` is played and judged in the same way, in virtual time.

`make etcd-model SCRIPTS=5000` plays the whole; `tests/integration/test_etcd_model.py` plays a few
scripts of each scene, and shows that faults in the model are found (`planted.py`).
"""

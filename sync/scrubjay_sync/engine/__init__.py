"""One device's side of replication: rounds that seal, push, pull, repair and pack until both sides are equal.

Theory of operation. Everything that must survive a crash is in the store, and changes in the same transaction as what
it describes: a segment is sealed in the transaction that counts its ops as sealed, a page is applied in the one that
moves the cursor. So a round may end anywhere (an error, a cancellation, kill -9), and the next begins with a comparison
of both sides: the server's heads against our lanes. The result decides what is done:

* the server lacks what we sealed: push. If it has confirmed it before, or another device wrote it: repair, verbatim;
* the server has more of another device's lane: pull by cursor; read by lane where the cursor cannot be trusted (a
  restored server) or an object was refused; read backwards from the newest end on a new device (bootstrap);
* the server has objects of this device that we never wrote: a copy of this store is at work, or this store is a backup.
  What was never confirmed goes on under a new device id, with the same op ids (forks); what the other copy wrote is
  read like any other device's;
* both have the same places with different links: the server shows another history. Nothing of it is applied.

An object is applied only after format, place, certificate, signature, chain, commitment, tag and padding have been
checked, in that order. An object that fails holds up its lane, not the round: it becomes an alarm, and the lane is read
again in the next round. Own lanes are never read: their objects are compared by their links.
"""

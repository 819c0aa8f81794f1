"""One device's side of replication: rounds that seal, push, pull, heal and pack until device and server hold the same.

Theory of operation. Everything that must survive a crash is in the store and changes together with what it speaks of: a
segment is sealed in the transaction that counts its ops as sealed, a page is applied in the one that moves the cursor.
So a round may end anywhere (an error, a cancellation, kill -9), and the next begins with a look at both sides: the
server's heads against our lanes. What it finds decides what is done:

* the server lacks what we sealed: push. What it has confirmed before, or what another device wrote: heal, verbatim;
* the server has more of another's lane: pull by cursor; by lane, where the cursor cannot be trusted (a restored server)
  or an object was refused; and backwards from the newest end, on a new device;
* the server has what we never wrote as this device: a copy of this store is at work, or this store is a backup. What
  was never confirmed goes on under a new device id, with the same op ids; what the other wrote is read like anyone's;
* both have the same places with different links: somebody shows us another history. Nothing of it is taken in.

An object is applied only after format, place, certificate, signature, chain, commitment, tag and padding have been
checked, in that order. One that fails holds up its lane, not the round: it becomes an alarm, and the lane is read
again in the next round. Own lanes are never read: what stands in them is compared by its link.
"""

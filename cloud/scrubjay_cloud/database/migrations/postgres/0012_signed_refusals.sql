-- Signed refusals of devices, one for each target and author: none is renewed, and all go with the entry that revokes either.
create table refusal (
  account bytea not null,
  target bytea not null, -- the device that is refused
  author bytea not null, -- the device that signed it
  nonce bytea not null, -- the challenge that was signed
  until bigint not null, -- by the server's clock; the row stays after it
  signature bytea not null,
  primary key (account, target, author)
);
-- What was refused without a signature is let in again.
update device set refused_until = 0;
-- Networks from which an account's own devices and right passwords came, as keyed hashes.
create table known_network (
  account bytea not null,
  network bytea not null,
  seen bigint not null,
  primary key (account, network)
);
create index known_network_seen on known_network (seen);

-- As `callers_of`, and until when another device refuses the one that calls. Both stay for instances of the version before.
create function callers_with(hashes bytea[]) returns table (
  hash bytea, account bytea, device bytea, expires bigint, limited bigint, revoked_at bigint, refused_until bigint,
  status bigint, log_head bytea, gseq bigint, bytes bigint, objects bigint, quota bigint, generation text
) language plpgsql stable as $$
begin
  return query select t.hash, t.account, t.device, t.expires, d.limited, d.revoked_at, d.refused_until, a.status,
      a.log_head, a.gseq, a.bytes, a.objects, a.quota, (select v from meta where k = 'generation')
    from unnest(hashes) as h (hash) join token t on t.hash = h.hash join account a on a.id = t.account
      left join device d on d.account = t.account and d.id = t.device;
end
$$;

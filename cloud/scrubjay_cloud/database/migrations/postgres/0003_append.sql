-- Appends of many accounts in one call: what each of them costs is its own statements, planned once a connection, and no
-- way there and back. An append that meets anything out of the ordinary stores nothing and does not disturb the others.
-- The caller gives the accounts in ascending order, so that no two calls wait for each other.
create function append_objects(
  at bigint, default_quota bigint, quota_objects bigint,
  accounts bytea[], heads bytea[], sizes bigint[], run_last bigint[], object_last bigint[],
  run_scope bytea[], run_device bytea[], run_n bigint[], run_prev bytea[], run_end bigint[], run_tip bytea[],
  object_run bigint[], kinds bigint[], n_from bigint[], n_to bigint[], links bytea[], tips bytea[], bodies bytea[]
) returns bigint[] language plpgsql as $$
declare
  stored bigint[] := '{}'; -- of each append the account's last number after it; 0 where nothing was stored
  run_first bigint := 1;
  object_first bigint := 1;
  number bigint;
  used bigint;
  held bigint;
  most bigint;
  lane_n bigint;
  lane_tip bytea;
  fits boolean;
begin
  for p in 1 .. cardinality(accounts) loop
    select gseq, bytes, objects, coalesce(quota, default_quota) into number, used, held, most
      from account where id = accounts[p] and log_head = heads[p] and status = 0 for update;
    fits := found;
    if fits then
      fits := used + sizes[p] <= most and held + object_last[p] - object_first + 1 <= quota_objects;
      for r in run_first .. run_last[p] loop
        select n, tip into lane_n, lane_tip
          from lane where account = accounts[p] and scope = run_scope[r] and device = run_device[r];
        if found then
          fits := fits and lane_n = run_n[r] and lane_tip = run_prev[r];
        else
          fits := fits and run_n[r] = 0;
        end if;
      end loop;
    end if;
    if fits then
      for o in object_first .. object_last[p] loop
        number := number + 1;
        insert into object (account, gseq, scope, device, kind, n_from, n_to, hash, tip, size, received, body)
          values (accounts[p], number, run_scope[object_run[o]], run_device[object_run[o]], kinds[o], n_from[o],
                  n_to[o], links[o], tips[o], length(bodies[o]), at, bodies[o]);
      end loop;
      for r in run_first .. run_last[p] loop
        insert into lane as l (account, scope, device, n, tip)
          values (accounts[p], run_scope[r], run_device[r], run_end[r], run_tip[r])
          on conflict (account, scope, device) do update set n = excluded.n, tip = excluded.tip;
      end loop;
      update account set gseq = number, bytes = used + sizes[p], objects = held + object_last[p] - object_first + 1
        where id = accounts[p];
      stored := stored || number;
    else
      stored := stored || 0::bigint;
    end if;
    run_first := run_last[p] + 1;
    object_first := object_last[p] + 1;
  end loop;
  return stored;
end
$$;

-- Who calls, by the hash of a token: asked with every request, so planned once a connection instead of each time.
create function caller_of(token_hash bytea) returns table (
  account bytea, device bytea, expires bigint, limited bigint, revoked_at bigint, status bigint, log_head bytea,
  gseq bigint, bytes bigint, objects bigint, quota bigint, generation text
) language plpgsql stable as $$
begin
  return query select t.account, t.device, t.expires, d.limited, d.revoked_at, a.status, a.log_head, a.gseq, a.bytes,
      a.objects, a.quota, (select v from meta where k = 'generation')
    from token t join account a on a.id = t.account left join device d on d.account = t.account and d.id = t.device
    where t.hash = token_hash;
end
$$;

-- Who calls, of all tokens that wait at the same time in one call: one by one, that was a third of what a push costs here.
-- With `= any(hashes)` in place of the join, PostgreSQL would make a plan anew in every call.
-- `caller_of` stays for instances of the version before, which may run beside this one while it is taken in.
create function callers_of(hashes bytea[]) returns table (
  hash bytea, account bytea, device bytea, expires bigint, limited bigint, revoked_at bigint, status bigint,
  log_head bytea, gseq bigint, bytes bigint, objects bigint, quota bigint, generation text
) language plpgsql stable as $$
begin
  return query select t.hash, t.account, t.device, t.expires, d.limited, d.revoked_at, a.status, a.log_head, a.gseq,
      a.bytes, a.objects, a.quota, (select v from meta where k = 'generation')
    from unnest(hashes) as h (hash) join token t on t.hash = h.hash join account a on a.id = t.account
      left join device d on d.account = t.account and d.id = t.device;
end
$$;

-- As before, with three statements a push in place of five: an update looks, takes the row and changes it. What does not
-- fit after all is put back as it was: nobody else has seen it.
create or replace function append_objects(
  at bigint, default_quota bigint, quota_objects bigint,
  accounts bytea[], heads bytea[], sizes bigint[], run_last bigint[], object_last bigint[],
  run_scope bytea[], run_device bytea[], run_n bigint[], run_prev bytea[], run_end bigint[], run_tip bytea[],
  object_run bigint[], kinds bigint[], n_from bigint[], n_to bigint[], links bytea[], tips bytea[], bodies bytea[]
) returns bigint[] language plpgsql as $$
declare
  stored bigint[] := '{}'; -- of each append the account's last number after it; 0 where nothing was stored
  run_first bigint := 1;
  object_first bigint := 1;
  count bigint;
  number bigint;
  moved bigint; -- the last run whose lane was moved on
begin
  for p in 1 .. cardinality(accounts) loop
    count := object_last[p] - object_first + 1;
    update account a set gseq = a.gseq + count, bytes = a.bytes + sizes[p], objects = a.objects + count
      where a.id = accounts[p] and a.log_head = heads[p] and a.status = 0
        and a.bytes + sizes[p] <= coalesce(a.quota, default_quota) and a.objects + count <= quota_objects
      returning a.gseq into number;
    if found then
      moved := run_first - 1;
      for r in run_first .. run_last[p] loop
        if run_n[r] > 0 then
          update lane l set n = run_end[r], tip = run_tip[r]
            where l.account = accounts[p] and l.scope = run_scope[r] and l.device = run_device[r]
              and l.n = run_n[r] and l.tip = run_prev[r];
        else
          insert into lane (account, scope, device, n, tip)
            values (accounts[p], run_scope[r], run_device[r], run_end[r], run_tip[r]) on conflict do nothing;
        end if;
        exit when not found;
        moved := r;
      end loop;
      if moved < run_last[p] then
        for r in run_first .. moved loop
          if run_n[r] > 0 then
            update lane l set n = run_n[r], tip = run_prev[r]
              where l.account = accounts[p] and l.scope = run_scope[r] and l.device = run_device[r];
          else
            delete from lane l
              where l.account = accounts[p] and l.scope = run_scope[r] and l.device = run_device[r];
          end if;
        end loop;
        update account a set gseq = a.gseq - count, bytes = a.bytes - sizes[p], objects = a.objects - count
          where a.id = accounts[p];
        number := 0;
      else
        number := number - count;
        for o in object_first .. object_last[p] loop
          number := number + 1;
          insert into object (account, gseq, scope, device, kind, n_from, n_to, hash, tip, size, received, body)
            values (accounts[p], number, run_scope[object_run[o]], run_device[object_run[o]], kinds[o], n_from[o],
                    n_to[o], links[o], tips[o], length(bodies[o]), at, bodies[o]);
        end loop;
      end if;
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

#!/usr/bin/env bash
# build_pgbouncer.sh FOLDER: pgbouncer in FOLDER, of Debian's source package, for the tests that put it before PostgreSQL.
# Debian 12's own package (1.18) knows no prepared statements in transaction mode; they came with 1.21. Nothing is
# installed: packages are unpacked in FOLDER, and apt keeps its lists there. Needs apt-get, a C compiler and make.
set -euo pipefail
release=trixie version=1.24.1
sha256=da72a3aba13072876d055a3e58dd4aba4a5de4ed6148e73033185245598fd3e0
mkdir -p "$1"
folder=$(cd "$1" && pwd)
work=$(mktemp -d "$folder/build-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p lists/partial cache/archives/partial

# The same mirror that this machine's packages come from, and its own release for the library.
lists=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2> /dev/null || true)
mirror=$(sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]+).*/\3/p' <<< "$lists" | grep -E '/debian/?$' | head -n 1 || true)
[ -n "$mirror" ] || { echo "apt has no sources of Debian" >&2; exit 1; }
here=$(. /etc/os-release && echo "$VERSION_CODENAME")
printf 'deb-src %s %s main\ndeb %s %s main\n' "$mirror" "$release" "$mirror" "$here" > sources.list
cat > apt.conf <<CONF
Dir::State::Lists "$work/lists";
Dir::Cache "$work/cache";
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "-";
Acquire::Retries "3";
APT::Sandbox::User "";
CONF
APT_CONFIG=$work/apt.conf apt-get update -qq
APT_CONFIG=$work/apt.conf apt-get source -qq --download-only "pgbouncer/$release"
echo "$sha256  pgbouncer_$version.orig.tar.gz" | sha256sum --check --quiet
tar -xf "pgbouncer_$version.orig.tar.gz"
APT_CONFIG=$work/apt.conf apt-get download -qq libevent-dev
dpkg-deb --extract libevent-dev_*.deb libevent

include=$work/libevent/usr/include
library=$(find "$work/libevent" -name libevent.a)
cd "pgbouncer-$version"
./configure --quiet --without-openssl --without-cares --disable-debug \
  LIBEVENT_CFLAGS="-I$include -I$(echo "$include"/*-linux-gnu)" LIBEVENT_LIBS="$library" > "$work/configure.log"
make --quiet pgbouncer > "$work/make.log" 2>&1 || { tail -n 20 "$work/make.log" >&2; exit 1; }
strip pgbouncer
mv pgbouncer "$folder/pgbouncer"
"$folder/pgbouncer" --version | head -n 1

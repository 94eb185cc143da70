#!/bin/sh
# Creates the credentials of a closed farm: an authority, the tracker's certificate, tokens. Existing files are kept, except
# for the tracker's certificate, which is renewed. Only this script needs the authority's folder. Each other folder serves
# one kind of reader and contains only what it needs.
# The certificate is for the names in TILTH_HOSTS, separated by commas.
# usage: setup.sh AUTHORITY TRACKER AGENTS METRICS CLIENTS
set -eu
authority=$1 tracker=$2 agents=$3 metrics=$4 clients=$5
umask 077

tilth tracker certs --dir "$authority" --host "${TILTH_HOSTS:-tracker,127.0.0.1}"
# The key first, because a tracker that reads in between keeps its current pair.
cp "$authority/tracker.key" "$authority/tracker.crt" "$tracker/"

# token NAME ROLE FILE creates a token unless its file exists.
token() {
	[ -s "$3" ] || tilth tracker token create "$1" --role "$2" --tokens "$tracker/tokens.json" -o "$3"
}
token agents agent "$agents/agent.token"
token metrics read-only "$metrics/metrics.token"
token client client "$clients/client.token"
token admin admin "$clients/admin.token"
[ -s "$metrics/grafana.password" ] || od -An -N18 -tx1 /dev/urandom | tr -d ' \n' >"$metrics/grafana.password"

for folder in "$tracker" "$agents" "$metrics" "$clients"; do
	cp "$authority/ca.crt" "$folder/ca.crt"
	chmod 0644 "$folder/ca.crt"
done

# Readers: this program's images, Prometheus (user nobody), Grafana (472).
if [ "$(id -u)" -eq 0 ]; then
	chown -R 65532:65532 "$tracker" "$agents" "$clients"
	chown 65534:65534 "$metrics" "$metrics/metrics.token" "$metrics/ca.crt"
	chown 472:0 "$metrics/grafana.password"
	chmod 0711 "$metrics"
fi

#!/bin/sh
# A backup of a node that runs, kept in a vault, and proven: run it from a timer each night.
#
#   SEALANE_VAULT=s3://bucket/sealane SEALANE_PASSPHRASE=... examples/backup_node.sh
#
# SEALANE_DATA is the node's data folder, as `sealane up` has it. The vault is made at the first
# run; keep the recovery code that this prints.
set -eu
: "${SEALANE_VAULT:?set SEALANE_VAULT to a folder or to s3://BUCKET/PREFIX}"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# A copy of one moment, while the node goes on. Its name is always the same, so that snapshots of
# it are one group for `prune`.
sealane backup "$copy/node"

if ! sealane vault status > "$copy/status" 2>&1; then
  sealane vault init
fi
sealane vault put "$copy/node" --note "streams and tokens"
sealane vault prune --keep-daily 7 --keep-weekly 4 --keep-monthly 12 --group-by host --yes

# What was never restored is no backup: the drill restores it from the objects alone, compares all
# of it, and signs a report.
sealane vault drill

# To bring it back:
#   sealane vault get --to back
#   sealane restore back/node --data NEW_DATA_FOLDER

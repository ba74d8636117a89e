#!/bin/sh
# A backup of a node that runs, kept in a vault, and proven: run it from a timer each night.
#
#   SEALANE_VAULT=s3://bucket/sealane SEALANE_PASSPHRASE=... examples/backup_node.sh
#
# SEALANE_DATA is the node's data folder, as `sealane up` has it. Make the vault once, by hand, and
# keep the recovery code on paper: a timer writes what it prints into a journal that others read.
#
#   sealane vault init
set -eu
: "${SEALANE_VAULT:?set SEALANE_VAULT to a folder or to s3://BUCKET/PREFIX}"

# A place that is empty has no vault, or the disk is not mounted. No backup goes there.
sealane vault status > /dev/null

# A copy of one moment, while the node goes on. Its place is always the same: `prune` counts by
# signer, host and path, so that no other backup in the vault goes.
place="${SEALANE_COPY:-${XDG_STATE_HOME:-$HOME/.local/state}/sealane/backup}"
umask 077
mkdir -p "$place"
trap 'rm -rf "$place/node"' EXIT
rm -rf "$place/node"
sealane backup "$place/node"

sealane vault put "$place/node" --note "streams and tokens"
sealane vault prune --keep-daily 7 --keep-weekly 4 --keep-monthly 12 --yes

# What was never restored is no backup: the drill restores it from the objects alone, compares all
# of it, and signs a report.
sealane vault drill

# To bring it back:
#   sealane vault get --to back
#   sealane restore back/node --data NEW_DATA_FOLDER

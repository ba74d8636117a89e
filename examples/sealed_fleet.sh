#!/bin/sh
# A fleet of three: a base, a car and a truck that write to each other through a hub that cannot
# read them. Each has its own key folder; here they are three folders of one machine.
#
#   sealane up &
#   examples/sealed_fleet.sh ./fleet
#
# `key new --passphrase` would protect the keys; it asks for the passphrase on a terminal, or takes
# SEALANE_PASSPHRASE.
set -eu
fleet=${1:?usage: sealed_fleet.sh FOLDER}
hub=${SEALANE_SERVER:-127.0.0.1:9087}
mkdir -p "$fleet"

as() { # Runs sealane as one of them: as WHO VERB ...
  keys=$fleet/$1
  shift
  sealane "$@" --keys "$keys"
}

# The base founds the group and invites the others. A card goes to the base, an invitation comes
# back; neither is secret, but each has to come from whom it says: compare the fingerprints.
as base key new base
as base group new ops
for who in car truck; do
  as "$who" key new "$who"
  as "$who" key card > "$fleet/$who.card"
  as base group invite ops "$fleet/$who.card" --server "$hub" > "$fleet/$who.invite"
  as "$who" group join "$fleet/$who.invite"
done

# The car reports, the base answers, and the truck reads both.
as car pub ops/positions '{"car": "at the bridge"}' --group ops --type location
as base pub ops/positions '{"base": "wait there"}' --group ops
as truck sub ops/positions --group ops --from first --until-end --raw

# All that the hub can see of it.
sealane stream leaks ops/positions

# The car is sold. What is written from now on it cannot read.
as base group revoke ops car --server "$hub"
as base pub ops/positions '{"base": "the car is sold"}' --group ops
as truck sub ops/positions --group ops --last 1 -n 1 --raw

# Lines that users of NATS, Centrifugo, restic and ripgrep type by habit, and that no guide has.
sealane up
sealane pub orders/new '{"n": 0}'
sealane config show --origin
printf 'codec = "cbor"\n' > sealane.toml && SEALANE_CONFIG=./sealane.toml sealane config show --origin
sealane token new dashboard --read 'fleet/**' --data guarded
curl -fsS http://127.0.0.1:9087/v1/openapi.json
sealane reply 'lamps/*' done --consumer lamp -n 1 & sealane request lamps/3 on --timeout 60s
sealane stream set orders/new --max-age 7d --max-count 1000 --max-bytes 64MiB
sealane sub 'orders/**' --from first --until-end
sealane pub orders/paid '{"n": 1}' --idempotency-key 7 --expect 0
sealane sub orders/new --last 1 --until-end --raw > last.jsonl
sealane completions bash && sealane man
sealane backup copy && sealane restore copy --data again
sealane key new me --passphrase --keys mine && sealane key passphrase --new new --keys mine
sealane key new base && sealane group new ops && sealane group rotate ops --server 127.0.0.1:9087
sealane vault init && sealane vault put docs && sealane vault put docs --tag move
sealane vault ls 1 > one && sealane vault ls 2 > two && diff one two
sealane vault find '*.txt' && sealane vault prune --keep-daily 7 --keep-yearly 2 --dry-run
sealane pub a//b x; test $? -eq 2
sealane doctor && sealane top --count 1 && curl -fsS http://127.0.0.1:9087/health

# What every row finds: a stream, keys, a group, a vault, a certificate, and a file of junk.
set -e
exec > /dev/null 2> desk.log
sealane pub greetings hello
echo right > right
echo wrong > wrong
head -c 3000 /dev/zero | tr '\0' x > junk
echo "sever = 'x'" > wrong.toml
mkdir empty folder
echo letter > folder/letter.txt
sealane key new alice
sealane group new fleet
sealane key new bob --keys locked --passphrase-file right
sealane key card --keys locked --passphrase-file right > bob.card
sealane group invite fleet bob.card > bob.invitation
sealane vault init --vault vault --passphrase-file right
sealane vault put folder --vault vault --passphrase-file right
sealane cert self-signed localhost --to tls
sealane backup copy
mkdir broken alien
cat > mesh.toml << 'END'
version = 1
[[link]]
name = "wire"
udp = "127.0.0.1:0"
[mesh]
interface = "lo"
addresses = ["10.99.0.1/32"]
END
cp junk alien/streams.db
cp junk broken/tokens.toml
chmod 600 broken/tokens.toml

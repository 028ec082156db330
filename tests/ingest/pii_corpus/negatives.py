"""Hand-written texts that look like personal data or secrets and are not. One a line; the heading is their kind."""

from __future__ import annotations

NEGATIVES = r"""
# isbn
ISBN 978-3-16-148410-0 is on the desk
ISBN-13: 9780306406157
the paperback, ISBN 0-306-40615-2, is cheaper
ISBN 978 0 262 03384 8 (third edition)
isbn=9781491950357&page=2
ISSN 2049-3630 is the journal
EAN 4006381333931 on the box
UPC 036000291452
GTIN 00012345600012
barcode 4012345678901 scanned twice
# version
Python 3.11.4 on Linux 6.1.0-13-amd64
upgraded Chrome/120.0.6099.109 to 121
version 1.2.3.4 is out
v10.0.19.2 fixed it
release 2.0.0.1-rc.3
firmware 4.1.7.33 for the router
"numpy": "1.26.4", "scipy": "1.11.3"
lodash@4.17.21 and react@18.2.0
pip install requests==2.31.0 urllib3==2.0.7
Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/119.0.0.0 Safari/537.36
file version 6.3.9600.17415
macOS 14.2.1 (23C71)
openssl 3.0.2-0ubuntu1.12
JDK 17.0.9+9-LTS
assembly version 4.0.30319.42000
build 22.1.0.4 passed
# timestamp
2025-11-15T08:39:29Z
at 2025-11-15 08:39:29.123456+01:00 the job began
1731659969
ts=1731659969123 level=info
epoch 1700000000000000000 ns
15.11.2025 08:39
11/15/2025 8:39:29 AM
UTC+02:00 in summer
20251115T083929
duration 00:12:34.567
12:34:56:789 frame
Sat Nov 15 08:39:29 2025 +0100
from 2019-2023, pages 120-134
1999-12-31 23:59:60 leap second
week 2025-W46-6
between 08:00-12:30 and 13:15-17:45
2025.11.15.01 nightly
# hash
commit 9fceb02d0ae598e95dc970b74767f19372d61af8
md5 d41d8cd98f00b204e9800998ecf8427e
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
etag "686897696a7c876b7e"
git checkout 4b9663b
image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
crc32 0x1c291ca3
integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==
fingerprint SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8
MD5 fingerprint 16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48
QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWRSuoA
0xdeadbeefcafebabe
# uuid
550e8400-e29b-41d4-a716-446655440000
id=6ba7b810-9dad-11d1-80b4-00c04fd430c8
urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6
request 12345678-1234-1234-1234-123456789012 failed
{3F2504E0-4F89-41D3-9A0C-0305E82C3301}
01890a5d-ac96-774b-bcce-b302099a8057
ULID 01ARZ3NDEKTSV4RRFFQ69G5FAV
object 507f1f77bcf86cd799439011
# order
Order 112-7654321-1234567 has shipped
order #4111-2222-3333 is late
invoice 2025-000123-45
Bestellnummer 302-1234567-7654321
tracking 1Z999AA10123456784
tracking number 9400 1000 0000 0000 0000 00
ticket 415-555-2671 was closed
case no. 219-09-9999 is open
order 4539578763621486 was cancelled
part number 212-555-0199
SKU 123-45-6789
serial 457-55-5462
ref 536-22-8726/A
purchase order 4716108999716531
RMA 5500-0000-0000-0004
Rechnung Nr. 2025/11/000451
customer 0012345678
lot 20251115-0042
# number
the population is 1 409 670 000
1,234,567,890 rows
about 12 345 678 users
3.141592653589793
6.02214076e23
it cost 1.234.567,89 EUR
-122.419416, 37.774929
scores 98 87 76 65 54 43 32 21
12 34 56 78 90
+1000000 points
+12 345 678 views
+30.000.000 EUR in sales
7 000 000 000 people
0.1.2 and 0.1.3
1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
call 1000000 times
called 2500000 times last night
phone sales rose by 15 percent in 2024
bought 3 phones for 1200 dollars
+5 -3 +12 -7
90210
room 1204, floor 12
chapters 10-12, 14 and 16-18
temperature 36.6, pressure 120/80
4111 is a room, 1111 another
64 bytes from cache, 0.032 ms
2^64 = 18446744073709551616
-2147483648
9007199254740993
a total of 4 000 000 000 000 000 dollars
1111 2222 3333 4444
1234 5678 9012 3456
1234567890123456
0000 0000 0000 0000
4111 1111 1111 1112 is not a card
5500 0000 0000 0005 fails the check
matrix 4242 4242 4242 4241
# network
127.0.0.1 is home
bind 0.0.0.0:8080
netmask 255.255.255.0
listen on ::1
localhost:5432
MAC 00:1A:2B:3C:4D:5E
std::vector<int> v;
std::chrono::seconds
abc::def::ghi
use Foo::Bar;
a::b
crate::ingest::scrub
999.888.777.666
256.1.1.1 is no address
1.2.3 is a version
OID 1.3.6.1.4.1.311.21.20
2.5.29.17 is subjectAltName
section 4.2.1.3 says so
§ 1.2.3.4 of the law
chapter 10.2.3.1
10.0.0 is short
:: is the scope operator
x = a[1::2]
ratio 3:4:5
Genesis 12:34
12:34:56
dead:beef is a joke
cafe::babe
10::20 slice
step 1.1.1.1 of the recipe
Table 3.1.2.2 shows it
# at
@dataclass(frozen=True)
@angular/core@latest
icon@2x.png
getty@tty1.service
git@github.com:org/repo.git
user@localhost
ssh deploy@web-1
follow @ada on the site
meet @ 5pm
price @ 3.50 each
scp a.txt bo@server.local:/tmp
me@home
@media (max-width: 600px)
a @ b.T
foo@bar
https://medium.example/@writer/post-1
sftp://deploy@files.example.com/in
systemd-fsck@dev-sda1.service failed
logo@3x.webp
decorator @app.route("/x")
A@B
matmul: y = x@w.T
matmul: y = x @ w.mean
twitter: @some_one.else
npm i @scope/pkg@1.0.0-beta.2
hg@bitbucket.example:team/repo
vite@5.0.0.tgz
admin@router.lan
backup@nas.internal
photo@1x.jpg
# key
import sklearn as sk
sk-learn is a library
class="sk-button sk-button-primary sk-hover"
sk-fading-circle
sk-...
sk-xxxxxxxx
set OPENAI_API_KEY=sk-your-key-here
ghp_ is the prefix of tokens
a ghp_short one
xoxb- tokens belong to bots
AKIA is how they start
AIza is the prefix
eyJ is base64 of {"
eyJhbGciOi
the JWT has three parts: header.payload.signature
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJl3dIeudNqd0DPMRD6OIh65 bo
BEGIN PRIVATE KEY is the header
where is the private key?
the api key goes into the environment
github_pat_ tokens are fine-grained
token=None
password: ********
TASK-1234 blocks TASK-1240
AKIAshort
sk_test is Stripe's prefix
MAKIAVELLI0123456789 wrote it
task-force-one-two-three-four-five-six-seven-eight-nine-ten
risk-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz
desk-0123456789abcdef0123456789abcdef
# iban
DE00 0000 0000 0000 0000 00 is a template
DE12 3456 7890 1234 5678 90
GB00WEST12345698765432
FR76 is the start of a French one
NL is the country code
IBAN has up to 34 characters
XX89370400440532013000
AB12CD34EF56GH78IJ90
DE89 3704 0044 0532 0130 01
Part AT61 1904 3002 3457 3202
model GB29 NWBK 6016
ES12 34
ZZ82 WEST 1234 5698 7654 32
# url
https://example.com/?page=2&sort=asc
https://example.com/search?q=token+ring
https://example.com/?key=name
https://example.com/a?token={token}
https://example.com/a?api_key=YOUR_API_KEY
https://example.com/a?api_key=$API_KEY
https://example.com/a?access_token=<token>
https://example.com:8443/path
http://user@example.com/
https://example.com/?code=200
https://example.com/?session=2
https://example.com/#access
postgres://localhost:5432/app
redis://cache:6379/0
https://example.com/v1.2.3.4/docs
https://example.com/tokens/list
https://example.com/?sig=on
https://example.com/auth?state=open
http://[::1]:8080/
https://example.com/a:b@c/d
ws://127.0.0.1:9000/?room=4
https://example.com/?password=
jdbc:postgresql://db/app?user=bo
https://example.com/?tokens=5000
https://example.com/?keyboard=qwertz
# phone
555 is not a number
dial 112 or 911
extension 4471
call 2 friends
in 1984-1985
from 10-12-14 on
1-2-3 go
1/2/2025
the mobile site has 1200 visitors
version 415.555.2671
zip 12345-6789
ZIP+4 94107-2282
PLZ 10115 Berlin
flight LH 4567 at 0815
Gleis 12, 07:45
room 020 on level 7
IMEI 490154203237518
VIN 1HGCM82633A004352
DOI 10.1000/182
arXiv:2509.25140
patent US 7,654,321
RFC 2822 and RFC 5322
ISO 8601-1:2019
EN 60601-1-2
case 3:15-cv-01234
catalogue 030-1234-X
bus 06 12 34
lines 120-145, 160-199
pages 415-555
1200 x 1600 px
a 12-34-56 sort code stays
score 21-15-9
kept 0x00 0x12 0x34 0x56
diff @@ -120,7 +120,9 @@
--- a/file 2025-11-15 08:39:29.000000000 +0100
0171 is a prefix
tel is short for telephone
the phone has 128 GB and 4500 mAh
phone model 3310
Handy mit 5000 mAh
fax machine from 1987
mobile revenue 1 234 567
cell 12 of column 4
text 200 words
mobile: iOS 17.2.1
phone: Pixel 8 Pro, 2023
WhatsApp 2.23.25.83 installed
# code
for i in range(10, 100, 5): print(i)
rgb(192, 168, 1) and #c0a801
SELECT * FROM t WHERE id IN (4155, 5526, 7110)
padding: 10px 20px 30px 40px;
np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
chmod 0755 /usr/local/bin/run
assert total == 1_234_567_890
0b1010101010101010
std::map<std::string, int> m{{"a", 1}};
{"lat": 52.520008, "lon": 13.404954}
POLYGON((30 10, 40 40, 20 40, 10 20, 30 10))
cron: 0 12 * * 1-5
regex \d{3}-\d{2}-\d{4} finds them
000-12-3456 and 666-12-3456 are never given out
912-34-5678 begins with a nine
123-00-4567 has an empty group
123-45-0000 has an empty end
\u0031\u0032\u0033
base64: aGVsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0IHN0cmluZw==
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4
s/\d+@\d+//g
[EMAIL_1] wrote to [EMAIL_2]
call [PHONE_3] at [IP_1]
[CARD_1] was refunded
# prose
In 1969 two men walked on the moon for 2 hours and 31 minutes.
She ran 10,5 km in 54:32 and came 212th of 4155.
The recipe: 250 g flour, 2 eggs, 100 ml milk, 30-40 min at 180 °C.
Bus 42 leaves at 07:15, 07:45 and 08:15.
Kapitel 3, Absatz 2, Satz 1
The win was 21-19, 19-21, 15-13.
Born 12-05-1987 in Kraków
He lives at 1600 Pennsylvania Ave NW, 20500
The treaty of 1648; see pp. 415-426, vol. 12
Lottery: 04 11 23 35 42 49
ratio 16:9 at 3840x2160, 60 Hz
the 2024-2025 season, match 12 of 38
"""


def negatives() -> list[tuple[str, str]]:
    """(kind, text), in order."""
    rows, kind = [], ""
    for line in NEGATIVES.strip().splitlines():
        if line.startswith("# "):
            kind = line[2:]
        else:
            rows.append((kind, line))
    return rows

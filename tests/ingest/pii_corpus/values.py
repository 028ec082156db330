"""Hand-written personal data and secrets, all invented, and sentences to put them in."""

from __future__ import annotations

EMAILS = (
    """
ada.lovelace@example.com|grace+newsletter@navy.example.mil|info@müller-söhne.de|o'brien@dublin.example.ie
j_smith99@sub.mail.example.co.uk|用户@例子.公司|пётр@почта.рф|FIRST.LAST@EXAMPLE.ORG|a@b.io|x-y-z@long-domain-name.museum
no.reply@service-desk.example.net|maría.garcía@correo.example.es|user%tag@example.org|1234567@qq.com
kundenservice@bäckerei.example.at|d.vries@students.uni.example.nl|ceo@startup.ai|bob@münchen.example
hello@xn--bcher-kva.example|contact@aé.fr|lee.min-ho@naver.example.kr|t.nguyen@example.com.vn|root@corp.example.com
sales&marketing@agency.example.biz|olu@example.ng|jean-luc.picard@starfleet.example.space|pat@example.travel
very.common.address.with.many.parts@department.faculty.university.example.edu|ops@10gen.example.cloud|z@z.co
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

PHONES = (
    """
+1 415 555 2671|+1 (212) 555-0187|(415) 555-2671|415-555-0133|212.555.0199|+14155552671|+44 20 7946 0958|+44 7700 900123
+49 30 901820|+49 (0)171 1234567|+33 6 12 34 56 78|06 12 34 56 78|01.42.68.53.00|+34 612 345 678|+39 06 6982 1234
+81-3-1234-5678|+86 138 0013 8000|+91 98765 43210|+55 11 91234-5678|+52 1 55 1234 5678|+7 495 123-45-67|+61 2 9374 4000
+27 21 123 4567|+234 803 123 4567|+971 50 123 4567|+65 6123 4567|+353 1 234 5678|+46 8 123 456 78|+41 44 668 18 00
+48 600 700 800|+380 44 123 4567|+972-2-123-4567|+90 212 345 67 89|+62 812-3456-7890|0044 20 7946 0000|+358 40 1234567
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

SPOKEN_PHONES = (
    """
call me on 07700 900461|Tel.: 030 1234567|mobile 0171/7654321|WhatsApp: 612 345 987|phone 4155550142|Telefon 089-5551234
teléfono 91 123 45 67|tel 03-1234-5678|電話 03-5555-1234|fax: 020 7946 0111|тел. 8 (495) 123-45-67|my cell is 917 555 0100
Handynummer: 0151 23456789|numéro de portable : 0612345678|telefone (11) 91234-5678|cellulare 347 1234567
reach me at 0412 345 678 (mobile)|text 98765 43210 (phone)|phone number 555-0199|Rufnummer 0221 / 998877
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
SPOKEN_PHONE_VALUES = (
    """
07700 900461|030 1234567|0171/7654321|612 345 987|4155550142|089-5551234
91 123 45 67|03-1234-5678|03-5555-1234|020 7946 0111|8 (495) 123-45-67|917 555 0100
0151 23456789|0612345678|(11) 91234-5678|347 1234567
0412 345 678|98765 43210|555-0199|0221 / 998877
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

SSNS = (
    """
219-09-9999|457-55-5462|001-01-0001|899-99-9998|536-22-8726|078-05-1120|412-68-1379|601-12-7744|233-45-8890|118-30-2244
665-10-2030|700-44-1212|152-60-7781|345-67-8912|499-21-3345|321-54-9876
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
SPOKEN_SSNS = [
    "SSN 219 09 9999",
    "social security number: 457555462",
    "SSN: 536228726",
    "ssn=601127744",
    "Social Security no. 412 68 1379",
    "my social is 233-45-8890",
]
SPOKEN_SSN_VALUES = ["219 09 9999", "457555462", "536228726", "601127744", "412 68 1379", "233-45-8890"]

IPS = (
    """
192.168.1.23|10.0.0.7|203.0.113.45|8.8.8.8|172.16.254.1|198.51.100.17|2001:db8::8a2e:370:7334|fe80::1ff:fe23:4567:890a
2001:0db8:85a3:0000:0000:8a2e:0370:7334|fd12:3456:789a:1::1|2a02:26f0:1700::5f64|::ffff:192.0.2.128|91.198.174.192
2001:db8:0:1:1:1:1:1|151.101.1.69|100.64.12.9|2606:4700:4700::1111|fe80::a00:27ff:fe4e:66a1%eth0|185.199.108.153
10.255.3.2|192.0.2.200|2400:cb00:2048:1::c629:d7a2|77.88.55.242|213.180.204.3
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

URL_SECRETS = [
    ("postgres://admin:{}@db.example.com:5432/shop", "s3cr3t-Pa55"),
    ("https://alice:{}@intranet.example.org/", "hunter2"),
    ("redis://:{}@cache.internal:6379/0", "gT5kLm92xQ"),
    ("mongodb+srv://app:{}@cluster0.example.net/test", "p%40ssw0rd"),
    ("https://api.example.com/v1/me?access_token={}&lang=en", "b7f3c2a9d8e1"),
    ("https://x.example/cb?token={}", "Zk3-99_ab.cd"),
    ("https://maps.example.com/js?v=3&api_key={}", "4f9a2c8e77b1d0"),
    ("amqp://guest:{}@mq.example.io/vhost", "rabbit-77"),
    (
        "https://s3.example.com/b/k?X-Amz-Signature={}",
        "fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024",
    ),
    ("https://acct.blob.example.net/c?sv=2022-11-02&sig={}", "9aXk2LmQ%2BvT7%3D"),
    ("ftp://bob:{}@files.example.com/in", "Wint3r!"),
    ("https://hook.example.com/in?client_secret={}", "Q9w8E7r6T5y4"),
    ("http://example.org/login?user=bo&password={}", "letmein42"),
    ("https://git:{}@code.example.com/org/repo.git", "deploy-9f8e7d"),
    ("wss://live.example.com/?auth={}&room=4", "a1b2c3d4e5f60718"),
    ("https://example.com/reset?reset_token={}#top", "0f1e2d3c4b5a"),
    ("mysql://root:{}@127.0.0.1/app", "toor1234"),
    ("https://example.com/a?apikey={}", "KJH34kjh345KJH"),
    ("smtp://mailer:{}@smtp.example.com:587", "Ma1l-Pass"),
    ("https://example.com/s?refresh_token={}&x=1", "rt-88aa77bb66cc"),
    ("https://example.com/d?session_id={}", "9c8b7a6f5e4d3c2b"),
]

FRAMES = {
    "EMAIL": [
        "Please write to {} before Friday.",
        "From: {}\nSubject: invoice",
        "mailto:{}",
        "<{}> replied yesterday",
        '{{"email": "{}", "id": 7}}',
        "Contact ({}) is on leave.",
        "she moved; her new address is {}",
        "user={};role=admin",
        "Schreiben Sie an {}.",
        "Écrivez-moi à {} s’il vous plaît",
        "Mi correo es {}, gracias.",
        "联系邮箱:{}。",
        "メールは {} です",
        "- [ ] ask {} about the lease",
        "WARN login failed for {} (3 attempts)",
        "cc {}, thanks!",
        "`{}` bounced",
        "name,mail\nBo,{}\n",
        "Пишите на {} до вечера",
        "git commit --author='Bo <{}>'",
    ],
    "PHONE": [
        "Call {} after six.",
        "Her number is {}.",
        "Tel: {}",
        '{{"phone": "{}"}}',
        "Sie erreichen mich unter {}.",
        "Mon numéro : {}",
        "Mi teléfono es el {}",
        "my new number: {} (evenings)",
        "☎ {}",
        "Reach the clinic at {}, ext. 4",
        "電話番号は{}です",
        "SMS to {} was delivered",
        "contact\t{}\tBerlin",
        "Fax {} / office",
        "ring {}!",
        "he left {} on the answering machine",
        "tel:{}",
        "Телефон: {}",
        "Ligue para {} amanhã",
        "* {} – reception",
    ],
    "SSN": [
        "SSN: {}",
        "Her social security number is {}.",
        "employee 12, {}, hired in May",
        "W-2 shows {} as the number",
        '{{"ssn": "{}"}}',
        "the form had {} in box a",
        "verify {} with the agency",
        "taxpayer {} filed late",
        "ss# {} on file",
        "patient: Doe, {}",
    ],
    "CARD": [
        "Charge {} please.",
        "card number {} exp 12/27",
        '{{"pan": "{}"}}',
        "Visa {} was declined",
        "paid with {}, thanks",
        "Meine Karte: {}",
        "Tarjeta {} caducada",
        "my credit card is {}.",
        "CC#{}",
        "log: auth ok pan={} cvv=***",
        "la carte {} a été volée",
        "カード番号 {}",
        "refund to {} today",
        "kort {} er spærret",
        "he typed {} into the chat",
    ],
    "IBAN": [
        "Bitte überweisen Sie auf {}.",
        "IBAN: {}",
        "transfer to {} by Monday",
        '{{"iban": "{}"}}',
        "Mon RIB: {}",
        "account {} at the new bank",
        "la cuenta {} está cerrada",
        "iban {} bic XXXX",
        "conto {} intestato a Bo",
        "rekening {} t.n.v. De Vries",
        "pay {}; ref 12",
        "({})",
    ],
    "IP": [
        "login from {} at noon",
        "ping {} timed out",
        "Host: {}",
        "client={} status=200",
        "ssh root@{}",
        "blocked {} for abuse",
        "the printer has {}",
        '{{"remote_addr": "{}"}}',
        "DNS server {}, then the router",
        "von {} angemeldet",
        "X-Forwarded-For: {}",
        "route via {} failed",
        "firewall: deny {} -> any",
    ],
    "SECRET": [
        "export KEY={}",
        "my key is {} - please rotate it",
        'client = Client(api_key="{}")',
        "Authorization: token {}",
        "the old one was {}.",
        "```\n{}\n```",
        "he pasted {} into the ticket",
        '{{"key":"{}"}}',
        "key: {}\nregion: eu",
        "curl -H 'x-api-key: {}' https://api.example.com",
        "Schlüssel {} ist abgelaufen",
        "secret={}&next",
        "I committed {} by mistake",
        "<add key='k' value='{}'/>",
    ],
    "URL_SECRET": [
        "DATABASE_URL={}",
        "open {} in a browser",
        "clone {} first",
        "see <{}>",
        '"url": "{}"',
        "it failed: GET {} 500",
        "[link]({})",
        "connect to {} now",
    ],
}

MIXED: list[tuple[str, list[tuple[str, str]]]] = [
    (
        "Ada (ada@example.com, +44 20 7946 0958) logged in from 203.0.113.9.",
        [("EMAIL", "ada@example.com"), ("PHONE", "+44 20 7946 0958"), ("IP", "203.0.113.9")],
    ),
    (
        "Bo;bo@example.se;457-55-5462;4111 1111 1111 1111",
        [("EMAIL", "bo@example.se"), ("SSN", "457-55-5462"), ("CARD", "4111 1111 1111 1111")],
    ),
    (
        "Zahlung an DE89 3704 0044 0532 0130 00, Rückfragen: kasse@example.de oder Tel. 030 5556677",
        [("IBAN", "DE89 3704 0044 0532 0130 00"), ("EMAIL", "kasse@example.de"), ("PHONE", "030 5556677")],
    ),
    (
        "4111111111111111,5500000000000004,378282246310005",
        [("CARD", "4111111111111111"), ("CARD", "5500000000000004"), ("CARD", "378282246310005")],
    ),
    ("hosts: 10.1.2.3 10.1.2.4, 10.1.2.5", [("IP", "10.1.2.3"), ("IP", "10.1.2.4"), ("IP", "10.1.2.5")]),
    ("a@x.io,b@x.io;c@x.io", [("EMAIL", "a@x.io"), ("EMAIL", "b@x.io"), ("EMAIL", "c@x.io")]),
    ("４１１１１１１１１１１１１１１１ is a card in wide digits", [("CARD", "４１１１１１１１１１１１１１１１")]),
    (
        "call +49\u00a030\u00a0901820\u00a05 or write to bo＠example.com",
        [("PHONE", "+49\u00a030\u00a0901820\u00a05"), ("EMAIL", "bo＠example.com")],
    ),
    ("SSN 219‑09‑9998 with other hyphens", [("SSN", "219‑09‑9998")]),
    ("redirect=https://x.example/?u=ada%40example.org", [("EMAIL", "ada%40example.org")]),
    ("Card: 4111\u200b1111\u200b1111\u200b1111 with nothing between", [("CARD", "4111\u200b1111\u200b1111\u200b1111")]),
    ("הטלפון שלי 050-123-4567 ‎תודה", [("PHONE", "050-123-4567")]),
]

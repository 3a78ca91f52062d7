"""Personal data, found by its form and by the names of members and headers: the preset `pii`.

Card numbers and IBANs are found only if their check digits are valid, and telephone numbers only
with a country code.
"""

import re
from collections.abc import Iterator

MEMBERS = (
    "email",
    "emailaddress",
    "mail",
    "phone",
    "phonenumber",
    "telephone",
    "mobile",
    "mobilenumber",
    "firstname",
    "lastname",
    "fullname",
    "givenname",
    "familyname",
    "surname",
    "birthdate",
    "birthday",
    "dateofbirth",
    "dob",
    "ssn",
    "socialsecuritynumber",
    "passport",
    "passportnumber",
    "nationalid",
    "taxid",
    "iban",
    "accountnumber",
    "cardnumber",
    "creditcard",
    "creditcardnumber",
    "cvv",
    "streetaddress",
    "postaladdress",
    "homeaddress",
    "address",
    "street",
    "postalcode",
    "zipcode",
    "username",
    "ipaddress",
)
"""Folded names of members with personal data."""
HEADERS = (
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "cf-connecting-ip",
    "true-client-ip",
    "from",
    "x-user*",
)

_EMAIL = re.compile(
    rb"(?<![\w.+\-])[\w.+\-]{1,64}@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w\-])"
)
_PHONE = re.compile(
    rb"(?<![\w+])\+\d{1,3}[ \-.]?(?:\(\d{1,4}\)[ \-.]?)?\d(?:[ \-.]?\d){5,12}(?![\w])"
)
_IBAN = re.compile(rb"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_CARD = re.compile(rb"(?<![\w.\-])(?<![A-Z]{2}\d\d )\d(?:[ \-]?\d){12,18}(?![\w\-])")
_SSN = re.compile(rb"(?<![\w\-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w\-])")


def find_personal_data(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each piece of personal data."""
    for pattern in (_EMAIL, _PHONE, _SSN):
        yield from (found.span() for found in pattern.finditer(data))
    yield from (found.span() for found in _IBAN.finditer(data) if _is_iban(found[0]))
    yield from (found.span() for found in _CARD.finditer(data) if _is_card(found[0]))


def _is_iban(text: bytes) -> bool:
    """Check ISO 13616: the first four characters moved to the end and letters as numbers, the value
    mod 97 is 1."""
    plain = text.replace(b" ", b"").decode()
    return (
        15 <= len(plain) <= 34
        and int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1
    )


def _is_card(text: bytes) -> bool:
    """Check Luhn: with every second digit from the right doubled, the sum of all digits is a
    multiple of ten."""
    digits = [byte - 48 for byte in text if 48 <= byte <= 57]
    if len(set(digits)) < 2:
        return False
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0

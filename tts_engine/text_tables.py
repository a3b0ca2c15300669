"""Spoken forms of written English: months, currencies, units, abbreviations, symbols. Data only."""

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
SHORT_MONTHS = {name[:3].lower(): name for name in MONTHS} | {"sept": "September"}
MONTH = r"(?P<month>" + "|".join((*MONTHS, *(f"{k.capitalize()}\\.?" for k in SHORT_MONTHS))) + r")"
CURRENCY = {
    "$": ("dollar", "cent"), "€": ("euro", "cent"), "£": ("pound", "penny"), "¥": ("yen", ""), "₹": ("rupee", "paisa"),
}  # fmt: skip
UNITS = {
    "km/h": "kilometre per hour", "km": "kilometre", "m": "metre", "cm": "centimetre", "mm": "millimetre",
    "kg": "kilogram", "g": "gram", "mg": "milligram", "l": "litre", "L": "litre", "ml": "millilitre",
    "mL": "millilitre", "ms": "millisecond", "s": "second", "min": "minute", "h": "hour", "Hz": "hertz",
    "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "kB": "kilobyte", "KB": "kilobyte",
    "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "W": "watt", "kW": "kilowatt", "kWh": "kilowatt hour",
    "V": "volt", "mph": "mile per hour", "mi": "mile", "ft": "foot", "lb": "pound", "lbs": "pound",
    "oz": "ounce", "°C": "degree Celsius", "°F": "degree Fahrenheit", "°": "degree", "%": "percent",
    "m/s": "metre per second", "m²": "square metre", "km²": "square kilometre", "m³": "cubic metre",
    "kbps": "kilobit per second", "Mbps": "megabit per second", "Gbps": "gigabit per second",
    "MB/s": "megabyte per second", "GB/s": "gigabyte per second", "fps": "frame per second", "mAh": "milliamp hour",
    "dB": "decibel", "MW": "megawatt", "GW": "gigawatt", "ns": "nanosecond", "µs": "microsecond", "μs": "microsecond",
    "sec": "second", "secs": "second", "mins": "minute", "hr": "hour", "hrs": "hour", "yd": "yard", "kcal":
    "kilocalorie", "ha": "hectare", "¢": "cent", "USD": "dollar", "EUR": "euro", "GBP": "pound", "km/s":
    "kilometre per second", "mg/l": "milligram per litre", "µm": "micrometre", "nm": "nanometre",
}  # fmt: skip
UNCOUNTED = frozenset({"hertz", "kilohertz", "megahertz", "gigahertz", "percent", "yen"})
IRREGULAR = {"foot": "feet", "inch": "inches", "penny": "pence", "paisa": "paise"}
PER = "day|week|month|year|night|hour|minute|second|person|user|token|request"
ROMAN = {"X": 10, "IX": 9, "V": 5, "IV": 4, "I": 1}
NUMBERED = "Chapter|Part|Act|Scene|Volume|Book|Section|Phase|Type|World War|Appendix|Article|Title|Stage|Class"
CROWNED = (
    "Henry|Louis|Elizabeth|Charles|George|James|Edward|Richard|William|Philip|Napoleon|Pius|Paul|Benedict|Nicholas|"
    "Catherine|Frederick|Alexander|Francis|Leo|Ramesses|Ivan|Peter|Wilhelm|Otto|Mary|Margrethe|Gustav|Felipe"
)
VERSIONED = "[Vv]ersion|[Rr]elease|Python|Ubuntu|Android|iOS|macOS|Node|Java|Go|Rust|CUDA|v"
FILES = "py|js|ts|txt|md|json|csv|pdf|html|css|toml|yaml|yml|cpp|rs|sh|exe|zip|png|jpg|mp3|wav|log"
ABBREVIATIONS = {
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus", "vs": "versus", "approx.":
    "approximately", "Dr.": "Doctor", "Mr.": "Mister", "Mrs.": "Missus", "Ms.": "Miz", "Prof.": "Professor",
    "w/": "with", "w/o": "without", "a.m.": "a m", "p.m.": "p m", "AM": "a m",
    "PM": "p m", "ca.": "about", "incl.": "including", "Jr.": "Junior", "Sr.": "Senior", "Mt.": "Mount",
}  # fmt: skip
SYMBOLS = {
    "&": "and", "+": "plus", "=": "equals", "×": "times", "÷": "divided by", "±": "plus or minus", "≈": "about",
    "≤": "at most", "≥": "at least", "<": "less than", ">": "greater than", "→": "to", "←": "from", "@": "at",
    "½": "a half", "¼": "a quarter", "¾": "three quarters", "⅓": "a third", "⅔": "two thirds", "⅛": "an eighth",
    "²": " squared", "³": " cubed", "#": "number",
    "√": "the square root of", "∞": "infinity", "π": "pi", "µ": "micro", "~": "about", "^": "to the power of",
    "|": ",", "_": " ", "\\": " ", "*": " ", "{": " ", "}": " ", "[": " ", "]": " ", "%": "percent", "°": "degrees",
    "$": "dollars", "€": "euros", "£": "pounds", "©": " ", "®": " ", "™": " ", "•": " ", "`": " ", "¢": "cents",
}  # fmt: skip
SIGNS = {
    "!=": " is not equal to ", "==": " equals ", "<=": " at most ", ">=": " at least ", "->": " to ", "=>": " to ",
    "&&": " and ", "||": " or ",
}  # fmt: skip
LAST_IN_SENTENCES = frozenset({"etc.", "a.m.", "p.m.", "Jr.", "Sr."})
LETTERS_AS_WORDS = frozenset({"OK", "NASA", "NATO", "UNESCO", "LASER", "RADAR", "JPEG", "GIF", "PIN", "SIM", "RAM"})

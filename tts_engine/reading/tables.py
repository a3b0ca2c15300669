"""The words that written English stands for: months, currencies, units, abbreviations, symbols. Data only."""

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
SHORT_MONTHS = {name[:3].lower(): name for name in MONTHS} | {"sept": "September"}
MONTH = r"(?P<month>" + "|".join((*MONTHS, *(f"{k.capitalize()}\\.?" for k in SHORT_MONTHS))) + r")"
CURRENCY = {
    "$": ("dollar", "cent"), "€": ("euro", "cent"), "£": ("pound", "penny"), "¥": ("yen", ""), "₹": ("rupee", "paisa"),
    "₩": ("won", ""), "US$": ("US dollar", "cent"), "USD": ("dollar", "cent"), "A$": ("Australian dollar", "cent"),
    "C$": ("Canadian dollar", "cent"), "EUR": ("euro", "cent"), "GBP": ("pound", "penny"), "JPY": ("yen", ""),
    "CHF": ("Swiss franc", ""), "INR": ("rupee", "paisa"),
}  # fmt: skip
SCALES = {
    "k": "thousand", "K": "thousand", "m": "million", "M": "million", "mn": "million", "bn": "billion", "b": "billion",
    "B": "billion", "T": "trillion", "tn": "trillion",
}  # fmt: skip
UNITS = {
    "km/h": "kilometre per hour", "km": "kilometre", "m": "metre", "cm": "centimetre", "mm": "millimetre",
    "kg": "kilogram", "g": "gram", "mg": "milligram", "l": "litre", "L": "litre", "ml": "millilitre",
    "mL": "millilitre", "ms": "millisecond", "s": "second", "min": "minute", "h": "hour", "Hz": "hertz",
    "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "kB": "kilobyte", "KB": "kilobyte",
    "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "W": "watt", "kW": "kilowatt", "kWh": "kilowatt hour",
    "V": "volt", "mph": "mile per hour", "mi": "mile", "ft": "foot", "lb": "pound", "lbs": "pound",
    "oz": "ounce", "°C": "degree Celsius", "°F": "degree Fahrenheit", "°": "degree", "º": "degree", "%": "percent",
    "m/s": "metre per second", "m²": "square metre", "km²": "square kilometre", "m³": "cubic metre",
    "kbps": "kilobit per second", "Mbps": "megabit per second", "Gbps": "gigabit per second",
    "MB/s": "megabyte per second", "GB/s": "gigabyte per second", "fps": "frame per second", "mAh": "milliamp hour",
    "dB": "decibel", "MW": "megawatt", "GW": "gigawatt", "ns": "nanosecond", "µs": "microsecond", "μs": "microsecond",
    "sec": "second", "secs": "second", "mins": "minute", "hr": "hour", "hrs": "hour", "yd": "yard", "kcal":
    "kilocalorie", "ha": "hectare", "¢": "cent", "km/s": "kilometre per second", "mg/l": "milligram per litre",
    "µm": "micrometre", "nm": "nanometre", "tsp": "teaspoon", "tsps": "teaspoon", "tbsp": "tablespoon",
    "tbsps": "tablespoon", "tbs": "tablespoon", "Tbsp": "tablespoon", "Tbs": "tablespoon", "TBSP": "tablespoon",
    "qt": "quart", "pt": "pint", "gal": "gallon", "fl oz": "fluid ounce", "kgs": "kilogram", "wk": "week",
    "wks": "week", "yr": "year", "yrs": "year",
    "hPa": "hectopascal", "kPa": "kilopascal",
}  # fmt: skip
MEASURES = (
    "cups?|teaspoons?|tablespoons?|ounces?|pounds?|litres?|liters?|kilograms?|grams?|metres?|meters?|kilometres?|miles?|"
    "inch(?:es)?|feet|foot|yards?|acres?|pints?|quarts?|gallons?|sticks?|cans?|onions?|lemons?|limes?|hours?|years?"
)
"""Things of which there are halves and quarters."""
UNCOUNTED = frozenset({"hertz", "kilohertz", "megahertz", "gigahertz", "percent", "yen", "won"})
IRREGULAR = {"foot": "feet", "inch": "inches", "penny": "pence", "paisa": "paise"}
PER = "day|week|month|year|night|hour|minute|second|person|user|token|request"
SHORT_PER = {"mo": "month", "yr": "year", "hr": "hour", "wk": "week", "min": "minute", "sec": "second"}
ROMAN = {"X": 10, "IX": 9, "V": 5, "IV": 4, "I": 1}
NUMBERED = "Chapter|Part|Act|Scene|Volume|Book|Section|Phase|Type|World War|Appendix|Article|Title|Stage|Class"
CROWNED = (
    "Henry|Louis|Elizabeth|Charles|George|James|Edward|Richard|William|Philip|Napoleon|Pius|Paul|Benedict|Nicholas|"
    "Catherine|Frederick|Alexander|Francis|Leo|Ramesses|Ivan|Peter|Wilhelm|Otto|Mary|Margrethe|Gustav|Felipe"
)
VERSIONED = "[Vv]ersion|[Rr]elease|Python|Ubuntu|Android|iOS|macOS|Node|Java|Go|Rust|CUDA|v"
FILES = (
    "py|js|jsx|ts|tsx|txt|md|json|csv|pdf|html|css|toml|yaml|yml|cpp|rs|sh|exe|zip|gz|png|jpg|svg|mp3|wav|log|xml|sql|"
    "java|docx?|xlsx?|ini|conf|cfg|env"
)
FOLDERS = "src|lib|bin|usr|etc|home|tmp|var|opt|docs?|tests?|node_modules|build|dist|assets|Users|app"
"""Folders with which a path begins, when nothing else says that it is one."""
ABBREVIATIONS = {
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus", "vs": "versus", "approx.":
    "approximately", "Mr.": "Mister", "Mrs.": "Missus", "Ms.": "Miz", "Prof.": "Professor", "Inc.": "Incorporated",
    "w/": "with", "w/o": "without", "a.m.": "a m", "p.m.": "p m", "Ltd.": "Limited", "Corp.": "Corporation",
    "Co.": "Company", "ca.": "about", "incl.": "including", "Jr.": "Junior", "Sr.": "Senior", "Mt.": "Mount",
    "Ph.D.": "P H D",
    "a.k.a.": "also known as", "aka": "also known as", "and/or": "and or", "Dept.": "Department", "Gov.": "Governor",
    "Sen.": "Senator", "Rep.": "Representative", "Gen.": "General", "Capt.": "Captain", "Sgt.": "Sergeant", "Lt.":
    "Lieutenant", "Rev.": "Reverend", "Hon.": "Honorable", "et al.": "and others", "cf.": "compare", "Ave.": "Avenue",
    "Blvd.": "Boulevard", "Rd.": "Road", "Hwy.": "Highway", "Ln.": "Lane", "Pkwy.": "Parkway", "Apt.": "Apartment",
    "misc.": "miscellaneous", "temp.": "temperature", "tel.": "telephone", "Univ.": "University", "Rte.": "Route",
    "b/c": "because", "max.": "maximum", "avg.": "average",
}  # fmt: skip
LAST_IN_SENTENCES = frozenset(
    {"etc.", "a.m.", "p.m.", "Jr.", "Sr.", "Inc.", "Ltd.", "Corp.", "Co.", "et al.", "Ave.", "Blvd.", "Rd.", "Hwy.",
     "Ln.", "Pkwy."}
)  # fmt: skip
DAYS = {
    "Mon": "Monday", "Tue": "Tuesday", "Tues": "Tuesday", "Wed": "Wednesday", "Weds": "Wednesday", "Thu": "Thursday",
    "Thur": "Thursday", "Thurs": "Thursday", "Fri": "Friday", "Sat": "Saturday", "Sun": "Sunday",
}  # fmt: skip
PLACES = {"Ft": "Fort", "Pt": "Point", "Ste": "Sainte"}
"""Before a name; behind a figure they are units."""
FLATS = "Suite|Apt\\.|Apartment|Flat|Unit|Room|Gate|Seat|Row|Platform|Bay|Block|Building|Door|Exit|Class|Page"
"""Their figures may have a letter, which is no magnitude."""
BEFORE_NUMBERS = {
    "No.": "number", "Nos.": "numbers", "no.": "number", "Fig.": "figure", "fig.": "figure", "Figs.": "figures", "p.":
    "page", "pp.": "pages", "Vol.": "volume", "vol.": "volume", "Ch.": "chapter", "ch.": "chapter", "Sec.": "section",
    "sec.": "section", "Eq.": "equation", "eq.": "equation", "Art.": "article", "Ext.": "extension", "ext.":
    "extension", "v.": "version", "c.": "circa",
    "pop.": "population", "min.": "minimum", "b.": "born", "d.": "died",
}  # fmt: skip
STREETS = "St|Street|Ave|Avenue|Blvd|Boulevard|Rd|Road|Dr|Drive|Ln|Lane|Ct|Court|Way|Place|Pl|Highway|Hwy"
SYMBOLS = {
    "&": "and", "+": "plus", "=": "equals", "×": "times", "÷": "divided by", "±": "plus or minus", "≈": "about",
    "≤": "at most", "≥": "at least", "<": "less than", ">": "greater than", "→": "to", "←": "from", "@": "at",
    "²": " squared", "³": " cubed", "#": "number", "₀": "zero", "₁": "one", "₂": "two", "₃": "three", "₄": "four",
    "√": "the square root of", "∞": "infinity", "π": "pi", "µ": "micro", "~": "about", "^": "to the power of",
    "|": ",", "_": " ", "\\": " ", "*": " ", "{": " ", "}": " ", "[": " ", "]": " ", "%": "percent", "°": "degrees",
    "$": "dollars", "€": "euros", "£": "pounds", "©": " ", "®": " ", "™": " ", "•": " ", "`": " ", "¢": "cents",
}  # fmt: skip
SIGNS = {
    "!=": " is not equal to ", "==": " equals ", "<=": " at most ", ">=": " at least ", "->": " to ", "=>": " to ",
    "&&": " and ", "||": " or ",
}  # fmt: skip
LETTERS_AS_WORDS = frozenset(
    {"OK", "NASA", "NATO", "UNESCO", "LASER", "RADAR", "JPEG", "GIF", "PIN", "SIM", "RAM", "JSON", "YAML", "NAFTA",
     "COVID", "AIDS", "FIFA", "OPEC", "LAN", "WAN", "BIOS", "UNICEF", "SWAT", "ASAP"}
)  # fmt: skip
SPELLED = frozenset(
    {"API", "URL", "USA", "UK", "EU", "UN", "ID", "CEO", "AI", "UI", "IP", "IT", "TV", "PC", "OS", "FAQ", "DIY", "ATM",
     "AC", "DC", "AM", "PM", "US", "URI", "GUI", "CLI", "IO", "USB", "CIA", "IRS", "EST", "ETA", "DOB", "IQ", "EV"}
)  # fmt: skip
"""Said by letters even in a line of capitals, though they could be words."""
PLAIN_WORDS = frozenset(
    str.split(
        "a all am an and any are as ask at back bad be been best big both but buy by call can car cat cold come cut "
        "dad day did do dog done door down each easy eat end even ever few find fire fix for free from full fun get "
        "give go god gold good got had has hate he help her here high him his home hot how huge i if in into is it "
        "its job just keep key kind know last late left less let life like line live long look lot love mad make "
        "man many may me men mind more most move much must my name need new next nice no nor not now of off oh old "
        "on once one only onto open or our out over own pan part pay please put read real red rest rich ride right "
        "run sad safe said same save say see sell send set she shop shut sick sit so some soon sorry stop such sure "
        "take talk tell ten than that the them then there they this to today told too top touch try turn two up "
        "upon use very wait walk want warm was way we well went were west what when where who why will win wish "
        "with won word work wow yes yet you your zero"
    )
)
"""Frequent short words, which capitals only stress."""

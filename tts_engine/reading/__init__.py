"""Written English as a good reader says it: Markdown, numbers, dates, names and formulas in words. Pure.

    abbreviations  Dr., St., Inc., initials, words in capitals
    alignment      the way back from what is said to what was written
    amounts        money, units, temperatures
    blocks         the blocks of running Markdown, line by line
    dates          dates, times of day, years, decades
    inline         marks within one sentence: emphasis, links, code, stage directions
    maths          simple LaTeX
    names          addresses, paths, identifiers, versions, technical names
    numbers        plain numbers, ranges, scores, fractions, telephone numbers
    signs          symbols and emoticons
    tables         the words for numbers' companions: data
    words          numbers spelled out
"""

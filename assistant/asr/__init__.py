"""What was said: sound in, words that settle from the front.

contract_draft  what every transcriber keeps · paced  its common part: queue, cadence, pause
moonshine       the default: open vocabulary, in the wheel · network  its graphs · tokens  its pieces of text
streaming       the makers' streaming sizes, from a folder · pocketsphinx  closed vocabulary, where no wheel fits
agreement       which words are stable · cutting  where long speech is cut · sense  what noise makes a network write
bias            words that are likelier than usual · writing  what the small language model reads
"""

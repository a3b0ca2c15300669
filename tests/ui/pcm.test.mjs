/** Samples at the border: base64 both ways, clipping, and a resampler measured against the exact sine. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Packets, Resampler, decodeBase64, encodeBase64, meterLevel, toInt16 } from "../../ui/audio/pcm.js";
import { random } from "./random.mjs";

test("base64 goes there and back for random sizes, and matches Node's own bytes", () => {
  const dice = random(5);
  for (const length of [0, 1, 2, 3, 480, 8191, 8193, 20000, dice.below(5000)]) {
    const samples = Int16Array.from({ length }, () => dice.below(65536) - 32768);
    const bytes = Buffer.alloc(length * 2);
    samples.forEach((value, i) => bytes.writeInt16LE(value, i * 2));
    const text = encodeBase64(samples);
    assert.equal(text, bytes.toString("base64"));
    assert.deepEqual(Array.from(decodeBase64(text), (x) => Math.round(x * 32768)), Array.from(samples));
  }
});

test("an odd trailing byte is dropped", () => {
  assert.deepEqual(Array.from(decodeBase64(Buffer.from([0, 64, 9]).toString("base64"))), [0.5]);
});

test("packets lose nothing, are full or sent now, and are whole pieces", () => {
  const dice = random(9);
  const packets = new Packets(50);
  const said = [];
  const sent = [];
  let waits = 0;
  for (let i = 0; i < 400; i++) {
    const piece = Int16Array.from({ length: 10 }, () => dice.below(65536) - 32768);
    const now = dice.below(4) === 0;
    const packet = packets.add(piece, now);
    said.push(...piece);
    waits += 10;
    assert.equal(packet?.length ?? null, now || waits === 50 ? waits : null);
    if (packet === null) continue;
    sent.push(...packet);
    waits = 0;
  }
  assert.deepEqual(sent, said.slice(0, sent.length));
  packets.add(new Int16Array(10), false);
  packets.clear();
  assert.equal(packets.add(new Int16Array(10), true)?.length, 10);
});

test("rounding to 16 bits clips and never wraps", () => {
  assert.deepEqual([0, 1, -1, 2, -2, 0.5, 1 / 65536].map(toInt16), [0, 32767, -32768, 32767, -32768, 16384, 1]);
});

test("the meter runs from -60 dBFS to full scale", () => {
  assert.equal(meterLevel(0), 0);
  assert.equal(meterLevel(NaN), 0);
  assert.equal(meterLevel(1), 1);
  assert.ok(Math.abs(meterLevel(1e-3) - 0.5) < 1e-9);
});

function resampled(from, to, input, cut) {
  const resampler = new Resampler(from, to);
  const out = [];
  for (let at = 0; at < input.length; ) {
    const block = input.subarray(at, at + cut());
    const made = new Float32Array(resampler.most(block.length));
    out.push(...made.subarray(0, resampler.process(block, made)));
    at += block.length;
  }
  return { out: Float32Array.from(out), delay: resampler.delay / from };
}

for (const [from, to] of [[48000, 24000], [44100, 24000], [16000, 24000], [24000, 24000], [96000, 24000], [22050, 24000]]) {
  test(`${from} to ${to} Hz: tones keep their place and height, above the band they vanish`, () => {
    const tone = (hz, rate, n, shift) => Float32Array.from({ length: n }, (_, i) => 0.5 * Math.sin(2 * Math.PI * hz * (i / rate - shift)));
    for (const hz of [50, 440, 3000, Math.floor(0.4 * Math.min(from, to))]) {
      const { out, delay } = resampled(from, to, tone(hz, from, from, 0), () => 128);
      const want = tone(hz, to, out.length, delay);
      let error = 0;
      for (let i = 2000; i < out.length - 2000; i++) error += (out[i] - want[i]) ** 2;
      const noise = 10 * Math.log10(error / (out.length - 4000) / 0.125);
      assert.ok(noise < -60, `${hz} Hz: error ${noise.toFixed(1)} dB`);
    }
    if (from > to) {
      const { out } = resampled(from, to, tone(0.62 * to, from, from, 0), () => 128);
      assert.ok(out.subarray(2000, out.length - 2000).every((x) => Math.abs(x) < 5e-3), "aliases stay below -40 dB");
    }
  });
}

test("how the input is cut changes nothing, bit for bit", () => {
  const dice = random(9);
  const noise = Float32Array.from({ length: 20000 }, () => dice.unit() - 0.5);
  const whole = resampled(44100, 24000, noise, () => noise.length).out;
  const pieces = resampled(44100, 24000, noise, () => 1 + dice.below(700)).out;
  assert.deepEqual(pieces, whole);
  assert.ok(Math.abs(whole.length - (20000 * 24000) / 44100) <= 1);
});

test("strange sampling rates are refused with a sentence", () => {
  assert.throws(() => new Resampler(44100.5, 24000), /whole sampling rates/);
  assert.throws(() => new Resampler(48000, 0), /whole sampling rates/);
});

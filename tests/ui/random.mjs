/** Seeded random numbers for tests (mulberry32), so that a failure can be repeated. */

/** @param {number} seed */
export function random(seed) {
  let a = seed >>> 0;
  const unit = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    unit,
    /** @param {number} n */ below: (n) => Math.floor(unit() * n),
    /** @template T @param {T[]} list */ pick: (list) => list[Math.floor(unit() * list.length)],
  };
}

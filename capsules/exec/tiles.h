// Matrix tiles of an x86 processor (AMX) for one thread. TILES says whether there are any: a build without them is made
// with NO_TILES, where the system grants none.
#pragma once

#if defined(__AMX_TILE__) && !defined(NO_TILES)
#define TILES
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tiles {

constexpr int64_t TILE = 16;  // rows of a first factor and of sums, columns of a second factor and of sums

// 0 to 3 are sums, 4 and 5 first factors, 6 and 7 second ones, while it lives; `depth` is the bytes of a first factor's
// row. Then they are again as another library had shaped them, for some do that once for good.
class Shaped {
 public:
  explicit Shaped(uint8_t depth) {
    // A process has to ask the system once.
    static const bool granted = syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* XTILEDATA */) == 0;
    STD_TORCH_CHECK(granted, "the system does not let this process use AMX tiles");
    _tile_storeconfig(before_);
    alignas(64) uint8_t shape[64] = {1};  // the palette; from 16 on bytes of a row, from 48 on rows
    for (int t = 0; t < 8; ++t) {
      shape[16 + 2 * t] = t == 4 || t == 5 ? depth : 64;
      shape[48 + t] = t < 6 ? TILE : depth / 4;
    }
    _tile_loadconfig(shape);
  }
  ~Shaped() { _tile_loadconfig(before_); }
  Shaped(const Shaped&) = delete;

 private:
  alignas(64) uint8_t before_[64];
};

}  // namespace tiles
#endif

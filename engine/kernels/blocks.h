// What loops over blocks of numbers share.
#pragma once

#include <cstdint>

// One binary serves all x86-64 processors: the loader picks the widest vectors the processor has.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

constexpr int64_t block = 256;

// The memory of an array of plain numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#define ROOM_HAS_PAGES 1
#else
#define ROOM_HAS_PAGES 0
#endif

// A large array has pages of its own. A page takes memory from when it is written first until it is given back, so
// that there may be room for far more numbers than there are, and those at the front can go while the others stay
// where they are.
template <typename T>
class Room {
    static constexpr size_t LARGE = size_t{1} << 18, GIVEN = size_t{1} << 16;  // bytes

    std::unique_ptr<T[]> few;
    T *at = nullptr;
    size_t pages = 0, given = 0;  // bytes; 0 of pages: the array is not large

  public:
    // Returns whether an array of so many numbers has pages.
    static bool large(int64_t numbers) { return ROOM_HAS_PAGES && static_cast<size_t>(numbers) * sizeof(T) >= LARGE; }

    Room() = default;
    Room(int64_t numbers, bool with_pages) {
        if (!with_pages) {
            few.reset(new T[static_cast<size_t>(numbers)]);
            at = few.get();
            return;
        }
#if ROOM_HAS_PAGES
        pages = static_cast<size_t>(numbers) * sizeof(T);
        void *found = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found == MAP_FAILED) throw std::bad_alloc();
        at = static_cast<T *>(found);
#endif
    }
    Room(Room &&other) noexcept { *this = std::move(other); }
    Room &operator=(Room &&other) noexcept {
        std::swap(few, other.few), std::swap(at, other.at);
        std::swap(pages, other.pages), std::swap(given, other.given);
        return *this;
    }
    ~Room() {
#if ROOM_HAS_PAGES
        if (pages) munmap(at, pages);
#endif
    }

    T *get() { return at; }
    const T *get() const { return at; }
    bool has_pages() const { return pages != 0; }

    // Gives back the pages of the first numbers, which are not read again.
    void give_back(int64_t numbers) {
#if ROOM_HAS_PAGES
        size_t to = static_cast<size_t>(numbers) * sizeof(T) / GIVEN * GIVEN;
        if (!pages || to <= given) return;
        madvise(reinterpret_cast<char *>(at) + given, to - given, MADV_DONTNEED);
        given = to;
#endif
    }
};

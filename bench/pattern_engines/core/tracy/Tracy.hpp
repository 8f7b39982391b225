#pragma once

// In place of the profiler, which CORE's headers name.
#define ZoneScopedN(name)
